//! Messages to a session actor, by sender, and their contents.

use super::call::CallMsg;
use super::client::ClientMsg;
use crate::client_actor::feed::Feed;
use crate::fleet_seat::{FleetEvent, FleetLease};
use crate::journal_writer::CopyWait;
use crate::task_outcome::TaskOutcome;
use crate::worker::actor::WorkerEvent;
use call::{CallFacts, ServerRequest};
use journal::{JournalRecord, TaskHeader};
use launch::session_network::SessionNetwork;
use protocol::call::{Call, CallOrigin, TamperedFile, ToolResult};
use protocol::client::{
    BacklogFrom, ClientEvent, OtherClients, ProcessRow, SessionEnding, SessionQuery,
    SessionRequest, SessionStatus, SessionWish, SettingChange, ToClient,
};
use protocol::confinement::GitSettings;
use protocol::ids::{CallId, Generation, SessionId};
use protocol::judgement::{ExtraRight, PersonAnswer, Question, Verdict};
use protocol::mcp::{ServerOffers, ServerReply, ServerTool};
use protocol::provider::{PassedFd, ProviderLink};
use protocol::session::SessionLink;
use protocol::store::{FileChanges, StoreLink, UndoCover};
use ractor::{ActorId, ActorRef};
use setup::open_failure::OpenFailure;
use setup::session_spec::TaskBounds;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::sync::oneshot;
use tool_specs::{JobRequest, TaskRequest};

/// Messages to a session actor, by sender.
pub(crate) enum SessionMsg {
    Conversation(WorkerEvent<SessionLink>),
    Provider(WorkerEvent<ProviderLink>),
    Store(WorkerEvent<StoreLink>),
    Broker(BrokerToSession),
    Call(CallToSession),
    Client(ClientToSession),
    Root(RootToSession),
    Timer(SessionTimer),
    Task(TaskToSession),
    Fleet(FleetEvent),
    /// The journal could not be read for the conversation, and why.
    ReplayFailed(String),
}

/// From the broker, which judges the calls of every session; the supervisor actor passes it on.
pub(crate) enum BrokerToSession {
    Verdict(CallId, Box<Verdict>),
    /// About a call that waits for its turn; it lets nothing run.
    Ahead(CallId, Box<Verdict>),
    /// A server's question has its answer.
    Replied(Box<RepliedQuestion>),
    /// The broker did not accept the answer that was sent last for this call, and why.
    AnswerRejected(CallId, String),
    /// The broker restarted as this process, which knows nothing of this session.
    Back(Generation),
    /// The broker has failed and is not started again, and why.
    Failed(String),
}

/// From a call of this session.
pub(crate) enum CallToSession {
    /// Copy the files that the call may change. Answered when that is done, with what the copies cover; dropped if
    /// it cannot be.
    BackUp { call: CallId, tool: String, what: BackupOf, done: oneshot::Sender<UndoCover> },
    /// Write these records. Answered when they are on disk, with what the second copy lacks.
    Record { records: Vec<JournalRecord>, done: oneshot::Sender<Result<CopyWait, String>> },
    /// Show this to clients; it is not recorded.
    Show(ClientEvent),
    /// Put this question to people.
    Asked(Question),
    /// The command of a call runs longer than a conversation should wait.
    Slow(CallId),
    /// The command of a call goes on in the background.
    Detached(DetachedCall),
    /// A command in the background is in this network now: its runner was started again.
    NetworkMoved { call: u32, network: Option<Arc<SessionNetwork>> },
    /// The server that a call runs offers this now.
    ServerSays { call: CallId, said: ServerSays },
    /// A request about a background command, from the call that makes it.
    AskJob { request: JobRequest, from: ActorRef<CallMsg> },
    /// A request about a server, likewise.
    AskServer { request: ServerRequest, from: ActorRef<CallMsg> },
    /// About protected files, from a call that runs.
    Protected { call: CallId, news: ProtectedNews },
    /// The call has ended.
    Finished(Box<FinishedCall>),
}

/// What a call that runs does with protected files.
pub(crate) enum ProtectedNews {
    /// They were put right while it runs.
    PutRight { tool: String, found: Vec<TamperedFile> },
    /// It has the right to change git's settings: it is about to begin, or has ended.
    ChangesGit(GitSettings),
}

/// What a server says beside its output.
#[derive(Debug)]
pub(crate) enum ServerSays {
    /// The model these tools.
    Tools(Vec<ServerTool>),
    /// People this.
    Offers(ServerOffers),
    /// It has answered a call.
    Answered,
    /// People this about it.
    Note(String),
}

/// From a client.
pub(crate) enum ClientToSession {
    Attach(AttachRequest),
    /// The client detached, or its connection ended.
    Detach(ActorRef<ClientMsg>),
    Page {
        client: ActorRef<ClientMsg>,
        before: u64,
        most: u32,
    },
    Query {
        client: ActorRef<ClientMsg>,
        query: SessionQuery,
    },
    Prompt {
        client: ActorRef<ClientMsg>,
        text: String,
        form: Option<protocol::client::AnswerForm>,
        busy: protocol::client::WhileBusy,
    },
    TakeBack(ActorRef<ClientMsg>),
    Withdraw {
        client: ActorRef<ClientMsg>,
        text: String,
    },
    Change {
        client: ActorRef<ClientMsg>,
        change: SettingChange,
        by: String,
    },
    Answer(GivenAnswer),
    Interrupt,
    Wish {
        client: ActorRef<ClientMsg>,
        wish: SessionWish,
        by: String,
    },
}

/// From the supervisor actor.
pub(crate) enum RootToSession {
    /// A client asked for this session, which was open already or has just been opened.
    Join(Box<OpenRequest>),
    /// End, unless the session is in use. No client can join meanwhile.
    Retire,
    /// A person asks to start failed workers again.
    Restart(oneshot::Sender<Result<(), String>>),
    Describe(oneshot::Sender<Vec<ProcessRow>>),
    Summarize(oneshot::Sender<SessionSummary>),
    /// Start no turn from now on, and answer with the summary.
    Pause(oneshot::Sender<SessionSummary>),
    /// Turns may start again.
    Resume,
    /// End everything of this session. Answered when its processes have ended.
    Close(SessionEnding, oneshot::Sender<()>),
    /// Panic, as a bug would make it.
    #[cfg(test)]
    Fail,
}

/// From the session's own timers.
pub(crate) enum SessionTimer {
    /// Ping the workers.
    Ping,
    /// The provider was not asked for as long as an idle one is kept.
    ProviderIdle,
    /// The store did not send the project's instructions in time.
    InstructionsTimeout,
    /// A person gave no prompt for some time behind this turn.
    Idle { turns: u32 },
    /// The hooks of the session's end did not end in time.
    EndHooks,
    /// The MCP server at this place starts again.
    ServerDue(usize),
}

/// About sub-agents: from a call of this session, from the task that waits for the sub-agent, from the
/// sub-agent's session, and from the parent of this one.
pub(crate) enum TaskToSession {
    /// Have a sub-agent do this for a call.
    Start { call: u32, request: TaskRequest },
    /// The sub-agent's session is open.
    Opened { call: u32, session: ActorRef<SessionMsg> },
    /// The sub-agent's session is in use by another process, which is waited for.
    Waits(u32),
    /// The sub-agent has done its work, or it could not begin. Protected files that git for its worktree
    /// changed and that could not be put right are left.
    Ended { call: u32, result: ToolResult, left: Vec<String> },
    /// Interrupt the sub-agent of this call.
    Stop(u32),
    /// A sub-agent asks a person.
    Asks(Box<Question>),
    /// A question of a sub-agent has an answer, or needs none any more.
    Settled { call: CallId, allowed: bool, basis: String },
    /// A sub-agent begins this call of its own.
    Calls(Call),
    /// An answer of this client to a sub-agent's question does not count.
    Rejected { client: ActorRef<ClientMsg>, call: CallId, reason: String },
    /// The rights that this session has now bound those of its sub-agents: send them to this one.
    BoundsFor(ActorRef<SessionMsg>),
    /// This session has these rights now. It may be the parent.
    ParentBounds { parent: SessionId, bounds: Box<TaskBounds> },
}

impl From<TaskToSession> for SessionMsg {
    fn from(message: TaskToSession) -> Self {
        Self::Task(message)
    }
}

impl From<BrokerToSession> for SessionMsg {
    fn from(message: BrokerToSession) -> Self {
        Self::Broker(message)
    }
}

impl From<CallToSession> for SessionMsg {
    fn from(message: CallToSession) -> Self {
        Self::Call(message)
    }
}

impl From<ClientToSession> for SessionMsg {
    fn from(message: ClientToSession) -> Self {
        Self::Client(message)
    }
}

impl From<RootToSession> for SessionMsg {
    fn from(message: RootToSession) -> Self {
        Self::Root(message)
    }
}

impl From<SessionTimer> for SessionMsg {
    fn from(message: SessionTimer) -> Self {
        Self::Timer(message)
    }
}

/// An open session and the message that reports it to the client.
pub(crate) type OpenedSession = (ActorRef<SessionMsg>, ToClient);

/// A client's request to open a session.
pub(crate) struct OpenRequest {
    pub(crate) opening: SessionRequest,
    pub(crate) passed_fds: Vec<(PassedFd, OwnedFd)>,
    /// The client that will attach to the session.
    pub(crate) client: ActorId,
    pub(crate) reply: oneshot::Sender<Result<OpenedSession, OpenFailure>>,
    /// The work, where a parent session asks for the session of a sub-agent.
    pub(crate) task: Option<TaskOrder>,
}

/// The work of a sub-agent.
pub(crate) struct TaskOrder {
    /// The first record of its session, if that is new.
    pub(crate) header: Box<TaskHeader>,
    /// The rights that the parent has now.
    pub(crate) bounds: TaskBounds,
    /// The lease of a parent that works for a fleet.
    pub(crate) lease: Option<FleetLease>,
    /// The session that waits. Its clients are told about questions.
    pub(crate) parent: ActorRef<SessionMsg>,
    /// Answered once the work has ended; dropped if its session fails.
    pub(crate) done: oneshot::Sender<TaskOutcome>,
}

/// A client's request to see a session.
pub(crate) struct AttachRequest {
    pub(crate) client: ActorRef<ClientMsg>,
    /// The client's name in records.
    pub(crate) name: String,
    pub(crate) from: BacklogFrom,
    pub(crate) others: OtherClients,
    pub(crate) feed: Feed,
}

/// A person's answer to a question.
pub(crate) struct GivenAnswer {
    pub(crate) call: CallId,
    pub(crate) digest: String,
    pub(crate) answer: PersonAnswer,
    /// The name of the terminal that it came from.
    pub(crate) by: String,
    pub(crate) client: ActorRef<ClientMsg>,
}

/// A server's question during a call has its answer: by this person, or by agentd with a note.
pub(crate) struct RepliedQuestion {
    pub(crate) call: CallId,
    pub(crate) reply: ServerReply,
    pub(crate) by: Option<String>,
    pub(crate) note: Option<String>,
}

/// The files that a call may change, of which the store keeps copies.
pub(crate) enum BackupOf {
    /// The files at these real paths.
    Paths(Vec<String>),
    /// Any file of the project: the call runs this command.
    Project { command: String },
}

/// The state of an open session.
pub(crate) struct SessionSummary {
    pub(crate) state: SessionStatus,
    /// Attached clients.
    pub(crate) clients: u32,
    /// Prompts so far.
    pub(crate) turns: u32,
}

/// A call whose command goes on in the background.
pub(crate) struct DetachedCall {
    pub(crate) call: Call,
    /// Its result for the model.
    pub(crate) text: String,
    /// The rights that it has beyond the session's.
    pub(crate) rights: Vec<ExtraRight>,
    /// Its confinement in plain words.
    pub(crate) cage: String,
    /// The network that it is in, unless that is the host's.
    pub(crate) network: Option<Arc<SessionNetwork>>,
    /// For the person, where its network is not the host's.
    pub(crate) notice: Option<String>,
}

impl DetachedCall {
    /// With its result for the model, a notice for the person, and its network.
    pub(crate) fn of(
        facts: &CallFacts,
        (text, notice): (String, Option<String>),
        network: Option<Arc<SessionNetwork>>,
    ) -> Self {
        let rights = facts.extra_rights.clone();
        Self {
            call: facts.call.clone(),
            text,
            rights,
            cage: facts.confinement.clone(),
            network,
            notice,
        }
    }
}

/// A call that has ended, with its records and its result.
pub(crate) struct FinishedCall {
    /// Its last record in the journal.
    pub(crate) record: JournalRecord,
    /// The record of the file versions that it read or wrote.
    pub(crate) file_versions: Option<JournalRecord>,
    /// The changes to files that it reported.
    pub(crate) effects: Option<FileChanges>,
    pub(crate) call: CallId,
    /// True if it read a pinned file.
    pub(crate) pinned: bool,
    pub(crate) result: ToolResult,
    /// The refusals of its cage and its proxy, as clients show them.
    pub(crate) refusals: Vec<String>,
    /// Protected files that it changed and that could not be restored.
    pub(crate) tampered: Vec<String>,
    /// Why the audit log could not take its end.
    pub(crate) audit_failure: Option<String>,
    /// The output of its command that nobody has read, where it ran in the background.
    pub(crate) unread: Option<String>,
}

impl FinishedCall {
    /// A call that had no actor and ends with this result.
    pub(crate) fn unstarted(call: Call, result: ToolResult, record: JournalRecord) -> Self {
        Self {
            record,
            file_versions: None,
            effects: None,
            pinned: call.origin == CallOrigin::PinnedRead,
            call: call.id,
            result,
            refusals: Vec::new(),
            tampered: Vec::new(),
            audit_failure: None,
            unread: None,
        }
    }
    /// Its result as clients see it. A pinned file's text is replaced by its digest, there and in the record: the
    /// journal would soon hold little but copies of it.
    pub(crate) fn shown_result(&mut self) -> ToolResult {
        let mut shown = self.result.clone();
        if self.pinned
            && let JournalRecord::Result { text, full, images, is_error: false, .. } =
                &mut self.record
        {
            let digest = journal::Digest::of(text.as_bytes());
            *text = format!("[pinned file: {} bytes, sha256 {digest}]", text.len());
            (*full, *images) = (None, Vec::new());
            shown.text.clone_from(text);
            shown.images = Vec::new();
        }
        shown
    }
}
