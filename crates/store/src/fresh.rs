//! Whether what an answer was made from is as it was: the proof without which none is given again.
//!
//! A file counts as unchanged while its place, size, time of content and time of change are the same.
//! The last of them no program can set, but it moves in steps: what was changed within such a step of
//! being read could be changed again without a trace, and proves nothing.

use protocol::call::{Evidence, Part, Stamp};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whole seconds, in nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// Filesystems that keep a time of change by this machine's clock, by the numbers of `statfs(2)`: ext,
/// XFS, Btrfs, tmpfs, F2FS, overlay, ZFS, bcachefs. On others, those of networks above all, somebody
/// else's clock or cache stands between a change and its trace.
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

/// Whether changes of the files in this directory can be told; if so, by which filesystem.
pub(crate) fn filesystem(project: &Path) -> Option<u64> {
    let kind = nix::sys::statfs::statfs(project).ok()?.filesystem_type().0;
    LOCAL.contains(&kind).then(|| project.metadata().ok().map(|meta| meta.dev())).flatten()
}

/// Whether this can prove anything later: nothing of it was changed just before it was read, and all
/// of it lies on that filesystem.
pub(crate) fn proves(evidence: &Evidence, device: u64) -> bool {
    evidence.parts.iter().all(|part| match part.was {
        Some(stamp) => stamp.device == device && stamp.is_settled(evidence.began),
        None => true,
    })
}

/// Whether all of it is as it was.
pub(crate) fn holds(evidence: &Evidence) -> bool {
    evidence.parts.iter().all(is_as_it_was)
}

fn is_as_it_was(part: &Part) -> bool {
    let now = match Path::new(&part.path).symlink_metadata() {
        Ok(meta) => meta,
        Err(error) => {
            let gone = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
            return gone && part.was.is_none();
        }
    };
    let nanoseconds = |seconds: i64, rest| seconds.saturating_mul(SECOND) + rest;
    part.was
        == Some(Stamp {
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

    fn evidence(changed: i64, began: i64) -> Evidence {
        let was = Some(Stamp { device: 1, inode: 2, size: 3, modified: 0, changed });
        Evidence { began, parts: vec![Part { path: "/p/a".into(), was }] }
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
