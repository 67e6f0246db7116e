//! The conversation, driven message by message.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod aside_hooks;
mod background;
mod compact_hooks;
mod event_hooks;
mod joining;
mod laws;
mod own;
mod pinned;
mod summary;
mod talk;
mod turns;
mod typed;
mod undo;
mod verify;
