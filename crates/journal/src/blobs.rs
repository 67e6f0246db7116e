//! Long texts in files of their own, named by their digest, written once.

use crate::{Digest, disk};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Why a kept text cannot be used or kept.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// It is gone or cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// Its file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// Its content does not match its digest.
    #[error(
        "{path} has changed since it was written: its content does not match the digest in its name"
    )]
    Changed {
        /// Its file.
        path: PathBuf,
    },
    /// It could not be written.
    #[error("cannot write {path}")]
    Write {
        /// Its file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl BlobError {
    /// True if the text is absent, as opposed to damaged or unreadable.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::Read { source, .. } => source.kind() == io::ErrorKind::NotFound,
            Self::Changed { .. } | Self::Write { .. } => false,
        }
    }
}

/// A directory of such files.
#[derive(Debug, Clone)]
pub(crate) struct Blobs {
    dir: PathBuf,
}

impl Blobs {
    /// The blobs of this directory, which is created with the first one.
    pub fn at(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Keeps a text. When this returns, it is on disk under its name.
    pub fn put(&self, text: &str) -> Result<Digest, BlobError> {
        self.put_bytes(text.as_bytes())
    }

    /// The same for bytes.
    pub fn put_bytes(&self, bytes: &[u8]) -> Result<Digest, BlobError> {
        let digest = Digest::of(bytes);
        let path = self.path(digest);
        // Rewrites a damaged blob, since the right bytes are at hand. Touches an existing one, so
        // that retention does not remove it as unused.
        if self.get_bytes(digest).is_err() || mark(&path).is_err() {
            self.write(&path, bytes).map_err(|source| BlobError::Write { path, source })?;
        }
        Ok(digest)
    }

    /// The text of that digest.
    pub fn get(&self, digest: Digest) -> Result<String, BlobError> {
        let bytes = self.get_bytes(digest)?;
        String::from_utf8(bytes).map_err(|_| BlobError::Changed { path: self.path(digest) })
    }

    /// The bytes of that digest.
    pub fn get_bytes(&self, digest: Digest) -> Result<Vec<u8>, BlobError> {
        // Opening a named pipe would block until another process opens its other end.
        self.check(digest, None)?;
        let path = self.path(digest);
        let mut bytes = Vec::new();
        let read = fs::File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes));
        if let Err(source) = read {
            return Err(BlobError::Read { path, source });
        }
        if Digest::of(&bytes) != digest {
            return Err(BlobError::Changed { path });
        }
        Ok(bytes)
    }

    /// Removes a text, unless it was wanted within this time.
    pub fn remove(&self, digest: Digest, spared: Duration) -> io::Result<()> {
        let path = self.path(digest);
        let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let wanted = match fs::metadata(&path).and_then(|found| found.modified()) {
            Err(error) if gone(&error) => return Ok(()),
            wanted => wanted?,
        };
        // A time in the future counts as not yet past.
        if wanted.elapsed().is_ok_and(|since| since >= spared) {
            return fs::remove_file(&path).or_else(|error| gone(&error).then_some(()).ok_or(error));
        }
        Ok(())
    }

    /// True if the text of this digest exists, with this length where one is known. Does not read
    /// it.
    pub fn check(&self, digest: Digest, bytes: Option<u64>) -> Result<(), BlobError> {
        let path = self.path(digest);
        match fs::metadata(&path) {
            Ok(found) if found.is_file() && bytes.is_none_or(|bytes| bytes == found.len()) => {
                Ok(())
            }
            Ok(_) => Err(BlobError::Changed { path }),
            Err(source) => Err(BlobError::Read { path, source }),
        }
    }

    fn path(&self, digest: Digest) -> PathBuf {
        self.dir.join(digest.to_string())
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if !self.dir.exists() {
            disk::ensure_dir(&self.dir)?;
            if let Some(parent) = self.dir.parent() {
                disk::sync_dir(parent)?;
            }
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.dir.join(format!(".unfinished-{}-{number}", std::process::id()));
        // A file left by a dead process with the same ID.
        let _ = fs::remove_file(&unfinished);
        let written = (|| {
            let mut file = disk::create_file(&unfinished)?;
            file.write_all(bytes)?;
            // Renamed before the sync, so that one commit of the file system covers both. A crash
            // in between leaves a file whose digest does not match and to which no record refers.
            fs::rename(&unfinished, path)?;
            file.sync_all()?;
            disk::sync_dir(&self.dir)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written
    }
}

fn mark(path: &Path) -> io::Result<()> {
    fs::OpenOptions::new().append(true).open(path)?.set_modified(SystemTime::now())
}
