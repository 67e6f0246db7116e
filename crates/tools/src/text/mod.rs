//! Text of files: lines and diffs.

pub(crate) mod diff;
pub(crate) mod lines;
