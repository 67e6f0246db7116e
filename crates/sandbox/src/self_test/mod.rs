//! Self test of the sandbox: for every rule of the policy an attack that the rule must prevent.
//! Each attack runs in a real cage and, as the control, without one. Used by `agentd doctor
//! --attempts` and by the tests.

mod attacks;
mod fixture;
mod raw;
mod run;

use crate::error::{CageError, CageStep};
use crate::guarantees;
use crate::landlock::ruleset;
use crate::spawn::exec_child::Program;
use fixture::Fixture;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use protocol::confinement::{Confinement, FilePath, Limits, Network, Tier};
use run::{AttackAnswer, RunReport, RunnerFate};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What became of an attack.
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
    observable: bool,
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

/// How the self test decides whether an attack succeeded.
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
    /// The call must have been killed for exceeding a limit.
    LimitHit,
    /// Leftover processes must have stopped writing to this file.
    WritesStopped(PathBuf),
    /// No datagram must have arrived, whatever the attack reports.
    NoDatagram,
    /// The record must contain refusals.
    Recorded,
}

/// One attack with everything needed to run and judge it.
struct Attack {
    row: u8,
    name: &'static str,
    claim: fn(ClaimContext) -> AttackOutcome,
    act: Vec<String>,
    proof: AttackCheck,
    limits: Limits,
    withheld: Option<PathBuf>,
    network: Network,
    runner: RunnerFate,
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
            let yard = Fixture::new(program)?;
            let bystander = yard.bystander()?;
            let trial = rows(&yard, bystander.as_raw()).into_iter().nth(number);
            let attempt = trial.map(|trial| run_one(&yard, *tier, &trial, words, alter));
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
fn rows(yard: &Fixture, bystander: i32) -> Vec<Attack> {
    let held = |_: ClaimContext| AttackOutcome::Prevented;
    let text = |path: PathBuf| path.display().to_string();
    let trial = |row, name, claim: fn(ClaimContext) -> AttackOutcome, act: &[&str], proof| Attack {
        row,
        name,
        claim,
        act: act.iter().map(|word| (*word).to_owned()).collect(),
        proof,
        limits: Limits::NONE,
        withheld: None,
        network: Network::Off,
        runner: RunnerFate::Lives,
    };
    let bounded = |name, limits: Limits, act: &[&str], proof| Attack {
        limits,
        ..trial(16, name, held, act, proof)
    };
    let spoiling = |row, name, path: PathBuf| {
        trial(row, name, held, &["spoil", &text(path.clone())], AttackCheck::NeverChanged(path))
    };
    let (outside, settings) = (text(yard.outside()), text(yard.settings()));
    let (new, big, ticks) = (yard.inside(".envrc"), yard.inside("big"), yard.inside("ticks"));
    let linger = ["linger", &text(ticks.clone())];
    vec![
        trial(
            1,
            "writing outside",
            held,
            &["write", &outside],
            AttackCheck::FileUnchanged(yard.outside()),
        ),
        trial(
            1,
            "emptying a file outside",
            held,
            &["empty", &outside],
            AttackCheck::FileUnchanged(yard.outside()),
        ),
        trial(
            2,
            "changing the mode of a file outside",
            |ground| ground.in_tier_a(AttackOutcome::Prevented, AttackOutcome::NotPrevented),
            &["chmod", &outside],
            AttackCheck::FileUnchanged(yard.outside()),
        ),
        trial(3, "reading outside", held, &["read", &outside], AttackCheck::Refused),
        trial(
            4,
            "changing a protected name",
            |ground| ground.in_tier_a(AttackOutcome::Prevented, AttackOutcome::Undone),
            &["write", &settings],
            AttackCheck::FileUnchanged(yard.settings()),
        ),
        trial(
            5,
            "making a protected name",
            |_| AttackOutcome::Undone,
            &["write", &text(new.clone())],
            AttackCheck::Absent(new),
        ),
        trial(6, "reaching the network", held, &["inet", &yard.inet()], AttackCheck::Refused),
        trial(
            6,
            "asking a name server",
            held,
            &["ask", &yard.datagrams()],
            AttackCheck::NoDatagram,
        ),
        Attack {
            network: Network::Listed,
            ..trial(
                7,
                "going around an allow-list of hosts",
                held,
                &["inet", &yard.inet()],
                AttackCheck::Refused,
            )
        },
        trial(
            8,
            "reaching a socket outside",
            held,
            &["unix", &text(yard.socket())],
            AttackCheck::Refused,
        ),
        trial(
            8,
            "reaching an abstract socket",
            held,
            &["abstract", yard.abstract_name()],
            AttackCheck::Refused,
        ),
        Attack {
            withheld: yard.token().parent().map(Path::to_path_buf),
            ..trial(
                9,
                "reading the daemon's own directory",
                held,
                &["read", &text(yard.token())],
                AttackCheck::Refused,
            )
        },
        trial(10, "calls that no project needs", held, &["surface"], AttackCheck::Refused),
        trial(11, "a foreign system call interface", held, &["foreign"], AttackCheck::Refused),
        trial(12, "typing into a terminal", held, &["inject"], AttackCheck::Refused),
        trial(
            13,
            "touching a process outside",
            ClaimContext::if_signals_confined,
            &["touch", &bystander.to_string()],
            AttackCheck::Refused,
        ),
        trial(14, "having privileges or gaining them", held, &["powers"], AttackCheck::Refused),
        trial(15, "variables and descriptors", held, &["inherited", "PATH"], AttackCheck::Refused),
        bounded(
            "memory above its bound",
            Limits { memory_bytes: 64 << 20, ..Limits::NONE },
            &["fill", "200"],
            AttackCheck::LimitHit,
        ),
        bounded(
            "processes above their bound",
            Limits { processes: 20, ..Limits::NONE },
            &["multiply", "40"],
            AttackCheck::LimitHit,
        ),
        bounded(
            "a file above its bound",
            Limits { file_bytes: 65_536, ..Limits::NONE },
            &["grow", &text(big), "1000000"],
            AttackCheck::Refused,
        ),
        trial(17, "outliving the call", held, &linger, AttackCheck::WritesStopped(ticks.clone())),
        trial(
            18,
            "being refused without a record",
            |ground| {
                if ground.observable {
                    AttackOutcome::Prevented
                } else {
                    AttackOutcome::NotPrevented
                }
            },
            &["surface"],
            AttackCheck::Recorded,
        ),
        Attack {
            runner: RunnerFate::Dies(ticks.clone()),
            ..trial(
                19,
                "outliving the runner",
                ClaimContext::if_signals_confined,
                &linger,
                AttackCheck::WritesStopped(ticks),
            )
        },
        spoiling(20, "changing the person's home", yard.at_home(fixture::OF_HOME)),
        spoiling(21, "changing a cache of the person", yard.at_home(fixture::CACHED)),
        trial(
            22,
            "reading a key beside a tool",
            held,
            &["read", &text(yard.at_home(fixture::KEY))],
            AttackCheck::Refused,
        ),
    ]
}

/// Runs one attack in the cage and then its control without one.
fn run_one(
    yard: &Fixture,
    tier: Tier,
    trial: &Attack,
    words: &[&str],
    alter: fn(&mut Confinement),
) -> AttackResult {
    let mut wanted = yard.confinement(tier);
    wanted.limits = trial.limits;
    wanted.network = trial.network;
    wanted.withheld.extend(trial.withheld.iter().map(FilePath::from));
    alter(&mut wanted);
    let program = Program {
        argv: std::iter::once(yard.program().into_os_string())
            .chain(words.iter().map(Into::into))
            .chain(trial.act.iter().map(Into::into))
            .collect(),
        env: Vec::new(),
        cwd: wanted.project.to_path(),
    };
    let told = run::run_caged(&wanted, program, &trial.runner);
    let ground = match &told {
        Ok(Some(told)) => ClaimContext { tier, abi: told.abi, observable: told.observable },
        Ok(None) | Err(_) => {
            ClaimContext { tier, abi: ruleset::abi().unwrap_or(0), observable: true }
        }
    };
    let (mut found, mut why) = judge(yard, trial, tier, told);
    // After the attack, since the control changes the files that the check inspects.
    let control = || {
        let done = run::run_uncaged(&trial.act);
        if matches!(trial.proof, AttackCheck::NoDatagram) {
            done && yard.got_datagram()
        } else {
            done
        }
    };
    if found == AttackOutcome::Prevented && !control() {
        found = AttackOutcome::NotTested;
        "it does not succeed without a cage either".clone_into(&mut why);
    }
    let claimed = (trial.claim)(ground);
    AttackResult { tier, row: trial.row, name: trial.name, claimed, found, why }
}

/// Judges the outcome; the text says why an attack could not be tested.
fn judge(
    yard: &Fixture,
    trial: &Attack,
    tier: Tier,
    told: Result<Option<RunReport>, CageError>,
) -> (AttackOutcome, String) {
    let held =
        |holds: bool| if holds { AttackOutcome::Prevented } else { AttackOutcome::NotPrevented };
    let told = match told {
        Ok(told) => told,
        // A grant that violates the rules makes the cage fail, so nothing runs.
        Err(error) if error.step == CageStep::Grants && trial.withheld.is_some() => {
            return (AttackOutcome::Prevented, String::new());
        }
        // Without a network namespace there is no allow-list, so the cage fails and nothing runs.
        Err(error) if error.step == CageStep::Namespaces && trial.network == Network::Listed => {
            return (AttackOutcome::Prevented, String::new());
        }
        Err(error) => return (AttackOutcome::NotTested, error.to_string()),
    };
    let found = match (&trial.proof, told) {
        (_, Some(told)) if told.tier != tier => {
            return (AttackOutcome::NotTested, "the cage was made in another tier".to_owned());
        }
        (AttackCheck::WritesStopped(path), _) if run::file_length(path) == 0 => {
            return (AttackOutcome::NotTested, "the command never began".to_owned());
        }
        (AttackCheck::WritesStopped(path), told) => {
            held(stops_growing(path) && told.is_none_or(|told| told.survivors == 0))
        }
        (_, None) => {
            return (AttackOutcome::NotTested, "its runner ended without a report".to_owned());
        }
        (AttackCheck::LimitHit, Some(told)) => held(told.exceeded),
        (_, Some(RunReport { answer: AttackAnswer::None, .. })) => {
            return (AttackOutcome::NotTested, "the attack reported no result".to_owned());
        }
        (AttackCheck::Refused, Some(told)) => held(told.answer == AttackAnswer::Refused),
        (AttackCheck::FileUnchanged(path), Some(told)) => {
            restored_or_not(&told, Fixture::is_unchanged(path))
        }
        (AttackCheck::NeverChanged(path), Some(_)) => held(Fixture::is_unchanged(path)),
        (AttackCheck::Absent(path), Some(told)) => restored_or_not(&told, !path.exists()),
        (AttackCheck::NoDatagram, Some(_)) => held(!yard.got_datagram()),
        (AttackCheck::Recorded, Some(told)) => held(told.refusals > 0),
    };
    (found, String::new())
}

/// Tells prevented, restored and not prevented apart.
fn restored_or_not(told: &RunReport, whole: bool) -> AttackOutcome {
    match (whole, told.answer) {
        (true, AttackAnswer::Refused) => AttackOutcome::Prevented,
        (true, AttackAnswer::Done) if told.tampered > 0 => AttackOutcome::Undone,
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
