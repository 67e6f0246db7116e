//! One run at a time for each session on this host. `task_run` takes the turn of a session before it touches
//! the session's directories.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OwnedMutexGuard;

/// The turns of all sessions that this worker has run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns(Arc<Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>>);

impl Turns {
    /// Waits until no other run of this session goes on here.
    pub(crate) async fn of(&self, session: &str) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // A turn that no run has or waits for is referred to by this list alone.
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(session.to_owned()).or_default())
        };
        turn.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(flavor = "current_thread")]
    async fn a_second_run_of_a_session_waits_and_one_of_another_does_not() {
        let turns = Turns::default();
        let first = turns.of("a").await;
        let _other = turns.of("b").await;
        let second = tokio::time::timeout(Duration::from_millis(50), turns.of("a")).await;
        assert!(second.is_err());
        drop(first);
        drop(turns.of("a").await);
    }
}
