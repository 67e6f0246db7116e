//! The runner's way from a policy to a waiting command, for each tier. For `cage` only.
//!
//! The order is the one that was found to work; the crate's note says what fails otherwise.

use crate::cage::Cage;
use crate::claims::{self, Bounded, Ground, Held, Observed};
use crate::error::{CageError, Step};
use crate::fence::Fence;
use crate::grants::{Grants, Means};
use crate::handover::Line;
use crate::inert::Inert;
use crate::layer::{self, Tcp};
use crate::listener::{Listener, Signals, Watch};
use crate::policy::Policy;
use crate::privileges::{self, Counting};
use crate::seccomp::{Filter, InstallError, Plan, Reporting};
use crate::sys;
use crate::tree::{Bond, Tree};
use landlock::RulesetCreated;
use nix::sys::prctl;
use protocol::confinement::{Confinement, Enforced, Network, Tier};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;

/// Builds the strongest cage that is wanted and that this host allows.
///
/// # Errors
/// The step that failed.
pub(crate) fn prepare(
    wanted: &Confinement,
    policy: &Policy,
    abi: u32,
) -> Result<(Cage, Enforced), CageError> {
    tier_b(wanted, policy, abi)
}

/// Landlock and seccomp alone; this process is the subreaper.
fn tier_b(wanted: &Confinement, policy: &Policy, abi: u32) -> Result<(Cage, Enforced), CageError> {
    prctl::set_child_subreaper(true)
        .map_err(|error| CageError::os(Step::Fork, "becoming the subreaper", error))?;
    let grants = Grants::find(wanted, policy, Means::Layer)?;
    let watch = watch(wanted, &grants, Tier::B, abi)?;
    let rules = layer::rules(&grants, tcp(Tier::B, wanted.network))?;
    privileges::drop_all()?;
    let inner = copy(&rules)?;
    let fence = Fence::raise(rules)?;
    let cage = Launch {
        wanted,
        watch,
        rules: inner,
        root: None,
        counting: Counting::Shared,
        bond: Bond::Domain { fence, guard: None },
    }
    .launch()?;
    let ground = Ground {
        tier: Tier::B,
        abi,
        network: wanted.network,
        bounded: Bounded::Not,
        observed: observed(&cage),
        held: match fence {
            Some(_) => Held::ByKernel,
            None => Held::ByRunner,
        },
    };
    let enforced = enforced(wanted, ground, Vec::new(), grants.missing);
    Ok((cage, enforced))
}

/// What it takes to start the command's process.
struct Launch<'a> {
    wanted: &'a Confinement,
    watch: Watch,
    /// The command's own layer; this process entered its layer already.
    rules: RulesetCreated,
    root: Option<OwnedFd>,
    counting: Counting,
    bond: Bond,
}

impl Launch<'_> {
    /// Forks the command's process and waits until it has locked itself.
    fn launch(self) -> Result<Cage, CageError> {
        let piped = |error| CageError::os(Step::Handover, "a pipe for the output", error);
        let filter = Filter::new(&self.watch.plan).map_err(filter_error)?;
        let silent = Filter::new(&Plan { reporting: Reporting::Errno, ..self.watch.plan })
            .map_err(filter_error)?;
        let (output, its_output) = std::io::pipe().map_err(piped)?;
        let (errors, its_errors) = std::io::pipe().map_err(piped)?;
        let (line, its_line) = Line::pair()?;
        let inert = Inert {
            input: nothing()?,
            output: its_output.into(),
            errors: its_errors.into(),
            root: self.root,
            rules: self.rules,
            filter,
            silent,
            limits: self.wanted.limits,
            counting: self.counting,
        };
        let command = sys::fork(move || inert.run(&its_line))
            .map_err(|error| CageError::os(Step::Fork, "the command's process", error))?;
        let mut tree = Tree::new(command, self.bond);
        let end = sys::pidfd(command)
            .map_err(|error| CageError::os(Step::Fork, "a handle on the command", error))?;
        // The command has what it needs of them; in tier A this is the moment.
        privileges::drop_all()?;
        tree.set_guard()?;
        let mut ready = line.await_ready()?;
        let listener = match ready.descriptors.pop() {
            Some(notify) => Some(
                Listener::start(notify, self.watch)
                    .map_err(|error| CageError::os(Step::Listener, "its thread", error))?,
            ),
            None => None,
        };
        Ok(Cage {
            tree,
            listener,
            line,
            end,
            output: File::from(OwnedFd::from(output)),
            errors: File::from(OwnedFd::from(errors)),
        })
    }
}

/// What a process without input reads.
pub(crate) fn nothing() -> Result<OwnedFd, CageError> {
    File::open("/dev/null")
        .map(OwnedFd::from)
        .map_err(|error| CageError::os(Step::Handover, "/dev/null", error))
}

/// What the listener has to know. To be made before this process locks itself.
fn watch(wanted: &Confinement, grants: &Grants, tier: Tier, abi: u32) -> Result<Watch, CageError> {
    let writable: Vec<_> = grants
        .list
        .iter()
        .filter(|grant| grant.access.writes())
        .map(|grant| grant.path.clone())
        .collect();
    let place = |path: &str| {
        File::options()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open(path)
            .map(OwnedFd::from)
            .map_err(|error| CageError::os(Step::Listener, path, error))
    };
    Ok(Watch {
        plan: Plan::command(tier, wanted.network),
        tier,
        network: wanted.network,
        signals: if abi >= layer::SCOPES || tier == Tier::A {
            Signals::Scoped
        } else {
            Signals::Open
        },
        sockets: writable.clone(),
        writable,
        read_only: grants.protected.clone(),
        host: place("/")?,
        proc: place("/proc")?,
    })
}

/// The record of what holds.
fn enforced(
    wanted: &Confinement,
    ground: Ground,
    namespaces: Vec<String>,
    missing: Vec<String>,
) -> Enforced {
    Enforced {
        tier: ground.tier,
        profile: wanted.profile.name().to_owned(),
        landlock_abi: ground.abi,
        network: claims::network(ground.tier, ground.network).to_owned(),
        namespaces,
        seccomp: true,
        refusals_observable: ground.observed == Observed::Refusals,
        dropped: layer::dropped(ground.abi),
        limits: claims::limits(ground),
        missing,
    }
}

fn observed(cage: &Cage) -> Observed {
    match cage.listener {
        Some(_) => Observed::Refusals,
        None => Observed::Nothing,
    }
}

/// Whether the layer refuses TCP too. Not in tier A, where loopback of the own namespace works.
pub(crate) fn tcp(tier: Tier, network: Network) -> Tcp {
    match (tier, network) {
        (Tier::B | Tier::C, Network::Off) => Tcp::Refused,
        (Tier::A, Network::Off | Network::On) | (Tier::B | Tier::C, Network::On) => Tcp::Free,
    }
}

/// The rules once more, for the command's own layer.
fn copy(rules: &RulesetCreated) -> Result<RulesetCreated, CageError> {
    rules
        .try_clone()
        .map_err(|error| CageError::os(Step::Layer, "a second handle on the rules", error))
}

/// Which step a filter's failure belongs to.
pub(crate) fn filter_error(error: InstallError) -> CageError {
    let step = match &error {
        InstallError::NoNewPrivs(_) => Step::Privileges,
        InstallError::Filter(_) | InstallError::TooLong => Step::Filter,
        InstallError::Listener(_) => Step::Listener,
    };
    CageError::os(step, "seccomp", std::io::Error::other(error))
}
