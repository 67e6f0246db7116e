//! `agentd-mcp`: one MCP server, and the client that speaks with it.
//!
//! The same program as `agentd-tool`, with an engine for the Model Context Protocol. It is a separate
//! executable so that no other links the protocol. The server runs in a deeper cage, as a command does;
//! this process has its standard streams and passes calls and answers on. `http` is for servers that
//! have an address instead. `agentd-mcp --conformance URL` is the client for the protocol's own suite.

mod answer;
mod challenge;
mod client;
mod conformance;
mod http;
mod oauth;
mod redirect;
mod sample;
mod tool_list;

use std::process::ExitCode;
use tool_worker::Engine;

/// The program.
pub fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("--conformance") => conformance::main(words.next()),
        _ => tool_worker::main_with(Engine::Server(&client::McpClient)),
    }
}
