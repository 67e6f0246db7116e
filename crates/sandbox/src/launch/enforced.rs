//! The record of the restrictions that hold for a command.

use crate::cage::Cage;
use crate::cgroup::Controller;
use crate::guarantees::{self, CageFacts, LimitedBy, NotifyWait, RefusalsObserved, RunsAsRoot};
use crate::landlock::ruleset;
use crate::seccomp;
use nix::unistd::getuid;
use protocol::confinement::{Confinement, Enforced};

/// The record of the restrictions that hold.
pub(super) fn enforced(
    wanted: &Confinement,
    ground: CageFacts,
    namespaces: Vec<String>,
    (missing, left_out): (Vec<String>, Vec<String>),
) -> Enforced {
    Enforced {
        tier: ground.tier,
        in_process: wanted.profile.is_in_process(),
        profile: wanted.profile.name().to_owned(),
        landlock_abi: ground.abi,
        network: guarantees::network(ground.tier, ground.network, wanted.joins),
        namespaces,
        seccomp: true,
        refusals_observable: ground.observed == RefusalsObserved::Yes,
        dropped: ruleset::missing_rights(ground.abi),
        limits: guarantees::git_settings(wanted.git)
            .into_iter()
            .chain(guarantees::home(wanted))
            .chain(guarantees::limits(ground))
            .collect(),
        missing,
        left_out,
        cgroup: Vec::new(),
    }
}

/// Who enforces a limit: the cgroup, or else the runner. Zero means no limit.
pub(super) fn bounded(cage: &Cage, controller: Controller, most: u64) -> LimitedBy {
    match cage.tree.cgroup() {
        Some(group) if group.enforces(controller) => LimitedBy::Kernel,
        Some(_) | None if most > 0 => LimitedBy::Runner,
        Some(_) | None => LimitedBy::Nothing,
    }
}

/// The same for a limit that the kernel enforces by itself.
pub(super) fn by_kernel(most: u64) -> LimitedBy {
    if most > 0 { LimitedBy::Kernel } else { LimitedBy::Nothing }
}

/// Tells if the command has user ID 0.
pub(super) fn root_powers() -> RunsAsRoot {
    if getuid().is_root() { RunsAsRoot::Yes } else { RunsAsRoot::No }
}

pub(super) fn observed(cage: &Cage) -> RefusalsObserved {
    match cage.listener {
        Some(_) => RefusalsObserved::Yes,
        None => RefusalsObserved::No,
    }
}

pub(super) fn waits() -> NotifyWait {
    if seccomp::supports_killable_wait() {
        NotifyWait::UntilAnswered
    } else {
        NotifyWait::UntilSignal
    }
}
