//! Restores protected files after a command. The command's runner does it; if that was killed,
//! another process does it from the copies that the runner saved before the command started. That
//! happens before the call is concluded, or before the session continues. Used by the call actor
//! and by the root when it opens a session.

use crate::errand::{Errand, ErrandFailure};
use crate::grant::Grant;
use crate::runner::{RunnerNews, RunnerStart};
use crate::session_lock::SessionLock;
use crate::spawner::Spawner;
use call::tampered_in_words;
use ipc::codec;
use protocol::BUILD_ID;
use protocol::call::{TamperRemedy, TamperedFile};
use protocol::confinement::Confinement;
use protocol::ids::{CallId, Generation};
use protocol::tool::Handover;
use std::fs::{DirBuilder, File, OpenOptions};
use std::future::pending;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tool_specs::RunnerProgram;

/// How long a restore may take; its search alone may use 8 s. If it takes longer, the disk does not
/// answer, and no call may wait for that.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(12);
/// How long its process may take to end if the disk keeps the kernel from ending it.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// Attempts: a process that was killed is replaced this often, less one. A restore can be repeated, and
/// what follows the last failure is a question to the user.
const TRIES: usize = 5;
/// Bound on the size of a stored confinement, in bytes.
const MAX_CONFINEMENT_BYTES: u64 = 1 << 20;

/// The copies that runners save: a pair of files for each call, in a directory of the session that
/// no command reaches.
#[derive(Debug, Clone)]
pub struct ProtectedCopies {
    directory: PathBuf,
    /// The confinement that was stored last, of which calls have links: a sync for each distinct one.
    last_cage: PathBuf,
}

impl ProtectedCopies {
    /// The copies of the session in this directory.
    #[must_use]
    pub fn of(session: &Path) -> Self {
        Self { directory: session.join("protected"), last_cage: session.join("last-cage") }
    }

    /// Creates an empty file for the runner of this call. The call's confinement is stored in a
    /// second file, out of the runner's reach.
    ///
    /// # Errors
    /// Errors of the disk, with a remedy.
    pub fn begin(&self, call: u32, confinement: &Confinement) -> io::Result<OwnedFd> {
        self.make(call, confinement).map_err(|error| {
            let place = self.directory.display();
            let text = format!(
                "the protected files cannot be backed up in {place}: {error}; free space \
                 there, or move agentd's state with XDG_STATE_HOME"
            );
            io::Error::new(error.kind(), text)
        })
    }

    fn make(&self, call: u32, confinement: &Confinement) -> io::Result<OwnedFd> {
        match DirBuilder::new().mode(0o700).create(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) | Ok(()) => {}
        }
        let cage = codec::encode(confinement).map_err(io::Error::other)?;
        let bytes = [BUILD_ID.as_bytes(), b"\n", &cage].concat();
        self.link_cage(call, &bytes).or_else(|_| replace(&self.cage(call), &bytes).map(drop))?;
        let names = self.names(call);
        let mut options = OpenOptions::new();
        let first = options.write(true).read(true).create_new(true).mode(0o600).open(&names);
        first.or_else(|_| replace(&names, b"")).map(OwnedFd::from)
    }

    /// Puts a confinement into place that an earlier call with the same one has made durable.
    ///
    /// # Errors
    /// Where the file system has no hard links, or the disk is full.
    fn link_cage(&self, call: u32, bytes: &[u8]) -> io::Result<()> {
        if !std::fs::read(&self.last_cage).is_ok_and(|found| found == bytes) {
            replace(&self.last_cage, bytes)?;
        }
        if std::fs::hard_link(&self.last_cage, self.cage(call)).is_ok() {
            return Ok(());
        }
        // An earlier runner of the call has a file there.
        let new = self.directory.join(format!("{call}.link"));
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) | Ok(()) => {}
        }
        std::fs::hard_link(&self.last_cage, &new)?;
        // Renaming a link of a file to another one does nothing and leaves both names.
        let renamed = std::fs::rename(&new, self.cage(call));
        let _ = std::fs::remove_file(&new);
        renamed
    }

    /// Removes the copies of a call that is concluded.
    pub fn remove(&self, call: u32) {
        for path in [self.names(call), self.cage(call)] {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "a copy cannot be removed");
                }
                Err(_) | Ok(()) => {}
            }
        }
    }

    /// Removes all copies: their calls are concluded.
    pub fn remove_all(&self) {
        match std::fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let path = self.directory.display();
                tracing::warn!(%path, %error, "copies cannot be removed");
            }
            Err(_) | Ok(()) => {}
        }
    }

    /// True if this call has no file at all, not even the empty one that it started with.
    pub fn lacks(&self, call: u32) -> bool {
        self.names(call).symlink_metadata().is_err()
    }

    /// The copies of this call's runner. `None` if it saved nothing; then its command never
    /// started.
    ///
    /// # Errors
    /// The reason why they cannot be used.
    pub fn names_of(&self, call: u32) -> Result<Option<OwnedFd>, String> {
        let path = self.names(call);
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        match opened {
            Ok((0, _)) => Ok(None),
            Ok((_, file)) => Ok(Some(file.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unusable(&path, &error.to_string())),
        }
    }

    /// The confinement with which this call started.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub fn cage_of(&self, call: u32) -> Result<Confinement, String> {
        let path = self.cage(call);
        let mut bytes = Vec::new();
        let read = File::open(&path)
            .and_then(|file| file.take(MAX_CONFINEMENT_BYTES).read_to_end(&mut bytes));
        read.map_err(|error| unusable(&path, &error.to_string()))?;
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
        if &bytes[..end] != BUILD_ID.as_bytes() {
            return Err(unusable(&path, "another build of agentd wrote it, or it is damaged"));
        }
        let cage = bytes.get(end + 1..).unwrap_or_default();
        codec::decode(cage).map_err(|error| unusable(&path, &error.to_string()))
    }

    fn names(&self, call: u32) -> PathBuf {
        self.directory.join(format!("{call}.names"))
    }

    fn cage(&self, call: u32) -> PathBuf {
        self.directory.join(format!("{call}.cage"))
    }
}

/// Puts a new file with these bytes at this path. An earlier runner of the call may have a file there,
/// which is replaced and not removed: a call that has started and has no file counts as damaged.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let mut options = OpenOptions::new();
    let mut file =
        options.write(true).read(true).create(true).truncate(true).mode(0o600).open(&new)?;
    if !bytes.is_empty() {
        file.write_all(bytes)?;
        file.sync_all()?;
    }
    std::fs::rename(&new, path)?;
    Ok(file)
}

fn unusable(path: &Path, why: &str) -> String {
    format!("the copies that its runner saved cannot be used: {}: {why}", path.display())
}

/// Reported if nothing could be restored: the affected file is unknown.
pub fn unrestored_unknown(why: &str) -> TamperedFile {
    let names = "a protected file (.git/hooks, .envrc or a similar one) perhaps".to_owned();
    TamperedFile { path: names, remedy: TamperRemedy::Left { why: why.to_owned() } }
}

/// The files that were not restored, as text.
pub fn unrestored(names: &[TamperedFile]) -> Vec<String> {
    let left = names.iter().filter(|name| matches!(name.remedy, TamperRemedy::Left { .. }));
    tampered_in_words(left)
}

/// Number of files that the note lists; the record has all.
const NOTE_NAMES: usize = 5;

/// Note for the person who opens a session in which files were restored.
pub fn restored_note(put_right: &[String]) -> Option<String> {
    let (first, rest) = put_right.split_at(put_right.len().min(NOTE_NAMES));
    let more = match rest.len() {
        0 => String::new(),
        more => format!("; {more} more are in `agentd show`"),
    };
    (!first.is_empty()).then(|| {
        format!(
            "a command was cut short; the protected files that it changed were restored to their \
             state before that command: {}{more}. Later versions of them are kept next to them",
            first.join("; ")
        )
    })
}

/// Starts the processes that restore.
#[derive(Debug, Clone)]
pub struct ProtectedRestorer {
    /// Starts them.
    pub spawner: Spawner,
    /// The session's lock, which they share.
    pub lock: SessionLock,
    /// The copies that they restore from.
    pub copies: ProtectedCopies,
    /// How long each may take to say hello.
    pub hello: Duration,
}

impl ProtectedRestorer {
    /// Restores the files that this call changed; none of its processes runs any more. Failures are
    /// part of the result.
    pub async fn restore(&self, call: &CallId, cage: &Confinement) -> Vec<TamperedFile> {
        let mut why = String::new();
        for _ in 0..TRIES {
            let names = match self.copies.names_of(call.number) {
                Ok(Some(names)) => names,
                Ok(None) => return Vec::new(),
                Err(why) => return vec![unrestored_unknown(&why)],
            };
            match self.try_once(call, Grant::repair(cage), names).await {
                Ok(names) => return names,
                Err(ErrandFailure::TimedOut | ErrandFailure::Unkillable) => {
                    tracing::warn!(%call, "protected files could not be restored in time");
                    return vec![unrestored_unknown(
                        "the process that restores them did not finish",
                    )];
                }
                Err(ErrandFailure::Ended(error)) => {
                    tracing::warn!(%call, error, "protected files could not be restored");
                    why = error;
                }
            }
        }
        vec![unrestored_unknown(&why)]
    }

    /// The same for a call of an earlier supervisor.
    pub async fn restore_after_restart(
        &self,
        call: &CallId,
        temp: &Confinement,
    ) -> Vec<TamperedFile> {
        match self.copies.names_of(call.number) {
            Ok(None) => Vec::new(),
            Ok(Some(_)) => match self.copies.cage_of(call.number) {
                // Its temporary directory may be gone, and has no protected files.
                Ok(cage) => {
                    let cage = Confinement { temp: temp.temp.clone(), ..cage };
                    self.restore(call, &cage).await
                }
                Err(why) => vec![unrestored_unknown(&why)],
            },
            Err(why) => vec![unrestored_unknown(&why)],
        }
    }

    async fn try_once(
        &self,
        call: &CallId,
        grant: Grant,
        names: OwnedFd,
    ) -> Result<Vec<TamperedFile>, ErrandFailure> {
        let temp = grant.confinement().temp.to_path();
        // The command may have removed the directory, and without it no cage can be built.
        let _ = DirBuilder::new().mode(0o700).create(temp);
        let start = RunnerStart {
            spawner: &self.spawner,
            program: RunnerProgram::Tool,
            grant,
            hello: self.hello,
            lock: Some(&self.lock),
            handed: vec![(Handover::Protected, names)],
            turn: None,
            generation: Generation(0),
            about: call.to_string(),
        };
        let (who, limit, end) = ("its process", RESTORE_TIMEOUT, END_TIMEOUT);
        let errand = Errand { start, go: None, who, limit, end };
        let answered = errand.run(pending(), |news| {
            if let RunnerNews::Repaired(found) = news { Some(found) } else { None }
        });
        answered.await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::grant::tests::confinement;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A supervisor may die at any moment. A started call that has no file counts as damaged.
    #[test]
    fn a_second_runner_of_a_call_never_leaves_it_without_a_file() {
        let session = tempfile::tempdir().unwrap();
        let copies = ProtectedCopies::of(session.path());
        let mut first = File::from(copies.begin(1, &confinement()).unwrap());
        first.write_all(b"saved").unwrap();
        assert!(copies.names_of(1).unwrap().is_some());
        let over = AtomicBool::new(false);
        let lacked = std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let mut lacked = false;
                while !over.load(Ordering::Relaxed) {
                    lacked |= copies.lacks(1) || copies.cage_of(1).is_err();
                }
                lacked
            });
            for _ in 0..200 {
                copies.begin(1, &confinement()).unwrap();
            }
            over.store(true, Ordering::Relaxed);
            watch.join().unwrap()
        });
        assert!(!lacked);
        assert!(copies.names_of(1).unwrap().is_none(), "the second runner has saved nothing");
        assert_eq!(copies.cage_of(1).unwrap(), confinement());
        let left = std::fs::read_dir(session.path().join("protected")).unwrap().count();
        assert_eq!(left, 2, "the copies and the confinement");
    }

    #[test]
    fn calls_with_one_confinement_share_its_file() {
        use std::os::unix::fs::MetadataExt;
        let session = tempfile::tempdir().unwrap();
        let copies = ProtectedCopies::of(session.path());
        let file = |call: u32| std::fs::metadata(copies.cage(call)).unwrap().ino();
        let other = Confinement { network: protocol::confinement::Network::On, ..confinement() };
        for (call, cage) in [(1, confinement()), (2, confinement()), (3, other.clone())] {
            copies.begin(call, &cage).unwrap();
        }
        assert_eq!(file(1), file(2), "written once");
        assert_ne!(file(1), file(3));
        copies.begin(2, &other).unwrap();
        copies.remove(3);
        assert_eq!(copies.cage_of(1).unwrap(), confinement());
        assert_eq!(copies.cage_of(2).unwrap(), other);
        // A damaged file is not used again.
        std::fs::write(&copies.last_cage, "damage").unwrap();
        copies.begin(4, &other).unwrap();
        assert_eq!(copies.cage_of(4).unwrap(), other);
        let names = std::fs::read_dir(session.path().join("protected")).unwrap().flatten();
        let mut names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        names.sort();
        let calls = ["1.cage", "1.names", "2.cage", "2.names", "4.cage", "4.names"];
        assert_eq!(names, calls);
    }
}
