//! Landlock rulesets: the rights that a grant means, and the rights that this kernel supports.

use crate::error::{CageError, CageStep};
use crate::grants::path_grant::PathGrant;
use crate::policy::Access;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    PathBeneath, RestrictSelf, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope,
};
use std::os::fd::{AsFd, OwnedFd};

/// The oldest Landlock ABI that a cage can be built on (Linux 5.13).
pub(crate) const MIN_ABI: u32 = 1;
/// From this ABI on, files can be moved and linked between directories of the grants (Linux 5.19).
pub(crate) const REFER_ABI: u32 = 2;
/// From this ABI on, Landlock restricts truncation (Linux 6.2).
pub(crate) const TRUNCATE_ABI: u32 = 3;
/// From this ABI on, signals and abstract sockets can be confined to the domain.
pub(crate) const SCOPE_ABI: u32 = 6;
/// From this ABI on, connecting to a socket in the file system needs a right of its own.
pub(crate) const UNIX_SOCKET_ABI: u32 = 9;
/// The newest ABI that the rights below were written for.
const NEWEST_ABI: ABI = ABI::V9;

/// The ruleset's treatment of TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TcpAccess {
    /// Refused here too, in addition to the filter.
    Refused,
    /// Left to the network namespace or to the filter.
    Unrestricted,
}

/// The kernel's Landlock ABI version.
///
/// # Errors
/// `CageStep::Landlock` if Landlock is missing, switched off, or too old for any tier.
pub(crate) fn abi() -> Result<u32, CageError> {
    // This applies nothing; the landlock crate has no other way to read the version.
    let status = RestrictSelf::default()
        .no_new_privs(false)
        .apply()
        .map_err(|error| failure(CageStep::Landlock, error))?
        .landlock;
    let found = match status {
        LandlockStatus::NotEnabled => {
            return Err(CageError::new(
                CageStep::Landlock,
                "Landlock is in this kernel but switched off (boot parameter `lsm=`)",
            ));
        }
        LandlockStatus::NotImplemented => {
            return Err(CageError::new(CageStep::Landlock, "this kernel has no Landlock"));
        }
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            kernel_abi.unwrap_or(effective_abi as i32)
        }
    };
    check_abi(u32::try_from(found).unwrap_or(0))
}

/// Returns the version if a tier can be built on it.
///
/// # Errors
/// `CageStep::Landlock` if it is too old.
pub(crate) fn check_abi(found: u32) -> Result<u32, CageError> {
    if found < MIN_ABI {
        return Err(CageError::new(
            CageStep::Landlock,
            format!("this kernel's Landlock is version {found}; {MIN_ABI} is the least"),
        ));
    }
    Ok(found)
}

/// The rights of the newest ABI that a kernel with this ABI does not enforce.
pub(crate) fn missing_rights(abi: u32) -> Vec<String> {
    let known = ABI::from(i32::try_from(abi).unwrap_or(i32::MAX));
    let files = AccessFs::from_all(NEWEST_ABI) & !AccessFs::from_all(known);
    let scopes = Scope::from_all(NEWEST_ABI) & !Scope::from_all(known);
    files
        .iter()
        .map(|right| format!("{right:?}"))
        .chain(scopes.iter().map(|scope| format!("{scope:?} scope")))
        .collect()
}

/// Creates a ruleset from `grants`. Nothing is restricted yet.
///
/// # Errors
/// `CageStep::Layer` if the kernel refuses a rule.
pub(crate) fn rules(grants: &[PathGrant], tcp: TcpAccess) -> Result<RulesetCreated, CageError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .map_err(layer_error)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST_ABI))
        .map_err(layer_error)?
        .scope(Scope::from_all(NEWEST_ABI))
        .map_err(layer_error)?;
    if tcp == TcpAccess::Refused {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST_ABI)).map_err(layer_error)?;
    }
    let mut rules = ruleset.create().map_err(layer_error)?;
    for grant in grants {
        rules = add(rules, &grant.fd, grant.access)?;
    }
    Ok(rules)
}

/// Creates a ruleset that allows only to remove and rename files below `roots`.
///
/// # Errors
/// `CageStep::Layer` if the kernel refuses a rule.
pub(crate) fn removal_rules(roots: &[OwnedFd]) -> Result<RulesetCreated, CageError> {
    let renames = AccessFs::Refer | AccessFs::MakeDir;
    let rights = AccessFs::ReadDir | AccessFs::RemoveDir | AccessFs::RemoveFile | renames;
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V2))
        .map_err(layer_error)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST_ABI))
        .map_err(layer_error)?
        .create()
        .map_err(layer_error)?;
    roots.iter().try_fold(rules, |rules, root| {
        rules.add_rule(PathBeneath::new(root, rights)).map_err(layer_error)
    })
}

/// Adds one path to the ruleset.
///
/// # Errors
/// `CageStep::Layer` if the kernel refuses it.
pub(crate) fn add(
    rules: RulesetCreated,
    place: impl AsFd,
    access: Access,
) -> Result<RulesetCreated, CageError> {
    rules.add_rule(PathBeneath::new(place, rights(access))).map_err(layer_error)
}

/// Locks this process into a new domain. This cannot be undone.
///
/// # Errors
/// `CageStep::Layer` if the kernel refuses, or enforces nothing.
pub(crate) fn enforce(rules: RulesetCreated) -> Result<(), CageError> {
    let status = rules.restrict_self().map_err(layer_error)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced if status.no_new_privs => {
            Ok(())
        }
        RulesetStatus::FullyEnforced
        | RulesetStatus::PartiallyEnforced
        | RulesetStatus::NotEnforced => Err(CageError::new(
            CageStep::Layer,
            "the kernel accepted the Landlock rules and enforces none",
        )),
    }
}

/// The Landlock rights of an access level of the policy. No grant allows device nodes to be made,
/// and only terminals may be controlled by ioctl.
fn rights(access: Access) -> BitFlags<AccessFs> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = read
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::RemoveDir
        | AccessFs::RemoveFile
        | AccessFs::MakeDir
        | AccessFs::MakeReg
        | AccessFs::MakeSock
        | AccessFs::MakeFifo
        | AccessFs::MakeSym
        | AccessFs::Refer
        | AccessFs::ResolveUnix;
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    match access {
        Access::List => AccessFs::ReadDir.into(),
        Access::Read => read,
        Access::Run => read | AccessFs::Execute,
        Access::Write => write,
        Access::Build => write | AccessFs::Execute,
        Access::Device => device,
        Access::Terminal => device | AccessFs::ReadDir | AccessFs::IoctlDev,
    }
}

fn layer_error(error: RulesetError) -> CageError {
    failure(CageStep::Layer, error)
}

fn failure(step: CageStep, error: RulesetError) -> CageError {
    CageError::os(step, "Landlock", std::io::Error::other(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_old_kernel_drops_has_names() {
        assert_eq!(
            missing_rights(7),
            ["ResolveUnix"],
            "ABI 7 knows everything but connections to sockets"
        );
        let old = missing_rights(3);
        assert!(old.contains(&"IoctlDev".to_owned()), "{old:?}");
        assert!(old.contains(&"Signal scope".to_owned()), "{old:?}");
        assert!(missing_rights(9).is_empty());
        assert!(missing_rights(99).is_empty(), "a newer kernel drops nothing");
    }

    /// Every existing version and one more: its sufficiency, and the rights that it lacks.
    #[test]
    fn each_version_has_its_losses() {
        let sockets = "ResolveUnix";
        let scopes = ["AbstractUnixSocket scope", "Signal scope"];
        let table: [(u32, bool, &[&str]); 10] = [
            (1, true, &["Refer", "Truncate", "IoctlDev", sockets, scopes[0], scopes[1]]),
            (2, true, &["Truncate", "IoctlDev", sockets, scopes[0], scopes[1]]),
            (3, true, &["IoctlDev", sockets, scopes[0], scopes[1]]),
            // TCP, which tier B refuses by the filter too.
            (4, true, &["IoctlDev", sockets, scopes[0], scopes[1]]),
            (5, true, &[sockets, scopes[0], scopes[1]]),
            (6, true, &[sockets]),
            (7, true, &[sockets]),
            (8, true, &[sockets]),
            (9, true, &[]),
            (10, true, &[]),
        ];
        for (abi, is_enough, losses) in table {
            assert_eq!(check_abi(abi).is_ok(), is_enough, "version {abi}");
            assert_eq!(missing_rights(abi), losses, "version {abi}");
        }
        assert!(check_abi(0).is_err(), "none at all");
    }

    #[test]
    fn only_terminals_are_controlled_and_nobody_makes_devices() {
        for access in [
            Access::List,
            Access::Read,
            Access::Run,
            Access::Write,
            Access::Build,
            Access::Device,
            Access::Terminal,
        ] {
            let rights = rights(access);
            assert!(!rights.contains(AccessFs::MakeChar));
            assert!(!rights.contains(AccessFs::MakeBlock));
            assert_eq!(rights.contains(AccessFs::IoctlDev), access == Access::Terminal);
            assert_eq!(rights.contains(AccessFs::MakeReg), access.writes());
        }
    }
}
