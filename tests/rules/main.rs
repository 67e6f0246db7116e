//! Permission rules, from the command line.
#![allow(clippy::unwrap_used)]

mod check;
mod claude_rules;
#[path = "../support/mod.rs"]
mod support;
