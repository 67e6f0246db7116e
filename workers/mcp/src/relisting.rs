//! When a list that the server says has changed is asked for again: one request at a time, after pauses that
//! grow while changes go on. Pure. Used by the client.

use std::time::{Duration, Instant};

/// The pause before the first request.
const SHORTEST: Duration = Duration::from_millis(200);
/// The longest pause. Stops a server that reports changes all the time.
const LONGEST: Duration = Duration::from_secs(30);
/// Without a change for so long, pauses begin anew.
const QUIET: Duration = Duration::from_secs(60);

/// One list of a server.
#[derive(Debug)]
pub(crate) struct Relisting {
    request: Request,
    /// The pause before the last request, and its end.
    last: Option<(Duration, Instant)>,
}

/// Whether the list is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    None,
    UnderWay,
    /// It changed while it was asked for.
    Again,
}

impl Relisting {
    /// A list that was read before.
    pub(crate) fn idle() -> Self {
        Self { request: Request::None, last: None }
    }

    /// The list has changed. Returns the pause before it is asked for, unless a request is under way.
    pub(crate) fn changed(&mut self, now: Instant) -> Option<Duration> {
        match self.request {
            Request::None => Some(self.begin(now)),
            Request::UnderWay | Request::Again => {
                self.request = Request::Again;
                None
            }
        }
    }

    /// The request has ended. Returns the pause before the next one, if the list has changed meanwhile.
    pub(crate) fn ended(&mut self, now: Instant) -> Option<Duration> {
        if let Some((_, end)) = &mut self.last {
            *end = now;
        }
        match std::mem::replace(&mut self.request, Request::None) {
            Request::Again => Some(self.begin(now)),
            Request::None | Request::UnderWay => None,
        }
    }

    fn begin(&mut self, now: Instant) -> Duration {
        self.request = Request::UnderWay;
        let pause = match self.last {
            Some((pause, end)) if now.saturating_duration_since(end) < QUIET => {
                pause.saturating_mul(2).min(LONGEST)
            }
            Some(_) | None => SHORTEST,
        };
        self.last = Some((pause, now));
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_without_an_end_are_followed_at_growing_pauses_and_never_twice_at_once() {
        let (mut list, mut now) = (Relisting::idle(), Instant::now());
        assert_eq!(list.changed(now), Some(SHORTEST));
        assert_eq!(list.changed(now), None, "it is under way");
        let mut pauses = Vec::new();
        for _ in 0..10 {
            pauses.extend(list.ended(now));
            assert_eq!(list.changed(now), None);
            now += Duration::from_millis(1);
        }
        let twice: Vec<_> = pauses.windows(2).map(|two| two[0] * 2).collect();
        assert_eq!(pauses[1..7], twice[..6], "{pauses:?}");
        assert_eq!(pauses.last(), Some(&LONGEST), "{pauses:?}");
    }

    #[test]
    fn a_quiet_list_is_asked_for_soon_again() {
        let (mut list, now) = (Relisting::idle(), Instant::now());
        let _ = list.changed(now);
        assert_eq!(list.ended(now), None);
        assert_eq!(list.changed(now + Duration::from_secs(1)), Some(SHORTEST * 2));
        assert_eq!(list.ended(now), None);
        assert_eq!(list.changed(now + QUIET), Some(SHORTEST));
    }
}
