//! The interface between the tools that run an MCP server and the engine that speaks its protocol. The
//! engine is linked into `agentd-mcp` only.

use protocol::mcp::{FromServer, ServerFault, ToServer};
use std::fs::File;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Speaks the protocol with a server that runs in a cage.
pub trait ServerEngine: Sync {
    /// Speaks with the server until it closes its output, or `asks` has an end.
    ///
    /// # Errors
    /// Why the server is of no use: it did not start in time, or does not speak the protocol.
    fn serve(&self, pipes: ServerPipes, link: ServerLink<'_>) -> Result<(), ServerFault>;
}

/// The server's ends of its standard streams.
#[derive(Debug)]
pub struct ServerPipes {
    /// What it reads.
    pub input: File,
    /// What it prints.
    pub output: File,
    /// Their protocol.
    pub speech: ServerSpeech,
}

/// The protocol on the streams of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerSpeech {
    /// The Model Context Protocol.
    Mcp,
    /// The messages of [`ServerLink`], with agentd's own client of a server that has an address.
    Relay,
}

/// Receives messages of a server.
pub type ServerSink<'a> = dyn Fn(FromServer) + Sync + 'a;

/// The way between a server and the supervisor.
pub struct ServerLink<'a> {
    /// Its name in the configuration.
    pub name: &'a str,
    /// How long it may take to become ready.
    pub start: Duration,
    /// The project directory, for a server that is told it.
    pub project: Option<&'a Path>,
    /// What it is asked for.
    pub asks: Receiver<ToServer>,
    /// What it answers.
    pub tell: &'a ServerSink<'a>,
}
