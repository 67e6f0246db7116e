//! How much of a run's time went by while its calls ran; the rest, the model was waited for. For
//! `one_shot`.

use crate::transcript::Timing;
use std::time::{Duration, Instant};

/// The calls of a turn.
#[derive(Debug, Default)]
pub(crate) struct CallTime {
    since: Option<Instant>,
    before: Duration,
}

impl CallTime {
    /// So many calls are open from now on.
    pub(crate) fn set_open(&mut self, open: usize) {
        match (self.since, open) {
            (None, 1..) => self.since = Some(Instant::now()),
            (Some(since), 0) => {
                self.before += since.elapsed();
                self.since = None;
            }
            (None, 0) | (Some(_), 1..) => {}
        }
    }

    /// The times of a turn that began then and is over.
    pub(crate) fn timing(mut self, began: Instant) -> Timing {
        self.set_open(0);
        let all = began.elapsed();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Timing { all_ms: millis(all), model_ms: millis(all.saturating_sub(self.before)) }
    }
}
