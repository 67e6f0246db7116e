//! Self test of the sandbox: twenty attacks that a cage on this host must prevent. Each attack runs in a
//! real cage and, as the control, without one. Used by `agentd doctor --attempts` and by the tests.
//!
//! Rules that hold by agentd's own work on any host (limits, leaked variables and descriptors, the
//! record) have tests only.

mod attacks;
mod fixture;
mod raw;
mod run;

use crate::error::{CageError, CageStep};
use crate::guarantees;
use crate::landlock::ruleset;
use crate::spawn::exec_child::{Program, ProgramInput};
use fixture::Fixture;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use protocol::confinement::{Confinement, FilePath, Network, Tier};
use run::{AttackAnswer, RunReport};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The outcome of an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttackOutcome {
    /// The cage prevented it.
    Prevented,
    /// It succeeded, and agentd undid the change after the call.
    Undone,
    /// It succeeded.
    NotPrevented,
    /// It could not be tested on this host.
    NotTested,
}

/// The result of one attack in one tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttackResult {
    /// The tier of the cage.
    pub tier: Tier,
    /// Number of the rule in the design's table.
    pub row: u8,
    /// The action that the rule forbids.
    pub name: &'static str,
    /// The outcome that this tier promises.
    pub claimed: AttackOutcome,
    /// The outcome that the test found.
    pub found: AttackOutcome,
    /// Why the attack could not be tested; empty if it was.
    pub why: String,
}

impl AttackResult {
    /// True if the outcome is the promised one, or if the attack could not be tested.
    #[must_use]
    pub fn matches_claim(&self) -> bool {
        self.found == AttackOutcome::NotTested || self.claimed == self.found
    }
}

/// The facts that the promise of a rule depends on.
#[derive(Debug, Clone, Copy)]
struct ClaimContext {
    tier: Tier,
    abi: u32,
}

impl ClaimContext {
    /// `Prevented` if signals cannot leave the cage: by the Landlock signal scope or by a PID
    /// namespace.
    fn if_signals_confined(self) -> AttackOutcome {
        if guarantees::signals_are_confined(self.tier, self.abi) {
            AttackOutcome::Prevented
        } else {
            AttackOutcome::NotPrevented
        }
    }

    fn in_tier_a(self, held: AttackOutcome, otherwise: AttackOutcome) -> AttackOutcome {
        match self.tier {
            Tier::A => held,
            Tier::B | Tier::C => otherwise,
        }
    }
}

/// The criterion by which the self test judges an attack.
#[derive(Debug, Clone)]
enum AttackCheck {
    /// The cage must have refused the attack itself.
    Refused,
    /// This file must be unchanged after the call. agentd may have restored it.
    FileUnchanged(PathBuf),
    /// This file must be unchanged after the call, even if a copy of it was changed.
    NeverChanged(PathBuf),
    /// This path must not exist.
    Absent(PathBuf),
    /// Leftover processes must have stopped writing to this file.
    WritesStopped(PathBuf),
    /// No datagram must have arrived, even if the attack reports success.
    NoDatagram,
}

/// One attack with everything needed to run and judge it.
struct Attack {
    row: u8,
    name: &'static str,
    claim: fn(ClaimContext) -> AttackOutcome,
    act: Vec<String>,
    proof: AttackCheck,
    withheld: Option<PathBuf>,
    network: Network,
}

/// Runs every attack in these tiers. `program` is started in the cage with `words` and the attack's
/// arguments; it must call [`run_attack`]. Tests pass an `alter` that removes a rule from each
/// cage.
///
/// It forks and takes some seconds: call it before this process has threads.
///
/// # Errors
/// The temporary directory cannot hold the fixture.
pub fn self_test(
    program: &Path,
    words: &[&str],
    tiers: &[Tier],
    alter: fn(&mut Confinement),
) -> Result<Vec<AttackResult>, CageError> {
    let mut tried = Vec::new();
    for tier in tiers {
        let mut number = 0;
        loop {
            // A new fixture for each attack, so that no attack finds files of another one.
            let fixture = Fixture::new(program)?;
            let bystander = fixture.bystander()?;
            let attack = rows(&fixture, bystander.as_raw()).into_iter().nth(number);
            let attempt = attack.map(|attack| run_one(&fixture, *tier, &attack, words, alter));
            let _ = kill(bystander, Signal::SIGKILL);
            let _ = waitpid(bystander, None);
            match attempt {
                Some(attempt) => tried.push(attempt),
                None => break,
            }
            number += 1;
        }
    }
    Ok(tried)
}

/// Runs the attack that the arguments name. Returns the exit code for the process: 0 if the attack
/// succeeded.
#[must_use]
pub fn run_attack(words: &[&str]) -> i32 {
    attacks::perform(words)
}

/// All attacks, in the order of the design's table.
fn rows(fixture: &Fixture, bystander: i32) -> Vec<Attack> {
    let held = |_: ClaimContext| AttackOutcome::Prevented;
    let text = |path: PathBuf| path.display().to_string();
    let attack =
        |row, name, claim: fn(ClaimContext) -> AttackOutcome, act: &[&str], proof| Attack {
            row,
            name,
            claim,
            act: act.iter().map(|word| (*word).to_owned()).collect(),
            proof,
            withheld: None,
            network: Network::Off,
        };
    let (outside, settings) = (text(fixture.outside()), text(fixture.settings()));
    let (new, ticks) = (fixture.inside(".envrc"), fixture.inside("ticks"));
    let at_home = fixture.at_home(fixture::OF_HOME);
    vec![
        attack(
            1,
            "writing outside",
            held,
            &["write", &outside],
            AttackCheck::FileUnchanged(fixture.outside()),
        ),
        attack(
            1,
            "emptying a file outside",
            held,
            &["empty", &outside],
            AttackCheck::FileUnchanged(fixture.outside()),
        ),
        attack(
            2,
            "changing the mode of a file outside",
            |context| context.in_tier_a(AttackOutcome::Prevented, AttackOutcome::NotPrevented),
            &["chmod", &outside],
            AttackCheck::FileUnchanged(fixture.outside()),
        ),
        attack(3, "reading outside", held, &["read", &outside], AttackCheck::Refused),
        attack(
            4,
            "changing a protected name",
            |context| context.in_tier_a(AttackOutcome::Prevented, AttackOutcome::Undone),
            &["write", &settings],
            AttackCheck::FileUnchanged(fixture.settings()),
        ),
        attack(
            5,
            "making a protected name",
            |_| AttackOutcome::Undone,
            &["write", &text(new.clone())],
            AttackCheck::Absent(new),
        ),
        attack(6, "reaching the network", held, &["inet", &fixture.inet()], AttackCheck::Refused),
        attack(
            6,
            "querying a name server",
            held,
            &["ask", &fixture.datagrams()],
            AttackCheck::NoDatagram,
        ),
        Attack {
            network: Network::Listed,
            ..attack(
                7,
                "going around an allow-list of hosts",
                held,
                &["inet", &fixture.inet()],
                AttackCheck::Refused,
            )
        },
        attack(
            8,
            "reaching a socket outside",
            held,
            &["unix", &text(fixture.socket())],
            AttackCheck::Refused,
        ),
        attack(
            8,
            "reaching an abstract socket",
            held,
            &["abstract", fixture.abstract_name()],
            AttackCheck::Refused,
        ),
        Attack {
            withheld: fixture.token().parent().map(Path::to_path_buf),
            ..attack(
                9,
                "reading the daemon's own directory",
                held,
                &["read", &text(fixture.token())],
                AttackCheck::Refused,
            )
        },
        attack(10, "calls that no project needs", held, &["surface"], AttackCheck::Refused),
        attack(11, "the 32-bit system call interface", held, &["foreign"], AttackCheck::Refused),
        attack(12, "typing into a terminal", held, &["inject"], AttackCheck::Refused),
        attack(
            13,
            "acting on a process outside",
            ClaimContext::if_signals_confined,
            &["touch", &bystander.to_string()],
            AttackCheck::Refused,
        ),
        attack(14, "having privileges or gaining them", held, &["powers"], AttackCheck::Refused),
        attack(
            17,
            "outliving the call",
            held,
            &["linger", &text(ticks.clone())],
            AttackCheck::WritesStopped(ticks),
        ),
        attack(
            20,
            "changing the user's home",
            held,
            &["spoil", &text(at_home.clone())],
            AttackCheck::NeverChanged(at_home),
        ),
        attack(
            22,
            "reading a key next to a tool",
            held,
            &["read", &text(fixture.at_home(fixture::KEY))],
            AttackCheck::Refused,
        ),
    ]
}

/// Runs one attack in the cage and then its control without one.
fn run_one(
    fixture: &Fixture,
    tier: Tier,
    attack: &Attack,
    words: &[&str],
    alter: fn(&mut Confinement),
) -> AttackResult {
    let mut wanted = fixture.confinement(tier);
    wanted.network = attack.network;
    wanted.withheld.extend(attack.withheld.iter().map(FilePath::from));
    alter(&mut wanted);
    let program = Program {
        argv: std::iter::once(fixture.program().into_os_string())
            .chain(words.iter().map(Into::into))
            .chain(attack.act.iter().map(Into::into))
            .collect(),
        env: Vec::new(),
        cwd: wanted.project.to_path(),
        input: ProgramInput::Nothing,
    };
    let report = run::run_caged(&wanted, program);
    let context = match &report {
        Ok(Some(report)) => ClaimContext { tier, abi: report.abi },
        Ok(None) | Err(_) => ClaimContext { tier, abi: ruleset::abi().unwrap_or(0) },
    };
    let (mut found, mut why) = judge(fixture, attack, tier, report);
    // After the attack, since the control changes the files that the check inspects.
    let control = || {
        let done = run::run_uncaged(&attack.act);
        if matches!(attack.proof, AttackCheck::NoDatagram) {
            done && fixture.got_datagram()
        } else {
            done
        }
    };
    if found == AttackOutcome::Prevented && !control() {
        found = AttackOutcome::NotTested;
        "it does not succeed without a cage either".clone_into(&mut why);
    }
    let claimed = (attack.claim)(context);
    AttackResult { tier, row: attack.row, name: attack.name, claimed, found, why }
}

/// Judges the outcome; the text says why an attack could not be tested.
fn judge(
    fixture: &Fixture,
    attack: &Attack,
    tier: Tier,
    report: Result<Option<RunReport>, CageError>,
) -> (AttackOutcome, String) {
    let held =
        |holds: bool| if holds { AttackOutcome::Prevented } else { AttackOutcome::NotPrevented };
    let report = match report {
        Ok(report) => report,
        // A grant that violates the rules makes the cage fail, so nothing runs.
        Err(error) if error.step == CageStep::Grants && attack.withheld.is_some() => {
            return (AttackOutcome::Prevented, String::new());
        }
        // Without a network namespace there is no allow-list, so the cage fails and nothing runs.
        Err(error) if error.step == CageStep::Namespaces && attack.network == Network::Listed => {
            return (AttackOutcome::Prevented, String::new());
        }
        Err(error) => return (AttackOutcome::NotTested, error.to_string()),
    };
    let found = match (&attack.proof, report) {
        (_, Some(report)) if report.tier != tier => {
            return (AttackOutcome::NotTested, "the cage was made in another tier".to_owned());
        }
        (AttackCheck::WritesStopped(path), _) if run::file_length(path) == 0 => {
            return (AttackOutcome::NotTested, "the command never began".to_owned());
        }
        (AttackCheck::WritesStopped(path), report) => {
            held(stops_growing(path) && report.is_none_or(|report| report.survivors == 0))
        }
        (_, None) => {
            return (AttackOutcome::NotTested, "its runner ended without a report".to_owned());
        }
        (_, Some(RunReport { answer: AttackAnswer::None, .. })) => {
            return (AttackOutcome::NotTested, "the attack reported no result".to_owned());
        }
        (AttackCheck::Refused, Some(report)) => held(report.answer == AttackAnswer::Refused),
        (AttackCheck::FileUnchanged(path), Some(report)) => {
            restored_or_not(&report, Fixture::is_unchanged(path))
        }
        (AttackCheck::NeverChanged(path), Some(_)) => held(Fixture::is_unchanged(path)),
        (AttackCheck::Absent(path), Some(report)) => restored_or_not(&report, !path.exists()),
        (AttackCheck::NoDatagram, Some(_)) => held(!fixture.got_datagram()),
    };
    (found, String::new())
}

/// Tells prevented, restored and not prevented apart.
fn restored_or_not(report: &RunReport, whole: bool) -> AttackOutcome {
    match (whole, report.answer) {
        (true, AttackAnswer::Refused) => AttackOutcome::Prevented,
        (true, AttackAnswer::Done) if report.tampered > 0 => AttackOutcome::Undone,
        (true, AttackAnswer::Done | AttackAnswer::None) | (false, _) => AttackOutcome::NotPrevented,
    }
}

/// How long the end of a process tree may take. The kernel kills a namespace process by process,
/// which is slow on a slow machine.
const ENDING: Duration = Duration::from_millis(1500);
/// A file that has not grown for this time has no writer left.
const QUIET: Duration = Duration::from_millis(150);

/// Waits until the file stops growing; false if it still grows after [`ENDING`].
fn stops_growing(path: &Path) -> bool {
    let begun = Instant::now();
    let (mut seen, mut since) = (run::file_length(path), begun);
    while begun.elapsed() < ENDING {
        sleep(Duration::from_millis(10));
        let now = run::file_length(path);
        if now != seen {
            (seen, since) = (now, Instant::now());
        } else if since.elapsed() >= QUIET {
            return true;
        }
    }
    false
}
