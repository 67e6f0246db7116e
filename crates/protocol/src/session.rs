//! The wire to `agentd-session`: one conversation.
//!
//! Phases: `Begin`, any number of `Replay`, `ReplayDone`, answered by `Ready`; then prompts. The
//! supervisor makes each `Commit` durable before it acts on any later word.

use crate::call::{Call, Stamp, ToolResult};
use crate::content::{Block, ModelRequest, ToolSpec, Usage};
use crate::ids::{CallId, SessionId};
use crate::provider::FromProvider;
use crate::upkeep::LogLine;
use crate::{Decode, Encode, Link};

/// The wire's name.
#[derive(Debug)]
pub enum SessionLink {}

impl Link for SessionLink {
    type To = ToSession;
    type From = FromSession;
    const NAME: &'static str = "session";
    /// As large as the largest request a vendor takes.
    const MESSAGE_CAP: usize = 32 << 20;
}

/// A tool as the conversation knows it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct OfferedTool {
    /// As the model is told.
    pub spec: ToolSpec,
    /// Whether it looks or changes: neighbouring looks run at once, a change is a barrier.
    pub kind: crate::judgement::ToolKind,
    /// Whether what it changes is copied first, so that it can be taken back.
    pub copies: Copies,
}

/// Whether files are copied before a call changes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Copies {
    /// They are.
    Kept,
    /// The project is looked at before and after, and what is otherwise is what it changed.
    Compared,
    /// They are not, or it changes none.
    None,
}

/// A command that is run behind the edits of a round, and of which the model is told: a verifier or a
/// formatter.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Hook {
    /// Which files it is for: `*.rs`, or a name as it is.
    pub files: String,
    /// The file that marks a package, in which it is run.
    pub package: Option<String>,
    /// A verifier's is for a shell, a formatter's is words.
    pub command: String,
}

impl Hook {
    /// Whether it is for the file at this path: it is known by its last name.
    #[must_use]
    pub fn is_for(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        match self.files.strip_prefix('*') {
            Some(end) => name.ends_with(end),
            None => name == self.files,
        }
    }
}

/// What a conversation is begun with.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionSetup {
    /// Its name.
    pub id: SessionId,
    /// The project directory, as far as it is UTF-8.
    pub project: String,
    /// The vendor's name of the model.
    pub model: String,
    /// What the model is told first.
    pub system: String,
    /// In the table's order.
    pub tools: Vec<OfferedTool>,
    /// Most requests to the model in one turn.
    pub max_rounds: u32,
    /// Most calls in one turn.
    pub max_calls: u32,
    /// Most calls in all turns together; none is no bound.
    pub max_session_calls: Option<u32>,
    /// Most tokens of one answer.
    pub max_tokens: u32,
    /// Most calls at once.
    pub parallel: u32,
    /// Most characters of one result that the model is sent.
    pub max_result_chars: u32,
    /// Tokens that the model's context holds, where that is known.
    pub context: Option<u64>,
    /// Files that a person pinned, as `read` is given them.
    pub pinned: Vec<String>,
    /// What looks at edited files.
    pub verifiers: Vec<Hook>,
    /// What puts edited files in form, before that.
    pub formatters: Vec<Hook>,
}

/// Something that happened for good: what the journal keeps and what is replayed from it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Happened {
    /// A person asked.
    Prompt {
        /// Their words.
        text: String,
    },
    /// The model answered; its terminal event was seen, or a person stopped it there.
    Answer {
        /// The request's number.
        round: u32,
        /// Whole blocks only.
        blocks: Vec<Block>,
        /// Tokens.
        usage: Usage,
    },
    /// A call of the answer got its name, or was refused as no call at all.
    Called {
        /// The call.
        call: Call,
    },
    /// A call ended.
    Result {
        /// Which.
        call: CallId,
        /// The vendor's id, which pairs it.
        use_id: String,
        /// What it came to.
        result: ToolResult,
    },
    /// The turn ended.
    TurnEnded {
        /// How.
        end: TurnEnd,
    },
    /// The beginning of the conversation is no longer sent to the model.
    Compacted {
        /// So many messages of what was sent.
        dropped: u32,
        /// Most characters of each result that is still sent.
        result_chars: u32,
    },
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
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
        of: Span,
    },
    /// The model declined.
    Declined {
        /// The vendor's words.
        explanation: String,
    },
    /// The answer was cut at its token limit.
    Truncated,
    /// A person stopped it.
    Interrupted,
    /// The provider failed for good.
    ProviderFailed {
        /// What kind.
        kind: crate::provider::Failure,
        /// In the server's words.
        message: String,
    },
    /// A process of ours died again and again in it, with no progress in between.
    ProcessDied(Deaths),
}

/// The deaths of one process that ended a turn.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Deaths {
    /// The executable's name.
    pub process: String,
    /// How it ended the last time: the signal or the exit code, in words.
    pub cause: String,
    /// How often it died since the last progress.
    pub count: u32,
    /// Where in the turn it died the last time, in words.
    pub place: String,
}

impl std::fmt::Display for Deaths {
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

/// What a number of calls is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Span {
    /// One turn.
    Turn,
    /// The session, from its beginning on.
    Session,
}

/// A pinned file as `stat(2)` describes it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct PinnedStamp {
    /// As `read` is given it.
    pub file: String,
    /// Its stamp.
    pub stamp: FileStamp,
}

/// Whether a file has a stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum FileStamp {
    /// It has this one.
    Found(Stamp),
    /// There is no such file.
    Missing,
    /// The filesystem did not answer, or with an error.
    Unknown,
}

/// What becomes of a turn that was cut short by the death of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum OpenTurn {
    /// It waits for a person: its calls get made-up results.
    Waits,
    /// It goes on where it was: calls that were never let go are run, then the model is asked.
    GoesOn,
}

/// From the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToSession {
    /// First and once.
    Begin(SessionSetup),
    /// What the journal holds, in order; only before `ReplayDone`.
    Replay(Happened),
    /// The journal is at its end.
    ReplayDone {
        /// What becomes of a turn that is open there.
        then: OpenTurn,
    },
    /// A person's words; queued while a turn runs.
    Prompt {
        /// The words.
        text: String,
    },
    /// A word of the provider, forwarded; only while a request is open.
    Stream(FromProvider),
    /// The provider's process died too often over the open request: no answer comes.
    ProviderDied(Deaths),
    /// A call ended; its result is durable.
    CallEnded {
        /// Which.
        call: CallId,
        /// What it came to.
        result: ToolResult,
    },
    /// A person wants the turn to stop.
    Interrupt,
    /// A person wants room in the model's context; it holds from the next request on. Answered by a
    /// `Commit` of `Compacted`, or by `NotCompacted`.
    Compact,
    /// What the model is told first has changed; holds for requests to come.
    System {
        /// All of it.
        text: String,
    },
    /// These files are pinned now, and no others.
    Pinned {
        /// As `read` is given them.
        files: Vec<String>,
    },
    /// The answer to `StatPinned`.
    PinnedStamps {
        /// The number of the question.
        check: u32,
        /// When the supervisor began to look, in nanoseconds of Unix time.
        began: i64,
        /// One for each file of the question.
        stamps: Vec<PinnedStamp>,
    },
    /// Another model is asked, from the next request on.
    Model {
        /// The vendor's name of it.
        name: String,
        /// Most tokens of one answer.
        max_tokens: u32,
        /// Tokens that its context holds, where that is known.
        context: Option<u64>,
    },
    /// Answered by `Pong` with the same number.
    Ping(u64),
}

/// From the worker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromSession {
    /// Replayed; prompts are welcome.
    Ready,
    /// Make this durable before anything that follows it.
    Commit(Happened),
    /// Ask the model.
    Ask(ModelRequest),
    /// Look at these pinned files with `stat(2)`; answered by `PinnedStamps`.
    StatPinned {
        /// Counted from 1 in each process.
        check: u32,
        /// As `read` is given them.
        files: Vec<String>,
    },
    /// Run this call. Those sent without a result between them may run at once.
    Run {
        /// The call.
        call: Call,
        /// What of its arguments was read otherwise than the model wrote it; its result says so.
        note: Option<String>,
    },
    /// This call is the conversation's own to answer: once it is allowed, that is its result. No
    /// process is started for it.
    Answered {
        /// The call.
        call: Call,
        /// What it comes to, unless it is denied.
        result: ToolResult,
    },
    /// A person wanted room, and there is nothing to leave out.
    NotCompacted,
    /// Drop the open request.
    CancelAsk,
    /// End this running call.
    CancelCall(CallId),
    /// Alive.
    Pong(u64),
    /// For the log.
    Log(LogLine),
}
