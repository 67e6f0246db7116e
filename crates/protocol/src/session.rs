//! The wire to `agentd-session`: one conversation.
//!
//! Phases: `Begin`, any number of `Replay`, `ReplayDone`, answered by `Ready`; then prompts. The
//! supervisor makes each `Commit` durable before it acts on any later word.

use crate::call::{Call, CallOrigin, CallStage, ToolResult};
use crate::content::{ContentBlock, ModelRequest, Usage};
use crate::context::{Compaction, ContextReport, ContextSettings, NumberedSummary};
use crate::hook::{HookEvent, HookOccasion, HookRefusal, SessionHooks};
use crate::ids::{CallId, SessionId};
use crate::judgement::{EXIT_PLAN, PermissionMode};
use crate::log::LogLine;
use crate::mcp::ServerNews;
pub use crate::offered_tool::{CopyBeforeChange, OfferedTool, ToolListing};
pub use crate::pinned::{FileStamp, PinnedNews, PinnedStamp};
use crate::provider::FromProvider;
use crate::session_request::ModelFacts;
use crate::{Decode, Encode, Link};
pub use journal::{CallSpan, ExpandedPrompt, OpenTurn, PromptPart, TASK, TurnEnd, WorkerDeaths};

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

/// The configuration of a new conversation.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionSetup {
    /// Its name.
    pub id: SessionId,
    /// The project directory, as far as it is UTF-8.
    pub project: String,
    /// The vendor's name of the model.
    pub model: String,
    /// The system prompt.
    pub system: String,
    /// In the table's order.
    pub tools: Vec<OfferedTool>,
    /// Most requests to the model in one turn.
    pub max_rounds: u32,
    /// Most calls in one turn.
    pub max_calls: u32,
    /// Bounds of all turns together.
    pub max_session: SessionBounds,
    /// Most tokens of one answer.
    pub max_tokens: u32,
    /// Most calls at once.
    pub parallel: u32,
    /// The size of its requests.
    pub context: ContextSettings,
    /// Context size and prices of the model, where they are known.
    pub facts: ModelFacts,
    /// Files that a person pinned, as `read` is given them.
    pub pinned: Vec<String>,
    /// Commands that run by themselves.
    pub hooks: SessionHooks,
    /// The permission mode, on which the offered tools depend.
    pub mode: PermissionMode,
}

impl SessionSetup {
    /// The tools that the model is offered: a plan can be shown in mode `plan` only.
    pub fn offered(&self) -> impl Iterator<Item = &OfferedTool> {
        let plans = self.mode == PermissionMode::Plan;
        let offered = self.tools.iter().filter(|tool| tool.listing != ToolListing::Denied);
        offered.filter(move |tool| plans || tool.spec.name != EXIT_PLAN)
    }
}

/// The prompt that takes changes back; it is for agentd, and not for the model.
pub const UNDO_PROMPT: &str = ":undo";
/// The prompt that rewinds the files to the moment before a call.
pub const REWIND_PROMPT: &str = ":rewind files";
/// Code of the result of a sub-agent that had no call which can change files.
pub const TASK_ONLY_READ: &str = "only_read";

/// Bounds of a whole session; none is no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub struct SessionBounds {
    /// Most calls.
    pub calls: Option<u32>,
    /// Cost in millionths of a US dollar at which no further request is sent.
    pub cost: Option<u64>,
    /// Most sub-agents at the same time.
    pub tasks: u32,
    /// Used by sub-agents, and counted to the session.
    pub used: TaskUse,
}

/// What sub-agents of a session have used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct TaskUse {
    /// Their calls.
    pub calls: u32,
    /// Their cost in millionths of a US dollar; absent if an answer has no known cost.
    pub cost: Option<u64>,
}

impl Default for TaskUse {
    /// None has run.
    fn default() -> Self {
        Self { calls: 0, cost: Some(0) }
    }
}

/// What the sub-agent of a call used, with its own sub-agents.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TaskSpent {
    /// Its session.
    pub session: SessionId,
    /// Requests to the model.
    pub rounds: u32,
    /// Calls.
    pub calls: u32,
    /// Tokens.
    pub usage: Usage,
    /// What it cost in millionths of a US dollar; absent where that is not known.
    pub cost: Option<u64>,
}

/// A persisted event of a session: recorded in the journal and replayed from it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum SessionEvent {
    /// A person asked.
    Prompt {
        /// Their words.
        text: String,
        /// The text that their words stand for, if they named a slash command.
        expanded: Option<Box<ExpandedPrompt>>,
    },
    /// The model answered; its terminal event was seen, or a person stopped it there.
    Answer {
        /// The request's number.
        round: u32,
        /// Whole blocks only.
        blocks: Vec<ContentBlock>,
        /// Tokens.
        usage: Usage,
        /// What it cost, in millionths of a US dollar, where that is known.
        cost: Option<u64>,
    },
    /// A call of the answer got its name, or was refused as no call at all.
    Called {
        /// The call.
        call: Call,
    },
    /// The model gets the result of a call.
    Result {
        /// Which.
        call: CallId,
        /// Who asked for it.
        origin: CallOrigin,
        /// Whether it has ended.
        stage: CallStage,
        /// The result.
        result: ToolResult,
    },
    /// A command that went on in the background has ended. Its call had its result before, for the
    /// model: that it goes on.
    BackgroundEnded {
        /// Which.
        call: CallId,
        /// The tool's name.
        tool: String,
        /// The result.
        result: ToolResult,
    },
    /// The turn ended.
    TurnEnded {
        /// How.
        end: TurnEnd,
    },
    /// The conversation that the model gets was made smaller, or is about to be.
    Compacted(Compaction),
    /// A person's words joined the running turn, behind the results of its round.
    Joined {
        /// The words.
        text: String,
    },
}

impl SessionEvent {
    /// The end of a call.
    #[must_use]
    pub fn ended(call: CallId, origin: CallOrigin, result: ToolResult) -> Self {
        Self::Result { call, origin, stage: CallStage::Ended, result }
    }
}

/// A setting that the conversation keeps.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ConversationSetting {
    /// The bounds of the session, and the use of its sub-agents.
    Bounds(SessionBounds),
    /// The permission mode, from the next request on.
    Mode(PermissionMode),
}

/// Words of a person for the turn that runs. The supervisor keeps them until the conversation has room for them.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum JoiningWords {
    /// Some wait: `TakeJoining` gets them.
    Wait,
    /// The answer to `TakeJoining`: these, in order. They are durable. None where all were taken back.
    Taken(Vec<String>),
}

/// From the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToSession {
    /// First and once.
    Begin(SessionSetup),
    /// Journal events, in order; only before `ReplayDone`.
    Replay(SessionEvent),
    /// The journal is at its end.
    ReplayDone {
        /// Policy for an open turn of the journal.
        then: OpenTurn,
        /// A wish for room, as in `Compact`, that an earlier process was told and has not answered. Hooks
        /// that ran for it do not run again.
        compact: Option<String>,
    },
    /// A person's words; queued while a turn runs.
    Prompt {
        /// The words.
        text: String,
        /// The text that they stand for, if they name a slash command.
        expanded: Option<Box<ExpandedPrompt>>,
    },
    /// A message of the provider, forwarded; only while a request is open.
    Stream(FromProvider),
    /// The provider's process died too often over the open request: no answer comes.
    ProviderDied(WorkerDeaths),
    /// The result of a call for the model; it is durable.
    CallEnded {
        /// Which.
        call: CallId,
        /// Whether it has ended.
        stage: CallStage,
        /// The result.
        result: ToolResult,
    },
    /// A command in the background ended; its result is durable.
    BackgroundEnded {
        /// Which.
        call: CallId,
        /// The tool's name.
        tool: String,
        /// The result.
        result: ToolResult,
    },
    /// A setting has another value now.
    Setting(ConversationSetting),
    /// A person wants the turn to stop.
    Interrupt,
    /// A person asks what fills the model's context. Answered by `Context`.
    Describe,
    /// A person wants room in the model's context; it holds from the next request on. Answered by a
    /// `Commit` of `Compacted`, or by `NotCompacted`.
    Compact {
        /// Their words about the focus of the summary; may be empty.
        focus: String,
    },
    /// A person replaces the text of the newest summary. Answered by a `Commit` of
    /// `SummaryStep::Edited`, or by `NotCompacted`.
    EditSummary(NumberedSummary),
    /// New system prompt, for later requests.
    System {
        /// The whole text.
        text: String,
    },
    /// News about pinned files.
    Pinned(PinnedNews),
    /// News about servers of the Model Context Protocol.
    Servers(ServerNews),
    /// Another model is asked, from the next request on.
    Model {
        /// The vendor's name for the model.
        name: String,
        /// Most tokens of one answer.
        max_tokens: u32,
        /// Its context size and prices, where they are known.
        facts: ModelFacts,
    },
    /// An event at which hooks run. Answered by `HooksEnded` once they have ended.
    HooksDue(HookOccasion),
    /// Answered by `Pong` with the same number.
    Ping(u64),
    /// Words for the running turn.
    Joining(JoiningWords),
}

/// From the worker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromSession {
    /// Replayed; prompts are welcome.
    Ready,
    /// Make this durable before anything that follows it.
    Commit(SessionEvent),
    /// Ask the model.
    Ask(ModelRequest),
    /// Look at these pinned files with `stat(2)`; answered by `PinnedNews::Stamps`.
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
        /// Corrections made while reading its arguments; the result reports them.
        note: Option<String>,
        /// A hook wants a person to approve it, and why.
        asked: Option<String>,
    },
    /// This call is the conversation's own to answer: once it is allowed, that is its result. No
    /// process is started for it.
    Answered {
        /// The call.
        call: Call,
        /// Its result, unless it is denied.
        result: ToolResult,
        /// As in `Run`.
        asked: Option<String>,
    },
    /// Show this to people; it is not recorded.
    Notice {
        /// The whole text.
        text: String,
    },
    /// The hooks of an event have ended.
    HooksEnded {
        /// Which event.
        event: HookEvent,
        /// The call that it is about.
        call: Option<u32>,
        /// A hook blocked the step.
        refusal: Option<HookRefusal>,
    },
    /// A person wanted room, or an edit, and does not get it.
    NotCompacted {
        /// In plain words.
        why: String,
    },
    /// The answer to `Describe`.
    Context(ContextReport),
    /// Drop the open request.
    CancelAsk,
    /// End this running call.
    CancelCall(CallId),
    /// Alive.
    Pong(u64),
    /// For the log.
    Log(LogLine),
    /// The next request has room for words that wait to join the turn. Answered by `JoiningWords::Taken`.
    TakeJoining,
    /// This call waits behind others of its answer, and no hook decides about it. A person may be asked about it now;
    /// `Run` follows at its turn.
    Ahead {
        /// The call, as it will run.
        call: Call,
    },
}
