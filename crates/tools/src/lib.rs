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

mod answer;
mod arguments;
mod barriers;
mod caches;
mod cancel;
mod capture;
mod coerce;
mod command;
mod control;
mod cut;
mod dialect;
mod diff;
mod discovery;
mod draft;
mod drive;
mod expression;
mod failure;
mod git;
mod hidden;
mod home_names;
mod judged;
mod kinds;
mod lines;
mod live;
mod manual;
mod near_miss;
mod nearest;
mod noise;
mod not_started;
mod open;
mod package_copy;
mod passage;
mod patch;
mod patterns;
mod probe;
mod protected;
mod remove;
mod replace;
mod restore;
mod rights;
mod run;
mod schema;
mod scope;
mod searching;
mod shared_dir;
pub mod signing;
mod site;
mod source;
mod spec;
mod syntax;
mod to_proxy;
mod tool;
mod trail;
mod transaction;
mod web;

pub use answer::with_note;
pub use arguments::{InterpretedCall, InvalidCall, interpret, interpret_at};
pub use barriers::{Restriction, restrictions, temp_dirs};
pub use cancel::Cancel;
pub use control::visible;
pub use failure::FailureCode;
pub use live::{LiveOffer, LiveSink};
pub use manual::named;
pub use probe::probe;
pub use restore::{probe_restore, restore};
pub use rights::GitSigning;
pub use run::{CageLost, CommandSetup, ToolRunRequest, run, run_command};
pub use scope::CallScope;
pub use spec::{Alias, Caller, RunnerProgram, ToolDeclaration};
pub use syntax::{
    CodeMatch, Engine, EngineError, FindBy, LocatedEdits, NameKind, Outline, OutlineEntry,
    SyntaxEngine, SyntaxSearch, TextEdit, TreeEdit,
};
pub use tool::specs;
pub use web::{
    NUMERIC_ADDRESS_REFUSED, SearchHit, WebEngine, WebPage, numeric_address, web_address, web_url,
};
