//! `agentd-code`: one call of a tool for syntax trees in a process of its own.
//!
//! The program is `agentd-tool`'s with an engine that reads syntax trees. It is an executable of its
//! own so that the grammars, which are C code and larger than all the rest, are linked into no other.

use std::process::ExitCode;
use tool_worker::Engine;

/// The program.
pub fn main() -> ExitCode {
    tool_worker::main_with(Engine::Trees(&code::Trees))
}
