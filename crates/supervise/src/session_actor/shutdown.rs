//! The end of a session: its hooks, its calls, then its workers, then its actor. `closing` knows how far it is.
//!
//! A session that only scripts use ends when its run is over and no client is attached. A session that a person
//! opened stays until the person ends it, or the daemon ends. A session that the disk has made read-only ends when
//! its last client leaves, so that the next client opens it again.

use super::closing::EndWanted;
use super::hook_events;
use super::links::OwnProcesses;
use super::state::SessionActorState;
use crate::fleet_seat::FleetEvent;
use crate::messages::{CallMsg, Lifetime, ReserveMsg, RootMsg, SessionMsg, SessionTimer};
use call::CallInput;
use protocol::client::{DetachReason, SessionEnding};
use protocol::judgement::Audience;
use ractor::ActorRef;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long the end of a session waits for the repair of protected files whose runners were killed.
const REPAIR: Duration = Duration::from_secs(3);
/// How long runners may take to end when a person kills the session; they need a third of it.
const KILL_GRACE: Duration = Duration::from_secs(1);
/// All hooks of the end together have this time, of the ten seconds that a shutdown takes at most.
const END_HOOKS: Duration = Duration::from_secs(4);

impl SessionActorState {
    /// Ends the calls, then the workers, then this actor. Calls that began and do not end in time are
    /// recorded as `may have run` when the session is opened again.
    pub(super) fn close(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        ending: SessionEnding,
        done: oneshot::Sender<()>,
    ) {
        match self.closing.is_wanted(done, ending) {
            EndWanted::Again => return,
            EndWanted::Hurries => return self.end_processes(myself, ending),
            EndWanted::First => {}
        }
        self.detach_all(DetachReason::Ended, "the session was ended; it is on disk");
        self.close_tasks(ending);
        self.calls.running.send_all(|| CallMsg::Input(CallInput::Cancel));
        // A session that ends in the middle of a turn is cut short, and its hooks do not run.
        let runs_hooks = ending == SessionEnding::Stop
            && !self.turn.router.is_busy()
            && self.workers.run_hooks(&self.spec.setup.hooks, hook_events::end());
        if !runs_hooks {
            return self.end_processes(myself, ending);
        }
        self.closing.hooks_run();
        myself.send_after(END_HOOKS, || SessionMsg::Timer(SessionTimer::EndHooks));
    }

    /// The hooks of the end have ended, or are not awaited any longer.
    pub(super) fn end_hooks_over(&mut self, myself: &ActorRef<SessionMsg>) {
        if self.closing.awaits_hooks() {
            self.end_processes(myself, SessionEnding::Stop);
        }
    }

    fn end_processes(&mut self, myself: &ActorRef<SessionMsg>, ending: SessionEnding) {
        self.closing.processes_end();
        self.calls.running.send_all(|| CallMsg::Input(CallInput::Cancel));
        let rest = Rest {
            calls: self.calls.running.all(),
            reserve: self.calls.reserve.stop(),
            processes: self.workers.own(),
            patience: self.resources.times.shutdown,
        };
        tokio::spawn(rest.end(ending, myself.clone()));
    }

    pub(super) fn on_fleet_event(&mut self, myself: &ActorRef<SessionMsg>, event: FleetEvent) {
        match event {
            FleetEvent::Frozen | FleetEvent::Thawed => self.follow_lease(),
            FleetEvent::Lost(why) => {
                tracing::warn!(session = %self.spec.id, why, "the session's lease is lost");
                let message = format!("this host has the session no longer: {why}");
                self.workers.failures.disk_failed(message.clone());
                self.detach_all(DetachReason::Failed, &message);
                self.close(myself, SessionEnding::Kill, oneshot::channel().0);
            }
        }
    }

    /// Asks the supervisor actor to let no client join for a moment, if the session looks idle.
    pub(super) fn retire_if_unused(&self) {
        if !self.is_needed() {
            let lifetime = match self.spec.task() {
                Some(_) => Lifetime::Task,
                None => Lifetime::Run,
            };
            let _ = self.root.send_message(RootMsg::Retire(self.spec.id.clone(), lifetime));
        }
    }

    /// No client can join any more. The session goes on if one joined meanwhile.
    pub(super) fn retire(&mut self, myself: &ActorRef<SessionMsg>) {
        if self.is_needed() {
            let _ = self.root.send_message(RootMsg::RetireRefused(self.spec.id.clone()));
            return;
        }
        tracing::info!(session = %self.spec.id, "ends: its run is over and no client is attached");
        self.close(myself, SessionEnding::Stop, oneshot::channel().0);
    }

    fn is_needed(&self) -> bool {
        let has_work = self.clients.any_expected()
            || self.foreground().next().is_some()
            || self.closing.has_begun();
        if self.workers.failures.disk().is_some() {
            // Its turn cannot go on here. It can be read from the disk, and opening it again is the way on.
            return has_work || self.clients.any_attached();
        }
        has_work
            || self.is_used()
            || self.tasks.own.is_awaited()
            // The session of a sub-agent ends with its work.
            || (self.spec.rules.audience == Audience::Person && self.spec.task().is_none())
            || self.turn.next_audience == Some(Audience::Person)
            // It can be read, and `agentd restart` finds it.
            || self.degraded().is_some()
    }
}

/// What is left of a session that ends.
struct Rest {
    calls: Vec<ActorRef<CallMsg>>,
    reserve: Option<ActorRef<ReserveMsg>>,
    processes: OwnProcesses,
    /// How long each of them may take.
    patience: Duration,
}

impl Rest {
    async fn end(self, ending: SessionEnding, session: ActorRef<SessionMsg>) {
        let Self { calls, reserve, processes, patience } = self;
        let for_runners = match ending {
            SessionEnding::Stop => patience,
            SessionEnding::Kill => patience.min(KILL_GRACE),
        };
        // Commands end at once. All runners together have this time to restore protected files.
        wait_for(&calls, for_runners).await;
        for call in &calls {
            let _ = call.send_message(CallMsg::Input(CallInput::Overdue));
        }
        // Repair processes restore the rest; files that they do not reach are restored when the
        // session is opened again.
        wait_for(&calls, REPAIR).await;
        calls.iter().for_each(|call| call.stop(None));
        if let Some(reserve) = reserve {
            let _ = reserve.wait(Some(REPAIR)).await;
        }
        processes.end(patience + Duration::from_secs(1)).await;
        session.stop(None);
    }
}

/// Waits until all of these calls have ended, for at most this time.
async fn wait_for(calls: &[ActorRef<CallMsg>], time: Duration) {
    let until = Instant::now() + time;
    for call in calls {
        let left = until.saturating_duration_since(Instant::now());
        let _ = call.wait(Some(left)).await;
    }
}
