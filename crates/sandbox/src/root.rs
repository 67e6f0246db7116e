//! The root of tier A: a plan of mounts from the grants, and its execution in an empty tmpfs.
//! What was not granted is not there. For `init` only; the plan is pure.

use crate::error::{CageError, Step};
use crate::grants::Grants;
use crate::hosts_file::HOSTS;
use crate::links::Link;
use crate::mount_point::{self, Private, Shape};
use crate::overlay::{self, Overlays};
use crate::policy::{Access, Fresh};
use crate::sys::{self, Depth, Taken};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::Mode;
use nix::sys::statvfs::{FsFlags, fstatvfs};
use nix::unistd::{chdir, fchdir, pivot_root};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Where the host's tree hangs while the new root is built.
pub(crate) const OLD: &str = "/.old";
/// Where the text of `What::Hosts` lies. It stays: the kernel names what has no path any more as deleted.
const HOSTS_TEXT: &str = "/.hosts";
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
    /// A tree of the host, read-only.
    Seen,
    /// The same, and no program in it can be started.
    Read,
    /// A device of the host.
    Device,
    /// A tree of the host below changes of the project's commands.
    Overlaid,
    /// A tree of the host, writable.
    Worked,
    /// Bound onto itself, so that it cannot be moved away.
    Held,
    /// Bound onto itself and read-only.
    Sealed,
    /// Something empty.
    Covered,
    /// The names of an allow-list's hosts.
    Hosts,
    Proc,
    Pts,
    Shm,
}

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    at: PathBuf,
    /// What of the host is shown there; `at` itself but for private directories.
    host: PathBuf,
    what: What,
    shape: Shape,
    /// Of what is overlaid.
    overlay: Option<Over>,
}

/// What makes a mount an overlay.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Over {
    /// With the changes; on the host.
    directory: PathBuf,
    /// What is mounted where the kernel makes no overlay of it.
    without: What,
}

/// What came of building a root.
#[derive(Debug, Default)]
pub(crate) struct Built {
    /// What the tier claims and this host refused, in plain words.
    pub(crate) losses: Vec<String>,
    /// Places that are shown without their overlay, and why.
    pub(crate) plain: Vec<(PathBuf, Errno)>,
    /// Copies of the overlays as they are mounted.
    pub(crate) mounted: Vec<OwnedFd>,
    /// Where new settings of git are made ready.
    pub(crate) rooms: Vec<Room>,
}

/// A directory that a mount closes for the command.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) at: PathBuf,
    /// The directory below that mount.
    pub(crate) place: OwnedFd,
}

/// Where mounts take away what Landlock gives: it adds the rights of what is around a mount. None in
/// tier B, which has no mounts.
#[derive(Debug, Default)]
pub(crate) struct Islands {
    /// Read-only within what is writable.
    pub(crate) read_only: Vec<PathBuf>,
    /// No program can be started there.
    pub(crate) inert: Vec<PathBuf>,
}

/// The mounts and links of a root, in order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Plan {
    mounts: Vec<Mount>,
    links: Vec<Link>,
    /// Where commands may have put anything in the way of a mount.
    private: Private,
    /// Those of the sealed directories where files are made that leave them sealed.
    rooms: Vec<PathBuf>,
    /// What is shown at `/etc/hosts` in the place of the machine's.
    hosts: Option<String>,
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
            .map(|grant| {
                let plain = match grant.fresh {
                    Some(Fresh::Proc) => What::Proc,
                    Some(Fresh::Pts) => What::Pts,
                    Some(Fresh::Shm) => What::Shm,
                    None if grant.access.is_device() => What::Device,
                    None if grant.access.writes() => What::Worked,
                    None if grants.is_inert(grant) => What::Read,
                    None => What::Seen,
                };
                let over = |directory| Over { directory, without: plain };
                let overlay = grant.overlay.clone().map(over);
                Mount {
                    at: grant.path.clone(),
                    host: grant.host.clone(),
                    what: if overlay.is_some() { What::Overlaid } else { plain },
                    shape: if grant.folder { Shape::Folder } else { Shape::File },
                    overlay,
                }
            })
            .collect();
        mounts.extend(grants.covered.iter().map(|at| Mount::on(at, What::Covered)));
        mounts.extend(grants.protected.iter().map(|at| Mount::on(at, What::Sealed)));
        let roots: Vec<&Path> = grants
            .list
            .iter()
            .filter(|grant| grant.access.writes())
            .map(|grant| grant.path.as_path())
            .collect();
        let private = grants.private();
        let in_private = grants.list.iter().map(|grant| &grant.path);
        let in_private = in_private.filter(|at| private.iter().any(|dir| at.starts_with(dir)));
        let fixed = grants.protected.iter().chain(&grants.open).chain(&grants.covered);
        mounts.extend(holders(fixed.chain(in_private), &roots));
        let links = DEV_LINKS.map(|(at, to)| Link { at: at.into(), to: to.into() });
        let links = grants.links.iter().cloned().chain(links).collect();
        let mounts = ordered(mounts);
        let private = private_of(&mounts);
        Self { mounts, links, private, rooms: Vec::new(), hosts: None, memory }
    }

    /// The same with this text at `/etc/hosts`.
    pub(crate) fn with_hosts(mut self, hosts: Option<String>) -> Self {
        if hosts.is_some() {
            self.mounts.push(Mount::on(Path::new(HOSTS), What::Hosts));
            self.mounts = ordered(self.mounts);
        }
        Self { hosts, ..self }
    }

    /// The same with these of its sealed directories as rooms.
    pub(crate) fn with_rooms(self, rooms: Vec<PathBuf>) -> Self {
        Self { rooms, ..self }
    }

    /// Whether anything is to be made read-only anew once it stands.
    pub(crate) fn seals(&self) -> bool {
        self.mounts.iter().any(|mount| mount.what == What::Sealed)
    }

    /// Where its mounts hold and not Landlock.
    pub(crate) fn islands(&self) -> Islands {
        // The later of two at one place lies on top; one onto itself shows what is below.
        let mut tops: Vec<_> = self.mounts.iter().rev().collect();
        tops.retain(|mount| mount.what != What::Held);
        tops.dedup_by(|below, top| below.at == top.at);
        let worked = |at: &Path| {
            tops.iter().any(|mount| {
                matches!(mount.what, What::Worked | What::Overlaid) && at.starts_with(&mount.at)
            })
        };
        let places = |is: &dyn Fn(&Mount) -> bool| {
            tops.iter().filter(|mount| is(mount)).map(|mount| mount.at.clone()).collect()
        };
        Islands {
            read_only: places(&|mount| {
                matches!(mount.what, What::Seen | What::Read | What::Sealed) && worked(&mount.at)
            }),
            inert: places(&|mount| mount.what == What::Read),
        }
    }

    /// The plan without these overlays.
    pub(crate) fn without(mut self, plain: &[(PathBuf, Errno)]) -> Self {
        for mount in &mut self.mounts {
            let is_plain = plain.iter().any(|(at, _)| *at == mount.at);
            if let Some(over) = mount.overlay.take_if(|_| is_plain) {
                mount.what = over.without;
            }
        }
        self.private = private_of(&self.mounts);
        self
    }

    /// Whether places of the host are read-only within a private directory.
    pub(crate) fn lends(&self) -> bool {
        let islands = self.islands().read_only;
        self.mounts.iter().any(|mount| {
            matches!(mount.what, What::Seen | What::Read)
                && self.private.dirs.iter().any(|dir| mount.at.starts_with(dir))
                && islands.contains(&mount.at)
        })
    }

    /// What lies in every root or was mounted afresh: the host's own is something else, so the rules
    /// need these places beside those that were granted.
    pub(crate) fn fresh(&self) -> Vec<(&'static str, Access)> {
        let of = |mount: &Mount| match mount.what {
            What::Proc => Some(("/proc", Access::Read)),
            What::Pts => Some(("/dev/pts", Access::Terminal)),
            What::Shm => Some(("/dev/shm", Access::Write)),
            What::Hosts => Some((HOSTS, Access::Read)),
            What::Seen
            | What::Read
            | What::Device
            | What::Overlaid
            | What::Worked
            | What::Held
            | What::Sealed
            | What::Covered => None,
        };
        std::iter::once(("/", Access::List)).chain(self.mounts.iter().filter_map(of)).collect()
    }

    /// Makes the root and moves into it; this process must be alone in its mount namespace. `mounted`
    /// are overlays that an earlier call mounted.
    ///
    /// # Errors
    /// `Step::Root` or `Step::Proc`, with the place.
    pub(crate) fn build(&self, mounted: Option<&OwnedFd>) -> Result<Built, CageError> {
        stage()?;
        let mut built = Built::default();
        let overlays = self.overlays(mounted, &mut built.plain);
        let Self { mounts, links, private, rooms, hosts, memory } =
            self.clone().without(&built.plain);
        if let Some(text) = &hosts {
            std::fs::write(HOSTS_TEXT, text)
                .map_err(|error| CageError::os(Step::Root, HOSTS_TEXT, error))?;
        }
        for mount in &mounts {
            let failed = |error| {
                failure(format!("mounting {} ({:?})", mount.at.display(), mount.what), error)
            };
            if mount.what == What::Sealed && rooms.contains(&mount.at) {
                let place = mount.place(&private).map_err(failed)?;
                built.rooms.push(Room { at: mount.at.clone(), place });
            }
            let loss = mount.make(memory, &private).map_err(failed)?;
            built.losses.extend(loss);
        }
        for link in &links {
            mount_point::link(&link.at, &link.to, &private)
                .map_err(|error| failure(format!("linking {}", link.at.display()), error))?;
        }
        if let Some(overlays) = overlays {
            built.mounted =
                overlays.end().map_err(|error| CageError::os(Step::Root, "overlays", error))?;
        }
        umount2(OLD, MntFlags::MNT_DETACH)
            .map_err(|error| CageError::os(Step::Root, "letting go of the host's root", error))?;
        std::fs::remove_dir(OLD).map_err(|error| CageError::os(Step::Root, OLD, error))?;
        open(Path::new("/"))
            .and_then(|root| sys::restrict(root.as_fd(), Taken::Writes, Depth::This))
            .map_err(|error| CageError::os(Step::Root, "making the root read-only", error))?;
        Ok(built)
    }

    /// Mounts what is overlaid, beside the places where it will be shown. What fails is noted in `plain`.
    fn overlays(
        &self,
        mounted: Option<&OwnedFd>,
        plain: &mut Vec<(PathBuf, Errno)>,
    ) -> Option<Overlays> {
        let all = || self.mounts.iter().filter_map(|mount| Some((mount, mount.overlay.as_ref()?)));
        all().next()?;
        match Overlays::begin(mounted) {
            Ok(overlays) => {
                for (mount, over) in all() {
                    let lower = old_of(&overlay::lower(&over.directory, &mount.host));
                    let made = open(&lower).and_then(|lower| {
                        overlays.mount(&lower, &open(&old_of(&over.directory))?, &over.directory)
                    });
                    plain.extend(made.err().map(|errno| (mount.at.clone(), errno)));
                }
                Some(overlays)
            }
            Err(errno) => {
                plain.extend(all().map(|(mount, _)| (mount.at.clone(), errno)));
                None
            }
        }
    }
}

impl Mount {
    /// One on a place of the host that the root shows by its own path.
    fn on(at: &Path, what: What) -> Self {
        let shape = if at.is_dir() { Shape::Folder } else { Shape::File };
        Self { at: at.to_owned(), host: at.to_owned(), what, shape, overlay: None }
    }

    /// What it shows of the host, below what was changed.
    fn on_host(&self) -> Result<OwnedFd, Errno> {
        open(&old_of(&self.host))
    }

    /// The place to mount on. What hides or seals a place of the host lies on that very place: a command
    /// of another call may have moved what is around it away meanwhile, and left something like it.
    fn place(&self, private: &Private) -> Result<OwnedFd, Errno> {
        if matches!(self.what, What::Covered | What::Sealed) {
            return mount_point::make_on(|| self.on_host(), &self.at, self.shape, private);
        }
        mount_point::make(&self.at, self.shape, private)
    }

    /// Makes it; `Some` names what was lost on the way.
    fn make(&self, memory: u64, private: &Private) -> Result<Option<String>, Errno> {
        let place = self.place(private)?;
        let plain = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        match self.what {
            What::Seen => bind(&self.on_host()?, &place, Some(Taken::WritesAndDevices))?,
            What::Read => bind(&self.on_host()?, &place, Some(Taken::WritesDevicesAndPrograms))?,
            What::Device => bind(&self.on_host()?, &place, Some(Taken::Writes))?,
            What::Worked => bind(&self.on_host()?, &place, None)?,
            What::Overlaid => {
                let directory = self.overlay.iter().map(|over| over.directory.as_path());
                let tree = directory.map(overlay::mounted).next().ok_or(Errno::EINVAL)??;
                bind(&tree, &place, None)?;
            }
            What::Held => bind(&place, &place, None)?,
            What::Sealed => bind(&place, &place, Some(Taken::WritesAndDevices))?,
            What::Covered if self.shape == Shape::Folder => {
                fresh("tmpfs", &place, plain, "size=64k,mode=755")?;
            }
            What::Covered => bind(&open(&old_of(Path::new("/dev/null")))?, &place, None)?,
            What::Hosts => {
                bind(&open(Path::new(HOSTS_TEXT))?, &place, Some(Taken::WritesAndDevices))?;
            }
            What::Proc => {
                if let Err(errno) = fresh("proc", &place, plain, "") {
                    bind(&self.on_host()?, &place, None)?;
                    return Ok(Some(format!(
                        "The host's /proc is shown, since a fresh one was refused: {errno}."
                    )));
                }
            }
            What::Pts => {
                let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
                fresh("devpts", &place, quiet, "newinstance,ptmxmode=0666,mode=0620")?;
            }
            What::Shm => {
                let size = match memory {
                    0 => String::new(),
                    most => format!(",size={most}"),
                };
                let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
                fresh("tmpfs", &place, flags, &format!("mode=1777{size}"))?;
            }
        }
        Ok(None)
    }
}

/// Why a place of the root could not be made.
fn failure(doing: String, errno: Errno) -> CageError {
    if errno != Errno::EAGAIN {
        return CageError::os(Step::Root, doing, errno);
    }
    let why = "other commands of this session change the way there again and again";
    CageError::new(Step::Root, format!("{doing}: {why}")).hint("end those commands and try again")
}

/// The mounts in which commands leave files for the next call, beside those that show something else.
/// Mounts onto themselves show what the one below them shows.
fn private_of(mounts: &[Mount]) -> Private {
    let own = mounts.iter().filter(|mount| !matches!(mount.what, What::Held | What::Sealed));
    let (dirs, others): (Vec<_>, Vec<_>) =
        own.partition(|mount| mount.host != mount.at || mount.what == What::Overlaid);
    let places = |mounts: Vec<&Mount>| mounts.into_iter().map(|mount| mount.at.clone()).collect();
    Private { dirs: places(dirs), others: places(others) }
}

/// `.git` for `.git/hooks`: what lies between a writable root and a fixed name stays in its place,
/// or the name would be moved away together with its folder.
fn holders<'a>(names: impl Iterator<Item = &'a PathBuf>, roots: &[&Path]) -> Vec<Mount> {
    let mut held: Vec<Mount> = Vec::new();
    for name in names {
        for folder in name.ancestors().skip(1) {
            let between = roots.iter().any(|root| folder.starts_with(root) && folder != *root);
            if between && !held.iter().any(|mount| mount.at == folder) {
                let (at, host) = (folder.to_owned(), folder.to_owned());
                let (what, shape) = (What::Held, Shape::Folder);
                held.push(Mount { at, host, what, shape, overlay: None });
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
        if !is_needless(&mount, &kept) {
            kept.push(mount);
        }
    }
    kept
}

/// Whether what is around it gives the same already.
fn is_needless(mount: &Mount, kept: &[Mount]) -> bool {
    let around = |shows: fn(What) -> bool| {
        let outer =
            kept.iter().filter(|outer| shows(outer.what) && mount.at.starts_with(&outer.at));
        // The later of two at one place lies on top.
        outer.max_by_key(|outer| outer.at.components().count())
    };
    // Mounts onto themselves show what the one below them shows.
    let shown =
        around(|what| matches!(what, What::Seen | What::Read | What::Overlaid | What::Worked));
    let top = around(|_| true).map(|outer| outer.what);
    let enough = |outer: &Mount| match (mount.what, outer.what) {
        (What::Seen, What::Seen | What::Overlaid | What::Worked)
        | (What::Overlaid, What::Overlaid)
        | (What::Worked, What::Worked) => {
            matches!(top, Some(What::Seen | What::Overlaid | What::Worked | What::Held))
                && mount.at.strip_prefix(&outer.at).is_ok_and(|below| {
                    outer.host.join(below).components().eq(mount.host.components())
                })
        }
        (_, _) => false,
    };
    // What is empty hides nothing that was not hidden.
    let is_empty = || {
        let below = around(|what| what != What::Held);
        mount.what == What::Covered && below.is_some_and(|outer| outer.what == What::Covered)
    };
    shown.is_some_and(enough) || is_empty()
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

/// Opens a place of the host, whose path is real.
fn open(path: &Path) -> Result<OwnedFd, Errno> {
    match sys::open_without_links(path) {
        // A filter around us that does not know the call.
        Err(Errno::ENOSYS | Errno::EPERM) => {
            let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
            nix::fcntl::open(path, flags, Mode::empty())
        }
        opened => opened,
    }
}

/// Takes writes to what lies at this path away, in a root that stands. A mount belongs to the mount on
/// which it lies: right in a room it is made below that which closes the room, so that a file may leave it.
pub(crate) fn seal(path: &Path, rooms: &[Room]) -> Result<(), Errno> {
    let place = match rooms.iter().find(|room| path.parent() == Some(&room.at)) {
        Some(room) => {
            let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let name = path.file_name().ok_or(Errno::EINVAL)?;
            nix::fcntl::openat(&room.place, name, flags, Mode::empty())?
        }
        None => open(path)?,
    };
    if fstatvfs(&place)?.flags().contains(FsFlags::ST_RDONLY) {
        return Ok(());
    }
    bind(&place, &place, Some(Taken::WritesAndDevices))
}

/// Shows a tree at a place, without what is taken from it.
fn bind(tree: &OwnedFd, place: &OwnedFd, taken: Option<Taken>) -> Result<(), Errno> {
    let copy = sys::copied_tree(tree.as_fd())?;
    if let Some(taken) = taken {
        sys::restrict(copy.as_fd(), taken, Depth::AllBelow)?;
    }
    sys::attach(copy.as_fd(), place.as_fd())
}

/// Mounts on the place itself: its path may lead elsewhere by now.
fn fresh(kind: &str, place: &OwnedFd, flags: MsFlags, options: &str) -> Result<(), Errno> {
    fchdir(place)?;
    let made = mount(Some(kind), ".", Some(kind), flags, Some(options));
    chdir("/")?;
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str, what: What) -> Mount {
        Mount::on(Path::new(path), what)
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
    fn nothing_is_covered_beneath_a_cover() {
        let made = order(&[
            ("/p", What::Worked),
            ("/p/keys", What::Covered),
            ("/p/keys/sub", What::Held),
            ("/p/keys/sub/key", What::Covered),
            ("/p/keys/open", What::Worked),
            ("/p/keys/open/key", What::Covered),
        ]);
        let covered = made.iter().filter(|(_, what)| *what == What::Covered);
        let covered: Vec<_> = covered.map(|(path, _)| path.as_str()).collect();
        assert_eq!(covered, ["/p/keys", "/p/keys/open/key"]);
    }

    #[test]
    fn islands_are_what_mounts_really_take() {
        let home = Mount { host: "/state/home".into(), ..at("/home/ann", What::Worked) };
        let table = [
            // A place of the host that is worked in gives all that lies in it.
            (vec![at("/h", What::Worked), at("/h/bin", What::Seen)], [&[][..], &[]]),
            (vec![home.clone(), at("/home/ann/bin", What::Seen)], [&["/home/ann/bin"][..], &[]]),
            (
                vec![home.clone(), at("/home/ann/r", What::Read), at("/usr", What::Seen)],
                [&["/home/ann/r"], &["/home/ann/r"]],
            ),
            (
                vec![home, at("/home/ann/bin", What::Seen), at("/home/ann/bin", What::Worked)],
                [&[], &[]],
            ),
            (
                vec![at("/p", What::Worked), at("/p/go", What::Worked), at("/p/go", What::Sealed)],
                [&["/p/go"], &[]],
            ),
        ];
        for (mounts, [read_only, inert]) in table {
            let plan = Plan { mounts: ordered(mounts), ..Plan::default() };
            let found = plan.islands();
            let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
            let expected = (paths(read_only), paths(inert));
            assert_eq!((found.read_only, found.inert), expected, "{:?}", plan.mounts);
        }
    }

    #[test]
    fn what_a_private_directory_would_hide_is_mounted_in_it() {
        let home = Mount { host: "/state/home".into(), ..at("/home/ann", What::Worked) };
        let held = holders([&"/home/ann/.config/git".into()].into_iter(), &[&home.at]);
        let granted = [("/home/ann/.config/git", What::Seen), ("/home/ann/p", What::Worked)];
        let mounts = granted.map(|(path, what)| at(path, what));
        let made = ordered([home].into_iter().chain(held).chain(mounts).collect());
        let places: Vec<_> = made.iter().map(|mount| (mount.at.to_str(), mount.what)).collect();
        assert_eq!(
            places,
            [
                (Some("/home/ann"), What::Worked),
                (Some("/home/ann/.config"), What::Held),
                (Some("/home/ann/p"), What::Worked),
                (Some("/home/ann/.config/git"), What::Seen),
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
        let held = holders(names.iter(), &[Path::new("/home/p")]);
        let places: Vec<_> = held.iter().map(|mount| mount.at.to_str()).collect();
        assert_eq!(
            places,
            [Some("/home/p/.git"), Some("/home/p/.local/state"), Some("/home/p/.local")]
        );
    }
}
