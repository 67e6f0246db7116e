//! `agentd-mcp`: one MCP server, and the client that speaks with it.
//!
//! The same program as `agentd-tool`, with an engine for the Model Context Protocol. It is a separate
//! executable so that no other links the protocol. The server runs in a deeper cage, as a command does;
//! this process has its standard streams and passes calls and answers on. A server that has an address is
//! spoken with over `http`, by a client in such a deeper cage: `remote`. `login` is a person's log-in at
//! such a server. `serve` is agentd as a server for other agents. A build with `--cfg agentd_hooks` is also
//! the client for the protocol's own suite.

mod answer;
mod browser;
mod calls;
mod challenge;
mod client;
#[cfg(agentd_hooks)]
#[path = "../../../tests/conformance/client.rs"]
mod conformance;
mod credentials;
mod endpoint;
mod grantor;
mod http;
mod http_client;
mod listening;
mod login;
mod oauth;
mod offers;
mod pages;
mod questions;
mod readable;
mod reconnects;
mod redirect;
mod relisting;
mod remote;
mod renewal;
mod roots;
mod serve;
mod tool_list;

use protocol::mcp::ServerFault;
use std::process::ExitCode;
use tool_worker::Engine;
use tools::{RemoteClient, ServerEngine, ServerLink, ServerPipes, ServerSpeech};

/// Speaks with servers.
struct McpEngine;

impl ServerEngine for McpEngine {
    fn serve(&self, pipes: ServerPipes, link: ServerLink<'_>) -> Result<(), ServerFault> {
        match pipes.speech {
            ServerSpeech::Mcp => client::serve(pipes, link).map_err(ServerFault::from),
            ServerSpeech::Relay => remote::relay(pipes, link),
        }
    }
}

/// The program.
pub fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == "--serve") {
        return serve::main(words);
    }
    if let Some(client) = RemoteClient::parse(std::env::args().skip(1)) {
        return remote::main(&client);
    }
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        #[cfg(agentd_hooks)]
        Some("--conformance") => conformance::main(words.next()),
        Some("--login") => login::log_in(words),
        Some("--logout") => login::log_out(words),
        Some("--token") => login::token(words),
        _ => tool_worker::main_with(Engine::Server(&McpEngine)),
    }
}
