//! The worker actor: owns one worker process and restarts it when it dies.
//!
//! The actor is thin: it owns the child and its channel through [`WorkerProcess`], applies
//! [`RestartHistory`]'s decision when the child ends, and reports to its owner. The owner sends its
//! state again to each new process.

use launch::heartbeat::{Heartbeat, PingAction};
use launch::process::{ExitCause, ProcessEvent, WorkerProcess};
use launch::progress::MessageProgress;
use launch::restart::{self, RestartDecision, RestartHistory, WorkerProgress};
use launch::spawner::{SpawnedWorker, Spawner, WorkerKind, WorkerSpawnError};
use launch::timeouts::WorkerTimeouts;
use protocol::Link;
use protocol::client::ProcessRow;
use protocol::ids::{Generation, SessionId};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Events that the owner of a worker receives.
pub(crate) enum WorkerEvent<L: Link> {
    /// A new process started. Messages to an earlier one are void.
    Up(Generation),
    /// A message. Drop the permit once it is handled.
    Message { message: L::From, permit: OwnedSemaphorePermit },
    /// The process ended. Another follows unless `failed` gives a reason.
    Down { cause: String, failed: Option<String> },
}

/// Messages to a worker actor.
pub(crate) enum WorkerMsg<L: Link> {
    /// For the process of this generation. Dropped if another process runs or none does: the owner
    /// sends everything again at `Up`.
    ToWorker(Generation, ToWorker<L>),
    /// An event of the process of that generation.
    Process(Generation, ProcessEvent<L>),
    /// Start the process: the first time, or after the wait before a restart.
    Start,
    /// The worker is not needed for now: end it. `Resume` starts another.
    Suspend,
    /// The worker is needed: start it if it is suspended.
    Resume,
    /// The work made progress: earlier crashes no longer count as a crash loop.
    ResetFailures,
    /// A person asks for another try: forget earlier failures, and start the worker unless it runs.
    Retry,
    /// Close the channel, and kill the worker if it stays. Answered when it is dead.
    Stop(oneshot::Sender<()>),
    /// A row for `ps`.
    Describe(oneshot::Sender<ProcessRow>),
}

/// Input of one process. Made only by [`crate::worker_ref::WorkerRef`].
pub(crate) enum ToWorker<L: Link> {
    Message(L::To),
    /// Messages whose sender may send more once this worker has read them.
    Forwarded {
        messages: Vec<L::To>,
        permit: OwnedSemaphorePermit,
    },
    /// A heartbeat. A process that still owes a pong is killed.
    Ping(L::To),
    /// A descriptor after the message sent last.
    Descriptor(OwnedFd),
}

pub(crate) type EventSink<L> = Arc<dyn Fn(WorkerEvent<L>) + Send + Sync>;

/// Arguments of a worker actor.
pub(crate) struct WorkerArgs<L: Link> {
    pub(crate) kind: WorkerKind,
    pub(crate) session: Option<SessionId>,
    pub(crate) spawner: Spawner,
    pub(crate) timeouts: WorkerTimeouts,
    pub(crate) on_event: EventSink<L>,
}

/// State of the worker, and if it is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunState {
    /// Runs, or is being restarted.
    Running,
    /// Asked to end, and has not ended yet.
    Suspending,
    /// Asked to end; another is started once it has ended.
    Resuming,
    /// No process runs until one is needed.
    Suspended,
}

pub(crate) struct WorkerState<L: Link> {
    args: WorkerArgs<L>,
    generation: Generation,
    process: Option<WorkerProcess<L>>,
    run_state: RunState,
    progress: WorkerProgress,
    heartbeat: Heartbeat,
    restarts: RestartHistory,
    restart_count: u32,
    last_cause: Option<String>,
    started_at: Instant,
    stopping: Option<oneshot::Sender<()>>,
}

/// The actor.
pub(crate) struct WorkerActor<L: Link>(std::marker::PhantomData<fn(L)>);

impl<L: Link> WorkerActor<L> {
    pub(crate) fn new() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<L: Link + 'static> Actor for WorkerActor<L>
where
    L::From: MessageProgress,
{
    type Msg = WorkerMsg<L>;
    type State = WorkerState<L>;
    type Arguments = WorkerArgs<L>;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        plan: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        let restarts = RestartHistory::new(plan.timeouts.limits);
        let mut state = WorkerState {
            args: plan,
            generation: Generation(0),
            process: None,
            run_state: RunState::Running,
            progress: WorkerProgress::NoInput,
            heartbeat: Heartbeat::default(),
            restarts,
            restart_count: 0,
            last_cause: None,
            started_at: Instant::now(),
            stopping: None,
        };
        // The first start happens here, so that the session opener gets the error if the executable
        // is missing.
        let started = state.args.spawner.spawn_worker(state.args.kind).await?;
        state.attach(&myself, started)?;
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            WorkerMsg::ToWorker(generation, what) => state.send_to_process(generation, what),
            WorkerMsg::Process(generation, _) if generation != state.generation => {}
            WorkerMsg::Process(_, ProcessEvent::Message { message, permit }) => {
                if message.progress() == WorkerProgress::Progressed {
                    state.progress = WorkerProgress::Progressed;
                }
                state.heartbeat.on_message();
                (state.args.on_event)(WorkerEvent::Message { message, permit });
            }
            WorkerMsg::Process(_, ProcessEvent::Descriptor(_)) => {
                if let Some(process) = &state.process {
                    process.kill_for_breach("an unexpected descriptor");
                }
            }
            WorkerMsg::Process(_, ProcessEvent::Ended(cause, _)) => state.on_ended(&myself, &cause),
            WorkerMsg::Start => {
                let wanted = state.run_state == RunState::Running && state.stopping.is_none();
                if state.process.is_none() && wanted {
                    let spawned = state.args.spawner.spawn_worker(state.args.kind).await;
                    state.on_spawned(&myself, spawned);
                }
            }
            WorkerMsg::Suspend => state.suspend(),
            WorkerMsg::Resume => state.resume(&myself),
            WorkerMsg::ResetFailures => state.restarts.reset(),
            WorkerMsg::Retry => {
                state.restarts.reset();
                let _ = myself.send_message(WorkerMsg::Start);
            }
            WorkerMsg::Stop(done) => state.stop(&myself, done),
            WorkerMsg::Describe(reply) => {
                let _ = reply.send(state.process_row());
            }
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<Self::Msg>,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(done) = state.stopping.take() {
            let _ = done.send(());
        }
        Ok(())
    }
}

impl<L: Link + 'static> WorkerState<L>
where
    L::From: MessageProgress,
{
    fn attach(
        &mut self,
        myself: &ActorRef<WorkerMsg<L>>,
        started: SpawnedWorker,
    ) -> std::io::Result<()> {
        self.generation = self.generation.next();
        self.progress = WorkerProgress::NoInput;
        self.heartbeat = Heartbeat::default();
        let (actor, generation) = (myself.clone(), self.generation);
        let process =
            WorkerProcess::attach(started, generation, self.args.timeouts.hello, move |report| {
                let _ = actor.send_message(WorkerMsg::Process(generation, report));
            })?;
        let (worker, pid) = (self.args.kind.executable(), process.pid());
        tracing::info!(worker, pid, %generation, session = ?self.args.session, "started");
        self.process = Some(process);
        (self.args.on_event)(WorkerEvent::Up(generation));
        Ok(())
    }

    /// Passes a message to the process that it is for, if that one still runs.
    fn send_to_process(&mut self, generation: Generation, what: ToWorker<L>) {
        let Some(process) = self.process.as_ref().filter(|_| generation == self.generation) else {
            let worker = self.args.kind.executable();
            tracing::debug!(worker, %generation, now = %self.generation, "a message for an ended \
                                                                          process was dropped");
            return;
        };
        // A ping is not work.
        if self.progress == WorkerProgress::NoInput && !matches!(what, ToWorker::Ping(_)) {
            self.progress = WorkerProgress::NoProgress;
        }
        match what {
            ToWorker::Message(message) => process.send(&message),
            ToWorker::Forwarded { messages, permit } => process.forward(&messages, permit),
            ToWorker::Descriptor(descriptor) => process.send_descriptor(descriptor),
            ToWorker::Ping(ping) => {
                match self.heartbeat.next_action(self.started_at.elapsed(), self.args.timeouts.ping)
                {
                    PingAction::Send => process.send(&ping),
                    PingAction::Wait => {}
                    PingAction::Unresponsive => process.kill_unresponsive(),
                }
            }
        }
    }

    fn on_spawned(
        &mut self,
        myself: &ActorRef<WorkerMsg<L>>,
        spawned: Result<SpawnedWorker, WorkerSpawnError>,
    ) {
        let failed = match spawned {
            Ok(started) => self.attach(myself, started).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(cause) = failed {
            self.restart_or_fail(myself, restart::ExitKind::NoProgress, cause);
        }
    }

    fn suspend(&mut self) {
        // A worker that waits for its restart cannot be suspended yet; the owner asks again once it
        // runs.
        let Some(process) = self.process.take() else { return };
        self.run_state = RunState::Suspending;
        self.close(process);
    }

    fn resume(&mut self, myself: &ActorRef<WorkerMsg<L>>) {
        self.run_state = match self.run_state {
            RunState::Running => RunState::Running,
            RunState::Suspending | RunState::Resuming => RunState::Resuming,
            RunState::Suspended => {
                let _ = myself.send_message(WorkerMsg::Start);
                RunState::Running
            }
        };
    }

    fn on_ended(&mut self, myself: &ActorRef<WorkerMsg<L>>, cause: &ExitCause) {
        self.process = None;
        if self.stopping.is_some() {
            myself.stop(None);
            return;
        }
        match self.run_state {
            RunState::Running => {}
            RunState::Suspending | RunState::Suspended => {
                let worker = self.args.kind.executable();
                tracing::info!(worker, session = ?self.args.session, "rests");
                self.run_state = RunState::Suspended;
                return;
            }
            RunState::Resuming => {
                self.run_state = RunState::Running;
                let _ = myself.send_message(WorkerMsg::Start);
                return;
            }
        }
        let exit = restart::ExitKind::of(cause, self.progress);
        self.restart_or_fail(myself, exit, cause.to_string());
    }

    fn restart_or_fail(
        &mut self,
        myself: &ActorRef<WorkerMsg<L>>,
        exit: restart::ExitKind,
        cause: String,
    ) {
        let worker = self.args.kind.executable();
        tracing::warn!(worker, session = ?self.args.session, %cause, "ended");
        self.last_cause = Some(cause.clone());
        let failed = match self.restarts.on_exit(exit, self.started_at.elapsed(), jitter()) {
            RestartDecision::Restart(wait) => {
                self.restart_count += 1;
                myself.send_after(wait, || WorkerMsg::Start);
                None
            }
            RestartDecision::Fail(why) => {
                self.last_cause = Some(format!("{cause}; failed: {why}"));
                Some(format!("{worker} {cause}; {why}"))
            }
        };
        (self.args.on_event)(WorkerEvent::Down { cause, failed });
    }

    fn stop(&mut self, myself: &ActorRef<WorkerMsg<L>>, done: oneshot::Sender<()>) {
        self.stopping = Some(done);
        match (self.process.take(), self.run_state) {
            (Some(process), _) => self.close(process),
            // The end of the process is about to be reported.
            (None, RunState::Suspending | RunState::Resuming) => {}
            (None, RunState::Running | RunState::Suspended) => myself.stop(None),
        }
    }

    fn close(&self, process: WorkerProcess<L>) {
        // The closed channel asks the worker to end; the kill is for a worker that ignores it.
        let killer = process.close();
        let shutdown = self.args.timeouts.shutdown;
        tokio::spawn(async move {
            tokio::time::sleep(shutdown).await;
            killer.kill();
        });
    }

    fn process_row(&self) -> ProcessRow {
        let last_cause = match self.run_state {
            RunState::Running | RunState::Resuming => self.last_cause.clone(),
            RunState::Suspending | RunState::Suspended => {
                Some("suspended until it is needed".to_owned())
            }
        };
        ProcessRow {
            worker: self.args.kind.executable().to_owned(),
            session: self.args.session.clone(),
            pid: self.process.as_ref().map_or(0, WorkerProcess::pid),
            generation: self.generation.0,
            restarts: self.restart_count,
            last_cause,
            cage: None,
        }
    }
}

/// A number in 0..=1. Its randomness need not be strong.
fn jitter() -> f64 {
    f64::from(getrandom::u32().unwrap_or(0)) / f64::from(u32::MAX)
}

#[cfg(test)]
#[path = "actor_tests.rs"]
mod tests;
