//! Words that session records, audit records and the wires of one build share.
//!
//! A record outlives the build that wrote it: every later build reads it, so a word here keeps its JSON.
//! A wire joins processes of one build and may use these words, but no record is made of a wire's own types.
//! The files of this directory are part of the build id, since the wires are made of them.

mod cage;
mod connection;
mod content;
mod expanded_prompt;
mod refusal;
mod reopening;
mod session_cost;
mod summary_step;

pub use cage::{Enforced, Level, Limits, ProcessUsage, Tier};
pub use connection::{ConnectionOutcome, ProxyConnection};
pub use content::{ContentBlock, ImageRef, MediaType};
pub use expanded_prompt::{ExpandedPrompt, PromptPart};
pub use refusal::{PathAct, ProcessAct, Refusal, RefusalKind, SocketSpec, Subject};
pub use reopening::{OpenTurn, RestoredSession};
pub use session_cost::SessionCost;
pub use summary_step::{CompactionCause, SummaryStep};

use crate::Digest;
use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// The kind of a tool: query or mutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Looks. Allowed unless a rule denies it, never a question; its start needs no sync.
    Query,
    /// Changes things. Follows the rules and the mode, and runs at most once.
    Mutation,
}

/// Who asked for a call that no model asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnOriginRecord {
    /// The person's hooks at an event.
    EventHook,
    /// The person's commands that format or check edited files.
    EditHook,
    /// A server of the Model Context Protocol starts.
    ServerStart,
    /// A prompt, which shows a command's output, a file or a server's text.
    PromptPart,
    /// A person, who takes changes back.
    Undo,
    /// The next request, which has the text of a pinned file.
    PinnedRead,
    /// A person, who typed the command.
    Person,
    /// One that this build does not know, as it stands: a word, in each build.
    #[serde(untagged)]
    Other(String),
}

/// Tokens of one answer, each known only where the vendor said it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Read without the cache's help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Written by the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Read from the vendor's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Written into the vendor's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
}

/// How a call ended. Decided from process status and error codes, never from message text.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Outcome {
    /// An in-process tool succeeded.
    Done,
    /// An in-process tool could not; the code is in the result.
    Failed,
    /// A command ended by itself.
    Exited {
        /// 0 to 255.
        code: i32,
    },
    /// A command was ended by a signal.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// The call's time was over; its tree was killed.
    TimedOut,
    /// A person said no, or did not answer in time.
    Denied,
    /// A rule or the mode said no.
    Refused {
        /// The rule as written, or the mode.
        rule: String,
    },
    /// The cage could not be made, or stopped the call as a whole.
    Confined {
        /// The step or row that stopped it.
        what: String,
    },
    /// The command exceeded its memory bound; the kernel killed all its processes.
    OutOfMemory,
    /// The runner died before it could report.
    Crashed,
    /// Cut short; it may have run. Older builds wrote it also of calls that never started.
    Interrupted,
    /// The arguments were no call of any tool.
    Invalid,
    /// Cut short before it began.
    NeverStarted,
}

/// The effect of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleEffect {
    /// Never.
    Deny,
    /// Ask a person, in every mode.
    Ask,
    /// Let it run.
    Allow,
}

/// A file as a call last read or wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVersionRecord {
    /// With links resolved.
    pub path: String,
    /// Of all its bytes.
    pub digest: Digest,
}

/// One rule and where it is written.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct Rule {
    /// The effect.
    pub effect: RuleEffect,
    /// `tool:pattern`, as written.
    pub text: String,
    /// Path of its file, or `built-in` or `flag`.
    pub file: String,
    /// Counted from 1; 0 where there is no file.
    pub line: u32,
}

/// Why a call was decided as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum BasisRecord {
    /// A rule.
    Rule(Rule),
    /// The session's mode.
    Mode {
        /// Its name in the configuration.
        mode: String,
    },
    /// The tool only looks.
    Query,
    /// A person.
    Person {
        /// The name of their terminal.
        who: String,
        /// Their words for the model with a yes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// An approval was required, but the session was non-interactive.
    NobodyToAsk {
        /// The rule or mode that asks.
        why: String,
    },
    /// The call itself cannot be judged.
    Unjudgeable {
        /// Why.
        why: String,
    },
    /// The session's mode, of a command that runs a program whose name is only known when it runs.
    Opaque {
        /// Its name in the configuration.
        mode: String,
    },
    /// The mode `sandboxed`.
    Sandboxed {
        /// What bounds the call's effects.
        bounded: Bounded,
    },
    /// A person typed the command.
    Typed {
        /// The name of their terminal.
        who: String,
    },
}

/// What bounded the effects of a call that the mode `sandboxed` let pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bounded {
    /// It changes files of the project by their paths, and undo covers them.
    Files,
    /// The full sandbox bounds it without network, git directories are read-only, and undo covers the project but for
    /// ignored and large files.
    Command,
}

impl Bounded {
    /// As words after the mode's name.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Files => "files of the project, undo covers them",
            Self::Command => {
                "full sandbox, network off, undo covers 2,000 changed files of up to 256 KiB that no ignore file lists"
            }
        }
    }
}

/// Progress of a call that was cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallProgress {
    /// No START is on disk, so it was never let go.
    NeverStarted,
    /// A START is on disk: it may have run, in part or to its end.
    MayHaveRun,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum TurnEnd {
    /// With the model's last words.
    Done,
    /// The rounds of one turn were used up.
    RoundsUsedUp {
        /// How many there were.
        rounds: u32,
    },
    /// The calls of one turn, or of the session, were used up.
    CallsUsedUp {
        /// How many there were.
        calls: u32,
        /// Whose they were.
        #[serde(default, skip_serializing_if = "CallSpan::is_turn")]
        of: CallSpan,
    },
    /// The session reached the limit of its cost.
    CostReached {
        /// Its cost so far, in millionths of a US dollar; absent where an answer has no known cost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spent: Option<u64>,
        /// The limit.
        most: u64,
    },
    /// The model declined.
    Declined {
        /// The vendor's words.
        explanation: String,
    },
    /// The answer was cut at its token limit.
    Truncated,
    /// A hook ended it.
    StoppedByHook {
        /// Which one, and its reason.
        reason: String,
    },
    /// A person stopped it.
    Interrupted,
    /// The provider failed for good.
    ProviderFailed {
        /// The kind.
        #[serde(rename = "failure")]
        kind: ProviderFailure,
        /// In the server's words.
        message: String,
    },
    /// A process died again and again in it, with no progress in between; or the supervisor did.
    ProcessDied(WorkerDeaths),
}

/// The deaths of one process that ended a turn.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct WorkerDeaths {
    /// The executable's name.
    pub process: String,
    /// How it ended the last time: the signal or the exit code, in words.
    pub cause: String,
    /// How often it died since the last progress.
    #[serde(rename = "deaths")]
    pub count: u32,
    /// Where in the turn it died the last time, in words.
    pub place: String,
}

impl std::fmt::Display for WorkerDeaths {
    /// One sentence without the way on, which depends on who reads it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { process, cause, count, place } = self;
        write!(f, "{process} {cause} {place}")?;
        match count {
            0 | 1 => Ok(()),
            count => write!(f, "; it died {count} times without progress"),
        }
    }
}

/// The period that a call budget covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallSpan {
    /// One turn; older records say nothing.
    #[default]
    Turn,
    /// The session, from its beginning on.
    Session,
}

impl CallSpan {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_turn(&self) -> bool {
        *self == Self::Turn
    }
}

/// Kinds of failure of a provider that people act on differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderFailure {
    /// 401 or 403: the key.
    KeyRefused,
    /// No key was given.
    NoKey,
    /// The server could not be reached, or not kept, in all tries.
    Unreachable,
    /// The request itself was refused (404, spent quota).
    Rejected,
    /// The server is overloaded or limits us beyond the longest wait.
    Overloaded,
    /// The recording does not fit the conversation.
    RecordingDeparted,
    /// The conversation no longer fits into the model's context. No record has it, see
    /// [`ProviderFailure::recorded`].
    #[serde(rename = "rejected", skip_deserializing)]
    ContextFull,
    /// The request itself was refused (400, 413, 422), for a reason that agentd does not know: its length may
    /// be one. No record has it either.
    #[serde(rename = "rejected", skip_deserializing)]
    BadRequest,
}

impl ProviderFailure {
    /// As records have it. Earlier builds have no word for every kind, and the message is complete.
    #[must_use]
    pub fn recorded(self) -> Self {
        match self {
            Self::ContextFull | Self::BadRequest => Self::Rejected,
            Self::KeyRefused
            | Self::NoKey
            | Self::Unreachable
            | Self::Rejected
            | Self::Overloaded
            | Self::RecordingDeparted => self,
        }
    }
}

/// Where the audit log's chain stood: its last record. Kept in the session journal, it proves that
/// the log once held that record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainHead {
    /// The record's number, counted from 1; 0 for an empty log.
    pub seq: u64,
    /// The record's hash.
    pub hash: Digest,
}

impl ChainHead {
    /// The head of an empty log.
    pub const EMPTY: Self = Self { seq: 0, hash: Digest::NONE };
}
