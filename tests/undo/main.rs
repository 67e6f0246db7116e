//! Undo of files and commands, and the store behind it.
#![allow(clippy::unwrap_used)]

mod commands;
mod files;
mod store;
#[path = "../support/mod.rs"]
mod support;
