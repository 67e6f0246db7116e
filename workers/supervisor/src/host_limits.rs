//! Reads the limits that sessions use up: open files of this process, and processes of its user and of its
//! cgroup.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::getuid;
use std::fs;
use std::path::{Path, PathBuf};
use supervise::{HostLimit, HostLimits};

/// Descriptors for a daemon with many sessions.
const DESCRIPTORS: u64 = 65_536;

/// Raises the limit of open files as far as it is useful and allowed, and reads all limits. Calls get a
/// limit of open files of their own.
///
/// # Errors
/// The kernel's.
pub(crate) fn raise_and_read() -> nix::Result<HostLimits> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let files = hard.min(DESCRIPTORS);
    if soft < files {
        setrlimit(Resource::RLIMIT_NOFILE, files, hard)?;
    }
    let open_files = HostLimit { value: soft.max(files), source: "ulimit -n".to_owned() };
    let (processes, _) = getrlimit(Resource::RLIMIT_NPROC)?;
    let of_user = (!is_host_root() && processes != nix::libc::RLIM_INFINITY)
        .then(|| HostLimit { value: processes, source: "ulimit -u".to_owned() });
    let of_host = ["kernel/pid_max", "kernel/threads-max"].map(|name| {
        let path = Path::new("/proc/sys").join(name);
        number(&path).map(|value| HostLimit { value, source: name.replace('/', ".") })
    });
    let all = of_user.into_iter().chain(of_host.into_iter().flatten()).chain(of_cgroups());
    Ok(HostLimits { open_files, processes: all.min_by_key(|limit| limit.value) })
}

/// True for root outside of user namespaces, whose processes have no limit.
fn is_host_root() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    getuid().is_root() && map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// The limits of this process's cgroup and of those around it.
fn of_cgroups() -> Vec<HostLimit> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let around = directories(&text);
    let limit = |path: PathBuf| {
        let path = path.join("pids.max");
        number(&path).map(|value| HostLimit { value, source: path.display().to_string() })
    };
    around.into_iter().filter_map(limit).collect()
}

/// The number in this file; none for `max`, or without the file.
fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The directories of this process's cgroups that may limit processes, from its own outwards; in version 2,
/// or of the controller `pids` in version 1.
fn directories(cgroups: &str) -> Vec<PathBuf> {
    let mount = Path::new("/sys/fs/cgroup");
    let of_line = |line: &str| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, own) = rest.split_once(":/")?;
        let root = match controllers {
            "" => mount.to_owned(),
            list if list.split(',').any(|name| name == "pids") => mount.join(list),
            _ => return None,
        };
        // Without the slash that the root cgroup's empty name leaves.
        let own: PathBuf = root.join(own).components().collect();
        let around = own.ancestors().map(Path::to_owned).collect::<Vec<_>>();
        Some(around.into_iter().take_while(move |path| path.starts_with(&root)))
    };
    cgroups.lines().filter_map(of_line).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_of_both_versions_are_looked_at_with_those_around_them() {
        let found = |text: &str| -> Vec<String> {
            directories(text).iter().map(|path| path.display().to_string()).collect()
        };
        let second =
            ["/sys/fs/cgroup/user.slice/a.scope", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"];
        assert_eq!(found("0::/user.slice/a.scope\n"), second);
        let first = ["/sys/fs/cgroup/pids/a", "/sys/fs/cgroup/pids"];
        let first = [&first[..], &["/sys/fs/cgroup"]].concat();
        assert_eq!(found("9:name=systemd:/x\n8:pids:/a\n4:memory:/b\n0::/\n"), first);
        assert_eq!(found("4:memory:/b\n"), [""; 0]);
    }
}
