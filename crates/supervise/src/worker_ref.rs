//! An owner's address of a worker: the worker's actor, and the generation that the owner knows.
//!
//! While an owner waits for a disk, its worker may die and be restarted before the owner handles
//! that event. The worker's actor drops messages for the dead process. The owner sends again what
//! still matters once it knows the new generation.

use crate::worker::actor::{ToWorker, WorkerMsg};
use protocol::Link;
use protocol::client::ProcessRow;
use protocol::ids::Generation;
use ractor::ActorRef;
use std::os::fd::OwnedFd;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// A worker as one of its owners knows it.
pub(crate) struct WorkerRef<L: Link> {
    actor: ActorRef<WorkerMsg<L>>,
    /// 0 until the first process is known: nothing that is sent until then arrives.
    generation: Generation,
}

// A derived impl would require `L: Clone`.
impl<L: Link> Clone for WorkerRef<L> {
    fn clone(&self) -> Self {
        Self { actor: self.actor.clone(), generation: self.generation }
    }
}

impl<L: Link + 'static> WorkerRef<L> {
    pub(crate) fn new(actor: ActorRef<WorkerMsg<L>>) -> Self {
        Self { actor, generation: Generation(0) }
    }

    /// The owner knows this process: it sends to it from now on.
    pub(crate) fn up(&mut self, generation: Generation) {
        self.generation = generation;
    }

    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    /// The worker's actor, for messages that concern no single process.
    pub(crate) fn actor(&self) -> &ActorRef<WorkerMsg<L>> {
        &self.actor
    }

    /// The work made progress: earlier crashes count no more.
    pub(crate) fn made_progress(&self) {
        self.tell(WorkerMsg::ResetFailures);
    }

    /// A person asks for another try, where the worker has failed.
    pub(crate) fn retry(&self) {
        self.tell(WorkerMsg::Retry);
    }

    /// Ends the process until the worker is resumed.
    pub(crate) fn suspend(&self) {
        self.tell(WorkerMsg::Suspend);
    }

    pub(crate) fn resume(&self) {
        self.tell(WorkerMsg::Resume);
    }

    /// Ends the worker. Answered when its process is dead.
    pub(crate) fn stop(&self) -> oneshot::Receiver<()> {
        let (done, stopped) = oneshot::channel();
        self.tell(WorkerMsg::Stop(done));
        stopped
    }

    /// Asks for its row in `ps`.
    pub(crate) fn describe(&self) -> oneshot::Receiver<ProcessRow> {
        let (row, answer) = oneshot::channel();
        self.tell(WorkerMsg::Describe(row));
        answer
    }

    pub(crate) fn send(&self, message: L::To) {
        self.put(ToWorker::Message(message));
    }

    /// Passes messages on. Their sender may send more once this worker has taken them.
    pub(crate) fn forward(&self, messages: Vec<L::To>, permit: OwnedSemaphorePermit) {
        self.put(ToWorker::Forwarded { messages, permit });
    }

    /// Sends a descriptor behind the message sent last.
    pub(crate) fn send_descriptor(&self, descriptor: OwnedFd) {
        self.put(ToWorker::Descriptor(descriptor));
    }

    /// Pings the process with this message. A process that has not answered the last ping is killed.
    pub(crate) fn ping(&self, message: L::To) {
        self.put(ToWorker::Ping(message));
    }

    fn put(&self, what: ToWorker<L>) {
        self.tell(WorkerMsg::ToWorker(self.generation, what));
    }

    fn tell(&self, message: WorkerMsg<L>) {
        let _ = self.actor.send_message(message);
    }
}
