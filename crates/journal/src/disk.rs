//! The few ways in which this crate makes and syncs files and directories.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Now, in milliseconds of Unix time; 0 for a clock before 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// An error with everything that caused it, in one sentence.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Makes a directory that only its owner may enter. Its parent is to be synced by the caller.
pub(crate) fn make_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Like above, but accepts an existing directory; creates missing parents too.
pub(crate) fn ensure_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(path)
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// A new file of the owner's alone; fails where there is one.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)
}

/// A file to read and to append to.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).open(path)
}

/// Takes the file's lock with a time limit. Holders keep it for a moment only; one that was stopped
/// in that moment must not block all others.
pub(crate) fn lock_within(file: &File, patience: Duration) -> io::Result<()> {
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if start.elapsed() > patience => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("another process has held its lock for {} ms", patience.as_millis()),
                ));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// How many torn ends are kept of one file.
const TORN_KEPT: u32 = 16;

/// Cuts off everything from `from` on and keeps it in a new file `<stem>.torn-<n>` of `dir`. The
/// copy is durable before the cut. Of many only the newest are kept: each is half a record, which never
/// counted.
pub(crate) fn set_aside(file: &File, from: u64, dir: &Path, stem: &str) -> io::Result<PathBuf> {
    let mut source = file;
    source.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes)?;
    let TornFiles { path, file: mut kept, oldest } = next_free(dir, stem)?;
    if let Err(error) = kept.write_all(&bytes).and_then(|()| kept.sync_all()) {
        // Half a copy of data that still exists at its old path.
        let _ = fs::remove_file(&path);
        return Err(error);
    }
    sync_dir(dir)?;
    for old in oldest {
        // It is only litter.
        let _ = fs::remove_file(old);
    }
    file.set_len(from)?;
    file.sync_all()?;
    Ok(path)
}

/// Where a torn end is kept, and which are then too many.
struct TornFiles {
    path: PathBuf,
    file: File,
    oldest: Vec<PathBuf>,
}

/// A new file behind the highest number that there is.
fn next_free(dir: &Path, stem: &str) -> io::Result<TornFiles> {
    let prefix = format!("{stem}.torn-");
    let mut numbers: Vec<u32> = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(&prefix)?.parse::<u32>().ok());
        // A file that agentd did not create may have any number, and must not use up the numbers.
        numbers.extend(number.filter(|number| *number < u32::MAX / 2));
    }
    let mut number = numbers.iter().max().map_or(1, |highest| highest + 1);
    loop {
        let path = dir.join(format!("{prefix}{number}"));
        match create_file(&path) {
            Ok(file) => {
                let too_many = numbers.iter().filter(|old| *old + TORN_KEPT <= number);
                let oldest = too_many.map(|old| dir.join(format!("{prefix}{old}"))).collect();
                return Ok(TornFiles { path, file, oldest });
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                number += 1;
            }
            Err(error) => return Err(error),
        }
    }
}
