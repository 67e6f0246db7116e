//! The call actor: carries out what the call's life asks for, one effect after another.
//!
//! It owns the runner process and makes the only grants there are.

mod proxy_process;

use crate::audit_actor::AuditMsg;
use crate::cage_cleanup::{self, CageCleanup};
use crate::call::{CallConclusion, CallEffect, CallFacts, CallInput, CallMachine};
use crate::file_versions;
use crate::grant::Grant;
use crate::messages::{BackupOf, CallMsg, CallToSession, FinishedCall, RunnerLimit, SessionMsg};
use crate::orphans::{NotRunnersChild, RecordedProcess};
use crate::project_overlays::{OverlayTurn, ProjectOverlays};
use crate::protected_restore::{self, ProtectedCopies, ProtectedRestorer};
use crate::proxy_machine::{ProxyAttempt, ProxyMachine};
use crate::records::encode::{self, RunFacts, TurnRound};
use crate::session_lock::SessionLock;
use crate::sign_in::SignInKeys;
use crate::unix_time::now_ms;
use crate::worker::heartbeat::{Heartbeat, PingAction};
use crate::worker::log_lines;
use crate::worker::process::{ExitCause, ProcessEvent, WorkerProcess};
use crate::worker::spawner::Spawner;
use crate::worker_ref::WorkerRef;
use protocol::broker::{BrokerLink, ToBroker};
use protocol::call::{Call, Remedy};
use protocol::client::ProcessRow;
use protocol::confinement::{Confinement, FilePath, Network, Profile, Refusal, RefusalKind};
use protocol::hosts::HostRule;
use protocol::ids::Generation;
use protocol::judgement::{Basis, Verdict};
use protocol::store::{Asked, Did, StoreLink, ToStore};
use protocol::tool::{Errand, FromTool, Keeper, SigningKey, ToTool, ToolLink};
use ractor::concurrency::JoinHandle;
use ractor::{Actor, ActorProcessingErr, ActorRef, MessagingErr};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A runner ends a command at its own time limit; this much later it is taken for stuck. The
/// longest limit a call may ask for is ten minutes.
const OVERDUE: Duration = Duration::from_secs(630);
/// How long a cage may take. It takes milliseconds; this is a runner that was stopped.
const CAGE: Duration = Duration::from_secs(10);
/// How long a look may take: a large file is read once, for its digest.
const PROBE: Duration = Duration::from_secs(60);
/// How long a runner that was asked to end its call may take. It gives a command 2 s before it
/// kills it.
const CANCEL: Duration = Duration::from_secs(3);
/// How long the copies that make a call undoable may take.
const BACKUP: Duration = Duration::from_secs(2);
/// How long the store may take to say whether an answer is known. A runner needs some ten
/// milliseconds for a new one.
const CACHE_LOOKUP: Duration = Duration::from_millis(200);
/// How long a runner may stay after its report.
const EXIT: Duration = Duration::from_secs(5);

/// What a call is begun with.
pub(crate) struct CallArgs {
    pub(crate) facts: CallFacts,
    pub(crate) confinement: Confinement,
    /// Hosts that rules deny, whatever list of the cage names them.
    pub(crate) denied_hosts: Vec<HostRule>,
    /// How the proxy of its cage signs in.
    pub(crate) sign_in: Option<SignInKeys>,
    /// The program that looks at its paths and runs it.
    pub(crate) runner: tools::RunnerProgram,
    pub(crate) place: TurnRound,
    pub(crate) hello: Duration,
    /// From a question for a sign of life to the answer.
    pub(crate) ping: Duration,
    /// How long a question stands, in milliseconds.
    pub(crate) question_ms: u64,
    /// Given to each runner.
    pub(crate) hold: SessionLock,
    /// What the session's runners keep of the protected names.
    pub(crate) saved: ProtectedCopies,
    /// What commands of the project change of the person's.
    pub(crate) overlays: Option<Arc<ProjectOverlays>>,
    pub(crate) spawner: Spawner,
    pub(crate) session: ActorRef<SessionMsg>,
    pub(crate) broker: WorkerRef<BrokerLink>,
    pub(crate) store: WorkerRef<StoreLink>,
    pub(crate) audit: ActorRef<AuditMsg>,
}

/// How far the present runner is, and what it is for.
enum RunnerPhase {
    /// It builds its cage; this look is next.
    CagingProbe(Errand),
    Probing,
    /// It builds its cage; the call is next.
    CagingCall,
    Running,
    /// It was asked to end the call.
    Cancelled,
    Reported,
}

struct RunnerProcess {
    life: WorkerProcess<ToolLink>,
    /// The processes of its cage that it named.
    cage: Vec<RecordedProcess>,
    purpose: RunnerPhase,
    pulse: Heartbeat,
    born: Instant,
}

/// The proxy of the present runner's command.
struct RunningProxy {
    machine: ProxyMachine<OwnedFd>,
    /// Absent when it has ended.
    life: Option<WorkerProcess<ToolLink>>,
}

type Timer = JoinHandle<Result<(), MessagingErr<CallMsg>>>;

pub(crate) struct CallState {
    plan: CallArgs,
    life: CallMachine,
    runner: Option<RunnerProcess>,
    proxy: Option<RunningProxy>,
    /// What the next proxy is.
    proxy_attempt: ProxyAttempt,
    generation: Generation,
    /// Ended with the call, so that a session of many calls does not carry them all.
    timers: Vec<Timer>,
    /// The next look at the runner.
    ping_timer: Option<Timer>,
    audited: Option<oneshot::Receiver<Result<(), String>>>,
    /// What the call will change is being kept.
    copied: Option<oneshot::Receiver<()>>,
    kept: Audited,
    ran: RunFacts,
    /// Whether nothing of the last runner lives.
    emptied: CageCleanup,
    /// Its turn with the overlays, while its cage is built.
    turn: Option<OverlayTurn>,
    /// What the next descriptor of the runner is.
    expected: ExpectedFd,
}

/// What rides behind a word of a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpectedFd {
    ProxyListener,
    Mount,
}

/// What the audit log has of a call before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audited {
    Nothing,
    /// What was proposed, with its script, and what was decided.
    Proposal,
}

/// The actor.
pub(crate) struct CallActor;

impl Actor for CallActor {
    type Msg = CallMsg;
    type State = CallState;
    type Arguments = CallArgs;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        plan: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        ipc::step!("supervisor: proposed");
        myself.send_message(CallMsg::Input(CallInput::Begin))?;
        Ok(CallState {
            life: CallMachine::new(plan.facts.clone()),
            plan,
            runner: None,
            proxy: None,
            proxy_attempt: ProxyAttempt::First,
            generation: Generation(0),
            timers: Vec::new(),
            ping_timer: None,
            audited: None,
            copied: None,
            kept: Audited::Nothing,
            ran: RunFacts::default(),
            emptied: CageCleanup::Done,
            turn: None,
            expected: ExpectedFd::ProxyListener,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let input = match message {
            CallMsg::Input(CallInput::Verdict(Verdict::Ask(mut question))) => {
                question.deadline = now_ms().saturating_add(state.plan.question_ms);
                Some(CallInput::Verdict(Verdict::Ask(question)))
            }
            CallMsg::Input(input) => Some(input),
            CallMsg::BrokerBack(generation) => {
                state.plan.broker.up(generation);
                Some(CallInput::BrokerBack)
            }
            CallMsg::StoreBack(generation) => {
                state.plan.store.up(generation);
                Some(CallInput::StoreBack)
            }
            CallMsg::QuestionDeadline(deadline) => state.deadline(&myself, deadline),
            CallMsg::Runner(generation, _) if generation != state.generation => None,
            CallMsg::Runner(_, ProcessEvent::Message { message: word, permit: _permit }) => {
                state.heard(&myself, word)
            }
            CallMsg::Runner(_, ProcessEvent::Descriptor(descriptor)) => {
                match std::mem::replace(&mut state.expected, ExpectedFd::ProxyListener) {
                    ExpectedFd::Mount => state.mounted(descriptor),
                    ExpectedFd::ProxyListener => state.on_proxy_listener(&myself, descriptor).await,
                }
                None
            }
            CallMsg::Runner(_, ProcessEvent::Ended(cause)) => {
                ipc::step!("supervisor: process ended");
                state.runner_ended(&myself, cause)
            }
            CallMsg::CageEnded(generation, ..) if generation != state.generation => None,
            CallMsg::CageEnded(_, cause, emptied) => {
                state.emptied = emptied;
                let cause =
                    if emptied == CageCleanup::Done { cause } else { ExitCause::Unkillable };
                Some(CallInput::RunnerEnded { cause: cause.to_string() })
            }
            CallMsg::Proxy(generation, _) if generation != state.generation => None,
            CallMsg::Proxy(_, report) => {
                state.on_proxy_event(&myself, report).await;
                None
            }
            CallMsg::Ping(generation) => {
                if generation == state.generation {
                    state.ping_runner(&myself);
                }
                None
            }
            CallMsg::LimitReached(generation, stage) => {
                if generation == state.generation {
                    state.late(stage);
                }
                None
            }
            CallMsg::Describe(reply) => {
                let _ = reply.send(state.rows());
                None
            }
        };
        if let Some(input) = input {
            state.dispatch(&myself, input).await;
        }
        if !state
            .runner
            .as_ref()
            .is_some_and(|runner| matches!(runner.purpose, RunnerPhase::CagingCall))
        {
            state.turn = None;
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<Self::Msg>,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        state.timers.iter().chain(&state.ping_timer).for_each(Timer::abort);
        Ok(())
    }
}

impl CallState {
    /// A word of the runner as an input to the call's life. A word out of turn ends the runner.
    fn heard(&mut self, myself: &ActorRef<CallMsg>, word: FromTool) -> Option<CallInput> {
        let runner = self.runner.as_mut()?;
        runner.pulse.on_message();
        match (word, &mut runner.purpose) {
            (FromTool::Pong(_), _) => None,
            (FromTool::Log(line), _) => {
                let runner = self.plan.runner.executable();
                log_lines::write(runner, &self.plan.facts.call.id, &line);
                None
            }
            (FromTool::Caged(_), purpose @ RunnerPhase::CagingProbe(_)) => {
                if let RunnerPhase::CagingProbe(errand) =
                    std::mem::replace(purpose, RunnerPhase::Probing)
                {
                    self.send_runner(&ToTool::Go(errand));
                    self.allow(myself, RunnerLimit::Probe);
                }
                None
            }
            (FromTool::Caged(enforced), purpose @ RunnerPhase::CagingCall) => {
                *purpose = RunnerPhase::Running;
                self.turn = None;
                Some(CallInput::Caged(enforced))
            }
            (
                FromTool::Uncaged { step, reason },
                RunnerPhase::CagingProbe(_) | RunnerPhase::CagingCall,
            ) => Some(CallInput::Uncaged { step, reason }),
            (FromTool::Probed(looked), RunnerPhase::Probing) => {
                // Its end is of no interest any more; the channel's end tells it to go.
                self.forget_runner();
                Some(CallInput::Probed(looked))
            }
            (
                FromTool::Output { text, stream: _ },
                RunnerPhase::Running | RunnerPhase::Cancelled,
            ) => {
                ipc::step!("supervisor: first output");
                Some(CallInput::Output(text))
            }
            (FromTool::Done(report), purpose @ (RunnerPhase::Running | RunnerPhase::Cancelled)) => {
                ipc::step!("supervisor: done in");
                *purpose = RunnerPhase::Reported;
                self.allow(myself, RunnerLimit::Exit);
                Some(CallInput::Done(report))
            }
            (FromTool::Keeper(keeper), RunnerPhase::CagingCall) if runner.cage.is_empty() => {
                self.note_cage(keeper)
            }
            (
                FromTool::Lost(why),
                purpose @ (RunnerPhase::CagingCall | RunnerPhase::Running | RunnerPhase::Cancelled),
            ) => {
                *purpose = RunnerPhase::Reported;
                self.allow(myself, RunnerLimit::Exit);
                Some(CallInput::CageLost { why })
            }
            // Its descriptor comes next.
            (FromTool::Door, RunnerPhase::CagingCall) if self.proxy.is_some() => None,
            (FromTool::Mounted, RunnerPhase::CagingCall) if self.turn.is_some() => {
                self.expected = ExpectedFd::Mount;
                None
            }
            (
                FromTool::Door
                | FromTool::Mounted
                | FromTool::Proxied { .. }
                | FromTool::Caged(_)
                | FromTool::Uncaged { .. }
                | FromTool::Probed(_)
                | FromTool::Output { .. }
                | FromTool::Done(_)
                | FromTool::Keeper(_)
                | FromTool::Repaired(_)
                | FromTool::Certified(_)
                | FromTool::Lost(_),
                _,
            ) => {
                if let Some(runner) = &self.runner {
                    runner.life.kill_for_breach("a word out of turn");
                }
                None
            }
        }
    }

    /// Its end is one only when nothing in its cage lives either.
    fn runner_ended(&mut self, myself: &ActorRef<CallMsg>, cause: ExitCause) -> Option<CallInput> {
        let cage = self.runner.take().map(|runner| runner.cage).unwrap_or_default();
        // It holds what it held as long as the kernel does not end it.
        self.emptied = if cause == ExitCause::Unkillable {
            CageCleanup::Unkillable
        } else {
            CageCleanup::Done
        };
        if !cage.iter().any(|process| process.is_alive()) {
            return Some(CallInput::RunnerEnded { cause: cause.to_string() });
        }
        let (call, generation) = (myself.clone(), self.generation);
        tokio::spawn(async move {
            let emptied = cage_cleanup::end_cage(&cage).await;
            let _ = call.send_message(CallMsg::CageEnded(generation, cause, emptied));
        });
        None
    }

    /// Notes the processes of the runner's cage, for this supervisor and the next. What a later one
    /// cannot find must not run.
    fn note_cage(&mut self, keeper: Keeper) -> Option<CallInput> {
        let runner = self.runner.as_mut()?;
        match self.plan.hold.record_cage(runner.life.pid, keeper) {
            Ok(Ok(cage)) => runner.cage = cage,
            Ok(Err(NotRunnersChild)) => {
                runner.life.kill_for_breach("it named a process that is not its own")
            }
            Err(error) => return Some(CallInput::DiskFailed(format!("list of runners: {error}"))),
        }
        None
    }

    /// Gives the present runner its time for this, counted from now.
    fn allow(&mut self, myself: &ActorRef<CallMsg>, stage: RunnerLimit) {
        let generation = self.generation;
        let late = move || CallMsg::LimitReached(generation, stage);
        self.timers.push(myself.send_after(stage.time(), late));
    }

    /// Asks the runner for a sign of life; one that owes it is stopped, and is ended.
    fn ping_runner(&mut self, myself: &ActorRef<CallMsg>) {
        let Some(runner) = &mut self.runner else { return };
        match runner.pulse.next_action(runner.born.elapsed(), self.plan.ping) {
            PingAction::Send => runner.life.send(&ToTool::Ping(0)),
            PingAction::Wait => {}
            PingAction::Unresponsive => return runner.life.kill_unresponsive(),
        }
        self.ping_later(myself);
    }

    fn ping_later(&mut self, myself: &ActorRef<CallMsg>) {
        let generation = self.generation;
        let looked = myself.send_after(self.plan.ping, move || CallMsg::Ping(generation));
        if let Some(done) = self.ping_timer.replace(looked) {
            done.abort();
        }
    }

    /// A runner that is still at this is stuck, or stopped; its end is dealt with as any other.
    fn late(&self, stage: RunnerLimit) {
        self.proxy_limit_reached(stage);
        let Some(runner) = &self.runner else { return };
        match (stage, &runner.purpose) {
            (RunnerLimit::Cage, RunnerPhase::CagingProbe(_) | RunnerPhase::CagingCall)
            | (RunnerLimit::Probe, RunnerPhase::Probing)
            | (RunnerLimit::Cancel, RunnerPhase::Cancelled)
            | (RunnerLimit::Exit, RunnerPhase::Reported) => {
                tracing::warn!(call = %self.plan.facts.call.id, ?stage, "a runner is late");
                runner.life.kill();
            }
            (
                RunnerLimit::Cage
                | RunnerLimit::Probe
                | RunnerLimit::Cancel
                | RunnerLimit::Exit
                | RunnerLimit::ProxyCage
                | RunnerLimit::ProxyExit,
                _,
            ) => {}
        }
    }

    /// Timers stand still while the machine sleeps, and Unix time jumps: what counts is the clock
    /// when the timer fires.
    fn deadline(&mut self, myself: &ActorRef<CallMsg>, deadline: u64) -> Option<CallInput> {
        if now_ms() >= deadline {
            return Some(CallInput::Expired);
        }
        self.wait_until(myself, deadline);
        None
    }

    fn wait_until(&mut self, myself: &ActorRef<CallMsg>, deadline: u64) {
        let left = Duration::from_millis(deadline.saturating_sub(now_ms()));
        self.timers.push(myself.send_after(left, move || CallMsg::QuestionDeadline(deadline)));
    }

    async fn carry_out(&mut self, myself: &ActorRef<CallMsg>, input: CallInput) {
        let mut effects = VecDeque::from(self.life.step(input));
        while let Some(effect) = effects.pop_front() {
            if let Err(input) = self.effect(myself, effect).await {
                effects = VecDeque::from(self.life.step(input));
            }
        }
    }

    /// Carries one effect out. An error replaces what would have followed.
    async fn effect(
        &mut self,
        myself: &ActorRef<CallMsg>,
        effect: CallEffect,
    ) -> Result<(), CallInput> {
        match effect {
            CallEffect::Probe(errand) => {
                let grant = Grant::probe(&self.plan.confinement);
                self.start(myself, &grant, RunnerPhase::CagingProbe(errand)).await?;
                ipc::step!("supervisor: probe spawned", after sent().await);
                Ok(())
            }
            CallEffect::Judge(case) => {
                self.plan.broker.send(ToBroker::Judge(case));
                ipc::step!("supervisor: judge sent", after sent().await);
                Ok(())
            }
            CallEffect::ForgetQuestion => {
                let call = self.plan.facts.call.id.clone();
                self.plan.broker.send(ToBroker::Forget(call));
                Ok(())
            }
            CallEffect::Record(facts) => self.record(facts).await,
            CallEffect::Ask(question) => {
                self.wait_until(myself, question.deadline);
                let _ = self.plan.session.send_message(CallToSession::Asked(question).into());
                Ok(())
            }
            CallEffect::AuditDecided(verdict) => {
                ipc::step!("supervisor: verdict in");
                self.audit_decided(&verdict);
                Ok(())
            }
            CallEffect::Start(verdict) => {
                let mut confinement = self.plan.confinement.clone();
                confinement.overlays = self.overlays().await;
                match Grant::of(&self.plan.facts.call, &verdict, confinement) {
                    Ok((grant, _)) => self.start(myself, &grant, RunnerPhase::CagingCall).await,
                    Err(error) => Err(not_started(&error)),
                }
            }
            CallEffect::BackUp(paths) => {
                self.keep(BackupOf::Paths(paths));
                Ok(())
            }
            CallEffect::PrepareSnapshot => {
                self.plan.store.send(ToStore::Prepare);
                Ok(())
            }
            CallEffect::TakeSnapshot(command) => {
                self.keep(BackupOf::Project { command });
                Ok(())
            }
            CallEffect::CacheGet(call) => {
                self.plan.store.send(ToStore::Recall(self.asked(call)));
                let unknown = || CallMsg::Input(CallInput::CacheAnswer(None));
                self.timers.push(myself.send_after(CACHE_LOOKUP, unknown));
                Ok(())
            }
            CallEffect::CachePut(report) => {
                let asked = self.asked(self.plan.facts.call.clone());
                self.plan.store.send(ToStore::Remember { asked, report: *report });
                Ok(())
            }
            CallEffect::Invalidate(changed) => {
                self.plan.store.send(ToStore::Outdate(changed));
                Ok(())
            }
            CallEffect::FetchRestore(call) => {
                self.plan.store.send(ToStore::Fetch(call));
                Ok(())
            }
            CallEffect::AskStore(call) => self.ask_store(call).await,
            CallEffect::Go(errand) => self.go(myself, errand).await,
            CallEffect::CancelRunner => {
                self.send_runner(&ToTool::Cancel);
                if let Some(runner) = &mut self.runner {
                    runner.purpose = RunnerPhase::Cancelled;
                    self.allow(myself, RunnerLimit::Cancel);
                }
                Ok(())
            }
            CallEffect::KillRunner => {
                if let Some(runner) = &self.runner {
                    runner.life.kill();
                }
                Ok(())
            }
            CallEffect::Repair => {
                self.repair(myself);
                Ok(())
            }
            CallEffect::Show(event) => {
                let _ = self.plan.session.send_message(CallToSession::Show(event).into());
                Ok(())
            }
            CallEffect::Conclude(conclusion) => {
                self.conclude(myself, *conclusion).await;
                Ok(())
            }
        }
    }

    fn keep(&mut self, what: BackupOf) {
        let (done, copied) = oneshot::channel();
        let Call { id: call, tool, .. } = self.plan.facts.call.clone();
        let _ =
            self.plan.session.send_message(CallToSession::BackUp { call, tool, what, done }.into());
        self.copied = Some(copied);
    }

    async fn start(
        &mut self,
        myself: &ActorRef<CallMsg>,
        grant: &Grant,
        purpose: RunnerPhase,
    ) -> Result<(), CallInput> {
        let agent = self.agent(&purpose).await?;
        let saved = match purpose {
            RunnerPhase::CagingCall => self.saved(grant).await?,
            RunnerPhase::CagingProbe(_)
            | RunnerPhase::Probing
            | RunnerPhase::Running
            | RunnerPhase::Cancelled
            | RunnerPhase::Reported => None,
        };
        let started = self.plan.spawner.spawn_runner(grant, self.plan.runner).await;
        let started = started.map_err(|error| not_started(&error))?;
        self.generation = self.generation.next();
        let (call, generation) = (myself.clone(), self.generation);
        let life = WorkerProcess::attach(started, generation, self.plan.hello, move |report| {
            let _ = call.send_message(CallMsg::Runner(generation, report));
        })
        .map_err(|error| not_started(&error))?;
        let held = self.plan.hold.share(life.pid).map_err(|error| not_started(&error))?;
        life.send(&ToTool::Hold);
        life.send_descriptor(held);
        if let Some(file) = saved {
            life.send(&ToTool::Save);
            life.send_descriptor(file);
        }
        if let Some(turn) = &mut self.turn {
            for (word, descriptor) in
                [(ToTool::Overlays, turn.lock()), (ToTool::Mounted, turn.take_mount())]
            {
                if let Some(descriptor) = descriptor {
                    life.send(&word);
                    life.send_descriptor(descriptor);
                }
            }
        }
        if let Some((keys, agent)) = agent {
            life.send(&ToTool::Sign(keys));
            life.send_descriptor(agent);
        }
        life.send(&grant.begin());
        if matches!(purpose, RunnerPhase::CagingCall) {
            self.ran.runner_pid = Some(life.pid);
        }
        let proxied = matches!(purpose, RunnerPhase::CagingCall)
            && grant.confinement().profile == Profile::Command
            && grant.confinement().network == Network::Listed;
        let (pulse, born) = (Heartbeat::default(), Instant::now());
        self.runner = Some(RunnerProcess { life, cage: Vec::new(), purpose, pulse, born });
        self.allow(myself, RunnerLimit::Cage);
        self.ping_later(myself);
        self.proxy = None;
        if proxied {
            self.start_proxy(myself, &grant.proxy()).await?;
        }
        Ok(())
    }

    /// Waits for the call's turn with the overlays of the project, where its cage can show them; says
    /// where they are kept.
    async fn overlays(&mut self) -> Option<FilePath> {
        // An earlier runner of this call may have been given up in its turn.
        self.turn = None;
        let wanted = &self.plan.confinement;
        let runs_commands =
            matches!(wanted.profile, Profile::Command | Profile::Verify | Profile::Format);
        let overlays = self.plan.overlays.clone()?;
        if !runs_commands || wanted.private.is_empty() {
            return None;
        }
        self.turn = overlays.turn().await;
        self.turn.as_ref().map(|_| FilePath::from(overlays.directory()))
    }

    /// A connection to the person's ssh agent for the runner of a call that may sign.
    async fn agent(
        &self,
        purpose: &RunnerPhase,
    ) -> Result<Option<(Vec<SigningKey>, OwnedFd)>, CallInput> {
        match (purpose, &self.plan.facts.signing) {
            (RunnerPhase::CagingCall, Some(signing)) => {
                let agent = signing.connect().await.map_err(|error| not_started(&error))?;
                Ok(Some((signing.keys.clone(), agent)))
            }
            (_, _) => Ok(None),
        }
    }

    /// What a cage mounted, for the next call.
    fn mounted(&mut self, mounted: OwnedFd) {
        if let Some(turn) = &mut self.turn {
            turn.put_mount(mounted);
        }
    }

    /// A file for what the runner keeps of the protected names, where its policy has any.
    async fn saved(&self, grant: &Grant) -> Result<Option<OwnedFd>, CallInput> {
        if !sandbox::has_protected_names(grant.confinement().profile) {
            return Ok(None);
        }
        let (saved, cage) = (self.plan.saved.clone(), grant.confinement().clone());
        let call = self.plan.facts.call.id.number;
        let made = tokio::task::spawn_blocking(move || saved.begin(call, &cage)).await;
        let made = made.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        made.map(Some).map_err(|error| CallInput::Uncaged {
            step: sandbox::CageStep::Saved.name().to_owned(),
            reason: error.to_string(),
        })
    }

    /// Puts right what the runner did not, in a process of its own; the call hears of it.
    fn repair(&self, myself: &ActorRef<CallMsg>) {
        let CallArgs { spawner, hold, saved, hello, .. } = &self.plan;
        let (spawner, hold, saved) = (spawner.clone(), hold.clone(), saved.clone());
        let repairer = ProtectedRestorer { spawner, lock: hold, copies: saved, hello: *hello };
        let (call, cage) = (self.plan.facts.call.id.clone(), self.plan.confinement.clone());
        let (myself, emptied) = (myself.clone(), self.emptied);
        tokio::spawn(async move {
            let names = match emptied {
                CageCleanup::Done => repairer.restore(&call, &cage).await,
                CageCleanup::Unkillable => vec![protected_restore::unrestored_unknown(
                    "a process of the call cannot be ended",
                )],
            };
            let _ = myself.send_message(CallMsg::Input(CallInput::Repaired(names)));
        });
    }

    async fn record(&mut self, facts: Vec<crate::call::CallRecord>) -> Result<(), CallInput> {
        let (call, kind) = (&self.plan.facts.call, self.plan.facts.kind);
        let records = facts.into_iter().map(|fact| encode::call_fact(call, kind, fact)).collect();
        let (done, written) = oneshot::channel();
        let _ = self.plan.session.send_message(CallToSession::Record { records, done }.into());
        match written.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(reason)) => Err(CallInput::DiskFailed(reason)),
            Err(_) => Err(CallInput::DiskFailed("the session has ended".to_owned())),
        }
    }

    /// Asks for the record and goes on; `go` waits for it.
    fn audit_decided(&mut self, verdict: &Verdict) {
        let facts = &self.plan.facts;
        let decided = encode::audit_decision(
            &facts.call,
            facts.kind,
            self.plan.place,
            verdict,
            &self.plan.confinement,
            &facts.widens,
        );
        let Some(decided) = decided else { return };
        let (done, written) = oneshot::channel();
        let script = facts.command.clone();
        let message = AuditMsg::Decided { decided: Box::new(decided), script, done };
        let _ = self.plan.audit.send_message(message);
        self.audited = Some(written);
        self.kept = Audited::Proposal;
    }

    /// Waits until the decision is in the audit log: nothing is done before.
    async fn decided(&mut self) -> Result<(), CallInput> {
        if let Some(audited) = self.audited.take() {
            let written = audited.await.unwrap_or_else(|_| Err("the audit log is gone".into()));
            written.map_err(|reason| CallInput::DiskFailed(format!("audit log: {reason}")))?;
        }
        Ok(())
    }

    /// START is on disk, as before a runner is let go.
    async fn ask_store(&mut self, call: Call) -> Result<(), CallInput> {
        self.decided().await?;
        self.ran.started = Some(now_ms());
        self.plan.store.send(ToStore::Do(call));
        ipc::step!("supervisor: store asked", after sent().await);
        Ok(())
    }

    /// START is on disk: it was an effect before this one. The decision must be in the audit log
    /// too.
    async fn go(&mut self, myself: &ActorRef<CallMsg>, errand: Errand) -> Result<(), CallInput> {
        self.decided().await?;
        if let Some(copied) = self.copied.take() {
            // Comfort, not safety: a store that is away or slow holds no call up for long.
            let _ = tokio::time::timeout(BACKUP, copied).await;
        }
        ipc::step!("supervisor: start durable");
        self.ran.started = Some(now_ms());
        self.send_runner(&ToTool::Go(errand));
        ipc::step!("supervisor: go sent", after sent().await);
        let overdue = || CallMsg::Input(CallInput::Overdue);
        self.timers.push(myself.send_after(OVERDUE, overdue));
        Ok(())
    }

    async fn conclude(&mut self, myself: &ActorRef<CallMsg>, mut conclusion: CallConclusion) {
        conclusion.result = conclusion.result.noted(self.plan.facts.note.as_deref());
        if let Some(hint) = &self.plan.facts.hint {
            conclusion.result = tools::with_note(conclusion.result, hint);
        }
        if matches!(self.kept, Audited::Nothing) {
            // Stopped, or lost, before anybody decided: what was proposed is kept all the same.
            let why = Basis::Unjudgeable("it ended before it was decided".to_owned());
            self.audit_decided(&Verdict::Deny(why, String::new()));
        }
        self.forget_runner();
        self.ran.ended = now_ms();
        let decided = self.proxy.take().map(|beside| beside.machine.decided().clone());
        self.ran.decided = decided.unwrap_or_default();
        let call = &self.plan.facts.call;
        let ended = Box::new(encode::audit_end(call, &conclusion, &self.ran));
        let (done, written) = oneshot::channel();
        let _ = self.plan.audit.send_message(AuditMsg::Ended { ended, done });
        let written = written.await.unwrap_or_else(|_| Err("it is gone".to_owned()));
        let (head, unaudited) = match written {
            Ok(head) => (Some(head), None),
            Err(reason) => (None, Some(reason)),
        };
        let refusals = conclusion.report.as_ref().map(|report| report.refusals.as_slice());
        let left = protected_restore::unrestored(conclusion.tampered());
        let tampered = conclusion.tampered().iter();
        let tampered = tampered.filter(|name| name.remedy != Remedy::Granted);
        let tampered = tampered.map(ToString::to_string);
        let proxied = self.ran.decided.connections.iter().filter_map(crate::proxy_machine::refusal);
        let refused = refusals.unwrap_or_default().iter().map(in_words);
        let refused = refused.chain(proxied).chain(tampered).collect();
        let record = encode::call_end(call, &conclusion, head);
        let seen = file_versions::record(conclusion.report.as_ref());
        let did = did(&conclusion);
        let Call { id, tool, .. } = call.clone();
        let result = conclusion.result;
        let concluded =
            FinishedCall { record, seen, did, call: id, tool, result, refused, left, unaudited };
        let _ = self.plan.session.send_message(CallToSession::Finished(Box::new(concluded)).into());
        myself.stop(None);
    }

    fn asked(&self, call: Call) -> Asked {
        Asked { call, max_result_chars: self.plan.facts.max_result_chars }
    }

    fn send_runner(&self, word: &ToTool) {
        if let Some(runner) = &self.runner {
            runner.life.send(word);
        }
    }

    /// Closes the channel of a runner whose end is of no interest any more.
    fn forget_runner(&mut self) {
        self.runner = None;
        self.generation = self.generation.next();
    }

    fn rows(&self) -> Vec<ProcessRow> {
        let pid = self.runner.as_ref().map_or(0, |runner| runner.life.pid);
        let runner = self.row_of(self.plan.runner, pid);
        std::iter::once(runner).chain(self.proxy_row()).collect()
    }

    fn row_of(&self, executable: tools::RunnerProgram, pid: u32) -> ProcessRow {
        ProcessRow {
            worker: executable.executable().to_owned(),
            session: Some(self.plan.facts.call.id.session.clone()),
            pid,
            generation: self.generation.0,
            restarts: 0,
            last_cause: None,
            cage: None,
        }
    }
}

impl RunnerLimit {
    fn time(self) -> Duration {
        match self {
            Self::Cage => CAGE,
            Self::Probe => PROBE,
            Self::Cancel => CANCEL,
            Self::Exit => EXIT,
            Self::ProxyCage => CAGE,
            Self::ProxyExit => CANCEL,
        }
    }
}

/// Ends the call: what would have followed the start, its record above all, does not, so that a
/// second try must not follow either.
fn not_started(error: &dyn std::error::Error) -> CallInput {
    CallInput::Uncaged { step: "start".to_owned(), reason: error.to_string() }
}

/// What a call says it did to files. One that failed or was cut short may not know.
fn did(conclusion: &CallConclusion) -> Option<Did> {
    let report = conclusion.report.as_ref().filter(|report| !report.result.is_error)?;
    Some(Did { effects: report.effects.clone(), left: report.seen.clone() })
}

/// One refusal as the screens show it.
fn in_words(refusal: &Refusal) -> String {
    let Refusal { kind, syscall, detail, errno, count, pid: _ } = refusal;
    let kind = match kind {
        RefusalKind::Refused => "refused",
        RefusalKind::Predicted => "refused by the kernel (predicted)",
    };
    let error = std::io::Error::from_raw_os_error(*errno);
    let times = if *count > 1 { format!(", {count} times") } else { String::new() };
    format!("{kind}: {syscall} {detail} ({error}){times}")
}

/// Lets the words that are queued go out, before a test holds this process.
#[cfg(agentd_hooks)]
async fn sent() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}
