//! The conversation's process: it gets the records first, and every message from then on.

use super::replay::{Replay, ReplayedJournal, RunningReplay};
use crate::messages::SessionMsg;
use crate::worker_ref::WorkerRef;
use protocol::ids::Generation;
use protocol::session::{SessionLink, ToSession};
use ractor::ActorRef;
use tokio::sync::OwnedSemaphorePermit;

/// The conversation of a session.
pub(crate) struct ConversationSeat {
    process: WorkerRef<SessionLink>,
    replay: Replay<RunningReplay>,
}

impl ConversationSeat {
    pub(crate) fn of(process: WorkerRef<SessionLink>) -> Self {
        Self { process, replay: Replay::none_yet() }
    }

    /// Its process, for messages that are not about the conversation.
    pub(crate) fn process(&self) -> &WorkerRef<SessionLink> {
        &self.process
    }

    /// A new process waits for its replay.
    pub(crate) fn came_up(&mut self, generation: Generation) {
        self.process.up(generation);
        self.replay.process_came();
    }

    pub(crate) fn went_down(&mut self) {
        self.replay.process_ended();
    }

    /// A process waits for its replay.
    pub(crate) fn awaits_replay(&self) -> bool {
        self.replay.is_due()
    }

    /// Its replay has started.
    pub(crate) fn has_begun(&self) -> bool {
        self.replay.has_started()
    }

    /// Sends the first messages, then the records. The session hears of records that cannot be read.
    pub(crate) fn begin(
        &mut self,
        first: Vec<ToSession>,
        journal: ReplayedJournal,
        session: ActorRef<SessionMsg>,
    ) {
        first.into_iter().for_each(|message| self.process.send(message));
        let process = self.process.clone();
        let forward = move |messages, permit| process.forward(messages, permit);
        let failed = move |why| drop(session.send_message(SessionMsg::ReplayFailed(why)));
        self.replay.starts(journal.forward(forward, failed));
    }

    /// Sends a message, unless its content comes with the replay.
    pub(crate) fn send(&self, message: ToSession) {
        if self.has_begun() {
            self.process.send(message);
        }
    }

    /// The turn made progress: earlier crashes count no more.
    pub(crate) fn made_progress(&self) {
        self.process.made_progress();
    }

    /// Passes a message of the provider on, with the permit of its sender.
    pub(crate) fn forward(&self, message: ToSession, permit: OwnedSemaphorePermit) {
        self.process.forward(vec![message], permit);
    }
}
