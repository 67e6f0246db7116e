//! A process that goes on without a cage: where this host can make none, and a person accepted that
//! for a session. What can be locked is locked, and nothing of it is claimed. For `cage` only.

use crate::cage::effective_network;
use crate::claims::{self, Held};
use crate::error::CageError;
use crate::grants::{GrantVia, Grants};
use crate::launch;
use crate::layer;
use crate::policy::ConfinementPolicy;
use crate::privileges;
use crate::seccomp::{Filter, Plan};
use protocol::confinement::{Confinement, Enforced, Level, Tier, WITHOUT_CAGE};

/// What a worker of our own asks for, on a host that can make no cage: to go on without.
#[must_use]
pub fn worker_confinement(mut wanted: Confinement) -> Confinement {
    if std::env::var_os(WITHOUT_CAGE).is_some() {
        wanted.highest_tier = Tier::C;
        wanted.level = Level::Uncaged;
    }
    wanted
}

/// Gives privileges away, and tries the rest of the lock.
///
/// # Errors
/// `Step::Privileges`.
pub(crate) fn enter(
    wanted: &Confinement,
    policy: &ConfinementPolicy,
) -> Result<Enforced, CageError> {
    let network = effective_network(policy, wanted);
    privileges::drop_all()?;
    // Each that fails is one that this host does not have, and the record claims none.
    let _ = layer::abi()
        .and_then(|_| Grants::open_all(wanted, policy, GrantVia::Landlock))
        .and_then(|grants| layer::rules(&grants, launch::tcp(Tier::C, network)))
        .and_then(layer::enforce);
    let _ = Filter::new(&Plan::in_process(network, layer::abi().unwrap_or(0)))
        .and_then(|filter| filter.install());
    Ok(enforced(wanted, Held::Runner, Vec::new()))
}

/// The record of what holds: nothing.
pub(crate) fn enforced(wanted: &Confinement, held: Held, missing: Vec<String>) -> Enforced {
    Enforced {
        tier: Tier::C,
        profile: wanted.profile.name().to_owned(),
        landlock_abi: 0,
        network: claims::UNHELD.to_owned(),
        namespaces: Vec::new(),
        seccomp: false,
        refusals_observable: false,
        dropped: layer::dropped(0),
        limits: claims::uncaged(wanted.limits, held),
        missing,
        cgroup: Vec::new(),
    }
}
