//! The worker actor: one slot whose worker is started again when it dies.
//!
//! Thin: it owns the child process and its channel through [`Life`], asks [`Restarts`] what to do
//! when it ends, and tells its owner. The owner says everything again to a new life.

use crate::life::{Cause, Life, Report};
use crate::progress::Progress;
use crate::pulse::{Look, Pulse};
use crate::restart::{self, Decision, Restarts, Said};
use crate::spawn::{Permanent, SpawnError, Spawner, Started};
use crate::times::SlotTimes;
use protocol::Link;
use protocol::client::ProcessRow;
use protocol::ids::{Generation, SessionId};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// What an owner hears of its slot.
pub(crate) enum SlotEvent<L: Link> {
    /// A new life began: nothing said to an earlier one holds.
    Up(Generation),
    /// A word. Drop the permit when it is dealt with.
    Word { word: L::From, heard: OwnedSemaphorePermit },
    /// The life ended; another follows unless `failed` says why not.
    Down { cause: String, failed: Option<String> },
}

/// What a slot is told.
pub(crate) enum SlotMsg<L: Link> {
    /// For the process of this generation. Dropped where another lives or none does: the owner says
    /// all again at `Up`.
    ToWorker(Generation, ToWorker<L>),
    /// From the life of that generation.
    Life(Generation, Report<L>),
    /// The wait before a restart is over, or the first start.
    Start,
    /// Nobody needs the worker for now: end it. `Wake` brings another.
    Rest,
    /// Somebody needs the worker: start it if it rests.
    Wake,
    /// What the worker works on moved on: its crashes before that are no loop.
    Progressed,
    /// A person asks for another try: what it failed with is forgotten, and it is started unless
    /// it lives.
    Forgive,
    /// Close the channel, and end the worker by force if it stays; answered when it is dead.
    Stop(oneshot::Sender<()>),
    /// A row for `ps`.
    Describe(oneshot::Sender<ProcessRow>),
}

/// What one process is sent. Made by [`crate::worker_ref::WorkerRef`] alone.
pub(crate) enum ToWorker<L: Link> {
    Message(L::To),
    /// Messages whose sender sends more when this worker has taken them.
    Forwarded {
        messages: Vec<L::To>,
        permit: OwnedSemaphorePermit,
    },
    /// Asks for a sign of life; a process that still owes one is ended.
    Ping(L::To),
    /// A descriptor behind the message sent last.
    Descriptor(OwnedFd),
}

pub(crate) type Owner<L> = Arc<dyn Fn(SlotEvent<L>) + Send + Sync>;

/// What a slot is made of.
pub(crate) struct SlotPlan<L: Link> {
    pub(crate) worker: Permanent,
    pub(crate) session: Option<SessionId>,
    pub(crate) spawner: Spawner,
    pub(crate) times: SlotTimes,
    pub(crate) owner: Owner<L>,
}

/// Whether the worker is wanted at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// It lives, or comes back.
    Awake,
    /// It was told to end and has not yet.
    Ending,
    /// The same, and another is wanted when it has.
    Woken,
    /// None lives until somebody needs one.
    Asleep,
}

pub(crate) struct SlotState<L: Link> {
    plan: SlotPlan<L>,
    generation: Generation,
    life: Option<Life<L>>,
    rest: Rest,
    said: Said,
    pulse: Pulse,
    restarts: Restarts,
    count: u32,
    last_cause: Option<String>,
    born: Instant,
    stopping: Option<oneshot::Sender<()>>,
}

/// The actor.
pub(crate) struct Slot<L: Link>(std::marker::PhantomData<fn(L)>);

impl<L: Link> Slot<L> {
    pub(crate) fn new() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<L: Link + 'static> Actor for Slot<L>
where
    L::From: Progress,
{
    type Msg = SlotMsg<L>;
    type State = SlotState<L>;
    type Arguments = SlotPlan<L>;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        plan: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        let restarts = Restarts::new(plan.times.limits);
        let mut state = SlotState {
            plan,
            generation: Generation(0),
            life: None,
            rest: Rest::Awake,
            said: Said::Untold,
            pulse: Pulse::default(),
            restarts,
            count: 0,
            last_cause: None,
            born: Instant::now(),
            stopping: None,
        };
        // The first start is part of the slot's own: a missing executable is its opener's error.
        let started = state.plan.spawner.permanent(state.plan.worker).await?;
        state.begin(&myself, started)?;
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SlotMsg::ToWorker(generation, what) => state.pass(generation, what),
            SlotMsg::Life(generation, _) if generation != state.generation => {}
            SlotMsg::Life(_, Report::Word { word, heard }) => {
                if word.said() == Said::Something {
                    state.said = Said::Something;
                }
                state.pulse.heard();
                (state.plan.owner)(SlotEvent::Word { word, heard });
            }
            SlotMsg::Life(_, Report::Descriptor(_)) => {
                if let Some(life) = &state.life {
                    life.breach("a descriptor out of turn");
                }
            }
            SlotMsg::Life(_, Report::Ended(cause)) => state.ended(&myself, &cause),
            SlotMsg::Start => {
                let wanted = state.rest == Rest::Awake && state.stopping.is_none();
                if state.life.is_none() && wanted {
                    let spawned = state.plan.spawner.permanent(state.plan.worker).await;
                    state.started(&myself, spawned);
                }
            }
            SlotMsg::Rest => state.fall_asleep(),
            SlotMsg::Wake => state.wake(&myself),
            SlotMsg::Progressed => state.restarts.forgive(),
            SlotMsg::Forgive => {
                state.restarts.forgive();
                let _ = myself.send_message(SlotMsg::Start);
            }
            SlotMsg::Stop(done) => state.stop(&myself, done),
            SlotMsg::Describe(reply) => {
                let _ = reply.send(state.row());
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

impl<L: Link + 'static> SlotState<L>
where
    L::From: Progress,
{
    fn begin(&mut self, myself: &ActorRef<SlotMsg<L>>, started: Started) -> std::io::Result<()> {
        self.generation = self.generation.next();
        self.said = Said::Untold;
        self.pulse = Pulse::default();
        let (slot, generation) = (myself.clone(), self.generation);
        let life = Life::begin(started, generation, self.plan.times.hello, move |report| {
            let _ = slot.send_message(SlotMsg::Life(generation, report));
        })?;
        let (worker, pid) = (self.plan.worker.executable(), life.pid);
        tracing::info!(worker, pid, %generation, session = ?self.plan.session, "started");
        self.life = Some(life);
        (self.plan.owner)(SlotEvent::Up(generation));
        Ok(())
    }

    /// Hands it to the process that it is for, if that one still lives.
    fn pass(&mut self, generation: Generation, what: ToWorker<L>) {
        let Some(life) = self.life.as_ref().filter(|_| generation == self.generation) else {
            let worker = self.plan.worker.executable();
            tracing::debug!(worker, %generation, now = %self.generation, "a message for an ended process was dropped");
            return;
        };
        // A ping is nothing to work on.
        if self.said == Said::Untold && !matches!(what, ToWorker::Ping(_)) {
            self.said = Said::Nothing;
        }
        match what {
            ToWorker::Message(message) => life.send(&message),
            ToWorker::Forwarded { messages, permit } => life.forward(&messages, permit),
            ToWorker::Descriptor(descriptor) => life.send_descriptor(descriptor),
            ToWorker::Ping(ping) => {
                match self.pulse.look(self.born.elapsed(), self.plan.times.ping) {
                    Look::Ask => life.send(&ping),
                    Look::Wait => {}
                    Look::Dead => life.unanswered(),
                }
            }
        }
    }

    fn started(&mut self, myself: &ActorRef<SlotMsg<L>>, spawned: Result<Started, SpawnError>) {
        let failed = match spawned {
            Ok(started) => self.begin(myself, started).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(cause) = failed {
            self.decide(myself, restart::Life::Fruitless, cause);
        }
    }

    fn fall_asleep(&mut self) {
        // One that is about to be started again is asked once more when it lives.
        let Some(life) = self.life.take() else { return };
        self.rest = Rest::Ending;
        self.close(life);
    }

    fn wake(&mut self, myself: &ActorRef<SlotMsg<L>>) {
        self.rest = match self.rest {
            Rest::Awake => Rest::Awake,
            Rest::Ending | Rest::Woken => Rest::Woken,
            Rest::Asleep => {
                let _ = myself.send_message(SlotMsg::Start);
                Rest::Awake
            }
        };
    }

    fn ended(&mut self, myself: &ActorRef<SlotMsg<L>>, cause: &Cause) {
        self.life = None;
        if self.stopping.is_some() {
            myself.stop(None);
            return;
        }
        match self.rest {
            Rest::Awake => {}
            Rest::Ending | Rest::Asleep => {
                let worker = self.plan.worker.executable();
                tracing::info!(worker, session = ?self.plan.session, "rests");
                self.rest = Rest::Asleep;
                return;
            }
            Rest::Woken => {
                self.rest = Rest::Awake;
                let _ = myself.send_message(SlotMsg::Start);
                return;
            }
        }
        let life = restart::Life::of(cause, self.said);
        self.decide(myself, life, cause.to_string());
    }

    fn decide(&mut self, myself: &ActorRef<SlotMsg<L>>, life: restart::Life, cause: String) {
        let worker = self.plan.worker.executable();
        tracing::warn!(worker, session = ?self.plan.session, %cause, "ended");
        self.last_cause = Some(cause.clone());
        let failed = match self.restarts.ended(life, self.born.elapsed(), jitter()) {
            Decision::Restart(wait) => {
                self.count += 1;
                myself.send_after(wait, || SlotMsg::Start);
                None
            }
            Decision::Fail(why) => {
                self.last_cause = Some(format!("{cause}; failed: {why}"));
                Some(format!("{worker} {cause}; {why}"))
            }
        };
        (self.plan.owner)(SlotEvent::Down { cause, failed });
    }

    fn stop(&mut self, myself: &ActorRef<SlotMsg<L>>, done: oneshot::Sender<()>) {
        self.stopping = Some(done);
        match (self.life.take(), self.rest) {
            (Some(life), _) => self.close(life),
            // Its end is on its way.
            (None, Rest::Ending | Rest::Woken) => {}
            (None, Rest::Awake | Rest::Asleep) => myself.stop(None),
        }
    }

    fn close(&self, life: Life<L>) {
        // Closing the channel is the request; the kill is for a worker that does not heed it.
        let killer = life.close();
        let shutdown = self.plan.times.shutdown;
        tokio::spawn(async move {
            tokio::time::sleep(shutdown).await;
            killer.kill();
        });
    }

    fn row(&self) -> ProcessRow {
        let last_cause = match self.rest {
            Rest::Awake | Rest::Woken => self.last_cause.clone(),
            Rest::Ending | Rest::Asleep => Some("rests until it is needed".to_owned()),
        };
        ProcessRow {
            worker: self.plan.worker.executable().to_owned(),
            session: self.plan.session.clone(),
            pid: self.life.as_ref().map_or(0, |life| life.pid),
            generation: self.generation.0,
            restarts: self.count,
            last_cause,
            cage: None,
        }
    }
}

/// A number in 0..=1; the quality of chance does not matter here.
fn jitter() -> f64 {
    f64::from(getrandom::u32().unwrap_or(0)) / f64::from(u32::MAX)
}

#[cfg(test)]
#[path = "slot_tests.rs"]
mod tests;
