//! A baseline as bytes in a file. The runner writes it before the command. If the runner is killed,
//! another process reads it and restores the protected files.
//!
//! A file is read by the build that wrote it and by no other: each type's fields go one behind the
//! other, in the order of its line below it.

use super::baseline::Baseline;
use super::persist::{Persist, persist, save_all};
use crate::policy::{self, ProtectedName};
use protocol::BUILD_ID;
use protocol::call::{TamperRemedy, TamperedFile};
use protocol::confinement::Profile;
use std::fs::File;
use std::io::{self, Read, Seek, Write};

/// Begins each file, before the build that wrote it.
const HEAD: &str = "agentd protected names, build ";
/// Longest file, in bytes: a multiple of the limit for one call.
const MOST: u64 = 64 << 20;

impl Baseline {
    /// Writes it to this file and waits until the disk has it. A killed runner needs no such wait, a
    /// machine without power does: so that an empty or missing file is proof that its command never
    /// began. It costs half a millisecond on ext4, while the supervisor waits for its own record.
    /// The file's name comes along there, as on XFS and Btrfs: a wait for the directory would cost five
    /// times that.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn save(&self, file: &mut File) -> io::Result<()> {
        let head = format!("{HEAD}{BUILD_ID}\n").into_bytes();
        file.write_all(&[head, vec![STATE], encode_part(self)].concat())?;
        file.sync_all()
    }

    /// Adds a newer state, which counts instead.
    ///
    /// # Errors
    /// Those of the disk.
    pub(super) fn save_again(&self, file: &mut File) -> io::Result<()> {
        file.write_all(&[vec![STATE], encode_part(self)].concat())
    }
}

/// Before each part of a file: a state, or repairs.
const STATE: u8 = 0;
const REPAIRS: u8 = 1;

/// Content of a file.
struct BaselineFile {
    before: Baseline,
    /// Repairs that the runner made itself and recorded.
    done: Vec<TamperedFile>,
}

/// Reads this file from its beginning; `None` where nothing was written, so that its command never
/// began.
fn read(file: &mut File) -> Result<Option<BaselineFile>, String> {
    let mut bytes = Vec::new();
    let read = file.rewind().and_then(|()| file.take(MOST).read_to_end(&mut bytes));
    read.map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or("it is damaged")?;
    let (head, rest) = bytes.split_at(end);
    let build = head.strip_prefix(HEAD.as_bytes()).ok_or("it is damaged")?;
    if build != BUILD_ID.as_bytes() {
        return Err("another build of agentd wrote it".to_owned());
    }
    let mut rest = rest.get(1..).unwrap_or_default();
    let before = decode_state(&mut rest).ok_or("it is damaged")?;
    let mut read = BaselineFile { before, done: Vec::new() };
    // A runner that was killed while it recorded its repairs counts as one that made none.
    while let Some(part) = rest.first() {
        if *part == STATE {
            let Some(before) = decode_state(&mut rest) else { break };
            read.before = before;
            continue;
        }
        rest = &rest[1..];
        let Some(done) = decode_part::<Vec<TamperedFile>>(&mut rest) else { break };
        let new = done.into_iter().filter(|one| !read.done.contains(one)).collect::<Vec<_>>();
        read.done.extend(new);
    }
    Ok(Some(read))
}

fn decode_state(from: &mut &[u8]) -> Option<Baseline> {
    *from = from.strip_prefix(&[STATE])?;
    decode_part(from)
}

/// Restores the protected files from a file that [`crate::Cage::save_baseline`] wrote. Call it in
/// the cage of [`crate::Cage::enter_to_repair`], when no process of the command lives. The runner's
/// own repairs come first in the result.
///
/// # Errors
/// Why the file says nothing.
pub fn repair(file: &mut File) -> Result<Vec<TamperedFile>, String> {
    let Some(BaselineFile { before, mut done }) = read(file)? else { return Ok(Vec::new()) };
    let more = before.restore().into_iter().filter(|name| !done.contains(name)).collect::<Vec<_>>();
    done.extend(more);
    Ok(done)
}

/// Appends the repairs that were made to a file that [`crate::Cage::save_baseline`] wrote, in case
/// the runner's report gets lost.
///
/// # Errors
/// Those of the disk.
pub fn record_repairs(file: &mut File, done: &Vec<TamperedFile>) -> io::Result<()> {
    file.write_all(&[vec![REPAIRS], encode_part(done)].concat())
}

/// Length, checksum and content.
fn encode_part(of: &impl Persist) -> Vec<u8> {
    let mut body = Vec::new();
    of.save(&mut body);
    let mut bytes = Vec::new();
    (body.len() as u64).save(&mut bytes);
    checksum(&body).save(&mut bytes);
    bytes.append(&mut body);
    bytes
}

fn decode_part<T: Persist>(from: &mut &[u8]) -> Option<T> {
    let (length, sum) = (u64::load(from)?, u64::load(from)?);
    let (mut body, rest) = from.split_at_checked(usize::try_from(length).ok()?)?;
    *from = rest;
    if sum != checksum(body) {
        return None;
    }
    T::load(&mut body).filter(|_| body.is_empty())
}

/// True if the policy of this profile protects files, so that there is a baseline to save.
#[must_use]
pub fn has_protected_names(profile: Profile) -> bool {
    !policy::of(profile).protected.is_empty()
}

/// FNV-1a checksum, which detects damage. It need not resist forgery: commands cannot write the
/// file.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

persist!(struct TamperedFile { path, remedy });
persist!(enum TamperRemedy {
    0 => Restored { kept },
    1 => Quarantined { kept },
    2 => Left { why },
    3 => Granted,
    4 => Stays { why },
});

/// The table, identified by its names.
impl Persist for &'static [ProtectedName] {
    fn save(&self, to: &mut Vec<u8>) {
        save_all(&self.iter().map(|known| known.name.to_owned()).collect::<Vec<_>>(), to);
    }

    fn load(from: &mut &[u8]) -> Option<Self> {
        let names: Vec<String> = Persist::load(from)?;
        let table = policy::protected_names();
        table.iter().map(|known| known.name).eq(&names).then_some(table)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::link_targets::LinkTargets;
    use super::super::{ProtectionScope, find_protected};
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
    use std::path::{Path, PathBuf};

    /// A project with several kinds of files at protected names, one of them not valid UTF-8.
    fn project() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join(OsStr::from_bytes(b"pro\xffject"));
        std::fs::create_dir_all(root.join(".git/hooks")).unwrap();
        std::fs::create_dir_all(root.join("sub/.git")).unwrap();
        std::fs::write(root.join(".git/config"), "[core]\n").unwrap();
        std::fs::write(root.join(".git/hooks").join(OsStr::from_bytes(b"h\xfe")), "#!/bin/sh\n")
            .unwrap();
        symlink("elsewhere", root.join(".envrc")).unwrap();
        (dir, root)
    }

    fn before(root: &Path) -> Baseline {
        let (roots, names) = (vec![root.to_owned()], policy::of(Profile::Command).protected);
        let places = find_protected(&roots, None, names);
        let territory = ProtectionScope { roots, linked: None, names, git_writable: Vec::new() };
        Baseline::capture(territory, places, LinkTargets::default(), &[]).unwrap()
    }

    fn saved(before: &Baseline) -> File {
        let mut file = tempfile::tempfile().unwrap();
        before.save(&mut file).unwrap();
        file
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let (_dir, root) = project();
        let before = before(&root);
        let mut file = saved(&before);
        let kept = read(&mut file).unwrap().unwrap();
        // Room on the disk stays the runner's.
        let told =
            |before: &Baseline| format!("{before:?}").split("reserve").next().unwrap().to_owned();
        assert_eq!(told(&before), told(&kept.before));
        let done = [
            TamperRemedy::Restored { kept: Some("a".into()) },
            TamperRemedy::Quarantined { kept: "b".into() },
            TamperRemedy::Left { why: "c".into() },
            TamperRemedy::Granted,
        ];
        let done: Vec<_> =
            done.map(|remedy| TamperedFile { path: ".envrc".into(), remedy }).into_iter().collect();
        record_repairs(&mut file, &done).unwrap();
        assert_eq!(repair(&mut file), Ok(done), "what was done is told, and done once");
    }

    #[test]
    fn what_was_changed_since_it_was_written_is_put_right_from_the_file() {
        let (_dir, root) = project();
        let mut file = saved(&before(&root));
        assert_eq!(repair(&mut file), Ok(Vec::new()), "nothing was changed");
        let (hook, config) = (root.join(".git/hooks/post-commit"), root.join(".git/config"));
        std::fs::write(&hook, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(&config, "[core]\nfsmonitor = evil\n").unwrap();
        let tampered = repair(&mut file).unwrap();
        assert_eq!(tampered.len(), 2, "{tampered:?}");
        assert!(tampered.iter().all(|name| !matches!(name.remedy, TamperRemedy::Left { .. })));
        assert_eq!(std::fs::read_to_string(config).unwrap(), "[core]\n");
        assert!(!hook.exists());
    }

    #[test]
    fn a_file_that_is_not_whole_is_named_and_nothing_is_done() {
        let (_dir, root) = project();
        let file = saved(&before(&root));
        let length = file.metadata().unwrap().len();
        std::fs::write(root.join(".git/config"), "changed\n").unwrap();
        let mut cut = saved(&before(&root));
        cut.set_len(length - 1).unwrap();
        assert_eq!(repair(&mut cut), Err("it is damaged".to_owned()));
        let mut flipped = saved(&before(&root));
        flipped.write_all_at(b"?", length / 2).unwrap();
        assert_eq!(repair(&mut flipped), Err("it is damaged".to_owned()));
        let mut other = tempfile::tempfile().unwrap();
        other.write_all(format!("{HEAD}0.0.0-0\n").as_bytes()).unwrap();
        assert_eq!(repair(&mut other), Err("another build of agentd wrote it".to_owned()));
        let mut empty = tempfile::tempfile().unwrap();
        assert_eq!(repair(&mut empty), Ok(Vec::new()), "its command never began");
        assert_eq!(std::fs::read_to_string(root.join(".git/config")).unwrap(), "changed\n");
    }
}
