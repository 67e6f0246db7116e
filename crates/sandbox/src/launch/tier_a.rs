//! Prepares a command's cage in tier A: namespaces and a root of its own around Landlock and
//! seccomp.

use super::enforced::{bounded, by_kernel, enforced, observed, root_powers, waits};
use super::notify_config::{readable, set_access, watch};
use super::start_command::{CageLaunch, CommandLock, EnteredNamespaces};
use crate::cage::{Cage, CageOverlays};
use crate::cage_renewal::CageRenewal;
use crate::cgroup::{CommandCgroup, Controller};
use crate::error::{CageError, CageStep};
use crate::grants::{GrantVia, Grants, PathGrant};
use crate::guarantees::{self, CageFacts, MetadataChanges, TreeEndedBy};
use crate::landlock::domain_guard::SignalScope;
use crate::landlock::nested_rules::NestedRules;
use crate::lock::tcp;
use crate::mounts::MountPlan as RootPlan;
use crate::mounts::hosts_file;
use crate::namespaces::{self, ProxyDoors, UserNs};
use crate::network_namespace::{NetworkNamespace, Ownership};
use crate::notify::{LockedGitConfigs, ProtectedWatch};
use crate::policy::{ConfinementPolicy, FreshMount};
use crate::privileges::NprocScope;
use crate::process_tree::Containment;
use crate::protection_limits::protection_limits;
use crate::spawn::pid1::{NO_PROCESS_LIMIT as INIT_UNBOUNDED, Pid1};
use crate::usage::shared_memory::{SHM, SharedMemory};
use nix::errno::Errno;
use nix::unistd::getuid;
use protocol::confinement::{Confinement, Enforced, Level, Network, Tier};
use protocol::hosts::redirects;
use std::os::fd::OwnedFd;

/// Namespaces around Landlock and seccomp, in a root built by allow.
pub(super) fn tier_a(
    wanted: &Confinement,
    (policy, mounted, joined): (&ConfinementPolicy, Option<OwnedFd>, Option<ProxyDoors>),
    abi: u32,
    left: UserNs,
) -> Result<(Cage, Enforced), CageError> {
    let (group, without) = CommandCgroup::for_command(wanted);
    let mut grants = Grants::open_all(wanted, policy, GrantVia::MountedRoot)?;
    let opened = grants.identities();
    let mut beside = guarantees::keys(&grants);
    beside.extend(guarantees::programs(wanted.profile, &grants));
    let held = LockedGitConfigs::lock(&grants.protection.git_configs)?;
    let watched = ProtectedWatch::of(&grants.protection.paths);
    let protects = !grants.protection.paths.is_empty();
    let of_joined = joined.as_ref().map(|doors| match doors.refused {
        Some(_) => Vec::new(),
        None => doors.redirects.clone(),
    });
    let mut redirects = of_joined.unwrap_or_else(|| redirects(&wanted.hosts, 0));
    let hosts = hosts_file::text_with(&redirects);
    if hosts.is_none() {
        redirects.clear();
    }
    let plan = RootPlan::new(&grants, wanted.limits.memory_bytes)
        .with_staging_dirs(held.staging_dirs())
        .with_hosts(hosts);
    let mut watch = watch(wanted, policy, &grants, Some(&plan), abi)?;
    let fresh = plan.fresh_mounts();
    let first = Pid1::start(plan.clone(), mounted, wanted.limits.processes)?;
    // Meanwhile, on another processor, the root is built.
    let mut losses = namespaces::leave_network_and_ipc(wanted)?;
    let network = own_network(wanted, left)?;
    let doors = joined.map_or_else(|| ProxyDoors::bind(wanted.network, redirects), Ok)?;
    beside.extend(doors.refused.as_ref().map(guarantees::no_redirects));
    // Their fresh namesakes are granted instead. The host's /proc stays in the rules, for the
    // listener: the command cannot reach it.
    let is_own =
        |grant: &mut PathGrant| matches!(grant.fresh, Some(FreshMount::Pts | FreshMount::Shm));
    let fresh_ones: Vec<PathGrant> = grants.list.extract_if(.., is_own).collect();
    let mut layers = NestedRules::new(wanted, policy, &grants, tcp(Tier::A, wanted.network))?;
    let ready = first.await_root()?;
    let unbounded = ready.losses.iter().any(|loss| loss == INIT_UNBOUNDED);
    losses.extend(ready.losses.into_iter().filter(|loss| loss != INIT_UNBOUNDED));
    let mut descriptors = ready.descriptors.into_iter();
    let (Some(processes), Some(mounts)) = (descriptors.next(), descriptors.next()) else {
        return Err(CageError::new(CageStep::Root, "the new root did not arrive"));
    };
    let mut shared = SharedMemory::unobserved();
    for ((path, access), place) in fresh.into_iter().zip(descriptors.by_ref()) {
        layers = layers.add(&place, access)?;
        if path == SHM {
            shared = SharedMemory::private(place);
        }
    }
    let mounted = descriptors.collect();
    grants.list.extend(fresh_ones);
    beside.extend(grants.without_overlays(&ready.without_overlay));
    let plan = plan.without_overlays(&ready.without_overlay);
    beside.extend(plan.shows_host_in_private().then(|| guarantees::SPECIAL_FILES.to_owned()));
    set_access(&mut watch, &grants, plan.restrictions());
    let (watched, unseen) = match watched {
        Ok(watched) => (Some(watched), None),
        Err(errno) => (None, Some(errno)),
    };
    (watch.settings, watch.watched, watch.mounter) = (held.clone(), watched, first.mounter()?);
    let (readable, overlays) = (readable(&grants), grants.overlays());
    // The rules hold the places from here on; each process below would close them all again.
    grants.list.clear();
    if wanted.level == Level::Required && !losses.is_empty() {
        return Err(CageError::new(CageStep::Root, losses.join(" "))
            .hint("`sandbox.level = \"best-effort\"` accepts the loss, `sandbox.tier = \"b\"` does without namespaces"));
    }
    let NestedRules { own, command: inner, .. } = layers;
    let signal_scope = SignalScope::enter(own)?;
    let mut cage = CageLaunch {
        wanted,
        lock: Some(CommandLock { watch, rules: inner }),
        baseline: grants.baseline.take(),
        inside: Some(EnteredNamespaces { processes, mounts }),
        counting: match left {
            UserNs::Entered => NprocScope::Own,
            UserNs::NotNeeded | UserNs::Refused(_) => NprocScope::Shared,
        },
        bond: Containment::Namespace { first, signal_scope },
        group,
        shared,
    }
    .launch()?;
    // The listener is who watches.
    let unseen = unseen.or_else(|| cage.listener.is_none().then_some(Errno::ENOSYS));
    beside.extend(protects.then(|| guarantees::replaced_names(unseen)));
    cage.proxy_listeners = doors.listeners;
    (cage.readable, cage.own_network) = (readable, network);
    cage.overlays = CageOverlays { paths: overlays, mounts: mounted };
    cage.renewal = CageRenewal::new(opened, grants.search, grants.protection, held);
    let ground = CageFacts {
        tier: Tier::A,
        abi,
        network: wanted.network,
        // RLIMIT_NPROC counts in the user namespace, but never binds uid 0.
        processes: if unbounded && (left == UserNs::NotNeeded || getuid().is_root()) {
            bounded(&cage, Controller::Processes, wanted.limits.processes)
        } else {
            by_kernel(wanted.limits.processes)
        },
        memory: bounded(&cage, Controller::Memory, wanted.limits.memory_bytes),
        runs_as_root: root_powers(),
        observed: observed(&cage),
        waits: waits(),
        metadata: MetadataChanges::Refused,
        ended_by: TreeEndedBy::Kernel,
    };
    let names = namespaces::namespace_names(left, wanted);
    let mut enforced = enforced(wanted, ground, names, (grants.missing, grants.left_out));
    enforced.cgroup = cage.tree.cgroup().map(CommandCgroup::enforced_limits).unwrap_or_default();
    enforced.limits.extend(protection_limits(cage.baseline.as_ref()).into_iter().chain(without));
    enforced.limits.extend(beside.into_iter().chain(guarantees::runner_rights(policy)));
    let losses = losses.into_iter().map(|loss| format!("Lost: {loss}"));
    enforced.limits.extend(losses);
    Ok((cage, enforced))
}

/// The network that this process has made, for later commands of the session.
fn own_network(wanted: &Confinement, left: UserNs) -> Result<NetworkNamespace, CageError> {
    match (wanted.network, wanted.joins) {
        (Network::Off | Network::Listed, None) => {}
        (Network::Off | Network::Listed, Some(_)) | (Network::On, _) => {
            return Ok(NetworkNamespace::default());
        }
    }
    let user = match left {
        UserNs::Entered => Ownership::Own,
        UserNs::NotNeeded | UserNs::Refused(_) => Ownership::Host,
    };
    NetworkNamespace::own(user).map_err(|error| {
        CageError::os(CageStep::Namespaces, "the network of the command in /proc/self/ns", error)
    })
}
