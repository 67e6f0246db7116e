//! The thread that sends what a command prints, with a short queue before it.

use protocol::tool::{FromTool, Stream};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use tools::Shown;

/// Pieces of at most 64 KiB that may wait for the supervisor.
const WAITING: usize = 8;

/// The way to the screens.
pub(crate) struct Screen {
    queue: SyncSender<FromTool>,
    thread: JoinHandle<()>,
}

impl Screen {
    /// Sends through `say` from now on.
    pub(crate) fn start(say: super::Say) -> Self {
        let (queue, waiting) = sync_channel(WAITING);
        let thread = thread::spawn(move || {
            for word in waiting {
                // Where nobody hears it the queue is emptied all the same.
                let _ = say.send(&word);
            }
        });
        Self { queue, thread }
    }

    /// Puts a piece in the queue, where there is room. Never waits.
    pub(crate) fn show(&self, stream: Stream, text: String) -> Shown {
        match self.queue.try_send(FromTool::Output { stream, text }) {
            Ok(()) => Shown::Taken,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Shown::Full,
        }
    }

    /// Waits until all of it is sent.
    pub(crate) fn finish(self) {
        drop(self.queue);
        // A panic of that thread lost some live output; the result has it.
        let _ = self.thread.join();
    }
}
