//! Confines git for a task of a fleet, whose commands change the workspace while git reads it. Used by
//! `agentd-fleet`.

use crate::error::{CageError, CageStep};
use crate::grants::{GrantVia, Grants};
use crate::landlock::ruleset::{self, TcpAccess};
use crate::policy;
use protocol::confinement::{Confinement, FilePath, Profile, Tier};
use std::path::Path;

/// Lets the calling thread, and what it starts, read and write below the directory of one task alone, and
/// start git alone, for good: `config/confinement/fleet-git.toml`. Wherever a link in the workspace leads by
/// the time that git follows it, nothing else is in reach. Other threads and open files stay as they are.
///
/// # Errors
/// If the directory is missing, or the kernel refuses; the caller must start nothing then.
pub fn restrict_to_git_in(task: &Path) -> Result<(), CageError> {
    let task = task
        .canonicalize()
        .map_err(|error| CageError::os(CageStep::Grants, task.display(), error))?;
    let task = FilePath::from(&task);
    let wanted = Confinement {
        home: std::env::home_dir().map(FilePath::from),
        highest_tier: Tier::B,
        ..Confinement::closed(Profile::Git, task.clone(), task)
    };
    ruleset::abi()?;
    let grants = Grants::open_places(&wanted, policy::of_fleet_git(), GrantVia::Landlock)?;
    ruleset::enforce(ruleset::rules(&grants.list, TcpAccess::Refused)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::ErrorKind;
    use std::process::Command;

    #[test]
    fn git_of_a_task_reaches_its_directory_alone() {
        let dir = tempfile::tempdir().unwrap();
        let task = dir.path().join("task");
        std::fs::create_dir(&task).unwrap();
        std::fs::write(dir.path().join("key"), "key").unwrap();
        std::os::unix::fs::symlink("../key", task.join("link")).unwrap();
        std::thread::spawn(move || {
            restrict_to_git_in(&task).unwrap();
            let refused = |path: &Path| std::fs::read(path).unwrap_err().kind();
            for path in ["link", "../key"].map(|name| task.join(name)) {
                assert_eq!(refused(&path), ErrorKind::PermissionDenied, "{path:?}");
            }
            for path in ["/etc/passwd", "/proc/self/environ", "/etc/gitconfig/.."] {
                assert!(std::fs::File::open(path).is_err(), "{path}");
            }
            let shell = Command::new("/bin/sh").args(["-c", "true"]).output();
            assert_eq!(shell.unwrap_err().kind(), ErrorKind::PermissionDenied);
            // The controls.
            std::fs::write(task.join("file"), "x").unwrap();
            assert_eq!(std::fs::read(task.join("file")).unwrap(), b"x");
            let mut git = Command::new("git");
            git.args(["init", "--quiet", "--bare", "here"]).current_dir(&task);
            git.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", &task);
            assert!(git.status().unwrap().success());
        })
        .join()
        .unwrap();
    }
}
