//! Text for models and terminals: control codes, lines, limits, diffs, similar names.

pub(crate) mod control;
pub(crate) mod did_you_mean;
pub(crate) mod diff;
pub(crate) mod lines;
pub(crate) mod shell_words;
pub(crate) mod truncate;
