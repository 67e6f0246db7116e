//! Permission rules, from the command line.
#![allow(clippy::unwrap_used)]

mod check;
mod claude_rules;
mod sandboxed;
#[path = "../support/mod.rs"]
mod support;
