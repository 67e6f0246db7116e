//! API keys in sealed memory files, which no process can change and no file system stores.

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most bytes of a key file. A longer file is not a key.
const KEY_CAP: u64 = 64 << 10;

/// Writes a key into a sealed memory file, with its position at the start. The file is passed on as
/// a descriptor, so that only the process that needs the key reads it.
///
/// # Errors
/// If the kernel cannot create a memory file.
pub fn seal_key(key: &[u8]) -> io::Result<OwnedFd> {
    let mut file = memory_file()?;
    file.write_all(key)?;
    sealed(file)
}

/// Why a file's key is not taken.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read.
    #[error("the key file {} cannot be read: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not a regular file.
    #[error("the key file {} is not a regular file", path.display())]
    NotAFile {
        /// Which.
        path: PathBuf,
    },
    /// Others may read or write it.
    #[error(
        "the key file {} has mode {mode:04o}: other users may read or change the key. Run `chmod \
         600 {}`, and consider replacing the key",
        path.display(), path.display()
    )]
    Open {
        /// Which.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Another user owns it.
    #[error("the key file {} belongs to another user. Copy the key into a file of your own", path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
    },
}

/// Copies the key of a file into a sealed memory file. The kernel copies it, so this process never
/// has the key in its memory.
///
/// # Errors
/// [`KeyFileError`]; above all where others than the caller may read the file.
pub fn key_of_file(path: &Path) -> Result<OwnedFd, KeyFileError> {
    let path = || path.to_owned();
    let unreadable = |source| KeyFileError::Unreadable { path: path(), source };
    // Checked before opening: opening a FIFO would block.
    if !fs::metadata(path()).map_err(unreadable)?.is_file() {
        return Err(KeyFileError::NotAFile { path: path() });
    }
    let mut file = File::open(path()).map_err(unreadable)?;
    let found = file.metadata().map_err(unreadable)?;
    let mode = found.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Open { path: path(), mode });
    }
    if found.uid() != nix::unistd::geteuid().as_raw() {
        return Err(KeyFileError::Foreign { path: path() });
    }
    let mut memory = memory_file().map_err(unreadable)?;
    io::copy(&mut (&mut file).take(KEY_CAP), &mut memory).map_err(unreadable)?;
    sealed(memory).map_err(unreadable)
}

/// A memory file that can be sealed.
pub(crate) fn memory_file() -> io::Result<File> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    Ok(File::from(memfd_create(c"agentd-key", flags)?))
}

/// Seals it, its position at the start.
pub(crate) fn sealed(mut file: File) -> io::Result<OwnedFd> {
    file.rewind()?;
    let seals = SealFlag::F_SEAL_SEAL
        | SealFlag::F_SEAL_SHRINK
        | SealFlag::F_SEAL_GROW
        | SealFlag::F_SEAL_WRITE;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_file_that_others_may_read_is_refused_and_ones_own_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        fs::write(&path, "sk-file\n").unwrap();
        for (mode, good) in
            [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o660, false)]
        {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            match key_of_file(&path) {
                Ok(key) => {
                    assert!(good, "{mode:o}");
                    let mut text = String::new();
                    File::from(key).read_to_string(&mut text).unwrap();
                    assert_eq!(text, "sk-file\n");
                }
                Err(error) => {
                    assert!(!good, "{error}");
                    assert!(error.to_string().contains("chmod 600"), "{error}");
                }
            }
        }
        assert!(matches!(key_of_file(dir.path()), Err(KeyFileError::NotAFile { .. })));
        let missing = key_of_file(&dir.path().join("none"));
        assert!(matches!(missing, Err(KeyFileError::Unreadable { .. })));
    }

    #[test]
    fn a_sealed_key_can_be_read_and_not_changed() {
        let mut file = File::from(seal_key(b"sk-secret").unwrap());
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "sk-secret");
        assert!(file.write_all(b"x").is_err());
        assert!(file.set_len(0).is_err());
    }
}
