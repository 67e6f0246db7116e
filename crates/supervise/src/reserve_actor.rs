//! The reserve of a session: while the model thinks, the runner of the next command is started and
//! builds its cage. A call of the same confinement takes it. The reserve runs no call, and losing its
//! runner costs only time. Created by the session actor.

use crate::messages::{CallMsg, ReserveMsg, RestingRunner, TakeRequest};
use launch::grant::Grant;
use launch::process::ExitCause;
use launch::project_overlays::ProjectOverlays;
use launch::runner::{EventRelay, Runner, RunnerEvent, RunnerNews, RunnerStart};
use launch::session_lock::SessionLock;
use launch::session_network::SessionNetwork;
use launch::spawner::Spawner;
use protocol::client::ProcessRow;
use protocol::confinement::{Confinement, FilePath, Tier};
use protocol::ids::{Generation, SessionId};
use ractor::concurrency::JoinHandle;
use ractor::{Actor, ActorProcessingErr, ActorRef, MessagingErr};
use std::sync::Arc;
use std::time::Duration;
use tool_specs::RunnerProgram;

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
    runner: Runner,
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
    taken: Option<(Generation, EventRelay)>,
    /// The confinement of the next runner, which waits for the end of those that were killed: one of them may
    /// have its turn with the overlays.
    wanted: Option<(Confinement, Option<Arc<SessionNetwork>>)>,
    /// Runners that were killed or have ended, until the processes of their cages have; a runner until it is
    /// dead.
    ending: Vec<(Generation, Option<Runner>)>,
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
            wanted: None,
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
            ReserveMsg::Runner(generation, event) => {
                state.on_event(generation, event);
                state.start_wanted().await;
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
            self.wanted = Some((wanted, network));
            self.start_wanted().await;
        }
        let (generation, idle) = (self.generation, self.args.idle);
        let timer = self.own.send_after(idle, move || ReserveMsg::Unused(generation));
        if let Some(earlier) = self.unused.replace(timer) {
            earlier.abort();
        }
    }

    /// Starts the next runner, unless one of the earlier ones has not ended.
    async fn start_wanted(&mut self) {
        if !self.ending.is_empty() {
            return;
        }
        let Some((wanted, network)) = self.wanted.take() else { return };
        if let Err(error) = self.start(wanted, network).await {
            tracing::warn!(session = %self.args.session, error, "no runner in reserve");
        }
    }

    async fn start(
        &mut self,
        mut wanted: Confinement,
        network: Option<Arc<SessionNetwork>>,
    ) -> Result<(), String> {
        let mut turn = None;
        let overlays = self.args.overlays.as_ref();
        if let Some(overlays) = overlays.filter(|_| ProjectOverlays::are_mounted_in(&wanted)) {
            turn = Some(overlays.turn().await.ok_or("another process uses the overlays")?);
            wanted.overlays = Some(FilePath::from(overlays.directory()));
        }
        let handed = network.map(|network| network.handed()).transpose();
        let handed = handed.map_err(|error| error.to_string())?.unwrap_or_default();
        self.generation = self.generation.next();
        let start = RunnerStart {
            spawner: &self.args.spawner,
            program: RunnerProgram::Tool,
            grant: Grant::reserve(wanted),
            hello: self.args.hello,
            lock: Some(&self.args.lock),
            handed,
            turn,
            generation: self.generation,
            about: self.args.session.to_string(),
        };
        let (own, generation) = (self.own.clone(), self.generation);
        let runner = Runner::start(start, move |event| {
            let _ = own.send_message(ReserveMsg::Runner(generation, event));
        });
        let runner = runner.await.map_err(|error| error.to_string())?;
        ipc::step!("supervisor: reserve spawned");
        self.runner = Some(ReserveRunner { runner, rested: None });
        Ok(())
    }

    fn on_take(&mut self, request: Box<TakeRequest>) {
        match &self.runner {
            Some(runner) if runner.fits(&request.confinement) => {
                self.taker = Some(request);
                self.hand_over();
                if let (Some(_), Some(present)) = (&self.taker, &mut self.runner) {
                    present.runner.must_stand_within(TAKE);
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
        let runner = runner.runner;
        let relay = runner.relay();
        let resting = RestingRunner { runner, tier, opened, built_in };
        // The call gets the runner first, then its events.
        answer(&request, Some(Box::new(resting)));
        let TakeRequest { call, generation, .. } = *request;
        relay.redirect(move |event| {
            let _ = call.send_message(CallMsg::Runner(generation, event));
        });
        self.taken = Some((self.generation, relay));
        ipc::step!("supervisor: reserve taken");
    }

    fn on_event(&mut self, generation: Generation, event: RunnerEvent) {
        if let Some((_, relay)) = self.taken.as_ref().filter(|(taken, _)| *taken == generation) {
            return relay.pass(event);
        }
        if let RunnerEvent::Buried(cause, _) = event {
            return self.forget(generation, &cause);
        }
        if let Some(present) = self.present(generation) {
            let news = present.runner.hear(event);
            return self.on_news(news);
        }
        let ending = self.ending.iter_mut().find(|(ending, _)| *ending == generation);
        let Some((_, runner)) = ending else { return };
        if let Some(RunnerNews::Ended(cause, _)) = runner.as_mut().map(|runner| runner.hear(event))
            && let Some(runner) = runner.take()
            && let Some((cause, _)) = runner.bury(cause)
        {
            self.forget(generation, &cause);
        }
    }

    fn forget(&mut self, generation: Generation, cause: &ExitCause) {
        tracing::debug!(session = %self.args.session, %cause, "a runner in reserve has ended");
        self.ending.retain(|(ending, _)| *ending != generation);
        self.stop_when_empty();
    }

    fn on_news(&mut self, news: RunnerNews) {
        let session = self.args.session.clone();
        match news {
            RunnerNews::Resting { tier, opened } => {
                if let Some(present) = &mut self.runner {
                    present.rested = Some((tier, opened, present.runner.started_at().elapsed()));
                }
                if self.taker.is_some() {
                    self.hand_over();
                }
            }
            RunnerNews::Uncaged { step, reason } => {
                tracing::info!(%session, step, reason, "no runner in reserve");
                self.discard("it has no cage");
            }
            RunnerNews::Lost(reason) => {
                tracing::info!(%session, reason, "no runner in reserve");
                self.discard("it lost its cage");
            }
            RunnerNews::Unlisted(error) => {
                tracing::warn!(%session, %error, "the list of runners");
                self.discard("the list of runners could not be written");
            }
            RunnerNews::Overdue => self.discard("its cage took too long"),
            RunnerNews::Ended(cause, _) => {
                self.refuse_taker();
                if let Some(present) = self.runner.take() {
                    self.ending.push((self.generation, None));
                    if let Some((cause, _)) = present.runner.bury(cause) {
                        self.forget(self.generation, &cause);
                    }
                }
            }
            RunnerNews::Nothing
            | RunnerNews::Caged(_)
            | RunnerNews::Listener(_)
            | RunnerNews::Namespace(..)
            | RunnerNews::Call(_)
            | RunnerNews::Probed(_)
            | RunnerNews::Proxied { .. }
            | RunnerNews::Repaired(_)
            | RunnerNews::Certified(_) => {}
        }
    }

    /// Kills the runner. A call that waits for it starts its own.
    fn discard(&mut self, why: &str) {
        self.wanted = None;
        self.refuse_taker();
        if let Some(runner) = self.runner.take() {
            tracing::debug!(session = %self.args.session, why, "the reserve ends its runner");
            runner.runner.kill();
            self.ending.push((self.generation, Some(runner.runner)));
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
            pid: runner.runner.pid(),
            generation: self.generation.0,
            restarts: 0,
            last_cause: None,
            cage: None,
        })
    }
}

impl ReserveRunner {
    fn fits(&self, wanted: &Confinement) -> bool {
        Confinement { overlays: None, ..self.runner.confinement().clone() } == *wanted
    }
}

fn answer(request: &TakeRequest, runner: Option<Box<RestingRunner>>) {
    let _ = request.call.send_message(CallMsg::Reserve(runner));
}
