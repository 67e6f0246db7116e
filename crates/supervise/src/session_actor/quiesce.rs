//! When a session begins no turn: while a daemon that was asked to end looks whether work is under way,
//! and once the session ends. What people say meanwhile waits on disk, as behind a turn that runs.

use super::state::SessionActorState;
use crate::messages::{SessionMsg, SessionSummary};
use ractor::ActorRef;

impl SessionActorState {
    /// Begins no turn until it is told to go on as often; says how it is.
    pub(super) fn pause(&mut self) -> SessionSummary {
        self.turn.pauses += 1;
        self.summary()
    }

    /// Nobody ends it after all.
    pub(super) async fn resume(&mut self, myself: &ActorRef<SessionMsg>) {
        self.turn.pauses = self.turn.pauses.saturating_sub(1);
        self.start_next_turn(myself).await;
    }

    /// Whether a prompt has to wait although nothing runs.
    pub(super) fn is_paused(&self) -> bool {
        self.turn.pauses > 0 || !self.closing.is_empty()
    }
}
