//! The session actor: owns one session's journal, workers, calls and attached.
//!
//! Where words go is decided in `route`; this file carries the steps out, with `keeping` for the
//! journal, whose only writer it is, `replay` for a conversation that comes back, `calls` for its
//! calls, `watching` for those who look on and `degraded` for what stops it from taking anything more.

mod answers;
mod backlog;
mod calls;
mod clients;
mod idle_session;
mod pinning;
mod problems;
mod provider;
mod quiesce;
mod records;
mod remembered_rules;
mod replay;
mod rights;
mod store;
mod tampered_files;
mod unjudged;
mod wishes;

use crate::audit_actor::AuditMsg;
use crate::call::{CallInput, PendingQuestion};
use crate::call_actor::CallMsg;
use crate::client_actor::ClientMsg;
use crate::file_versions::FileVersions;
use crate::hold::Hold;
use crate::journal_writer::JournalWriter;
use crate::plan::{Plan, kind_of};
use crate::project_caches::InUse;
use crate::root::{Order, RootMsg};
use crate::route::{RouteStep, Router, is_progress};
use crate::slot::{Slot, SlotEvent, SlotMsg, SlotPlan};
use crate::spawn::{Permanent, Spawner};
use crate::times::SlotTimes;
use crate::to_disk::{self};
use crate::worker_log;
use crate::worker_ref::WorkerRef;
pub(crate) use answers::GivenAnswer;
use answers::PendingAnswers;
pub(crate) use clients::AttachRequest;
use clients::AttachedClient;
use journal::Record;
use problems::Problems;
use protocol::broker::{BrokerLink, ToBroker};
use protocol::call::ToolResult;
use protocol::client::{Change, Ending, Event, Parting, ProcessRow};
use protocol::confinement::Tier;
use protocol::ids::{CallId, Generation};
use protocol::judgement::{Audience, Question, Rule, Verdict};
#[cfg(agentd_hooks)]
use protocol::provider::FromProvider;
use protocol::provider::{Paper, ProviderLink, ToProvider};
use protocol::session::{Deaths, Happened, OpenTurn, SessionLink, ToSession};
use protocol::store::{Did, StoreLink, ToStore};
use protocol::tool::Identity;
use provider::ProviderState;
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use replay::ReplayState;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::StoreState;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::task::AbortHandle;

/// How long the end of a session waits for its journal to say so. A disk that takes longer answers
/// nobody; the turn then counts as cut short.
const CLOSING: Duration = Duration::from_secs(1);
/// How long the end of a session waits for what is put right in place of runners that were killed.
const REPAIR: Duration = Duration::from_secs(3);
/// How long a runner has of which a person does not want to wait for the end. It takes a third of that.
const KILL_GRACE: Duration = Duration::from_secs(1);

/// What a session is told.
pub(crate) enum SessionMsg {
    Conversation(SlotEvent<SessionLink>),
    Provider(SlotEvent<ProviderLink>),
    /// What the conversation is to be told cannot be read, and why.
    ReplayFailed(String),
    Store(SlotEvent<StoreLink>),
    /// From a call: keep what it may change; answered when that is done, dropped if it cannot be.
    BackUp {
        call: CallId,
        tool: String,
        what: BackupOf,
        done: oneshot::Sender<()>,
    },
    /// The store has not said what the project says of itself.
    InstructionsTimeout,
    /// From the broker, about a call of this session.
    Verdict(CallId, Verdict),
    /// The broker lives, as this process, and knows nothing of this session.
    BrokerBack(Generation),
    /// The broker's slot has failed for good.
    BrokerFailed(String),
    /// From a call: keep these; answered when they are on disk.
    Record {
        records: Vec<Record>,
        done: oneshot::Sender<Result<(), String>>,
    },
    /// From a call: it is over.
    CallFinished(Box<FinishedCall>),
    /// For the screens; not kept.
    Show(Event),
    /// From a call: put this question to people.
    Asked(Question),
    /// From the broker: the answer that came last for this call did not count.
    AnswerRejected(CallId, String),
    /// A client asked for this session, live or just opened.
    Join(Box<Order>),
    Attach(AttachRequest),
    /// It sees nothing more, or has gone.
    Detach(ActorRef<ClientMsg>),
    Page {
        client: ActorRef<ClientMsg>,
        before: u64,
        most: u32,
    },
    Prompt(String),
    TakeBack(ActorRef<ClientMsg>),
    Withdraw {
        client: ActorRef<ClientMsg>,
        text: String,
    },
    /// From the root, which lets nobody in meanwhile: end, unless somebody needs the session.
    Retire,
    Change {
        client: ActorRef<ClientMsg>,
        change: Change,
        by: String,
    },
    Answer(GivenAnswer),
    Interrupt,
    /// A person wants room in the model's context.
    Compact,
    /// Time to see whether the workers still answer.
    Ping,
    /// Nobody has asked the model for as long as a provider stays unused.
    ProviderIdle,
    /// A person asks for another try of what has failed.
    Restart(oneshot::Sender<Result<(), String>>),
    /// Fail, as a fault of ours would make it.
    #[cfg(test)]
    Fail,
    Describe(oneshot::Sender<Vec<ProcessRow>>),
    /// How is it?
    Summarize(oneshot::Sender<SessionSummary>),
    /// The same, and it begins no turn from now on.
    Pause(oneshot::Sender<SessionSummary>),
    /// It may again.
    Resume,
    /// End everything of this session; answered when its processes are gone.
    Close(Ending, oneshot::Sender<()>),
}

/// What a call may change.
pub(crate) enum BackupOf {
    /// What is at these real paths.
    Paths(Vec<String>),
    /// Anything: it runs this command.
    Project { command: String },
}

/// How a live session is.
pub(crate) struct SessionSummary {
    pub(crate) state: protocol::client::SessionState,
    /// Attached clients.
    pub(crate) clients: u32,
    /// Prompts so far.
    pub(crate) turns: u32,
}

/// A call's end.
pub(crate) struct FinishedCall {
    pub(crate) record: Record,
    /// What it saw of files, which is kept too.
    pub(crate) seen: Option<Record>,
    /// What it says it did to files, if it can.
    pub(crate) did: Option<Did>,
    pub(crate) call: CallId,
    pub(crate) tool: String,
    pub(crate) result: ToolResult,
    pub(crate) refused: Vec<String>,
    /// Protected names that it changed and that could not be put right.
    pub(crate) left: Vec<String>,
    /// Why it is not in the audit log.
    pub(crate) unaudited: Option<String>,
}

/// What a session is begun with.
pub(crate) struct SessionArgs {
    pub(crate) plan: Plan,
    /// That the package caches of its project stay.
    pub(crate) caches: Option<InUse>,
    /// That cleaners of `/tmp` leave its private directories alone.
    pub(crate) private: Option<File>,
    pub(crate) opened: OpenedJournal,
    pub(crate) papers: Vec<(Paper, OwnedFd)>,
    /// What its proxies show commands in place of hosts that they sign in to.
    pub(crate) identity: Option<Arc<Identity>>,
    pub(crate) spawner: Spawner,
    pub(crate) times: SlotTimes,
    pub(crate) broker: WorkerRef<BrokerLink>,
    pub(crate) audit: ActorRef<AuditMsg>,
    pub(crate) root: ActorRef<RootMsg>,
}

/// A session's journal, new or mended.
pub(crate) struct OpenedJournal {
    pub(crate) journal: journal::Journal,
    pub(crate) hold: Hold,
    pub(crate) directory: PathBuf,
    /// How many turns it holds.
    pub(crate) turns: u32,
    /// Whether the last of them is open and goes on.
    pub(crate) last: OpenTurn,
    /// How it was cut short, where it was and does not go on.
    pub(crate) cut_short: Option<Deaths>,
    /// Questions that were put and have no answer, by their calls.
    pub(crate) open: Vec<(u32, PendingQuestion)>,
    /// Prompts that wait.
    pub(crate) queue: VecDeque<String>,
    /// Settings that people changed.
    pub(crate) changes: Vec<Change>,
    /// Rules that people gave for as long as the session lasts.
    pub(crate) learned: Vec<Rule>,
    /// What the model knows of files.
    pub(crate) seen: FileVersions,
    /// Protected names that are not as they were, and that no person has accepted.
    pub(crate) tampered: Vec<String>,
    /// What was done about them while the session was opened.
    pub(crate) put_right: Vec<String>,
}

pub(crate) struct SessionActorState {
    own: ActorRef<SessionMsg>,
    plan: Plan,
    caches: Option<InUse>,
    _private: Option<File>,
    hold: Hold,
    book: JournalWriter,
    directory: PathBuf,
    papers: Vec<(Paper, OwnedFd)>,
    identity: Option<Arc<Identity>>,
    spawner: Spawner,
    times: SlotTimes,
    conversation: WorkerRef<SessionLink>,
    provider: WorkerRef<ProviderLink>,
    /// Whether the provider's process lives and knows whom to speak to.
    reach: ProviderState,
    /// The provider's rest, while it is to come.
    resting: Option<AbortHandle>,
    store: StoreState,
    broker: WorkerRef<BrokerLink>,
    audit: ActorRef<AuditMsg>,
    root: ActorRef<RootMsg>,
    /// Clients that opened it and have yet to attach.
    expected: HashSet<ActorId>,
    router: Router,
    /// Calls that may end without a verdict.
    unjudged: unjudged::Unjudged,
    calls: HashMap<CallId, ActorRef<CallMsg>>,
    /// What the model knows of files.
    seen: FileVersions,
    /// Protected names that are not as they were: a person is asked before the next command.
    tampered: Vec<String>,
    attached: Vec<AttachedClient>,
    /// Questions that wait for a person.
    questions: BTreeMap<CallId, Question>,
    /// PendingAnswers that the broker has not settled yet.
    answers: PendingAnswers,
    /// Questions of an earlier life whose calls have not come back yet.
    standing: HashMap<u32, PendingQuestion>,
    /// The cage of commands: what this host and the configuration allow, and then what the last one had.
    cage: Tier,
    last_seq: u64,
    /// The next look at the workers, while there is one to come.
    ping_timer: Option<AbortHandle>,
    /// A person came while a script's turn ran: from the next turn on somebody can be asked.
    next_audience: Option<Audience>,
    /// The conversation is told everything once the calls of its earlier life are over.
    told: ReplayState,
    /// Why nothing can judge calls.
    broker_failure: Option<String>,
    /// What keeps it from taking more.
    problems: Problems,
    /// People were told which command behind edits does not run for want of trust.
    untrusted_named: bool,
    /// How many want it to begin no turn.
    pauses: u32,
    /// Who waits for its end, once it is ending.
    closing: Vec<oneshot::Sender<()>>,
}

/// The actor.
pub(crate) struct SessionActor;

impl Actor for SessionActor {
    type Msg = SessionMsg;
    type State = SessionActorState;
    type Arguments = SessionArgs;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        args: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        let SessionArgs {
            plan,
            caches,
            private,
            opened,
            papers,
            identity,
            spawner,
            times,
            broker,
            audit,
            root,
        } = args;
        let spawner = spawner.with(&plan.worker_env);
        let id = plan.id.clone();
        broker.send(rules(&plan));
        let owner = myself.clone();
        let conversation = SlotPlan {
            worker: Permanent::Session,
            session: Some(id.clone()),
            spawner: spawner.clone(),
            times: times.replaying(),
            owner: Arc::new(move |event| {
                let _ = owner.send_message(SessionMsg::Conversation(event));
            }),
        };
        let owner = myself.clone();
        let provider = SlotPlan {
            worker: Permanent::Provider,
            session: Some(id.clone()),
            spawner: spawner.clone(),
            times,
            owner: Arc::new(move |event| {
                let _ = owner.send_message(SessionMsg::Provider(event));
            }),
        };
        let owner = myself.clone();
        let store = SlotPlan {
            worker: Permanent::Store,
            session: Some(id),
            spawner: spawner.clone(),
            times,
            owner: Arc::new(move |event| {
                let _ = owner.send_message(SessionMsg::Store(event));
            }),
        };
        let cell = myself.get_cell();
        let (store, _) =
            Slot::<StoreLink>::spawn_linked(None, Slot::new(), store, cell.clone()).await?;
        let (conversation, _) =
            Slot::<SessionLink>::spawn_linked(None, Slot::new(), conversation, cell.clone())
                .await?;
        let (provider, _) =
            Slot::<ProviderLink>::spawn_linked(None, Slot::new(), provider, cell).await?;
        let last_seq = opened.journal.last_seq();
        let cage = plan.confinement.highest_tier;
        let state = SessionActorState {
            own: myself,
            plan,
            caches,
            _private: private,
            hold: opened.hold,
            book: JournalWriter::new(opened.journal),
            directory: opened.directory,
            papers,
            identity,
            spawner,
            times,
            conversation: WorkerRef::new(conversation),
            provider: WorkerRef::new(provider),
            reach: ProviderState::Down,
            resting: None,
            store: StoreState::of(WorkerRef::new(store)),
            broker,
            audit,
            root,
            expected: HashSet::new(),
            router: Router::resumed(opened.turns, opened.last, opened.cut_short)
                .with_queue(opened.queue),
            calls: HashMap::new(),
            seen: opened.seen,
            tampered: opened.tampered,
            attached: Vec::new(),
            questions: BTreeMap::new(),
            answers: PendingAnswers::default(),
            standing: opened.open.into_iter().collect(),
            cage,
            last_seq,
            ping_timer: None,
            next_audience: None,
            told: ReplayState::NoProcess,
            broker_failure: None,
            unjudged: unjudged::Unjudged::default(),
            problems: Problems::default(),
            untrusted_named: false,
            pauses: 0,
            closing: Vec::new(),
        };
        state.limit_instructions_wait(&state.own);
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        state.take(&myself, message).await;
        Ok(())
    }

    /// A child that ends is reported by its own words; nobody ends because a child did.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorFailed(_, error) = event {
            tracing::error!(session = %state.plan.id, %error, "an actor of the session failed");
            // Whoever waits for it waits in vain. Opening the session again ends what is open.
            state.enter_read_only(format!("a part of it failed: {error}"));
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<Self::Msg>,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        // A turn that is open here did not die.
        if state.router.turn_is_open() {
            let kept = state.record(vec![Record::Closed]);
            let _ = tokio::time::timeout(CLOSING, kept).await;
        }
        for timer in [state.ping_timer.take(), state.resting.take()].into_iter().flatten() {
            timer.abort();
        }
        for done in state.closing.drain(..) {
            let _ = done.send(());
        }
        Ok(())
    }
}

impl SessionActorState {
    async fn take(&mut self, myself: &ActorRef<SessionMsg>, message: SessionMsg) {
        match message {
            SessionMsg::Conversation(SlotEvent::Up(generation)) => {
                self.conversation.up(generation);
                self.told = ReplayState::NotStarted;
                self.replay_if_quiet(myself).await;
            }
            SessionMsg::Conversation(SlotEvent::Word { word, heard: _heard }) => {
                let steps = self.router.on_session_msg(word);
                self.carry_out(myself, steps).await;
                self.start_next_turn(myself).await;
            }
            SessionMsg::BackUp { call, tool, what, done } => self.keep(call, tool, what, done),
            SessionMsg::Store(event) => self.on_store_event(myself, event).await,
            SessionMsg::InstructionsTimeout => self.on_instructions_settled(myself).await,
            SessionMsg::ReplayFailed(why) => self.enter_read_only(why),
            SessionMsg::Conversation(SlotEvent::Down { cause, failed }) => {
                self.told = ReplayState::NoProcess;
                let calls: Vec<_> = self.calls.keys().map(|call| call.number).collect();
                let steps = self.router.session_down(&cause, &calls);
                self.carry_out(myself, steps).await;
                if let Some(why) = failed {
                    self.conversation_failed(myself, why).await;
                }
                tracing::warn!(session = %self.plan.id, %cause, "the conversation's process ended");
            }
            SessionMsg::Provider(SlotEvent::Up(generation)) => {
                self.provider.up(generation);
                self.configure_provider();
                let steps = self.router.provider_up();
                self.carry_out(myself, steps).await;
                self.suspend_later(myself);
            }
            SessionMsg::Provider(SlotEvent::Word { word, heard }) => {
                ipc::step!("supervisor: route", if matches!(word, FromProvider::Delta { .. }));
                let steps = self.router.on_provider_msg(word);
                self.pass_on(myself, steps, heard).await;
                self.suspend_later(myself);
            }
            SessionMsg::Provider(SlotEvent::Down { cause, failed }) => {
                self.reach = ProviderState::Down;
                let steps = self.router.provider_down(&cause, failed.as_deref());
                self.carry_out(myself, steps).await;
                if let Some(why) = failed {
                    self.provider_failed(why);
                }
            }
            SessionMsg::Verdict(call, verdict) => self.judged(myself, call, verdict).await,
            SessionMsg::Asked(question) => self.asked(question),
            SessionMsg::AnswerRejected(call, reason) => self.rejected(&call, &reason),
            SessionMsg::Join(order) => self.join(*order),
            SessionMsg::BrokerBack(generation) => self.broker_back(generation),
            SessionMsg::BrokerFailed(why) => self.broker_failed(why),
            SessionMsg::Record { records, done } => {
                let _ = done.send(self.record(records).await);
            }
            SessionMsg::CallFinished(concluded) => self.concluded(myself, *concluded).await,
            SessionMsg::Show(event) => {
                if let Event::Started { enforced, .. } = &event {
                    self.cage = enforced.of_command().unwrap_or(self.cage);
                }
                self.tell(&event);
            }
            SessionMsg::Attach(attachment) => self.attach(myself, attachment).await,
            SessionMsg::Page { client, before, most } => self.page(client, before, most),
            SessionMsg::Detach(client) => {
                self.remove_client(&client);
                self.retire_if_unused();
            }
            SessionMsg::Prompt(text) => self.prompt(myself, text).await,
            SessionMsg::TakeBack(client) => self.take_back(&client).await,
            SessionMsg::Withdraw { client, text } => self.withdraw(&client, &text).await,
            SessionMsg::Retire => self.retire(myself),
            SessionMsg::Change { client, change, by } => self.change(&client, change, by).await,
            SessionMsg::Answer(answered) => self.answer(answered),
            SessionMsg::Interrupt => {
                let steps = self.router.interrupt();
                self.carry_out(myself, steps).await;
            }
            SessionMsg::Compact => {
                let steps = self.router.compact();
                self.carry_out(myself, steps).await;
            }
            SessionMsg::Ping => self.ping_workers(myself),
            SessionMsg::ProviderIdle => self.on_provider_idle(),
            SessionMsg::Restart(reply) => {
                let _ = reply.send(self.restart());
            }
            #[cfg(test)]
            SessionMsg::Fail => panic!("a test wants it to fail"),
            SessionMsg::Describe(reply) => self.describe(reply),
            SessionMsg::Summarize(reply) => {
                let _ = reply.send(self.glance());
            }
            SessionMsg::Pause(reply) => {
                let _ = reply.send(self.pause());
            }
            SessionMsg::Resume => self.resume(myself).await,
            SessionMsg::Close(ending, done) => self.close(myself, ending, done),
        }
    }

    /// Carries out the steps of a provider's word. It speaks on when the conversation has taken
    /// what is for it, so that a fast stream never fills the conversation's queue.
    async fn pass_on(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        steps: Vec<RouteStep>,
        heard: OwnedSemaphorePermit,
    ) {
        let mut heard = Some(heard);
        for step in steps {
            match (step, heard.take()) {
                (RouteStep::ToSession(word), Some(heard)) => {
                    self.conversation.forward(vec![word], heard);
                }
                (step, permit) => {
                    heard = permit;
                    self.carry_out(myself, vec![step]).await;
                }
            }
        }
    }

    async fn carry_out(&mut self, myself: &ActorRef<SessionMsg>, steps: Vec<RouteStep>) {
        for step in steps {
            match step {
                RouteStep::Record(happened) => {
                    let progress = is_progress(&happened);
                    let answered = matches!(happened, Happened::Answer { .. });
                    let ended = matches!(happened, Happened::TurnEnded { .. });
                    let record = match self.unjudged.take_in(&happened) {
                        Some((call, result)) => self.audited(&call, result).await,
                        None => to_disk::happened(happened, kind_of),
                    };
                    if self.record(vec![record]).await.is_err() {
                        // Nothing after it may happen: the disk is first.
                        return;
                    }
                    if progress {
                        let _ = self.conversation.slot().send_message(SlotMsg::Progressed);
                    }
                    if answered {
                        let _ = self.provider.slot().send_message(SlotMsg::Progressed);
                    }
                    if ended {
                        self.show_failed_workers();
                    }
                }
                RouteStep::ToSession(word) => self.send_conversation(word),
                RouteStep::ToProvider(ToProvider::Ask(_)) if !self.has_provider() => {
                    let steps = self.router.provider_gone("has failed and is not started again");
                    Box::pin(self.carry_out(myself, steps)).await;
                }
                RouteStep::ToProvider(word) => self.send_provider(word),
                RouteStep::StartCall(call, place, answerer, note) => {
                    self.start_call(myself, call, place, answerer, note).await;
                }
                RouteStep::StatPinned { check, files } => {
                    let project = self.plan.confinement.project.to_path();
                    pinning::stat(self.conversation.clone(), project, check, files);
                }
                RouteStep::CancelCall(call) => self.send_call(&call, CallInput::Cancel),
                RouteStep::CancelCalls => {
                    self.calls.keys().for_each(|call| self.send_call(call, CallInput::Cancel));
                }
                RouteStep::Show(event) => self.tell(&event),
                RouteStep::Log(worker, line) => worker_log::write(worker, &self.plan.id, &line),
            }
        }
    }

    /// Asks the workers for a sign of life, while somebody waits for them. Nothing wakes up for a
    /// session that is idle.
    fn ping_workers(&mut self, myself: &ActorRef<SessionMsg>) {
        self.ping_timer = None;
        // Nobody waits for what has failed.
        if !self.router.is_busy() || self.degraded().is_some() {
            return;
        }
        self.conversation.ping(ToSession::Ping(0));
        self.provider.ping(ToProvider::Ping(0));
        self.broker.ping(ToBroker::Ping(0));
        self.store.worker.ping(ToStore::Ping(0));
        self.ping_later(myself);
    }

    fn ping_later(&mut self, myself: &ActorRef<SessionMsg>) {
        if self.ping_timer.is_none() {
            let later = myself.send_after(self.times.ping, || SessionMsg::Ping);
            self.ping_timer = Some(later.abort_handle());
        }
    }

    /// Ends the calls, then the workers, then this actor. Calls that were let go and do not end in
    /// time are closed as `may have run` when the session is opened again.
    fn close(&mut self, myself: &ActorRef<SessionMsg>, ending: Ending, done: oneshot::Sender<()>) {
        let first = self.closing.is_empty();
        self.closing.push(done);
        if !first {
            return;
        }
        self.detach_all(Parting::Ended, "the session was ended; it is on disk");
        for call in self.calls.values() {
            let _ = call.send_message(CallMsg::Input(CallInput::Cancel));
        }
        let calls: Vec<_> = self.calls.values().cloned().collect();
        let (conversation, provider) = (self.conversation.clone(), self.provider.clone());
        let store = self.store.worker.clone();
        let (myself, patience) = (myself.clone(), self.times.shutdown);
        let for_runners = match ending {
            Ending::Stop => patience,
            Ending::Kill => patience.min(KILL_GRACE),
        };
        tokio::spawn(async move {
            // Their commands end at once; their runners have this time to put right what those
            // changed, all of them together, however many there are.
            wait_for(&calls, for_runners).await;
            for call in &calls {
                let _ = call.send_message(CallMsg::Input(CallInput::Overdue));
            }
            // Then others do it. What they do not come to is done when the session is opened again.
            wait_for(&calls, REPAIR).await;
            calls.iter().for_each(|call| call.stop(None));
            for stopped in [stop(&conversation), stop(&provider), stop(&store)] {
                let _ = tokio::time::timeout(patience + Duration::from_secs(1), stopped).await;
            }
            myself.stop(None);
        });
    }
}

/// Waits until all of them are over, or this time is.
async fn wait_for(calls: &[ActorRef<CallMsg>], time: Duration) {
    let until = Instant::now() + time;
    for call in calls {
        let left = until.saturating_duration_since(Instant::now());
        let _ = call.wait(Some(left)).await;
    }
}

fn stop<L: protocol::Link + 'static>(worker: &WorkerRef<L>) -> oneshot::Receiver<()> {
    let (done, stopped) = oneshot::channel();
    let _ = worker.slot().send_message(SlotMsg::Stop(done));
    stopped
}

fn rules(plan: &Plan) -> ToBroker {
    ToBroker::Rules { session: plan.id.clone(), rules: plan.rules.clone() }
}
