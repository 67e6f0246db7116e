//! Disks that fail under a journal: a real file system on a device in memory, whose writes can be
//! made to fail. Needs root, loop devices, `mkfs.ext4`, `mount` and `umount`.

#![allow(clippy::unwrap_used)]

#[path = "journal/sample/mod.rs"]
mod sample;

use journal::{AppendError, Audit, AuditError, DecisionRecord, Journal, OpenError, verify};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use sample::{decided, header, prompt, records};
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::{TempDir, tempdir};

/// A mounted file system.
struct Disk {
    memory: Option<File>,
    place: TempDir,
}

#[track_caller]
fn succeeds(program: &str, arguments: &[&str]) {
    let run = Command::new(program).args(arguments).output();
    let run = run.unwrap_or_else(|error| panic!("this test needs `{program}`: {error}"));
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{program} {arguments:?} (it needs root): {said}");
}

impl Disk {
    fn tmpfs(bytes: usize) -> Self {
        let place = tempdir().unwrap();
        let size = format!("size={bytes}");
        let at = place.path().to_str().unwrap();
        succeeds("mount", &["-t", "tmpfs", "-o", &size, "none", at]);
        Self { memory: None, place }
    }

    fn ext4() -> Self {
        let memory = File::from(memfd_create("disk", MFdFlags::MFD_ALLOW_SEALING).unwrap());
        memory.set_len(32 << 20).unwrap();
        succeeds("mkfs.ext4", &["-q", "-F", path(&memory).to_str().unwrap()]);
        Self::mounted(memory)
    }

    fn mounted(memory: File) -> Self {
        let place = tempdir().unwrap();
        let (device, at) = (path(&memory), place.path().to_str().unwrap());
        let device = device.to_str().unwrap();
        succeeds("mount", &["-t", "ext4", "-o", "loop,errors=remount-ro", device, at]);
        Self { memory: Some(memory), place }
    }

    fn path(&self) -> &Path {
        self.place.path()
    }

    /// From now on the device answers each write with an error.
    fn writes_fail(&self) {
        let seal = FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_FUTURE_WRITE);
        fcntl(self.memory.as_ref().unwrap(), seal).unwrap();
    }

    /// From now on the file system takes no writes, as after an error in its own structures.
    fn goes_read_only(&self) {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let at = self.path().to_str().unwrap();
        let line = mounts.lines().find(|line| line.split(' ').nth(1) == Some(at)).unwrap();
        let device = line.split(' ').next().unwrap().trim_start_matches("/dev/");
        fs::write(format!("/sys/fs/ext4/{device}/trigger_fs_error"), "a test").unwrap();
    }

    /// What a sound disk with the same bytes holds.
    fn mended(mut self) -> Self {
        let mut memory = self.memory.take().unwrap();
        drop(self);
        let mut bytes = Vec::new();
        memory.rewind().unwrap();
        memory.read_to_end(&mut bytes).unwrap();
        let mut copy = File::from(memfd_create("copy", MFdFlags::MFD_ALLOW_SEALING).unwrap());
        copy.write_all(&bytes).unwrap();
        Self::mounted(copy)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.place.path()).status();
    }
}

fn path(memory: &File) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd()))
}

#[track_caller]
fn takes_no_more(journal: &mut Journal) {
    let closed = journal.append(&prompt("later")).unwrap_err();
    assert!(matches!(closed, AppendError::ReadOnly { .. }), "{closed:?}");
    assert!(closed.to_string().contains("takes no more records"), "{closed}");
    assert!(matches!(journal.sync(), Err(AppendError::ReadOnly { .. })));
}

#[test]
#[ignore = "needs a loop device: .ci/nightly machine"]
fn a_sync_that_fails_closes_the_journal_and_what_was_confirmed_is_still_there() {
    let disk = Disk::ext4();
    let mut journal = Journal::create(disk.path(), header("s1")).unwrap();
    journal.append(&prompt("confirmed")).unwrap();
    disk.writes_fail();
    let error = journal.append(&prompt("not confirmed")).unwrap_err();
    let AppendError::Sync { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.raw_os_error(), Some(Errno::EIO as i32));
    takes_no_more(&mut journal);
    drop(journal);
    let disk = disk.mended();
    let dir = disk.path().join("s1");
    let mut journal = Journal::open(&dir).unwrap().journal;
    assert_eq!(records(&dir)[1], prompt("confirmed"));
    journal.append(&prompt("on")).unwrap();
    assert_eq!(records(&dir).last(), Some(&prompt("on")));
}

#[test]
#[ignore = "needs a loop device: .ci/nightly machine"]
fn a_sync_that_fails_closes_the_audit_log_and_what_was_confirmed_is_still_there() {
    let disk = Disk::ext4();
    let dir = disk.path().join("audit");
    let mut audit = Audit::open(&dir).unwrap();
    audit.append(&decided("s1", 1, DecisionRecord::Allowed)).unwrap();
    let head = audit.sync().unwrap();
    disk.writes_fail();
    audit.append(&decided("s1", 2, DecisionRecord::Allowed)).unwrap();
    let error = audit.sync().unwrap_err();
    assert!(matches!(error, AuditError::Sync { .. }), "{error:?}");
    let closed = audit.append(&decided("s1", 3, DecisionRecord::Allowed)).unwrap_err();
    assert!(matches!(closed, AuditError::Closed { .. }), "{closed:?}");
    assert!(matches!(audit.sync(), Err(AuditError::Closed { .. })));
    drop(audit);
    let disk = disk.mended();
    let dir = disk.path().join("audit");
    let anchor = journal::ChainAnchor { session: "s1".to_owned(), record: 1, head };
    assert!(verify(&dir, &[anchor]).unwrap().is_whole());
    Audit::open(&dir).unwrap().append(&decided("s1", 2, DecisionRecord::Allowed)).unwrap();
}

#[test]
#[ignore = "needs a loop device: .ci/nightly machine"]
fn a_disk_that_becomes_read_only_closes_the_journal_which_can_still_be_read() {
    let disk = Disk::ext4();
    let mut journal = Journal::create(disk.path(), header("s1")).unwrap();
    journal.append(&prompt("confirmed")).unwrap();
    disk.goes_read_only();
    let error = journal.append(&prompt("not taken")).unwrap_err();
    let AppendError::Write { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.raw_os_error(), Some(Errno::EROFS as i32));
    takes_no_more(&mut journal);
    drop(journal);
    let dir = disk.path().join("s1");
    assert_eq!(records(&dir)[1..], [prompt("confirmed")]);
    let error = Journal::open(&dir).unwrap_err();
    assert!(matches!(error, OpenError::ReadOnlyDisk { .. }), "{error:?}");
    assert!(error.to_string().contains("mounted read-only"), "{error}");
    let disk = disk.mended();
    drop(Journal::open(&disk.path().join("s1")).unwrap());
}

#[test]
fn a_full_disk_closes_the_journal_until_it_is_opened_again() {
    let disk = Disk::tmpfs(256 << 10);
    let mut journal = Journal::create(disk.path(), header("s1")).unwrap();
    journal.append(&prompt("confirmed")).unwrap();
    let filler = disk.path().join("filler");
    let _ = fs::write(&filler, vec![1; 512 << 10]);
    let long = prompt(&"x".repeat(9000));
    let error = journal.append(&long).unwrap_err();
    let AppendError::Write { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.raw_os_error(), Some(Errno::ENOSPC as i32));
    assert!(error.to_string().contains("is the disk full?"), "{error}");
    fs::remove_file(&filler).unwrap();
    takes_no_more(&mut journal);
    drop(journal);
    let dir = disk.path().join("s1");
    let mut journal = Journal::open(&dir).unwrap().journal;
    assert_eq!(records(&dir)[1..], [prompt("confirmed")]);
    journal.append(&long).unwrap();
    // A text that goes beside the journal finds no room either.
    let _ = fs::write(&filler, vec![1; 512 << 10]);
    let error = journal.append(&prompt(&"y".repeat(100_000))).unwrap_err();
    assert!(matches!(error, AppendError::Blob(_)), "{error:?}");
    takes_no_more(&mut journal);
    fs::remove_file(&filler).unwrap();
    drop(journal);
    drop(Journal::open(&dir).unwrap());
    assert_eq!(records(&dir)[1..], [prompt("confirmed"), long]);
}

#[test]
fn an_audit_log_stays_closed_while_the_disk_is_full_and_opens_again_behind_that() {
    let disk = Disk::tmpfs(256 << 10);
    let dir = disk.path().join("audit");
    let mut audit = Audit::open(&dir).unwrap();
    let record = decided("s1", 1, DecisionRecord::Allowed);
    audit.append(&record).unwrap();
    let filler = disk.path().join("filler");
    let _ = fs::write(&filler, vec![1; 512 << 10]);
    while audit.append(&record).is_ok() {}
    for _ in 0..2 {
        let error = audit.reopen().unwrap_err();
        let AuditError::Write { source, .. } = &error else { panic!("{error:?}") };
        assert_eq!(source.raw_os_error(), Some(Errno::ENOSPC as i32));
        assert!(matches!(audit.append(&record), Err(AuditError::Closed { .. })));
    }
    fs::remove_file(&filler).unwrap();
    audit.reopen().unwrap();
    audit.append(&record).unwrap();
    audit.sync().unwrap();
    assert!(verify(&dir, &[]).unwrap().is_whole());
}

#[test]
fn a_session_is_not_begun_on_a_full_disk() {
    let disk = Disk::tmpfs(64 << 10);
    let _ = fs::write(disk.path().join("filler"), vec![1; 128 << 10]);
    let error = Journal::create(disk.path(), header("s1")).unwrap_err();
    assert!(error.to_string().contains("s1"), "{error}");
    fs::remove_file(disk.path().join("filler")).unwrap();
    drop(Journal::create(disk.path(), header("s2")).unwrap());
}
