//! PID 1 of the PID namespace: builds the root, reaps orphans, and exits when its channel closes.
//! The kernel then kills the whole namespace.

use crate::error::{CageError, CageStep};
use crate::mounts::{BuiltRoot, MountPlan, StagingDir};
use crate::privileges;
use crate::spawn::read_only_mounts::{self, ReadOnlyMounter};
use crate::spawn::setup_channel::{ReadyMsg, SetupChannel};
use crate::spawn::stdio::open_dev_null;
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

/// Sent in place of a lost protection if the kernel does not limit the number of processes.
pub(crate) const NO_PROCESS_LIMIT: &str = "unbounded";

/// How long the namespace of an abandoned cage may take to end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Files that the runner is sent, before the new mounts in the root.
const OPENED: [&str; 2] = ["/proc/self/ns/pid", "/proc/self/ns/mnt"];

/// PIDs that the kernel reserves when numbers wrap around.
const RESERVED_PIDS: u64 = 300;

/// Handle of the runner on PID 1. Dropping it ends the namespace.
#[derive(Debug)]
pub(crate) struct Pid1 {
    pid: Pid,
    channel: Option<SetupChannel>,
    /// True if it makes files read-only on request.
    makes_mounts: bool,
}

impl Pid1 {
    /// Starts PID 1 in a new PID namespace and a new mount namespace. The runner locks itself
    /// afterwards.
    ///
    /// # Errors
    /// `CageStep::Namespaces`.
    pub(crate) fn start(
        plan: MountPlan,
        mounted: Option<OwnedFd>,
        processes: u64,
    ) -> Result<Self, CageError> {
        let makes_mounts = plan.has_sealed();
        let nothing = open_dev_null()?;
        let (channel, its_channel) = SetupChannel::pair()?;
        let apart = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
        let pid = sys::fork_into(apart, move || {
            run((&plan, mounted.as_ref()), processes, nothing, &its_channel)
        })
        .map_err(|error| CageError::os(CageStep::Namespaces, "PID 1 of the namespace", error))?;
        Ok(Self { pid, channel: Some(channel), makes_mounts })
    }

    /// Waits until the root is complete. The descriptors are the two namespaces, the root, the new
    /// mounts (`/proc`, `/dev/pts`, `/dev/shm`), and copies of the overlays.
    ///
    /// # Errors
    /// The step that failed in PID 1.
    pub(crate) fn await_root(&self) -> Result<ReadyMsg, CageError> {
        match &self.channel {
            Some(channel) => channel.await_ready(),
            None => Err(CageError::new(CageStep::Handover, "the namespace has ended")),
        }
    }

    /// A handle to request read-only mounts while the command runs, if PID 1 may make any.
    ///
    /// # Errors
    /// `CageStep::Handover`.
    pub(crate) fn mounter(&self) -> Result<Option<ReadOnlyMounter>, CageError> {
        let channel = self.channel.as_ref().filter(|_| self.makes_mounts);
        Ok(channel.map(SetupChannel::try_clone).transpose()?.map(ReadOnlyMounter::new))
    }

    /// Its process ID as the runner sees it.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Ends PID 1, whereupon the kernel kills the whole namespace. This works for a stopped PID 1
    /// too: the event continues it.
    pub(crate) fn shut_down(&mut self) {
        if let Some(channel) = self.channel.take() {
            channel.shut_down();
        }
    }
}

impl Drop for Pid1 {
    fn drop(&mut self) {
        self.shut_down();
        // ECHILD: the process tree has reaped it. The wait has a limit: a process stuck in a driver
        // keeps the namespace alive, and the call must end all the same.
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) == Ok(WaitStatus::StillAlive)
            && Instant::now() < deadline
        {
            sleep(Duration::from_micros(200));
        }
    }
}

/// The main function of PID 1.
fn run(
    root: (&MountPlan, Option<&OwnedFd>),
    processes: u64,
    nothing: OwnedFd,
    channel: &SetupChannel,
) -> i32 {
    match set_up(root, processes, nothing, channel) {
        Ok(staging_dirs) => {
            reap_until_closed(channel, &staging_dirs);
            0
        }
        Err(error) => {
            // The send fails if the runner is gone; then no process needs the error.
            let _ = channel.send_error(&error);
            1
        }
    }
}

fn set_up(
    (plan, mounted): (&MountPlan, Option<&OwnedFd>),
    processes: u64,
    nothing: OwnedFd,
    channel: &SetupChannel,
) -> Result<Vec<StagingDir>, CageError> {
    let handover = |error: Errno| CageError::os(CageStep::Handover, "standard streams", error);
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(handover)?;
    setsid().map_err(handover)?;
    sys::default_signals();
    for stream in 0..3 {
        sys::put_at(nothing.as_fd(), stream).map_err(handover)?;
    }
    drop(nothing);
    let BuiltRoot { mut losses, plain, mounted, staging_dirs } = plan.build(mounted)?;
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
    channel.send_root_ready(&descriptors, &losses, &plain)?;
    drop((opened, mounted));
    // The death signal set above no longer arrives once the runner has a signal scope, and a
    // stopped PID 1 would outlive the runner.
    sys::continue_at_event(channel.as_fd()).map_err(handover)?;
    let keep: Vec<_> = staging_dirs
        .iter()
        .map(|staging_dir| staging_dir.place.as_fd())
        .chain([channel.as_fd()])
        .collect();
    sys::close_all_but(&keep).map_err(handover)?;
    match plan.has_sealed() {
        true => privileges::keep_mounting()?,
        false => privileges::drop_all()?,
    }
    Ok(staging_dirs)
}

/// Limits the number of processes in this namespace. The limit binds root too.
fn limit_processes(processes: u64) -> Result<(), &'static str> {
    if processes == 0 {
        return Ok(());
    }
    // Before Linux 6.14 this file belongs to the whole host. 6.14 itself is excluded as a margin.
    if !newer_than(6, 14) {
        return Err(NO_PROCESS_LIMIT);
    }
    let most = (processes + RESERVED_PIDS).to_string();
    std::fs::write("/proc/sys/kernel/pid_max", most).map_err(|_| NO_PROCESS_LIMIT)
}

/// True if the kernel release is above `major.minor`.
fn newer_than(major: u32, minor: u32) -> bool {
    let Ok(name) = uname() else { return false };
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(['.', '-']).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(one)), Some(Ok(two))) => (one, two) > (major, minor),
        _ => false,
    }
}

/// Reaps orphans, so that their usage counts and their PIDs are free, and makes files read-only on
/// request, until the channel closes.
fn reap_until_closed(channel: &SetupChannel, staging_dirs: &[StagingDir]) {
    // SIGCHLD is ignored by default; with a handler it interrupts the wait below.
    if sys::handle(Signal::SIGCHLD, SigHandler::Handler(on_sigchld)).is_err() {
        return;
    }
    let mut sigchld = SigSet::empty();
    sigchld.add(Signal::SIGCHLD);
    if sigchld.thread_block().is_err() {
        return;
    }
    loop {
        while matches!(
            waitpid(None, Some(WaitPidFlag::WNOHANG)),
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..))
        ) {}
        let mut end = [PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut end, None, Some(SigSet::empty())) {
            Err(Errno::EINTR) => {}
            Ok(_) => {
                if !read_only_mounts::handle_request(channel, staging_dirs) {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

extern "C" fn on_sigchld(_: i32) {}
