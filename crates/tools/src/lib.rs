//! What each tool is and does: one ordered table, one file a tool.
//!
//! Two halves that link apart. [`specs`] and [`interpret`] say what the tools are and check a
//! call's arguments; they touch no file and serve the session, the supervisor and the broker.
//! [`run`] and [`probe`] do the work and serve the runners only: `agentd-tool`, and `agentd-code`
//! for the tools that read syntax trees, to which it brings the engine ([`SyntaxEngine`]).
//!
//! # How to add a tool
//!
//! 1. **File**: `src/tool/NAME.rs` with the argument type (`Deserialize`, `Serialize`,
//!    `JsonSchema`; a doc comment on each field is what the model reads) and an `impl Tool`.
//! 2. **Line**: `NAME::Type,` in the table of `src/tool/mod.rs`. The order there is the order in
//!    which the model sees the tools. Schema, validation, aliases, help and the runner's lookup
//!    follow from that line.
//!    A tool that reads syntax trees says `RUNNER: Runner = Runner::Code`.
//! 3. **Test**: a table test in `tests/tools/NAME.rs`: the happy path, each error by its code, each cap
//!    with its marker. Every file tool is also run through the lists in `tests/tools/scope.rs` and
//!    `tests/tools/inputs.rs`, every other through the workspace's `tests/tools/inputs.rs`, all through
//!    its `tests/tools/every_tool.rs`.
//! 4. **Docs**: its row in the table of this crate's README, which a test checks; what rules for it
//!    match (`subject` in the crate `approval`), where it is no look at files.
//! 5. **Configuration**: nothing, unless people may choose something of it: then a line in
//!    `config/default.toml`, with its reason, and one in `keys.rs` of the crate `config`.
//!
//! Since the table's macro declares the files, `cargo fmt` does not see them:
//! `rustfmt --edition 2024 crates/tools/src/tool/*.rs` does.

mod arguments;
mod cancel;
mod command;
mod edit;
mod engine;
mod failure;
mod files;
mod manual;
mod probe;
mod refusal_hints;
mod run;
mod runner_program;
mod search;
pub mod signing;
mod spec;
mod text;
mod tool;
mod tool_answer;
mod tool_context;

pub use arguments::command_rights::GitSigning;
pub use arguments::interpret::{InterpretedCall, interpret, interpret_at};
pub use arguments::invalid::InvalidCall;
pub use cancel::Cancel;
pub use command::live_output::{LiveOffer, LiveSink};
pub use command::setup::CommandSetup;
pub use edit::restore::{probe_restore, restore};
pub use engine::Engine;
pub use engine::error::EngineError;
pub use engine::syntax::{
    CodeMatch, FindBy, LocatedEdits, NameKind, Outline, OutlineEntry, SyntaxEngine, SyntaxSearch,
    TextEdit, TreeEdit,
};
pub use engine::web::{
    NUMERIC_ADDRESS_REFUSED, SearchHit, WebEngine, WebPage, numeric_address, web_address, web_url,
};
pub use failure::FailureCode;
pub use files::call_scope::CallScope;
pub use manual::named;
pub use probe::probe;
pub use refusal_hints::{Restriction, restrictions, temp_dirs};
pub use run::{CageLost, ToolRunRequest, run, run_command};
pub use runner_program::RunnerProgram;
pub use spec::{Alias, Caller, ToolDeclaration};
pub use text::control::visible;
pub use tool::specs;
pub use tool_answer::with_note;
