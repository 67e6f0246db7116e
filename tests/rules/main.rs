//! Permission rules, from the command line.
#![allow(clippy::unwrap_used)]

mod check;
#[path = "../support/mod.rs"]
mod support;
