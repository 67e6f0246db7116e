//! A key in a memory file that nobody can change and no file system holds.

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;

/// Puts a key into a sealed memory file, its position at the start. It is passed on as a
/// descriptor, so that only the process that needs the key ever reads it.
///
/// # Errors
/// Where the kernel gives no memory file.
pub fn seal_key(key: &[u8]) -> io::Result<OwnedFd> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut file = File::from(memfd_create(c"agentd-key", flags)?);
    file.write_all(key)?;
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
    use std::io::Read;

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
