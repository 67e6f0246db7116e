//! Inspects this process's cgroup, for `cgroup_path` and `delegation` to judge. It changes nothing.

use super::cgroup_path::{CgroupPath, SetupStage, locate};
use super::cgroup_syscalls;
use super::delegation::{
    CgroupFacts, CgroupOwner, Delegation, DelegationMark, NoDelegation, WriteAccess, judge,
};
use nix::errno::Errno;
use nix::unistd::{AccessFlags, access, geteuid};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The kernel's name for agentd's processes. Only these may run in a cgroup that agentd arranges.
const AGENTD: &str = "agentd";

/// The delegation that a supervisor started here would find.
#[must_use]
pub fn delegation() -> Delegation {
    match inspect_own() {
        Ok((_, delegation)) => delegation,
        Err(reason) => Delegation::Unavailable(reason),
    }
}

/// The delegation, and the state in which an earlier supervisor left the cgroup.
pub(super) fn inspect_own() -> Result<(SetupStage, Delegation), NoDelegation> {
    let read = |path| fs::read_to_string(path).map_err(|error| failed(Path::new(path), &error));
    let CgroupPath { base, stage } =
        locate(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)?;
    Ok((stage, judge(gather(&base)?)))
}

/// The failed file and the error.
pub(super) fn failed(at: &Path, error: &dyn std::error::Error) -> NoDelegation {
    NoDelegation::Failed(format!("{}: {error}", at.display()))
}

fn gather(base: &Path) -> Result<CgroupFacts, NoDelegation> {
    let controllers = base.join("cgroup.controllers");
    let controllers =
        fs::read_to_string(&controllers).map_err(|error| failed(&controllers, &error))?;
    Ok(CgroupFacts {
        base: base.to_owned(),
        kind: fs::read_to_string(base.join("cgroup.type")).ok(),
        owner: owner(base),
        above: base.parent().map_or(CgroupOwner::Other, owner),
        mark: delegation_mark(base),
        writing: write_access(base),
        controllers,
        others: processes(base).into_iter().filter(|(_, name)| !is_agentd(name)).collect(),
        user: if geteuid().is_root() { CgroupOwner::Root } else { CgroupOwner::Other },
    })
}

/// Checks the directory and the two files that matter: in a delegated cgroup other files may be
/// writable and these not.
fn write_access(base: &Path) -> WriteAccess {
    let places = [base.to_owned(), base.join("cgroup.procs"), base.join("cgroup.subtree_control")];
    let refused = places.iter().find_map(|place| access(place, AccessFlags::W_OK).err());
    match refused {
        None => WriteAccess::Allowed,
        Some(Errno::EROFS) => WriteAccess::ReadOnly,
        Some(_) => WriteAccess::Refused,
    }
}

fn owner(place: &Path) -> CgroupOwner {
    match fs::metadata(place).map(|metadata| metadata.uid()) {
        Ok(uid) if uid == geteuid().as_raw() => CgroupOwner::Us,
        Ok(0) => CgroupOwner::Root,
        Ok(_) | Err(_) => CgroupOwner::Other,
    }
}

/// systemd writes both attributes; without privileges the first cannot be read.
fn delegation_mark(base: &Path) -> DelegationMark {
    let marked = [c"trusted.delegate", c"user.delegate"]
        .into_iter()
        .any(|name| cgroup_syscalls::attribute(base, name).is_some_and(|value| value == b"1"));
    if marked { DelegationMark::Delegated } else { DelegationMark::None }
}

/// The processes directly in a cgroup, by number and name.
pub(super) fn processes(base: &Path) -> Vec<(u32, String)> {
    let listed = fs::read_to_string(base.join("cgroup.procs")).unwrap_or_default();
    let numbers = listed.lines().filter_map(|line| line.parse::<u32>().ok());
    // A process that has ended since then does not count.
    let named = |pid| Some((pid, fs::read_to_string(format!("/proc/{pid}/comm")).ok()?));
    numbers.filter_map(named).map(|(pid, name)| (pid, name.trim_end().to_owned())).collect()
}

/// True for this process under any name, and for every process of agentd.
fn is_agentd(name: &str) -> bool {
    let own = fs::read_to_string("/proc/self/comm").unwrap_or_default();
    name == AGENTD || name.starts_with("agentd-") || name == own.trim_end()
}
