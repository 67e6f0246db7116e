//! The request that opens a session, and what a person may do to it later: questions, settings, wishes, its
//! end. For the wire of [`crate::client`].

use crate::confinement::{FilePath, Network};
use crate::content::Usage;
use crate::context::NumberedSummary;
use crate::fleet::FleetSeat;
use crate::hosts::HostRule;
use crate::ids::SessionId;
use crate::judgement::PermissionMode;
use crate::provider::PassedFd;
use crate::{Decode, Encode};
use journal::OpenTurn;

/// Policy for hosts without any cage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Unsandboxed {
    /// They are refused.
    Refused,
    /// They run with nothing that holds them back, as this client's person asked.
    Accepted,
}

/// Policy for settings of the project that loosen the cage or the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ProjectTrust {
    /// Where the user's record holds its files with their present content.
    AsRecorded,
    /// Yes: a flag said so for this run.
    ThisRun,
}

/// The start of a session: new, resumed or forked.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum SessionStart {
    /// A new session.
    New,
    /// An earlier one. Where it is open in this supervisor already, the client joins it as it is.
    Resume {
        /// Which.
        session: SessionId,
        /// Policy for its unfinished turn.
        open_turn: OpenTurn,
    },
    /// A new session that starts as a copy of another.
    Fork {
        /// Which.
        of: SessionId,
        /// The last record to take; all up to the last turn's end where absent.
        at: Option<u64>,
    },
    /// The session of a fleet's task: new, or where it was on this host or a lost one. Its unfinished
    /// turn goes on.
    Seat {
        /// Which.
        session: SessionId,
    },
}

/// Where a session's answers come from, as the client's environment and flags say.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionRequest {
    /// The project directory, a real path.
    pub project: FilePath,
    /// The path by which a person opened it, where that is another: it leads there by links.
    pub named: Option<FilePath>,
    /// Directories granted beside it.
    pub added: Vec<FilePath>,
    /// A new session, or which earlier one.
    pub start: SessionStart,
    /// The client's environment, reduced to the variables that tools and providers may see. It
    /// never holds a key: a key passed by descriptor appears as its variable with the value `set`.
    pub env: Vec<(String, String)>,
    /// Settings from flags, as `key = value` lines of the configuration.
    pub settings: Vec<(String, String)>,
    /// Permission mode, where a flag gave one.
    pub mode: Option<PermissionMode>,
    /// Network of commands, where a flag gave one.
    pub network: Option<Network>,
    /// Trust in the project's own configuration.
    pub trust: ProjectTrust,
    /// True if a person sits at this client.
    pub audience: crate::judgement::Audience,
    /// The purpose of each descriptor that follows, in order.
    pub papers: Vec<PassedFd>,
    /// Policy for hosts without any cage.
    pub uncaged: Unsandboxed,
    /// Flags about the conversation.
    pub conversation: ConversationFlags,
    /// The client's file mode creation mask: files that calls make have its modes.
    pub umask: u32,
    /// Further sub-agents, as the JSON text of `--agents`.
    pub agents: Option<String>,
    /// The seat in a fleet, where the session works for one.
    pub seat: Option<Box<FleetSeat>>,
}

/// Flags about the conversation. The journal keeps them, so that a resumed session has them too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct ConversationFlags {
    /// Text for the end of the system prompt.
    pub appended_system: Option<String>,
    /// Cost of the session, in millionths of a US dollar, at which no further request is sent.
    pub cost_limit: Option<u64>,
}

/// The form that the last answer of a turn must have.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct AnswerForm {
    /// Words that ask for it. They follow the prompt.
    pub words: String,
    /// The JSON Schema. Models that can be held to it get it with each request of the turn.
    pub schema: String,
}

/// Known limits and prices of a model. Unknown values are absent, never zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub struct ModelFacts {
    /// Tokens that its context holds.
    pub context: Option<u64>,
    /// Its prices.
    pub prices: Option<Prices>,
    /// True if it sees images.
    pub vision: Option<bool>,
    /// True if its server holds answers to a JSON Schema, also where the model has tools.
    pub json_schema: Option<bool>,
    /// The images that its vendor takes.
    pub images: ImageLimits,
}

/// A model to choose.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct KnownModel {
    /// As `:model` and `--model` take it.
    pub name: String,
    /// Its context size and prices, as far as they are known.
    pub facts: ModelFacts,
}

/// Bounds of the images of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ImageLimits {
    /// Their bytes together, as files. In base64 they and the text must fit into a request.
    pub bytes: u64,
    /// Their number.
    pub count: u32,
}

impl Default for ImageLimits {
    /// Anthropic's for its models with 200,000 tokens of context: requests of 32 MB, 100 images.
    /// <https://platform.claude.com/docs/en/build-with-claude/vision>
    fn default() -> Self {
        Self { bytes: 18 << 20, count: 100 }
    }
}

/// Prices of a million tokens, in millionths of a US dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Prices {
    /// Read without the cache's help.
    pub input: u64,
    /// Written by the model.
    pub output: u64,
    /// Read from the vendor's cache.
    pub cache_read: Option<u64>,
    /// Written into the vendor's cache.
    pub cache_write: Option<u64>,
}

impl Prices {
    /// The cost of an answer in millionths of a dollar. `None` if used tokens have no price, or if
    /// the vendor reported no counts.
    #[must_use]
    pub fn cost(self, usage: Usage) -> Option<u64> {
        let Usage { input, output, cache_read, cache_write } = usage;
        input.or(output)?;
        let parts = [
            (input, Some(self.input)),
            (output, Some(self.output)),
            (cache_read, self.cache_read),
            (cache_write, self.cache_write),
        ];
        let mut sum: u128 = 0;
        for (tokens, price) in parts {
            let tokens = tokens.unwrap_or(0);
            if tokens > 0 {
                sum += u128::from(tokens) * u128::from(price?);
            }
        }
        u64::try_from(sum / 1_000_000).ok()
    }
}

/// A setting of a running session that a person changes. Holds for calls that start later.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum SettingChange {
    /// Network of commands.
    Network(Network),
    /// One more host that commands may reach; the network is an allow-list from then on.
    Host(HostRule),
    /// Permission mode.
    Mode(PermissionMode),
    /// One more directory that tools may use, a real path.
    AddDirectory(FilePath),
    /// The model that is asked from the next request on, by its name in the configuration or its
    /// vendor's.
    Model(String),
    /// One more file is pinned to the conversation, as `read` is given it.
    Pin(String),
    /// The file is pinned no more.
    Unpin(String),
    /// This text ends the system prompt, in place of an earlier one.
    AppendedSystem(String),
    /// No further request is sent once the session has cost this, in millionths of a US dollar.
    CostLimit(u64),
    /// A flag that guards the session holds for its later runs too: a key of the configuration, and one
    /// of its values.
    Flag(String, String),
    /// The session has this name beside its ID; none if it is empty.
    Name(String),
}

/// A question about a session that changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum SessionQuery {
    /// Files that calls changed, as diffs; answered by `Changes`.
    Changes {
        /// The number of the first call; 0 for all.
        since: u32,
    },
    /// What fills the model's context; answered by `Context`.
    Context,
    /// The MCP servers of the session; answered by `Servers`.
    Servers,
}

/// A person's wish for a session.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum SessionWish {
    /// Make the conversation that the model gets smaller from the next request on. Every client
    /// receives `Compacted`, or a `Notice` that says why not.
    Compact {
        /// Words about the focus of the summary; may be empty.
        focus: String,
    },
    /// Replace the text of the newest summary. Every client receives `Compacted`, or a `Notice` that
    /// says why not.
    EditSummary(NumberedSummary),
    /// Let the commands that run now go on in the background. Every client receives `InBackground`
    /// for each.
    Background,
    /// Give this client a network of the commands in the background, so that it serves a port of theirs.
    /// Answered by `NetworkOpened`, and once its commands have ended by `NetworkClosed`.
    OpenPort {
        /// The port.
        port: u16,
        /// The call of a command in it; the newest network if none.
        call: Option<u32>,
    },
    /// End this call, and nothing else: the turn and the other calls go on. Every client receives a `Notice`; answered
    /// by `Failed` where the call does not run.
    StopCall {
        /// Its number.
        call: u32,
    },
    /// Run this command as the person's own call. It is queued like a prompt; the model gets its output with the next one.
    Run {
        /// For `bash`.
        command: String,
    },
}

/// How a session is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum SessionEnding {
    /// The running turn is interrupted, its calls get their end on disk.
    Stop,
    /// At once: running calls are killed and reported as cut short.
    Kill,
}

/// Policy of a shutdown for unfinished turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum OnUnfinished {
    /// It refuses, and names them.
    Refuse,
    /// It interrupts them.
    Interrupt,
}
