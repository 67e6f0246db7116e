//! The facts about a call that a verdict needs; each tool derives them from its arguments.

use crate::arguments::command_rights::GitSigning;
use protocol::confinement::{GitSettings, Network, Profile};
use protocol::hosts::HostRule;
use protocol::tool::AfterInput;
use protocol::web::WebAddress;

/// The facts about a call that a verdict needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JudgedFacts {
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
    /// Whether the conversation waits for it.
    pub runs_in: RunsIn,
    /// What it asks another call.
    pub about: Option<CallAbout>,
    /// The work that it gives to a sub-agent.
    pub task: Option<Box<TaskRequest>>,
    /// What it runs by the configuration.
    pub configured: Option<ConfiguredRun>,
    /// Bytes of text that it has the store keep for later sessions.
    pub stored_bytes: u64,
}

/// What a call runs that the conversation makes by the configuration: its entry must say the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfiguredRun {
    /// A hook at an event.
    EventHook {
        /// The name of the event.
        event: String,
        /// The command, for a shell.
        command: String,
        /// Why it cannot be run as it is written.
        broken: Option<String>,
        /// Longest time it may take, in milliseconds.
        timeout_ms: u64,
    },
    /// A formatter or verifier after an edit.
    EditHook {
        /// The command.
        command: String,
        /// The file that marks a package.
        package: Option<String>,
        /// The files that were edited.
        paths: Vec<String>,
    },
    /// The client of an MCP server that has an address.
    RemoteServer {
        /// The hosts that the configuration names for it.
        hosts: Vec<HostRule>,
    },
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

/// Whether the conversation waits for a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunsIn {
    /// It waits for the call's end.
    #[default]
    Foreground,
    /// It goes on while the call runs.
    Background,
}

/// What a call asks another call of the session, which answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallAbout {
    /// One in the background.
    Job(JobRequest),
    /// The one that runs an MCP server.
    Server(ServerToolCall),
}

/// A request about a command or a sub-agent in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRequest {
    /// The number of its call.
    pub call: u32,
    /// What is asked.
    pub asks: JobAsk,
}

/// What can be asked of a command in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobAsk {
    /// Its output.
    Output {
        /// How long to wait, in milliseconds.
        wait_ms: u64,
        /// A regular expression that a new line has to fit for the wait to end.
        pattern: Option<String>,
    },
    /// To take this on its standard input.
    Input {
        /// The text.
        text: String,
        /// What becomes of the input then.
        then: AfterInput,
    },
    /// To end.
    Stop,
}

/// A call of a server's tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerToolCall {
    /// The tool's name for models.
    pub tool: String,
    /// A JSON object.
    pub arguments: String,
}
