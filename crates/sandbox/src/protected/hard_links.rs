//! Protected files with more than one hard link: a write under another name changes them, which no
//! mount prevents.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most names beneath protected folders that are checked, and greatest depth; as for links.
pub(super) const MOST: usize = 2000;
const DEEP: usize = 16;

/// A file with other names, by device and inode.
pub(super) type SharedFile = (PathBuf, (u64, u64));

/// The files at or beneath a path that have more than one hard link. `left` counts the names that may
/// still be checked.
pub(super) fn shared_files(path: &Path, left: &mut usize) -> Vec<SharedFile> {
    let mut found = Vec::new();
    let mut next = vec![(path.to_owned(), DEEP)];
    while let Some((path, deep)) = next.pop() {
        let Some(fewer) = left.checked_sub(1) else { break };
        *left = fewer;
        let Ok(meta) = path.symlink_metadata() else { continue };
        if meta.is_file() && meta.nlink() > 1 {
            found.push((path, (meta.dev(), meta.ino())));
        } else if let (true, Some(deeper)) = (meta.is_dir(), deep.checked_sub(1)) {
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            next.extend(entries.map(|entry| (entry.path(), deeper)));
        }
    }
    found
}
