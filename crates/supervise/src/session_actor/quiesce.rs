//! When a session begins no turn: while a daemon that was asked to end looks whether work is under way,
//! and once the session ends. What people say meanwhile waits on disk, as behind a turn that runs.

use super::{SessionActorState, SessionMsg, SessionSummary};
use ractor::ActorRef;

impl SessionActorState {
    /// Begins no turn until it is told to go on as often; says how it is.
    pub(super) fn pause(&mut self) -> SessionSummary {
        self.pauses += 1;
        self.glance()
    }

    /// Nobody ends it after all.
    pub(super) async fn resume(&mut self, myself: &ActorRef<SessionMsg>) {
        self.pauses = self.pauses.saturating_sub(1);
        self.start_next_turn(myself).await;
    }

    /// Whether a prompt has to wait although nothing runs.
    pub(super) fn is_paused(&self) -> bool {
        self.pauses > 0 || !self.closing.is_empty()
    }
}
