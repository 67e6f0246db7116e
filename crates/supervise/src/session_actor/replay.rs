//! The replay of a session to a conversation that was started anew: its records are read beside the
//! actor, a piece at a time and as fast as the conversation takes them, so that a long journal holds
//! up neither the actor nor the memory.

use super::state::{ReplayState, RunningReplay, SessionActorState};
use crate::error_chain::chain;
use crate::messages::SessionMsg;
use crate::records::decode::JournalReplay;
use journal::ReadError;
use protocol::ids::SessionId;
use protocol::session::{OpenTurn, ToSession};
use ractor::ActorRef;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Words of one piece.
const BATCH: usize = 64;
/// BatchSender that are read and not yet taken.
const BATCHES_IN_FLIGHT: usize = 4;

impl SessionActorState {
    /// Says it to the conversation that knows the past. One that does not is told the same with its
    /// beginning, by its records or when it is ready.
    pub(super) fn send_conversation(&self, message: ToSession) {
        if matches!(self.workers.replay, ReplayState::Started { .. }) {
            self.workers.conversation.send(message);
        }
    }

    /// Tells a new conversation everything, once no call of the earlier one runs: their results
    /// belong to what it is told.
    pub(super) async fn replay_if_quiet(&mut self, myself: &ActorRef<SessionMsg>) {
        let (ReplayState::NotStarted, true) = (&self.workers.replay, self.calls.running.is_empty())
        else {
            return;
        };
        if self.awaits_instructions() {
            return;
        }
        let then = self.turn.router.open_turn();
        if then == OpenTurn::Waits {
            let steps = self.turn.router.close_turn();
            self.carry_out(myself, steps).await;
        }
        if then == OpenTurn::GoesOn {
            self.ping_later(myself);
        }
        let begin = ToSession::Begin(self.plan.setup.clone());
        self.workers.conversation.send(begin);
        let in_flight = Arc::new(Semaphore::new(BATCHES_IN_FLIGHT));
        self.workers.replay =
            ReplayState::Started { _replay: RunningReplay(Arc::clone(&in_flight)) };
        let (conversation, directory) =
            (self.workers.conversation.clone(), self.journal.directory.clone());
        let (session, last, myself) = (self.plan.id.clone(), self.journal.last_seq, myself.clone());
        tokio::task::spawn_blocking(move || {
            let say = |words, heard| conversation.forward(words, heard);
            match read(&directory, &session, last, then, BatchSender { in_flight, say }) {
                Ok(()) => {}
                Err(error) => {
                    let why = format!("its records could not be read: {}", chain(&error));
                    let _ = myself.send_message(SessionMsg::ReplayFailed(why));
                }
            }
        });
    }
}

/// The way of pieces to the conversation.
struct BatchSender<S> {
    in_flight: Arc<Semaphore>,
    say: S,
}

/// Nobody is replayed to any more.
struct ReplayStopped;

impl<S: FnMut(Vec<ToSession>, OwnedSemaphorePermit)> BatchSender<S> {
    /// Waits until the conversation has taken enough of those before.
    fn say(&mut self, words: Vec<ToSession>) -> Result<(), ReplayStopped> {
        let free = Handle::current().block_on(Arc::clone(&self.in_flight).acquire_owned());
        (self.say)(words, free.map_err(|_| ReplayStopped)?);
        Ok(())
    }
}

/// Says the records up to this one, and what is to become of an open turn.
fn read(
    directory: &Path,
    session: &SessionId,
    last: u64,
    then: OpenTurn,
    mut pieces: BatchSender<impl FnMut(Vec<ToSession>, OwnedSemaphorePermit)>,
) -> Result<(), ReadError> {
    let mut replay = JournalReplay::of(session);
    let mut words = Vec::new();
    for entry in journal::read(directory)? {
        let entry = entry?;
        if entry.seq > last {
            break;
        }
        words.extend(replay.next_event(entry.record).map(ToSession::Replay));
        if words.len() == BATCH && pieces.say(std::mem::take(&mut words)).is_err() {
            return Ok(());
        }
    }
    words.push(ToSession::ReplayDone { then });
    let _ = pieces.say(words);
    Ok(())
}
