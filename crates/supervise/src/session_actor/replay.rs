//! The replay of the journal to a new process of the conversation. Another thread reads the records
//! in batches, as fast as the conversation takes them, so a long journal blocks neither the actor
//! nor much memory.

use super::state::{ReplayState, RunningReplay, SessionActorState};
use crate::messages::SessionMsg;
use crate::records::decode::JournalReplay;
use crate::worker::actor::WorkerEvent;
use journal::ReadError;
use protocol::error_chain::chain;
use protocol::ids::SessionId;
use protocol::session::{OpenTurn, SessionLink, ToSession};
use ractor::ActorRef;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Messages of one batch.
const BATCH: usize = 64;
/// Batches that are read and not yet taken.
const BATCHES_IN_FLIGHT: usize = 4;

impl SessionActorState {
    pub(super) async fn on_conversation_event(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        event: WorkerEvent<SessionLink>,
    ) {
        match event {
            WorkerEvent::Up(generation) => {
                self.workers.conversation.up(generation);
                self.workers.replay = ReplayState::NotStarted;
                self.replay_if_quiet(myself).await;
            }
            WorkerEvent::Message { message, permit: _permit } => {
                let steps = self.turn.router.on_session_msg(message);
                self.carry_out(myself, steps).await;
                self.start_next_turn(myself).await;
            }
            WorkerEvent::Down { cause, failed } => {
                self.workers.replay = ReplayState::NoProcess;
                self.hooks_lost(myself);
                self.calls.services.servers.not_requested();
                let calls: Vec<_> = self.foreground().map(|call| call.number).collect();
                let steps = self.turn.router.session_down(&cause, &calls);
                self.carry_out(myself, steps).await;
                if let Some(why) = failed {
                    self.conversation_failed(myself, why).await;
                }
                tracing::warn!(session = %self.spec.id, %cause, "the conversation's process ended");
            }
        }
    }

    /// Sends a message to a replayed conversation. One that is not replayed yet gets the same
    /// content with its first message, from the records, or when it is ready.
    pub(super) fn send_conversation(&self, message: ToSession) {
        if matches!(self.workers.replay, ReplayState::Started { .. }) {
            self.workers.conversation.send(message);
        }
    }

    /// Replays the journal to a new conversation, once no call of the earlier process runs in the
    /// foreground: their results belong to the replay.
    pub(super) async fn replay_if_quiet(&mut self, myself: &ActorRef<SessionMsg>) {
        let waits = self.foreground().next().is_some();
        let (ReplayState::NotStarted, false) = (&self.workers.replay, waits) else { return };
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
        let begin = ToSession::Begin(self.spec.setup.clone());
        self.workers.conversation.send(begin);
        self.server_news().into_iter().for_each(|news| self.workers.conversation.send(news));
        let in_flight = Arc::new(Semaphore::new(BATCHES_IN_FLIGHT));
        self.workers.replay =
            ReplayState::Started { _replay: RunningReplay(Arc::clone(&in_flight)) };
        let (conversation, directory) =
            (self.workers.conversation.clone(), self.journal.directory.clone());
        let fate = (then, self.turn.router.compact_told());
        let (session, last, myself) = (self.spec.id.clone(), self.journal.last_seq, myself.clone());
        tokio::task::spawn_blocking(move || {
            let forward = |messages, permit| conversation.forward(messages, permit);
            match read(&directory, &session, last, fate, BatchSender { in_flight, forward }) {
                Ok(()) => {}
                Err(error) => {
                    let why = format!("its records could not be read: {}", chain(&error));
                    let _ = myself.send_message(SessionMsg::ReplayFailed(why));
                }
            }
        });
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
