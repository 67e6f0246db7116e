//! Rules and verdicts, from outside: commands as tables, limits, properties, and texts that fuzzing found.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod bench;
mod commands;
mod corpus;
mod expanded;
mod limits;
mod noticed;
mod properties;
mod replay;
mod sandboxed;
#[path = "../../../../tests/fuzz/src/script.rs"]
mod script;
mod syntax;
mod texts;
mod traced;
mod verdicts;
