//! Runs one attack in a cage, by the same functions as a real call, and once without a cage.

use super::attacks;
use crate::cage::Cage;
use crate::error::{CageError, CageStep};
use crate::network_namespace::Inherited;
use crate::running::CommandExit;
use crate::spawn::exec_child::Program;
use crate::spawn::setup_channel::SetupChannel;
use crate::sys;
use nix::sys::wait::{WaitStatus, waitpid};
use protocol::confinement::{Confinement, Enforced, Tier};
use std::path::Path;
use std::time::Duration;

/// Time limit of an attack; none needs a tenth of it.
const TIMEOUT: Duration = Duration::from_secs(10);

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

    /// The kernel refuses the 32-bit interface by a signal.
    fn of(exit: CommandExit) -> Self {
        match exit {
            CommandExit::Code(attacks::DONE) => Self::Done,
            CommandExit::Code(attacks::REFUSED) | CommandExit::Signal(libc::SIGSYS) => {
                Self::Refused
            }
            CommandExit::Code(_) | CommandExit::Signal(_) => Self::None,
        }
    }
}

/// Everything that the runner of one attack reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunReport {
    pub tier: Tier,
    pub abi: u32,
    /// The result that the attack itself reports.
    pub answer: AttackAnswer,
    pub tampered: usize,
    pub survivors: u32,
}

impl RunReport {
    fn words(&self) -> [String; 5] {
        let tier = match self.tier {
            Tier::A => "A",
            Tier::B => "B",
            Tier::C => "C",
        };
        [
            tier.to_owned(),
            self.abi.to_string(),
            self.answer.name().to_owned(),
            self.tampered.to_string(),
            self.survivors.to_string(),
        ]
    }

    fn parse(words: &[String]) -> Option<Self> {
        let [tier, abi, answer, tampered, survivors] = words else { return None };
        Some(Self {
            tier: match tier.as_str() {
                "A" => Tier::A,
                "B" => Tier::B,
                _ => return None,
            },
            abi: abi.parse().ok()?,
            answer: AttackAnswer::ALL.into_iter().find(|one| one.name() == answer)?,
            tampered: tampered.parse().ok()?,
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
) -> Result<Option<RunReport>, CageError> {
    let (line, its_line) = SetupChannel::pair()?;
    let child = sys::fork(move || {
        let said = match run_in_cage(wanted, program) {
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

fn run_in_cage(wanted: &Confinement, program: Program) -> Result<RunReport, CageError> {
    let (cage, enforced) = Cage::prepare(wanted, Inherited::default())?;
    let Enforced { tier, landlock_abi: abi, .. } = enforced;
    let mut caged = cage.spawn(program)?;
    if !caged.ended_within(Some(TIMEOUT)) {
        caged.kill();
    }
    let ending = caged.finish()?;
    Ok(RunReport {
        tier,
        abi,
        answer: AttackAnswer::of(ending.exit),
        tampered: ending.tampered.len(),
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
