//! Probes the host: prepares a real cage of each tier in a child process.

use crate::cage::Cage;
use crate::error::{CageError, CageStep};
use crate::landlock::ruleset;
use crate::network_namespace::Inherited;
use crate::spawn::exec_child::{Program, ProgramInput};
use crate::spawn::setup_channel::SetupChannel;
use crate::sys;
use nix::sys::wait::waitpid;
use protocol::confinement::{Confinement, Enforced, FilePath, Profile, TEMPORARY, Tier};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Result of probing the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostProbe {
    /// The strongest tier in which a program was really run.
    pub tier: Tier,
    /// Landlock's ABI version; 0 without Landlock.
    pub landlock_abi: u32,
    /// Rights of the newest Landlock that this kernel does not support; all of them without
    /// Landlock.
    pub dropped: Vec<String>,
    /// Each step of each tier that was tried, tier A first.
    pub steps: Vec<HostStep>,
}

/// One step on the way to a running program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostStep {
    /// Of which tier.
    pub tier: Tier,
    /// Which.
    pub step: CageStep,
    /// How it went.
    pub outcome: StepOutcome,
}

/// How a step went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepOutcome {
    /// It was done.
    Done,
    /// It failed, with the reason.
    Failed(String),
    /// One before it failed.
    NotReached,
}

/// The directory for calls' temporary files: the first of `/tmp`, `/var/tmp` and `fallback` in which
/// this user can make a directory. `fallback` is made if it is needed. `TMPDIR` does not count: it
/// differs between the terminals of one daemon.
///
/// # Errors
/// If there is none: each of them with its reason.
pub fn temporary_root(fallback: Option<&Path>) -> io::Result<PathBuf> {
    let mut refused = Vec::new();
    for root in TEMPORARY.map(Path::new).into_iter().chain(fallback) {
        if Some(root) == fallback {
            // A failure shows at the attempt to use it.
            let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(root);
        }
        match Scratch::new(root) {
            Ok(_) => return Ok(root.to_owned()),
            Err(error) => refused.push(error.reason),
        }
    }
    Err(io::Error::other(format!(
        "no directory for calls' temporary files can be used ({}). Make /tmp or /var/tmp writable for \
         your user, or free space there",
        refused.join("; ")
    )))
}

/// Tries tier A, then B, each with a real program in a real cage. Takes some 20 ms and writes two
/// empty directories into `root` meanwhile, a result of [`temporary_root`]. It forks: call it before
/// this process has threads, or at least none that holds a lock of its own for long (the C library's
/// are safe).
///
/// # Errors
/// If `root` cannot be used. This says nothing about the host's abilities.
pub fn probe_host(root: &Path) -> Result<HostProbe, CageError> {
    let landlock_abi = ruleset::abi().unwrap_or(0);
    let scratch = Scratch::new(root)?;
    let tried = [Tier::A, Tier::B].map(|tier| (tier, run_in_tier(tier, &scratch).err()));
    Ok(evaluate(landlock_abi, &tried))
}

/// The strongest tier in which a program was really run. Tier B is tried only if A failed, so this takes
/// half the time of [`probe_host`]. It forks, with the same condition.
///
/// # Errors
/// As [`probe_host`].
pub fn probe_tier(root: &Path) -> Result<Tier, CageError> {
    let scratch = Scratch::new(root)?;
    let runs = |tier: &Tier| run_in_tier(*tier, &scratch).is_ok();
    Ok([Tier::A, Tier::B].into_iter().find(runs).unwrap_or(Tier::C))
}

/// Summarizes the tiers that were tried: the strongest without a failure counts.
fn evaluate(landlock_abi: u32, tried: &[(Tier, Option<CageError>)]) -> HostProbe {
    let held = tried.iter().filter(|(_, failure)| failure.is_none()).map(|(tier, _)| *tier);
    let steps = tried.iter().flat_map(|(tier, failure)| steps_of(*tier, failure.as_ref()));
    HostProbe {
        tier: held.max().unwrap_or(Tier::C),
        landlock_abi,
        dropped: ruleset::missing_rights(landlock_abi),
        steps: steps.collect(),
    }
}

/// All steps of a tier with their outcomes.
fn steps_of(tier: Tier, failure: Option<&CageError>) -> Vec<HostStep> {
    let mut reached = true;
    CageStep::ALL
        .into_iter()
        .filter(|step| tier == Tier::A || !step.needs_namespaces())
        // These are not steps of every launch: they are listed only if they failed.
        .filter(|step| {
            !matches!(step, CageStep::Lost | CageStep::Saved)
                || failure.is_some_and(|it| it.step == *step)
        })
        .map(|step| {
            let outcome = match failure {
                Some(error) if error.step == step => {
                    reached = false;
                    StepOutcome::Failed(error.reason.clone())
                }
                Some(_) | None if reached => StepOutcome::Done,
                Some(_) | None => StepOutcome::NotReached,
            };
            HostStep { tier, step, outcome }
        })
        .collect()
}

/// Runs a shell that does nothing in a cage of this tier, in a process of its own.
fn run_in_tier(tier: Tier, scratch: &Scratch) -> Result<(), CageError> {
    let wanted = scratch.confinement(tier);
    let (line, its_line) = SetupChannel::pair()?;
    let child = sys::fork(move || {
        let said = match run(&wanted) {
            Ok(()) => its_line.send_ready(&[], &[]),
            Err(error) => its_line.send_error(&error),
        };
        i32::from(said.is_err())
    })
    .map_err(|error| CageError::os(CageStep::Fork, "a process to try it in", error))?;
    let told = line.await_ready();
    // Only its word counts.
    let _ = waitpid(child, None);
    told.map(drop)
}

fn run(wanted: &Confinement) -> Result<(), CageError> {
    let (cage, enforced) = Cage::prepare(wanted, Inherited::default())?;
    fail_if_lowered(wanted, &enforced)?;
    let program = Program {
        argv: ["sh", "-c", ":"].map(Into::into).to_vec(),
        env: Vec::new(),
        cwd: wanted.project.to_path(),
        input: ProgramInput::Nothing,
    };
    cage.spawn(program)?.finish()?;
    Ok(())
}

/// A lower tier than asked for is a failure here.
fn fail_if_lowered(wanted: &Confinement, enforced: &Enforced) -> Result<(), CageError> {
    if enforced.tier == wanted.highest_tier {
        return Ok(());
    }
    let reason = enforced.limits.first().cloned().unwrap_or_default();
    Err(CageError::new(CageStep::Namespaces, reason))
}

/// Two directories to try with; removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(base: &Path) -> Result<Self, CageError> {
        let failed = |error| CageError::os(CageStep::Grants, base.display(), error);
        let base = base.canonicalize().map_err(failed)?;
        let unique = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |time| time.as_nanos());
        let scratch = Self(base.join(format!("agentd-host-{}-{unique}", std::process::id())));
        for name in ["project", "temp"] {
            std::fs::create_dir_all(scratch.0.join(name)).map_err(failed)?;
        }
        Ok(scratch)
    }

    fn confinement(&self, highest_tier: Tier) -> Confinement {
        let path = |name: &str| FilePath::from(Path::new(&self.0).join(name));
        Confinement {
            highest_tier,
            ..Confinement::closed(Profile::Command, path("project"), path("temp"))
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // At worst an empty directory stays in the temporary directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::confinement::Network;

    #[test]
    fn steps_after_the_failed_one_are_not_claimed() {
        let failure = CageError::new(CageStep::Root, "no");
        let steps = steps_of(Tier::A, Some(&failure));
        assert_eq!(
            steps.len(),
            CageStep::ALL.len() - 2,
            "all but the loss of a process, and a copy"
        );
        let outcome = |step| {
            let found = steps.iter().find(|entry| entry.step == step);
            found.map(|entry| entry.outcome.clone())
        };
        assert_eq!(outcome(CageStep::Landlock), Some(StepOutcome::Done));
        assert_eq!(outcome(CageStep::Root), Some(StepOutcome::Failed("no".into())));
        assert_eq!(outcome(CageStep::Layer), Some(StepOutcome::NotReached));
        let without = steps_of(Tier::B, None);
        assert!(without.iter().all(|step| step.outcome == StepOutcome::Done));
        assert!(!without.iter().any(|step| step.step == CageStep::Root));
    }

    /// Every version of Landlock, with and without namespaces: the tier, and the limits in its
    /// record.
    #[test]
    fn each_version_of_landlock_has_its_tier_and_its_admissions() {
        use crate::guarantees::{
            self, CageFacts, LimitedBy, NO_MOVES, NO_SCOPES, NO_TRUNCATION, NotifyWait,
            RefusalsObserved, RunsAsRoot, TreeEndedBy,
        };
        const SIGNALS: &str = NO_SCOPES;
        const SOCKETS: &str = "Sockets that other programs keep";
        const MOVES: &str = NO_MOVES;
        const LENGTHS: &str = NO_TRUNCATION;
        let (a, b, c) = (Tier::A, Tier::B, Tier::C);
        // Version; tier with namespaces, and without; limits that tier A's record has, and tier
        // B's.
        type Row = (u32, Tier, Tier, &'static [&'static str], &'static [&'static str]);
        let table: [Row; 11] = [
            (0, c, c, &[], &[]),
            (1, a, b, &[MOVES, SIGNALS, SOCKETS], &[MOVES, LENGTHS, SIGNALS]),
            (2, a, b, &[SIGNALS, SOCKETS], &[LENGTHS, SIGNALS]),
            (3, a, b, &[SIGNALS, SOCKETS], &[SIGNALS]),
            (4, a, b, &[SIGNALS, SOCKETS], &[SIGNALS]),
            (5, a, b, &[SIGNALS, SOCKETS], &[SIGNALS]),
            (6, a, b, &[SOCKETS], &[]),
            (7, a, b, &[SOCKETS], &[]),
            (8, a, b, &[SOCKETS], &[]),
            (9, a, b, &[], &[]),
            (10, a, b, &[], &[]),
        ];
        for (abi, with, without, of_a, of_b) in table {
            let failure = || ruleset::check_abi(abi).err();
            let refused = || Some(CageError::new(CageStep::Namespaces, "refused"));
            let probe = evaluate(abi, &[(a, failure()), (b, failure())]);
            assert_eq!(probe.tier, with, "version {abi}");
            let lower = evaluate(abi, &[(a, failure().or_else(refused)), (b, failure())]);
            assert_eq!(lower.tier, without, "version {abi} without namespaces");
            if let Some(failure) = failure() {
                // Below the lowest version nothing runs, and `doctor` shows this text.
                let words = format!("version {abi}; 1 is the least");
                assert!(failure.reason.contains(&words), "{failure}");
                let landlock = probe.steps.iter().find(|step| step.step == CageStep::Landlock);
                let told = landlock.map(|step| step.outcome.clone());
                assert_eq!(told, Some(StepOutcome::Failed(failure.reason)));
                continue;
            }
            for (tier, admitted) in [(a, of_a), (b, of_b)] {
                let said = guarantees::limits(CageFacts {
                    tier,
                    abi,
                    network: Network::Off,
                    processes: LimitedBy::Kernel,
                    memory: LimitedBy::Kernel,
                    runs_as_root: RunsAsRoot::No,
                    observed: RefusalsObserved::Yes,
                    waits: NotifyWait::UntilAnswered,
                    metadata: crate::guarantees::MetadataChanges::Allowed,
                    ended_by: TreeEndedBy::Kernel,
                });
                for words in [SIGNALS, SOCKETS, MOVES, LENGTHS] {
                    let says = said.iter().any(|limit| limit.contains(words));
                    assert_eq!(says, admitted.contains(&words), "{abi}, {tier:?}: {words}");
                }
            }
        }
    }
}
