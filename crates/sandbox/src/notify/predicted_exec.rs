//! Programs that the command starts: whether the kernel will refuse one because it may not be run
//! from where it lies.
//!
//! As with writes, the claimed path is copied while the caller waits, the call goes on, and the
//! same grants are evaluated. Whoever looks for a program tries one folder after the other: what is
//! not there, or what nobody may execute, is no refusal, nor is what was found in a later folder. A
//! script's first line names a program too.
//! Nothing is said where no path says what is started (memory, an open file), and not predicted are
//! the loader that a program names in itself and what `binfmt_misc` adds.

use super::notify_fd::Notification;
use super::predicted_write::{RootDirs, claimed_path};
use super::proc_reader::ProcReader;
use super::resolve::{FileKind, FinalLink, Resolved, RootDir, beginning, resolve};
use super::writable::RunnablePaths;
use libc::{AT_FDCWD, AT_SYMLINK_NOFOLLOW, EACCES, ENOENT};
use protocol::confinement::Refusal;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Most programs for one start: the kernel follows no more first lines.
const MAX_INTERPRETERS: usize = 6;

/// Refused starts that are kept in mind for their searches to go on.
const MAX_SEARCH_STEPS: usize = 64;

/// What a call says it will start, copied before it goes on.
#[derive(Debug)]
pub(super) struct ExecClaim {
    /// Absolute, but with links and dots as said.
    path: PathBuf,
    end: FinalLink,
}

impl ExecClaim {
    /// Whether it is said to lie in one of these.
    pub(super) fn is_in(&self, folders: &[PathBuf]) -> bool {
        self.path.parent().is_some_and(|parent| folders.iter().any(|folder| folder == parent))
    }
}

/// Copies the path. Nothing where the caller names none.
#[allow(clippy::cast_possible_truncation, reason = "the kernel takes these as 32 bits too")]
pub(super) fn claim(
    dir: Option<usize>,
    path: usize,
    flags: Option<usize>,
    notice: &Notification,
    processes: &ProcReader,
) -> Option<ExecClaim> {
    let low = |argument: usize| notice.args[argument] as i32;
    let dir = dir.map_or(AT_FDCWD, low);
    let end = match flags.map_or(0, low) & AT_SYMLINK_NOFOLLOW {
        0 => FinalLink::Followed,
        _ => FinalLink::NotFollowed,
    };
    Some(ExecClaim { path: claimed_path(processes, notice.tid, dir, notice.args[path])?, end })
}

/// What will become of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ExecPrediction {
    /// Refused by the grants: the errno and the words for the record.
    Refused(i32, String),
    /// Nothing is in its way here.
    Runs,
    /// It fails for a reason that has nothing to do with the cage, or nobody can tell.
    FailsAnyway,
}

/// What will become of this one.
pub(super) fn predict(
    start: &ExecClaim,
    processes: &ProcReader,
    roots: RootDirs<'_>,
    runnable: &RunnablePaths,
) -> ExecPrediction {
    let (mut path, mut end, mut script) = (start.path.clone(), start.end, None);
    for _ in 0..MAX_INTERPRETERS {
        match resolve(processes, roots.cage, &path, end) {
            Resolved::Exists(real, FileKind::Program) if runnable.allows(&real) => {
                let beginning = beginning(roots.cage, &real);
                let Some(next) = beginning.and_then(|bytes| interpreter_of(&bytes)) else {
                    return ExecPrediction::Runs;
                };
                (path, end, script) = (next, FinalLink::Followed, Some(real));
            }
            Resolved::Exists(real, FileKind::Program) => {
                return ExecPrediction::Refused(EACCES, describe(&real, script.as_deref()));
            }
            Resolved::Missing(_) | Resolved::NoParent => {
                return match left_out(&path, end, processes, roots.host) {
                    Some(real) if runnable.leaves_out(&real) => {
                        ExecPrediction::Refused(ENOENT, describe(&real, script.as_deref()))
                    }
                    Some(_) | None => ExecPrediction::FailsAnyway,
                };
            }
            Resolved::Exists(
                _,
                FileKind::Directory
                | FileKind::Socket
                | FileKind::Pipe
                | FileKind::Device
                | FileKind::Other,
            )
            | Resolved::NotSearchable(_)
            | Resolved::Unknown => return ExecPrediction::FailsAnyway,
        }
    }
    ExecPrediction::FailsAnyway
}

/// Refused starts in folders of the given PATH, which may be steps of a search: whoever finds a program of the same name further
/// on in PATH was refused nothing, in tier B as in tier A, where a shell does not see the first.
#[derive(Debug, Default)]
pub(super) struct PathSearches(VecDeque<PathSearchStep>);

#[derive(Debug)]
struct PathSearchStep {
    tid: u32,
    name: OsString,
    refused: Refusal,
}

impl PathSearches {
    /// Keeps one in mind.
    pub(super) fn refused(&mut self, tid: u32, start: &ExecClaim, refused: Refusal) {
        let Some(name) = start.path.file_name() else { return };
        if self.0.len() == MAX_SEARCH_STEPS {
            self.0.pop_front();
        }
        self.0.push_back(PathSearchStep { tid, name: name.to_owned(), refused });
    }

    /// Those that led this thread here, where its program runs.
    pub(super) fn take_refused_before(&mut self, tid: u32, start: &ExecClaim) -> Vec<Refusal> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let (own, others): (VecDeque<_>, _) = self.0.drain(..).partition(|step| step.tid == tid);
        self.0 = others;
        let found = start.path.file_name();
        own.into_iter()
            .filter(|step| Some(step.name.as_os_str()) == found)
            .map(|step| step.refused)
            .collect()
    }
}

/// A program on the host that was kept from the cage by leaving it out.
fn left_out(
    path: &Path,
    end: FinalLink,
    processes: &ProcReader,
    host: &RootDir,
) -> Option<PathBuf> {
    match resolve(processes, host, path, end) {
        // The host's `/proc` shows other processes.
        Resolved::Exists(real, FileKind::Program) if !real.starts_with("/proc") => Some(real),
        Resolved::Exists(..)
        | Resolved::Missing(_)
        | Resolved::NoParent
        | Resolved::NotSearchable(_)
        | Resolved::Unknown => None,
    }
}

/// The absolute path that a script's first line names, as the kernel reads it. Pure.
fn interpreter_of(beginning: &[u8]) -> Option<PathBuf> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let line = beginning.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let from = line.iter().position(|byte| !blank(byte))?;
    let name = line[from..].split(|byte| blank(byte) || *byte == 0).next()?;
    // Another would begin at the caller's directory, which it may have left by now.
    name.starts_with(b"/").then(|| PathBuf::from(OsStr::from_bytes(name)))
}

fn describe(real: &Path, script: Option<&Path>) -> String {
    let real = real.display();
    match script {
        Some(script) => format!("{real}, running {} with it", script.display()),
        None => format!("{real}, running it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::confinement::RefusalKind;

    fn start(path: &str) -> ExecClaim {
        ExecClaim { path: path.into(), end: FinalLink::Followed }
    }

    fn refusal(detail: &str) -> Refusal {
        Refusal {
            kind: RefusalKind::Predicted,
            syscall: "execve".to_owned(),
            detail: detail.to_owned(),
            errno: EACCES,
            pid: 1,
            count: 1,
        }
    }

    #[test]
    fn a_search_takes_back_its_own_steps_and_no_others() {
        let mut searches = PathSearches::default();
        for (tid, path) in [(7, "/a/tool"), (8, "/a/tool"), (7, "/b/tool"), (7, "/b/other")] {
            searches.refused(tid, &start(path), refusal(path));
        }
        let led = searches.take_refused_before(7, &start("/usr/bin/tool"));
        assert_eq!(led, [refusal("/a/tool"), refusal("/b/tool")]);
        assert_eq!(searches.take_refused_before(7, &start("/usr/bin/tool")), []);
        assert_eq!(searches.take_refused_before(8, &start("/usr/bin/tools")), []);
        for at in 0..2 * MAX_SEARCH_STEPS {
            searches.refused(9, &start("/a/tool"), refusal(&at.to_string()));
        }
        assert_eq!(searches.take_refused_before(9, &start("/b/tool")).len(), MAX_SEARCH_STEPS);
    }

    #[test]
    fn first_lines_are_read_as_the_kernel_reads_them() {
        for (beginning, expected) in [
            (&b"#!/bin/sh\necho"[..], Some("/bin/sh")),
            (b"#! \t/usr/bin/env python3\n", Some("/usr/bin/env")),
            (b"#!/bin/sh\t-e\n", Some("/bin/sh")),
            (b"#!/bin/sh", Some("/bin/sh")),
            (b"#!/bin/sh\0rest", Some("/bin/sh")),
            (b"#!bin/sh\n", None),
            (b"#!\n/bin/sh", None),
            (b"#!   ", None),
            (b"#", None),
            (b"\x7fELF/bin/sh", None),
            (b"", None),
        ] {
            assert_eq!(interpreter_of(beginning), expected.map(PathBuf::from), "{beginning:?}");
        }
    }
}
