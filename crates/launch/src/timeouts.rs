//! Timeouts and limits of workers, from `daemon.*`. Used by the worker actor and by the actors that
//! own workers.

use crate::restart::RestartLimits;
use config::DaemonConfig;
use std::time::Duration;

/// Timeouts and limits of one worker.
#[derive(Debug, Clone, Copy)]
pub struct WorkerTimeouts {
    /// From a start to Hello.
    pub hello: Duration,
    /// From a ping to its pong.
    pub ping: Duration,
    /// From the end of its channel to its kill.
    pub shutdown: Duration,
    /// When it is not restarted any more.
    pub limits: RestartLimits,
    /// For a conversation, whose first message comes after its journal is replayed: after this many
    /// crashes during replay within this time, its session is degraded.
    pub replay: (usize, Duration),
}

impl WorkerTimeouts {
    /// The limits of a conversation.
    pub fn replaying(self) -> Self {
        Self { limits: RestartLimits { replay: Some(self.replay), ..self.limits }, ..self }
    }
}

impl From<DaemonConfig> for WorkerTimeouts {
    fn from(daemon: DaemonConfig) -> Self {
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Self {
            hello: Duration::from_millis(daemon.hello_ms),
            ping: Duration::from_millis(daemon.ping_ms),
            shutdown: Duration::from_millis(daemon.shutdown_ms),
            limits: RestartLimits {
                no_progress: count(daemon.restart_crashes),
                no_progress_window: Duration::from_millis(daemon.restart_crash_window_ms),
                replay: None,
                total: count(daemon.restart_total),
                total_window: Duration::from_millis(daemon.restart_window_ms),
                first_wait: Duration::from_millis(daemon.restart_delay_ms),
                longest_wait: Duration::from_millis(daemon.restart_delay_cap_ms),
            },
            replay: (
                count(daemon.replay_crashes),
                Duration::from_millis(daemon.replay_crash_window_ms),
            ),
        }
    }
}

impl Default for WorkerTimeouts {
    /// For the broker, which belongs to no session and so to no project's configuration. A start
    /// takes milliseconds: after 5 s the machine is in trouble. A pong takes less than 1 ms: after
    /// 2 s the process is stopped. 2 s from TERM to KILL is how long people wait.
    fn default() -> Self {
        Self {
            hello: Duration::from_secs(5),
            ping: Duration::from_secs(2),
            shutdown: Duration::from_secs(2),
            limits: RestartLimits::default(),
            replay: (3, Duration::from_secs(60)),
        }
    }
}
