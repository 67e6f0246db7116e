//! The replay of the journal to a new process of the conversation: how far it is, and the thread that reads the
//! records in batches, as fast as the conversation takes them. So a long journal blocks neither the actor nor much
//! memory.

use crate::records::decode::JournalReplay;
use journal::ReadError;
use protocol::error_chain::chain;
use protocol::ids::SessionId;
use protocol::session::{OpenTurn, ToSession};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Messages of one batch.
const BATCH: usize = 64;
/// Batches that are read and not yet taken.
const BATCHES_IN_FLIGHT: usize = 4;

/// How far the journal was replayed to the present process of the conversation; `R` is a running replay, which
/// stops when it is dropped.
#[derive(Debug)]
pub(super) struct Replay<R>(Phase<R>);

#[derive(Debug)]
enum Phase<R> {
    /// There is no process, as far as the session knows.
    NoProcess,
    NotStarted,
    /// Complete or under way: the process gets every message from now on.
    Started {
        _running: R,
    },
}

impl<R> Replay<R> {
    pub(super) fn none_yet() -> Self {
        Self(Phase::NoProcess)
    }

    /// A new process waits for it.
    pub(super) fn process_came(&mut self) {
        self.0 = Phase::NotStarted;
    }

    pub(super) fn process_ended(&mut self) {
        self.0 = Phase::NoProcess;
    }

    /// A process waits for it.
    pub(super) fn is_due(&self) -> bool {
        matches!(self.0, Phase::NotStarted)
    }

    pub(super) fn starts(&mut self, running: R) {
        self.0 = Phase::Started { _running: running };
    }

    /// The process gets every message. One that is not replayed yet gets the same content with its first message,
    /// from the records, or when it is ready.
    pub(super) fn has_started(&self) -> bool {
        matches!(self.0, Phase::Started { .. })
    }
}

/// A replay that was started. It stops when this is dropped.
#[derive(Debug)]
pub(super) struct RunningReplay(Arc<Semaphore>);

impl Drop for RunningReplay {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The records of a session to replay, up to the last one, and the fate of an open turn and of a wish for room.
pub(crate) struct ReplayedJournal {
    pub(crate) directory: PathBuf,
    pub(crate) session: SessionId,
    pub(crate) last: u64,
    pub(crate) fate: (OpenTurn, Option<String>),
}

impl ReplayedJournal {
    /// Reads the records in another thread and forwards them. The error is for people.
    pub(super) fn forward(
        self,
        forward: impl FnMut(Vec<ToSession>, OwnedSemaphorePermit) + Send + 'static,
        failed: impl FnOnce(String) + Send + 'static,
    ) -> RunningReplay {
        let in_flight = Arc::new(Semaphore::new(BATCHES_IN_FLIGHT));
        let running = RunningReplay(Arc::clone(&in_flight));
        tokio::task::spawn_blocking(move || {
            let Self { directory, session, last, fate } = self;
            let batches = BatchSender { in_flight, forward };
            if let Err(error) = read(&directory, &session, last, fate, batches) {
                failed(format!("its records could not be read: {}", chain(&error)));
            }
        });
        running
    }
}

/// Sends batches to the conversation.
struct BatchSender<S> {
    in_flight: Arc<Semaphore>,
    forward: S,
}

/// The conversation's process has ended.
struct ReplayStopped;

impl<S: FnMut(Vec<ToSession>, OwnedSemaphorePermit)> BatchSender<S> {
    /// Sends a batch once the conversation has taken enough of the earlier ones.
    fn send(&mut self, messages: Vec<ToSession>) -> Result<(), ReplayStopped> {
        let permit = Handle::current().block_on(Arc::clone(&self.in_flight).acquire_owned());
        (self.forward)(messages, permit.map_err(|_| ReplayStopped)?);
        Ok(())
    }
}

/// Sends the records up to this one, and the fate of an open turn and of a wish for room.
fn read(
    directory: &Path,
    session: &SessionId,
    last: u64,
    (then, compact): (OpenTurn, Option<String>),
    mut batches: BatchSender<impl FnMut(Vec<ToSession>, OwnedSemaphorePermit)>,
) -> Result<(), ReadError> {
    let mut replay = JournalReplay::of(session);
    let mut messages = Vec::new();
    for entry in journal::read(directory)? {
        let entry = entry?;
        if entry.seq > last {
            break;
        }
        messages.extend(replay.next_event(entry.record).map(ToSession::Replay));
        if messages.len() == BATCH && batches.send(std::mem::take(&mut messages)).is_err() {
            return Ok(());
        }
    }
    messages.push(ToSession::ReplayDone { then, compact });
    let _ = batches.send(messages);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_is_due_once_for_each_process() {
        let mut replay = Replay::none_yet();
        assert!(!replay.is_due() && !replay.has_started());
        replay.process_came();
        assert!(replay.is_due() && !replay.has_started());
        replay.starts("running");
        assert!(!replay.is_due() && replay.has_started());
        replay.process_ended();
        assert!(!replay.is_due() && !replay.has_started());
    }
}
