//! The wire at the named socket: people's terminals and scripts.
//!
//! The first word is `Hello`, answered by `Welcome` or `Refused`. Descriptors (key, recording) ride
//! behind `Open`, one after another, in the order of its `papers`.

use crate::call::{Call, ToolResult};
use crate::confinement::{Enforced, FilePath, Network};
use crate::content::{ContentBlock, Usage};
use crate::context::{Compaction, ContextReport};
use crate::hosts::HostRule;
use crate::ids::{CallId, SessionId};
use crate::judgement::{PermissionMode, PersonAnswer, Question, Rule};
use crate::mcp::ServerReport;
use crate::session::{TaskSpent, TurnEnd};
pub use crate::session_request::{
    AnswerForm, ConversationFlags, ImageLimits, KnownModel, ModelFacts, OnUnfinished, Prices,
    ProjectTrust, SessionEnding, SessionQuery, SessionRequest, SessionStart, SessionWish,
    SettingChange, Unsandboxed,
};
pub use crate::status::{DaemonStatus, ProcessRow, SessionCost, SessionRow, SessionStatus};
use crate::store::ChangeSet;
use crate::tool::NamespaceKind;
use crate::{Decode, Encode, Link};

/// The wire's name.
#[derive(Debug)]
pub enum ClientLink {}

impl Link for ClientLink {
    type To = ToClient;
    type From = FromClient;
    const NAME: &'static str = "client";
    /// A prompt or an answer of some MiB.
    const MESSAGE_CAP: usize = 32 << 20;
}

/// The rights of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ClientRights {
    /// Type and answer.
    Full,
    /// Watch.
    ReadOnly,
}

/// From where a client wants to see a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum BacklogFrom {
    /// This sequence number on, counted from 1.
    Seq(u64),
    /// So many of the newest events.
    Newest(u32),
}

/// Policy for the session's other clients when this one attaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum OtherClients {
    /// They stay.
    Stay,
    /// They receive `Detached` and no further events.
    Detach,
}

/// The reason for which the supervisor detaches a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum DetachReason {
    /// It goes on; another client took it over.
    TakenOver,
    /// It was ended, and is on disk.
    Ended,
    /// A part of the supervisor failed. All records so far are on disk.
    Failed,
}

/// From a client.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromClient {
    /// First: the token proves that the client can read the private directory.
    Hello {
        /// 64 hex digits.
        token: String,
        /// `protocol::BUILD_ID` of the client.
        build: String,
    },
    /// Open a session; answered by `Opened` or `Failed`.
    Open(SessionRequest),
    /// Subscribe to a session's events from this one on. The supervisor sends the recorded events,
    /// `Attached`, and then each new event.
    Attach {
        /// Which.
        session: SessionId,
        /// From where.
        from: BacklogFrom,
        /// Rights of this client in the session.
        rights: ClientRights,
        /// Policy for the clients that are attached already.
        others: OtherClients,
    },
    /// See nothing more of a session; no answer.
    Detach {
        /// Which.
        session: SessionId,
    },
    /// Earlier events of a session, attached or not; answered by `Page`. Where those of a session that
    /// is not attached cannot be read, the page is a `Notice` that says why.
    Page {
        /// Which.
        session: SessionId,
        /// Only events with a smaller sequence number.
        before: u64,
        /// Maximum number of records; the newest are sent.
        most: u32,
    },
    /// A question about an attached session.
    Query {
        /// Which session.
        session: SessionId,
        /// The question.
        query: SessionQuery,
    },
    /// Words for the model; only with full rights.
    Prompt {
        /// Which session.
        session: SessionId,
        /// The words.
        text: String,
        /// The form that the answer must have. It is no part of a slash command's arguments.
        form: Option<AnswerForm>,
        /// What becomes of them while a turn runs.
        busy: WhileBusy,
    },
    /// An answer to a question; only with full rights.
    Answer {
        /// The question.
        call: CallId,
        /// The digest of the question on the screen.
        digest: String,
        /// The person's answer.
        answer: PersonAnswer,
    },
    /// Stop the running turn; only with full rights.
    Interrupt {
        /// Which session.
        session: SessionId,
    },
    /// Do this in a session; needs full rights.
    Wish {
        /// Which session.
        session: SessionId,
        /// The wish.
        wish: SessionWish,
    },
    /// Take back the prompts that wait, for the person to change; answered by `TakenBack`, without
    /// those that do not wait or wait no more. Only with full rights.
    TakeBack {
        /// Which session.
        session: SessionId,
        /// The words to take back alone; absent for all prompts.
        only: Option<String>,
    },
    /// Change a setting of a session; needs full rights. Every client receives `Changed`.
    Change {
        /// Which session.
        session: SessionId,
        /// The setting and its new value.
        change: SettingChange,
    },
    /// List the sessions, live and on disk; answered by `Sessions`.
    List,
    /// End a live session; answered by `Done`. It stays on disk.
    End {
        /// Which.
        session: SessionId,
        /// How.
        ending: SessionEnding,
    },
    /// Remove an ended session from disk; its audit records stay. Answered by `Done`.
    Remove {
        /// Which.
        session: SessionId,
    },
    /// Start the failed workers of a session again, or lift its quarantine; answered by `Done`.
    Restart {
        /// Which.
        session: SessionId,
    },
    /// List the processes; answered by `Processes`.
    Ps,
    /// How is the supervisor? Answered by `Status`.
    Status,
    /// At any time: say `Pong` with the same number. A supervisor that owes it is stopped or stuck.
    Ping(u64),
    /// End the supervisor in order; answered by `Failed` where it refuses, else by the end of the
    /// connection.
    Shutdown {
        /// Policy for running turns.
        unfinished: OnUnfinished,
    },
}

/// An event with its number.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NumberedEvent {
    /// The journal's number.
    pub seq: u64,
    /// The event.
    pub event: ClientEvent,
}

/// The part of an answer that a streamed piece belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum AnswerPart {
    /// Words to the person.
    Text,
    /// Reasoning, where the vendor sends it.
    Thinking,
    /// A call of this tool begins. Its arguments may take minutes, so a client shows that they come.
    Tool,
    /// The arguments of that call, as JSON.
    Arguments,
}

/// The next try of a request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct NextTry {
    /// Its number, counted from 1.
    pub attempt: u32,
    /// Most tries.
    pub of: u32,
    /// The wait before it.
    pub wait_ms: u64,
}

impl NextTry {
    /// For a line that stays.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Self { attempt, of, wait_ms } = self;
        format!("retrying {attempt}/{of} in {:.1} s", *wait_ms as f64 / 1000.0)
    }
}

/// What becomes of a prompt that is sent while a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub enum WhileBusy {
    /// It waits for the end of the turn, and begins one.
    #[default]
    Queue,
    /// It joins the turn behind the results of the round, and interrupts nothing. Where the turn does not ask the
    /// model again, or cannot be joined, it begins the next one.
    Steer,
}

impl WhileBusy {
    /// The other of the two.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Queue => Self::Steer,
            Self::Steer => Self::Queue,
        }
    }
}

/// A prompt that waits.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WaitingText {
    /// A person's words.
    pub text: String,
    /// What it waits for.
    pub busy: WhileBusy,
}

/// For whom the words of a prompt are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum PromptUse {
    /// For the model, or an undo.
    Prompt,
    /// They are `!COMMAND`, a person's own command. Its call comes next.
    Command,
    /// For the model, in the turn that runs already.
    Joined,
}

/// Something a client sees of a session.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ClientEvent {
    /// A person asked.
    Prompt {
        /// Their words.
        text: String,
        /// For whom they are.
        of: PromptUse,
    },
    /// The model is speaking. Not kept: void after `Struck`, replaced by `Answer`.
    Delta {
        /// What the piece is part of.
        part: AnswerPart,
        /// The piece.
        text: String,
    },
    /// Discard the deltas of this answer.
    Struck {
        /// Why, in plain words.
        reason: String,
        /// The try to come, where the request is repeated after a wait. Clients count it down.
        next: Option<NextTry>,
    },
    /// The model's whole answer.
    Answer {
        /// Its blocks.
        blocks: Vec<ContentBlock>,
        /// Tokens.
        usage: Usage,
    },
    /// The model asked for a call.
    Proposed {
        /// The call.
        call: Call,
    },
    /// A person must say.
    Asked {
        /// The prompt.
        question: Question,
    },
    /// It was decided.
    Decided {
        /// Which.
        call: CallId,
        /// True if the call may run.
        allowed: bool,
        /// The person or rule that decided, as text.
        basis: String,
    },
    /// It runs, in this cage.
    Started {
        /// Which.
        call: CallId,
        /// The cage.
        enforced: Enforced,
    },
    /// It printed this, or its sub-agent begins a call. Not kept.
    Output {
        /// Which.
        call: CallId,
        /// Control codes neutralised.
        text: String,
        /// The call that the sub-agent begins, in its own session. Absent of what is printed.
        begun: Option<Box<Call>>,
    },
    /// The conversation goes on while it runs.
    InBackground {
        /// Which.
        call: CallId,
        /// The text that the model got in place of a result.
        text: String,
    },
    /// It ended.
    CallEnded {
        /// Which.
        call: CallId,
        /// The result.
        result: ToolResult,
        /// Refusals of the kernel, one line each.
        refused: Vec<String>,
        /// What its sub-agent used. Absent in a backlog, which has the record by itself.
        spent: Option<Box<TaskSpent>>,
    },
    /// The turn ended.
    TurnEnded {
        /// How.
        end: TurnEnd,
    },
    /// The conversation that the model gets was made smaller, or is about to be. The journal keeps
    /// all of it.
    Compacted(Compaction),
    /// Prompts that wait for the running turn, or for its end. Not recorded; replaces the previous list.
    Queue {
        /// In their order.
        waiting: Vec<WaitingText>,
    },
    /// A person changed a setting.
    Changed {
        /// The change.
        change: SettingChange,
        /// Who, by the name of their terminal.
        by: String,
    },
    /// The model of the following requests, with its known limits. Sent before `Attached` and after
    /// a change of the model. Not recorded.
    Model {
        /// The vendor's name for the model.
        name: String,
        /// Its known limits and prices.
        facts: ModelFacts,
        /// The models to choose from: those of the session's configuration, then those that agentd knows
        /// of the vendor.
        models: Vec<KnownModel>,
    },
    /// An answer holds longer than its call: this rule allows from now on. Comes before the
    /// decision that it is part of.
    Learned {
        /// The rule and where it stands now: the person's file, or `this session`.
        rule: Rule,
        /// Who, by the name of their terminal.
        by: String,
        /// Why it was to hold for good and holds for the session only, in plain words.
        unwritten: Option<String>,
    },
    /// The model is asked otherwise from now on, in a way that people should know. Said once. Not kept.
    Notice {
        /// In plain words.
        text: String,
    },
    /// An answer did not count, and why. Not kept.
    AnswerRejected {
        /// The question.
        call: CallId,
        /// Why, in plain words.
        reason: String,
    },
    /// The session cannot go on, and why.
    Degraded {
        /// In plain words, with a way on.
        reason: String,
    },
}

/// Why a client's word was not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum RequestFailure {
    /// The request makes no sense as it is.
    Usage,
    /// Configuration.
    Configuration,
    /// No cage can be made here.
    SandboxUnavailable,
    /// Another process holds the session.
    Held,
    /// No such session, call or question.
    NotFound,
    /// The state on disk cannot be read or written.
    Disk,
    /// The supervisor was asked to end and does.
    Ending,
    /// The supervisor's limits allow no further session.
    NoRoom,
    /// Anything else.
    Internal,
}

/// To a client.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToClient {
    /// Come in.
    Welcome {
        /// `protocol::BUILD_ID` of the supervisor.
        build: String,
        /// Its process id.
        pid: u32,
    },
    /// Stay out: both builds are named where they differ.
    Refused {
        /// `protocol::BUILD_ID` of the supervisor.
        build: String,
        /// In plain words, with a way on.
        reason: String,
    },
    /// A session is open.
    Opened {
        /// Which.
        session: SessionId,
        /// The name that a person gave it; empty where none did.
        name: String,
        /// The model it speaks to.
        model: String,
        /// Known limits and prices of the model.
        facts: ModelFacts,
        /// The tools it offers.
        tools: Vec<String>,
        /// The permission mode.
        mode: PermissionMode,
        /// Network of commands.
        network: Network,
        /// The hosts of its allow-list.
        hosts: Vec<HostRule>,
        /// The cage of the session's calls on this host, as text.
        sandbox: String,
        /// The journal number of the session's newest event; 0 for a new session. Attach from the
        /// next number to see only new events.
        last_seq: u64,
        /// Settings that were ignored, each with the reason as one sentence.
        warnings: Vec<String>,
        /// The directory that its calls see as /tmp.
        temp: FilePath,
    },
    /// The backlog is complete; the following events are new.
    Attached {
        /// Which session.
        session: SessionId,
        /// The name of this client's terminal, as events give it.
        name: String,
    },
    /// This client sees nothing more of a session, and why.
    Detached {
        /// Which session.
        session: SessionId,
        /// The outcome.
        parting: DetachReason,
        /// In plain words.
        reason: String,
    },
    /// The network of the commands in the background. Its namespaces follow as descriptors, in this order.
    NetworkOpened {
        /// The call whose command made it.
        call: u32,
        /// The calls that made the other networks of this session.
        others: Vec<u32>,
        /// What each descriptor is.
        namespaces: Vec<NamespaceKind>,
    },
    /// This client read too slowly and words were left out: attach again from the last number seen.
    Behind {
        /// Which session.
        session: SessionId,
    },
    /// Earlier events, in order.
    Page {
        /// Which session.
        session: SessionId,
        /// The events; none where the beginning was reached.
        events: Vec<NumberedEvent>,
    },
    /// The answer to `Changes`.
    Changes {
        /// Which session.
        session: SessionId,
        /// The changes, or one sentence why they are not known.
        changes: Result<ChangeSet, String>,
    },
    /// The answer to a query of the context.
    Context {
        /// Which session.
        session: SessionId,
        /// The parts, or one sentence why they are not known.
        report: Result<ContextReport, String>,
    },
    /// The answer to a query of the MCP servers, in the order of the configuration.
    Servers {
        /// Which session.
        session: SessionId,
        /// The servers.
        servers: Vec<ServerReport>,
    },
    /// The prompts that waited and wait no more.
    TakenBack {
        /// Which session.
        session: SessionId,
        /// In their order.
        texts: Vec<String>,
    },
    /// The answer to `List`, newest first.
    Sessions(Vec<SessionRow>),
    /// The answer to `Status`.
    Status(DaemonStatus),
    /// The request succeeded.
    Done,
    /// Something happened in a session this client is attached to.
    Event {
        /// Which session.
        session: SessionId,
        /// The journal number of a recorded event; for others, the number of the last recorded one.
        seq: u64,
        /// The event.
        event: ClientEvent,
    },
    /// The answer to `Ps`.
    Processes(Vec<ProcessRow>),
    /// The answer to `Ping`, before anything else that is being worked on.
    Pong(u64),
    /// The last request of this client failed.
    Failed {
        /// The kind of failure.
        kind: RequestFailure,
        /// In plain words, with a way on.
        message: String,
    },
    /// The last command in the network that this client got by `OpenPort` has ended, or its session has. Sent to a client
    /// that has detached too.
    NetworkClosed {
        /// The call whose command made it.
        call: u32,
    },
}
