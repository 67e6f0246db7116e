//! The cage of a running call: its end is waited for behind the runner's, so that nothing of a call lives
//! when it is concluded. Used by the call actor.

use crate::leftover::Listed;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the kernel gets to end what is in the cage; more needs only what waits for a disk.
const UNENDED: Duration = Duration::from_secs(5);
/// Between two looks, at first and at last. What was continued may be stopped again.
const SHORT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_millis(100);

/// Whether all in a cage has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Emptied {
    Yes,
    /// Something in it cannot be ended.
    No,
}

/// Ends the cage of these processes, whose runner is gone. It ends by itself unless its keeper was
/// stopped.
pub(crate) async fn empty(cage: &[Listed]) -> Emptied {
    let (until, mut pause) = (Instant::now() + UNENDED, SHORT);
    while cage.iter().any(|process| process.lives()) {
        if Instant::now() > until {
            return Emptied::No;
        }
        for process in cage {
            let _ = process.end();
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONG);
    }
    Emptied::Yes
}
