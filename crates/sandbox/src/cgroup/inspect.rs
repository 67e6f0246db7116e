//! The look at this process's cgroup that `place` and `delegation` judge. It changes nothing.

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

/// Our programs, as the kernel names their processes: what may run beside this one in a cgroup that is
/// arranged.
const AGENTD: &str = "agentd";

/// Whether commands of a supervisor that is started here get a cgroup each.
#[must_use]
pub fn delegation() -> Delegation {
    match inspect_own() {
        Ok((_, delegation)) => delegation,
        Err(reason) => Delegation::Unavailable(reason),
    }
}

/// The same, and whether it was arranged before.
pub(super) fn inspect_own() -> Result<(SetupStage, Delegation), NoDelegation> {
    let read = |path| fs::read_to_string(path).map_err(|error| failed(Path::new(path), &error));
    let CgroupPath { base, stage } =
        locate(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)?;
    Ok((stage, judge(gather(&base)?)))
}

/// What failed, and at what.
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

/// Of the directory and of the two files in it that decide: a delegated one may leave us others.
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

/// systemd writes both; without its powers the first cannot be read.
fn delegation_mark(base: &Path) -> DelegationMark {
    let marked = [c"trusted.delegate", c"user.delegate"]
        .into_iter()
        .any(|name| cgroup_syscalls::attribute(base, name).is_some_and(|value| value == b"1"));
    if marked { DelegationMark::Delegated } else { DelegationMark::None }
}

/// The processes that are right in a cgroup, by number and name.
pub(super) fn processes(base: &Path) -> Vec<(u32, String)> {
    let listed = fs::read_to_string(base.join("cgroup.procs")).unwrap_or_default();
    let numbers = listed.lines().filter_map(|line| line.parse::<u32>().ok());
    // One that has ended since is nobody's.
    let named = |pid| Some((pid, fs::read_to_string(format!("/proc/{pid}/comm")).ok()?));
    numbers.filter_map(named).map(|(pid, name)| (pid, name.trim_end().to_owned())).collect()
}

/// This process, whatever it is called, and each of ours.
fn is_agentd(name: &str) -> bool {
    let own = fs::read_to_string("/proc/self/comm").unwrap_or_default();
    name == AGENTD || name.starts_with("agentd-") || name == own.trim_end()
}
