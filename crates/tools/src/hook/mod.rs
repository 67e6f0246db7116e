//! Hooks in Claude Code's format: the names and arguments that a hook sees, its standard input, its
//! answer, and its run. For the tools `hook` and `guard_hook`.

mod answer;
mod payload;
pub(crate) mod run_hook;
