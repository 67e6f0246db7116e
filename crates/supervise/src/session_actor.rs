//! The session actor: owns one session's journal, workers, calls and watchers.
//!
//! Where words go is decided in `route`; this file carries the steps out. It is the only writer of
//! the session's journal, and it writes before it acts.

use crate::audit_actor::AuditMsg;
use crate::book::{Book, chain};
use crate::call::{CallFacts, CallInput, Probed};
use crate::call_actor::{CallActor, CallMsg, CallPlan};
use crate::client_actor::ClientMsg;
use crate::hold::Hold;
use crate::plan::{OpenFailure, Plan, in_words, kind_of};
use crate::route::{Router, Step, Watched};
use crate::slot::{Slot, SlotEvent, SlotMsg, SlotPlan, SlotTimes};
use crate::spawn::{Permanent, Spawner};
use crate::to_disk::{self, Place};
use crate::{from_disk, temp};
use journal::{Entry, Record};
use protocol::broker::{BrokerLink, ToBroker};
use protocol::call::{Call, Outcome, ToolResult};
use protocol::client::{Event, FailedKind, ProcessRow, ToClient};
use protocol::confinement::{Confinement, Network};
use protocol::ids::CallId;
use protocol::judgement::{Answer, ToolKind, Verdict};
use protocol::provider::{Paper, ProviderLink, ToProvider};
use protocol::session::{OpenTurn, SessionLink, ToSession};
use protocol::upkeep::LogLevel;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// What a session is told.
pub(crate) enum SessionMsg {
    Conversation(SlotEvent<SessionLink>),
    Provider(SlotEvent<ProviderLink>),
    /// From the broker, about a call of this session.
    Verdict(CallId, Verdict),
    /// The broker lives anew and knows nothing.
    BrokerBack,
    /// The broker's slot has failed for good.
    BrokerFailed(String),
    /// From a call: keep these; answered when they are on disk.
    Record {
        records: Vec<Record>,
        done: oneshot::Sender<Result<(), String>>,
    },
    /// From a call: it is over.
    Concluded(Box<Concluded>),
    /// For the screens; not kept.
    Tell(Event),
    Attach {
        client: ActorRef<ClientMsg>,
        from: u64,
    },
    Detach(ActorRef<ClientMsg>),
    Prompt(String),
    Answer {
        call: CallId,
        digest: String,
        answer: Answer,
        by: String,
    },
    Interrupt,
    Describe(oneshot::Sender<Vec<ProcessRow>>),
    /// End everything of this session; answered when its processes are gone.
    Close(oneshot::Sender<()>),
}

/// A call's end.
pub(crate) struct Concluded {
    pub(crate) record: Record,
    pub(crate) call: CallId,
    pub(crate) result: ToolResult,
    pub(crate) refused: Vec<String>,
    /// Why it is not in the audit log.
    pub(crate) unaudited: Option<String>,
}

/// What a session is begun with.
pub(crate) struct SessionPlan {
    pub(crate) plan: Plan,
    pub(crate) opened: OpenedJournal,
    pub(crate) papers: Vec<(Paper, OwnedFd)>,
    pub(crate) spawner: Spawner,
    pub(crate) times: SlotTimes,
    pub(crate) broker: ActorRef<SlotMsg<BrokerLink>>,
    pub(crate) audit: ActorRef<AuditMsg>,
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
}

pub(crate) struct SessionState {
    plan: Plan,
    hold: Hold,
    book: Book,
    directory: PathBuf,
    papers: Vec<(Paper, OwnedFd)>,
    spawner: Spawner,
    times: SlotTimes,
    conversation: ActorRef<SlotMsg<SessionLink>>,
    provider: ActorRef<SlotMsg<ProviderLink>>,
    broker: ActorRef<SlotMsg<BrokerLink>>,
    audit: ActorRef<AuditMsg>,
    router: Router,
    calls: HashMap<CallId, ActorRef<CallMsg>>,
    watchers: Vec<ActorRef<ClientMsg>>,
    last_seq: u64,
    /// Whoever opened the session to go on with its turn, until they attach.
    opener: Watched,
    /// The conversation waits to be replayed until the calls of its earlier life are over.
    replay_due: bool,
    /// Why nothing can judge calls.
    unjudgeable: Option<String>,
    /// Why the journal takes no more.
    read_only: Option<String>,
    closing: Option<oneshot::Sender<()>>,
}

/// The actor.
pub(crate) struct SessionActor;

impl Actor for SessionActor {
    type Msg = SessionMsg;
    type State = SessionState;
    type Arguments = SessionPlan;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        args: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        let SessionPlan { plan, opened, papers, spawner, times, broker, audit } = args;
        let id = plan.id.clone();
        let _ = broker.send_message(SlotMsg::Send(rules(&plan)));
        let owner = myself.clone();
        let conversation = SlotPlan {
            worker: Permanent::Session,
            session: Some(id.clone()),
            spawner: spawner.clone(),
            times,
            owner: Arc::new(move |event| {
                let _ = owner.send_message(SessionMsg::Conversation(event));
            }),
        };
        let owner = myself.clone();
        let provider = SlotPlan {
            worker: Permanent::Provider,
            session: Some(id),
            spawner: spawner.clone(),
            times,
            owner: Arc::new(move |event| {
                let _ = owner.send_message(SessionMsg::Provider(event));
            }),
        };
        let cell = myself.get_cell();
        let (conversation, _) =
            Slot::<SessionLink>::spawn_linked(None, Slot::new(), conversation, cell.clone())
                .await?;
        let (provider, _) =
            Slot::<ProviderLink>::spawn_linked(None, Slot::new(), provider, cell).await?;
        let last_seq = opened.journal.last_seq();
        Ok(SessionState {
            plan,
            hold: opened.hold,
            book: Book::new(opened.journal),
            directory: opened.directory,
            papers,
            spawner,
            times,
            conversation,
            provider,
            broker,
            audit,
            router: Router::resumed(opened.turns, opened.last),
            calls: HashMap::new(),
            watchers: Vec::new(),
            last_seq,
            opener: match opened.last {
                OpenTurn::GoesOn => Watched::BySomebody,
                OpenTurn::Waits => Watched::ByNobody,
            },
            replay_due: false,
            unjudgeable: None,
            read_only: None,
            closing: None,
        })
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
            state.close_book(format!("a part of it failed: {error}"));
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<Self::Msg>,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        temp::remove(&state.plan.confinement.temp.to_path());
        if let Some(done) = state.closing.take() {
            let _ = done.send(());
        }
        Ok(())
    }
}

impl SessionState {
    async fn take(&mut self, myself: &ActorRef<SessionMsg>, message: SessionMsg) {
        match message {
            SessionMsg::Conversation(SlotEvent::Up) => {
                self.replay_due = true;
                self.replay_if_quiet(myself).await;
            }
            SessionMsg::Conversation(SlotEvent::Word { word, heard: _heard }) => {
                let steps = self.router.heard_session(word);
                self.carry_out(myself, steps).await;
            }
            SessionMsg::Conversation(SlotEvent::Down { cause, failed }) => {
                let steps = self.router.session_down(&cause);
                self.carry_out(myself, steps).await;
                self.degraded_if(failed.map(|why| format!("the conversation stopped: {why}")));
                tracing::warn!(session = %self.plan.id, %cause, "the conversation's process ended");
            }
            SessionMsg::Provider(SlotEvent::Up) => {
                self.configure_provider();
                let steps = self.router.provider_up();
                self.carry_out(myself, steps).await;
            }
            SessionMsg::Provider(SlotEvent::Word { word, heard }) => {
                let steps = self.router.heard_provider(word);
                self.pass_on(myself, steps, heard).await;
            }
            SessionMsg::Provider(SlotEvent::Down { cause, failed }) => {
                let steps = self.router.provider_down(&cause, failed.as_deref());
                self.carry_out(myself, steps).await;
            }
            SessionMsg::Verdict(call, verdict) => {
                self.tell_call(&call, CallInput::Verdict(verdict))
            }
            SessionMsg::BrokerBack => self.broker_back(),
            SessionMsg::BrokerFailed(why) => self.broker_failed(why),
            SessionMsg::Record { records, done } => {
                let _ = done.send(self.record(records).await);
            }
            SessionMsg::Concluded(concluded) => self.concluded(myself, *concluded).await,
            SessionMsg::Tell(event) => self.tell(&event),
            SessionMsg::Attach { client, from } => self.attach(client, from).await,
            SessionMsg::Detach(client) => {
                self.watchers.retain(|watcher| watcher.get_id() != client.get_id());
            }
            SessionMsg::Prompt(text) => self.prompt(myself, text).await,
            SessionMsg::Answer { call, digest, answer, by } => {
                let word = ToBroker::Answer { call, digest, answer, by };
                let _ = self.broker.send_message(SlotMsg::Send(word));
            }
            SessionMsg::Interrupt => {
                let steps = self.router.interrupt();
                self.carry_out(myself, steps).await;
            }
            SessionMsg::Describe(reply) => self.describe(reply),
            SessionMsg::Close(done) => self.close(myself, done),
        }
    }

    /// Carries out the steps of a provider's word. It speaks on when the conversation has taken
    /// what is for it, so that a fast stream never fills the conversation's queue.
    async fn pass_on(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        steps: Vec<Step>,
        heard: OwnedSemaphorePermit,
    ) {
        let mut heard = Some(heard);
        for step in steps {
            match (step, heard.take()) {
                (Step::ToSession(word), Some(heard)) => {
                    let _ = self.conversation.send_message(SlotMsg::Forward { word, heard });
                }
                (step, permit) => {
                    heard = permit;
                    self.carry_out(myself, vec![step]).await;
                }
            }
        }
    }

    async fn carry_out(&mut self, myself: &ActorRef<SessionMsg>, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Record(happened) => {
                    let record = to_disk::happened(happened, kind_of);
                    if self.record(vec![record]).await.is_err() {
                        // Nothing after it may happen: the disk is first.
                        return;
                    }
                }
                Step::ToSession(word) => {
                    let _ = self.conversation.send_message(SlotMsg::Send(word));
                }
                Step::ToProvider(word) => {
                    let _ = self.provider.send_message(SlotMsg::Send(word));
                }
                Step::StartCall(call, place) => self.start_call(myself, call, place).await,
                Step::CancelCall(call) => self.tell_call(&call, CallInput::Cancel),
                Step::Tell(event) => self.tell(&event),
                Step::Log(worker, line) => match line.level {
                    LogLevel::Error => {
                        tracing::error!(worker, session = %self.plan.id, "{}", line.text)
                    }
                    LogLevel::Warn => {
                        tracing::warn!(worker, session = %self.plan.id, "{}", line.text)
                    }
                    LogLevel::Info => {
                        tracing::info!(worker, session = %self.plan.id, "{}", line.text)
                    }
                    LogLevel::Debug => {
                        tracing::debug!(worker, session = %self.plan.id, "{}", line.text)
                    }
                },
            }
        }
    }

    /// Keeps the records, then shows them. After a failure the session is read-only, and says so.
    async fn record(&mut self, records: Vec<Record>) -> Result<(), String> {
        let event = |record: &Record| from_disk::event(&self.plan.id, record);
        let events: Vec<_> = records.iter().map(event).collect();
        self.record_as(records, events).await
    }

    /// The same, with what to show of each record.
    async fn record_as(
        &mut self,
        records: Vec<Record>,
        events: Vec<Option<Event>>,
    ) -> Result<(), String> {
        if let Some(why) = &self.read_only {
            return Err(why.clone());
        }
        match self.book.append(records).await {
            Ok(last) => {
                let first = last + 1 - events.len() as u64;
                for (seq, event) in (first..).zip(events) {
                    self.last_seq = seq;
                    self.tell_if(event);
                }
                Ok(())
            }
            Err(why) => {
                self.close_book(format!(
                    "it could not be written to disk: {why}. Free space or mend the disk"
                ));
                Err(why)
            }
        }
    }

    /// From now on the session is read-only, and says so.
    fn close_book(&mut self, why: String) {
        let reason = format!(
            "this session can be read but takes nothing more, because {why}; then open it again"
        );
        self.read_only = Some(why);
        self.degraded_if(Some(reason));
    }

    /// Tells a new conversation everything, once no call of the earlier one runs: their results
    /// belong to what it is told.
    async fn replay_if_quiet(&mut self, myself: &ActorRef<SessionMsg>) {
        if !self.replay_due || !self.calls.is_empty() {
            return;
        }
        self.replay_due = false;
        let opener = std::mem::replace(&mut self.opener, Watched::ByNobody);
        let watched = if self.watchers.is_empty() { opener } else { Watched::BySomebody };
        let then = self.router.open_turn(watched);
        if then == OpenTurn::Waits {
            let steps = self.router.close_turn();
            self.carry_out(myself, steps).await;
        }
        let directory = self.directory.clone();
        let read = tokio::task::spawn_blocking(move || read_all(&directory)).await;
        let entries = match read {
            Ok(Ok(entries)) => entries,
            Ok(Err(error)) => return self.degraded_if(Some(chain(&error))),
            Err(error) => return self.degraded_if(Some(error.to_string())),
        };
        let begin = ToSession::Begin(self.plan.setup.clone());
        let replay = from_disk::replay(&self.plan.id, &entries).into_iter().map(ToSession::Replay);
        let done = ToSession::ReplayDone { then };
        let words = std::iter::once(begin).chain(replay).chain([done]);
        let _ = self.conversation.send_message(SlotMsg::SendAll(words.collect()));
    }

    fn configure_provider(&self) {
        let word = ToProvider::Configure {
            source: self.plan.source.clone(),
            patience: self.plan.config.provider.patience,
            proxy: self.plan.config.provider.proxy.clone(),
            papers: self.papers.iter().map(|(paper, _)| *paper).collect(),
        };
        let _ = self.provider.send_message(SlotMsg::Send(word));
        for (_, descriptor) in &self.papers {
            match descriptor.try_clone() {
                Ok(copy) => {
                    let _ = self.provider.send_message(SlotMsg::SendDescriptor(copy));
                }
                Err(error) => tracing::error!(%error, "a descriptor could not be passed on"),
            }
        }
    }

    async fn start_call(&mut self, myself: &ActorRef<SessionMsg>, call: Call, place: Place) {
        if self.closing.is_some() {
            // The conversation does not know yet. What is proposed and never started is closed as
            // that when the session is opened again.
            return;
        }
        let (facts, confinement) = match self.facts(call.clone()) {
            Ok(found) => found,
            Err(result) => {
                let record = no_call(&call, &result);
                let (call, refused) = (call.id, Vec::new());
                let concluded = Concluded { record, call, result, refused, unaudited: None };
                let _ = myself.send_message(SessionMsg::Concluded(Box::new(concluded)));
                return;
            }
        };
        let id = call.id;
        let plan = CallPlan {
            facts,
            confinement,
            place,
            hello: self.times.hello,
            hold: self.hold.clone(),
            spawner: self.spawner.clone(),
            session: myself.clone(),
            broker: self.broker.clone(),
            audit: self.audit.clone(),
        };
        match CallActor::spawn_linked(None, CallActor, plan, myself.get_cell()).await {
            Ok((actor, _)) => {
                if let Some(why) = self.unjudgeable.clone() {
                    let _ = actor.send_message(CallMsg::Input(CallInput::BrokerFailed(why)));
                }
                self.calls.insert(id, actor);
            }
            Err(error) => self.close_book(format!("call {id} could not begin: {error}")),
        }
    }

    /// What is known of a call before anything is done for it, or why it is none.
    fn facts(&self, call: Call) -> Result<(CallFacts, Confinement), ToolResult> {
        if call.input.len() > LONGEST_INPUT {
            return Err(too_long(call.input.len()));
        }
        let found =
            tools::interpret(&call.tool, &call.input).map_err(|invalid| invalid.result())?;
        let network = match (found.network, self.plan.network) {
            (Some(Network::On), Network::Off) => return Err(no_widening()),
            (Some(asked), _) => asked,
            (None, session) => session,
        };
        let profile = found.spec.profile;
        let confinement = Confinement { profile, network, ..self.plan.confinement.clone() };
        let looked = !found.paths.is_empty()
            && approval::needs_probe(&self.plan.rules, found.spec.name, found.spec.kind);
        let facts = CallFacts {
            call: Call { tool: found.spec.name.to_owned(), input: found.input, ..call },
            kind: found.spec.kind,
            command: found.command,
            probed: if looked { Probed::Before } else { Probed::Not },
            confinement: in_words(&confinement),
            env: self.plan.env.clone(),
            timeout_ms: self.plan.config.tools.timeout_ms,
            max_result_chars: self.plan.config.tools.max_result_chars,
        };
        Ok((facts, confinement))
    }

    async fn concluded(&mut self, myself: &ActorRef<SessionMsg>, concluded: Concluded) {
        let Concluded { record, call, result, refused, unaudited } = concluded;
        self.calls.remove(&call);
        let event = Event::CallEnded { call: call.clone(), result: result.clone(), refused };
        let kept = self.record_as(vec![record], vec![Some(event)]).await;
        if let Some(why) = unaudited {
            return self.close_book(format!("the audit log cannot be written: {why}"));
        }
        if kept.is_ok() && !self.replay_due {
            let word = ToSession::CallEnded { call, result };
            let _ = self.conversation.send_message(SlotMsg::Send(word));
        }
        self.replay_if_quiet(myself).await;
    }

    fn broker_back(&mut self) {
        self.unjudgeable = None;
        let _ = self.broker.send_message(SlotMsg::Send(rules(&self.plan)));
        for call in self.calls.values() {
            let _ = call.send_message(CallMsg::Input(CallInput::BrokerBack));
        }
    }

    /// Fails closed, now and for every call to come.
    fn broker_failed(&mut self, why: String) {
        for call in self.calls.values() {
            let _ = call.send_message(CallMsg::Input(CallInput::BrokerFailed(why.clone())));
        }
        self.unjudgeable = Some(why);
    }

    fn tell_call(&self, call: &CallId, input: CallInput) {
        match self.calls.get(call) {
            Some(actor) => {
                let _ = actor.send_message(CallMsg::Input(input));
            }
            None => tracing::debug!(%call, "a word for a call that is over"),
        }
    }

    fn tell(&self, event: &Event) {
        for watcher in &self.watchers {
            let word = ToClient::Event {
                session: self.plan.id.clone(),
                seq: self.last_seq,
                event: event.clone(),
            };
            let _ = watcher.send_message(ClientMsg::Say(word));
        }
    }

    fn tell_if(&self, event: Option<Event>) {
        if let Some(event) = event {
            self.tell(&event);
        }
    }

    fn degraded_if(&self, reason: Option<String>) {
        if let Some(reason) = reason {
            tracing::error!(session = %self.plan.id, %reason, "degraded");
            self.tell(&Event::Degraded { reason });
        }
    }

    async fn attach(&mut self, client: ActorRef<ClientMsg>, from: u64) {
        let directory = self.directory.clone();
        let read = tokio::task::spawn_blocking(move || read_all(&directory)).await;
        let entries = match read {
            Ok(Ok(entries)) => entries,
            Ok(Err(error)) => return refuse(&client, chain(&error)),
            Err(error) => return refuse(&client, error.to_string()),
        };
        let missed = entries.iter().filter(|entry| entry.seq >= from).filter_map(|entry| {
            let (session, seq) = (self.plan.id.clone(), entry.seq);
            let event = from_disk::event(&session, &entry.record)?;
            Some(ToClient::Event { session, seq, event })
        });
        let attached = ToClient::Attached { session: self.plan.id.clone() };
        let words = missed.chain([attached]).collect();
        let _ = client.send_message(ClientMsg::SayAll(words));
        self.watchers.push(client);
        self.degraded_if(self.read_only.clone());
    }

    async fn prompt(&mut self, myself: &ActorRef<SessionMsg>, text: String) {
        if let Some(why) = self.read_only.clone() {
            return self.degraded_if(Some(why));
        }
        let steps = self.router.prompt(text);
        self.carry_out(myself, steps).await;
    }

    /// Asks all who know, without waiting for them here.
    fn describe(&self, reply: oneshot::Sender<Vec<ProcessRow>>) {
        let (mut asked, mut answers) = (Vec::new(), Vec::new());
        let mut ask = |answer| asked.push(answer);
        let (row, answer) = oneshot::channel();
        let _ = self.conversation.send_message(SlotMsg::Describe(row));
        ask(answer);
        let (row, answer) = oneshot::channel();
        let _ = self.provider.send_message(SlotMsg::Describe(row));
        ask(answer);
        for call in self.calls.values() {
            let (row, answer) = oneshot::channel();
            let _ = call.send_message(CallMsg::Describe(row));
            ask(answer);
        }
        tokio::spawn(async move {
            for answer in asked {
                answers.extend(answer.await);
            }
            let _ = reply.send(answers);
        });
    }

    /// Ends the calls, then the workers, then this actor. Calls that were let go and do not end in
    /// time are closed as `may have run` when the session is opened again.
    fn close(&mut self, myself: &ActorRef<SessionMsg>, done: oneshot::Sender<()>) {
        self.closing = Some(done);
        for call in self.calls.values() {
            let _ = call.send_message(CallMsg::Input(CallInput::Cancel));
        }
        let calls: Vec<_> = self.calls.values().cloned().collect();
        let (conversation, provider) = (self.conversation.clone(), self.provider.clone());
        let (myself, patience) = (myself.clone(), self.times.shutdown);
        tokio::spawn(async move {
            for call in calls {
                let _ = call.wait(Some(patience)).await;
                call.stop(None);
            }
            for stopped in [stop(&conversation), stop(&provider)] {
                let _ = tokio::time::timeout(patience + Duration::from_secs(1), stopped).await;
            }
            myself.stop(None);
        });
    }
}

fn read_all(directory: &Path) -> Result<Vec<Entry>, journal::ReadError> {
    journal::read(directory)?.collect()
}

fn stop<L: protocol::Link + 'static>(slot: &ActorRef<SlotMsg<L>>) -> oneshot::Receiver<()> {
    let (done, stopped) = oneshot::channel();
    let _ = slot.send_message(SlotMsg::Stop(done));
    stopped
}

fn rules(plan: &Plan) -> ToBroker {
    ToBroker::Rules { session: plan.id.clone(), rules: plan.rules.clone() }
}

fn refuse(client: &ActorRef<ClientMsg>, message: String) {
    let kind = FailedKind::Internal;
    let _ = client.send_message(ClientMsg::Say(ToClient::Failed { kind, message }));
}

/// The last record of a call that was none.
fn no_call(call: &Call, result: &ToolResult) -> Record {
    let happened = protocol::session::Happened::Result {
        call: call.id.clone(),
        use_id: call.use_id.clone(),
        result: result.clone(),
    };
    to_disk::happened(happened, |_| ToolKind::Mutation)
}

/// Longest arguments of a call in bytes. They go over the broker's wire twice, with a diff beside
/// them, and must stay below its cap; nobody judges more by eye either.
const LONGEST_INPUT: usize = 3 << 20;

fn too_long(bytes: usize) -> ToolResult {
    let text = format!(
        "Error [too_large]: the arguments have {bytes} bytes; the most is {LONGEST_INPUT}.\nHint: \
         do it in several calls, or let a command produce the text."
    );
    ToolResult {
        outcome: Outcome::Invalid,
        text,
        summary: "the arguments are too large".to_owned(),
        is_error: true,
        code: Some("too_large".to_owned()),
    }
}

fn no_widening() -> ToolResult {
    let text = "Error [network_off]: the network is off in this session and one call cannot switch \
                it on.\nHint: leave `network` out, or ask the person to start agentd with \
                `--net on`.";
    ToolResult {
        outcome: Outcome::Invalid,
        text: text.to_owned(),
        summary: "the network is off".to_owned(),
        is_error: true,
        code: Some("network_off".to_owned()),
    }
}

/// Why a session cannot be opened from what is on disk.
pub(crate) fn open_failure(error: &journal::OpenError) -> OpenFailure {
    let kind = match error {
        journal::OpenError::Held { .. } => FailedKind::Held,
        journal::OpenError::Read(
            journal::ReadError::Missing { .. } | journal::ReadError::NoHeader { .. },
        ) => FailedKind::NotFound,
        journal::OpenError::Read(_) | journal::OpenError::Mend { .. } => FailedKind::Internal,
    };
    OpenFailure::new(kind, chain(error))
}
