//! The call actor: carries out the effects of the call's machine, one after another.
//!
//! It owns the runner's process (`runner_process`) and that of a command's proxy (`proxy_process`), and writes
//! the call's records (`records`). `reserve` takes a runner that the session started before, `job` serves calls
//! about a command in the background, `server` those of an MCP server, and `questions` has the times of
//! questions. Only this file makes grants for calls.

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

use crate::messages::{BackupOf, CallMsg, CallToSession, TaskToSession};
use crate::records::audit::RunFacts;
use crate::unix_time::now_ms;
use call::{
    CallEffect, CallInput, CallMachine, CallRecord, ProxyAttempt, ProxyInput, ServerDemand,
};
use job::Job;
use launch::cage_cleanup::CageCleanup;
use launch::frozen_calls;
use launch::grant::{Grant, NotAllowed};
use launch::runner::Runner;
use protocol::broker::ToBroker;
use protocol::call::Call;
use protocol::confinement::Confinement;
use protocol::ids::Generation;
use protocol::judgement::Verdict;
use protocol::store::{CacheKey, ToStore};
use protocol::tool::{RunnerJob, ToCall};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use records::decision_durable;
use state::{Audited, BeforeGo, CallTimers};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tokio::sync::oneshot;

/// A runner ends a command after at most ten minutes. A call that has not ended then is killed.
const OVERDUE: Duration = Duration::from_secs(630);
/// How long `Go` waits for the backup that makes the call undoable.
const BACKUP: Duration = Duration::from_secs(2);
/// How long a call waits for a cached result.
const CACHE_LOOKUP: Duration = Duration::from_millis(200);

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
            args,
            runner: None,
            probe_job: None,
            proxy: None,
            proxy_attempt: ProxyAttempt::First,
            generation: Generation(0),
            timers: CallTimers::default(),
            job: Job::default(),
            reserved_for: None,
            renewal: None,
            before_go: BeforeGo::default(),
            audited: Audited::Nothing,
            ran: RunFacts::default(),
            cage_cleanup: CageCleanup::Done,
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
                state.on_job_request(&myself, request, from);
                None
            }
            CallMsg::Server(request, from, ms) => state.on_server_request(request, from, ms),
            CallMsg::JobWaitOver(number) => {
                state.on_read_wait_over(number);
                None
            }
            CallMsg::InputWaitOver(write) => {
                state.on_input_wait_over(write);
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
                state.on_printed(text);
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
        let input = match input {
            CallInput::Caged(enforced) => ProxyInput::RunnerCaged(enforced),
            CallInput::Done(report) => ProxyInput::Reported(report),
            CallInput::RunnerEnded { cause } => ProxyInput::RunnerEnded(cause),
            input @ (CallInput::Begin
            | CallInput::GoPrepared
            | CallInput::Began
            | CallInput::RunnerGone(_)
            | CallInput::ReserveLost
            | CallInput::Probed(_)
            | CallInput::Verdict(_)
            | CallInput::StoppedByAnswer(..)
            | CallInput::Expired
            | CallInput::BrokerBack
            | CallInput::BrokerFailed(_)
            | CallInput::CageFailed { .. }
            | CallInput::Output(_)
            | CallInput::Detach
            | CallInput::OtherAnswered(_)
            | CallInput::ServerAnswered(_)
            | CallInput::ServerLost { .. }
            | CallInput::OfServer(_)
            | CallInput::TaskEnded(_)
            | CallInput::Cancel
            | CallInput::Overdue
            | CallInput::Stored(_)
            | CallInput::RestoreFetched(_)
            | CallInput::StoreLost { .. }
            | CallInput::StoreBack
            | CallInput::CacheAnswer(_)
            | CallInput::CageLost { .. }
            | CallInput::Repaired(_)
            | CallInput::WrongGrant(_)
            | CallInput::DiskFailed(_)
            | CallInput::LeaseLost(_)) => return self.carry_out(myself, input).await,
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
                self.send_task(TaskToSession::Start { call, request });
                self.sent();
                Ok(())
            }
            CallEffect::StopTask => {
                self.send_task(TaskToSession::Stop(self.args.facts.call.id.number));
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

    fn send_task(&self, message: TaskToSession) {
        let _ = self.args.session.send_message(message.into());
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
        let (call, lease) = (myself.clone(), self.args.lease.clone());
        tokio::spawn(async move {
            let durable = match recorded.await {
                Ok(()) => decision_durable(decision).await,
                failed => failed,
            };
            if let (Ok(()), Some(backed_up)) = (&durable, backed_up) {
                // Undo is a convenience: a store that is away or slow delays no call for long.
                let _ = tokio::time::timeout(BACKUP, backed_up).await;
            }
            if let Some(lease) = lease {
                let _ = lease.turns(false).await;
            }
            let input = durable.map_or_else(|failed| failed, |()| CallInput::GoPrepared);
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
