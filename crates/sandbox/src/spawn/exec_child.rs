//! The command's process before exec: it locks itself at once, then waits for the program to run.

use crate::error::{CageError, CageStep};
use crate::landlock::ruleset;
use crate::privileges::{self, NprocScope};
use crate::seccomp::{self, CompiledFilter, ExecMarker, FilterSpec, InstallError, Reporting};
use crate::spawn::setup_channel::SetupChannel;
use crate::sys;
use landlock::RulesetCreated;
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{chdir, setsid};
use protocol::confinement::Limits;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Search path for a program name without a slash if the environment has no PATH.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// A program to run in a cage. It gets this environment only and inherits none.
#[derive(Debug)]
pub struct Program {
    /// Name or path, then the arguments. A name without a slash is searched in `env`'s PATH.
    pub argv: Vec<OsString>,
    /// Names and values.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; an absolute path inside the grants.
    pub cwd: PathBuf,
    /// Its standard input.
    pub input: ProgramInput,
}

/// [`ProgramInput::Pipe`] and [`ProgramInput::File`] as bytes of the message to the process.
const PIPE: u8 = 1;
const FILE: u8 = 2;

/// The standard input of a program.
#[derive(Debug)]
pub enum ProgramInput {
    /// `/dev/null`. Programs such as `rg` search a pipe in place of the directory.
    Nothing,
    /// A pipe, written by the runner: [`RunningCommand::stdin`](crate::RunningCommand::stdin).
    Pipe,
    /// This file, which the grants need not cover.
    File(OwnedFd),
}

impl ProgramInput {
    /// As a byte of the message to the process.
    const fn code(&self) -> u8 {
        match self {
            Self::Nothing => 0,
            Self::Pipe => PIPE,
            Self::File(_) => FILE,
        }
    }
}

impl Program {
    /// The PATH in which it will search programs.
    pub(crate) fn path(&self) -> Option<&OsStr> {
        self.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str())
    }

    /// Sends it to the process that will execute it.
    pub(crate) fn send(&self, channel: &SetupChannel) -> Result<(), CageError> {
        if self.argv.is_empty() {
            return Err(CageError::new(CageStep::Program, "there is nothing to run"));
        }
        let count = self.argv.len().to_le_bytes();
        let input = vec![self.input.code()];
        let mut parts: Vec<Vec<u8>> =
            vec![self.cwd.as_os_str().as_bytes().into(), count.into(), input];
        parts.extend(self.argv.iter().map(|arg| arg.as_bytes().into()));
        for (name, value) in &self.env {
            parts.push([name.as_bytes(), b"=", value.as_bytes()].concat());
        }
        if parts.iter().skip(3).any(|part| part.contains(&0)) {
            return Err(CageError::new(
                CageStep::Program,
                "an argument or a variable contains a NUL byte, which exec does not allow",
            ));
        }
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let file = match &self.input {
            ProgramInput::File(file) => Some(file.as_fd()),
            ProgramInput::Nothing | ProgramInput::Pipe => None,
        };
        channel.send_with(&parts, file)
    }
}

/// Everything that the process needs to lock itself.
pub(crate) struct PendingExec {
    pub input: OwnedFd,
    /// The read end of the pipe that becomes its input where the program wants one.
    pub piped: OwnedFd,
    pub output: OwnedFd,
    pub errors: OwnedFd,
    /// The mount namespace with the new root, in tier A.
    pub root: Option<OwnedFd>,
    /// `None` without a cage.
    pub rules: Option<RulesetCreated>,
    /// With its spec, for a kernel that gives no notification descriptor; `None` without a cage.
    pub filter: Option<(CompiledFilter, FilterSpec)>,
    pub limits: Limits,
    pub umask: Mode,
    pub counting: NprocScope,
}

impl PendingExec {
    /// Runs in the forked process. Returns the exit code if no program was executed.
    pub(crate) fn run(self, channel: &SetupChannel) -> i32 {
        // Without a filter nothing reads the marker.
        let marker = self.filter.as_ref().and_then(|(_, spec)| spec.marker());
        match self.lock(channel).and_then(|piped| await_program(channel, piped, marker)) {
            Ok(()) => 0,
            Err(error) => {
                // The send fails if the runner is gone; then no process needs the error.
                let _ = channel.send_error(&error);
                127
            }
        }
    }

    /// Locks the process, in the order that the crate's README describes. Returns the read end of the
    /// pipe, the only descriptor of this structure that stays open.
    fn lock(self, channel: &SetupChannel) -> Result<OwnedFd, CageError> {
        let handover = |error: Errno| CageError::os(CageStep::Handover, "standard streams", error);
        prctl::set_pdeathsig(Signal::SIGKILL)
            .map_err(|error| CageError::os(CageStep::Privileges, "death signal", error))?;
        setsid().map_err(|error| CageError::os(CageStep::Handover, "new session", error))?;
        sys::default_signals();
        sys::put_at(self.input.as_fd(), 0).map_err(handover)?;
        sys::put_at(self.output.as_fd(), 1).map_err(handover)?;
        sys::put_at(self.errors.as_fd(), 2).map_err(handover)?;
        if let Some(root) = &self.root {
            setns(root, CloneFlags::CLONE_NEWNS)
                .map_err(|error| CageError::os(CageStep::Root, "entering the new root", error))?;
        }
        umask(self.umask);
        privileges::set_limits(&self.limits, self.counting)?;
        privileges::drop_all()?;
        self.rules.map(ruleset::enforce).transpose()?;
        // Close the descriptors of this structure first; the remaining ones belong to the runner's
        // code.
        drop((self.input, self.output, self.errors, self.root));
        let piped = self.piped;
        sys::close_all_but(&[channel.as_fd(), piped.as_fd()])
            .map_err(|error| CageError::os(CageStep::Handover, "closing descriptors", error))?;
        // The runner reads this process's memory to describe refused calls. The kernel allows that
        // for dumpable processes only; exec would set the flag anyway.
        prctl::set_dumpable(true)
            .map_err(|error| CageError::os(CageStep::Privileges, "dumpable", error))?;
        let Some((filter, spec)) = self.filter else {
            channel.send_ready(&[], &[])?;
            return Ok(piped);
        };
        match filter.install() {
            Ok(Some(notify)) => channel.send_ready(&[notify.as_fd()], &[])?,
            Ok(None) => channel.send_ready(&[], &[])?,
            Err(InstallError::Listener(_)) => {
                let silent = FilterSpec { reporting: Reporting::Errno, ..spec };
                seccomp::install(&silent).map_err(CageError::from)?;
                channel.send_ready(&[], &[])?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(piped)
    }
}

/// Waits for a program and executes it. `Ok` if the runner closed the channel instead.
fn await_program(
    channel: &SetupChannel,
    piped: OwnedFd,
    marker: Option<ExecMarker>,
) -> Result<(), CageError> {
    let Some((parts, file)) = channel.receive_with()? else {
        return Ok(());
    };
    let nonsense = || CageError::new(CageStep::Handover, "the message with the program is invalid");
    let [cwd, count, input, strings @ ..] = parts.as_slice() else {
        return Err(nonsense());
    };
    let input = match input.as_slice() {
        [PIPE] => Some(&piped),
        [FILE] => Some(file.as_ref().ok_or_else(nonsense)?),
        _ => None,
    };
    if let Some(input) = input {
        sys::put_at(input.as_fd(), 0)
            .map_err(|error| CageError::os(CageStep::Handover, "standard input", error))?;
    }
    drop((piped, file));
    let count = usize::from_le_bytes(count.as_slice().try_into().map_err(|_| nonsense())?);
    let strings: Vec<CString> = strings
        .iter()
        .map(|part| CString::new(part.as_slice()).map_err(|_| nonsense()))
        .collect::<Result<_, _>>()?;
    let (argv, env) = strings.split_at_checked(count).ok_or_else(nonsense)?;
    let cwd = OsStr::from_bytes(cwd);
    chdir(cwd).map_err(|error| {
        CageError::os(
            CageStep::Program,
            format!("its working directory {} cannot be entered", cwd.display()),
            error,
        )
        .hint("start it in the project or in an added directory")
    })?;
    Err(execute(argv, env, marker.map_or(0, ExecMarker::register)))
}

/// Tries to execute the program in each directory of the search path. Returns only on failure, with
/// the reason.
fn execute(argv: &[CString], env: &[CString], marker: u64) -> CageError {
    let Some(name) = argv.first() else {
        return CageError::new(CageStep::Program, "there is nothing to run");
    };
    let shown = name.to_string_lossy();
    if name.as_bytes().contains(&b'/') {
        return refused(&shown, sys::exec(name, argv, env, marker));
    }
    let path = env
        .iter()
        .find_map(|entry| entry.as_bytes().strip_prefix(b"PATH="))
        .unwrap_or(DEFAULT_PATH);
    // A directory without search permission matters only if no other directory has the program.
    let mut worst = Errno::ENOENT;
    for folder in path.split(|byte| *byte == b':') {
        let folder = if folder.is_empty() { b"." } else { folder };
        let Ok(candidate) = CString::new([folder, b"/", name.as_bytes()].concat()) else {
            continue;
        };
        let errno = sys::exec(&candidate, argv, env, marker);
        if errno == Errno::EACCES {
            worst = errno;
        } else if errno != Errno::ENOENT && errno != Errno::ENOTDIR {
            return refused(&shown, errno);
        }
    }
    if worst == Errno::ENOENT {
        return CageError::os(
            CageStep::Program,
            format!("there is no program `{shown}` in PATH"),
            worst,
        );
    }
    refused(&shown, worst)
}

/// The reason why exec failed, in plain words.
fn refused(name: &str, errno: Errno) -> CageError {
    let why = if errno == Errno::ENOENT {
        format!(
            "`{name}` does not exist in the cage, or the interpreter that its first line names does not"
        )
    } else if errno == Errno::EACCES {
        format!(
            "`{name}` may not be executed: it is not executable, or it is outside the directories that the cage grants"
        )
    } else if errno == Errno::ENOEXEC {
        format!("`{name}` is not a program: a script needs a first line such as #!/bin/sh")
    } else if errno == Errno::E2BIG {
        format!("the arguments and environment of `{name}` are longer than the kernel takes")
    } else {
        format!("`{name}` could not be executed")
    };
    CageError::os(CageStep::Program, why, errno)
}
