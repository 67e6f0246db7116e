//! Repositories that a git index names (gitlinks). The index is read if the search by names did not
//! reach all folders.
//!
//! The format: `gitformat-index(5)`, versions 2 to 4, SHA-1 and SHA-256.

use super::bounded_read::{self, Symlinks};
use super::path_checks::subfolders;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Most bytes of an index that is read: some half a million files.
const INDEX: u64 = 64 << 20;
/// Most parts of an index that lie beside it (`sharedindex.*`).
const SHARED: usize = 8;
/// Most gitlinks that are followed, and longest name (`PATH_MAX`).
const MOST: usize = 10_000;
const LONGEST: usize = 4096;
/// The mode of an entry that is another repository.
const GITLINK: u32 = 0o160_000;
/// From the beginning of an entry to its mode, and to its object's name, in bytes.
const MODE: usize = 24;
const OBJECT: usize = 40;
/// Of an object's name, in bytes: SHA-1, SHA-256.
const NAMES: [usize; 2] = [20, 32];
/// A flag of an entry: two more bytes of flags follow.
const EXTENDED: u16 = 0x4000;

/// The paths of gitlinks in all indices of a git folder, relative to its working trees.
pub(super) fn gitlinks(git: &Path) -> Vec<PathBuf> {
    let beside = std::fs::read_dir(git).into_iter().flatten().flatten();
    let shared = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"sharedindex."))
    };
    let shared = beside.map(|entry| entry.path()).filter(shared).take(SHARED);
    let own = subfolders(&git.join("worktrees")).into_iter().chain([git.to_owned()]);
    let files = own.map(|folder| folder.join("index")).chain(shared);
    let mut found = Vec::new();
    for file in files {
        let Ok(bytes) = bounded_read::bytes(&file, INDEX, Symlinks::Refuse) else { continue };
        // With the wrong hash length the parser finds paths that do not exist, if any.
        found.extend(NAMES.iter().filter_map(|length| in_index(&bytes, *length)).flatten());
    }
    found
}

/// The gitlinks of one index; `None` if it is no index with hashes of this length.
fn in_index(bytes: &[u8], length: usize) -> Option<Vec<PathBuf>> {
    let number = |at: usize| -> Option<u32> {
        Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    let (version, count) = (number(4)?, number(8)?);
    if !bytes.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let (mut at, mut found, mut name) = (12, Vec::new(), Vec::new());
    for _ in 0..count {
        let mode = number(at + MODE)?;
        let mut end = at + OBJECT + length;
        let flags = u16::from_be_bytes(bytes.get(end..end + 2)?.try_into().ok()?);
        end += if version > 2 && flags & EXTENDED != 0 { 4 } else { 2 };
        if version == 4 {
            let (dropped, read) = varint(bytes.get(end..)?)?;
            name.truncate(name.len().checked_sub(dropped)?);
            end += read;
        } else {
            name.clear();
        }
        let rest = bytes.get(end..)?;
        let written = rest.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(&rest[..written]);
        end += written + 1;
        // Longer than the kernel takes, or more than any project has: nothing more is believed.
        if name.len() > LONGEST || found.len() > MOST {
            return Some(found);
        }
        // Before version 4 an entry is filled up to a multiple of eight bytes.
        at = if version == 4 { end } else { at + (end - at).next_multiple_of(8) };
        if mode == GITLINK {
            found.push(PathBuf::from(OsStr::from_bytes(&name)));
        }
    }
    Some(found)
}

/// A number in as many bytes as it takes, and how many those are.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value: usize = 0;
    for (at, byte) in bytes.iter().enumerate().take(8) {
        value = (value << 7) + usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::process::Command;

    #[test]
    fn gitlinks_are_found_in_every_version_that_git_writes() {
        let settings =
            ["index.version 2", "index.version 3", "index.version 4", "core.splitIndex true"];
        for format in ["sha1", "sha256"] {
            for setting in settings {
                let dir = tempfile::tempdir().unwrap();
                let script = format!(
                    "git init -q --object-format={format} . && git config {setting} && mkdir -p a/b && \
                     echo x > a/b/file && echo x > a/other && git add . && echo y > new && git add -N new && \
                     id=$(printf x | git hash-object --stdin) && \
                     git update-index --add --cacheinfo 160000,$id,a/b/c/deep && \
                     git update-index --add --cacheinfo 160000,$id,z"
                );
                let out =
                    Command::new("sh").args(["-ec", &script]).current_dir(dir.path()).output();
                let out = out.unwrap();
                assert!(out.status.success(), "this test drives git: {out:?}");
                let found = gitlinks(&dir.path().join(".git"));
                for link in ["a/b/c/deep", "z"].map(PathBuf::from) {
                    assert!(found.contains(&link), "{format} {setting}: {found:?}");
                }
                assert!(!found.contains(&PathBuf::from("a/b/file")), "{format} {setting}");
            }
        }
    }

    #[test]
    fn what_is_no_index_has_none() {
        let whole = b"DIRC\0\0\0\x02\0\0\0\x01".to_vec();
        for bytes in [&b""[..], b"DIRC", b"DIRC\0\0\0\x05\0\0\0\0", &whole, &[0xff; 100]] {
            assert_eq!(in_index(bytes, 20), None, "{bytes:?}");
        }
        assert_eq!(in_index(b"DIRC\0\0\0\x02\0\0\0\0", 20), Some(Vec::new()), "an empty one");
    }
}
