//! Text for models and terminals: control codes, words of a shell, limits.

pub mod control;
pub mod shell_words;
pub mod truncate;
