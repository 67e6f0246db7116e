//! The first process of the PID namespace: builds the root, reaps orphans, and ends with its line,
//! and the whole namespace with it. For `runner` and `tree`.

use crate::error::{CageError, CageStep};
use crate::launch::open_dev_null;
use crate::privileges;
use crate::read_only_mounts::{self, ReadOnlyMounter};
use crate::root::{BuiltRoot, MountPlan, StagingDir};
use crate::setup_channel::{ReadyMsg, SetupChannel};
use crate::sys;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sched::CloneFlags;
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, SigSet, Signal};
use nix::sys::utsname::uname;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, setsid};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Said instead of a loss where the kernel does not bound the number of processes.
pub(crate) const NO_PROCESS_LIMIT: &str = "unbounded";

/// How long the namespace of a cage that was given up gets to end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// What the runner is handed, before the places that are fresh in the root.
const OPENED: [&str; 2] = ["/proc/self/ns/pid", "/proc/self/ns/mnt"];

/// Pids that the kernel keeps for itself once numbers start again from below.
const RESERVED_PIDS: u64 = 300;

/// The first process, as the runner sees it. Dropping it ends the namespace.
#[derive(Debug)]
pub(crate) struct Pid1 {
    pid: Pid,
    line: Option<SetupChannel>,
    /// Whether it makes files read-only when it is asked.
    seals: bool,
}

impl Pid1 {
    /// Starts it, in a PID and a mount namespace of its own. The runner locks itself after.
    ///
    /// # Errors
    /// `Step::Namespaces`.
    pub(crate) fn start(
        plan: MountPlan,
        mounted: Option<OwnedFd>,
        processes: u64,
    ) -> Result<Self, CageError> {
        let seals = plan.has_sealed();
        let nothing = open_dev_null()?;
        let (line, its_line) = SetupChannel::pair()?;
        let apart = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
        let pid = sys::fork_into(apart, move || {
            run((&plan, mounted.as_ref()), processes, nothing, &its_line)
        })
        .map_err(|error| CageError::os(CageStep::Namespaces, "its first process", error))?;
        Ok(Self { pid, line: Some(line), seals })
    }

    /// Waits until the root stands. The descriptors are the two namespaces, the root, what was
    /// mounted fresh (`/proc`, `/dev/pts`, `/dev/shm`), and copies of the overlays.
    ///
    /// # Errors
    /// The step that failed in it.
    pub(crate) fn await_root(&self) -> Result<ReadyMsg, CageError> {
        match &self.line {
            Some(line) => line.await_ready(),
            None => Err(CageError::new(CageStep::Handover, "the namespace has ended")),
        }
    }

    /// By which it is asked for mounts while the command runs, if it may make any.
    ///
    /// # Errors
    /// `Step::Handover`.
    pub(crate) fn seals(&self) -> Result<Option<ReadOnlyMounter>, CageError> {
        let line = self.line.as_ref().filter(|_| self.seals);
        Ok(line.map(SetupChannel::try_clone).transpose()?.map(ReadOnlyMounter::new))
    }

    /// Its number, as the runner sees it.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets the namespace end; the kernel then kills all in it. A stopped first process runs on for
    /// that.
    pub(crate) fn shut_down(&mut self) {
        if let Some(line) = self.line.take() {
            line.shut_down();
        }
    }
}

impl Drop for Pid1 {
    fn drop(&mut self) {
        self.shut_down();
        // ECHILD where the tree has reaped it. Not for ever: a process stuck in a driver keeps
        // the namespace, and the call must end all the same.
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) == Ok(WaitStatus::StillAlive)
            && Instant::now() < deadline
        {
            sleep(Duration::from_micros(200));
        }
    }
}

/// The process itself.
fn run(
    root: (&MountPlan, Option<&OwnedFd>),
    processes: u64,
    nothing: OwnedFd,
    line: &SetupChannel,
) -> i32 {
    match set_up(root, processes, nothing, line) {
        Ok(rooms) => {
            reap_until_closed(line, &rooms);
            0
        }
        Err(error) => {
            // Where the runner is gone there is nobody to tell.
            let _ = line.send_error(&error);
            1
        }
    }
}

fn set_up(
    (plan, mounted): (&MountPlan, Option<&OwnedFd>),
    processes: u64,
    nothing: OwnedFd,
    line: &SetupChannel,
) -> Result<Vec<StagingDir>, CageError> {
    let handover = |error: Errno| CageError::os(CageStep::Handover, "standard streams", error);
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(handover)?;
    setsid().map_err(handover)?;
    sys::default_signals();
    for stream in 0..3 {
        sys::put_at(nothing.as_fd(), stream).map_err(handover)?;
    }
    drop(nothing);
    let BuiltRoot { mut losses, plain, mounted, staging_dirs: rooms } = plan.build(mounted)?;
    if let Err(loss) = limit_processes(processes) {
        losses.push(loss.to_owned());
    }
    let fresh = plan.fresh_mounts();
    let opened = OPENED
        .iter()
        .chain(fresh.iter().map(|(path, _)| path))
        .map(|path| {
            File::open(path)
                .map(OwnedFd::from)
                .map_err(|error| CageError::os(CageStep::Root, path, error))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let descriptors: Vec<_> = opened.iter().chain(&mounted).map(AsFd::as_fd).collect();
    line.send_root_ready(&descriptors, &losses, &plain)?;
    drop((opened, mounted));
    // The death signal above is lost once the runner has a signal scope: a first process that was
    // stopped would outlive it.
    sys::continue_at_event(line.as_fd()).map_err(handover)?;
    let kept: Vec<_> = rooms.iter().map(|room| room.place.as_fd()).chain([line.as_fd()]).collect();
    sys::close_all_but(&kept).map_err(handover)?;
    match plan.has_sealed() {
        true => privileges::keep_mounting()?,
        false => privileges::drop_all()?,
    }
    Ok(rooms)
}

/// Bounds the number of processes in this namespace, which holds for root too.
fn limit_processes(processes: u64) -> Result<(), &'static str> {
    if processes == 0 {
        return Ok(());
    }
    // Before 6.14 this file is the whole host's. A release of doubt is left.
    if !newer_than(6, 14) {
        return Err(NO_PROCESS_LIMIT);
    }
    let most = (processes + RESERVED_PIDS).to_string();
    std::fs::write("/proc/sys/kernel/pid_max", most).map_err(|_| NO_PROCESS_LIMIT)
}

/// Whether the kernel's release is above `major.minor`.
fn newer_than(major: u32, minor: u32) -> bool {
    let Ok(name) = uname() else { return false };
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(['.', '-']).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(one)), Some(Ok(two))) => (one, two) > (major, minor),
        _ => false,
    }
}

/// Reaps what was orphaned, so that its usage counts and its number is free, and makes files read-only,
/// until the line ends.
fn reap_until_closed(line: &SetupChannel, rooms: &[StagingDir]) {
    // SIGCHLD is ignored by default; with a handler it interrupts the wait below.
    if sys::handle(Signal::SIGCHLD, SigHandler::Handler(on_sigchld)).is_err() {
        return;
    }
    let mut held = SigSet::empty();
    held.add(Signal::SIGCHLD);
    if held.thread_block().is_err() {
        return;
    }
    loop {
        while matches!(
            waitpid(None, Some(WaitPidFlag::WNOHANG)),
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..))
        ) {}
        let mut end = [PollFd::new(line.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut end, None, Some(SigSet::empty())) {
            Err(Errno::EINTR) => {}
            Ok(_) => {
                if !read_only_mounts::handle_request(line, rooms) {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

extern "C" fn on_sigchld(_: i32) {}
