//! Bounded reads of files that a command may have made: no read blocks, as on a FIFO without a
//! writer, and none is endless. `protected/` reads files by these functions only.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Most bytes of a file that names one folder: `.git`, `commondir`, `gitdir`.
pub(super) const POINTER: u64 = 4096;
/// No person writes more settings of a repository than this.
pub(super) const SETTINGS: u64 = 256 * 1024;

/// How to treat a symbolic link in place of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symlinks {
    Follow,
    Refuse,
}

/// Why there are no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadFailure {
    /// Nothing is there.
    Absent,
    /// Not a regular file, too large, or not permitted.
    Unreadable,
}

/// All of a regular file that has no more bytes than `most`.
pub(super) fn bytes(path: &Path, most: u64, links: Symlinks) -> Result<Vec<u8>, ReadFailure> {
    let gone = |error: io::Error| match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => ReadFailure::Absent,
        _ => ReadFailure::Unreadable,
    };
    // Opening a device may have an effect. The file may still be replaced before it is opened.
    let found = match links {
        Symlinks::Follow => path.metadata(),
        Symlinks::Refuse => path.symlink_metadata(),
    };
    if !found.map_err(gone)?.is_file() {
        return Err(ReadFailure::Unreadable);
    }
    let follow = match links {
        Symlinks::Follow => 0,
        Symlinks::Refuse => libc::O_NOFOLLOW,
    };
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC | follow)
        .open(path)
        .map_err(gone)?;
    let regular = file.metadata().is_ok_and(|found| found.is_file() && found.len() <= most);
    let mut bytes = Vec::new();
    let whole = regular
        && file.take(most + 1).read_to_end(&mut bytes).is_ok()
        && bytes.len() as u64 <= most;
    if whole { Ok(bytes) } else { Err(ReadFailure::Unreadable) }
}

/// The same as text. Invalid UTF-8 counts as unreadable.
pub(super) fn text(path: &Path, most: u64, links: Symlinks) -> Result<String, ReadFailure> {
    String::from_utf8(bytes(path, most, links)?).map_err(|_| ReadFailure::Unreadable)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use nix::sys::stat::Mode;

    #[test]
    fn only_regular_files_within_the_bound_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "four").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        nix::unistd::mkfifo(&at("fifo"), Mode::S_IRWXU).unwrap();
        std::os::unix::fs::symlink("fifo", at("to-fifo")).unwrap();
        File::create(at("sparse")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(bytes(&at("file"), 4, Symlinks::Refuse).unwrap(), b"four");
        assert_eq!(text(&at("link"), 4, Symlinks::Follow).unwrap(), "four");
        for (name, most, links, why) in [
            ("file", 3, Symlinks::Refuse, ReadFailure::Unreadable),
            ("link", 4, Symlinks::Refuse, ReadFailure::Unreadable),
            ("fifo", 4, Symlinks::Refuse, ReadFailure::Unreadable),
            ("to-fifo", 4, Symlinks::Follow, ReadFailure::Unreadable),
            ("sparse", SETTINGS, Symlinks::Refuse, ReadFailure::Unreadable),
            (".", SETTINGS, Symlinks::Refuse, ReadFailure::Unreadable),
            ("none", 4, Symlinks::Follow, ReadFailure::Absent),
            ("file/none", 4, Symlinks::Follow, ReadFailure::Absent),
        ] {
            assert_eq!(bytes(&at(name), most, links), Err(why), "{name}");
        }
    }
}
