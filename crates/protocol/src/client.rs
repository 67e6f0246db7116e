//! The wire at the named socket: people's terminals and scripts.
//!
//! The first word is `Hello`, answered by `Welcome` or `Refused`. Descriptors (key, recording) ride
//! behind `Open`, one after another, in the order of its `papers`.

use crate::call::{Call, ToolResult};
use crate::confinement::{Enforced, FilePath, Network};
use crate::content::{Block, Usage};
use crate::ids::{CallId, SessionId};
use crate::judgement::{Answer, Mode, Question};
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

/// Whether the project's own configuration may loosen anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ProjectTrust {
    /// Where the user's record holds its files with their present content.
    AsRecorded,
    /// Yes: a flag said so for this run.
    ThisRun,
}

/// Where a session's answers come from, as the client's environment and flags say.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Opening {
    /// The project directory, a real path.
    pub project: FilePath,
    /// Directories granted beside it.
    pub added: Vec<FilePath>,
    /// An earlier session to go on with; a new one where absent.
    pub resume: Option<SessionId>,
    /// What becomes of a turn that is open in it.
    pub open_turn: OpenTurn,
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
        /// The first sequence number wanted, counted from 1.
        from: u64,
        /// What this client may do there.
        rights: Rights,
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
    /// What runs? Answered by `Processes`.
    Ps,
    /// End the supervisor in order; answered by the end of the connection.
    Shutdown,
}

/// A process of agentd's, as `ps` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ProcessRow {
    /// The executable's name.
    pub worker: String,
    /// Its session, for workers that have one.
    pub session: Option<SessionId>,
    /// Process id; 0 while it is being restarted.
    pub pid: u32,
    /// Which life this is, counted from 1.
    pub generation: u32,
    /// How often it was restarted.
    pub restarts: u32,
    /// Why it was restarted last.
    pub last_cause: Option<String>,
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
        /// The tools it offers.
        tools: Vec<String>,
        /// The permission mode.
        mode: Mode,
        /// What a call's cage will be here, in plain words.
        sandbox: String,
        /// The journal's number of the session's last event so far; 0 for a new session. Attach
        /// from the next one to see only what is new.
        last_seq: u64,
        /// What of the configuration was not followed, and why, a sentence each.
        warnings: Vec<String>,
    },
    /// Everything kept was said; what follows is new.
    Attached {
        /// Which session.
        session: SessionId,
    },
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
    /// The last word of this client was not carried out.
    Failed {
        /// What kind.
        kind: FailedKind,
        /// In plain words, with a way on.
        message: String,
    },
}
