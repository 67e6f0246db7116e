//! Builds the root of tier A from its plan: mounts everything in an empty tmpfs and moves this
//! process into it. The first process of the PID namespace runs it, alone in its mount namespace.

use super::mount_plan::{MountKind, MountPlan, RootMount};
use super::mount_point::OLD;
use super::mount_point::{self, MountPointKind, PrivateDirs};
use super::overlay_mounts::{self, OverlayMounts};
use crate::error::{CageError, CageStep};
use crate::sys::{self, MountDepth, MountRestriction};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::Mode;
use nix::sys::statvfs::{FsFlags, fstatvfs};
use nix::unistd::{chdir, fchdir, pivot_root};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// File with the text of `MountKind::HostsFile`. It is not removed: the kernel would show the
/// mount's source as deleted.
const HOSTS_TEXT: &str = "/.hosts";

/// Where the new root is first mounted; any directory that exists serves.
const STAGES: [&str; 4] = ["/tmp", "/run", "/mnt", "/var"];

/// Result of building a root.
#[derive(Debug, Default)]
pub(crate) struct BuiltRoot {
    /// Guarantees of the tier that this host refused, a sentence each.
    pub(crate) losses: Vec<String>,
    /// Places that are shown without their overlay, and why.
    pub(crate) plain: Vec<(PathBuf, Errno)>,
    /// Copies of the overlays as they are mounted.
    pub(crate) mounted: Vec<OwnedFd>,
    /// Where new settings of git are made ready.
    pub(crate) staging_dirs: Vec<StagingDir>,
}

/// A directory that a mount closes for the command.
#[derive(Debug)]
pub(crate) struct StagingDir {
    pub(crate) at: PathBuf,
    /// The directory below that mount.
    pub(crate) place: OwnedFd,
}

/// Why a place of the root could not be made.
fn failure(doing: String, errno: Errno) -> CageError {
    if errno != Errno::EAGAIN {
        return CageError::os(CageStep::Root, doing, errno);
    }
    let why = "other commands of this session change the way there again and again";
    CageError::new(CageStep::Root, format!("{doing}: {why}"))
        .hint("end those commands and try again")
}

/// An empty root that this process lives in, with the host's at `OLD`.
fn pivot_to_empty_root() -> Result<(), CageError> {
    let failed =
        |what: &'static str| move |error: Errno| CageError::os(CageStep::Root, what, error);
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(failed("keeping mounts to ourselves"))?;
    let stage = STAGES
        .into_iter()
        .find(|stage| Path::new(stage).is_dir())
        .ok_or_else(|| CageError::new(CageStep::Root, "there is neither /tmp nor /run"))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("agentd"), stage, Some("tmpfs"), flags, Some("size=1m,mode=755"))
        .map_err(failed("an empty root"))?;
    let old = format!("{stage}{OLD}");
    std::fs::create_dir(&old).map_err(|error| CageError::os(CageStep::Root, &old, error))?;
    pivot_root(stage, old.as_str()).map_err(failed("pivot_root"))?;
    chdir("/").map_err(failed("entering the root"))
}

/// The place on the host's tree.
fn host_path(path: &Path) -> PathBuf {
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

/// Makes the file at this path read-only in a finished root. A mount belongs to the mount it lies
/// on. Directly in a staging directory the mount is therefore made on the directory below the
/// read-only mount, so that a file may still be renamed out of it.
pub(crate) fn make_read_only(path: &Path, rooms: &[StagingDir]) -> Result<(), Errno> {
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
    bind(&place, &place, Some(MountRestriction::WritesAndDevices))
}

/// Mounts a copy of a tree at a place, with this restriction.
fn bind(tree: &OwnedFd, place: &OwnedFd, taken: Option<MountRestriction>) -> Result<(), Errno> {
    let copy = sys::copied_tree(tree.as_fd())?;
    if let Some(taken) = taken {
        sys::restrict(copy.as_fd(), taken, MountDepth::AllBelow)?;
    }
    sys::attach(copy.as_fd(), place.as_fd())
}

/// Mounts on the place itself: its path may lead elsewhere by now.
fn mount_fresh(kind: &str, place: &OwnedFd, flags: MsFlags, options: &str) -> Result<(), Errno> {
    fchdir(place)?;
    let made = mount(Some(kind), ".", Some(kind), flags, Some(options));
    chdir("/")?;
    made
}

impl MountPlan {
    /// Makes the root and moves into it; this process must be alone in its mount namespace. `mounted`
    /// are overlays that an earlier call mounted.
    ///
    /// # Errors
    /// `CageStep::Root` or `CageStep::Proc`, with the place.
    pub(crate) fn build(&self, mounted: Option<&OwnedFd>) -> Result<BuiltRoot, CageError> {
        pivot_to_empty_root()?;
        let mut built = BuiltRoot::default();
        let overlays = self.overlays(mounted, &mut built.plain);
        let Self { mounts, links, private, staging_dirs: rooms, hosts, memory } =
            self.clone().without_overlays(&built.plain);
        if let Some(text) = &hosts {
            std::fs::write(HOSTS_TEXT, text)
                .map_err(|error| CageError::os(CageStep::Root, HOSTS_TEXT, error))?;
        }
        for mount in &mounts {
            let failed = |error| {
                failure(format!("mounting {} ({:?})", mount.at.display(), mount.kind), error)
            };
            if mount.kind == MountKind::Sealed && rooms.contains(&mount.at) {
                let place = mount.place(&private).map_err(failed)?;
                built.staging_dirs.push(StagingDir { at: mount.at.clone(), place });
            }
            let loss = mount.make(memory, &private).map_err(failed)?;
            built.losses.extend(loss);
        }
        for link in &links {
            mount_point::create_link(&link.at, &link.to, &private)
                .map_err(|error| failure(format!("linking {}", link.at.display()), error))?;
        }
        if let Some(overlays) = overlays {
            built.mounted =
                overlays.end().map_err(|error| CageError::os(CageStep::Root, "overlays", error))?;
        }
        umount2(OLD, MntFlags::MNT_DETACH).map_err(|error| {
            CageError::os(CageStep::Root, "letting go of the host's root", error)
        })?;
        std::fs::remove_dir(OLD).map_err(|error| CageError::os(CageStep::Root, OLD, error))?;
        open(Path::new("/"))
            .and_then(|root| {
                sys::restrict(root.as_fd(), MountRestriction::Writes, MountDepth::This)
            })
            .map_err(|error| CageError::os(CageStep::Root, "making the root read-only", error))?;
        Ok(built)
    }

    /// Mounts the overlays aside, before their places in the root exist. Failures are recorded in
    /// `plain`.
    fn overlays(
        &self,
        mounted: Option<&OwnedFd>,
        plain: &mut Vec<(PathBuf, Errno)>,
    ) -> Option<OverlayMounts> {
        let all = || self.mounts.iter().filter_map(|mount| Some((mount, mount.overlay.as_ref()?)));
        all().next()?;
        match OverlayMounts::begin(mounted) {
            Ok(overlays) => {
                for (mount, over) in all() {
                    let lower = host_path(&overlay_mounts::lower_dir(&over.directory, &mount.host));
                    let made = open(&lower).and_then(|lower| {
                        overlays.mount(&lower, &open(&host_path(&over.directory))?, &over.directory)
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

impl RootMount {
    /// Opens the host's file or directory behind this mount, without an overlay's changes.
    fn on_host(&self) -> Result<OwnedFd, Errno> {
        open(&host_path(&self.host))
    }

    /// Opens the place to mount on. A mount that hides or seals a path must lie on that very file:
    /// a command of another call may have moved its directory away and left a copy.
    fn place(&self, private: &PrivateDirs) -> Result<OwnedFd, Errno> {
        if matches!(self.kind, MountKind::Empty | MountKind::Sealed) {
            return mount_point::open_verified(|| self.on_host(), &self.at, self.shape, private);
        }
        mount_point::open_or_create(&self.at, self.shape, private)
    }

    /// Makes the mount. `Some` names a guarantee that was lost.
    fn make(&self, memory: u64, private: &PrivateDirs) -> Result<Option<String>, Errno> {
        let place = self.place(private)?;
        let plain = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        match self.kind {
            MountKind::ReadOnly => {
                bind(&self.on_host()?, &place, Some(MountRestriction::WritesAndDevices))?
            }
            MountKind::ReadOnlyNoExec => {
                bind(&self.on_host()?, &place, Some(MountRestriction::WritesDevicesAndPrograms))?
            }
            MountKind::Device => bind(&self.on_host()?, &place, Some(MountRestriction::Writes))?,
            MountKind::Writable => bind(&self.on_host()?, &place, None)?,
            MountKind::Overlay => {
                let directory = self.overlay.iter().map(|over| over.directory.as_path());
                let tree = directory
                    .map(overlay_mounts::mounted_overlay)
                    .next()
                    .ok_or(Errno::EINVAL)??;
                bind(&tree, &place, None)?;
            }
            MountKind::Pinned => bind(&place, &place, None)?,
            MountKind::Sealed => bind(&place, &place, Some(MountRestriction::WritesAndDevices))?,
            MountKind::Empty if self.shape == MountPointKind::Dir => {
                mount_fresh("tmpfs", &place, plain, "size=64k,mode=755")?;
            }
            MountKind::Empty => bind(&open(&host_path(Path::new("/dev/null")))?, &place, None)?,
            MountKind::HostsFile => {
                bind(
                    &open(Path::new(HOSTS_TEXT))?,
                    &place,
                    Some(MountRestriction::WritesAndDevices),
                )?;
            }
            MountKind::Proc => {
                if let Err(errno) = mount_fresh("proc", &place, plain, "") {
                    bind(&self.on_host()?, &place, None)?;
                    return Ok(Some(format!(
                        "The host's /proc is shown, since a fresh one was refused: {errno}."
                    )));
                }
            }
            MountKind::Pts => {
                let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
                mount_fresh("devpts", &place, quiet, "newinstance,ptmxmode=0666,mode=0620")?;
            }
            MountKind::Shm => {
                let size = match memory {
                    0 => String::new(),
                    most => format!(",size={most}"),
                };
                let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
                mount_fresh("tmpfs", &place, flags, &format!("mode=1777{size}"))?;
            }
        }
        Ok(None)
    }
}
