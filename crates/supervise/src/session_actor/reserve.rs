//! The session's reserve: when its runner is started and in which cage, and when it is ended.

use super::state::SessionActorState;
use crate::messages::ReserveMsg;
use crate::reserve_actor::{ReserveActor, ReserveArgs};
use protocol::confinement::{Confinement, GitSettings, Level, Network, Profile, Tier};
use ractor::{Actor, ActorRef, SpawnErr};
use std::time::Duration;

/// Start of the reserve's runner after a request to the model, whose way it would delay on few processors.
const BEHIND_REQUEST: Duration = Duration::from_millis(2);

impl SessionActorState {
    /// Starts the reserve, unless the configuration has none.
    pub(super) async fn start_reserve(&mut self) -> Result<(), SpawnErr> {
        let idle = self.spec.config.daemon.idle_reserve_ms;
        if idle == 0 {
            return Ok(());
        }
        let args = ReserveArgs {
            session: self.spec.id.clone(),
            hello: self.resources.times.hello,
            idle: Duration::from_millis(idle),
            lock: self.resources.lock.clone(),
            overlays: self.resources.caches.as_ref().map(|caches| caches.overlays.clone()),
            spawner: self.resources.spawner.clone(),
        };
        let own = self.own.get_cell();
        let (reserve, _) = ReserveActor::spawn_linked(None, ReserveActor, args, own).await?;
        self.calls.reserve = Some(reserve);
        Ok(())
    }

    /// Has a runner ready for the next command, while the model thinks. It has the rights of a command
    /// that asks for no more than the session has.
    pub(super) fn prepare_reserve(&mut self) {
        self.reread_written_dirs();
        let confinement = &self.spec.confinement;
        let caged = confinement.level != Level::Uncaged && confinement.highest_tier != Tier::C;
        if !caged || confinement.network == Network::Listed || self.closing.has_begun() {
            return;
        }
        let mut wanted = Confinement {
            profile: Profile::Command,
            hosts: Vec::new(),
            git: GitSettings::Kept,
            ..confinement.clone()
        };
        let network = self.calls.services.network_for(&wanted);
        wanted.joins = network.as_ref().map(|network| network.call);
        if let Some(reserve) = &self.calls.reserve {
            reserve.send_after(BEHIND_REQUEST, || ReserveMsg::Prepare(Box::new(wanted), network));
        }
    }

    /// A setting changed that a cage depends on.
    pub(super) fn discard_reserve(&self) {
        self.send_reserve(ReserveMsg::Discard);
    }

    fn send_reserve(&self, message: ReserveMsg) {
        if let Some(reserve) = &self.calls.reserve {
            let _ = reserve.send_message(message);
        }
    }

    /// The reserve, to wait for its end.
    pub(super) fn stop_reserve(&self) -> Option<ActorRef<ReserveMsg>> {
        self.send_reserve(ReserveMsg::Stop);
        self.calls.reserve.clone()
    }
}
