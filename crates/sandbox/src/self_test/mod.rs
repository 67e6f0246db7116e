//! What each tier claims, tried: for every row of the policy an act that it forbids, in a real cage
//! and, as the control, without one. For `agentd doctor --attempts` and the tests.

mod attacks;
mod fixture;
mod raw;
mod run;

use crate::error::{CageError, CageStep};
use crate::exec_child::Program;
use crate::guarantees;
use crate::ruleset;
use fixture::Fixture;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use protocol::confinement::{Confinement, FilePath, Limits, Network, Tier};
use run::{AttackAnswer, RunReport, RunnerFate};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Whether a row holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttackOutcome {
    /// What it forbids does not happen.
    Prevented,
    /// It happens, and is put right after the call.
    Undone,
    /// It happens.
    NotPrevented,
    /// It could not be shown here.
    NotTested,
}

/// One row in one tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttackResult {
    /// In which tier.
    pub tier: Tier,
    /// Its number in the design's table of rules.
    pub row: u8,
    /// What it forbids.
    pub name: &'static str,
    /// What the tier claims.
    pub claimed: AttackOutcome,
    /// What was found.
    pub found: AttackOutcome,
    /// What stood in the way of trying it; empty where nothing did.
    pub why: String,
}

impl AttackResult {
    /// Whether the claim is true, as far as it could be tried.
    #[must_use]
    pub fn matches_claim(&self) -> bool {
        self.found == AttackOutcome::NotTested || self.claimed == self.found
    }
}

/// What a claim depends on.
#[derive(Debug, Clone, Copy)]
struct ClaimContext {
    tier: Tier,
    abi: u32,
    observable: bool,
}

impl ClaimContext {
    /// Whether signals end at the domain, or there is a namespace for it.
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

/// How a row is judged after its act.
#[derive(Debug, Clone)]
enum AttackCheck {
    /// The act itself was refused.
    Refused,
    /// This is as it was before.
    FileUnchanged(PathBuf),
    /// The same, whatever was changed in its place.
    NeverChanged(PathBuf),
    /// This is not there.
    Absent(PathBuf),
    /// The call was ended for a bound.
    LimitHit,
    /// What the act left behind writes here no more.
    WritesStopped(PathBuf),
    /// No datagram came out, whatever the act says of itself.
    NoDatagram,
    /// Refusals are in the record.
    Recorded,
}

/// A row, ready to be tried.
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

/// Tries every row in these tiers. `program` becomes the one that tries: started with `words` and an
/// act, it calls [`act`]. `alter` has the last word on each cage, for tests that take a rule out.
///
/// It forks, and takes some seconds: call it before this process has threads.
///
/// # Errors
/// Where there is no place to try in.
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
            // A yard for each, so that no act finds what another left.
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

/// The act that the arguments name; the exit code says whether it was done.
#[must_use]
pub fn run_attack(words: &[&str]) -> i32 {
    attacks::perform(words)
}

/// Every row that can be tried, in the order of the table.
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

/// Tries one row, with its control first.
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
    // After the attempt: the control changes what the proof looks at.
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
        "it does not happen without a cage either".clone_into(&mut why);
    }
    let claimed = (trial.claim)(ground);
    AttackResult { tier, row: trial.row, name: trial.name, claimed, found, why }
}

/// What was found, and what stood in the way.
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
        // What would be granted against the rules is no cage, and so nothing runs.
        Err(error) if error.step == CageStep::Grants && trial.withheld.is_some() => {
            return (AttackOutcome::Prevented, String::new());
        }
        // Where there is no network of its own, there is no list, and so nothing runs.
        Err(error) if error.step == CageStep::Namespaces && trial.network == Network::Listed => {
            return (AttackOutcome::Prevented, String::new());
        }
        Err(error) => return (AttackOutcome::NotTested, error.to_string()),
    };
    let found = match (&trial.proof, told) {
        (_, Some(told)) if told.tier != tier => {
            return (AttackOutcome::NotTested, "another tier was reached".to_owned());
        }
        (AttackCheck::WritesStopped(path), _) if run::file_length(path) == 0 => {
            return (AttackOutcome::NotTested, "it never began".to_owned());
        }
        (AttackCheck::WritesStopped(path), told) => {
            held(stops_growing(path) && told.is_none_or(|told| told.survivors == 0))
        }
        (_, None) => {
            return (AttackOutcome::NotTested, "its runner ended without a word".to_owned());
        }
        (AttackCheck::LimitHit, Some(told)) => held(told.exceeded),
        (_, Some(RunReport { answer: AttackAnswer::None, .. })) => {
            return (AttackOutcome::NotTested, "the act came to no answer".to_owned());
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

/// Prevented, put right, or neither.
fn restored_or_not(told: &RunReport, whole: bool) -> AttackOutcome {
    match (whole, told.answer) {
        (true, AttackAnswer::Refused) => AttackOutcome::Prevented,
        (true, AttackAnswer::Done) if told.tampered > 0 => AttackOutcome::Undone,
        (true, AttackAnswer::Done | AttackAnswer::None) | (false, _) => AttackOutcome::NotPrevented,
    }
}

/// How long the end of a tree may take: the kernel ends a namespace process by process, and a slow machine
/// takes its time.
const ENDING: Duration = Duration::from_millis(1500);
/// Without a word for so long nothing is left that writes.
const QUIET: Duration = Duration::from_millis(150);

/// Whether nothing writes there any more.
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
