//! Processes without a cage: on a host that supports none, in a session whose user accepted that.
//! Every lock that works is applied, and the record claims none of them.

use crate::error::CageError;
use crate::grants::{GrantVia, Grants};
use crate::guarantees::{self, TreeEndedBy};
use crate::landlock::ruleset;
use crate::lock;
use crate::policy::ConfinementPolicy;
use crate::privileges;
use crate::seccomp::{CompiledFilter, FilterSpec};
use protocol::confinement::{Confinement, Enforced, Level, Tier, WITHOUT_CAGE};

/// The confinement of a worker: without a sandbox if the environment says that the user accepted
/// it.
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
/// `CageStep::Privileges`.
pub(crate) fn enter(
    wanted: &Confinement,
    policy: &ConfinementPolicy,
) -> Result<Enforced, CageError> {
    let network = lock::effective_network(policy, wanted);
    privileges::drop_all()?;
    // A step that fails is one that this host does not support. The record claims none.
    let _ = ruleset::abi()
        .and_then(|_| Grants::open_all(wanted, policy, GrantVia::Landlock))
        .and_then(|grants| ruleset::rules(&grants.list, lock::tcp(Tier::C, network)))
        .and_then(ruleset::enforce);
    let _ = CompiledFilter::new(&FilterSpec::in_process(network, ruleset::abi().unwrap_or(0)))
        .and_then(|filter| filter.install());
    Ok(enforced(wanted, TreeEndedBy::Runner, Vec::new()))
}

/// The record of a process without restrictions.
pub(crate) fn enforced(wanted: &Confinement, held: TreeEndedBy, missing: Vec<String>) -> Enforced {
    Enforced {
        in_process: wanted.profile.is_in_process(),
        network: guarantees::UNRESTRICTED_NETWORK.to_owned(),
        dropped: ruleset::missing_rights(0),
        limits: guarantees::unsandboxed(wanted.limits, held),
        missing,
        ..Enforced::nothing(wanted.profile.name())
    }
}
