//! A request to end the call, which a loop can ask for and a poll can wait for.

use crate::failure::ToolFailure;
use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to end the call. Clones refer to the same call.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<CancelState>);

#[derive(Debug)]
struct CancelState {
    requested: AtomicBool,
    write_end: PipeWriter,
    read_end: PipeReader,
}

impl Cancel {
    /// A call without such a request.
    ///
    /// # Errors
    /// Where the process has no descriptors left.
    pub fn new() -> std::io::Result<Self> {
        let (read_end, write_end) = std::io::pipe()?;
        Ok(Self(Arc::new(CancelState { requested: AtomicBool::new(false), write_end, read_end })))
    }

    /// Asks the call to end. Asking twice is asking once.
    pub fn request(&self) {
        if !self.0.requested.swap(true, Ordering::AcqRel) {
            // A single byte into an empty pipe of our own cannot fail or wait.
            let _ = (&self.0.write_end).write_all(&[1]);
        }
    }

    /// Fails after the request.
    pub(crate) fn check(&self) -> Result<(), ToolFailure> {
        if self.is_requested() { Err(ToolFailure::interrupted()) } else { Ok(()) }
    }

    /// True after the request.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::Acquire)
    }
}

impl AsFd for Cancel {
    /// Readable from the moment that the call shall end.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.read_end.as_fd()
    }
}
