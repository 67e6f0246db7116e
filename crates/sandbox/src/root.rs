//! The root of tier A: a plan of mounts from the grants, and its execution in an empty tmpfs.
//! What was not granted is not there. For `init` only; the plan is pure.

use crate::error::{CageError, Step};
use crate::grants::Grants;
use crate::links::Link;
use crate::policy::{Access, Fresh};
use crate::sys::{self, Depth};
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, pivot_root};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where the host's tree hangs while the new root is built.
const OLD: &str = "/.old";
/// Where the new root is first mounted; any directory that exists serves.
const STAGES: [&str; 4] = ["/tmp", "/run", "/mnt", "/var"];
/// The usual links of `/dev`.
const DEV_LINKS: [(&str, &str); 5] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    // The multiplexer of the cage's own terminals; the host's would make terminals there.
    ("/dev/ptmx", "pts/ptmx"),
];

/// What is mounted at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The host's tree at this place, read-only.
    Seen,
    /// The same, writable.
    Worked,
    /// Bound onto itself, so that it cannot be moved away.
    Held,
    /// Bound onto itself and read-only.
    Sealed,
    /// Something empty.
    Covered,
    Proc,
    Pts,
    Shm,
}

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    at: PathBuf,
    what: What,
    folder: bool,
}

/// The mounts and links of a root, in order.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    mounts: Vec<Mount>,
    links: Vec<Link>,
    /// The most that may lie in `/dev/shm`; 0 where there is no bound.
    memory: u64,
}

impl Plan {
    /// The root for these grants.
    pub(crate) fn new(grants: &Grants, memory: u64) -> Self {
        let mut mounts: Vec<Mount> = grants
            .list
            .iter()
            .filter(|grant| grant.path != Path::new("/dev/ptmx"))
            .map(|grant| Mount {
                at: grant.path.clone(),
                what: match grant.fresh {
                    Some(Fresh::Proc) => What::Proc,
                    Some(Fresh::Pts) => What::Pts,
                    Some(Fresh::Shm) => What::Shm,
                    None if grant.access.writes() => What::Worked,
                    None => What::Seen,
                },
                folder: grant.folder,
            })
            .collect();
        mounts.extend(grants.covered.iter().map(|at| Mount {
            at: at.clone(),
            what: What::Covered,
            folder: at.is_dir(),
        }));
        mounts.extend(grants.protected.iter().map(|at| Mount {
            at: at.clone(),
            what: What::Sealed,
            folder: at.is_dir(),
        }));
        let roots: Vec<&Path> = grants
            .list
            .iter()
            .filter(|grant| grant.access.writes())
            .map(|grant| grant.path.as_path())
            .collect();
        let fixed = grants.protected.iter().chain(&grants.open).chain(&grants.covered);
        mounts.extend(holders(fixed, &roots));
        let links = DEV_LINKS.map(|(at, to)| Link { at: at.into(), to: to.into() });
        let links = grants.links.iter().cloned().chain(links).collect();
        Self { mounts: ordered(mounts), links, memory }
    }

    /// What lies in every root or was mounted afresh: the host's own is something else, so the rules
    /// need these places beside those that were granted.
    pub(crate) fn fresh(&self) -> Vec<(&'static str, Access)> {
        let of = |mount: &Mount| match mount.what {
            What::Proc => Some(("/proc", Access::Read)),
            What::Pts => Some(("/dev/pts", Access::Terminal)),
            What::Shm => Some(("/dev/shm", Access::Write)),
            What::Seen | What::Worked | What::Held | What::Sealed | What::Covered => None,
        };
        std::iter::once(("/", Access::List)).chain(self.mounts.iter().filter_map(of)).collect()
    }

    /// Makes the root and moves into it; this process must be alone in its mount namespace.
    /// Returns what was lost.
    ///
    /// # Errors
    /// `Step::Root` or `Step::Proc`, with the place.
    pub(crate) fn build(&self) -> Result<Vec<String>, CageError> {
        stage()?;
        let mut losses = Vec::new();
        for mount in &self.mounts {
            if let Some(loss) = mount.make(self.memory).map_err(|error| {
                CageError::os(
                    Step::Root,
                    format!("mounting {} ({:?})", mount.at.display(), mount.what),
                    error,
                )
            })? {
                losses.push(loss);
            }
        }
        for link in &self.links {
            make_link(link).map_err(|error| {
                CageError::os(Step::Root, format!("linking {}", link.at.display()), error)
            })?;
        }
        umount2(OLD, MntFlags::MNT_DETACH)
            .map_err(|error| CageError::os(Step::Root, "letting go of the host's root", error))?;
        std::fs::remove_dir(OLD).map_err(|error| CageError::os(Step::Root, OLD, error))?;
        sys::make_read_only(Path::new("/"), Depth::This)
            .map_err(|error| CageError::os(Step::Root, "making the root read-only", error))?;
        Ok(losses)
    }
}

impl Mount {
    /// Makes it; `Some` names what was lost on the way.
    fn make(&self, memory: u64) -> Result<Option<String>, Errno> {
        make_place(&self.at, self.folder)?;
        let plain = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        match self.what {
            What::Seen => {
                bind(&old_of(&self.at), &self.at)?;
                sys::make_read_only(&self.at, Depth::AllBelow)?;
            }
            What::Worked => bind(&old_of(&self.at), &self.at)?,
            What::Held => bind(&self.at, &self.at)?,
            What::Sealed => {
                bind(&self.at, &self.at)?;
                sys::make_read_only(&self.at, Depth::AllBelow)?;
            }
            What::Covered if self.folder => {
                fresh("tmpfs", &self.at, plain, "size=64k,mode=755")?;
            }
            What::Covered => {
                bind(&old_of(Path::new("/dev/null")), &self.at)?;
            }
            What::Proc => {
                if let Err(errno) = fresh("proc", &self.at, plain, "") {
                    bind(&old_of(&self.at), &self.at)?;
                    return Ok(Some(format!(
                        "The host's /proc is shown, since a fresh one was refused: {errno}."
                    )));
                }
            }
            What::Pts => {
                let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
                fresh("devpts", &self.at, quiet, "newinstance,ptmxmode=0666,mode=0620")?;
            }
            What::Shm => {
                let size = match memory {
                    0 => String::new(),
                    most => format!(",size={most}"),
                };
                let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
                fresh("tmpfs", &self.at, flags, &format!("mode=1777{size}"))?;
            }
        }
        Ok(None)
    }
}

/// `.git` for `.git/hooks`: what lies between a writable root and a fixed name stays in its place,
/// or the name would be moved away together with its folder.
fn holders<'a>(names: impl Iterator<Item = &'a PathBuf>, roots: &[&Path]) -> Vec<Mount> {
    let mut held: Vec<Mount> = Vec::new();
    for name in names {
        for folder in name.ancestors().skip(1) {
            let between = roots.iter().any(|root| folder.starts_with(root) && folder != *root);
            if between && !held.iter().any(|mount| mount.at == folder) {
                held.push(Mount { at: folder.to_owned(), what: What::Held, folder: true });
            }
        }
    }
    held
}

/// Outer places first; without those that an outer one gives already.
fn ordered(mut mounts: Vec<Mount>) -> Vec<Mount> {
    mounts.sort_by(|one, other| {
        let depth = |mount: &Mount| mount.at.components().count();
        (depth(one), &one.at, one.what).cmp(&(depth(other), &other.at, other.what))
    });
    let mut kept: Vec<Mount> = Vec::new();
    for mount in mounts {
        // The nearest place around this one decides what is there without it.
        let around = kept
            .iter()
            .rev()
            .filter(|outer| mount.at.starts_with(&outer.at))
            .max_by_key(|outer| outer.at.components().count());
        let needless = match (mount.what, around.map(|outer| outer.what)) {
            (What::Seen, Some(What::Seen | What::Worked | What::Held)) => true,
            (What::Worked, Some(What::Worked | What::Held)) => true,
            (
                What::Seen
                | What::Worked
                | What::Held
                | What::Sealed
                | What::Covered
                | What::Proc
                | What::Pts
                | What::Shm,
                _,
            ) => false,
        };
        if !needless {
            kept.push(mount);
        }
    }
    kept
}

/// An empty root that this process lives in, with the host's at `OLD`.
fn stage() -> Result<(), CageError> {
    let failed = |what: &'static str| move |error: Errno| CageError::os(Step::Root, what, error);
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(failed("keeping mounts to ourselves"))?;
    let stage = STAGES
        .into_iter()
        .find(|stage| Path::new(stage).is_dir())
        .ok_or_else(|| CageError::new(Step::Root, "there is neither /tmp nor /run"))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("agentd"), stage, Some("tmpfs"), flags, Some("size=1m,mode=755"))
        .map_err(failed("an empty root"))?;
    let old = format!("{stage}{OLD}");
    std::fs::create_dir(&old).map_err(|error| CageError::os(Step::Root, &old, error))?;
    pivot_root(stage, old.as_str()).map_err(failed("pivot_root"))?;
    chdir("/").map_err(failed("entering the root"))
}

/// The place on the host's tree.
fn old_of(path: &Path) -> PathBuf {
    let mut old = PathBuf::from(OLD);
    old.extend(path.components().skip(1));
    old
}

/// Makes the place to mount on where it is not there yet.
fn make_place(at: &Path, folder: bool) -> Result<(), Errno> {
    let make = || {
        if folder { std::fs::create_dir(at) } else { std::fs::File::create_new(at).map(drop) }
    };
    let made = make().or_else(|error| {
        let parent = at.parent().filter(|_| error.kind() == ErrorKind::NotFound);
        match parent {
            Some(parent) => std::fs::create_dir_all(parent).and_then(|()| make()),
            None => Err(error),
        }
    });
    match made {
        // What is there already lies in something mounted before.
        Err(error) if at.symlink_metadata().is_err() => {
            Err(Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn make_link(link: &Link) -> std::io::Result<()> {
    if link.at.symlink_metadata().is_ok() {
        return Ok(());
    }
    if let Some(parent) = link.at.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::os::unix::fs::symlink(&link.to, &link.at)
}

fn bind(from: &Path, at: &Path) -> Result<(), Errno> {
    let none: Option<&str> = None;
    // With what is mounted below: a part of a tree is refused inside a user namespace.
    mount(Some(from), at, none, MsFlags::MS_BIND | MsFlags::MS_REC, none)
}

fn fresh(kind: &str, at: &Path, flags: MsFlags, options: &str) -> Result<(), Errno> {
    mount(Some(kind), at, Some(kind), flags, Some(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str, what: What) -> Mount {
        Mount { at: path.into(), what, folder: true }
    }

    fn order(mounts: &[(&str, What)]) -> Vec<(String, What)> {
        ordered(mounts.iter().map(|(path, what)| at(path, *what)).collect())
            .into_iter()
            .map(|mount| (mount.at.display().to_string(), mount.what))
            .collect()
    }

    #[test]
    fn outer_places_come_first_and_needless_ones_go() {
        let made = order(&[
            ("/usr/src/project", What::Worked),
            ("/usr/src/project/.git/hooks", What::Sealed),
            ("/usr", What::Seen),
            ("/usr/src/project/.git", What::Held),
            ("/usr/local/bin", What::Seen),
            ("/usr/src/project/sub", What::Worked),
            ("/usr/src/project/sub/tools", What::Seen),
        ]);
        assert_eq!(
            made,
            [
                ("/usr".into(), What::Seen),
                ("/usr/src/project".into(), What::Worked),
                ("/usr/src/project/.git".into(), What::Held),
                ("/usr/src/project/.git/hooks".into(), What::Sealed),
            ]
        );
    }

    #[test]
    fn what_lies_beneath_a_cover_is_mounted_again() {
        let made = order(&[
            ("/home/ann", What::Worked),
            ("/home/ann/.local/state/agentd", What::Covered),
            ("/home/ann/.local/state/agentd/tmp/1", What::Worked),
        ]);
        assert_eq!(made.len(), 3);
        assert_eq!(made[2].0, "/home/ann/.local/state/agentd/tmp/1");
    }

    #[test]
    fn the_folders_of_a_fixed_name_stay_in_place() {
        let names = [
            "/home/p/.git/hooks".into(),
            "/home/p/.envrc".into(),
            "/home/p/.local/state/agentd".into(),
            "/etc/shadow".into(),
        ];
        let held = holders(names.iter(), &[Path::new("/home/p")]);
        let places: Vec<_> = held.iter().map(|mount| mount.at.to_str()).collect();
        assert_eq!(
            places,
            [Some("/home/p/.git"), Some("/home/p/.local/state"), Some("/home/p/.local")]
        );
    }
}
