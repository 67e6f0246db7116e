//! What each tool is: names, schemas, other agents' words for them, rules, the facts of a call. No code that
//! runs a tool: the crate `tools` has it, and only runners link that.
//!
//! [`specs`] and [`rule_targets`] are the tables, [`interpret`] turns a call of a model into a checked one. No
//! function opens a file of the project. The conversation, the broker, the supervisor and the runners share them.
//!
//! # How to add a tool
//!
//! 1. **Contract**: `src/tool/NAME.rs` here, with the argument type (`Deserialize`, `Serialize`, `JsonSchema`; the
//!    doc comment of each field is the model's documentation) and an `impl ToolSpec`: the sandbox policy, the
//!    runner, the rules that apply, limits, an example, aliases, the facts for the verdict. A tool that not every
//!    session needs has `FOUND_BY`, the words by which `tool_search` finds it, and three phrases in
//!    `tests/tools/tool_search.rs` of the workspace.
//! 2. **Row**: `NAME::Type,` in the table of `src/tool/mod.rs`, in the order in which models see the tools. Schema,
//!    validation, permission rules, help and the runner's lookup follow from this row. Write its section of
//!    `tests/contract.golden`: `UPDATE_GOLDEN=1 cargo test -p tool-specs --test golden`.
//! 3. **Work**, if its calls run in a process: `src/tool/NAME.rs` of the crate `tools` with an `impl Tool`, and its
//!    row in the table of `src/tool/mod.rs` there. Open files with `ToolContext::open`, list directories with
//!    `DirWalk`: both record the read set, on which cached results depend.
//! 4. **Tests**, in the crate `tools`: `tests/tools/NAME.rs`, named in `tests/tools/main.rs`: the normal case,
//!    each error by its code, each limit with the line that reports it. A file tool also gets a column in
//!    the table of `tests/tools/inputs.rs` and a case in `tests/tools/scope.rs`. In the workspace: a row in
//!    `tests/tools/every_tool.rs`, and for a cacheable tool one in `tests/tools/cached_results.rs`.
//! 5. **Documents**: a row in the README of `tools`, with the number of tools there, and in
//!    `workers/agentd/help/tools.md`.
//!
//! Only if users can configure it: a row with the reason of its default in `keys` of the crate `config`.
//!
//! `cargo fmt` does not find the files that the tables' macros declare; run
//! `rustfmt --edition 2024 crates/tool-specs/src/tool/*.rs crates/tools/src/tool/*.rs`.

mod arguments;
mod failure_code;
mod git;
pub mod hook_input;
mod hook_names;
mod hook_view;
pub mod image_bounds;
pub mod longest;
mod manual;
mod memory_scope;
pub mod patch;
mod restriction;
mod rule_target;
mod runner_program;
pub mod server_input;
pub mod signing;
mod spec;
pub mod text;
pub mod tool;
mod tool_answer;
mod web_address;

pub use arguments::command_rights::{GitSettingsChoice, GitSigning, SigningChoice};
pub use arguments::dialect::{ArgMeaning, FieldAliases};
pub use arguments::facts::{
    CallAbout, ConfiguredRun, JobAsk, JobRequest, JudgedFacts, RunsIn, ServerToolCall, TaskRequest,
};
pub use arguments::interpret::{InterpretedCall, interpret, interpret_at};
pub use arguments::invalid::InvalidCall;
pub use failure_code::FailureCode;
pub use git::{WORKTREES, changes_git_directory, git_words};
pub use hook_names::{hook_names, hook_subjects};
pub use hook_view::{hook_tool_input, hook_tool_name};
pub use manual::named;
pub use memory_scope::MemoryScope;
pub use restriction::{Restriction, closed_temp, restrictions};
pub use rule_target::{Inherit, InheritedRules, MatchedBy, RuleDepth, RuleTarget};
pub use runner_program::RunnerProgram;
pub use spec::{Alias, Caller, ToolDeclaration, ToolSpec, TypedInput};
pub use text::shell_words::shell_words;
pub use tool::{rule_targets, specs};
pub use tool_answer::{BodyFrom, SEPARATOR, ToolAnswer, command_output, with_note};
pub use web_address::{NUMERIC_ADDRESS_REFUSED, numeric_address, web_address, web_url};
