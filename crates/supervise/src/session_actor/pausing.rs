//! When a session begins no turn: while a daemon that was asked to end looks whether work is under way,
//! and once the session ends. What people say meanwhile waits on disk, as behind a turn that runs.

use super::{Glance, SessionMsg, SessionState};
use ractor::ActorRef;

impl SessionState {
    /// Begins no turn until it is told to go on as often; says how it is.
    pub(super) fn pause(&mut self) -> Glance {
        self.pauses += 1;
        self.glance()
    }

    /// Nobody ends it after all.
    pub(super) async fn unpause(&mut self, myself: &ActorRef<SessionMsg>) {
        self.pauses = self.pauses.saturating_sub(1);
        self.go_on(myself).await;
    }

    /// Whether a prompt has to wait although nothing runs.
    pub(super) fn is_held_back(&self) -> bool {
        self.pauses > 0 || !self.closing.is_empty()
    }
}
