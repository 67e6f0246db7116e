//! The prepared sandbox and environment of a command.

use crate::command::job_control::JobControl;
use crate::command::live_output::LiveSink;
use crate::engine::server::ServerSink;
use crate::signing::Signer;
use sandbox::{Cage, ProtectedReport};
use std::net::SocketAddr;
use std::time::Duration;

/// The additional input of a tool that runs a command.
pub struct CommandSetup<'a> {
    /// The cage that stands around the process that will be the command.
    pub cage: Cage,
    /// Where the command finds our proxy, where its network is an allow-list.
    pub proxy: Option<SocketAddr>,
    /// Signs git's commits and tags for the command, where it has that right.
    pub signer: Option<&'a Signer>,
    /// All of the command's environment; TMPDIR is put in where it is missing.
    pub env: &'a [(String, String)],
    /// Longest time where the call names none.
    pub time: Duration,
    /// The supervisor's messages to the running command.
    pub job: JobControl,
    /// Receives the messages of the command, if it is a server.
    pub server: &'a ServerSink<'a>,
    /// Receives what is put right of protected files while the command runs.
    pub protected: ProtectedReport,
    /// Receives the command's output while it runs.
    pub show: Box<dyn LiveSink + 'a>,
}
