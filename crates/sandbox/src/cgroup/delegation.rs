//! Decides if agentd may arrange a cgroup, and explains a refusal. Pure; used by `inspect` and
//! `setup`.
//!
//! agentd changes only a cgroup that was delegated to it. Write access is not enough: root can
//! write to every cgroup, and a user to the cgroups of all services that run as that user. A cgroup
//! counts as delegated in two cases. A service manager marked it, or another user gave it to this
//! user: then it belongs to this user and its parent does not.

use std::fmt;
use std::path::PathBuf;

/// A limit that a cgroup can enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controller {
    /// All memory of its processes, including files in memory.
    Memory,
    /// Number of its processes and threads at once.
    Processes,
}

impl Controller {
    /// Both controllers.
    pub const ALL: [Self; 2] = [Self::Memory, Self::Processes];

    /// The kernel's name of the controller.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Processes => "pids",
        }
    }

    /// The name of the limit in records.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Processes => "processes",
        }
    }
}

/// Availability of a cgroup for each command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delegation {
    /// Each command gets one.
    Available {
        /// The directory in which they are created.
        base: PathBuf,
        /// The limits that they can enforce: at least one.
        controllers: Vec<Controller>,
    },
    /// Commands get none.
    Unavailable(NoDelegation),
}

/// Why commands get no cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoDelegation {
    /// The kernel offers only cgroup version 1, or version 2 is not mounted.
    NoVersion2,
    /// The cgroup of this process is not below a mount.
    OutOfSight,
    /// It offers neither the memory nor the pids controller.
    NoControllers(PathBuf),
    /// It is the root cgroup of the machine.
    Root,
    /// It is a threaded cgroup, which cannot limit memory.
    Threaded,
    /// It is mounted read-only, as in most containers.
    ReadOnly(PathBuf),
    /// It belongs to another user.
    NotOwned(PathBuf),
    /// It belongs to this user, but was not delegated.
    Unmarked(PathBuf),
    /// Other programs run in it, and agentd would have to move them.
    Shared(PathBuf, Vec<(u32, String)>),
    /// It was delegated, but setting it up failed.
    Failed(String),
}

impl fmt::Display for NoDelegation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoVersion2 => f.write_str("this machine has no cgroup version 2"),
            Self::OutOfSight => f.write_str("the cgroup of this process is not mounted here"),
            Self::NoControllers(base) => {
                write!(f, "{} offers neither memory nor pids", base.display())
            }
            Self::Root => {
                f.write_str("this process is in the root cgroup, which agentd does not change")
            }
            Self::Threaded => f.write_str("this process is in a threaded cgroup"),
            Self::ReadOnly(base) => write!(f, "{} is mounted read-only", base.display()),
            Self::NotOwned(base) => write!(f, "{} belongs to another user", base.display()),
            Self::Unmarked(base) => write!(f, "{} was not delegated", base.display()),
            Self::Shared(base, others) => {
                write!(f, "other programs run in {}: ", base.display())?;
                let named = others.iter().take(3).map(|(pid, name)| format!("{name} ({pid})"));
                f.write_str(&named.collect::<Vec<_>>().join(", "))?;
                if others.len() > 3 { write!(f, " and {} more", others.len() - 3) } else { Ok(()) }
            }
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl NoDelegation {
    /// A remedy for the user.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoVersion2 | Self::NoControllers(_) => {
                "boot with memory and pids in version 2 (systemd.unified_cgroup_hierarchy=1); then `systemd-run --user --scope -p Delegate=yes agentd` gives each command its own cgroup"
            }
            Self::OutOfSight | Self::ReadOnly(_) => {
                "in a container, agentd needs a writable /sys/fs/cgroup and a directory in it that belongs to this user"
            }
            Self::Root
            | Self::Threaded
            | Self::NotOwned(_)
            | Self::Unmarked(_)
            | Self::Shared(..)
            | Self::Failed(_) => {
                "`systemd-run --user --scope -p Delegate=yes agentd` gives each command its own cgroup, as does `Delegate=yes` in the unit of `agentd daemon run`; stop a running daemon first"
            }
        }
    }
}

/// The owner of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CgroupOwner {
    Us,
    Root,
    /// Another user, or an unknown one.
    Other,
}

/// A service manager's mark on the cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DelegationMark {
    Delegated,
    None,
}

/// This process's write access to the cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteAccess {
    Allowed,
    Refused,
    ReadOnly,
}

/// The facts about a cgroup directory that `judge` needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CgroupFacts {
    pub base: PathBuf,
    /// Content of `cgroup.type`, which the root cgroup does not have.
    pub kind: Option<String>,
    pub owner: CgroupOwner,
    /// Owner of the parent directory.
    pub above: CgroupOwner,
    pub mark: DelegationMark,
    pub writing: WriteAccess,
    /// Content of `cgroup.controllers`.
    pub controllers: String,
    /// Processes in it that are not agentd's.
    pub others: Vec<(u32, String)>,
    /// `Root` if this process is root, who owns every cgroup by default.
    pub user: CgroupOwner,
}

/// Decides if agentd may arrange the cgroup.
pub(super) fn judge(facts: CgroupFacts) -> Delegation {
    let CgroupFacts { base, kind, owner, above, mark, writing, controllers, others, user } = facts;
    let offered = |one: &Controller| controllers.split_whitespace().any(|name| name == one.name());
    let controllers: Vec<Controller> = Controller::ALL.into_iter().filter(offered).collect();
    if controllers.is_empty() {
        return Delegation::Unavailable(NoDelegation::NoControllers(base));
    }
    match kind.as_deref().map(str::trim) {
        None => return Delegation::Unavailable(NoDelegation::Root),
        Some("domain") => {}
        Some(_) => return Delegation::Unavailable(NoDelegation::Threaded),
    }
    match writing {
        WriteAccess::ReadOnly => return Delegation::Unavailable(NoDelegation::ReadOnly(base)),
        WriteAccess::Refused => return Delegation::Unavailable(NoDelegation::NotOwned(base)),
        WriteAccess::Allowed => {}
    }
    let given = match (mark, owner) {
        (DelegationMark::Delegated, CgroupOwner::Us) => true,
        // root owns its cgroups by default, so only the mark counts.
        (DelegationMark::None, CgroupOwner::Us) => {
            user != CgroupOwner::Root && above != CgroupOwner::Us
        }
        (
            DelegationMark::Delegated | DelegationMark::None,
            CgroupOwner::Root | CgroupOwner::Other,
        ) => {
            return Delegation::Unavailable(NoDelegation::NotOwned(base));
        }
    };
    if !given {
        return Delegation::Unavailable(NoDelegation::Unmarked(base));
    }
    if !others.is_empty() {
        return Delegation::Unavailable(NoDelegation::Shared(base, others));
    }
    Delegation::Available { base, controllers }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user's scope that was started with `Delegate=yes`.
    fn scope() -> CgroupFacts {
        CgroupFacts {
            base: "/c/run-u7.scope".into(),
            kind: Some("domain\n".to_owned()),
            owner: CgroupOwner::Us,
            above: CgroupOwner::Us,
            mark: DelegationMark::Delegated,
            writing: WriteAccess::Allowed,
            controllers: "cpu memory pids\n".to_owned(),
            others: Vec::new(),
            user: CgroupOwner::Other,
        }
    }

    fn reason(change: impl FnOnce(&mut CgroupFacts)) -> Option<NoDelegation> {
        let mut facts = scope();
        change(&mut facts);
        match judge(facts) {
            Delegation::Available { .. } => None,
            Delegation::Unavailable(reason) => Some(reason),
        }
    }

    #[test]
    fn what_was_given_is_ours_and_says_what_it_holds() {
        let base = PathBuf::from("/c/run-u7.scope");
        let here = |controllers: &[Controller]| Delegation::Available {
            base: base.clone(),
            controllers: controllers.to_vec(),
        };
        assert_eq!(judge(scope()), here(&Controller::ALL));
        let pids = CgroupFacts { controllers: "cpuset pids".to_owned(), ..scope() };
        assert_eq!(judge(pids), here(&[Controller::Processes]));
        // Root gave a directory to a user by hand, or a container's unit did.
        assert_eq!(
            reason(|facts| (facts.mark, facts.above) = (DelegationMark::None, CgroupOwner::Root)),
            None
        );
        // A service of root's with `Delegate=yes`.
        assert_eq!(reason(|facts| facts.user = CgroupOwner::Root), None);
    }

    #[test]
    fn what_nobody_gave_us_stays_as_it_is() {
        let base = PathBuf::from("/c/run-u7.scope");
        assert_eq!(reason(|facts| facts.kind = None), Some(NoDelegation::Root));
        for kind in ["threaded", "domain threaded", "domain invalid"] {
            assert_eq!(
                reason(|facts| facts.kind = Some(kind.to_owned())),
                Some(NoDelegation::Threaded)
            );
        }
        // A terminal's scope below the user's manager: it belongs to this user and was not
        // delegated.
        let unmarked = Some(NoDelegation::Unmarked(base.clone()));
        assert_eq!(reason(|facts| facts.mark = DelegationMark::None), unmarked);
        // Root's shell, or a service without the mark: root owns everything.
        let roots = |facts: &mut CgroupFacts| {
            (facts.user, facts.above, facts.mark) =
                (CgroupOwner::Root, CgroupOwner::Other, DelegationMark::None);
        };
        assert_eq!(reason(roots), unmarked);
        // A login's scope, which belongs to root.
        let others = Some(NoDelegation::NotOwned(base.clone()));
        assert_eq!(reason(|facts| facts.owner = CgroupOwner::Root), others);
        assert_eq!(reason(|facts| facts.writing = WriteAccess::Refused), others);
        let locked = Some(NoDelegation::ReadOnly(base.clone()));
        assert_eq!(reason(|facts| facts.writing = WriteAccess::ReadOnly), locked, "a container");
        let bare = Some(NoDelegation::NoControllers(base.clone()));
        assert_eq!(reason(|facts| facts.controllers = "hugetlb".to_owned()), bare, "hybrid");
        let others = vec![(7, "bash".to_owned())];
        let shared = Some(NoDelegation::Shared(base, others.clone()));
        assert_eq!(reason(|facts| facts.others = others), shared);
    }

    #[test]
    fn each_reason_has_words_and_a_way_on() {
        let many = (1..=5).map(|pid| (pid, "sh".to_owned())).collect();
        let said = NoDelegation::Shared("/c".into(), many).to_string();
        assert_eq!(said, "other programs run in /c: sh (1), sh (2), sh (3) and 2 more");
        for reason in
            [NoDelegation::NoVersion2, NoDelegation::Root, NoDelegation::Unmarked("/c".into())]
        {
            assert!(reason.hint().contains("Delegate=yes"), "{reason}");
        }
    }
}
