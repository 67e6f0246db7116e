//! Runs one attack in a cage, by the same functions as a real call, and once without a cage.

use super::attacks;
use crate::cage::Cage;
use crate::error::{CageError, CageStep};
use crate::network_namespace::Inherited;
use crate::running::CommandExit;
use crate::spawn::exec_child::Program;
use crate::spawn::setup_channel::SetupChannel;
use crate::sys;
use crate::usage::limit_exceeded::LimitExceeded;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::getpid;
use protocol::confinement::{Confinement, Enforced, Tier};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time limit of an attack; none needs a tenth of it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of the check for the command's first output.
const PAUSE: Duration = Duration::from_millis(10);

/// The runner's fate during the attack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RunnerFate {
    Lives,
    /// It is killed once the command has written to this file.
    Dies(PathBuf),
}

/// The result that the attack itself reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttackAnswer {
    Done,
    Refused,
    /// The attack reported no result.
    None,
}

impl AttackAnswer {
    const ALL: [Self; 3] = [Self::Done, Self::Refused, Self::None];

    fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::None => "none",
        }
    }

    /// The kernel refuses some attacks by a signal: the 32-bit interface, a file that grows too
    /// large.
    fn of(exit: CommandExit) -> Self {
        match exit {
            CommandExit::Code(attacks::DONE) => Self::Done,
            CommandExit::Code(attacks::REFUSED)
            | CommandExit::Signal(libc::SIGSYS | libc::SIGXFSZ) => Self::Refused,
            CommandExit::Code(_) | CommandExit::Signal(_) => Self::None,
        }
    }
}

/// Everything that the runner of one attack reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunReport {
    pub tier: Tier,
    pub abi: u32,
    /// True if refused calls reach the record.
    pub observable: bool,
    /// The result that the attack itself reports.
    pub answer: AttackAnswer,
    pub refusals: usize,
    pub tampered: usize,
    pub exceeded: bool,
    pub survivors: u32,
}

impl RunReport {
    fn words(&self) -> [String; 8] {
        let tier = match self.tier {
            Tier::A => "A",
            Tier::B => "B",
            Tier::C => "C",
        };
        [
            tier.to_owned(),
            self.abi.to_string(),
            self.observable.to_string(),
            self.answer.name().to_owned(),
            self.refusals.to_string(),
            self.tampered.to_string(),
            self.exceeded.to_string(),
            self.survivors.to_string(),
        ]
    }

    fn parse(words: &[String]) -> Option<Self> {
        let [tier, abi, observable, answer, refusals, tampered, exceeded, survivors] = words else {
            return None;
        };
        Some(Self {
            tier: match tier.as_str() {
                "A" => Tier::A,
                "B" => Tier::B,
                _ => return None,
            },
            abi: abi.parse().ok()?,
            observable: observable.parse().ok()?,
            answer: AttackAnswer::ALL.into_iter().find(|one| one.name() == answer)?,
            refusals: refusals.parse().ok()?,
            tampered: tampered.parse().ok()?,
            exceeded: exceeded.parse().ok()?,
            survivors: survivors.parse().ok()?,
        })
    }
}

/// Runs `program` in a cage, in a runner of its own. `None` if the runner ended without a report.
///
/// # Errors
/// The step at which the cage could not be made.
pub(super) fn run_caged(
    wanted: &Confinement,
    program: Program,
    runner: &RunnerFate,
) -> Result<Option<RunReport>, CageError> {
    let (line, its_line) = SetupChannel::pair()?;
    let child = sys::fork(move || {
        let said = match run_in_cage(wanted, program, runner, &its_line) {
            Ok(report) => its_line.send_ready(&[], &report.words()),
            Err(error) => its_line.send_error(&error),
        };
        i32::from(said.is_err())
    })
    .map_err(|error| CageError::os(CageStep::Fork, "a runner", error))?;
    let report = line.receive_ready();
    // The report counts, not the exit code.
    let _ = waitpid(child, None);
    Ok(report?.and_then(|ready| RunReport::parse(&ready.losses)))
}

fn run_in_cage(
    wanted: &Confinement,
    program: Program,
    runner: &RunnerFate,
    line: &SetupChannel,
) -> Result<RunReport, CageError> {
    // A descriptor that a careless starter left open.
    let left_open = sys::open_inheritable(Path::new("/dev/null"));
    let (cage, enforced) = Cage::prepare(wanted, Inherited::default())?;
    let Enforced { tier, landlock_abi: abi, refusals_observable: observable, .. } = enforced;
    let mut caged = cage.spawn(program)?;
    drop(left_open);
    let begun = Instant::now();
    let mut exceeded = false;
    if let RunnerFate::Dies(file) = runner {
        while file_length(file) == 0 && begun.elapsed() < TIMEOUT {
            sleep(PAUSE);
        }
        // Reports the tier now, since this process dies before it could report more.
        let (answer, [refusals, tampered]) = (AttackAnswer::None, [0, 0]);
        let report =
            RunReport { tier, abi, observable, answer, refusals, tampered, exceeded, survivors: 0 };
        let _ = line.send_ready(&[], &report.words());
        let _ = kill(getpid(), Signal::SIGKILL);
    }
    loop {
        let left = TIMEOUT.saturating_sub(begun.elapsed());
        if left.is_zero() {
            caged.kill();
            break;
        }
        let look = caged.next_check().map(|next| next.saturating_duration_since(Instant::now()));
        let wait = look.map_or(left, |look| look.min(left)) + Duration::from_millis(1);
        let mut end = [PollFd::new(caged.exit_fd(), PollFlags::POLLIN)];
        let ended = poll(&mut end, PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX));
        if ended.is_ok_and(|ready| ready > 0) {
            break;
        }
        if let Some(LimitExceeded { .. }) = caged.exceeded() {
            exceeded = true;
            caged.kill_now();
            break;
        }
    }
    let ending = caged.finish()?;
    Ok(RunReport {
        tier,
        abi,
        observable,
        answer: AttackAnswer::of(ending.exit),
        refusals: ending.refusals.len(),
        tampered: ending.tampered.len(),
        exceeded,
        survivors: ending.survivors,
    })
}

/// Length of a file in bytes; 0 if it does not exist.
pub(super) fn file_length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

/// True if the same attack succeeds without a cage.
pub(super) fn run_uncaged(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let child = sys::fork(|| {
        // Its output belongs in no report.
        if sys::silence().is_err() {
            return attacks::UNKNOWN;
        }
        attacks::perform(&words)
    });
    child.is_ok_and(|child| {
        matches!(waitpid(child, None), Ok(WaitStatus::Exited(_, code)) if code == attacks::DONE)
    })
}
