//! When the servers of a session start. In a terminal two start at once and the others a moment later, so that
//! they leave the processors to the first prompt. Pure. Used by the servers of a session.

use std::time::Duration;

/// So many servers start at once.
const AT_ONCE: usize = 2;
/// The pause before the next ones. A server that waits for a network does not hold them up.
const PAUSE: Duration = Duration::from_millis(100);

/// The first request of a session with servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session_actor) enum FirstRequest {
    /// Later ones have the tools of servers that are not ready.
    ComesAtOnce,
    /// A script or a sub-agent would miss their tools.
    Waits,
}

/// The pause before the server at this place starts.
pub(super) fn pause_before(at: usize, request: FirstRequest) -> Duration {
    match request {
        FirstRequest::Waits => Duration::ZERO,
        FirstRequest::ComesAtOnce => {
            PAUSE.saturating_mul(u32::try_from(at / AT_ONCE).unwrap_or(u32::MAX))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_start_two_by_two_behind_the_first_prompt_and_together_before_one_that_waits() {
        let millis = |request| (0..5).map(move |at| pause_before(at, request).as_millis());
        assert_eq!(millis(FirstRequest::ComesAtOnce).collect::<Vec<_>>(), [0, 0, 100, 100, 200]);
        assert_eq!(millis(FirstRequest::Waits).collect::<Vec<_>>(), [0; 5]);
    }
}
