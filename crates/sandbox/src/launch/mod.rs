//! The runner's way from a policy to a waiting command, for each tier. For `cage` only.
//!
//! Only this order of steps works; the crate's README says how other orders fail.

pub(crate) mod enforced;
mod notify_config;
mod start_command;
mod tier_a;
mod tier_b;

use self::start_command::CageLaunch;
use self::tier_a::tier_a;
use self::tier_b::tier_b;
use crate::cage::Cage;
use crate::cgroup::CommandCgroup;
use crate::enter::{refuse_tier_c, single_threaded};
use crate::error::{CageError, CageStep};
use crate::grants::{self, GrantVia, Grants};
use crate::guarantees::TreeEndedBy;
use crate::landlock::ruleset;
use crate::lock::effective_network;
use crate::namespaces::{self, UserNs};
use crate::network_namespace::{Inherited, Ownership};
use crate::policy::{self, ConfinementPolicy, ExecRule};
use crate::privileges::{self, NprocScope};
use crate::process_tree::Containment;
use crate::protection_limits::protection_limits;
use crate::unsandboxed;
use crate::usage::shared_memory::SharedMemory;
use nix::errno::Errno;
use nix::sys::prctl;
use protocol::confinement::{Confinement, Enforced, Level, Network, Tier};

/// Builds the strongest cage that is wanted and that this host allows.
///
/// # Errors
/// The step that failed.
fn prepare(
    wanted: &Confinement,
    inherited: Inherited,
    policy: &ConfinementPolicy,
    abi: u32,
) -> Result<(Cage, Enforced), CageError> {
    grants::check_private_dirs(wanted)?;
    let Inherited { overlays, network } = inherited;
    let ownership = Ownership::present();
    let joined = wanted.joins.map(|_| namespaces::join(&network, wanted)).transpose()?;
    match wanted.highest_tier {
        Tier::A => match namespaces::enter_user_ns(ownership)? {
            UserNs::Refused(errno) if joined.is_some() => Err(CageError::os(
                CageStep::Namespaces,
                "a user namespace in another call's",
                errno,
            )
            .hint("end the commands that run in the background, and try again")),
            UserNs::Refused(errno) => {
                refuse_allow_list(wanted, &format!("this host refuses them ({errno})"))?;
                refuse_lower_tier(wanted, errno)?;
                let (cage, mut enforced) = tier_b(wanted, policy, abi)?;
                let limit = format!("Namespaces were refused ({errno}), so tier B holds.");
                enforced.limits.insert(0, limit);
                Ok((cage, enforced))
            }
            left @ (UserNs::NotNeeded | UserNs::Entered) => {
                tier_a(wanted, (policy, overlays, joined), abi, left)
            }
        },
        Tier::B | Tier::C => {
            refuse_allow_list(wanted, "tier B does without")?;
            tier_b(wanted, policy, abi)
        }
    }
}

/// Nothing but a network of its own keeps a command from going around a list.
fn refuse_allow_list(wanted: &Confinement, why: &str) -> Result<(), CageError> {
    match wanted.network {
        Network::Off | Network::On => Ok(()),
        Network::Listed => Err(CageError::new(
            CageStep::Namespaces,
            format!("an allow-list of hosts needs namespaces, and {why}"),
        )
        .hint("switch the network off, or on as a whole: `:net off`, `:net on`, `--net`")),
    }
}

/// Tier B claims less than the tier that was asked for, and only best-effort accepts that.
fn refuse_lower_tier(wanted: &Confinement, errno: Errno) -> Result<(), CageError> {
    match wanted.level {
        Level::BestEffort => Ok(()),
        Level::Required | Level::Uncaged => Err(CageError::new(
            CageStep::Namespaces,
            format!("tier A needs them, and this host refuses them ({errno})"),
        )
        .hint(
            "`sandbox.level = \"best-effort\"` accepts tier B where a person sits before the session, `sandbox.tier = \"b\"` does without namespaces always",
        )),
    }
}

/// The same without Landlock and seccomp. Timeout, termination and limits hold as in a cage, and
/// protected files are restored afterwards.
///
/// # Errors
/// The step that failed.
fn prepare_unsandboxed(
    wanted: &Confinement,
    policy: &ConfinementPolicy,
) -> Result<(Cage, Enforced), CageError> {
    refuse_allow_list(wanted, "this host makes none")?;
    prctl::set_child_subreaper(true)
        .map_err(|error| CageError::os(CageStep::Fork, "becoming the subreaper", error))?;
    let (group, without) = CommandCgroup::for_command(wanted);
    let held = if group.is_some() { TreeEndedBy::Cgroup } else { TreeEndedBy::Runner };
    let mut grants = Grants::open_all(wanted, policy, GrantVia::Landlock)?;
    privileges::outrun_fork_bombs(&wanted.limits, group.as_ref());
    let cage = CageLaunch {
        wanted,
        lock: None,
        baseline: grants.baseline.take(),
        inside: None,
        counting: NprocScope::Shared,
        bond: Containment::Domain { signal_scope: None, guard: None },
        group,
        shared: SharedMemory::unobserved(),
    }
    .launch()?;
    let mut enforced = unsandboxed::enforced(wanted, held, grants.missing);
    enforced.cgroup = cage.tree.cgroup().map(CommandCgroup::enforced_limits).unwrap_or_default();
    enforced.limits.extend(protection_limits(cage.baseline.as_ref()).into_iter().chain(without));
    Ok((cage, enforced))
}

impl Cage {
    /// Builds the cage of a command, except for starting its program. This process becomes the
    /// command's runner and is locked too, outside the command's Landlock domain. Afterwards it may
    /// read and write the command's files and those of the policy's `runner` rules. It can start
    /// nothing and has no privileges left.
    ///
    /// # Errors
    /// The step that failed. Nothing was run, and this process must end: it may be locked.
    pub fn prepare(
        wanted: &Confinement,
        inherited: Inherited,
    ) -> Result<(Self, Enforced), CageError> {
        single_threaded()?;
        if wanted.level == Level::Uncaged {
            return prepare_unsandboxed(wanted, policy::of(wanted.profile));
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
        prepare(&Confinement { network, ..wanted.clone() }, inherited, policy, abi)
    }
}
