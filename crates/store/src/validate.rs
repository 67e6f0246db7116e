//! Validation of cached results: every file behind a result must be proven unchanged.
//!
//! A file counts as unchanged while its inode, size, modification time and change time are equal.
//! No program can set the change time, but it advances in steps: a file that was changed within one
//! step before it was read could change again without a trace, so it proves nothing.

use protocol::call::{ReadEvidence, ReadPart, ReadStamp};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whole seconds, in nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// Filesystems that keep change times by this machine's clock, by their numbers in `statfs(2)`:
/// ext, XFS, Btrfs, tmpfs, F2FS, overlay, ZFS, bcachefs. On others, network filesystems above all,
/// a remote clock or a cache separates a change from its timestamp.
const LOCAL: [i64; 8] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0xf2f5_2010,
    0x794c_7630,
    0x2fc1_2fc1,
    0xca45_1a4e,
];

/// The filesystem of this directory, if changes of its files can be detected.
pub(crate) fn filesystem(project: &Path) -> Option<u64> {
    let kind = nix::sys::statfs::statfs(project).ok()?.filesystem_type().0;
    LOCAL.contains(&kind).then(|| project.metadata().ok().map(|meta| meta.dev())).flatten()
}

/// True if this evidence can prove something later: no part of it was changed just before it was
/// read, and all of it is on that filesystem.
pub(crate) fn proves(evidence: &ReadEvidence, device: u64) -> bool {
    evidence.parts.iter().all(|part| match part.was {
        Some(stamp) => stamp.device == device && stamp.is_settled(evidence.began),
        None => true,
    })
}

/// True if every part is unchanged.
pub(crate) fn holds(evidence: &ReadEvidence) -> bool {
    evidence.parts.iter().all(is_as_it_was)
}

fn is_as_it_was(part: &ReadPart) -> bool {
    let now = match Path::new(&part.path).symlink_metadata() {
        Ok(meta) => meta,
        Err(error) => {
            let gone = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
            return gone && part.was.is_none();
        }
    };
    let nanoseconds = |seconds: i64, rest| seconds.saturating_mul(SECOND) + rest;
    part.was
        == Some(ReadStamp {
            device: now.dev(),
            inode: now.ino(),
            size: now.size(),
            modified: nanoseconds(now.mtime(), now.mtime_nsec()),
            changed: nanoseconds(now.ctime(), now.ctime_nsec()),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(changed: i64, began: i64) -> ReadEvidence {
        let was = Some(ReadStamp { device: 1, inode: 2, size: 3, modified: 0, changed });
        ReadEvidence { began, parts: vec![ReadPart { path: "/p/a".into(), was }] }
    }

    #[test]
    fn what_was_changed_within_a_step_of_being_read_proves_nothing() {
        let began = 1_000 * SECOND + 5;
        assert!(proves(&evidence(began - 30_000_000, began), 1));
        assert!(!proves(&evidence(began - 30_000_000, began), 9), "another filesystem");
        assert!(!proves(&evidence(began - 10_000_000, began), 1));
        assert!(!proves(&evidence(began + 1, began), 1), "while it was read");
        assert!(!proves(&evidence(began + 9 * SECOND, began), 1), "a clock was set back");
        // Where times are whole seconds, a second is a step.
        assert!(!proves(&evidence(999 * SECOND, began), 1));
        assert!(proves(&evidence(997 * SECOND, began), 1));
    }
}
