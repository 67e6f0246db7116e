//! Timeouts and limits of workers. Used by the worker actor and by the actors that own workers.

use crate::restart::RestartLimits;
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

impl Default for WorkerTimeouts {
    /// A start takes milliseconds: after 5 s the machine is in trouble. A pong takes less than 1 ms: after
    /// 2 s the process is stopped. 2 s from TERM to KILL is enough to flush, and how long people wait. A journal that
    /// crashes its conversation three times will do so again; 60 s are longer than any replay.
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
