//! Processes killed, stopped and broken in the middle of their work: nothing is lost, nothing runs twice.
#![allow(clippy::unwrap_used)]

mod agents;
mod background;
mod daemon_failures;
mod deaths;
mod failures;
mod faults;
mod input_survives;
mod lies;
mod matrix;
mod mcp;
mod reserve;
mod restored;
mod shutdown;
mod soak;
#[path = "../support/mod.rs"]
mod support;
mod typed_commands;
