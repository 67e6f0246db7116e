//! The two doors: locking this process, and preparing a command's cage. For workers and `tools`.

use crate::error::{CageError, CageStep};
use crate::grants::{GrantVia, Grants};
use crate::guarantees;
use crate::landlock::ruleset;
use crate::launch;
use crate::notify::NotifySupervisor;
use crate::policy::{self, ConfinementPolicy, ExecRule, GrantTarget, SocketRule};
use crate::privileges;
use crate::proc_stat;
use crate::process_tree::ProcessTree;
use crate::protected::Baseline;
use crate::running::RunningCommand;
use crate::seccomp::{CompiledFilter, FilterSpec};
use crate::spawn::exec_child::Program;
use crate::spawn::setup_channel::SetupChannel;
use crate::unsandboxed;
use crate::usage::limit_watcher::LimitWatcher;
use crate::usage::shared_memory::SharedMemory;
use protocol::confinement::{Confinement, Enforced, Level, Limits, Network, Tier};
use protocol::tool::Keeper;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A cage that stands, with the command's process in it, locked and waiting for its program.
/// Dropping it ends that process.
#[derive(Debug)]
pub struct Cage {
    // Ended before the listener, so that no call waits for an answer that never comes.
    pub(crate) tree: ProcessTree,
    pub(crate) listener: Option<NotifySupervisor>,
    pub(crate) line: SetupChannel,
    pub(crate) end: OwnedFd,
    pub(crate) output: File,
    pub(crate) errors: File,
    pub(crate) baseline: Option<Baseline>,
    pub(crate) limits: Limits,
    pub(crate) network: Network,
    pub(crate) proxy_listeners: Vec<TcpListener>,
    pub(crate) shared: SharedMemory,
    /// Real paths beneath which programs can be started, where others are in sight: in tier B.
    pub(crate) runnable: Option<Vec<PathBuf>>,
    /// Real paths beneath which files can be read.
    pub(crate) readable: Vec<PathBuf>,
    /// Places of the home in which the command changes a copy.
    pub(crate) overlays: Vec<PathBuf>,
    /// Those as they are mounted, for the next calls.
    pub(crate) overlay_mounts: Vec<OwnedFd>,
}

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
        let network = effective_network(policy, wanted);
        // Looked at before the lock, from which most of the home cannot be seen.
        let mut limits = guarantees::keys(&grants);
        if policy.grants.iter().any(|rule| matches!(rule.at, GrantTarget::Project)) {
            limits.extend(guarantees::home(wanted));
        }
        privileges::drop_all()?;
        let rules = ruleset::rules(&grants.list, launch::tcp(Tier::B, network))?;
        ruleset::enforce(rules)?;
        CompiledFilter::new(&FilterSpec::in_process(network, abi))
            .and_then(|filter| filter.install())
            .map_err(CageError::from)?;
        limits.extend(guarantees::in_process_limits(abi));
        Ok(Enforced {
            tier: Tier::B,
            profile: wanted.profile.name().to_owned(),
            landlock_abi: abi,
            network: guarantees::network(Tier::B, network).to_owned(),
            namespaces: Vec::new(),
            seccomp: true,
            refusals_observable: false,
            dropped: ruleset::missing_rights(abi),
            limits,
            missing: grants.missing,
            cgroup: Vec::new(),
        })
    }

    /// Locks this process as the runner of a command of this confinement is: it may read and write
    /// what that command might, and starts nothing. To put right what such a command changed.
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
        // In tier A a project may hold what is withheld, which only the command's root leaves out.
        let means = match wanted.highest_tier {
            Tier::A => GrantVia::MountedRoot,
            Tier::B | Tier::C => GrantVia::Landlock,
        };
        Self::enter_with_policy(wanted, &policy, means)
    }

    /// Builds the cage of a command: everything but the program itself. This process becomes its
    /// runner and is locked too, outside the command's domain: it may afterwards read and write
    /// what the command may and what the policy's `runner` says beyond that, start nothing, and it
    /// has no privileges left.
    ///
    /// `mounted` is one of what an earlier cage with these overlays gave by [`Cage::take_mounted`]. Nobody
    /// else may mount them at the same time.
    ///
    /// # Errors
    /// The step that failed. Nothing was run, and this process must end: it may be locked.
    pub fn prepare(
        wanted: &Confinement,
        mounted: Option<OwnedFd>,
    ) -> Result<(Self, Enforced), CageError> {
        single_threaded()?;
        if wanted.level == Level::Uncaged {
            return launch::prepare_unsandboxed(wanted, policy::of(wanted.profile));
        }
        let abi = ruleset::abi()?;
        refuse_tier_c(wanted)?;
        let policy = policy::of(wanted.profile);
        if policy.exec == ExecRule::Refused {
            return Err(CageError::new(
                CageStep::Program,
                "this profile runs no programs; the process locks itself",
            ));
        }
        let network = effective_network(policy, wanted);
        launch::prepare(&Confinement { network, ..wanted.clone() }, mounted, policy, abi)
    }

    /// Writes what the protected names hold to this file, for [`crate::repair`], and waits until
    /// the disk has it. Nothing is written where the policy protects none.
    ///
    /// # Errors
    /// `Step::Saved`: nothing was run, and the command must not begin.
    pub fn save_baseline(&self, file: &mut File) -> Result<(), CageError> {
        let Some(before) = &self.baseline else { return Ok(()) };
        before.save(file).map_err(|error| {
            CageError::os(CageStep::Saved, "a copy of what the protected names hold", error)
        })
    }

    /// Whether it holds the command back: not where a person runs commands without a sandbox.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.listener.is_some()
    }

    /// Whether hosts are out of the command's reach, but for those of a list.
    #[must_use]
    pub fn blocks_hosts(&self) -> bool {
        self.is_locked() && self.network != Network::On
    }

    /// The listening sockets inside the command's network, to be handed to whoever carries its
    /// connections, and their addresses there; the first is for programs that take a proxy. None the
    /// second time, and where the network is no allow-list. No process of the command holds one.
    ///
    /// # Errors
    /// A socket does not say where it is.
    pub fn take_proxy_listeners(&mut self) -> io::Result<Vec<(OwnedFd, SocketAddr)>> {
        let doors = std::mem::take(&mut self.proxy_listeners).into_iter();
        doors.map(|door| door.local_addr().map(|address| (door.into(), address))).collect()
    }

    /// The overlays as they are mounted, each copy for one more cage; none the second time. What is
    /// mounted stays so while a copy or a cage with it lives.
    pub fn take_overlay_mounts(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.overlay_mounts)
    }

    /// Real paths of the home that are shown as overlays.
    #[must_use]
    pub fn overlays(&self) -> &[PathBuf] {
        &self.overlays
    }

    /// Whether the command has a root of its own, in which it finds the session's private directories:
    /// tier A.
    #[must_use]
    pub fn shows_private(&self) -> bool {
        self.tree.is_namespace()
    }

    /// Real paths beneath which the command can read.
    #[must_use]
    pub fn readable(&self) -> &[PathBuf] {
        &self.readable
    }

    /// Whether the command sees the programs in this folder and can start none of them. A shell that
    /// finds one there by PATH does not look further.
    #[must_use]
    pub fn refuses_programs_in(&self, folder: &Path) -> bool {
        let Some(runnable) = &self.runnable else { return false };
        folder.canonicalize().is_ok_and(|real| {
            // Where git is the only program, that is granted and not its folder.
            !runnable.iter().any(|place| real.starts_with(place) || place.starts_with(&real))
        })
    }

    /// The process that ends all others of this cage where the runner cannot: to be named to
    /// whoever waits for the runner's end.
    #[must_use]
    pub fn keeper(&self) -> Option<Keeper> {
        self.tree.keeper()
    }

    /// Lets the waiting process become `program`. Returns once it has, or could not.
    ///
    /// # Errors
    /// `Step::Program` in plain words where it could not be executed, `Step::Lost` where a process
    /// of the cage died before it was: nothing was run, and the cage is gone.
    pub fn spawn(mut self, program: Program) -> Result<RunningCommand, CageError> {
        if let (Some(listener), Some(path)) = (&self.listener, program.path()) {
            listener.searched(path);
        }
        self.tree.ensure_guard()?;
        program.send(&self.line)?;
        // The line closes when exec succeeds, and when the process dies before it.
        self.line.receive_ready()?;
        if !proc_stat::became_a_program(self.tree.command()) {
            return Err(CageError::new(
                CageStep::Lost,
                "the command's process ended before its program",
            ));
        }
        let bounds = LimitWatcher::new(self.limits, self.tree.group(), self.shared);
        Ok(RunningCommand {
            tree: self.tree,
            notify: self.listener,
            pidfd: self.end,
            output: Some(self.output),
            errors: Some(self.errors),
            before: self.baseline,
            limits: bounds,
        })
    }
}

/// The network that a policy leaves of the one that was asked for.
pub(crate) fn effective_network(policy: &ConfinementPolicy, wanted: &Confinement) -> Network {
    match policy.sockets {
        SocketRule::None => Network::Off,
        SocketRule::All => Network::On,
        SocketRule::ByNetwork => wanted.network,
    }
}

/// A second thread would stay outside the lock.
fn single_threaded() -> Result<(), CageError> {
    let tasks = std::fs::metadata("/proc/self/task")
        .map_err(|error| CageError::os(CageStep::Threads, "/proc/self/task", error))?;
    // A directory's links are itself, its entry above, and each directory within.
    match tasks.nlink().saturating_sub(2) {
        1 => Ok(()),
        threads => Err(CageError::new(CageStep::Threads, format!("{threads} threads are running"))),
    }
}

/// Tier C is no cage.
fn refuse_tier_c(wanted: &Confinement) -> Result<(), CageError> {
    match wanted.highest_tier {
        Tier::A | Tier::B => Ok(()),
        Tier::C => Err(CageError::new(
            CageStep::Landlock,
            "this host allows no cage (tier C), and nothing is run without one",
        )),
    }
}
