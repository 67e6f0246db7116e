//! A session that works for a fleet, itself or as a sub-agent: it hears what happens to its lease.

use crate::fleet_seat::{FleetEvent, FleetLease, Seated};
use crate::messages::SessionMsg;
use ractor::ActorRef;

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

/// The same for a sub-agent, which works under the lease of the session that gave the work: that one ends it if the
/// lease is lost.
pub(super) fn watch(session: ActorRef<SessionMsg>, lease: FleetLease) {
    tokio::spawn(async move {
        for event in [FleetEvent::Frozen, FleetEvent::Thawed].into_iter().cycle() {
            let turned = lease.turns(event == FleetEvent::Frozen).await;
            if !turned || session.send_message(SessionMsg::Fleet(event)).is_err() {
                return;
            }
        }
    });
}
