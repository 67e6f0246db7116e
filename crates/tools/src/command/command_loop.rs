//! A caged command from its start to the end of all its processes: its output drained, its time
//! watched, its tree ended.

use crate::cancel::Cancel;
use crate::command::capture::{self, HeadTail, SPILLED};
use crate::command::job_control::JobControl;
use crate::command::live_output::LiveOutput;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::ClockId;
use nix::unistd::gettid;
use protocol::tool::OutputStream;
use sandbox::{CageError, CommandOutcome, LimitExceeded, ProtectedReport, RunningCommand};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use tool_specs::longest::BACKGROUND_MS;

/// After the command's end, its background processes may hold the pipes open; they get this long to
/// finish their output.
const OUTPUT_GRACE: Duration = Duration::from_millis(250);
/// Background processes that do not hold the output get this long to end by themselves.
const LEFTOVER_GRACE: Duration = Duration::from_millis(250);
/// How often it is looked whether they have ended.
const LEFTOVER_POLL: Duration = Duration::from_millis(5);
/// After all processes were ended the pipes have an end; a process stuck in the kernel may still
/// hold one.
const LAST_OUTPUT: Duration = Duration::from_secs(1);
/// After that the project is inspected once more, and its disk may not respond. If the thread makes
/// no progress for this long, the process exits without a result, and the call counts as "may have
/// run". A large project alone does not cause this, or a command could provoke it.
const STALL_TIMEOUT: Duration = Duration::from_secs(15);
/// Interval between two checks for progress.
const STALL_CHECK: Duration = Duration::from_secs(3);
/// Protected files are put right while a command runs once it has run for this long, or goes on in the
/// background. Shorter ones are looked at in the end.
const GUARD_AFTER: Duration = Duration::from_secs(2);
/// A command that prints nothing for this long has its omitted bytes named.
const MARK_DELAY: Duration = Duration::from_millis(250);
/// As much as a pipe holds.
const BUFFER: usize = 64 * 1024;

/// Why the command is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandEnd {
    /// It ended.
    ByItself,
    /// Its time was over.
    TimedOut,
    /// The user or the supervisor cancelled it.
    Cancelled,
    /// As a whole it used more than it may.
    Exceeded(LimitExceeded),
}

/// Processes that a command left running when it ended by itself.
#[derive(Debug, Default)]
pub(crate) struct LeftoverProcesses {
    /// Their names, as far as they could be seen.
    pub names: Vec<String>,
    /// True if one of them held the command's output open.
    pub held_output: bool,
}

/// The result of running a command.
pub(crate) struct CommandRun {
    pub out: HeadTail,
    pub err: HeadTail,
    pub over: CommandEnd,
    /// The time limit that held at its end.
    pub limit: Duration,
    /// Background processes that were killed at its end.
    pub left_behind: LeftoverProcesses,
    pub took: Duration,
    pub ending: CommandOutcome,
}

impl CommandRun {
    /// What it wrote to standard error, if anything.
    pub(super) fn said(&self) -> Option<String> {
        let any = self.err.total() > 0;
        any.then(|| capture::join(self.err.clone(), HeadTail::default(), "").text)
    }
}

/// The longest time of a command, which may change while it runs.
pub(crate) struct TimeLimit {
    given: Duration,
    moved: Duration,
}

impl TimeLimit {
    /// Always this.
    pub fn of(time: Duration) -> Self {
        Self { given: time, moved: time }
    }

    /// This until the command is moved to the background, then as long as one may run there.
    pub fn until_moved(time: Duration) -> Self {
        Self { given: time, moved: Duration::from_millis(BACKGROUND_MS) }
    }

    /// As things are now.
    pub fn now(&self, job: &JobControl) -> Duration {
        if job.is_in_background() { self.moved } else { self.given }
    }
}

/// Runs a command to its end and keeps `kept` bytes of its output. Returns when none of its
/// processes is left.
pub(crate) fn run_to_end(
    mut caged: RunningCommand,
    (time, kept): (&TimeLimit, usize),
    (cancel, job, protected): (&Cancel, &JobControl, ProtectedReport),
    live: LiveOutput<'_>,
) -> Result<CommandRun, CageError> {
    let begin = Instant::now();
    let mut pipes = Pipes {
        out: caged.stdout(),
        err: caged.stderr(),
        kept_out: HeadTail::of(kept),
        kept_err: HeadTail::of(kept.min(SPILLED)),
        live,
        buffer: vec![0; BUFFER],
    };
    let deadline = || begin + time.now(job);
    let over = pipes.until_over(&mut caged, deadline, (cancel, job), (begin, protected));
    let limit = time.now(job);
    let mut left_behind = LeftoverProcesses::default();
    match over {
        CommandEnd::ByItself => {
            pipes.drain(Instant::now() + OUTPUT_GRACE);
            let names = leftover_processes(&caged);
            // Processes that have ended by now hold nothing open.
            pipes.drain_what_is_there();
            left_behind = LeftoverProcesses { names, held_output: pipes.open() };
            if pipes.open() {
                caged.kill();
            }
        }
        CommandEnd::TimedOut | CommandEnd::Cancelled => caged.kill(),
        CommandEnd::Exceeded(_) => caged.kill_now(),
    }
    pipes.drain(Instant::now() + LAST_OUTPUT);
    let took = begin.elapsed();
    let Pipes { kept_out: out, kept_err: err, live, .. } = pipes;
    // From here on: ending a tree takes its share of the processor, and its own bound.
    let seen = exit_if_stalled();
    let ending = caged.finish()?;
    drop(seen);
    // Last: it may wait for a slow screen, and by now nothing of the command is left.
    live.finish();
    Ok(CommandRun { out, err, over, limit, left_behind, took, ending })
}

/// The names of the command's background processes, except those that end within `LEFTOVER_GRACE`.
fn leftover_processes(caged: &RunningCommand) -> Vec<String> {
    let deadline = Instant::now() + LEFTOVER_GRACE;
    loop {
        let living = caged.live_processes();
        if living.is_empty() || Instant::now() > deadline {
            return living;
        }
        thread::sleep(LEFTOVER_POLL);
    }
}

/// Ends this process where this thread waits for a disk that does not answer, until the answer is dropped.
fn exit_if_stalled() -> Sender<()> {
    let (seen, waiting) = channel();
    let clock = thread_cpu_clock();
    // Without a thread for it the supervisor's own bound holds, which is longer.
    let _ = thread::Builder::new().spawn(move || {
        let mut last = (Instant::now(), clock.now());
        while waiting.recv_timeout(STALL_CHECK) == Err(RecvTimeoutError::Timeout) {
            let now = clock.now();
            if now != last.1 {
                last = (Instant::now(), now);
            } else if last.0.elapsed() >= STALL_TIMEOUT {
                std::process::exit(1);
            }
        }
    });
    seen
}

/// This thread's CPU time as a clock that other threads can read. The clock id follows the kernel's
/// encoding: `CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED` with the complemented thread id
/// (`include/linux/posix-timers_types.h`).
fn thread_cpu_clock() -> ClockId {
    ClockId::from_raw((!gettid().as_raw() << 3) | 6)
}

/// Both pipes of a command and their output.
struct Pipes<'a> {
    out: Option<File>,
    err: Option<File>,
    kept_out: HeadTail,
    kept_err: HeadTail,
    live: LiveOutput<'a>,
    buffer: Vec<u8>,
}

impl Pipes<'_> {
    fn open(&self) -> bool {
        self.out.is_some() || self.err.is_some()
    }

    /// Reads the pipes until the command itself is over, for any reason.
    fn until_over(
        &mut self,
        caged: &mut RunningCommand,
        deadline: impl Fn() -> Instant,
        (cancel, job): (&Cancel, &JobControl),
        (begin, protected): (Instant, ProtectedReport),
    ) -> CommandEnd {
        let mut protected = Some(protected);
        loop {
            let now = Instant::now();
            let left = deadline().saturating_duration_since(now);
            if left.is_zero() {
                return CommandEnd::TimedOut;
            }
            let orders = job.take_orders();
            let is_long = !orders.is_empty() || now >= begin + GUARD_AFTER;
            if let Some(report) = protected.take_if(|_| is_long) {
                caged.guard_while_running(report);
            }
            orders.into_iter().for_each(|order| caged.order(order));
            let unguarded = protected.is_some().then(|| begin + GUARD_AFTER - now);
            let left = unguarded.map_or(left, |time| left.min(time));
            let left = if self.live.owes_mark() { left.min(MARK_DELAY) } else { left };
            let look =
                caged.next_check().map(|next| next.saturating_duration_since(Instant::now()));
            let left = look.map_or(left, |look| left.min(look));
            let fds = [caged.exit_fd(), cancel.as_fd()].into_iter().chain(job.woken());
            let (ended, asked) = self.step(left, &fds.collect::<Vec<_>>());
            if ended {
                return caged.kernel_limit_hit().map_or(CommandEnd::ByItself, CommandEnd::Exceeded);
            }
            if asked {
                return CommandEnd::Cancelled;
            }
            if let Some(exceeded) = caged.exceeded() {
                return CommandEnd::Exceeded(exceeded);
            }
        }
    }

    /// Drains until both pipes have ended, or the deadline.
    fn drain(&mut self, deadline: Instant) {
        while self.open() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.step(left, &[]);
        }
    }

    /// Reads the current content of the pipes without waiting. It reads no more than a pipe holds,
    /// so that a process that keeps printing cannot delay it.
    fn drain_what_is_there(&mut self) {
        for _ in 0..2 {
            if self.open() {
                self.step(Duration::ZERO, &[]);
            }
        }
    }

    /// Waits, then reads once from each readable pipe. Returns whether the first and the second of
    /// `others` became readable.
    fn step(&mut self, time: Duration, others: &[BorrowedFd<'_>]) -> (bool, bool) {
        let pipes = [self.out.as_ref(), self.err.as_ref()];
        let pipes = pipes.into_iter().flatten().map(AsFd::as_fd);
        let mut fds: Vec<PollFd<'_>> = others
            .iter()
            .copied()
            .chain(pipes)
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        // Rounded up: a wait of zero milliseconds would spin to the deadline.
        let timeout =
            PollTimeout::try_from(time + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            // Nothing sensible is left to wait with; do not spin.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(false)).collect();
        drop(fds);
        if !ready.contains(&true) {
            self.live.show_marks();
        }
        let mut pipes_ready = ready[others.len()..].iter().copied();
        let out_ready = self.out.is_some() && pipes_ready.next() == Some(true);
        let err_ready = self.err.is_some() && pipes_ready.next() == Some(true);
        if out_ready {
            self.read(OutputStream::Out);
        }
        if err_ready {
            self.read(OutputStream::Err);
        }
        let other = |at: usize| at < others.len() && ready[at];
        (other(0), other(1))
    }

    /// One read that does not block: the pipe was readable and has no other reader.
    fn read(&mut self, stream: OutputStream) {
        let (pipe, heard) = match stream {
            OutputStream::Out => (&mut self.out, &mut self.kept_out),
            OutputStream::Err => (&mut self.err, &mut self.kept_err),
        };
        let Some(file) = pipe else { return };
        match file.read(&mut self.buffer) {
            Ok(0) => *pipe = None,
            Ok(n) => {
                heard.push(&self.buffer[..n]);
                self.live.print(stream, &self.buffer[..n]);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => *pipe = None,
        }
    }
}
