//! Whether a cgroup is ours to arrange, and if not, why, in words. Pure; for `find` and `settle`.
//!
//! A cgroup that nobody gave us is never touched, although root could write to each, and a user to
//! those of all services that run as that user. Ours is one that a service manager marked as delegated, or
//! that somebody else gave this user: it belongs to us, and the one above it does not.

use std::fmt;
use std::path::PathBuf;

/// What a cgroup can hold of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controller {
    /// All that its processes keep in memory, files in memory included.
    Memory,
    /// Its processes and threads at once.
    Processes,
}

impl Controller {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Memory, Self::Processes];

    /// As the kernel names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Processes => "pids",
        }
    }

    /// As records name what it holds.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Processes => "processes",
        }
    }
}

/// Whether commands get a cgroup each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delegation {
    /// They do.
    Available {
        /// In which they are made.
        base: PathBuf,
        /// What they can hold: one of both, or both.
        controllers: Vec<Controller>,
    },
    /// They do not.
    Unavailable(NoDelegation),
}

/// Why commands get no cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoDelegation {
    /// The kernel has version 1 alone, or nothing of it is mounted.
    NoVersion2,
    /// Ours is not below what is mounted.
    OutOfSight,
    /// It offers neither of the two.
    NoControllers(PathBuf),
    /// It is the whole machine's.
    Root,
    /// It is for threads, which memory cannot be held of.
    Threaded,
    /// Mounted read-only, as in most containers.
    ReadOnly(PathBuf),
    /// It belongs to somebody else.
    NotOwned(PathBuf),
    /// It is this user's, and nobody said that it may be arranged.
    Unmarked(PathBuf),
    /// Other programs run in it, which would have to be moved.
    Shared(PathBuf, Vec<(u32, String)>),
    /// It should have worked.
    Failed(String),
}

impl fmt::Display for NoDelegation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoVersion2 => f.write_str("this machine has no cgroup version 2"),
            Self::OutOfSight => f.write_str("the one of this process is not mounted here"),
            Self::NoControllers(base) => {
                write!(f, "{} offers neither memory nor pids", base.display())
            }
            Self::Root => {
                f.write_str("this process is in the whole machine's, which stays as it is")
            }
            Self::Threaded => f.write_str("this process is in one for threads"),
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
    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoVersion2 | Self::NoControllers(_) => {
                "with memory and pids in version 2 (systemd.unified_cgroup_hierarchy=1 at boot), `systemd-run --user --scope -p Delegate=yes agentd` gives each command its own"
            }
            Self::OutOfSight | Self::ReadOnly(_) => {
                "in a container it takes a writable /sys/fs/cgroup with a directory of this user's for agentd"
            }
            Self::Root
            | Self::Threaded
            | Self::NotOwned(_)
            | Self::Unmarked(_)
            | Self::Shared(..)
            | Self::Failed(_) => {
                "`systemd-run --user --scope -p Delegate=yes agentd` gives each command its own, as does `Delegate=yes` in the unit of `agentd daemon run`; end a running daemon first"
            }
        }
    }
}

/// Who a directory belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CgroupOwner {
    Us,
    Root,
    /// Somebody else, or nobody that can be seen.
    Other,
}

/// Whether a service manager says that it may be arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DelegationMark {
    Delegated,
    None,
}

/// What it lets us do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteAccess {
    Allowed,
    Refused,
    ReadOnly,
}

/// What was seen of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CgroupFacts {
    pub base: PathBuf,
    /// Its `cgroup.type`, which the root of all has not.
    pub kind: Option<String>,
    pub owner: CgroupOwner,
    /// Whose the directory above is.
    pub above: CgroupOwner,
    pub mark: DelegationMark,
    pub writing: WriteAccess,
    /// Its `cgroup.controllers`.
    pub controllers: String,
    /// Processes in it that are not ours.
    pub others: Vec<(u32, String)>,
    /// Whether this process is root, to whom all belong that nobody was given.
    pub user: CgroupOwner,
}

/// Whether it is ours to arrange.
pub(super) fn judge(look: CgroupFacts) -> Delegation {
    let CgroupFacts { base, kind, owner, above, mark, writing, controllers, others, user } = look;
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
        // What is root's belongs to root by itself: only the mark counts.
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
        let mut look = scope();
        change(&mut look);
        match judge(look) {
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
        // Root gave a user a directory by hand, or by the unit of a container.
        assert_eq!(
            reason(|look| (look.mark, look.above) = (DelegationMark::None, CgroupOwner::Root)),
            None
        );
        // A service of root's with `Delegate=yes`.
        assert_eq!(reason(|look| look.user = CgroupOwner::Root), None);
    }

    #[test]
    fn what_nobody_gave_us_stays_as_it_is() {
        let base = PathBuf::from("/c/run-u7.scope");
        assert_eq!(reason(|look| look.kind = None), Some(NoDelegation::Root));
        for kind in ["threaded", "domain threaded", "domain invalid"] {
            assert_eq!(
                reason(|look| look.kind = Some(kind.to_owned())),
                Some(NoDelegation::Threaded)
            );
        }
        // A terminal's scope below the user's manager: this user's, and not for this.
        let unmarked = Some(NoDelegation::Unmarked(base.clone()));
        assert_eq!(reason(|look| look.mark = DelegationMark::None), unmarked);
        // Root's shell, or a service without the mark: everything is root's.
        let roots = |look: &mut CgroupFacts| {
            (look.user, look.above, look.mark) =
                (CgroupOwner::Root, CgroupOwner::Other, DelegationMark::None);
        };
        assert_eq!(reason(roots), unmarked);
        // A login's scope, which belongs to root.
        let others = Some(NoDelegation::NotOwned(base.clone()));
        assert_eq!(reason(|look| look.owner = CgroupOwner::Root), others);
        assert_eq!(reason(|look| look.writing = WriteAccess::Refused), others);
        let locked = Some(NoDelegation::ReadOnly(base.clone()));
        assert_eq!(reason(|look| look.writing = WriteAccess::ReadOnly), locked, "a container");
        let bare = Some(NoDelegation::NoControllers(base.clone()));
        assert_eq!(reason(|look| look.controllers = "hugetlb".to_owned()), bare, "hybrid");
        let others = vec![(7, "bash".to_owned())];
        let shared = Some(NoDelegation::Shared(base, others.clone()));
        assert_eq!(reason(|look| look.others = others), shared);
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
