//! How an owner sends to a worker: through its slot, bound to the generation that the owner last heard of.
//!
//! An owner that waits for a disk may not have heard yet that its worker died and that another
//! process took its place. The slot drops what is meant for the dead one. The owner repeats what
//! still matters once it hears of the new one.

use crate::worker::actor::{ToWorker, WorkerMsg};
use protocol::Link;
use protocol::ids::Generation;
use ractor::ActorRef;
use std::os::fd::OwnedFd;
use tokio::sync::OwnedSemaphorePermit;

/// A worker as one of its owners knows it.
pub(crate) struct WorkerRef<L: Link> {
    actor: ActorRef<WorkerMsg<L>>,
    /// 0 until the first process is heard of: nothing that is sent then arrives.
    generation: Generation,
}

// Derived, it would ask for a link that can be cloned.
impl<L: Link> Clone for WorkerRef<L> {
    fn clone(&self) -> Self {
        Self { actor: self.actor.clone(), generation: self.generation }
    }
}

impl<L: Link + 'static> WorkerRef<L> {
    pub(crate) fn new(slot: ActorRef<WorkerMsg<L>>) -> Self {
        Self { actor: slot, generation: Generation(0) }
    }

    /// The owner heard of this process: what it sends from now on is for that one.
    pub(crate) fn up(&mut self, generation: Generation) {
        self.generation = generation;
    }

    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    /// The slot itself, for what concerns no single process.
    pub(crate) fn slot(&self) -> &ActorRef<WorkerMsg<L>> {
        &self.actor
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

    /// Asks for a sign of life with this message. A process that still owes one is ended.
    pub(crate) fn ping(&self, message: L::To) {
        self.put(ToWorker::Ping(message));
    }

    fn put(&self, what: ToWorker<L>) {
        let _ = self.actor.send_message(WorkerMsg::ToWorker(self.generation, what));
    }
}
