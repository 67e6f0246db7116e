//! What this host allows, found by really doing it in processes that are thrown away.

use crate::cage::Cage;
use crate::error::{CageError, Step};
use crate::handover::Line;
use crate::inert::Program;
use crate::layer;
use crate::sys;
use nix::sys::wait::waitpid;
use protocol::confinement::{
    Confinement, Enforced, FilePath, GitSettings, Level, Limits, Network, Profile, Tier,
};
use std::path::{Path, PathBuf};

/// What this host allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostProbe {
    /// The strongest tier in which a program was really run.
    pub tier: Tier,
    /// Version of Landlock's interface; 0 where there is none.
    pub landlock_abi: u32,
    /// Each step of each tier that was tried, tier A first.
    pub steps: Vec<HostStep>,
}

/// One step on the way to a running program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostStep {
    /// Of which tier.
    pub tier: Tier,
    /// Which.
    pub step: Step,
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

/// Tries tier A, then B, each with a real program in a real cage. Takes some 20 ms and writes two
/// empty directories into the temporary directory meanwhile. It forks: call it before this process
/// has threads, or at least none that holds a lock of its own for long (the C library's are safe).
#[must_use]
pub fn host() -> HostProbe {
    let landlock_abi = layer::abi().unwrap_or(0);
    let mut steps = Vec::new();
    let mut tier = Tier::C;
    match Scratch::new() {
        Ok(scratch) => {
            for tried in [Tier::A, Tier::B] {
                let failure = attempt(tried, &scratch).err();
                steps.extend(account(tried, failure.as_ref()));
                if failure.is_none() {
                    tier = tier.max(tried);
                }
            }
        }
        Err(error) => steps.extend(account(Tier::B, Some(&error))),
    }
    HostProbe { tier, landlock_abi, steps }
}

/// The steps of a tier up to the one that failed, and beyond.
fn account(tier: Tier, failure: Option<&CageError>) -> Vec<HostStep> {
    let mut reached = true;
    Step::ALL
        .into_iter()
        .filter(|step| tier == Tier::A || !step.needs_namespaces())
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
fn attempt(tier: Tier, scratch: &Scratch) -> Result<(), CageError> {
    let wanted = scratch.confinement(tier);
    let (line, its_line) = Line::pair()?;
    let child = sys::fork(move || {
        let said = match run(&wanted) {
            Ok(()) => its_line.ready(&[], &[]),
            Err(error) => its_line.failed(&error),
        };
        i32::from(said.is_err())
    })
    .map_err(|error| CageError::os(Step::Fork, "a process to try it in", error))?;
    let told = line.await_ready();
    // Only its word counts.
    let _ = waitpid(child, None);
    told.map(drop)
}

fn run(wanted: &Confinement) -> Result<(), CageError> {
    let (cage, enforced) = Cage::prepare(wanted)?;
    lowered(wanted, &enforced)?;
    let program = Program {
        argv: ["sh", "-c", ":"].map(Into::into).to_vec(),
        env: Vec::new(),
        cwd: wanted.project.to_path(),
    };
    cage.spawn(program)?.finish()?;
    Ok(())
}

/// A lower tier than asked for is a failure here.
fn lowered(wanted: &Confinement, enforced: &Enforced) -> Result<(), CageError> {
    if enforced.tier == wanted.highest_tier {
        return Ok(());
    }
    let reason = enforced.limits.first().cloned().unwrap_or_default();
    Err(CageError::new(Step::Namespaces, reason))
}

/// Two directories to try with; removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, CageError> {
        let base = std::env::temp_dir();
        let failed = |error| CageError::os(Step::Grants, base.display(), error);
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
            profile: Profile::Command,
            project: path("project"),
            added: Vec::new(),
            temp: path("temp"),
            home: None,
            tool_homes: Vec::new(),
            withheld: Vec::new(),
            network: Network::Off,
            hosts: Vec::new(),
            git: GitSettings::Kept,
            highest_tier,
            level: Level::Required,
            limits: Limits::NONE,
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left of it is an empty directory in the temporary one.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_after_the_failed_one_are_not_claimed() {
        let failure = CageError::new(Step::Root, "no");
        let steps = account(Tier::A, Some(&failure));
        assert_eq!(steps.len(), Step::ALL.len());
        let outcome = |step| {
            let found = steps.iter().find(|entry| entry.step == step);
            found.map(|entry| entry.outcome.clone())
        };
        assert_eq!(outcome(Step::Landlock), Some(StepOutcome::Done));
        assert_eq!(outcome(Step::Root), Some(StepOutcome::Failed("no".into())));
        assert_eq!(outcome(Step::Layer), Some(StepOutcome::NotReached));
        let without = account(Tier::B, None);
        assert!(without.iter().all(|step| step.outcome == StepOutcome::Done));
        assert!(!without.iter().any(|step| step.step == Step::Root));
    }
}
