//! The command line and the terminal, end to end.
#![allow(clippy::unwrap_used)]

mod acp;
mod ask_user;
mod asked_ahead;
mod attach;
mod cli;
mod clipboard;
mod commands;
mod doors;
mod end_to_end;
mod exit_codes;
mod export;
mod full_screen;
mod headless;
mod hidden_characters;
mod input_line;
mod instructions;
mod mcp_commands;
mod mouse;
mod notes;
mod plan;
mod project_files;
mod questions;
mod recording;
mod review;
mod rewind;
mod running;
mod sdk;
mod session_models;
mod session_names;
mod session_search;
mod six_turns;
mod slash_commands;
mod slow_line;
mod steering;
mod structured_answers;
#[path = "../support/mod.rs"]
mod support;
mod themes;
mod typed_at_questions;
mod typed_commands;
mod worktree_flag;
