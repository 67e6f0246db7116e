//! Finding files and lines: the directory walk, file patterns, regular expressions.

pub(crate) mod expression;
pub(crate) mod file_patterns;
pub(crate) mod line_search;
pub(crate) mod walk;
