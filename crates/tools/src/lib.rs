//! The tools at work: what a runner does with a call, one file per tool whose calls run in a process.
//!
//! The crate `tool-specs` declares the tools and says how to add one. [`run`] and [`probe`] do the work for the
//! runners `agentd-tool`, `agentd-code`, `agentd-mcp` and `agentd-web`; the last three add an [`Engine`] for syntax
//! trees, for MCP servers and for the web.

mod cancel;
mod command;
mod edit;
mod engine;
mod failure;
mod files;
mod hook;
mod nested_instructions;
mod probe;
mod refusal_hints;
mod run;
mod search;
mod server;
mod server_answer;
pub mod signing;
mod spec;
mod text;
mod tool;
mod tool_context;

pub use cancel::Cancel;
pub use command::live_output::{LiveOffer, LiveSink};
pub use command::setup::CommandSetup;
pub use command::{InputError, JobControl};
pub use edit::restore::{probe_restore, restore};
pub use engine::Engine;
pub use engine::error::EngineError;
pub use engine::server::{ServerEngine, ServerLink, ServerPipes, ServerSink, ServerSpeech};
pub use engine::syntax::{
    CodeMatch, FindBy, LocatedEdits, Outline, OutlineEntry, SyntaxEngine, SyntaxSearch, TextEdit,
    TreeEdit,
};
pub use engine::web::{SearchHit, WebEngine, WebPage};
pub use failure::FailureCode;
pub use files::image::is_image;
pub use probe::probe;
pub use prompts::DeniedReads;
pub use run::{CageLost, ToolRunRequest, run, run_command};
pub use server::RemoteClient;
pub use server_answer::{AnswerPart, server_report};
