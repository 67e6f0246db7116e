//! The call actor: carries out the effects of the call's machine, one after another.
//!
//! It owns the runner's process (`runner_process`) and that of a command's proxy (`proxy_process`), and writes
//! the call's records (`records`). `reserve` takes a runner that the session started before, and `questions` has the
//! times of questions. `job` decides about calls that ask a command in the background for something, `server` about
//! those of an MCP server; both are pure, and their steps are carried out here. Only this file makes grants for calls.

mod instructions;
mod job;
mod protected_files;
mod proxy_process;
mod questions;
mod records;
mod reserve;
mod runner_process;
mod server;
mod state;

pub(crate) use job::{ENDED, ended, line_pattern, refused};
pub(crate) use server::refused_by_server;
pub(crate) use state::{CallArgs, CallState};

use crate::messages::{BackupOf, CallMsg, CallToSession, DetachedCall, TaskToSession};
use crate::records::audit::RunFacts;
use crate::unix_time::now_ms;
use call::{
    CallEffect, CallInput, CallMachine, CallRecord, Executor, ProxyAttempt, ProxyInput,
    ServerDemand,
};
use job::{Detached, Job, JobStep, Reached};
use launch::cage_cleanup::CageCleanup;
use launch::frozen_calls;
use launch::grant::{Grant, NotAllowed};
use launch::runner::Runner;
use launch::session_network::SessionNetwork;
use protocol::broker::ToBroker;
use protocol::call::{Call, CallOrigin};
use protocol::confinement::Confinement;
use protocol::ids::Generation;
use protocol::judgement::Verdict;
use protocol::store::{CacheKey, ToStore, UndoCover, UndoScope};
use protocol::tool::{RunnerJob, ToCall};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use records::decision_durable;
use server::ServerRun;
use state::{Audited, BeforeGo, CallTimers};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tool_specs::RunsIn;

/// A runner ends a command after at most ten minutes. A call that has not ended then is killed.
const OVERDUE: Duration = Duration::from_secs(630);
/// How long `Go` waits for the backup that makes the call undoable.
const BACKUP: Duration = Duration::from_secs(2);
/// A command that ends within this time gives its result at once, although it was to run in the
/// background: most of those are servers that could not start.
const AT_ONCE: Duration = Duration::from_secs(1);
/// How long a call waits for a cached result.
const CACHE_LOOKUP: Duration = Duration::from_millis(200);
/// How long a call that passes only if undo covers it waits for the store: longer than the store looks at a project
/// and copies it.
const UNDO_COVER: Duration = Duration::from_secs(6);
const LATE_STORE: &str = "the session's store did not answer in time";

/// The actor.
pub(crate) struct CallActor;

impl Actor for CallActor {
    type Msg = CallMsg;
    type State = CallState;
    type Arguments = CallArgs;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        args: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        ipc::step!("supervisor: proposed");
        myself.send_message(CallMsg::Input(CallInput::Begin))?;
        Ok(CallState {
            machine: CallMachine::new(args.facts.clone()),
            runner: None,
            probe_job: None,
            proxy: None,
            proxy_attempt: ProxyAttempt::First,
            generation: Generation(0),
            timers: CallTimers::default(),
            job: Job::of(&args.facts),
            reserved_for: None,
            renewal: None,
            before_go: BeforeGo::default(),
            audited: Audited::Nothing,
            ran: RunFacts::default(),
            cage_cleanup: CageCleanup::Done,
            args,
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
                question.deadline = now_ms().saturating_add(state.args.question_ms);
                Some(CallInput::Verdict(Verdict::Ask(question)))
            }
            CallMsg::Input(input) => Some(input),
            CallMsg::BrokerBack(generation) => {
                state.args.broker.up(generation);
                Some(CallInput::BrokerBack)
            }
            CallMsg::StoreBack(generation) => {
                state.args.store.up(generation);
                Some(CallInput::StoreBack)
            }
            CallMsg::QuestionDeadline(deadline) => state.on_question_deadline(&myself, deadline),
            CallMsg::Runner(generation, _) if generation != state.generation => None,
            CallMsg::Runner(_, event) => state.on_runner_event(&myself, event).await,
            CallMsg::Reserve(runner) => state.on_reserve(&myself, runner).await.err(),
            CallMsg::ReserveChecked(generation, same) if generation == state.generation => {
                state.on_reserve_checked(same)
            }
            CallMsg::ReserveChecked(..) => None,
            CallMsg::ReserveOverdue(generation) if generation != state.generation => None,
            CallMsg::ReserveOverdue(_) => state.on_reserve(&myself, None).await.err(),
            CallMsg::Proxy(generation, _) if generation != state.generation => None,
            CallMsg::Proxy(_, event) => {
                state.on_proxy_event(&myself, event).await;
                None
            }
            CallMsg::Job(request, from) => {
                let steps = state.job.ask(request.asks, from, state.ran.time_ms());
                state.carry_out_job(&myself, steps);
                None
            }
            CallMsg::Server(request, from, timeout_ms) => {
                let run = match state.runner.as_ref().is_some_and(Runner::is_running) {
                    true => ServerRun::Runs,
                    false => ServerRun::HasEnded,
                };
                let steps = state.job.asks.request(request, from, timeout_ms, run);
                state.carry_out_job(&myself, steps);
                None
            }
            CallMsg::JobWaitOver(number) => {
                let steps = state.job.read_over(number, state.ran.time_ms());
                state.carry_out_job(&myself, steps);
                None
            }
            CallMsg::InputWaitOver(write) => {
                let steps = state.job.write_over(write);
                state.carry_out_job(&myself, steps);
                None
            }
            CallMsg::Protected(order) => state.tell_of_protected(order),
            CallMsg::Freeze(freeze) => {
                if let (Some(_), Some(pid)) = (&state.runner, state.ran.runner_pid) {
                    // One after the other: the last one counts.
                    let apply = move || frozen_calls::apply(pid, freeze);
                    let _ = tokio::task::spawn_blocking(apply).await;
                }
                None
            }
            CallMsg::Describe(reply) => {
                let _ = reply.send(state.rows());
                None
            }
        };
        if let Some(input) = input {
            if let CallInput::Output(text) = &input {
                state.on_printed(&myself, text);
            }
            state.dispatch(&myself, input).await;
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<Self::Msg>,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        state.timers.abort();
        Ok(())
    }
}

impl CallState {
    /// Hands an input to the machine; where there is a proxy, some go through the proxy's machine first.
    async fn dispatch(&mut self, myself: &ActorRef<CallMsg>, input: CallInput) {
        if self.proxy.is_none() {
            return self.carry_out(myself, input).await;
        }
        let input = match ProxyInput::of(input) {
            Ok(input) => input,
            Err(input) => return self.carry_out(myself, *input).await,
        };
        self.proxy_step(myself, input).await;
    }

    async fn carry_out(&mut self, myself: &ActorRef<CallMsg>, input: CallInput) {
        let mut effects = VecDeque::from(self.machine.step(input));
        while let Some(effect) = effects.pop_front() {
            if let Err(input) = self.effect(myself, effect).await {
                effects = VecDeque::from(self.machine.step(input));
            }
        }
    }

    /// Carries one effect out. The effects of an error replace the ones that would have followed.
    async fn effect(
        &mut self,
        myself: &ActorRef<CallMsg>,
        effect: CallEffect,
    ) -> Result<(), CallInput> {
        match effect {
            CallEffect::Probe(job) => {
                let grant = Grant::probe(&self.args.facts.call, &self.args.confinement);
                self.start_probe(myself, grant, job).await?;
                ipc::step!("supervisor: probe spawned", after sent().await);
                Ok(())
            }
            CallEffect::Judge(case) => {
                self.args.broker.send(ToBroker::Judge(Box::new(case)));
                ipc::step!("supervisor: judge sent", after sent().await);
                Ok(())
            }
            CallEffect::ForgetQuestion => {
                let call = self.args.facts.call.id.clone();
                self.args.broker.send(ToBroker::Forget(call));
                Ok(())
            }
            CallEffect::Record(facts) => self.record(facts).await,
            CallEffect::Ask(question) => {
                self.wait_until(myself, question.deadline);
                let _ = self.args.session.send_message(CallToSession::Asked(question).into());
                Ok(())
            }
            CallEffect::OfServer(effect) => {
                self.server_effect(myself, effect);
                Ok(())
            }
            CallEffect::AuditDecision(verdict) => {
                self.args.facts.remarks.take_words_of(&verdict);
                ipc::step!("supervisor: verdict in");
                self.audit_decided(&verdict);
                Ok(())
            }
            CallEffect::AuditExpired => {
                ipc::step!("supervisor: verdict in");
                self.audit_expired();
                Ok(())
            }
            CallEffect::StartRunner(verdict) => self.start_runner(myself, verdict).await,
            CallEffect::BackUp(paths) => {
                self.back_up(BackupOf::Paths(paths));
                Ok(())
            }
            CallEffect::AskUndo(of) => {
                ask_undo(self, myself, of);
                Ok(())
            }
            CallEffect::PrepareSnapshot => {
                self.args.store.send(ToStore::PrepareSnapshot);
                Ok(())
            }
            CallEffect::TakeSnapshot(command) => {
                self.back_up(BackupOf::Project { command });
                Ok(())
            }
            CallEffect::CacheGet(call) => {
                self.args.store.send(ToStore::CacheGet(self.cache_key(call)));
                let unknown = || CallMsg::Input(CallInput::CacheAnswer(None));
                self.timers.others.push(myself.send_after(CACHE_LOOKUP, unknown));
                Ok(())
            }
            CallEffect::CachePut(report) => {
                let asked = self.cache_key(self.args.facts.call.clone());
                self.args.store.send(ToStore::CachePut { asked, report: *report });
                Ok(())
            }
            CallEffect::Invalidate(changed) => {
                self.args.store.send(ToStore::Invalidate(changed));
                Ok(())
            }
            CallEffect::FetchRestore(call) => {
                self.args.store.send(ToStore::FetchBackups(call));
                Ok(())
            }
            CallEffect::AskStore(call) => self.ask_store(call).await,
            CallEffect::PrepareGo(facts) => {
                self.prepare_go(myself, facts);
                Ok(())
            }
            CallEffect::Go(job) => self.go(myself, job).await,
            CallEffect::Detach => {
                self.detach();
                Ok(())
            }
            CallEffect::AskJob(request) => {
                self.may_begin().await?;
                let message = CallToSession::AskJob { request, from: myself.clone() };
                let _ = self.args.session.send_message(message.into());
                self.sent();
                Ok(())
            }
            CallEffect::AskServer(request) => {
                if request.demand != ServerDemand::Withdraw {
                    self.may_begin().await?;
                }
                let message = CallToSession::AskServer { request, from: myself.clone() };
                let _ = self.args.session.send_message(message.into());
                self.sent();
                Ok(())
            }
            CallEffect::StartTask(request) => {
                self.may_begin().await?;
                let call = self.args.facts.call.id.number;
                send_task(self, TaskToSession::Start { call, request });
                self.sent();
                Ok(())
            }
            CallEffect::StopTask => {
                send_task(self, TaskToSession::Stop(self.args.facts.call.id.number));
                Ok(())
            }
            CallEffect::CancelRunner => {
                self.runner.iter_mut().for_each(Runner::cancel);
                Ok(())
            }
            CallEffect::KillRunner => {
                match &self.runner {
                    Some(runner) => runner.kill(),
                    None => self.leave_reserve(myself),
                }
                Ok(())
            }
            CallEffect::Repair => {
                self.repair(myself);
                Ok(())
            }
            CallEffect::Show(event) => {
                let _ = self.args.session.send_message(CallToSession::Show(event).into());
                Ok(())
            }
            CallEffect::Conclude(conclusion) => {
                self.conclude(myself, *conclusion).await;
                Ok(())
            }
        }
    }

    /// Starts a runner for the call.
    async fn start_new(
        &mut self,
        myself: &ActorRef<CallMsg>,
        verdict: Verdict,
    ) -> Result<(), CallInput> {
        let mut confinement = self.args.confinement.clone();
        let (turn, overlays) = self.overlay_turn().await.unzip();
        confinement.overlays = overlays;
        let grant = self.grant(&verdict, confinement).map_err(|error| not_started(&error))?;
        self.start_call(myself, grant, turn).await
    }

    /// Notes the directories that the call may write, and reads those of all others: no link in one of them
    /// leads to a grant.
    fn note_written_dirs(&mut self) -> io::Result<()> {
        let (written, confinement) = (&self.args.written, &mut self.args.confinement);
        // The workspaces of a fleet's tasks are its own.
        if self.args.lease.is_none() {
            written.add(confinement)?;
        }
        confinement.written_elsewhere = written.all()?;
        Ok(())
    }

    /// The right to run the call in this cage, by its verdict.
    fn grant(&self, verdict: &Verdict, confinement: Confinement) -> Result<Grant, NotAllowed> {
        Grant::of(&self.args.facts.call, verdict, confinement).map(|(grant, _)| grant)
    }

    fn back_up(&mut self, what: BackupOf) {
        let (done, backed_up) = oneshot::channel();
        let Call { id: call, tool, .. } = self.args.facts.call.clone();
        let _ =
            self.args.session.send_message(CallToSession::BackUp { call, tool, what, done }.into());
        self.before_go.backed_up = Some(backed_up);
    }

    async fn ask_store(&mut self, call: Call) -> Result<(), CallInput> {
        self.may_begin().await?;
        self.args.store.send(ToStore::Do(call));
        self.sent();
        ipc::step!("supervisor: store asked", after sent().await);
        Ok(())
    }

    /// Waits aside: the runner completes its cage meanwhile, and a stop finds a call without `Go`.
    fn prepare_go(&mut self, myself: &ActorRef<CallMsg>, facts: Vec<CallRecord>) {
        let recorded = self.recorded(facts);
        let BeforeGo { decision_written: decision, backed_up } =
            std::mem::take(&mut self.before_go);
        // Elsewhere undo is a convenience: a store that is away or slow delays no call for long.
        let patience = if self.machine.is_promised_undo() { UNDO_COVER } else { BACKUP };
        let (call, lease) = (myself.clone(), self.args.lease.clone());
        tokio::spawn(async move {
            let durable = match recorded.await {
                Ok(()) => decision_durable(decision).await,
                failed => failed,
            };
            let input = match durable {
                Ok(()) => go_prepared(backed_up, patience).await,
                Err(failed) => failed,
            };
            if let Some(lease) = lease {
                let _ = lease.turns(false).await;
            }
            let _ = call.send_message(CallMsg::Input(input));
        });
    }

    async fn go(&mut self, myself: &ActorRef<CallMsg>, job: RunnerJob) -> Result<(), CallInput> {
        ipc::step!("supervisor: start durable");
        self.holds_lease().map_err(CallInput::LeaseLost)?;
        self.send_go(job).map_err(|input| *input)?;
        self.machine.sent();
        ipc::step!("supervisor: go sent", after sent().await);
        let overdue = || CallMsg::Input(CallInput::Overdue);
        let time = match self.machine.is_in_background() {
            // A runner that lost its cage is started again.
            true => {
                self.tell_runner(ToCall::Background);
                job::OVERDUE
            }
            false => OVERDUE,
        };
        self.timers.overdue = Some(myself.send_after(time, overdue));
        Ok(())
    }

    /// Starts the time after which the conversation goes on while the command runs, if there is one.
    fn start_background_timer(&mut self, myself: &ActorRef<CallMsg>) {
        match (self.args.facts.runs_in, self.args.background_after_ms) {
            (RunsIn::Background, after) => {
                let is_server = self.args.facts.call.origin == CallOrigin::ServerStart;
                let after = if is_server { Duration::from_millis(after) } else { AT_ONCE };
                let detach = || CallMsg::Input(CallInput::Detach);
                self.timers.others.push(myself.send_after(after, detach));
            }
            // Undo covers it only as long as no other call runs.
            (RunsIn::Foreground, _) if self.machine.is_promised_undo() => {}
            (RunsIn::Foreground, after @ 1..) => {
                let call = self.args.facts.call.id.clone();
                let slow = move || CallToSession::Slow(call).into();
                let timer = self.args.session.send_after(Duration::from_millis(after), slow);
                if let Some(earlier) = self.timers.slow.replace(timer) {
                    earlier.abort();
                }
            }
            (RunsIn::Foreground, 0) => {}
        }
    }

    /// The conversation goes on. A command's runner answers with its network; a sub-agent has none.
    fn detach(&mut self) {
        let Executor::SubAgent(_) = self.args.facts.executor else {
            return self.tell_runner(ToCall::Background);
        };
        let text = self.args.facts.remarks.before(job::sub_agent_goes_on(&self.args.facts.call));
        let detached = DetachedCall::of(&self.args.facts, (text, None), None);
        let _ = self.args.session.send_message(CallToSession::Detached(detached).into());
    }

    /// The runner lets the command go on without the conversation's wait.
    fn on_in_background(&mut self, myself: &ActorRef<CallMsg>) {
        let made = std::mem::take(&mut self.job.namespace);
        let reached = match self.args.network.is_some() || made.descriptors().next().is_some() {
            true => Reached::BySession,
            false => Reached::AsUsual,
        };
        let made = SessionNetwork::of(&self.args.facts, &self.args.confinement, made).map(Arc::new);
        let network = self.args.network.clone().or(made);
        let message = match self.job.goes_on(reached) {
            Some(Detached { text, notice }) => {
                let overdue = || CallMsg::Input(CallInput::Overdue);
                let overdue = myself.send_after(job::OVERDUE, overdue);
                if let Some(earlier) = self.timers.overdue.replace(overdue) {
                    earlier.abort();
                }
                let text = self.args.facts.remarks.before(text);
                let detached = DetachedCall::of(&self.args.facts, (text, notice), network);
                CallToSession::Detached(detached)
            }
            None => CallToSession::NetworkMoved { call: self.args.facts.call.id.number, network },
        };
        let _ = self.args.session.send_message(message.into());
    }

    /// The command printed something.
    fn on_printed(&mut self, myself: &ActorRef<CallMsg>, text: &str) {
        let steps = self.job.printed(text, self.ran.time_ms());
        self.carry_out_job(myself, steps);
    }

    fn carry_out_job(
        &mut self,
        myself: &ActorRef<CallMsg>,
        steps: Vec<JobStep<ActorRef<CallMsg>>>,
    ) {
        for step in steps {
            match step {
                JobStep::Input(call, input) => drop(call.send_message(CallMsg::Input(*input))),
                JobStep::ToRunner(what) => self.tell_runner(what),
                JobStep::Says(said) => {
                    let call = self.args.facts.call.id.clone();
                    let said = CallToSession::ServerSays { call, said };
                    let _ = self.args.session.send_message(said.into());
                }
                JobStep::ReadOver(time, number) => {
                    let over = move || CallMsg::JobWaitOver(number);
                    self.timers.others.push(myself.send_after(time, over));
                }
                JobStep::WriteOver(time, number) => {
                    let over = move || CallMsg::InputWaitOver(number);
                    self.timers.others.push(myself.send_after(time, over));
                }
                JobStep::Stop => drop(myself.send_message(CallMsg::Input(CallInput::Cancel))),
            }
        }
    }

    /// Says something to the call's command.
    fn tell_runner(&self, what: ToCall) {
        self.runner.iter().for_each(|runner| runner.tell(what.clone()));
    }

    /// The store, another call or a sub-agent has the request, and begins with it.
    fn sent(&mut self) {
        self.machine.sent();
        self.ran.started.get_or_insert_with(now_ms);
    }

    fn cache_key(&self, call: Call) -> CacheKey {
        CacheKey { call, max_result_chars: self.args.facts.max_result_chars }
    }
}

/// Fails the call. The effects after the start are not carried out, so it must not be retried.
fn not_started(error: &dyn std::error::Error) -> CallInput {
    CallInput::CageFailed { step: "start".to_owned(), reason: error.to_string() }
}

/// Lets queued messages go out before a test stops this process.
#[cfg(agentd_hooks)]
async fn sent() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

fn send_task(call: &CallState, message: TaskToSession) {
    let _ = call.args.session.send_message(message.into());
}

/// All before `Go` is done, once the store has made the copies of a call that needs some, or is late.
async fn go_prepared(
    backed_up: Option<oneshot::Receiver<UndoCover>>,
    patience: Duration,
) -> CallInput {
    let Some(backed_up) = backed_up else { return CallInput::GoPrepared };
    match tokio::time::timeout(patience, backed_up).await {
        Ok(Ok(UndoCover::Covers)) => CallInput::GoPrepared,
        Ok(Ok(UndoCover::Leaves(why))) => CallInput::GoWithoutCopies(why),
        Ok(Err(_)) => CallInput::GoWithoutCopies("the session's store does not run".to_owned()),
        Err(_) => CallInput::GoWithoutCopies(LATE_STORE.to_owned()),
    }
}

/// Without an answer in time a person is asked.
fn ask_undo(call: &mut CallState, myself: &ActorRef<CallMsg>, of: UndoScope) {
    call.timers.others.push(myself.send_after(UNDO_COVER, late_undo_cover));
    call.args.store.send(ToStore::AskUndo { call: call.args.facts.call.id.clone(), of });
}

fn late_undo_cover() -> CallMsg {
    CallMsg::Input(CallInput::UndoCovers(UndoCover::Leaves(LATE_STORE.to_owned())))
}
