//! Pinned files in the supervisor. It checks whether a file can be pinned, so that a wrong name is
//! refused at once. It stats pinned files, so that the conversation reads only changed ones.
//! Whether the model may see a file is judged when a call reads it, as for any file.

use crate::unix_time::now_ns;
use crate::worker_ref::WorkerRef;
use protocol::call::ReadStamp;
use protocol::confinement::Confinement;
use protocol::session::{FileStamp, PinnedNews, PinnedStamp, SessionLink, ToSession};
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::timeout;

/// Most pinned files: each costs a read after every round of calls that change, and its tokens in every
/// request.
const MOST_PINNED: usize = 50;
/// Most bytes of a file that is read whole; `read` refuses more.
const WHOLE: u64 = 1_500_000;
/// Longest wait for `stat(2)` of all pinned files. Files without a stamp are read by calls, which know
/// how to wait for a disk.
const STAT: Duration = Duration::from_secs(2);
/// The first bytes of a file that are checked for text.
const BEGINNING: u64 = 8 << 10;

/// Checks that the file is not pinned and that one more may be; the error is for the person.
pub(super) fn check_new(pinned: &[String], file: &str) -> Result<(), String> {
    if file.trim().is_empty() || file.len() > 4096 || file.contains(char::is_control) {
        return Err("name a file on one line".to_owned());
    }
    if pinned.iter().any(|other| other == file) {
        return Err(format!("{file} is pinned already"));
    }
    if pinned.len() >= MOST_PINNED {
        return Err(format!(
            "{MOST_PINNED} files are pinned already, each sent with every request; unpin one \
             with :drop"
        ));
    }
    Ok(())
}

/// Checks that the file is pinned; the error is for the person.
pub(super) fn check_pinned(pinned: &[String], file: &str) -> Result<(), String> {
    match pinned.is_empty() {
        _ if pinned.iter().any(|other| other == file) => Ok(()),
        true => Err("no file is pinned".to_owned()),
        false => Err(format!("{file} is not pinned; these are: {}", pinned.join(", "))),
    }
}

/// `Ok`, or the reason as people read it.
pub(super) async fn can_be_shown(cage: &Confinement, named: &str) -> Result<(), String> {
    let project = cage.project.to_path();
    let granted: Vec<PathBuf> =
        cage.added.iter().chain([&cage.temp]).map(|dir| dir.to_path()).collect();
    let path = named.to_owned();
    // A file may lie on a disk that does not answer.
    let checked =
        tokio::task::spawn_blocking(move || check(&project, &granted, Path::new(&path))).await;
    checked
        .unwrap_or_else(|error| Err(error.to_string()))
        .map_err(|why| format!("{named} cannot be pinned: {why}"))
}

fn check(project: &Path, granted: &[PathBuf], named: &Path) -> Result<(), String> {
    let real = project.join(named).canonicalize().map_err(|error| error.to_string())?;
    if !real.starts_with(project) && !granted.iter().any(|dir| real.starts_with(dir)) {
        return Err(
            "tools have no access to its directory; add the directory with `:add-dir DIR`, \
                    then add the file again"
                .to_owned(),
        );
    }
    let kind = real.metadata().map_err(|error| error.to_string())?;
    if !kind.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if kind.len() > WHOLE {
        return Err(format!("it has {} bytes; the most is {WHOLE}", kind.len()));
    }
    // A pipe may have taken the file's place; opening it would block.
    let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(&real);
    let mut beginning = Vec::new();
    file.and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning))
        .map_err(|error| error.to_string())?;
    if beginning.contains(&0) {
        return Err("it is not a text file".to_owned());
    }
    Ok(())
}

/// Sends the stamps of these files to the conversation's process that asked for them, not to a later one.
pub(super) fn stat(to: WorkerRef<SessionLink>, project: PathBuf, check: u32, files: Vec<String>) {
    let began = now_ns();
    tokio::spawn(async move {
        let unknown =
            files.iter().map(|file| PinnedStamp { file: file.clone(), stamp: FileStamp::Unknown });
        let unknown = unknown.collect();
        let stats = tokio::task::spawn_blocking(move || {
            let stamp = |file: String| {
                let stamp = stamp(project.join(&file).metadata());
                PinnedStamp { file, stamp }
            };
            files.into_iter().map(stamp).collect()
        });
        let stamps = match timeout(STAT, stats).await {
            Ok(Ok(stamps)) => stamps,
            Ok(Err(_)) | Err(_) => unknown,
        };
        to.send(ToSession::Pinned(PinnedNews::Stamps { check, began, stamps }));
    });
}

fn stamp(found: std::io::Result<Metadata>) -> FileStamp {
    let nanoseconds =
        |seconds: i64, rest| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    match found {
        Ok(meta) => FileStamp::Found(ReadStamp {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: nanoseconds(meta.mtime(), meta.mtime_nsec()),
            changed: nanoseconds(meta.ctime(), meta.ctime_nsec()),
        }),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            FileStamp::Missing
        }
        Err(_) => FileStamp::Unknown,
    }
}
