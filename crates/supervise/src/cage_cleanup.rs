//! The cage of a running call: its end is waited for behind the runner's, so that nothing of a call lives
//! when it is concluded. Used by the call actor.

use crate::orphans::RecordedProcess;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the kernel gets to end what is in the cage; more needs only what waits for a disk.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two looks, at first and at last. What was continued may be stopped again.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Whether all in a cage has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CageCleanup {
    Done,
    /// Something in it cannot be ended.
    Unkillable,
}

/// Ends the cage of these processes, whose runner is gone. It ends by itself unless its keeper was
/// stopped.
pub(crate) async fn end_cage(cage: &[RecordedProcess]) -> CageCleanup {
    let (until, mut pause) = (Instant::now() + KILL_TIMEOUT, FIRST_PAUSE);
    while cage.iter().any(|process| process.is_alive()) {
        if Instant::now() > until {
            return CageCleanup::Unkillable;
        }
        for process in cage {
            let _ = process.end();
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    CageCleanup::Done
}
