//! How much of a run's time went by while its calls ran; the rest, the model was waited for. For
//! `one_shot`.

use crate::transcript::Took;
use std::time::{Duration, Instant};

/// The calls of a turn.
#[derive(Debug, Default)]
pub(crate) struct Calling {
    since: Option<Instant>,
    before: Duration,
}

impl Calling {
    /// So many calls are open from now on.
    pub(crate) fn now(&mut self, open: usize) {
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
    pub(crate) fn took(mut self, began: Instant) -> Took {
        self.now(0);
        let all = began.elapsed();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Took { all_ms: millis(all), model_ms: millis(all.saturating_sub(self.before)) }
    }
}
