//! Locks the calling process for good: workers, file tools and the process that repairs protected
//! files.

use crate::cage::Cage;
use crate::error::{CageError, CageStep};
use crate::grants::{GrantVia, Grants};
use crate::guarantees;
use crate::landlock::ruleset;
use crate::lock;
use crate::policy::{self, ConfinementPolicy, ExecRule, GrantTarget, SocketRule};
use crate::privileges;
use crate::seccomp::{CompiledFilter, FilterSpec};
use crate::unsandboxed;
use nix::sys::stat::{Mode, umask};
use protocol::confinement::{Confinement, Enforced, Level, Tier};
use std::os::unix::fs::MetadataExt;

impl Cage {
    /// Locks this process for good, by an in-process profile: files by Landlock, no programs, no
    /// capabilities, sockets only for the provider. Refused calls get their errno; nothing is
    /// recorded.
    ///
    /// # Errors
    /// Where a thread besides this one exists, where the profile is `Command`, and where any part
    /// of the lock does not hold. The caller must not go on then.
    pub fn enter(wanted: &Confinement) -> Result<Enforced, CageError> {
        Self::enter_with_policy(wanted, policy::of(wanted.profile), GrantVia::Landlock)
    }

    fn enter_with_policy(
        wanted: &Confinement,
        policy: &ConfinementPolicy,
        means: GrantVia,
    ) -> Result<Enforced, CageError> {
        single_threaded()?;
        umask(Mode::from_bits_truncate(wanted.umask));
        if wanted.level == Level::Uncaged {
            return unsandboxed::enter(wanted, policy);
        }
        let abi = ruleset::abi()?;
        refuse_tier_c(wanted)?;
        if policy.exec == ExecRule::Allowed {
            return Err(CageError::new(
                CageStep::Program,
                "this profile is for commands; a process cannot lock itself into it",
            ));
        }
        let grants = Grants::open_all(wanted, policy, means)?;
        let network = lock::effective_network(policy, wanted);
        // Collected before the lock, which hides most of the home.
        let mut limits = guarantees::keys(&grants);
        if policy.grants.iter().any(|rule| matches!(rule.at, GrantTarget::Project)) {
            limits.extend(guarantees::home(wanted));
        }
        privileges::drop_all()?;
        let rules = ruleset::rules(&grants.list, lock::tcp(Tier::B, network))?;
        ruleset::enforce(rules)?;
        CompiledFilter::new(&FilterSpec::in_process(network, abi))
            .and_then(|filter| filter.install())
            .map_err(CageError::from)?;
        limits.extend(guarantees::in_process_limits(abi));
        Ok(Enforced {
            tier: Tier::B,
            in_process: wanted.profile.is_in_process(),
            profile: wanted.profile.name().to_owned(),
            landlock_abi: abi,
            network: guarantees::network(Tier::B, network, wanted.joins),
            namespaces: Vec::new(),
            seccomp: true,
            refusals_observable: false,
            dropped: ruleset::missing_rights(abi),
            limits,
            missing: grants.missing,
            left_out: grants.left_out,
            cgroup: Vec::new(),
        })
    }

    /// Locks this process like the runner of a command of this confinement, to restore the files
    /// that the command changed: it may read and write the command's files, and starts nothing.
    ///
    /// # Errors
    /// As [`Cage::enter`].
    pub fn enter_to_repair(wanted: &Confinement) -> Result<Enforced, CageError> {
        let policy = policy::of(wanted.profile);
        let policy = ConfinementPolicy {
            exec: ExecRule::Refused,
            sockets: SocketRule::None,
            protected: &[],
            ..*policy
        };
        // In tier A a project may contain a withheld directory: only the command's root leaves it
        // out.
        let means = match wanted.highest_tier {
            Tier::A => GrantVia::MountedRoot,
            Tier::B | Tier::C => GrantVia::Landlock,
        };
        Self::enter_with_policy(wanted, &policy, means)
    }
}

/// A second thread would stay outside the lock.
pub(crate) fn single_threaded() -> Result<(), CageError> {
    let tasks = std::fs::metadata("/proc/self/task")
        .map_err(|error| CageError::os(CageStep::Threads, "/proc/self/task", error))?;
    // A directory's links are itself, its entry above, and each directory within.
    match tasks.nlink().saturating_sub(2) {
        1 => Ok(()),
        threads => Err(CageError::new(CageStep::Threads, format!("{threads} threads are running"))),
    }
}

/// Tier C is no cage.
pub(crate) fn refuse_tier_c(wanted: &Confinement) -> Result<(), CageError> {
    match wanted.highest_tier {
        Tier::A | Tier::B => Ok(()),
        Tier::C => Err(CageError::new(
            CageStep::Landlock,
            "this host allows no cage (tier C), and nothing is run without one",
        )),
    }
}
