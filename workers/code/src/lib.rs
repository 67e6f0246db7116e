//! `agentd-code`: one call of a syntax-tree tool in its own process.
//!
//! The same program as `agentd-tool`, with an engine for syntax trees. It is a separate executable
//! so that the grammars, which are C code and larger than everything else, are linked into no
//! other.

use std::process::ExitCode;
use tool_worker::Engine;

/// The program.
pub fn main() -> ExitCode {
    tool_worker::main_with(Engine::Trees(&code::Trees))
}
