//! Prepares a command's cage in tier B: Landlock and seccomp alone, with this process as the
//! subreaper.

use super::enforced::{bounded, enforced, observed, root_powers, waits};
use super::notify_config::{readable, watch};
use super::start_command::{CageLaunch, CommandLock};
use crate::cage::Cage;
use crate::cage_renewal::CageRenewal;
use crate::cgroup::{CommandCgroup, Controller};
use crate::error::{CageError, CageStep};
use crate::grants::{GrantVia, Grants};
use crate::guarantees::{self, CageFacts, MetadataChanges, RefusalsObserved, TreeEndedBy};
use crate::landlock::domain_guard::SignalScope;
use crate::landlock::nested_rules::NestedRules;
use crate::lock::tcp;
use crate::notify::LockedGitConfigs;
use crate::policy::ConfinementPolicy;
use crate::privileges::{self, NprocScope};
use crate::process_tree::Containment;
use crate::protection_limits::protection_limits;
use crate::usage::shared_memory::SharedMemory;
use nix::sys::prctl;
use protocol::confinement::{Confinement, Enforced, Tier};

/// Landlock and seccomp alone; this process is the subreaper.
pub(super) fn tier_b(
    wanted: &Confinement,
    policy: &ConfinementPolicy,
    abi: u32,
) -> Result<(Cage, Enforced), CageError> {
    prctl::set_child_subreaper(true)
        .map_err(|error| CageError::os(CageStep::Fork, "becoming the subreaper", error))?;
    let (group, without) = CommandCgroup::for_command(wanted);
    let mut grants = Grants::open_all(wanted, policy, GrantVia::Landlock)?;
    let opened = grants.identities();
    let mut beside = guarantees::keys(&grants);
    beside.extend(guarantees::programs(wanted.profile, &grants));
    let watch = watch(wanted, policy, &grants, None, abi)?;
    let (runnable, readable) = (watch.runnable.places.clone(), readable(&grants));
    let shared =
        watch.shm_creations.clone().map_or_else(SharedMemory::unobserved, SharedMemory::shared);
    let layers = NestedRules::new(wanted, policy, &grants, tcp(Tier::B, wanted.network))?;
    // As above; started as root it is all of `/etc`, entry by entry.
    grants.list.clear();
    privileges::outrun_fork_bombs(&wanted.limits, group.as_ref());
    privileges::drop_all()?;
    let NestedRules { own, command: inner, .. } = layers;
    let signal_scope = SignalScope::enter(own)?;
    let mut cage = CageLaunch {
        wanted,
        lock: Some(CommandLock { watch, rules: inner }),
        baseline: grants.baseline.take(),
        inside: None,
        counting: NprocScope::Shared,
        bond: Containment::Domain { signal_scope, guard: None },
        group,
        shared,
    }
    .launch()?;
    cage.runnable = Some(runnable);
    cage.readable = readable;
    let (search, none) = (grants.search.take(), LockedGitConfigs::default());
    cage.renewal = CageRenewal::new(opened, search, grants.protection, none);
    let ground = CageFacts {
        tier: Tier::B,
        abi,
        network: wanted.network,
        processes: bounded(&cage, Controller::Processes, wanted.limits.processes),
        memory: bounded(&cage, Controller::Memory, wanted.limits.memory_bytes),
        runs_as_root: root_powers(),
        observed: observed(&cage),
        waits: waits(),
        metadata: match (policy.keeps_project(), observed(&cage)) {
            (true, RefusalsObserved::Yes) => MetadataChanges::Refused,
            (true, RefusalsObserved::No) | (false, _) => MetadataChanges::Allowed,
        },
        ended_by: match (signal_scope, cage.tree.cgroup()) {
            (Some(_), _) => TreeEndedBy::Kernel,
            (None, Some(_)) => TreeEndedBy::Cgroup,
            (None, None) => TreeEndedBy::Runner,
        },
    };
    let mut enforced = enforced(wanted, ground, Vec::new(), (grants.missing, grants.left_out));
    enforced.cgroup = cage.tree.cgroup().map(CommandCgroup::enforced_limits).unwrap_or_default();
    enforced.limits.extend(protection_limits(cage.baseline.as_ref()).into_iter().chain(without));
    enforced.limits.extend(beside.into_iter().chain(guarantees::runner_rights(policy)));
    Ok((cage, enforced))
}
