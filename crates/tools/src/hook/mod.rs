//! Hooks in Claude Code's format: the names and arguments that a hook sees, its standard input, its
//! answer, and its run. For the tools `hook` and `guard_hook`, and for matchers.

mod answer;
mod claude_names;
mod payload;
pub(crate) mod run_hook;
mod subjects;

pub use claude_names::hook_names;
pub use subjects::hook_subjects;
