//! A session that works for a fleet: its lease, and which of its calls leave nothing outside of the
//! workspace.

use super::state::SessionActorState;
use crate::call::{Contained, Executor};
use crate::fleet_seat::{FleetCopy, FleetEvent, Seated};
use crate::frozen_calls::Freeze;
use crate::messages::{CallMsg, SessionMsg};
use protocol::client::{ClientEvent, DetachReason, SessionEnding};
use protocol::confinement::{Confinement, Level, Network, Profile, Tier};
use ractor::ActorRef;
use tokio::sync::oneshot;

/// Passes what happens to the lease on to the session. Returns the second copy of its journal.
pub(super) fn listen(session: &ActorRef<SessionMsg>, seated: Seated) -> FleetCopy {
    let Seated { copy, mut events, .. } = seated;
    let session = session.clone();
    tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            if session.send_message(SessionMsg::Fleet(event)).is_err() {
                return;
            }
        }
    });
    copy
}

impl SessionActorState {
    pub(super) fn on_fleet_event(&mut self, myself: &ActorRef<SessionMsg>, event: FleetEvent) {
        match event {
            FleetEvent::Frozen => {
                self.freeze_calls(Freeze::Stop);
                let text = "the fleet's database is not reached; calls stand still until it is";
                self.show(&ClientEvent::Notice { text: text.to_owned() });
            }
            FleetEvent::Thawed => {
                self.freeze_calls(Freeze::Continue);
                let text = "the fleet's database is reached again";
                self.show(&ClientEvent::Notice { text: text.to_owned() });
            }
            FleetEvent::Lost(why) => {
                tracing::warn!(session = %self.spec.id, why, "the session's lease is lost");
                let message = format!("this host has the session no longer: {why}");
                self.problems.disk = Some(message.clone());
                self.detach_all(DetachReason::Failed, &message);
                let (done, _) = oneshot::channel();
                self.close(myself, SessionEnding::Kill, done);
            }
        }
    }

    pub(super) fn freeze_calls(&self, freeze: Freeze) {
        for call in self.calls.running.values() {
            let _ = call.send_message(CallMsg::Freeze(freeze));
        }
    }

    /// Whether a call's effects stay in the workspace of this host, whatever it does: its START says so,
    /// and the host that goes on with a lost session relies on it.
    pub(super) fn contained(
        &self,
        executor: &Executor,
        profile: Profile,
        confinement: &Confinement,
    ) -> Contained {
        let Some(seat) = self.spec.seat() else { return Contained::No };
        let of_runner =
            *executor == Executor::Runner && matches!(profile, Profile::Command | Profile::Git);
        let closed = confinement.network == Network::Off && confinement.joins.is_none();
        let alone = confinement.added.is_empty() && !seat.shared_disk;
        let caged = confinement.highest_tier == Tier::A && confinement.level != Level::Uncaged;
        match of_runner && closed && alone && caged {
            true => Contained::Yes,
            false => Contained::No,
        }
    }
}
