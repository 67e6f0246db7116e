//! Tests of the notify supervisor against the kernel.
#![allow(clippy::unwrap_used)]

mod connects;
mod ending;
mod programs;
mod signals;
mod starts;
mod writes;

use super::{NotifyConfig, OutsideSignals, RunnablePaths};
use crate::seccomp::FilterSpec;
use protocol::confinement::{Network, Refusal, RefusalKind, Tier};
use std::ffi::CString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A watch of tier B without any grant but to start programs.
pub(crate) fn test_config(spec: FilterSpec) -> NotifyConfig {
    NotifyConfig {
        settings: crate::notify::LockedGitConfigs::default(),
        watched: None,
        mounter: None,
        spec,
        tier: Tier::B,
        shm_creations: None,
        network: Network::Off,
        signals: OutsideSignals::Allowed,
        writable: Vec::new(),
        runnable: RunnablePaths { places: vec![PathBuf::from("/")], ..RunnablePaths::default() },
        read_only: Vec::new(),
        file_bytes: 0,
        sockets: Vec::new(),
        host_ports: None,
        proc: File::open("/proc").unwrap().into(),
        host: File::open("/").unwrap().into(),
    }
}

/// A project that is granted and a place beside it that is not.
struct TestDirs {
    _keep: tempfile::TempDir,
    project: PathBuf,
    outside: PathBuf,
}

fn test_dirs() -> TestDirs {
    let keep = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(keep.path()).unwrap();
    let (project, outside) = (root.join("project"), root.join("outside"));
    std::fs::create_dir(&project).unwrap();
    std::fs::create_dir(&outside).unwrap();
    TestDirs { _keep: keep, project, outside }
}

pub(crate) fn c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// The lines of a record, without process numbers.
fn lines(refusals: &[Refusal]) -> Vec<(RefusalKind, &str, &str, i32)> {
    refusals
        .iter()
        .map(|line| {
            (line.kind, line.syscall.as_str(), &*line.subject.to_string().leak(), line.errno)
        })
        .collect()
}
