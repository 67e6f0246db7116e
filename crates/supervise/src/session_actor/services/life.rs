//! The times of an MCP server's life, for people who ask. Pure but for the clock.

use protocol::mcp::ServerState;
use std::time::{Duration, Instant};

/// The times of a server's life, and its last end.
#[derive(Debug, Default)]
pub(super) struct ServerLife {
    began: Option<Instant>,
    ready_after: Option<Duration>,
    ended: Option<(String, Instant)>,
}

impl ServerLife {
    /// Its call was proposed.
    pub(super) fn begins(&mut self) {
        *self = Self { began: Some(Instant::now()), ..Self::default() };
    }

    /// It has listed its tools.
    pub(super) fn is_ready(&mut self) {
        let after = self.began.map(|began| began.elapsed());
        self.ready_after = self.ready_after.or(after);
    }

    /// It has ended, or cannot start.
    pub(super) fn ends(&mut self, why: String) {
        *self = Self { ended: Some((why, Instant::now())), ..Self::default() };
    }

    /// The time since it began or ended.
    pub(super) fn since(&self) -> Duration {
        let at = self.ended.as_ref().map(|(_, at)| *at).or(self.began);
        at.map(|at| at.elapsed()).unwrap_or_default()
    }

    pub(super) fn state(&self) -> ServerState {
        match (&self.ended, self.ready_after) {
            (Some((why, _)), _) => ServerState::Ended(why.clone()),
            (None, Some(after)) => ServerState::Ready {
                after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
            },
            (None, None) => ServerState::Starts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_has_its_states_in_their_order() {
        let mut life = ServerLife::default();
        assert_eq!(life.state(), ServerState::Starts);
        life.begins();
        assert_eq!(life.state(), ServerState::Starts);
        life.is_ready();
        assert!(matches!(life.state(), ServerState::Ready { after_ms: 0..1000 }));
        life.ends("it died".to_owned());
        assert_eq!(life.state(), ServerState::Ended("it died".to_owned()));
        life.begins();
        assert_eq!(life.state(), ServerState::Starts, "it starts again");
    }
}
