//! What each tier claims, tried: for every row of the policy an act that it forbids, in a real cage
//! and, as the control, without one. For `agentd doctor --attempts` and the tests.

mod acts;
mod raw;
mod trial;
mod yard;

use crate::claims;
use crate::error::{CageError, Step};
use crate::inert::Program;
use crate::layer;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use protocol::confinement::{Confinement, FilePath, Limits, Network, Tier};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use trial::{Answer, Runner, Told};
use yard::Yard;

/// Whether a row holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
    /// What it forbids does not happen.
    Held,
    /// It happens, and is put right after the call.
    Undone,
    /// It happens.
    Open,
    /// It could not be shown here.
    Untried,
}

/// One row in one tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// In which tier.
    pub tier: Tier,
    /// Its number in the design's table of rules.
    pub row: u8,
    /// What it forbids.
    pub name: &'static str,
    /// What the tier claims.
    pub claimed: Stand,
    /// What was found.
    pub found: Stand,
    /// What stood in the way of trying it; empty where nothing did.
    pub why: String,
}

impl Attempt {
    /// Whether the claim is true, as far as it could be tried.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.found == Stand::Untried || self.claimed == self.found
    }
}

/// What a claim depends on.
#[derive(Debug, Clone, Copy)]
struct Ground {
    tier: Tier,
    abi: u32,
    observable: bool,
}

impl Ground {
    /// Whether signals end at the domain, or there is a namespace for it.
    fn scoped(self) -> Stand {
        if claims::holds_signals(self.tier, self.abi) { Stand::Held } else { Stand::Open }
    }

    fn in_tier_a(self, held: Stand, otherwise: Stand) -> Stand {
        match self.tier {
            Tier::A => held,
            Tier::B | Tier::C => otherwise,
        }
    }
}

/// How a row is judged after its act.
#[derive(Debug, Clone)]
enum Proof {
    /// The act itself was refused.
    Refused,
    /// This is as it was before.
    Whole(PathBuf),
    /// The same, whatever was changed in its place.
    Untouched(PathBuf),
    /// This is not there.
    Absent(PathBuf),
    /// The call was ended for a bound.
    Ended,
    /// What the act left behind writes here no more.
    Still(PathBuf),
    /// No datagram came out, whatever the act says of itself.
    Unheard,
    /// Refusals are in the record.
    Recorded,
}

/// A row, ready to be tried.
struct Trial {
    row: u8,
    name: &'static str,
    claim: fn(Ground) -> Stand,
    act: Vec<String>,
    proof: Proof,
    limits: Limits,
    withheld: Option<PathBuf>,
    network: Network,
    runner: Runner,
}

/// Tries every row in these tiers. `program` becomes the one that tries: started with `words` and an
/// act, it calls [`act`]. `alter` has the last word on each cage, for tests that take a rule out.
///
/// It forks, and takes some seconds: call it before this process has threads.
///
/// # Errors
/// Where there is no place to try in.
pub fn attempts(
    program: &Path,
    words: &[&str],
    tiers: &[Tier],
    alter: fn(&mut Confinement),
) -> Result<Vec<Attempt>, CageError> {
    let mut tried = Vec::new();
    for tier in tiers {
        let mut number = 0;
        loop {
            // A yard for each, so that no act finds what another left.
            let yard = Yard::new(program)?;
            let bystander = yard.bystander()?;
            let trial = rows(&yard, bystander.as_raw()).into_iter().nth(number);
            let attempt = trial.map(|trial| attempt(&yard, *tier, &trial, words, alter));
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
pub fn act(words: &[&str]) -> i32 {
    acts::perform(words)
}

/// Every row that can be tried, in the order of the table.
fn rows(yard: &Yard, bystander: i32) -> Vec<Trial> {
    let held = |_: Ground| Stand::Held;
    let text = |path: PathBuf| path.display().to_string();
    let trial = |row, name, claim: fn(Ground) -> Stand, act: &[&str], proof| Trial {
        row,
        name,
        claim,
        act: act.iter().map(|word| (*word).to_owned()).collect(),
        proof,
        limits: Limits::NONE,
        withheld: None,
        network: Network::Off,
        runner: Runner::Lives,
    };
    let bounded = |name, limits: Limits, act: &[&str], proof| Trial {
        limits,
        ..trial(16, name, held, act, proof)
    };
    let spoiling = |row, name, path: PathBuf| {
        trial(row, name, held, &["spoil", &text(path.clone())], Proof::Untouched(path))
    };
    let (outside, settings) = (text(yard.outside()), text(yard.settings()));
    let (new, big, ticks) = (yard.inside(".envrc"), yard.inside("big"), yard.inside("ticks"));
    let linger = ["linger", &text(ticks.clone())];
    vec![
        trial(1, "writing outside", held, &["write", &outside], Proof::Whole(yard.outside())),
        trial(
            1,
            "emptying a file outside",
            held,
            &["empty", &outside],
            Proof::Whole(yard.outside()),
        ),
        trial(
            2,
            "changing the mode of a file outside",
            |ground| ground.in_tier_a(Stand::Held, Stand::Open),
            &["chmod", &outside],
            Proof::Whole(yard.outside()),
        ),
        trial(3, "reading outside", held, &["read", &outside], Proof::Refused),
        trial(
            4,
            "changing a protected name",
            |ground| ground.in_tier_a(Stand::Held, Stand::Undone),
            &["write", &settings],
            Proof::Whole(yard.settings()),
        ),
        trial(
            5,
            "making a protected name",
            |_| Stand::Undone,
            &["write", &text(new.clone())],
            Proof::Absent(new),
        ),
        trial(6, "reaching the network", held, &["inet", &yard.inet()], Proof::Refused),
        trial(6, "asking a name server", held, &["ask", &yard.datagrams()], Proof::Unheard),
        Trial {
            network: Network::Listed,
            ..trial(
                7,
                "going around an allow-list of hosts",
                held,
                &["inet", &yard.inet()],
                Proof::Refused,
            )
        },
        trial(
            8,
            "reaching a socket outside",
            held,
            &["unix", &text(yard.socket())],
            Proof::Refused,
        ),
        trial(8, "reaching an abstract socket", held, &["abstract", yard.hidden()], Proof::Refused),
        Trial {
            withheld: yard.token().parent().map(Path::to_path_buf),
            ..trial(
                9,
                "reading the daemon's own directory",
                held,
                &["read", &text(yard.token())],
                Proof::Refused,
            )
        },
        trial(10, "calls that no project needs", held, &["surface"], Proof::Refused),
        trial(11, "a foreign system call interface", held, &["foreign"], Proof::Refused),
        trial(12, "typing into a terminal", held, &["inject"], Proof::Refused),
        trial(
            13,
            "touching a process outside",
            Ground::scoped,
            &["touch", &bystander.to_string()],
            Proof::Refused,
        ),
        trial(14, "having privileges or gaining them", held, &["powers"], Proof::Refused),
        trial(15, "variables and descriptors", held, &["inherited", "PATH"], Proof::Refused),
        bounded(
            "memory above its bound",
            Limits { memory_bytes: 64 << 20, ..Limits::NONE },
            &["fill", "200"],
            Proof::Ended,
        ),
        bounded(
            "processes above their bound",
            Limits { processes: 20, ..Limits::NONE },
            &["multiply", "40"],
            Proof::Ended,
        ),
        bounded(
            "a file above its bound",
            Limits { file_bytes: 65_536, ..Limits::NONE },
            &["grow", &text(big), "1000000"],
            Proof::Refused,
        ),
        trial(17, "outliving the call", held, &linger, Proof::Still(ticks.clone())),
        trial(
            18,
            "being refused without a record",
            |ground| if ground.observable { Stand::Held } else { Stand::Open },
            &["surface"],
            Proof::Recorded,
        ),
        Trial {
            runner: Runner::Dies(ticks.clone()),
            ..trial(19, "outliving the runner", Ground::scoped, &linger, Proof::Still(ticks))
        },
        spoiling(20, "changing the person's home", yard.at_home(yard::OF_HOME)),
        spoiling(21, "changing a cache of the person", yard.at_home(yard::CACHED)),
        trial(
            22,
            "reading a key beside a tool",
            held,
            &["read", &text(yard.at_home(yard::KEY))],
            Proof::Refused,
        ),
    ]
}

/// Tries one row, with its control first.
fn attempt(
    yard: &Yard,
    tier: Tier,
    trial: &Trial,
    words: &[&str],
    alter: fn(&mut Confinement),
) -> Attempt {
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
    let told = trial::caged(&wanted, program, &trial.runner);
    let ground = match &told {
        Ok(Some(told)) => Ground { tier, abi: told.abi, observable: told.observable },
        Ok(None) | Err(_) => Ground { tier, abi: layer::abi().unwrap_or(0), observable: true },
    };
    let (mut found, mut why) = judge(yard, trial, tier, told);
    // After the attempt: the control changes what the proof looks at.
    let control = || {
        let done = trial::free(&trial.act);
        if matches!(trial.proof, Proof::Unheard) { done && yard.heard() } else { done }
    };
    if found == Stand::Held && !control() {
        found = Stand::Untried;
        "it does not happen without a cage either".clone_into(&mut why);
    }
    let claimed = (trial.claim)(ground);
    Attempt { tier, row: trial.row, name: trial.name, claimed, found, why }
}

/// What was found, and what stood in the way.
fn judge(
    yard: &Yard,
    trial: &Trial,
    tier: Tier,
    told: Result<Option<Told>, CageError>,
) -> (Stand, String) {
    let held = |holds: bool| if holds { Stand::Held } else { Stand::Open };
    let told = match told {
        Ok(told) => told,
        // What would be granted against the rules is no cage, and so nothing runs.
        Err(error) if error.step == Step::Grants && trial.withheld.is_some() => {
            return (Stand::Held, String::new());
        }
        // Where there is no network of its own, there is no list, and so nothing runs.
        Err(error) if error.step == Step::Namespaces && trial.network == Network::Listed => {
            return (Stand::Held, String::new());
        }
        Err(error) => return (Stand::Untried, error.to_string()),
    };
    let found = match (&trial.proof, told) {
        (_, Some(told)) if told.tier != tier => {
            return (Stand::Untried, "another tier was reached".to_owned());
        }
        (Proof::Still(path), _) if trial::length(path) == 0 => {
            return (Stand::Untried, "it never began".to_owned());
        }
        (Proof::Still(path), told) => {
            held(grows_no_more(path) && told.is_none_or(|told| told.survivors == 0))
        }
        (_, None) => return (Stand::Untried, "its runner ended without a word".to_owned()),
        (Proof::Ended, Some(told)) => held(told.exceeded),
        (_, Some(Told { answer: Answer::None, .. })) => {
            return (Stand::Untried, "the act came to no answer".to_owned());
        }
        (Proof::Refused, Some(told)) => held(told.answer == Answer::Refused),
        (Proof::Whole(path), Some(told)) => undone(&told, Yard::whole(path)),
        (Proof::Untouched(path), Some(_)) => held(Yard::whole(path)),
        (Proof::Absent(path), Some(told)) => undone(&told, !path.exists()),
        (Proof::Unheard, Some(_)) => held(!yard.heard()),
        (Proof::Recorded, Some(told)) => held(told.refusals > 0),
    };
    (found, String::new())
}

/// Prevented, put right, or neither.
fn undone(told: &Told, whole: bool) -> Stand {
    match (whole, told.answer) {
        (true, Answer::Refused) => Stand::Held,
        (true, Answer::Done) if told.tampered > 0 => Stand::Undone,
        (true, Answer::Done | Answer::None) | (false, _) => Stand::Open,
    }
}

/// How long the end of a tree may take: the kernel ends a namespace process by process, and a slow machine
/// takes its time.
const ENDING: Duration = Duration::from_millis(1500);
/// Without a word for so long nothing is left that writes.
const QUIET: Duration = Duration::from_millis(150);

/// Whether nothing writes there any more.
fn grows_no_more(path: &Path) -> bool {
    let begun = Instant::now();
    let (mut seen, mut since) = (trial::length(path), begun);
    while begun.elapsed() < ENDING {
        sleep(Duration::from_millis(10));
        let now = trial::length(path);
        if now != seen {
            (seen, since) = (now, Instant::now());
        } else if since.elapsed() >= QUIET {
            return true;
        }
    }
    false
}
