//! Every tool, from the model through its runner and back.
#![allow(clippy::unwrap_used)]

mod agents;
mod background;
mod background_agents;
mod builds;
mod cached_results;
mod documents;
mod event_hooks;
mod every_tool;
mod format;
mod hook_forms;
mod images;
mod inputs;
mod long_output;
mod mcp;
mod mcp_agents;
mod mcp_check;
mod mcp_http;
mod mcp_install;
mod mcp_login;
mod mcp_odd;
mod mcp_offers;
mod mcp_questions;
mod mcp_restarts;
mod mcp_serve;
mod meanwhile;
mod model_words;
mod own_tmp;
mod plugins;
mod session_events;
mod session_network;
mod stale_edits;
#[path = "../support/mod.rs"]
mod support;
mod tool_search;
mod unread_files;
mod verify;
mod web;
mod worktrees;
