//! Copy-on-write directories. The lower side is the user's directory; the upper side, in a
//! directory of agentd's, holds the changes of the project's commands. The kernel mounts an upper
//! side only once at a time, so each call hands its mounts to the next: a call attaches the mounts
//! that it receives, adds missing ones, and passes copies on.

use super::mount_point::OLD;
use super::mount_point::{self, MountPointKind, PrivateDirs};
use crate::sys;
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::fstat;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// In the directory of an overlay: the upper side with the changes, and the kernel's work
/// directory.
pub(crate) const UPPER: &str = "upper";
const WORK: &str = "work";
/// Empty lower side, for a user who has no such directory. Without an overlay a command could set
/// attributes in the upper side that are reserved for the kernel once the user creates the
/// directory.
const NOTHING: &str = "nothing";

/// Where the mounts hang while a root is built.
const MOUNTS: &str = "/.overlays";
/// Where the two sides of one are shown while it is mounted: options name paths, in which some
/// characters mean something else.
const SIDES: [&str; 2] = ["/.lower", "/.upper"];
/// How many copies a call hands on: one for the next, and one should that be killed with it.
const COPIES: usize = 2;

/// Makes the directory of the overlay of this place.
///
/// # Errors
/// Those of making it; `InvalidFilename` for a path that makes no file name.
pub(crate) fn create_directory(all: &Path, place: &Path) -> io::Result<PathBuf> {
    let mut name = Vec::new();
    for byte in place.as_os_str().as_bytes() {
        match byte {
            b'/' => name.extend(b"%2F"),
            b'%' => name.extend(b"%25"),
            other => name.push(*other),
        }
    }
    let directory = all.join(OsString::from_vec(name));
    let make = |path: &Path, mode| DirBuilder::new().recursive(true).mode(mode).create(path);
    make(&directory, 0o700)?;
    for name in [UPPER, WORK, NOTHING] {
        make(&directory.join(name), 0o755)?;
    }
    Ok(directory)
}

/// The lower side for the changes in `directory`; `host` would be shown without an overlay.
pub(crate) fn lower_dir(directory: &Path, host: &Path) -> PathBuf {
    if host.starts_with(directory) { directory.join(NOTHING) } else { host.to_owned() }
}

/// The overlays of a root that is being built.
pub(crate) struct OverlayMounts {
    root: OwnedFd,
}

impl OverlayMounts {
    /// Attaches the mounts of an earlier call, or begins anew.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn begin(mounted: Option<&OwnedFd>) -> Result<Self, Errno> {
        let place = folder(MOUNTS)?;
        match mounted {
            Some(tree) => sys::attach(tree.as_fd(), place.as_fd())?,
            None => {
                let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
                let (kind, options) = (Some("tmpfs"), Some("size=1m,mode=755"));
                mount(Some("agentd"), MOUNTS, kind, flags, options)?;
            }
        }
        Ok(Self { root: folder(MOUNTS)? })
    }

    /// Mounts an overlay unless an earlier call did. `lower` is the lower side; `upper` is
    /// `directory`, opened, with the changes.
    ///
    /// # Errors
    /// The kernel's: `ENODEV` without overlayfs, `EINVAL` if it refuses one of the sides.
    pub(crate) fn mount(
        &self,
        lower: &OwnedFd,
        upper: &OwnedFd,
        directory: &Path,
    ) -> Result<(), Errno> {
        let at = place_of(directory)?;
        if fstat(&folder(&at)?)?.st_dev != fstat(&self.root)?.st_dev {
            return Ok(());
        }
        let made = mount_one([lower, upper], &at);
        for side in SIDES {
            // Where nothing was shown there yet nothing is to be taken away.
            let _ = umount2(side, MntFlags::MNT_DETACH);
        }
        made
    }

    /// Takes them out of the root again, and gives copies for the next calls.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn end(self) -> Result<Vec<OwnedFd>, Errno> {
        let copies: Result<Vec<_>, _> =
            (0..COPIES).map(|_| sys::copied_tree(self.root.as_fd())).collect();
        drop(self.root);
        umount2(MOUNTS, MntFlags::MNT_DETACH)?;
        for left in SIDES.into_iter().chain([MOUNTS]) {
            match std::fs::remove_dir(left) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)));
                }
                Ok(()) | Err(_) => {}
            }
        }
        copies
    }
}

/// The one of this directory, as it is mounted; opened again where a command closed it.
///
/// # Errors
/// The kernel's.
pub(crate) fn mounted_overlay(directory: &Path) -> Result<OwnedFd, Errno> {
    let commands = PrivateDirs { dirs: vec![MOUNTS.into()], ..PrivateDirs::default() };
    mount_point::open_or_create(&place_of(directory)?, MountPointKind::Dir, &commands)
}

fn place_of(directory: &Path) -> Result<PathBuf, Errno> {
    Ok(Path::new(MOUNTS).join(directory.file_name().ok_or(Errno::EINVAL)?))
}

fn mount_one(sides: [&OwnedFd; 2], at: &Path) -> Result<(), Errno> {
    for (side, tree) in SIDES.into_iter().zip(sides) {
        sys::attach(sys::copied_tree(tree.as_fd())?.as_fd(), folder(side)?.as_fd())?;
    }
    let [lower, upper] = SIDES;
    if has_mounts(lower)? {
        return Err(Errno::EXDEV);
    }
    // An unprivileged user may mount with `userxattr`. The mounting process holds the lock on the
    // upper side. With `index` the kernel would refuse the upper side for ever once the user's
    // directory was created anew.
    let options = format!(
        "userxattr,index=off,lowerdir={lower},upperdir={upper}/{UPPER},workdir={upper}/{WORK}"
    );
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("agentd"), at, Some("overlay"), flags, Some(options.as_str()))
}

/// True if a file system is mounted below: an overlay would show the files that it hides. In a user
/// namespace the kernel refuses such a lower side itself.
fn has_mounts(place: &str) -> Result<bool, Errno> {
    let table = std::fs::read(format!("{OLD}/proc/self/mountinfo"));
    let table =
        table.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))?;
    // Its fifth word is the place.
    Ok(String::from_utf8_lossy(&table).contains(&format!(" {place}/")))
}

fn folder(path: impl AsRef<Path>) -> Result<OwnedFd, Errno> {
    mount_point::open_or_create(path.as_ref(), MountPointKind::Dir, &PrivateDirs::default())
}
