//! Passes the events of a process to its present owner: first the session's reserve, then the call
//! that takes the runner.

use crate::worker::process::ProcessEvent;
use protocol::Link;
use std::sync::{Arc, Mutex, PoisonError};

type Receiver<L> = Box<dyn Fn(ProcessEvent<L>) + Send>;

/// The way of one process's events. Clones share it.
pub(crate) struct EventRelay<L: Link>(Arc<Mutex<Receiver<L>>>);

impl<L: Link> EventRelay<L> {
    /// Passes events to this receiver, which must not block.
    pub(crate) fn to(receiver: impl Fn(ProcessEvent<L>) + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Box::new(receiver))))
    }

    /// Passes later events to this receiver. Every earlier event has reached the receiver before.
    pub(crate) fn redirect(&self, receiver: impl Fn(ProcessEvent<L>) + Send + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(receiver);
    }

    /// Passes an event on.
    pub(crate) fn pass(&self, event: ProcessEvent<L>) {
        let receiver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        receiver(event);
    }
}

impl<L: Link> Clone for EventRelay<L> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
