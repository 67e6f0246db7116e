//! The notify supervisor's configuration for a command: which paths it may write, read and start
//! programs in.

use crate::error::{CageError, CageStep};
use crate::grants::Grants;
use crate::guarantees::{self};
use crate::mounts::{MountPlan as RootPlan, MountRestrictions};
use crate::notify::{
    ListeningPorts, LockedGitConfigs, NotifyConfig, OutsideSignals, RunnablePaths,
};
use crate::policy::{Access, ConfinementPolicy};
use crate::seccomp::{ExecMarker, FilterSpec};
use crate::usage::shared_memory::SharedShmCreations;
use protocol::confinement::{Confinement, Network, Tier};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Where the command can read.
pub(super) fn readable(grants: &Grants) -> Vec<PathBuf> {
    let list = grants.list.iter().filter(|grant| grant.access != Access::List);
    list.map(|grant| grant.path.clone()).collect()
}

/// Configuration of the notify supervisor. Call this before this process locks itself.
pub(super) fn watch(
    wanted: &Confinement,
    policy: &ConfinementPolicy,
    grants: &Grants,
    root: Option<&RootPlan>,
    abi: u32,
) -> Result<NotifyConfig, CageError> {
    let (tier, islands) = match root {
        Some(plan) => (Tier::A, plan.restrictions()),
        None => (Tier::B, MountRestrictions::default()),
    };
    let place = |path: &str| {
        File::options()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open(path)
            .map(OwnedFd::from)
            .map_err(|error| CageError::os(CageStep::Listener, path, error))
    };
    let proc = place("/proc")?;
    let host_ports = match (tier, wanted.network) {
        (Tier::A, Network::Off | Network::Listed) => Some(
            ListeningPorts::open(&proc)
                .map_err(|error| CageError::os(CageStep::Listener, "/proc/self/net/tcp", error))?,
        ),
        (Tier::A, Network::On) | (Tier::B | Tier::C, _) => None,
    };
    let mark = ExecMarker::new()
        .map_err(|error| CageError::os(CageStep::Filter, "random bytes for its own use", error))?;
    let spec = FilterSpec::command(tier, wanted.network, abi, mark);
    let mut watch = NotifyConfig {
        spec: if policy.keeps_project() { spec.emulating_metadata() } else { spec },
        tier,
        shm_creations: match tier {
            Tier::A => None,
            Tier::B | Tier::C => Some(SharedShmCreations::default()),
        },
        network: wanted.network,
        signals: match guarantees::signals_are_confined(tier, abi) {
            true => OutsideSignals::Refused,
            false => OutsideSignals::Allowed,
        },
        sockets: Vec::new(),
        runnable: RunnablePaths::default(),
        writable: Vec::new(),
        read_only: Vec::new(),
        settings: LockedGitConfigs::default(),
        watched: None,
        mounter: None,
        file_bytes: wanted.limits.file_bytes,
        host_ports,
        host: place("/")?,
        proc,
    };
    set_access(&mut watch, grants, islands);
    Ok(watch)
}

/// Fills in the paths of each kind of access, in the root as it was built.
pub(super) fn set_access(watch: &mut NotifyConfig, grants: &Grants, islands: MountRestrictions) {
    let granted = |may: fn(Access) -> bool| -> Vec<_> {
        let list = grants.list.iter().filter(|grant| may(grant.shown()));
        list.map(|grant| grant.path.clone()).collect()
    };
    watch.sockets = granted(Access::writes);
    watch.runnable = RunnablePaths {
        places: granted(Access::runs),
        islands: islands.no_exec,
        private: grants.private_dirs(),
    };
    // Devices may be opened for writing too.
    watch.writable = granted(|access| match access {
        Access::Write | Access::Build | Access::Device | Access::Terminal => true,
        Access::List | Access::Read | Access::Run => false,
    });
    watch.read_only = islands.read_only;
}
