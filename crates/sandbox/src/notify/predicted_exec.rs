//! Predicts if the kernel will refuse to execute a program because of its location.
//!
//! As for writes, the path is copied while the caller waits, the call continues, and the same
//! grants are evaluated. A PATH search tries one directory after the other. So a missing or
//! non-executable file is not a refusal, and neither is a refusal before the program was found in a
//! later directory. The interpreter in a script's first line is checked too. There is no prediction
//! if no path names the program (memory, an open file), for the loader named in an ELF file, and
//! for interpreters from `binfmt_misc`.

use super::notify_fd::Notification;
use super::predicted_write::{RootDirs, claimed_path};
use super::proc_reader::ProcReader;
use super::resolve::{FileKind, FinalLink, Resolved, RootDir, beginning, resolve};
use super::writable::RunnablePaths;
use libc::{AT_FDCWD, AT_SYMLINK_NOFOLLOW, EACCES, ENOENT};
use protocol::confinement::{Refusal, Subject};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum length of a chain of interpreters; the kernel follows no more.
const MAX_INTERPRETERS: usize = 6;

/// Maximum number of refused execs that are remembered, in case their PATH search continues.
const MAX_SEARCH_STEPS: usize = 64;

/// The program that an exec names, copied before the call continues.
#[derive(Debug)]
pub(super) struct ExecClaim {
    /// Absolute, with links and dots as given.
    path: PathBuf,
    end: FinalLink,
}

impl ExecClaim {
    /// True if the path as given is directly in one of these directories.
    pub(super) fn is_in(&self, folders: &[PathBuf]) -> bool {
        self.path.parent().is_some_and(|parent| folders.iter().any(|folder| folder == parent))
    }
}

/// Copies the path; `None` if the caller names none.
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

/// The predicted result of an exec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ExecPrediction {
    /// Refused by the grants: the errno and the subject for the record.
    Refused(i32, Subject),
    /// The cage does not refuse it.
    Runs,
    /// Fails for a reason other than the cage, or the result is unknown.
    FailsAnyway,
}

/// Predicts the result.
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
                return ExecPrediction::Refused(EACCES, program(&real, script.as_deref()));
            }
            Resolved::Missing(_) | Resolved::NoParent => {
                return match left_out(&path, end, processes, roots.host) {
                    Some(real) if runnable.leaves_out(&real) => {
                        ExecPrediction::Refused(ENOENT, program(&real, script.as_deref()))
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

/// Refused execs in directories of the command's PATH, which may be steps of a search. If the
/// search finds a program of the same name in a later directory, nothing was really refused. In
/// tier A a shell does not even see the first one.
#[derive(Debug, Default)]
pub(super) struct PathSearches(VecDeque<PathSearchStep>);

#[derive(Debug)]
struct PathSearchStep {
    tid: u32,
    name: OsString,
    refused: Refusal,
}

impl PathSearches {
    /// Remembers a refused exec.
    pub(super) fn refused(&mut self, tid: u32, start: &ExecClaim, refused: Refusal) {
        let Some(name) = start.path.file_name() else { return };
        if self.0.len() == MAX_SEARCH_STEPS {
            self.0.pop_front();
        }
        self.0.push_back(PathSearchStep { tid, name: name.to_owned(), refused });
    }

    /// Removes and returns this thread's refused execs of the same program name, now that the
    /// program runs.
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

/// The real path of a program on the host that is not in the cage's root.
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

/// The absolute path of the interpreter in a script's first line, parsed as the kernel does. Pure.
fn interpreter_of(beginning: &[u8]) -> Option<PathBuf> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let line = beginning.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let from = line.iter().position(|byte| !blank(byte))?;
    let name = line[from..].split(|byte| blank(byte) || *byte == 0).next()?;
    // A relative path starts at the caller's directory, which may have changed by now.
    name.starts_with(b"/").then(|| PathBuf::from(OsStr::from_bytes(name)))
}

fn program(real: &Path, script: Option<&Path>) -> Subject {
    let text = |path: &Path| path.display().to_string();
    Subject::Program { path: text(real), script: script.map(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::confinement::RefusalKind;

    fn start(path: &str) -> ExecClaim {
        ExecClaim { path: path.into(), end: FinalLink::Followed }
    }

    fn refusal(path: &str) -> Refusal {
        Refusal {
            kind: RefusalKind::Predicted,
            syscall: "execve".to_owned(),
            subject: program(Path::new(path), None),
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
