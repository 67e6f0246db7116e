//! The tools: one ordered table, one file per tool.
//!
//! The crate has two halves that link separately. [`specs`], [`rule_targets`] and [`interpret`] declare
//! the tools and check the arguments of a call. They touch no file; the session, the supervisor and the
//! broker use them. [`run`] and [`probe`] do the work for the runners `agentd-tool`, `agentd-code` and
//! `agentd-web`; the last two add an [`Engine`] for syntax trees and for the web.
//!
//! # How to add a tool
//!
//! 1. **File**: `src/tool/NAME.rs` with the argument type (`Deserialize`, `Serialize`, `JsonSchema`; the
//!    doc comment of each field is the model's documentation) and an `impl Tool`. The trait declares
//!    everything that other crates need: the sandbox policy, the runner, the rules that apply, limits,
//!    an example, aliases. Open files with `ToolContext::open`, list directories with `DirWalk`: both
//!    record the read set, on which cached results depend.
//! 2. **Row**: `NAME::Type,` in the table of `src/tool/mod.rs`, in the order in which models see the
//!    tools. Schema, validation, permission rules, help and the runner's lookup follow from this row.
//! 3. **Tests**, in this crate: `tests/tools/NAME.rs`, named in `tests/tools/main.rs`: the normal case,
//!    each error by its code, each limit with the line that reports it. A file tool also gets a column in
//!    the table of `tests/tools/inputs.rs` and a case in `tests/tools/scope.rs`. In the workspace: a row in
//!    `tests/tools/every_tool.rs`, and for a cacheable tool one in `tests/tools/cached_results.rs`.
//! 4. **Documents**: a row in this crate's README and in `workers/agentd/help/tools.md`; the number of
//!    tools in the workspace's README.
//!
//! Only if users can configure it: a row with the reason of its default in `keys` of the crate `config`.
//!
//! `cargo fmt` does not find the files that the table's macro declares; run
//! `rustfmt --edition 2024 crates/tools/src/tool/*.rs`.

mod arguments;
mod cancel;
mod command;
mod edit;
mod engine;
mod failure;
mod files;
mod hook;
mod manual;
mod memory_scope;
mod nested_instructions;
mod probe;
mod refusal_hints;
mod rule_target;
mod run;
mod runner_program;
mod search;
mod server;
mod server_answer;
pub mod signing;
mod spec;
mod text;
mod tool;
mod tool_answer;
mod tool_context;

pub use arguments::command_rights::GitSigning;
pub use arguments::facts::{
    CallAbout, ConfiguredRun, JobAsk, JobRequest, RunsIn, ServerToolCall, TaskRequest,
};
pub use arguments::interpret::{InterpretedCall, interpret, interpret_at};
pub use arguments::invalid::InvalidCall;
pub use cancel::Cancel;
pub use command::git::git_words;
pub use command::live_output::{LiveOffer, LiveSink};
pub use command::setup::CommandSetup;
pub use command::{BACKGROUND_MS, InputError, JobControl};
pub use edit::restore::{probe_restore, restore};
pub use engine::Engine;
pub use engine::error::EngineError;
pub use engine::server::{ServerEngine, ServerLink, ServerPipes, ServerSink, ServerSpeech};
pub use engine::syntax::{
    CodeMatch, FindBy, LocatedEdits, NameKind, Outline, OutlineEntry, SyntaxEngine, SyntaxSearch,
    TextEdit, TreeEdit,
};
pub use engine::web::{
    NUMERIC_ADDRESS_REFUSED, SearchHit, WebEngine, WebPage, numeric_address, web_address, web_url,
};
pub use failure::FailureCode;
pub use files::call_scope::CallScope;
pub use files::document::{MODEL_SEES, most_images};
pub use files::image::{is_image, unfit};
pub use files::protected::asked_about;
pub use hook::hook_subjects;
pub use manual::named;
pub use memory_scope::MemoryScope;
pub use probe::probe;
pub use prompts::DeniedReads;
pub use refusal_hints::{Restriction, restrictions, temp_dirs};
pub use rule_target::{Inherit, InheritedRules, MatchedBy, RuleDepth, RuleTarget};
pub use run::{CageLost, ToolRunRequest, run, run_command};
pub use runner_program::RunnerProgram;
pub use server::RemoteClient;
pub use server_answer::{AnswerPart, server_report};
pub use spec::{Alias, Caller, ToolDeclaration};
pub use text::control::visible;
pub use text::shell_words::shell_words;
pub use tool::{rule_targets, specs};
pub use tool_answer::{command_output, with_note};
