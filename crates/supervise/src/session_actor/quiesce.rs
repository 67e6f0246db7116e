//! Times in which a session starts no turn: while the supervisor checks for work before a shutdown,
//! and once the session ends. Prompts wait on disk meanwhile, as during a turn.

use super::state::SessionActorState;
use crate::messages::{SessionMsg, SessionSummary};
use ractor::ActorRef;

impl SessionActorState {
    /// Starts no turn until it is resumed as often; returns the summary.
    pub(super) fn pause(&mut self) -> SessionSummary {
        self.turn.pauses += 1;
        self.summary()
    }

    /// The shutdown was refused: turns may start again.
    pub(super) async fn resume(&mut self, myself: &ActorRef<SessionMsg>) {
        self.turn.pauses = self.turn.pauses.saturating_sub(1);
        self.start_next_turn(myself).await;
    }

    /// A prompt has to wait although no turn runs.
    pub(super) fn is_paused(&self) -> bool {
        self.turn.pauses > 0 || self.closing.has_begun()
    }
}
