//! Text for models and terminals: control codes, words of a shell, limits, similar names.

pub mod control;
pub mod did_you_mean;
pub mod shell_words;
pub mod truncate;
