//! Passes the events of a runner to its present owner: first the session's reserve, then the call that takes
//! the runner.

use super::events::RunnerEvent;
use std::sync::{Arc, Mutex, PoisonError};

type Receiver = Box<dyn Fn(RunnerEvent) + Send>;

/// The way of one runner's events. Clones share it.
#[derive(Clone)]
pub struct EventRelay(Arc<Mutex<Receiver>>);

impl EventRelay {
    /// Passes events to this receiver, which must not block.
    pub(super) fn to(receiver: impl Fn(RunnerEvent) + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Box::new(receiver))))
    }

    /// Passes later events to this receiver. Every earlier event has reached the receiver before.
    pub fn redirect(&self, receiver: impl Fn(RunnerEvent) + Send + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(receiver);
    }

    /// Passes an event on.
    pub fn pass(&self, event: RunnerEvent) {
        let receiver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        receiver(event);
    }
}
