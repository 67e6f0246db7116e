//! Plan of the mounts of tier A's root, made from the grants. A path that was not granted does not
//! exist in the root. The plan is pure: it touches no file.

use super::hosts_file::HOSTS_PATH;
use super::mount_point::{MountPointKind, PrivateDirs};
use crate::grants::Grants;
use crate::policy::{Access, FreshMount};
use crate::resolved_path::PathLink;
use nix::errno::Errno;
use std::path::{Path, PathBuf};

/// The usual links of `/dev`.
const DEV_LINKS: [(&str, &str); 5] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    // The multiplexer of the cage's own terminals; the host's would make terminals there.
    ("/dev/ptmx", "pts/ptmx"),
];

/// Kind of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MountKind {
    /// A tree of the host, read-only.
    ReadOnly,
    /// The same, and no program in it can be started.
    ReadOnlyNoExec,
    /// A device of the host.
    Device,
    /// A tree of the host below changes of the project's commands.
    Overlay,
    /// A tree of the host, writable.
    Writable,
    /// Bound onto itself, so that it cannot be moved away.
    Pinned,
    /// Bound onto itself and read-only.
    Sealed,
    /// Something empty.
    Empty,
    /// The names of an allow-list's hosts.
    HostsFile,
    Proc,
    Pts,
    Shm,
}

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RootMount {
    pub(super) at: PathBuf,
    /// The host's path that is shown there. It differs from `at` for private directories only.
    pub(super) host: PathBuf,
    pub(super) kind: MountKind,
    pub(super) shape: MountPointKind,
    /// Set for an overlay.
    pub(super) overlay: Option<OverlaySource>,
}

/// Source of an overlay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OverlaySource {
    /// With the changes; on the host.
    pub(super) directory: PathBuf,
    /// Kind of the mount if the kernel refuses the overlay.
    pub(super) without: MountKind,
}

/// Paths that a mount restricts further than Landlock, which adds the rights of the directory
/// around a mount. Empty in tier B, which has no mounts.
#[derive(Debug, Default)]
pub(crate) struct MountRestrictions {
    /// Read-only paths within writable directories.
    pub(crate) read_only: Vec<PathBuf>,
    /// No program can be started there.
    pub(crate) no_exec: Vec<PathBuf>,
}

/// The mounts and links of a root, in order.
#[derive(Debug, Default, Clone)]
pub(crate) struct MountPlan {
    pub(super) mounts: Vec<RootMount>,
    pub(super) links: Vec<PathLink>,
    /// Where commands may have put anything in the way of a mount.
    pub(super) private: PrivateDirs,
    /// Those of the sealed directories where files are made that leave them sealed.
    pub(super) staging_dirs: Vec<PathBuf>,
    /// Text that replaces the machine's `/etc/hosts`.
    pub(super) hosts: Option<String>,
    /// The most that may lie in `/dev/shm`; 0 where there is no bound.
    pub(super) memory: u64,
}

impl MountPlan {
    /// The root for these grants.
    pub(crate) fn new(grants: &Grants, memory: u64) -> Self {
        let mut mounts: Vec<RootMount> = grants
            .list
            .iter()
            .filter(|grant| grant.path != Path::new("/dev/ptmx"))
            .map(|grant| {
                let plain = match grant.fresh {
                    Some(FreshMount::Proc) => MountKind::Proc,
                    Some(FreshMount::Pts) => MountKind::Pts,
                    Some(FreshMount::Shm) => MountKind::Shm,
                    None if grant.access.is_device() => MountKind::Device,
                    None if grant.access.writes() => MountKind::Writable,
                    None if grants.is_no_exec(grant) => MountKind::ReadOnlyNoExec,
                    None => MountKind::ReadOnly,
                };
                let over = |directory| OverlaySource { directory, without: plain };
                let overlay = grant.overlay.clone().map(over);
                RootMount {
                    at: grant.path.clone(),
                    host: grant.host.clone(),
                    kind: if overlay.is_some() { MountKind::Overlay } else { plain },
                    shape: if grant.is_dir { MountPointKind::Dir } else { MountPointKind::File },
                    overlay,
                }
            })
            .collect();
        mounts.extend(grants.covered.iter().map(|at| RootMount::new_at(at, MountKind::Empty)));
        mounts.extend(
            grants.protection.paths.iter().map(|at| RootMount::new_at(at, MountKind::Sealed)),
        );
        let roots: Vec<&Path> = grants
            .list
            .iter()
            .filter(|grant| grant.access.writes())
            .map(|grant| grant.path.as_path())
            .collect();
        let private = grants.private_dirs();
        let in_private = grants.list.iter().map(|grant| &grant.path);
        let in_private = in_private.filter(|at| private.iter().any(|dir| at.starts_with(dir)));
        let fixed = grants
            .protection
            .paths
            .iter()
            .chain(&grants.protection.writable)
            .chain(&grants.covered);
        mounts.extend(pinned_dirs(fixed.chain(in_private), &roots));
        let links = DEV_LINKS.map(|(at, to)| PathLink { at: at.into(), to: to.into() });
        let links = grants.links.iter().cloned().chain(links).collect();
        let mounts = in_mount_order(mounts);
        let private = private_dirs_of(&mounts);
        Self { mounts, links, private, staging_dirs: Vec::new(), hosts: None, memory }
    }

    /// The same with this text at `/etc/hosts`.
    pub(crate) fn with_hosts(mut self, hosts: Option<String>) -> Self {
        if hosts.is_some() {
            self.mounts.push(RootMount::new_at(Path::new(HOSTS_PATH), MountKind::HostsFile));
            self.mounts = in_mount_order(self.mounts);
        }
        Self { hosts, ..self }
    }

    /// The same with these of its sealed directories as rooms.
    pub(crate) fn with_staging_dirs(self, rooms: Vec<PathBuf>) -> Self {
        Self { staging_dirs: rooms, ..self }
    }

    /// True if the plan has read-only paths that must be sealed again after a replacement.
    pub(crate) fn has_sealed(&self) -> bool {
        self.mounts.iter().any(|mount| mount.kind == MountKind::Sealed)
    }

    /// Where its mounts hold and not Landlock.
    pub(crate) fn restrictions(&self) -> MountRestrictions {
        // Of two mounts at one path the later lies on top. A mount of a path onto itself shows the
        // mount below.
        let mut tops: Vec<_> = self.mounts.iter().rev().collect();
        tops.retain(|mount| mount.kind != MountKind::Pinned);
        tops.dedup_by(|below, top| below.at == top.at);
        let worked = |at: &Path| {
            tops.iter().any(|mount| {
                matches!(mount.kind, MountKind::Writable | MountKind::Overlay)
                    && at.starts_with(&mount.at)
            })
        };
        let places = |is: &dyn Fn(&RootMount) -> bool| {
            tops.iter().filter(|mount| is(mount)).map(|mount| mount.at.clone()).collect()
        };
        MountRestrictions {
            read_only: places(&|mount| {
                matches!(
                    mount.kind,
                    MountKind::ReadOnly | MountKind::ReadOnlyNoExec | MountKind::Sealed
                ) && worked(&mount.at)
            }),
            no_exec: places(&|mount| mount.kind == MountKind::ReadOnlyNoExec),
        }
    }

    /// The plan without these overlays.
    pub(crate) fn without_overlays(mut self, plain: &[(PathBuf, Errno)]) -> Self {
        for mount in &mut self.mounts {
            let is_plain = plain.iter().any(|(at, _)| *at == mount.at);
            if let Some(over) = mount.overlay.take_if(|_| is_plain) {
                mount.kind = over.without;
            }
        }
        self.private = private_dirs_of(&self.mounts);
        self
    }

    /// True if read-only paths of the host lie within a private directory.
    pub(crate) fn shows_host_in_private(&self) -> bool {
        let islands = self.restrictions().read_only;
        self.mounts.iter().any(|mount| {
            matches!(mount.kind, MountKind::ReadOnly | MountKind::ReadOnlyNoExec)
                && self.private.dirs.iter().any(|dir| mount.at.starts_with(dir))
                && islands.contains(&mount.at)
        })
    }

    /// Mounts without a grant: the root itself and fresh mounts. The Landlock rules need them
    /// besides the granted paths, because the host's files of these names are other files.
    pub(crate) fn fresh_mounts(&self) -> Vec<(&'static str, Access)> {
        let of = |mount: &RootMount| match mount.kind {
            MountKind::Proc => Some(("/proc", Access::Read)),
            MountKind::Pts => Some(("/dev/pts", Access::Terminal)),
            MountKind::Shm => Some(("/dev/shm", Access::Write)),
            MountKind::HostsFile => Some((HOSTS_PATH, Access::Read)),
            MountKind::ReadOnly
            | MountKind::ReadOnlyNoExec
            | MountKind::Device
            | MountKind::Overlay
            | MountKind::Writable
            | MountKind::Pinned
            | MountKind::Sealed
            | MountKind::Empty => None,
        };
        std::iter::once(("/", Access::List)).chain(self.mounts.iter().filter_map(of)).collect()
    }
}

impl RootMount {
    /// One on a place of the host that the root shows by its own path.
    fn new_at(at: &Path, what: MountKind) -> Self {
        let shape = if at.is_dir() { MountPointKind::Dir } else { MountPointKind::File };
        Self { at: at.to_owned(), host: at.to_owned(), kind: what, shape, overlay: None }
    }
}

/// Separates mounts in which commands leave files for the next call from mounts that show the
/// host's own files. A mount of a path onto itself shows the mount below and counts as neither.
fn private_dirs_of(mounts: &[RootMount]) -> PrivateDirs {
    let own =
        mounts.iter().filter(|mount| !matches!(mount.kind, MountKind::Pinned | MountKind::Sealed));
    let (dirs, others): (Vec<_>, Vec<_>) =
        own.partition(|mount| mount.host != mount.at || mount.kind == MountKind::Overlay);
    let places =
        |mounts: Vec<&RootMount>| mounts.into_iter().map(|mount| mount.at.clone()).collect();
    PrivateDirs { dirs: places(dirs), others: places(others) }
}

/// Pins the directories between a writable root and a protected path, as `.git` for `.git/hooks`.
/// Otherwise a command could move the path away together with its directory.
fn pinned_dirs<'a>(names: impl Iterator<Item = &'a PathBuf>, roots: &[&Path]) -> Vec<RootMount> {
    let mut held: Vec<RootMount> = Vec::new();
    for name in names {
        for folder in name.ancestors().skip(1) {
            let between = roots.iter().any(|root| folder.starts_with(root) && folder != *root);
            if between && !held.iter().any(|mount| mount.at == folder) {
                let (at, host) = (folder.to_owned(), folder.to_owned());
                let (what, shape) = (MountKind::Pinned, MountPointKind::Dir);
                held.push(RootMount { at, host, kind: what, shape, overlay: None });
            }
        }
    }
    held
}

/// Sorts outer paths first and drops mounts that an outer one makes redundant.
fn in_mount_order(mut mounts: Vec<RootMount>) -> Vec<RootMount> {
    let depth = |mount: &RootMount| mount.at.components().count();
    mounts.sort_by_cached_key(|mount| (depth(mount), mount.at.clone(), mount.kind));
    let mut kept: Vec<RootMount> = Vec::new();
    for mount in mounts {
        if !is_redundant(&mount, &kept) {
            kept.push(mount);
        }
    }
    kept
}

/// True if the surrounding mount shows the same already.
fn is_redundant(mount: &RootMount, kept: &[RootMount]) -> bool {
    let around = |shows: fn(MountKind) -> bool| {
        let outer =
            kept.iter().filter(|outer| shows(outer.kind) && mount.at.starts_with(&outer.at));
        // The later of two at one place lies on top.
        outer.max_by_key(|outer| outer.at.components().count())
    };
    // A mount of a path onto itself shows the mount below.
    let shown = around(|what| {
        matches!(
            what,
            MountKind::ReadOnly
                | MountKind::ReadOnlyNoExec
                | MountKind::Overlay
                | MountKind::Writable
        )
    });
    let top = around(|_| true).map(|outer| outer.kind);
    let enough = |outer: &RootMount| match (mount.kind, outer.kind) {
        (MountKind::ReadOnly, MountKind::ReadOnly | MountKind::Overlay | MountKind::Writable)
        | (MountKind::Overlay, MountKind::Overlay)
        | (MountKind::Writable, MountKind::Writable) => {
            matches!(
                top,
                Some(
                    MountKind::ReadOnly
                        | MountKind::Overlay
                        | MountKind::Writable
                        | MountKind::Pinned
                )
            ) && mount
                .at
                .strip_prefix(&outer.at)
                .is_ok_and(|below| outer.host.join(below).components().eq(mount.host.components()))
        }
        (_, _) => false,
    };
    // A cover within a cover hides nothing more.
    let is_empty = || {
        let below = around(|what| what != MountKind::Pinned);
        mount.kind == MountKind::Empty && below.is_some_and(|outer| outer.kind == MountKind::Empty)
    };
    shown.is_some_and(enough) || is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str, what: MountKind) -> RootMount {
        RootMount::new_at(Path::new(path), what)
    }

    fn order(mounts: &[(&str, MountKind)]) -> Vec<(String, MountKind)> {
        in_mount_order(mounts.iter().map(|(path, what)| at(path, *what)).collect())
            .into_iter()
            .map(|mount| (mount.at.display().to_string(), mount.kind))
            .collect()
    }

    #[test]
    fn outer_places_come_first_and_needless_ones_go() {
        let made = order(&[
            ("/usr/src/project", MountKind::Writable),
            ("/usr/src/project/.git/hooks", MountKind::Sealed),
            ("/usr", MountKind::ReadOnly),
            ("/usr/src/project/.git", MountKind::Pinned),
            ("/usr/local/bin", MountKind::ReadOnly),
            ("/usr/src/project/sub", MountKind::Writable),
            ("/usr/src/project/sub/tools", MountKind::ReadOnly),
        ]);
        assert_eq!(
            made,
            [
                ("/usr".into(), MountKind::ReadOnly),
                ("/usr/src/project".into(), MountKind::Writable),
                ("/usr/src/project/.git".into(), MountKind::Pinned),
                ("/usr/src/project/.git/hooks".into(), MountKind::Sealed),
            ]
        );
    }

    #[test]
    fn what_lies_beneath_a_cover_is_mounted_again() {
        let made = order(&[
            ("/home/ann", MountKind::Writable),
            ("/home/ann/.local/state/agentd", MountKind::Empty),
            ("/home/ann/.local/state/agentd/tmp/1", MountKind::Writable),
        ]);
        assert_eq!(made.len(), 3);
        assert_eq!(made[2].0, "/home/ann/.local/state/agentd/tmp/1");
    }

    #[test]
    fn nothing_is_covered_beneath_a_cover() {
        let made = order(&[
            ("/p", MountKind::Writable),
            ("/p/keys", MountKind::Empty),
            ("/p/keys/sub", MountKind::Pinned),
            ("/p/keys/sub/key", MountKind::Empty),
            ("/p/keys/open", MountKind::Writable),
            ("/p/keys/open/key", MountKind::Empty),
        ]);
        let covered = made.iter().filter(|(_, what)| *what == MountKind::Empty);
        let covered: Vec<_> = covered.map(|(path, _)| path.as_str()).collect();
        assert_eq!(covered, ["/p/keys", "/p/keys/open/key"]);
    }

    #[test]
    fn islands_are_what_mounts_really_take() {
        let home = RootMount { host: "/state/home".into(), ..at("/home/ann", MountKind::Writable) };
        let table = [
            // A place of the host that is worked in gives all that lies in it.
            (
                vec![at("/h", MountKind::Writable), at("/h/bin", MountKind::ReadOnly)],
                [&[][..], &[]],
            ),
            (
                vec![home.clone(), at("/home/ann/bin", MountKind::ReadOnly)],
                [&["/home/ann/bin"][..], &[]],
            ),
            (
                vec![
                    home.clone(),
                    at("/home/ann/r", MountKind::ReadOnlyNoExec),
                    at("/usr", MountKind::ReadOnly),
                ],
                [&["/home/ann/r"], &["/home/ann/r"]],
            ),
            (
                vec![
                    home,
                    at("/home/ann/bin", MountKind::ReadOnly),
                    at("/home/ann/bin", MountKind::Writable),
                ],
                [&[], &[]],
            ),
            (
                vec![
                    at("/p", MountKind::Writable),
                    at("/p/go", MountKind::Writable),
                    at("/p/go", MountKind::Sealed),
                ],
                [&["/p/go"], &[]],
            ),
        ];
        for (mounts, [read_only, inert]) in table {
            let plan = MountPlan { mounts: in_mount_order(mounts), ..MountPlan::default() };
            let found = plan.restrictions();
            let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
            let expected = (paths(read_only), paths(inert));
            assert_eq!((found.read_only, found.no_exec), expected, "{:?}", plan.mounts);
        }
    }

    #[test]
    fn what_a_private_directory_would_hide_is_mounted_in_it() {
        let home = RootMount { host: "/state/home".into(), ..at("/home/ann", MountKind::Writable) };
        let held = pinned_dirs([&"/home/ann/.config/git".into()].into_iter(), &[&home.at]);
        let granted =
            [("/home/ann/.config/git", MountKind::ReadOnly), ("/home/ann/p", MountKind::Writable)];
        let mounts = granted.map(|(path, what)| at(path, what));
        let made = in_mount_order([home].into_iter().chain(held).chain(mounts).collect());
        let places: Vec<_> = made.iter().map(|mount| (mount.at.to_str(), mount.kind)).collect();
        assert_eq!(
            places,
            [
                (Some("/home/ann"), MountKind::Writable),
                (Some("/home/ann/.config"), MountKind::Pinned),
                (Some("/home/ann/p"), MountKind::Writable),
                (Some("/home/ann/.config/git"), MountKind::ReadOnly),
            ]
        );
    }

    #[test]
    fn the_folders_of_a_fixed_name_stay_in_place() {
        let names = [
            "/home/p/.git/hooks".into(),
            "/home/p/.envrc".into(),
            "/home/p/.local/state/agentd".into(),
            "/etc/shadow".into(),
        ];
        let held = pinned_dirs(names.iter(), &[Path::new("/home/p")]);
        let places: Vec<_> = held.iter().map(|mount| mount.at.to_str()).collect();
        assert_eq!(
            places,
            [Some("/home/p/.git"), Some("/home/p/.local/state"), Some("/home/p/.local")]
        );
    }
}
