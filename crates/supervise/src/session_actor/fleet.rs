//! A session that works for a fleet: its lease, and which of its calls leave nothing outside of the
//! workspace.

use super::state::SessionActorState;
use crate::fleet_seat::{FleetEvent, FleetLease, HeldLease, Seated};
use crate::messages::{CallMsg, SessionMsg};
use launch::frozen_calls::Freeze;
use protocol::client::{ClientEvent, DetachReason, SessionEnding};
use ractor::ActorRef;
use tokio::sync::oneshot;

/// Passes what happens to the lease on to the session.
pub(super) fn listen(session: &ActorRef<SessionMsg>, seated: Seated) -> FleetLease {
    let Seated { copy, mut events, .. } = seated;
    let session = session.clone();
    tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            if session.send_message(SessionMsg::Fleet(event)).is_err() {
                return;
            }
        }
    });
    copy.lease
}

impl SessionActorState {
    /// Works under the lease of the session that gave the work, which ends this one if it is lost.
    pub(super) fn work_under(&mut self, lease: FleetLease) {
        let session = self.own.clone();
        let watched = lease.clone();
        self.calls.lease = HeldLease::of(Some(lease));
        tokio::spawn(async move {
            for event in [FleetEvent::Frozen, FleetEvent::Thawed].into_iter().cycle() {
                let turned = watched.turns(event == FleetEvent::Frozen).await;
                if !turned || session.send_message(SessionMsg::Fleet(event)).is_err() {
                    return;
                }
            }
        });
    }

    /// Stops the calls for now if the lease wants it, or lets them go on.
    pub(super) fn follow_lease(&mut self) {
        let stand_still = self.calls.lease.lease.as_ref().is_some_and(FleetLease::stands_still);
        if std::mem::replace(&mut self.calls.lease.stand_still, stand_still) == stand_still {
            return;
        }
        let (freeze, text) = match stand_still {
            true => {
                (Freeze::Stop, "the fleet's database is not reached; calls stand still until it is")
            }
            false => (Freeze::Continue, "the fleet's database is reached again"),
        };
        for call in self.calls.running.values() {
            let _ = call.send_message(CallMsg::Freeze(freeze));
        }
        self.show(&ClientEvent::Notice { text: text.to_owned() });
    }

    pub(super) fn on_fleet_event(&mut self, myself: &ActorRef<SessionMsg>, event: FleetEvent) {
        match event {
            FleetEvent::Frozen | FleetEvent::Thawed => self.follow_lease(),
            FleetEvent::Lost(why) => {
                tracing::warn!(session = %self.spec.id, why, "the session's lease is lost");
                let message = format!("this host has the session no longer: {why}");
                self.links.failures.disk_failed(message.clone());
                self.clients.dismiss(DetachReason::Failed, &message);
                let (done, _) = oneshot::channel();
                self.close(myself, SessionEnding::Kill, done);
            }
        }
    }
}
