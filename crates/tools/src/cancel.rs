//! A request to end the call, which a loop can ask for and a poll can wait for.

use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to end the call. Clones speak of the same call.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    asked: AtomicBool,
    ring: PipeWriter,
    bell: PipeReader,
}

impl Cancel {
    /// A call that nobody asked to end.
    ///
    /// # Errors
    /// Where the process has no descriptors left.
    pub fn new() -> std::io::Result<Self> {
        let (bell, ring) = std::io::pipe()?;
        Ok(Self(Arc::new(Shared { asked: AtomicBool::new(false), ring, bell })))
    }

    /// Asks the call to end. Asking twice is asking once.
    pub fn ask(&self) {
        if !self.0.asked.swap(true, Ordering::AcqRel) {
            // A single byte into an empty pipe of our own cannot fail or wait.
            let _ = (&self.0.ring).write_all(&[1]);
        }
    }

    /// Whether the call shall end.
    #[must_use]
    pub fn asked(&self) -> bool {
        self.0.asked.load(Ordering::Acquire)
    }
}

impl AsFd for Cancel {
    /// Readable from the moment that the call shall end.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.bell.as_fd()
    }
}
