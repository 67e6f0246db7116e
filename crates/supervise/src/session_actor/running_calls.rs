//! The calls that run, and the fleet's lease under which they do: which of them there are, and everything that is
//! sent to more than one of them.

use super::services::{Asker, Services};
use crate::fleet_seat::FleetLease;
use crate::messages::CallMsg;
use call::CallInput;
use launch::frozen_calls::Freeze;
use protocol::client::ProcessRow;
use protocol::ids::CallId;
use protocol::tool::ProtectedOrder;
use ractor::ActorRef;
use std::collections::HashMap;
use tokio::sync::oneshot;

/// The running calls of a session.
pub(super) struct RunningCalls {
    actors: HashMap<CallId, ActorRef<CallMsg>>,
    /// The lease of a session that works for a fleet, itself or as a sub-agent.
    lease: Option<FleetLease>,
    /// They were stopped for now.
    stand_still: bool,
}

impl RunningCalls {
    /// None yet.
    pub(super) fn under(lease: Option<FleetLease>) -> Self {
        Self { actors: HashMap::new(), lease, stand_still: false }
    }

    pub(super) fn begins(&mut self, call: CallId, actor: ActorRef<CallMsg>) {
        self.actors.insert(call, actor);
    }

    pub(super) fn ends(&mut self, call: &CallId) {
        self.actors.remove(call);
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &CallId> {
        self.actors.keys()
    }

    pub(super) fn get(&self, call: &CallId) -> Option<&ActorRef<CallMsg>> {
        self.actors.get(call)
    }

    pub(super) fn all(&self) -> Vec<ActorRef<CallMsg>> {
        self.actors.values().cloned().collect()
    }

    pub(super) fn send(&self, call: &CallId, input: CallInput) {
        match self.actors.get(call) {
            Some(actor) => {
                let _ = actor.send_message(CallMsg::Input(input));
            }
            None => tracing::debug!(%call, "a message for a call that has ended"),
        }
    }

    /// Sends a message to each of them.
    pub(super) fn send_all(&self, message: impl Fn() -> CallMsg) {
        for actor in self.actors.values() {
            let _ = actor.send_message(message());
        }
    }

    /// Commands in the background have their protected files looked at: a person may be about to use them.
    pub(super) fn look_at_protected<A: Asker>(&self, services: &Services<A>) {
        for (_, actor) in self.actors.iter().filter(|(id, _)| services.has(id.number)) {
            let _ = actor.send_message(CallMsg::Protected(ProtectedOrder::Look));
        }
    }

    /// Tells all but this call about protected files.
    pub(super) fn tell_others(&self, call: &CallId, order: ProtectedOrder) {
        for (_, actor) in self.actors.iter().filter(|(id, _)| *id != call) {
            let _ = actor.send_message(CallMsg::Protected(order));
        }
    }

    /// Asks each for the rows of its processes.
    pub(super) fn describe(&self) -> Vec<oneshot::Receiver<Vec<ProcessRow>>> {
        let of_call = |actor: &ActorRef<CallMsg>| {
            let (rows, answer) = oneshot::channel();
            let _ = actor.send_message(CallMsg::Describe(rows));
            answer
        };
        self.actors.values().map(of_call).collect()
    }

    pub(super) fn lease(&self) -> Option<&FleetLease> {
        self.lease.as_ref()
    }

    /// The session that gave the work holds this lease.
    pub(super) fn work_under(&mut self, lease: FleetLease) {
        (self.lease, self.stand_still) = (Some(lease), false);
    }

    /// Stops the calls for now if the lease wants it, or lets them go on. Returns a notice for people.
    pub(super) fn follow_lease(&mut self) -> Option<&'static str> {
        let stand_still = self.lease.as_ref().is_some_and(FleetLease::stands_still);
        if std::mem::replace(&mut self.stand_still, stand_still) == stand_still {
            return None;
        }
        let (freeze, text) = match stand_still {
            true => {
                (Freeze::Stop, "the fleet's database is not reached; calls stand still until it is")
            }
            false => (Freeze::Continue, "the fleet's database is reached again"),
        };
        self.send_all(|| CallMsg::Freeze(freeze));
        Some(text)
    }
}
