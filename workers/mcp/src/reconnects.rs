//! Pauses before a stream of a server is opened again: a server that ends its streams at once, or wants them
//! back at once (`retry: 0`), is asked at growing pauses. Used by the transport over HTTP.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The pause before the second stream, and the longest one. A server may have its clients fetch an answer by
/// one stream after another, which a longer pause would hold up.
const SHORTEST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(5);
/// Without a new stream for so long, pauses begin anew.
const QUIET: Duration = Duration::from_secs(30);

/// The streams of one server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reconnects(Arc<Mutex<Streams>>);

#[derive(Debug)]
struct Streams {
    /// When the last one was opened.
    opened: Option<Instant>,
    /// The shortest time between it and the next one.
    pause: Duration,
}

impl Default for Streams {
    fn default() -> Self {
        Self { opened: None, pause: SHORTEST }
    }
}

impl Reconnects {
    /// Waits until a stream may be opened.
    pub(crate) async fn wait(&self) {
        let pause = {
            let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            streams.open(Instant::now())
        };
        // The first stream may carry what a server sends during the first call: even the shortest sleep would
        // let that call begin before.
        if pause > Duration::ZERO {
            tokio::time::sleep(pause).await;
        }
    }
}

impl Streams {
    /// The wait before a stream that is wanted now. Pauses grow while a server wants its streams back sooner.
    fn open(&mut self, now: Instant) -> Duration {
        let since = self.opened.map(|opened| now.saturating_duration_since(opened));
        let wait = match since {
            Some(since) if since < QUIET => self.pause.saturating_sub(since),
            Some(_) | None => {
                self.pause = SHORTEST;
                Duration::ZERO
            }
        };
        if wait > Duration::ZERO {
            self.pause = self.pause.saturating_mul(2).min(LONGEST);
        }
        self.opened = Some(now + wait);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stream_is_opened_at_once_and_the_others_at_growing_pauses() {
        let (mut streams, mut now) = (Streams::default(), Instant::now());
        let mut waits = Vec::new();
        for _ in 0..7 {
            let wait = streams.open(now);
            waits.push(wait.as_millis());
            now += wait;
        }
        assert_eq!(waits, [0, 500, 1000, 2000, 4000, 5000, 5000]);
        assert_eq!(streams.open(now + QUIET), Duration::ZERO, "it was quiet");
    }

    #[test]
    fn a_server_that_gives_its_clients_time_is_not_held_up() {
        let (mut streams, now) = (Streams::default(), Instant::now());
        for at in 0..20 {
            assert_eq!(streams.open(now + SHORTEST * at), Duration::ZERO);
        }
    }
}
