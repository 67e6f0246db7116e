//! Waits for the processes in a call's cage to end after its runner. When the call is concluded,
//! none of them runs. Used by `runner`.

use crate::orphans::RecordedProcess;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the kernel gets to end the processes in the cage. Only a process that waits for a disk
/// needs more.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two attempts, at first and at most. A continued guard may be stopped again, so each
/// attempt repeats the signal.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Result of ending the processes in a cage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CageCleanup {
    /// None of them lives.
    Done,
    /// A process in it cannot be killed.
    Unkillable,
}

/// Ends these processes of a cage whose runner is gone. They end by themselves unless their keeper
/// was stopped.
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
