//! Which project files the user trusts: a line of SHA-256 for each, over its path and its content.
//!
//! The path is in the hash because the file that `agentd init` writes is the same everywhere: a
//! foreign project that ships those very bytes must not be trusted with them.

use data_encoding::HEXLOWER;
use protocol::hidden::on_one_line;
use sha2::{Digest, Sha256};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The user's record, a file in the state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustStore {
    file: PathBuf,
}

/// Why the record could not be used.
#[derive(Debug, thiserror::Error)]
#[error("the record of trusted projects {} cannot be {act}: {source}. Check that its directory is yours and the disk is not full", file.display())]
pub struct TrustError {
    file: PathBuf,
    act: &'static str,
    source: io::Error,
}

impl TrustStore {
    /// The record kept in this file, which need not exist.
    #[must_use]
    pub fn at(file: PathBuf) -> Self {
        Self { file }
    }

    /// True if the user trusts this file with this content. Without a record, no file is trusted.
    ///
    /// # Errors
    /// Where there is a record that cannot be read.
    pub fn holds(&self, path: &Path, content: &[u8]) -> Result<bool, TrustError> {
        let line = fingerprint(path, content);
        match fs::read_to_string(&self.file) {
            Ok(record) => Ok(record.lines().any(|known| known.split(' ').next() == Some(&line))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(self.failed("read", source)),
        }
    }

    /// Records that the user trusts this file with this content.
    ///
    /// # Errors
    /// Where the record cannot be written.
    pub fn record(&self, path: &Path, content: &[u8]) -> Result<(), TrustError> {
        if self.holds(path, content)? {
            return Ok(());
        }
        if let Some(dir) = self.file.parent() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(dir)
                .map_err(|source| self.failed("written", source))?;
        }
        // The path after the hash is for people; a line break in it must not start a second line.
        let shown = on_one_line(&path.to_string_lossy());
        let line = format!("{}  {shown}\n", fingerprint(path, content));
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.file)
            .and_then(|mut file| {
                file.write_all(line.as_bytes())?;
                file.sync_data()
            })
            .map_err(|source| self.failed("written", source))
    }

    fn failed(&self, act: &'static str, source: io::Error) -> TrustError {
        TrustError { file: self.file.clone(), act, source }
    }
}

/// 64 hex digits over the file's real path and its bytes.
fn fingerprint(path: &Path, content: &[u8]) -> String {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mut hash = Sha256::new();
    hash.update(real.as_os_str().as_bytes());
    hash.update([0]);
    hash.update(content);
    HEXLOWER.encode(&hash.finalize())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn trust_is_for_one_path_and_one_content() {
        let dir = tempfile::tempdir().unwrap();
        let store = TrustStore::at(dir.path().join("state/agentd/trust"));
        let file = dir.path().join("config.toml");
        assert!(!store.holds(&file, b"a").unwrap(), "no record is no trust");
        store.record(&file, b"a").unwrap();
        store.record(&file, b"a").unwrap();
        assert!(store.holds(&file, b"a").unwrap());
        assert!(!store.holds(&file, b"b").unwrap(), "another content");
        assert!(!store.holds(&dir.path().join("other.toml"), b"a").unwrap(), "another path");
        let record = fs::read_to_string(dir.path().join("state/agentd/trust")).unwrap();
        assert_eq!(record.lines().count(), 1, "recorded once");
        let mode =
            fs::metadata(dir.path().join("state/agentd/trust")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_record_that_cannot_be_used_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let store = TrustStore::at(dir.path().to_path_buf());
        let error = store.holds(Path::new("/x"), b"").unwrap_err();
        assert!(error.to_string().contains("cannot be read"), "{error}");
    }
}
