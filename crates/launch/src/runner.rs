//! One runner, from its start to the end of the last process in its cage: every runner of the supervisor is
//! started, heard, limited in time and ended here, whatever its job. `life` decides which messages each phase allows.
//!
//! Its events come through the owner's mailbox and back into [`Runner::hear`], so that one actor handles them
//! in order with everything else.

mod event_relay;
mod events;
mod life;
#[cfg(test)]
mod life_tests;

pub use event_relay::EventRelay;
pub use events::{RunnerEvent, RunnerNews};
pub use life::RunnerStep;

use crate::cage_cleanup::{CageCleanup, end_cage};
use crate::grant::{Grant, OtherCall, RunnerPurpose};
use crate::heartbeat::{Heartbeat, PingAction};
use crate::log_lines;
use crate::orphans::{NotRunnersChild, RecordedProcess};
use crate::process::{ExitCause, ProcessEvent, WorkerProcess};
use crate::project_overlays::OverlayTurn;
use crate::session_lock::SessionLock;
use crate::spawner::{Spawner, WorkerSpawnError};
use life::{AnnouncedFd, Concerns, RunnerLife};
use protocol::confinement::Confinement;
use protocol::ids::{CallId, Generation};
use protocol::tool::{FromCage, FromTool, Handover, Keeper, RunnerJob, ToCall, ToTool, ToolLink};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;
use tool_specs::RunnerProgram;

/// What a runner needs to start.
pub struct RunnerStart<'a> {
    /// Starts its process.
    pub spawner: &'a Spawner,
    /// Its executable.
    pub program: RunnerProgram,
    /// The right to start it.
    pub grant: Grant,
    /// How long it may take to say hello.
    pub hello: Duration,
    /// The session's lock, which it shares; absent for a process of no session.
    pub lock: Option<&'a SessionLock>,
    /// The descriptors that it is handed, in this order.
    pub handed: Vec<(Handover, OwnedFd)>,
    /// Its turn with the project's overlays, until its cage stands.
    pub turn: Option<OverlayTurn>,
    /// The number of its start.
    pub generation: Generation,
    /// The call or session that it serves, for the log.
    pub about: String,
}

/// Why a runner could not be started.
#[derive(Debug, thiserror::Error)]
pub enum RunnerStartError {
    /// Its process did not start.
    #[error(transparent)]
    Spawn(#[from] WorkerSpawnError),
    /// The system refused its channel, or the session's lock.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A running runner. Dropping it closes its channel, which ends it.
pub struct Runner {
    process: WorkerProcess<ToolLink>,
    program: RunnerProgram,
    /// The only right to send it `Go`.
    grant: Grant,
    life: RunnerLife,
    heartbeat: Heartbeat,
    /// How long it may take to answer a ping, once it is pinged.
    patience: Duration,
    /// The processes of its cage, as it reported them.
    cage: Vec<RecordedProcess>,
    lock: Option<SessionLock>,
    turn: Option<OverlayTurn>,
    about: String,
    started_at: Instant,
    relay: EventRelay,
    timers: Timers,
}

/// Ended with their runner, so that a session does not collect those of all its calls.
#[derive(Default)]
struct Timers(Vec<AbortHandle>);

impl Drop for Timers {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

impl Runner {
    /// Starts it and has it build its cage. `report` gets its events, and must not block.
    pub async fn start(
        start: RunnerStart<'_>,
        report: impl Fn(RunnerEvent) + Send + 'static,
    ) -> Result<Self, RunnerStartError> {
        let RunnerStart { spawner, program, grant, hello, lock, handed, turn, generation, about } =
            start;
        let started = spawner.spawn_runner(&grant, program).await?;
        let relay = EventRelay::to(report);
        let events = relay.clone();
        let process = WorkerProcess::attach(started, generation, hello, move |event| {
            events.pass(RunnerEvent::Process(event));
        })?;
        let mut runner = Self {
            life: RunnerLife::new(grant.purpose()),
            process,
            program,
            grant,
            heartbeat: Heartbeat::default(),
            patience: Duration::ZERO,
            cage: Vec::new(),
            lock: lock.cloned(),
            turn,
            about,
            started_at: Instant::now(),
            relay,
            timers: Timers::default(),
        };
        runner.prepare(handed)?;
        Ok(runner)
    }

    fn prepare(&mut self, handed: Vec<(Handover, OwnedFd)>) -> io::Result<()> {
        if let Some(lock) = &self.lock {
            self.hand(&Handover::SessionLock, lock.share(self.process.pid())?);
        }
        if let Some(turn) = &mut self.turn {
            let (lock, mount) = (turn.lock(), turn.take_mount());
            lock.into_iter().for_each(|lock| self.hand(&Handover::Overlays, lock));
            mount.into_iter().for_each(|mount| self.hand(&Handover::Mounted, mount));
        }
        for (what, descriptor) in handed {
            self.hand(&what, descriptor);
        }
        self.process.send(&self.grant.begin());
        self.limit();
        Ok(())
    }

    fn hand(&self, what: &Handover, descriptor: OwnedFd) {
        self.process.send(&ToTool::Handover(what.clone()));
        self.process.send_descriptor(descriptor);
    }

    /// Takes an event in, and says what it means to the owner.
    pub fn hear(&mut self, event: RunnerEvent) -> RunnerNews {
        match event {
            RunnerEvent::Process(ProcessEvent::Message { message, permit: _permit }) => {
                self.hear_message(message)
            }
            RunnerEvent::Process(ProcessEvent::Descriptor(descriptor)) => {
                self.hear_descriptor(descriptor)
            }
            RunnerEvent::Process(ProcessEvent::Ended(cause, heard)) => {
                RunnerNews::Ended(cause, heard)
            }
            RunnerEvent::Overdue(step) if self.life.is_at(step) => {
                tracing::warn!(about = %self.about, ?step, "a runner exceeded its time limit");
                self.process.kill();
                RunnerNews::Overdue
            }
            RunnerEvent::PingDue => {
                self.ping();
                RunnerNews::Nothing
            }
            RunnerEvent::Overdue(_) | RunnerEvent::Buried(..) => RunnerNews::Nothing,
        }
    }

    fn hear_message(&mut self, message: FromTool) -> RunnerNews {
        self.heartbeat.on_message();
        let before = self.life.limit();
        match self.life.hear(&message) {
            Concerns::Owner => {}
            Concerns::Nobody => {
                if let FromTool::Log(line) = message {
                    log_lines::write(self.program.executable(), &self.about, &line);
                }
                return RunnerNews::Nothing;
            }
            Concerns::OutOfTurn => {
                self.breach();
                return RunnerNews::Nothing;
            }
        }
        if self.life.limit() != before {
            self.limit();
        }
        match message {
            FromTool::Cage(FromCage::Keeper(keeper)) => self.list_cage(keeper),
            // Until a cage stands, or its runner is gone, nobody else may mount its overlays.
            FromTool::Cage(FromCage::Caged(enforced)) => {
                self.turn = None;
                RunnerNews::Caged(enforced)
            }
            FromTool::Cage(FromCage::Resting { tier, opened }) => {
                self.turn = None;
                RunnerNews::Resting { tier, opened }
            }
            FromTool::Cage(FromCage::Uncaged { step, reason }) => {
                RunnerNews::Uncaged { step, reason }
            }
            FromTool::Cage(FromCage::Lost(why)) => RunnerNews::Lost(why),
            FromTool::Call(said) => RunnerNews::Call(said),
            FromTool::Probed(probe) => RunnerNews::Probed(probe),
            FromTool::Proxied { connections, uncounted } => {
                RunnerNews::Proxied { connections, uncounted }
            }
            FromTool::Repaired(found) => RunnerNews::Repaired(found),
            FromTool::Certified(made) => RunnerNews::Certified(made),
            FromTool::Cage(FromCage::Mounted | FromCage::ProxyListener)
            | FromTool::Log(_)
            | FromTool::Pong(_) => RunnerNews::Nothing,
        }
    }

    fn hear_descriptor(&mut self, descriptor: OwnedFd) -> RunnerNews {
        match self.life.take_announced() {
            Some(AnnouncedFd::Mount) => {
                // Kept for the next call.
                if let Some(turn) = &mut self.turn {
                    turn.put_mount(descriptor);
                }
                RunnerNews::Nothing
            }
            Some(AnnouncedFd::ProxyListener) => RunnerNews::Listener(descriptor),
            Some(AnnouncedFd::Namespace(kind)) => RunnerNews::Namespace(kind, descriptor),
            None => {
                self.process.kill_for_breach("a descriptor out of turn");
                RunnerNews::Nothing
            }
        }
    }

    /// Lists the processes of the cage on disk, for this supervisor and the next one.
    fn list_cage(&mut self, keeper: Keeper) -> RunnerNews {
        let Some(lock) = &self.lock else { return RunnerNews::Nothing };
        match lock.record_cage(self.process.pid(), keeper) {
            Ok(Ok(cage)) => self.cage = cage,
            Ok(Err(NotRunnersChild)) => {
                self.process.kill_for_breach("it named a process that is not its own");
            }
            Err(error) => return RunnerNews::Unlisted(error),
        }
        RunnerNews::Nothing
    }

    /// Kills a runner that said what it may not say now.
    pub fn breach(&self) {
        self.process.kill_for_breach("a message out of turn");
    }

    /// Sends `Go` with this job of a call, if the grant is for that call. Descriptors of the job follow by
    /// [`send_descriptor`](Self::send_descriptor).
    ///
    /// # Errors
    /// [`OtherCall`]: nothing was sent.
    pub fn go(&mut self, call: &CallId, job: RunnerJob) -> Result<(), OtherCall> {
        let go = self.grant.go(call, job)?;
        self.release(&go);
        Ok(())
    }

    /// Sends `Go`.
    pub(crate) fn release(&mut self, go: &ToTool) {
        self.process.send(go);
        self.life.released();
        self.limit();
    }

    /// Sends a descriptor after the message sent last.
    pub fn send_descriptor(&self, descriptor: OwnedFd) {
        self.process.send_descriptor(descriptor);
    }

    /// Says something to the call that it runs.
    pub fn tell(&self, what: ToCall) {
        self.process.send(&ToTool::Call(what));
    }

    /// Asks it to end its job, or to exit where it has none yet.
    pub fn cancel(&mut self) {
        self.process.send(&ToTool::Cancel);
        self.life.cancelled();
        self.limit();
    }

    /// Kills it; its end is reported as any other.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// A call takes it from the reserve with a grant of its own: it looks at its cage again, within this time.
    pub fn renew(
        &mut self,
        (call, grant): (&CallId, Grant),
        handed: Vec<(Handover, OwnedFd)>,
        limit: Duration,
    ) {
        self.about = call.to_string();
        self.life.renewed(grant.purpose());
        self.grant = grant;
        for (what, descriptor) in handed {
            self.hand(&what, descriptor);
        }
        self.process.send(&ToTool::Renew);
        self.later(limit, RunnerEvent::Overdue(RunnerStep::Renew));
    }

    /// Its cage fits the call that took it.
    pub fn fits(&mut self) {
        self.life.fits();
    }

    /// It is killed unless its cage stands within this time.
    pub fn must_stand_within(&mut self, limit: Duration) {
        self.later(limit, RunnerEvent::Overdue(RunnerStep::Cage));
    }

    fn limit(&mut self) {
        if let Some((step, limit)) = self.life.limit() {
            self.later(limit, RunnerEvent::Overdue(step));
        }
    }

    fn later(&mut self, time: Duration, event: RunnerEvent) {
        let relay = self.relay.clone();
        let timer = tokio::spawn(async move {
            tokio::time::sleep(time).await;
            relay.pass(event);
        });
        self.timers.0.retain(|timer| !timer.is_finished());
        self.timers.0.push(timer.abort_handle());
    }

    /// Pings it from now on. It is killed if it has not answered the last ping in this time.
    pub fn ping_every(&mut self, patience: Duration) {
        self.patience = patience;
        self.later(patience, RunnerEvent::PingDue);
    }

    fn ping(&mut self) {
        match self.heartbeat.next_action(self.started_at.elapsed(), self.patience) {
            PingAction::Send => self.process.send(&ToTool::Ping(0)),
            PingAction::Wait => {}
            PingAction::Unresponsive => return self.process.kill_unresponsive(),
        }
        self.later(self.patience, RunnerEvent::PingDue);
    }

    /// It has ended by this cause. Returns that with the end of its cage, if no process of that lives; else
    /// waits aside for them, and reports [`RunnerEvent::Buried`].
    pub fn bury(self, cause: ExitCause) -> Option<(ExitCause, CageCleanup)> {
        let (relay, cage) = (self.relay.clone(), self.cage.clone());
        if !cage.iter().any(|process| process.is_alive()) {
            // A process that the kernel cannot end still holds its resources.
            let emptied = if cause == ExitCause::Unkillable {
                CageCleanup::Unkillable
            } else {
                CageCleanup::Done
            };
            return Some((cause, emptied));
        }
        tokio::spawn(async move {
            let emptied = end_cage(&cage).await;
            let cause = if emptied == CageCleanup::Done { cause } else { ExitCause::Unkillable };
            relay.pass(RunnerEvent::Buried(cause, emptied));
        });
        None
    }

    /// Ends it and the processes of its cage; nothing waits for that.
    pub fn abandon(self) {
        self.process.kill();
        let cage = self.cage.clone();
        tokio::spawn(async move { end_cage(&cage).await });
    }

    /// Closes its channel, which ends it; nothing waits for that, but it may not stay stopped.
    pub fn dismiss(self) {
        self.process.close_within(life::EXIT);
    }

    /// The way of its events, for its next owner.
    #[must_use]
    pub fn relay(&self) -> EventRelay {
        self.relay.clone()
    }

    /// The process id of the runner.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The purpose of its present grant.
    #[must_use]
    pub fn purpose(&self) -> RunnerPurpose {
        self.life.purpose()
    }

    /// The cage that it was started for.
    pub fn confinement(&self) -> &Confinement {
        self.grant.confinement()
    }

    /// When it was started.
    #[must_use]
    pub fn started_at(&self) -> Instant {
        self.started_at
    }

    /// It works, and was not asked to end.
    pub fn is_running(&self) -> bool {
        self.life.is_running()
    }

    /// It was asked to end its job.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.life.is_cancelled()
    }
}
