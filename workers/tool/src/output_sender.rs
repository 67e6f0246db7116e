//! The thread that sends a command's output, with a short queue.

use protocol::tool::{FromCall, FromTool, OutputStream};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use tools::{LiveOffer, LiveSink};

/// Pieces of at most 64 KiB that may wait for the supervisor.
const WAITING: usize = 8;

/// The way to the screens.
pub(crate) struct OutputSender {
    queue: SyncSender<FromTool>,
    thread: JoinHandle<()>,
}

impl OutputSender {
    /// Sends through `say` from now on.
    pub(crate) fn start(say: super::SupervisorSender) -> Self {
        let (queue, waiting) = sync_channel(WAITING);
        let thread = thread::spawn(move || {
            for word in waiting {
                ipc::step!("tool: command runs");
                // Without a receiver the queue is emptied all the same.
                let _ = say.send(&word);
            }
        });
        Self { queue, thread }
    }

    /// Waits until everything is sent.
    pub(crate) fn finish(self) {
        drop(self.queue);
        // A panic of that thread lost some live output; the result has it.
        let _ = self.thread.join();
    }
}

impl LiveSink for &OutputSender {
    fn offer(&mut self, stream: OutputStream, text: String) -> LiveOffer {
        match self.queue.try_send(FromTool::Call(FromCall::Output { stream, text })) {
            Ok(()) => LiveOffer::Taken,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => LiveOffer::Full,
        }
    }

    fn last(&mut self, stream: OutputStream, text: String) {
        // Fails only if the sending thread is gone, and with it all receivers.
        let _ = self.queue.send(FromTool::Call(FromCall::Output { stream, text }));
    }
}
