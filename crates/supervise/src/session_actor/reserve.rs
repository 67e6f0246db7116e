//! The session's reserve: when its runner is started and in which cage, and when it is ended.

use super::services::{Asker, Services};
use crate::messages::{ReserveMsg, SessionMsg};
use crate::reserve_actor::{ReserveActor, ReserveArgs};
use protocol::client::ProcessRow;
use protocol::confinement::{Confinement, GitSettings, Level, Network, Profile, Tier};
use protocol::judgement::PermissionMode;
use ractor::{Actor, ActorRef, SpawnErr};
use std::time::Duration;
use tokio::sync::oneshot;

/// Start of the reserve's runner after a request to the model, whose way it would delay on few processors.
const BEHIND_REQUEST: Duration = Duration::from_millis(2);

/// Has the next command's runner; without an actor where the configuration wants none.
pub(super) struct Reserve(Option<ActorRef<ReserveMsg>>);

impl Reserve {
    pub(super) async fn start(
        args: ReserveArgs,
        session: &ActorRef<SessionMsg>,
    ) -> Result<Self, SpawnErr> {
        if args.idle == Duration::ZERO {
            return Ok(Self(None));
        }
        let spawned = ReserveActor::spawn_linked(None, ReserveActor, args, session.get_cell());
        let (reserve, _) = spawned.await?;
        Ok(Self(Some(reserve)))
    }

    /// Has a runner ready for the next command, while the model thinks.
    pub(super) fn prepare<A: Asker>(
        &self,
        session: &Confinement,
        mode: PermissionMode,
        services: &Services<A>,
    ) {
        let Some((reserve, mut wanted)) = self.0.as_ref().zip(next_command(session, mode)) else {
            return;
        };
        let network = services.network_for(&wanted);
        wanted.joins = network.as_ref().map(|network| network.call);
        reserve.send_after(BEHIND_REQUEST, || ReserveMsg::Prepare(Box::new(wanted), network));
    }

    /// A setting changed that a cage depends on.
    pub(super) fn discard(&self) {
        self.send(ReserveMsg::Discard);
    }

    /// Asks for the rows of its process.
    pub(super) fn describe(&self) -> Option<oneshot::Receiver<Vec<ProcessRow>>> {
        let (rows, answer) = oneshot::channel();
        let _ = self.0.as_ref()?.send_message(ReserveMsg::Describe(rows));
        Some(answer)
    }

    /// Ends it. Returns it, to wait for its end.
    pub(super) fn stop(&self) -> Option<ActorRef<ReserveMsg>> {
        self.send(ReserveMsg::Stop);
        self.for_call()
    }

    /// For a call, which takes the runner from it.
    pub(super) fn for_call(&self) -> Option<ActorRef<ReserveMsg>> {
        self.0.clone()
    }

    fn send(&self, message: ReserveMsg) {
        if let Some(reserve) = &self.0 {
            let _ = reserve.send_message(message);
        }
    }
}

/// The confinement of a command that asks for no more than the session has, and in the mode `sandboxed` of one that
/// passes. None where no runner is kept for it.
fn next_command(session: &Confinement, mode: PermissionMode) -> Option<Confinement> {
    let caged = session.level != Level::Uncaged && session.highest_tier != Tier::C;
    (caged && session.network != Network::Listed).then(|| Confinement {
        profile: Profile::Command,
        hosts: Vec::new(),
        git: match mode {
            PermissionMode::Sandboxed => GitSettings::DirectoryKept,
            PermissionMode::Ask
            | PermissionMode::AcceptEdits
            | PermissionMode::Plan
            | PermissionMode::Auto
            | PermissionMode::DontAsk => GitSettings::Kept,
        },
        ..session.clone()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_runner_is_kept_for_commands_in_a_cage_without_a_list_of_hosts() {
        let session = Confinement::closed(Profile::Session, "/p", "/t");
        let wanted = next_command(&session, PermissionMode::Ask).unwrap();
        assert_eq!((wanted.profile, wanted.git), (Profile::Command, GitSettings::Kept));
        let sandboxed = next_command(&session, PermissionMode::Sandboxed).unwrap();
        assert_eq!(sandboxed.git, GitSettings::DirectoryKept);
        let on = Confinement { network: Network::On, ..session.clone() };
        assert_eq!(next_command(&on, PermissionMode::Ask).unwrap().network, Network::On);
        for without in [
            Confinement { network: Network::Listed, ..session.clone() },
            Confinement { level: Level::Uncaged, ..session.clone() },
            Confinement { highest_tier: Tier::C, ..session },
        ] {
            assert_eq!(next_command(&without, PermissionMode::Ask), None);
        }
    }
}
