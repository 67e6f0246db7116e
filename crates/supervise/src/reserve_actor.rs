//! The reserve of a session: while the model thinks, the runner of the next command is started and
//! builds its cage. A call of the same confinement takes it. The reserve runs no call, and losing its
//! runner costs only time. Created by the session actor.

use crate::cage_cleanup;
use crate::grant::Grant;
use crate::messages::{CallMsg, ReserveMsg, RestingRunner, TakeRequest};
use crate::orphans::RecordedProcess;
use crate::project_overlays::{OverlayTurn, ProjectOverlays};
use crate::session_lock::SessionLock;
use crate::session_network::SessionNetwork;
use crate::worker::event_relay::EventRelay;
use crate::worker::log_lines;
use crate::worker::process::{ExitCause, ProcessEvent, WorkerProcess};
use crate::worker::spawner::Spawner;
use protocol::client::ProcessRow;
use protocol::confinement::{Confinement, FilePath, Tier};
use protocol::ids::{Generation, SessionId};
use protocol::tool::{FromTool, Keeper, ToTool, ToolLink};
use ractor::concurrency::JoinHandle;
use ractor::{Actor, ActorProcessingErr, ActorRef, MessagingErr};
use std::error::Error;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tools::RunnerProgram;

/// How long the runner may take to build its cage. It takes milliseconds, unless it was stopped.
const CAGE: Duration = Duration::from_secs(10);
/// How long a call waits for a cage that is being built, before it starts its own.
const TAKE: Duration = Duration::from_secs(1);

/// The actor.
pub(crate) struct ReserveActor;

/// Arguments of a reserve actor.
pub(crate) struct ReserveArgs {
    pub(crate) session: SessionId,
    pub(crate) hello: Duration,
    /// How long a runner waits for a call, from the last request to the model.
    pub(crate) idle: Duration,
    pub(crate) lock: SessionLock,
    pub(crate) overlays: Option<Arc<ProjectOverlays>>,
    pub(crate) spawner: Spawner,
}

/// The present runner, which no call has taken.
struct ReserveRunner {
    process: WorkerProcess<ToolLink>,
    relay: EventRelay<ToolLink>,
    /// The processes of its cage.
    cage: Vec<RecordedProcess>,
    /// As it was sent to the runner.
    confinement: Confinement,
    started_at: Instant,
    /// Its turn with the overlays, while its cage is built.
    turn: Option<OverlayTurn>,
    /// Once its cage stands: tier, opened paths, and the time that it took.
    rested: Option<(Tier, String, Duration)>,
}

type Timer = JoinHandle<Result<(), MessagingErr<ReserveMsg>>>;

/// The state of a reserve actor.
pub(crate) struct ReserveState {
    args: ReserveArgs,
    own: ActorRef<ReserveMsg>,
    /// The number of the present runner.
    generation: Generation,
    runner: Option<ReserveRunner>,
    /// Waits until the runner's cage stands.
    taker: Option<Box<TakeRequest>>,
    /// A runner that a call has taken. Its earlier events may still be in this actor's mailbox.
    taken: Option<(Generation, EventRelay<ToolLink>)>,
    /// Runners that were killed, with the processes of their cages.
    ending: Vec<(Generation, Vec<RecordedProcess>)>,
    /// Ends a runner that no call takes.
    unused: Option<Timer>,
    /// The session ends.
    stopping: bool,
}

impl Actor for ReserveActor {
    type Msg = ReserveMsg;
    type State = ReserveState;
    type Arguments = ReserveArgs;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        args: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(ReserveState {
            args,
            own: myself,
            generation: Generation(0),
            runner: None,
            taker: None,
            taken: None,
            ending: Vec::new(),
            unused: None,
            stopping: false,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ReserveMsg::Prepare(wanted, network) => state.prepare(*wanted, network).await,
            ReserveMsg::Discard => state.discard("a setting changed"),
            ReserveMsg::Take(request) => state.on_take(request),
            ReserveMsg::Runner(generation, event) => state.on_event(generation, event),
            ReserveMsg::CageEnded(generation, cause) => state.forget(generation, &cause),
            ReserveMsg::CageOverdue(generation) => {
                if state.present(generation).is_some_and(|runner| runner.rested.is_none()) {
                    state.discard("its cage took too long");
                }
            }
            ReserveMsg::Unused(generation) => {
                if state.present(generation).is_some() && state.taker.is_none() {
                    state.discard("no call took it in time");
                }
            }
            ReserveMsg::Describe(reply) => {
                let _ = reply.send(state.row().into_iter().collect());
            }
            ReserveMsg::Stop => {
                state.stopping = true;
                state.discard("the session ends");
                state.stop_when_empty();
            }
            ReserveMsg::Stopped => myself.stop(None),
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<Self::Msg>,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        state.unused.iter().for_each(Timer::abort);
        Ok(())
    }
}

impl ReserveState {
    fn present(&mut self, generation: Generation) -> Option<&mut ReserveRunner> {
        self.runner.as_mut().filter(|_| generation == self.generation)
    }

    async fn prepare(&mut self, wanted: Confinement, network: Option<Arc<SessionNetwork>>) {
        if self.stopping {
            return;
        }
        if !self.runner.as_ref().is_some_and(|runner| runner.fits(&wanted)) {
            self.discard("a setting changed");
            if let Err(error) = self.start(wanted, network).await {
                tracing::warn!(session = %self.args.session, error, "no runner in reserve");
            }
        }
        let (generation, idle) = (self.generation, self.args.idle);
        let timer = self.own.send_after(idle, move || ReserveMsg::Unused(generation));
        if let Some(earlier) = self.unused.replace(timer) {
            earlier.abort();
        }
    }

    async fn start(
        &mut self,
        mut wanted: Confinement,
        network: Option<Arc<SessionNetwork>>,
    ) -> Result<(), &'static str> {
        let mut turn = None;
        let overlays = self.args.overlays.as_ref();
        if let Some(overlays) = overlays.filter(|_| ProjectOverlays::are_mounted_in(&wanted)) {
            turn = Some(overlays.turn().await.ok_or("another process uses the overlays")?);
            wanted.overlays = Some(FilePath::from(overlays.directory()));
        }
        let grant = Grant::reserve(wanted);
        self.attach(&grant, turn, network).await.map_err(|error| {
            tracing::warn!(session = %self.args.session, error, "the reserve");
            "its process could not be started"
        })
    }

    async fn attach(
        &mut self,
        grant: &Grant,
        mut turn: Option<OverlayTurn>,
        network: Option<Arc<SessionNetwork>>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let ReserveArgs { spawner, lock, hello, .. } = &self.args;
        let started = spawner.spawn_runner(grant, RunnerProgram::Tool).await?;
        self.generation = self.generation.next();
        let (own, generation) = (self.own.clone(), self.generation);
        let relay = EventRelay::to(move |event| {
            let _ = own.send_message(ReserveMsg::Runner(generation, event));
        });
        let events = relay.clone();
        let process =
            WorkerProcess::attach(started, generation, *hello, move |event| events.pass(event))?;
        process.send(&ToTool::SessionLock);
        process.send_descriptor(lock.share(process.pid)?);
        if let Some(turn) = &mut turn {
            for (message, descriptor) in
                [(ToTool::Overlays, turn.lock()), (ToTool::Mounted, turn.take_mount())]
            {
                if let Some(descriptor) = descriptor {
                    process.send(&message);
                    process.send_descriptor(descriptor);
                }
            }
        }
        if let Some(network) = &network {
            network.send_to(&process)?;
        }
        process.send(&grant.begin());
        ipc::step!("supervisor: reserve spawned");
        self.runner = Some(ReserveRunner {
            process,
            relay,
            cage: Vec::new(),
            confinement: grant.confinement().clone(),
            started_at: Instant::now(),
            turn,
            rested: None,
        });
        self.limit_building(CAGE);
        Ok(())
    }

    /// Ends the present runner unless its cage stands within this time.
    fn limit_building(&self, limit: Duration) {
        let generation = self.generation;
        self.own.send_after(limit, move || ReserveMsg::CageOverdue(generation));
    }

    fn on_take(&mut self, request: Box<TakeRequest>) {
        match &self.runner {
            Some(runner) if runner.fits(&request.confinement) => {
                self.taker = Some(request);
                self.hand_over();
                if self.taker.is_some() {
                    self.limit_building(TAKE);
                }
            }
            Some(_) | None => {
                self.discard("a call has another confinement");
                answer(&request, None);
            }
        }
    }

    /// Gives the runner to the call that waits for it, if its cage stands.
    fn hand_over(&mut self) {
        let Some(runner) = self.runner.take_if(|runner| runner.rested.is_some()) else { return };
        let (Some(request), Some((tier, opened, built_in))) = (self.taker.take(), runner.rested)
        else {
            return;
        };
        let ReserveRunner { process, relay, cage, confinement, .. } = runner;
        let resting = RestingRunner { process, cage, confinement, tier, opened, built_in };
        // The call gets the runner first, then its events.
        answer(&request, Some(Box::new(resting)));
        let TakeRequest { call, generation, .. } = *request;
        relay.redirect(move |event| {
            let _ = call.send_message(CallMsg::Runner(generation, event));
        });
        self.taken = Some((self.generation, relay));
        ipc::step!("supervisor: reserve taken");
    }

    fn on_event(&mut self, generation: Generation, event: ProcessEvent<ToolLink>) {
        if let Some((_, relay)) = self.taken.as_ref().filter(|(taken, _)| *taken == generation) {
            return relay.pass(event);
        }
        match event {
            ProcessEvent::Message { message, permit: _permit } => {
                self.on_message(generation, message)
            }
            ProcessEvent::Descriptor(mounted) => self.on_mounted(generation, mounted),
            ProcessEvent::Ended(cause, _) => self.on_ended(generation, cause),
        }
    }

    fn on_message(&mut self, generation: Generation, message: FromTool) {
        let session = self.args.session.clone();
        let Some(runner) = self.present(generation) else { return };
        match message {
            FromTool::Log(line) => log_lines::write("agentd-tool", session, &line),
            FromTool::Keeper(keeper) if runner.is_building() && runner.cage.is_empty() => {
                self.note_cage(keeper);
            }
            // The descriptor follows.
            FromTool::Mounted if runner.turn.is_some() => {}
            FromTool::Resting { tier, opened } if runner.is_building() => {
                runner.turn = None;
                runner.rested = Some((tier, opened, runner.started_at.elapsed()));
                if self.taker.is_some() {
                    self.hand_over();
                }
            }
            FromTool::Uncaged { step, reason } if runner.is_building() => {
                tracing::info!(%session, step, reason, "no runner in reserve");
            }
            FromTool::Lost(reason) if runner.is_building() => {
                tracing::info!(%session, reason, "no runner in reserve");
            }
            FromTool::Pong(_)
            | FromTool::ProxyListener
            | FromTool::Mounted
            | FromTool::Namespace(_)
            | FromTool::InBackground
            | FromTool::Proxied { .. }
            | FromTool::Caged(_)
            | FromTool::Began
            | FromTool::Resting { .. }
            | FromTool::Uncaged { .. }
            | FromTool::Probed(_)
            | FromTool::Output { .. }
            | FromTool::Server(_)
            | FromTool::InputTaken(_)
            | FromTool::Done(_)
            | FromTool::Keeper(_)
            | FromTool::Repaired(_)
            | FromTool::Certified(_)
            | FromTool::Lost(_) => runner.process.kill_for_breach("a message out of turn"),
        }
    }

    /// Lists the processes of the cage on disk, as [`SessionLock::record_cage`] says.
    fn note_cage(&mut self, keeper: Keeper) {
        let Some(runner) = &mut self.runner else { return };
        match self.args.lock.record_cage(runner.process.pid, keeper) {
            Ok(Ok(cage)) => runner.cage = cage,
            Ok(Err(_)) => {
                runner.process.kill_for_breach("it named a process that is not its own");
            }
            Err(error) => {
                tracing::warn!(session = %self.args.session, %error, "the list of runners");
                self.discard("the list of runners could not be written");
            }
        }
    }

    fn on_mounted(&mut self, generation: Generation, mounted: OwnedFd) {
        if let Some(turn) = self.present(generation).and_then(|runner| runner.turn.as_mut()) {
            turn.put_mount(mounted);
        }
    }

    /// The runner has ended only when all processes of its cage have, too.
    fn on_ended(&mut self, generation: Generation, cause: ExitCause) {
        if self.present(generation).is_some()
            && let Some(runner) = self.runner.take()
        {
            self.refuse_taker();
            self.ending.push((generation, runner.cage));
        }
        let known = self.ending.iter().find(|(ending, _)| *ending == generation);
        let cage = known.map(|(_, cage)| cage.clone()).unwrap_or_default();
        if !cage.iter().any(|process| process.is_alive()) {
            return self.forget(generation, &cause);
        }
        let own = self.own.clone();
        tokio::spawn(async move {
            cage_cleanup::end_cage(&cage).await;
            let _ = own.send_message(ReserveMsg::CageEnded(generation, cause));
        });
    }

    fn forget(&mut self, generation: Generation, cause: &ExitCause) {
        tracing::debug!(session = %self.args.session, %cause, "a runner in reserve has ended");
        self.ending.retain(|(ending, _)| *ending != generation);
        self.stop_when_empty();
    }

    /// Kills the runner. A call that waits for it starts its own.
    fn discard(&mut self, why: &str) {
        self.refuse_taker();
        if let Some(runner) = self.runner.take() {
            tracing::debug!(session = %self.args.session, why, "the reserve ends its runner");
            runner.process.kill();
            self.ending.push((self.generation, runner.cage));
        }
    }

    fn refuse_taker(&mut self) {
        if let Some(request) = self.taker.take() {
            answer(&request, None);
        }
    }

    fn stop_when_empty(&self) {
        if self.stopping && self.runner.is_none() && self.ending.is_empty() {
            // Behind the events of a runner that a call has just taken.
            let _ = self.own.send_message(ReserveMsg::Stopped);
        }
    }

    fn row(&self) -> Option<ProcessRow> {
        let runner = self.runner.as_ref()?;
        Some(ProcessRow {
            worker: format!("{} (reserve)", RunnerProgram::Tool.executable()),
            session: Some(self.args.session.clone()),
            pid: runner.process.pid,
            generation: self.generation.0,
            restarts: 0,
            last_cause: None,
            cage: None,
        })
    }
}

impl ReserveRunner {
    fn is_building(&self) -> bool {
        self.rested.is_none()
    }

    fn fits(&self, wanted: &Confinement) -> bool {
        Confinement { overlays: None, ..self.confinement.clone() } == *wanted
    }
}

fn answer(request: &TakeRequest, runner: Option<Box<RestingRunner>>) {
    let _ = request.call.send_message(CallMsg::Reserve(runner));
}
