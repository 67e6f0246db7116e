//! The content at a path: a copy before a call, its digest after. For `undo`.
//!
//! Content that cannot be copied whole, or compared with certainty later, is marked as such: undo
//! restores everything or nothing of it.

use data_encoding::HEXLOWER;
use protocol::store::FileBackup;
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Largest file of which a copy is kept.
const LARGEST: u64 = 8 << 20;
/// Largest file whose digest is taken.
const HASHED: u64 = 64 << 20;
/// Most files of one call.
pub(crate) const FILES: usize = 2_000;

/// Kind, and value in place of a digest, of content without a copy.
pub(crate) const NOT_KEPT: &str = "not kept";
/// Value in place of a digest: the content after the call was unreadable or too large.
pub(crate) const UNKNOWN: &str = "unknown";

/// The content found at a path.
#[derive(Debug)]
pub(crate) struct FileCopy {
    pub path: String,
    pub kind: &'static str,
    pub mode: u32,
    pub bytes: Vec<u8>,
    pub digest: Option<String>,
}

/// Reads one path, and everything below it if it is a directory.
pub(crate) fn look(path: &Path, room: &mut u64, found: &mut Vec<FileCopy>) {
    let named = path.to_string_lossy().into_owned();
    let mut add = |kind, mode, bytes, digest| {
        found.push(FileCopy { path: named.clone(), kind, mode, bytes, digest });
    };
    let meta = match path.symlink_metadata() {
        // Under another name it could not be put back.
        Ok(_) if path.to_str().is_none() => return found.push(not_kept(named)),
        Ok(meta) => meta,
        Err(error) if is_gone(&error) => {
            return add("absent", 0, Vec::new(), None);
        }
        Err(_) => return found.push(not_kept(named)),
    };
    let mode = meta.permissions().mode();
    if meta.is_dir() {
        let entries = std::fs::read_dir(path)
            .and_then(|entries| entries.take(FILES + 1).collect::<Result<Vec<_>, _>>());
        let mut entries: Vec<PathBuf> = match entries {
            Ok(entries) if entries.len() + found.len() <= FILES => {
                entries.iter().map(std::fs::DirEntry::path).collect()
            }
            // A part of a directory would be restored as if it were the whole.
            Ok(_) | Err(_) => return found.push(not_kept(named)),
        };
        entries.sort();
        for entry in entries {
            look(&entry, room, found);
        }
        return;
    }
    if meta.is_symlink() {
        return match digest_now(&named) {
            Some(digest) => add("link", mode, Vec::new(), Some(digest)),
            None => add("absent", 0, Vec::new(), None),
        };
    }
    let bytes = (meta.is_file() && meta.len() <= LARGEST.min(*room)).then(|| read(path)).flatten();
    match bytes {
        Some(bytes) => {
            *room = room.saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            let digest = HEXLOWER.encode(&Sha256::digest(&bytes));
            add("file", mode, bytes, Some(digest));
        }
        None => found.push(not_kept(named)),
    }
}

/// No copy of the content exists.
pub(crate) fn not_kept(path: String) -> FileCopy {
    FileCopy { path, kind: NOT_KEPT, mode: 0, bytes: Vec::new(), digest: Some(NOT_KEPT.to_owned()) }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path).ok()??.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
    (u64::try_from(bytes.len()).unwrap_or(u64::MAX) <= LARGEST).then_some(bytes)
}

/// Opens a regular file; none if something else is there. Another process may put a link or a FIFO
/// in its place at any moment: the link is not followed, and the FIFO is not waited for.
pub(crate) fn open(path: &Path) -> std::io::Result<Option<File>> {
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}

/// The content at a path, in the form of the wire; [`UNKNOWN`] if it cannot be determined.
pub(crate) fn digest_now(path: &str) -> Option<String> {
    let unknown = Some(UNKNOWN.to_owned());
    let meta = match Path::new(path).symlink_metadata() {
        Ok(meta) => meta,
        Err(error) if is_gone(&error) => return None,
        Err(_) => return unknown,
    };
    if meta.is_symlink() {
        return match std::fs::read_link(path) {
            Ok(leads_to) => Some(format!("{}{}", FileBackup::LINK, leads_to.to_string_lossy())),
            Err(_) => unknown,
        };
    }
    if !meta.is_file() {
        return Some("no file".to_owned());
    }
    open(Path::new(path)).ok().flatten().and_then(|file| digest_of(&file)).or(unknown)
}

/// A file's digest; none where it is too large or cannot be read.
pub(crate) fn digest_of(file: &File) -> Option<String> {
    // The store answers no other request while it reads this.
    if file.metadata().ok()?.len() > HASHED {
        return None;
    }
    let (mut file, mut hash) = (file.take(HASHED + 1), Sha256::new());
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer) {
            // It grew.
            Ok(0) if file.limit() == 0 => return None,
            Ok(0) => return Some(HEXLOWER.encode(&hash.finalize())),
            Ok(length) => hash.update(&buffer[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

fn is_gone(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
