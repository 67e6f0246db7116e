//! The facts about a call that a verdict needs; each tool derives them from its arguments.

use crate::arguments::command_rights::GitSigning;
use protocol::confinement::{GitSettings, Network, Profile};
use protocol::hosts::HostRule;
use protocol::mcp::ServerReply;
use protocol::tool::AfterInput;
use protocol::web::WebAddress;
use std::fs::File;

/// The facts about a call that a verdict needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct JudgedFacts {
    /// The cage of this call; `None` is the tool's.
    pub profile: Option<Profile>,
    /// The paths it names, as it names them.
    pub paths: Vec<String>,
    /// The paths among them that the call removes.
    pub removed: Vec<String>,
    /// The command it runs, or the subject of another call that rules are matched with.
    pub command: Option<String>,
    /// The network it asks for; `None` is the session's.
    pub network: Option<Network>,
    /// Hosts that it asks for beside the session's.
    pub hosts: Vec<HostRule>,
    /// Access to git's settings that it requests; `None` requests none.
    pub git: Option<GitSettings>,
    /// The signatures of git's commits and tags that it asks for.
    pub signing: GitSigning,
    /// One more directory that it asks for, as it names it.
    pub directory: Option<String>,
    /// The page that it asks for.
    pub page: Option<WebAddress>,
    /// Its relation to background commands.
    pub job: JobRequest,
    /// The work that it gives to a sub-agent.
    pub task: Option<Box<TaskRequest>>,
    /// Bytes of text that it has the store keep for later sessions.
    pub stored_bytes: u64,
}

/// Work for a sub-agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskRequest {
    /// The work in a few words.
    pub description: String,
    /// The whole work.
    pub prompt: String,
    /// The name of the agent; none for the built-in one.
    pub agent: Option<String>,
    /// The conversation goes on while it works.
    pub background: bool,
}

/// The relation of a call to background commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum JobRequest {
    /// The conversation waits for its end.
    #[default]
    Foreground,
    /// It is one: the conversation goes on while it runs.
    Background,
    /// It reads the output of one.
    Output {
        /// The number of that call.
        call: u32,
        /// How long to wait, in milliseconds.
        wait_ms: u64,
        /// A regular expression that a new line has to fit for the wait to end.
        pattern: Option<String>,
    },
    /// It writes to the standard input of one.
    Input {
        /// The number of that call.
        call: u32,
        /// The text.
        text: String,
        /// What becomes of the input then.
        then: AfterInput,
    },
    /// It calls a tool of a server.
    Server {
        /// The tool's name for models; then the server's own.
        tool: String,
        /// A JSON object.
        arguments: String,
    },
    /// The call does not wait for its server any more.
    Withdraw {
        /// The tool's name for models.
        tool: String,
    },
    /// A question of its server has this answer.
    Reply {
        /// The tool's name for models.
        tool: String,
        /// The question's number on the server's channel.
        ask: u64,
        /// The answer.
        reply: ServerReply,
    },
    /// It ends one.
    Stop {
        /// The number of that call.
        call: u32,
    },
}

/// Where a command runs, in the terms of a shell's job control.
#[derive(Debug)]
pub(crate) enum JobPlace {
    /// The conversation waits for its end.
    Foreground,
    /// The same, with these bytes on standard input.
    Fed(Vec<u8>),
    /// The same in `/`, with this file on standard input: for a cage without the project.
    Over(File),
    /// The conversation goes on while it runs.
    Background,
    /// The same in `/`: for a cage without the project.
    Apart,
}
