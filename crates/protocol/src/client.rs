//! The wire at the named socket: people's terminals and scripts.
//!
//! The first word is `Hello`, answered by `Welcome` or `Refused`. Descriptors (key, recording) ride
//! behind `Open`, one after another, in the order of its `papers`.

use crate::call::{Call, ToolResult};
use crate::confinement::{Enforced, FilePath, Network, Tier};
use crate::content::{Block, Usage};
use crate::hosts::HostRule;
use crate::ids::{CallId, SessionId};
use crate::judgement::{Answer, Mode, Question, Rule};
use crate::provider::Paper;
use crate::session::{OpenTurn, TurnEnd};
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

/// What a client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Rights {
    /// Type and answer.
    Full,
    /// Watch.
    ReadOnly,
}

/// Whether calls may run where no cage can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Uncaged {
    /// They are refused.
    Refused,
    /// They run with nothing that holds them back, as this client's person asked.
    Accepted,
}

/// Whether the project's own configuration may loosen anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ProjectTrust {
    /// Where the user's record holds its files with their present content.
    AsRecorded,
    /// Yes: a flag said so for this run.
    ThisRun,
}

/// What an opening begins with.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Start {
    /// A new session.
    New,
    /// An earlier one. Where it is open in this supervisor already, the client joins it as it is.
    Resume {
        /// Which.
        session: SessionId,
        /// What becomes of a turn that is open in it.
        open_turn: OpenTurn,
    },
    /// A new one that begins as a copy of another.
    Fork {
        /// Which.
        of: SessionId,
        /// The last record to take; all up to the last turn's end where absent.
        at: Option<u64>,
    },
}

/// From where a client wants to see a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Since {
    /// This sequence number on, counted from 1.
    Seq(u64),
    /// So many of the newest events.
    Newest(u32),
}

/// What becomes of the other clients of a session when one attaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Others {
    /// They stay.
    Stay,
    /// They are told `Detached` and see nothing more of it.
    Detach,
}

/// What is known of a model. What is not known is left out, never taken for nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub struct ModelFacts {
    /// Tokens that its context holds.
    pub context: Option<u64>,
    /// What it costs.
    pub prices: Option<Prices>,
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

/// A setting of a running session that a person changes. Holds for calls that start later.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Change {
    /// Network of commands.
    Network(Network),
    /// One more host that commands may reach; the network is an allow-list from then on.
    Host(HostRule),
    /// Permission mode.
    Mode(Mode),
    /// One more directory that tools may use, a real path.
    AddDirectory(FilePath),
    /// The model that is asked from the next request on, by its name in the configuration or its
    /// vendor's.
    Model(String),
    /// One more file is pinned to the conversation, as `read` is given it.
    Pin(String),
    /// The file is pinned no more.
    Unpin(String),
}

/// How a session is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Ending {
    /// The running turn is interrupted, its calls get their end on disk.
    Stop,
    /// At once: what runs is killed and reported as cut short.
    Kill,
}

/// What becomes of a session that a client is sent away from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Parting {
    /// It goes on; another client took it over.
    TakenOver,
    /// It was ended, and is on disk.
    Ended,
    /// A part of the supervisor failed. What was recorded is on disk.
    Failed,
}

/// What a supervisor does that is asked to end while turns run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Unfinished {
    /// It refuses, and names them.
    Refuse,
    /// It interrupts them.
    Interrupt,
}

/// Where a session's answers come from, as the client's environment and flags say.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Opening {
    /// The project directory, a real path.
    pub project: FilePath,
    /// Directories granted beside it.
    pub added: Vec<FilePath>,
    /// A new session, or which earlier one.
    pub start: Start,
    /// The client's environment, reduced to what tools and providers may learn. Never a key: the
    /// variable of the key that is passed as a paper stands in it with the value `set`.
    pub env: Vec<(String, String)>,
    /// Settings from flags, as `key = value` in the words of the configuration.
    pub settings: Vec<(String, String)>,
    /// Permission mode, where a flag gave one.
    pub mode: Option<Mode>,
    /// Network of commands, where a flag gave one.
    pub network: Option<Network>,
    /// Whether the project's own configuration may loosen anything.
    pub trust: ProjectTrust,
    /// Whether a person sits at this client.
    pub audience: crate::judgement::Audience,
    /// What the descriptors are that follow.
    pub papers: Vec<Paper>,
    /// Whether calls may run without a cage where none can be made.
    pub uncaged: Uncaged,
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
    Open(Opening),
    /// See a session's events from this one on; answered by those that are kept, `Attached`, and
    /// then each as it happens.
    Attach {
        /// Which.
        session: SessionId,
        /// From where.
        from: Since,
        /// What this client may do there.
        rights: Rights,
        /// What becomes of those who are there.
        others: Others,
    },
    /// See nothing more of a session; no answer.
    Detach {
        /// Which.
        session: SessionId,
    },
    /// Earlier events of a session this client is attached to; answered by `Page`.
    Page {
        /// Which.
        session: SessionId,
        /// Only events with a smaller sequence number.
        before: u64,
        /// At most so many, the newest of them.
        most: u32,
    },
    /// Words for the model; only with full rights.
    Prompt {
        /// Which session.
        session: SessionId,
        /// The words.
        text: String,
    },
    /// An answer to a question; only with full rights.
    Answer {
        /// The question.
        call: CallId,
        /// The digest of what was shown.
        digest: String,
        /// What the person said.
        answer: Answer,
    },
    /// Stop the running turn; only with full rights.
    Interrupt {
        /// Which session.
        session: SessionId,
    },
    /// Leave the beginning of the conversation out of what the model is sent from the next request
    /// on; told to all by `Compacted`, or by `NotCompacted`. Only with full rights.
    Compact {
        /// Which session.
        session: SessionId,
    },
    /// Take back the prompts that wait, for the person to change; answered by `TakenBack`. Only
    /// with full rights.
    TakeBack {
        /// Which session.
        session: SessionId,
    },
    /// Take back these words alone, where they wait; answered by `TakenBack`, without them where they
    /// do not wait or wait no more. Only with full rights.
    Withdraw {
        /// Which session.
        session: SessionId,
        /// The words.
        text: String,
    },
    /// Change a setting of a session; only with full rights. Told to all by `Changed`.
    Change {
        /// Which session.
        session: SessionId,
        /// What.
        change: Change,
    },
    /// What sessions are there, on disk and live? Answered by `Sessions`.
    List,
    /// End a live session; answered by `Done`. It stays on disk.
    End {
        /// Which.
        session: SessionId,
        /// How.
        ending: Ending,
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
    /// What runs? Answered by `Processes`.
    Ps,
    /// How is the supervisor? Answered by `Status`.
    Status,
    /// At any time: say `Pong` with the same number. A supervisor that owes it is stopped or stuck.
    Ping(u64),
    /// End the supervisor in order; answered by `Failed` where it refuses, else by the end of the
    /// connection.
    Shutdown {
        /// What becomes of turns that run.
        unfinished: Unfinished,
    },
}

/// Where a session is.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum SessionState {
    /// On disk only.
    Ended,
    /// Live, and nothing to do.
    Idle,
    /// Live, and a turn runs.
    Working,
    /// Live, and so many questions wait for a person.
    Asking(u32),
    /// It can be read only, and why.
    Degraded(String),
    /// It cannot be read, and why.
    Unreadable(String),
    /// On disk only; its last turn was cut short, and how.
    CutShort(String),
    /// Live, and nothing to do; its last turn was cut short by deaths of a process, and how.
    IdleCutShort(String),
}

impl SessionState {
    /// Whether no supervisor has it live, as far as this says.
    #[must_use]
    pub fn is_of_disk(&self) -> bool {
        match self {
            Self::Ended | Self::Unreadable(_) | Self::CutShort(_) => true,
            Self::Idle
            | Self::Working
            | Self::Asking(_)
            | Self::Degraded(_)
            | Self::IdleCutShort(_) => false,
        }
    }
}

/// A session, as `ls` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionRow {
    /// Its name.
    pub session: SessionId,
    /// The first words of its first prompt.
    pub title: String,
    /// Its project directory.
    pub project: FilePath,
    /// The vendor's name of the model.
    pub model: String,
    /// Where it is.
    pub state: SessionState,
    /// When it began, in milliseconds of Unix time.
    pub began: u64,
    /// When its last record was written, in milliseconds of Unix time.
    pub last: u64,
    /// Prompts so far; not counted where the session is long and not live.
    pub turns: Option<u32>,
    /// Attached clients.
    pub clients: u32,
}

/// A supervisor, as `daemon status` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct DaemonStatus {
    /// Its process id.
    pub pid: u32,
    /// `protocol::BUILD_ID`.
    pub build: String,
    /// When it began, in milliseconds of Unix time.
    pub began: u64,
    /// The strongest cage this host allows, in plain words.
    pub sandbox: String,
    /// Live sessions.
    pub sessions: u32,
    /// Connected clients.
    pub clients: u32,
    /// What is not as it should be, a sentence each.
    pub troubles: Vec<String>,
}

/// An event with its number.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Numbered {
    /// The journal's number.
    pub seq: u64,
    /// What.
    pub event: Event,
}

/// A process of agentd's, as `ps` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ProcessRow {
    /// The executable's name.
    pub worker: String,
    /// Its session, for workers that have one.
    pub session: Option<SessionId>,
    /// Process id; 0 while there is none, since it rests or is being restarted.
    pub pid: u32,
    /// Which life this is, counted from 1.
    pub generation: u32,
    /// How often it was restarted.
    pub restarts: u32,
    /// Why it was restarted last, or that it rests.
    pub last_cause: Option<String>,
    /// The cage of its session's commands; the broker's own.
    pub cage: Option<Tier>,
}

/// Something a client sees of a session.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Event {
    /// A person asked.
    Prompt {
        /// Their words.
        text: String,
    },
    /// The model is speaking. Not kept: void after `Struck`, replaced by `Answer`.
    TextDelta {
        /// The piece.
        text: String,
    },
    /// What was streamed of this answer is void.
    Struck {
        /// Why, with the try to come, in plain words.
        reason: String,
    },
    /// The model's whole answer.
    Answer {
        /// Its blocks.
        blocks: Vec<Block>,
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
        /// What.
        question: Question,
    },
    /// It was decided.
    Decided {
        /// Which.
        call: CallId,
        /// Whether it may run.
        allowed: bool,
        /// By whom or what, in plain words.
        basis: String,
    },
    /// It runs, in this cage.
    Started {
        /// Which.
        call: CallId,
        /// The cage.
        enforced: Enforced,
    },
    /// It printed this. Not kept.
    Output {
        /// Which.
        call: CallId,
        /// Control codes neutralised.
        text: String,
    },
    /// It ended.
    CallEnded {
        /// Which.
        call: CallId,
        /// What it came to.
        result: ToolResult,
        /// What the kernel refused, one line each.
        refused: Vec<String>,
    },
    /// The turn ended.
    TurnEnded {
        /// How.
        end: TurnEnd,
    },
    /// The beginning of the conversation is no longer sent to the model. The journal keeps it.
    Compacted {
        /// So many messages of what was sent.
        dropped: u32,
    },
    /// A person wanted room in the model's context and got none, and why. Not kept.
    NotCompacted {
        /// In plain words.
        reason: String,
    },
    /// The prompts that wait for the running turn to end. Not kept; replaces what was said before.
    Queue {
        /// In their order.
        texts: Vec<String>,
    },
    /// A person changed a setting.
    Changed {
        /// What.
        change: Change,
        /// Who, by the name of their terminal.
        by: String,
    },
    /// The model that is asked from now on, and what is known of it: said before `Attached`, and behind
    /// a change of the model. Not kept.
    Model {
        /// The vendor's name of it.
        name: String,
        /// What is known.
        facts: ModelFacts,
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
pub enum FailedKind {
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
    /// What is on disk cannot be read or written.
    Disk,
    /// The supervisor was asked to end and does.
    Ending,
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
        /// The model it speaks to.
        model: String,
        /// What is known of the model.
        facts: ModelFacts,
        /// The tools it offers.
        tools: Vec<String>,
        /// The permission mode.
        mode: Mode,
        /// Network of commands.
        network: Network,
        /// The hosts of its allow-list.
        hosts: Vec<HostRule>,
        /// What a call's cage will be here, in plain words.
        sandbox: String,
        /// The journal's number of the session's last event so far; 0 for a new session. Attach
        /// from the next one to see only what is new.
        last_seq: u64,
        /// What of the configuration was not followed, and why, a sentence each.
        warnings: Vec<String>,
    },
    /// Everything kept that was asked for was said; what follows is new.
    Attached {
        /// Which session.
        session: SessionId,
    },
    /// This client sees nothing more of a session, and why.
    Detached {
        /// Which session.
        session: SessionId,
        /// What became of it.
        parting: Parting,
        /// In plain words.
        reason: String,
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
        events: Vec<Numbered>,
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
    /// What was asked for was done.
    Done,
    /// Something happened in a session this client is attached to.
    Event {
        /// Which session.
        session: SessionId,
        /// The journal's number for what is kept; that of the last kept event for what is not.
        seq: u64,
        /// What.
        event: Event,
    },
    /// The answer to `Ps`.
    Processes(Vec<ProcessRow>),
    /// The answer to `Ping`, before anything else that is being worked on.
    Pong(u64),
    /// The last word of this client was not carried out.
    Failed {
        /// What kind.
        kind: FailedKind,
        /// In plain words, with a way on.
        message: String,
    },
}
