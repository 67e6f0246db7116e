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
    // It does not bind root.
    let of_user = (!getuid().is_root() && processes != nix::libc::RLIM_INFINITY)
        .then(|| HostLimit { value: processes, source: "ulimit -u".to_owned() });
    let of_host = ["kernel/pid_max", "kernel/threads-max"].map(|name| {
        let path = Path::new("/proc/sys").join(name);
        number(&path).map(|value| HostLimit { value, source: name.replace('/', ".") })
    });
    let all = of_user.into_iter().chain(of_host.into_iter().flatten()).chain(of_cgroups());
    Ok(HostLimits { open_files, processes: all.min_by_key(|limit| limit.value) })
}

/// The limits of this process's cgroup and of those around it.
fn of_cgroups() -> Vec<HostLimit> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = text.lines().find_map(|line| line.strip_prefix("0::/"));
    let Some(own) = own else { return Vec::new() };
    let root = Path::new("/sys/fs/cgroup");
    let around: Vec<PathBuf> = root.join(own).ancestors().map(Path::to_owned).collect();
    let around = around.into_iter().take_while(|path| path.starts_with(root));
    let limit = |path: PathBuf| {
        let path = path.join("pids.max");
        number(&path).map(|value| HostLimit { value, source: path.display().to_string() })
    };
    around.filter_map(limit).collect()
}

/// The number in this file; none for `max`, or without the file.
fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
