//! The wait of a run for the MCP servers of its session. For `one_shot`.

use super::task::RunInput;
use protocol::mcp::{ServerReport, ServerState};
use std::time::{Duration, Instant};

/// The pause between two questions about the servers.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest time that servers are awaited: the largest `startup_timeout_sec`, and a margin.
const LONGEST_START: Duration = Duration::from_secs(605);

/// The wait until each server of a session is ready or has ended, as the first request waits too.
pub(super) struct ServerWait {
    until: Instant,
    /// When they are asked for again.
    next_query: Option<Instant>,
    /// Came meanwhile.
    stash: Vec<RunInput>,
}

impl ServerWait {
    pub(super) fn begin() -> Self {
        let now = Instant::now();
        Self { until: now + LONGEST_START, next_query: Some(now), stash: Vec::new() }
    }

    /// True if a question about the servers is due, which is then sent.
    pub(super) fn take_due_query(&mut self) -> bool {
        self.next_query.take_if(|due| *due <= Instant::now()).is_some()
    }

    /// When the next question is due; none while an answer is awaited.
    pub(super) fn next_query(&self) -> Option<Instant> {
        self.next_query
    }

    /// Takes the answer. True if the wait is over.
    pub(super) fn ends_with(&mut self, servers: &[ServerReport]) -> bool {
        let now = Instant::now();
        self.next_query = Some(now + PAUSE);
        let is_any_starting = servers.iter().any(|it| it.state == ServerState::Starts);
        !is_any_starting || now >= self.until
    }

    /// Keeps an input for later.
    pub(super) fn stash(&mut self, input: RunInput) {
        self.stash.push(input);
    }

    /// The inputs that came meanwhile.
    pub(super) fn into_stash(self) -> Vec<RunInput> {
        self.stash
    }
}
