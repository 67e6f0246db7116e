//! The store, from outside: cached results, memory, texts and undo.

#![allow(clippy::unwrap_used)]

mod cache;
mod commands;
mod memory;
mod shelf;
mod texts;
mod undo;
