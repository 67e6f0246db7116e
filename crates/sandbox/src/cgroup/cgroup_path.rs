//! Finds the directory of this process's cgroup from `/proc/self/cgroup` and
//! `/proc/self/mountinfo`. Pure; used by `inspect`.

use super::delegation::NoDelegation;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Name of the leaf that holds agentd's own processes.
pub(crate) const OWN_LEAF: &str = "agentd-own";

/// A cgroup directory that may have been delegated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CgroupPath {
    /// This process's cgroup, or its parent if this process is already in the leaf.
    pub base: PathBuf,
    pub stage: SetupStage,
}

/// The state in which a supervisor finds the cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetupStage {
    Fresh,
    /// This process is already in the leaf.
    SetUp,
}

/// A mount of the cgroup version 2 hierarchy.
struct CgroupMount {
    /// The directory of the hierarchy that is mounted.
    root: PathBuf,
    at: PathBuf,
}

/// Finds the cgroup directory of this process.
///
/// # Errors
/// The reason why there is none.
pub(crate) fn locate(cgroup: &str, mountinfo: &str) -> Result<CgroupPath, NoDelegation> {
    let own =
        cgroup.lines().find_map(|line| line.strip_prefix("0::")).ok_or(NoDelegation::NoVersion2)?;
    let own = Path::new(own);
    let mounts: Vec<CgroupMount> = mountinfo.lines().filter_map(mount).collect();
    if mounts.is_empty() {
        return Err(NoDelegation::NoVersion2);
    }
    // The kernel writes `/../…` for a cgroup outside the namespace's root.
    let below = |mount: &CgroupMount| Some(mount.at.join(own.strip_prefix(&mount.root).ok()?));
    let outside = own.components().any(|part| part.as_os_str() == "..");
    let found =
        mounts.iter().find_map(below).filter(|_| !outside).ok_or(NoDelegation::OutOfSight)?;
    match found.parent() {
        Some(above) if found.file_name().is_some_and(|name| name == OWN_LEAF) => {
            Ok(CgroupPath { base: above.to_owned(), stage: SetupStage::SetUp })
        }
        Some(_) | None => Ok(CgroupPath { base: found, stage: SetupStage::Fresh }),
    }
}

/// Parses `38 31 0:36 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate`, see proc(5).
fn mount(line: &str) -> Option<CgroupMount> {
    let (about, of) = line.split_once(" - ")?;
    if of.split(' ').next() != Some("cgroup2") {
        return None;
    }
    let mut fields = about.split(' ').skip(3);
    let (root, at) = (unescape(fields.next()?), unescape(fields.next()?));
    Some(CgroupMount { root, at })
}

/// Decodes a path of mountinfo, which writes blanks and backslashes as three octal digits.
fn unescape(field: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = field.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if *first == b'\\' => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            Some(_) | None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const UNIFIED: &str = "22 26 0:20 / /sys rw,nosuid shared:2 - sysfs sysfs rw
27 22 0:24 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
";
    /// Controllers in version 1, an empty version 2 beside it: systemd calls this hybrid.
    const HYBRID: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    fn at(cgroup: &str, mountinfo: &str) -> (String, SetupStage) {
        let CgroupPath { base, stage } = locate(cgroup, mountinfo).unwrap();
        (base.to_str().unwrap().to_owned(), stage)
    }

    #[test]
    fn a_users_service_and_scope_are_found() {
        let service = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/agentd.service\n";
        let base =
            "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/agentd.service";
        assert_eq!(at(service, UNIFIED), (base.to_owned(), SetupStage::Fresh));
        let again = service.replace(".service\n", ".service/agentd-own\n");
        assert_eq!(at(&again, UNIFIED), (base.to_owned(), SetupStage::SetUp));
        let named = "0::/user.slice/my\\040own\n";
        assert!(at(named, UNIFIED).0.ends_with("my\\040own"), "only mountinfo is written so");
    }

    #[test]
    fn version_2_beside_version_1_is_found_where_it_is_mounted() {
        let here = "9:name=systemd:/\n8:pids:/\n4:memory:/process_api/b4bb\n0::/\n";
        assert_eq!(at(here, HYBRID), ("/sys/fs/cgroup/unified/".to_owned(), SetupStage::Fresh));
    }

    #[test]
    fn a_container_sees_its_own_root_or_nothing() {
        let private = "1 2 0:28 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n";
        assert_eq!(at("0::/\n", private).0, "/sys/fs/cgroup/");
        // The host's namespace, with the container's part of it mounted.
        let shared = "1 2 0:28 /docker/4f1c /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(at("0::/docker/4f1c\n", shared).0, "/sys/fs/cgroup/");
        assert_eq!(at("0::/docker/4f1c/own\n", shared).0, "/sys/fs/cgroup/own");
        for out_of_sight in ["0::/../other\n", "0::/docker/else\n"] {
            assert_eq!(locate(out_of_sight, shared), Err(NoDelegation::OutOfSight));
        }
        let blank = "1 2 0:28 / /mnt/two\\040words rw - cgroup2 none rw\n";
        assert_eq!(at("0::/a\n", blank).0, "/mnt/two words/a");
    }

    #[test]
    fn without_version_2_there_is_nothing_to_find() {
        let one = "4:memory:/\n8:pids:/\n";
        assert_eq!(locate(one, UNIFIED), Err(NoDelegation::NoVersion2));
        assert_eq!(
            locate("0::/\n", "22 26 0:20 / /sys rw - sysfs sysfs rw\n"),
            Err(NoDelegation::NoVersion2)
        );
        for nonsense in ["", "\n\n", "0:", " - cgroup2", "1 2 - cgroup2 x y"] {
            assert_eq!(locate(nonsense, nonsense), Err(NoDelegation::NoVersion2));
        }
    }
}
