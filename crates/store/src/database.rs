//! One SQLite file that cannot block a session: it is created at first use, recreated if another
//! process removed it, and moved aside if it is damaged. Used by every part of the store.
//!
//! A call's changes and its result are written in one transaction under the call's ID. A repeated
//! request returns the stored result, and nothing is done twice.

use crate::StoreResult;
use crate::failure::{StoreError, StoreErrorCode, is_damage};
use protocol::ids::CallId;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a writer of another session is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Number of calls whose results are stored: many times the number that can be open at once.
const REMEMBERED: u32 = 10_000;

/// Suffix of a file that was moved aside; the time follows.
const DAMAGED: &str = ".damaged-";

/// The table of calls; its user adds the other tables.
const LEDGER: &str = "CREATE TABLE IF NOT EXISTS done (
    at INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    call INTEGER NOT NULL,
    text TEXT NOT NULL,
    summary TEXT NOT NULL,
    UNIQUE (session, call)
);";

/// The durability of a file across a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durable {
    /// Every confirmed transaction.
    Always,
    /// Only transactions that the system had written by then; the file stays intact.
    UnlessPowerFails,
}

/// One file.
#[derive(Debug)]
pub(crate) struct Database {
    path: PathBuf,
    schema: &'static str,
    /// Its name in messages: `this project's memory`.
    what: &'static str,
    durable: Durable,
    open: Option<OpenDatabase>,
    /// Notes about files moved aside since the last request for them.
    damages: Vec<String>,
    /// How often that happened.
    lives: u32,
}

#[derive(Debug)]
struct OpenDatabase {
    connection: Connection,
    /// The file that is open, by device and number.
    file: (u64, u64),
}

/// Why something was not done here.
enum DatabaseError {
    Failed(StoreError),
    /// The file is to blame, and how.
    Damaged(String),
}

impl From<rusqlite::Error> for DatabaseError {
    fn from(error: rusqlite::Error) -> Self {
        match is_damage(&error) {
            true => Self::Damaged(error.to_string()),
            false => Self::Failed(error.into()),
        }
    }
}

impl From<StoreError> for DatabaseError {
    fn from(failure: StoreError) -> Self {
        match failure.code {
            StoreErrorCode::Damaged => Self::Damaged(failure.message),
            StoreErrorCode::InvalidArguments
            | StoreErrorCode::NotFound
            | StoreErrorCode::TooLarge
            | StoreErrorCode::DiskFull
            | StoreErrorCode::Busy
            | StoreErrorCode::UnknownTool
            | StoreErrorCode::NotCovered
            | StoreErrorCode::Io => Self::Failed(failure),
        }
    }
}

impl Database {
    pub(crate) fn at(
        path: PathBuf,
        schema: &'static str,
        what: &'static str,
        durable: Durable,
    ) -> Self {
        Self { path, schema, what, durable, open: None, damages: Vec::new(), lives: 0 }
    }

    /// Notes about damaged files that were moved aside, for people; returned once.
    pub(crate) fn damages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.damages)
    }

    /// How often the file was begun anew in place of a damaged one.
    pub(crate) fn lives(&self) -> u32 {
        self.lives
    }

    /// Removes the file and its companions.
    pub(crate) fn remove(&mut self) {
        if let Some(OpenDatabase { connection, .. }) = self.open.take() {
            // Closing it writes the log into the file, which need not be durable any more.
            let _ = connection.pragma_update(None, "synchronous", "off");
        }
        for ending in ["", "-wal", "-shm"] {
            // The next process finds the remains.
            let _ = std::fs::remove_file(with_ending(&self.path, ending));
        }
    }

    /// Makes a change once: if it was made for this call before, returns the stored result.
    pub(crate) fn once(
        &mut self,
        call: &CallId,
        change: impl Fn(&Transaction<'_>) -> Result<StoreResult, StoreError>,
    ) -> Result<StoreResult, StoreError> {
        self.with(|connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if let Some(done) = done(&transaction, call)? {
                return Ok(done);
            }
            let answer = change(&transaction)?;
            transaction.execute(
                "INSERT INTO done (session, call, text, summary) VALUES (?1, ?2, ?3, ?4)",
                params![call.session.0, call.number, answer.text, answer.summary],
            )?;
            transaction.execute(
                "DELETE FROM done WHERE at <= (SELECT max(at) FROM done) - ?1",
                [REMEMBERED],
            )?;
            transaction.commit()?;
            Ok(answer)
        })
    }

    /// Makes a change in one transaction.
    pub(crate) fn change<T>(
        &mut self,
        change: impl Fn(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.with(|connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = change(&transaction)?;
            transaction.commit()?;
            Ok(done)
        })
    }

    /// Damaged files that were moved aside, newest first, each with the second of its move.
    pub(crate) fn set_aside_before(&self) -> Vec<(u64, PathBuf)> {
        let own = with_ending(&self.path, DAMAGED);
        let beside = self.path.parent().and_then(|parent| std::fs::read_dir(parent).ok());
        let paths = beside.into_iter().flatten().flatten().map(|entry| entry.path());
        let mut found: Vec<(u64, PathBuf)> = paths
            .filter_map(|path| {
                let behind = path.to_str()?.strip_prefix(own.to_str()?)?;
                let time = behind.split('-').next()?.parse().ok()?;
                let itself = !behind.ends_with("-wal") && !behind.ends_with("-shm");
                itself.then_some((time, path))
            })
            .collect();
        found.sort_by(|one, other| other.cmp(one));
        found
    }

    /// True if anything was ever written.
    pub(crate) fn is_there(&self) -> bool {
        self.path.exists()
    }

    /// Reads. An absent file counts as empty and is not created for reading.
    pub(crate) fn look<T: Default>(
        &mut self,
        look: impl Fn(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        if !self.is_there() {
            return Ok(T::default());
        }
        self.with(|connection| Ok(look(connection)?))
    }

    /// Works on the file; on a new one, once, where it turns out to be damaged.
    fn with<T>(
        &mut self,
        work: impl Fn(&mut Connection) -> Result<T, DatabaseError>,
    ) -> Result<T, StoreError> {
        let there = file(&self.path);
        match self.opened().and_then(&work) {
            Ok(done) => return Ok(done),
            Err(DatabaseError::Failed(failure)) => return Err(failure),
            // Another session was faster; the file here now is its new one.
            Err(DatabaseError::Damaged(_)) if file(&self.path) != there => self.open = None,
            Err(DatabaseError::Damaged(error)) => self.set_aside(&error)?,
        }
        self.opened().and_then(work).map_err(|trouble| match trouble {
            DatabaseError::Failed(failure) => failure,
            DatabaseError::Damaged(why) => still_damaged(self.what, &why),
        })
    }

    fn opened(&mut self) -> Result<&mut Connection, DatabaseError> {
        let there = file(&self.path);
        // Another session may have moved the file aside, or a person removed it; writes to a
        // removed file would be lost.
        if self.open.as_ref().is_none_or(|open| there != Some(open.file)) {
            self.open = None;
            let connection = self.connect()?;
            let Some(file) = file(&self.path) else {
                return Err(DatabaseError::Failed(gone(&self.path)));
            };
            return Ok(&mut self.open.insert(OpenDatabase { connection, file }).connection);
        }
        match &mut self.open {
            Some(open) => Ok(&mut open.connection),
            None => Err(DatabaseError::Failed(gone(&self.path))),
        }
    }

    fn connect(&self) -> Result<Connection, DatabaseError> {
        if let Some(directory) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|error| {
                let message = format!("{}: {error}", directory.display());
                DatabaseError::Failed(StoreError::new(
                    StoreErrorCode::Io,
                    message,
                    "Go on without it, and tell the person.",
                ))
            })?;
        }
        // Something that is no file is in the way as much as a file that is no database.
        if self.path.symlink_metadata().is_ok_and(|there| !there.is_file()) {
            return Err(DatabaseError::Damaged("it is no regular file".to_owned()));
        }
        let connection = Connection::open(&self.path)?;
        connection.busy_timeout(PATIENCE)?;
        if self.durable == Durable::UnlessPowerFails {
            // Setting the mode of a new file would wait for the disk four times.
            connection.pragma_update(None, "synchronous", "off")?;
        }
        connection.pragma_update(None, "journal_mode", "wal")?;
        let synchronous = match self.durable {
            Durable::Always => "full",
            Durable::UnlessPowerFails => "normal",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "temp_store", "memory")?;
        // A schema from another program must not run its own triggers.
        connection.pragma_update(None, "trusted_schema", false)?;
        let whole: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if whole != "ok" {
            return Err(DatabaseError::Damaged(whole));
        }
        let is_new = "SELECT count(*) = 0 FROM sqlite_schema";
        let (begin, end) = match connection.query_row(is_new, [], |row| row.get(0))? {
            // Each table would be a transaction of its own, and a wait for the disk.
            true => ("BEGIN IMMEDIATE;", "COMMIT;"),
            false => ("", ""),
        };
        connection.execute_batch(&format!("{begin}{LEDGER}{}{end}", self.schema))?;
        Ok(connection)
    }

    /// Moves the file and its companions to a unique name.
    fn set_aside(&mut self, why: &str) -> Result<(), StoreError> {
        self.open = None;
        let kept = free_name(&self.path);
        for ending in ["", "-wal", "-shm"] {
            let from = with_ending(&self.path, ending);
            match std::fs::rename(&from, with_ending(&kept, ending)) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(StoreError::new(
                        StoreErrorCode::Damaged,
                        format!("{} is damaged and cannot be moved: {error}", from.display()),
                        "Go on without it, and tell the person.",
                    ));
                }
            }
        }
        self.lives += 1;
        self.damages.push(format!(
            "{} was damaged ({why}); it was moved to {} and a new one was started",
            self.what,
            kept.display()
        ));
        Ok(())
    }
}

/// The stored result of a call, if there is one.
fn done(transaction: &Transaction<'_>, call: &CallId) -> rusqlite::Result<Option<StoreResult>> {
    let found = transaction.query_row(
        "SELECT text, summary FROM done WHERE session = ?1 AND call = ?2",
        params![call.session.0, call.number],
        |row| Ok(StoreResult { text: row.get(0)?, summary: row.get(1)? }),
    );
    found.optional()
}

fn file(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|there| (there.dev(), there.ino()))
}

fn still_damaged(what: &str, why: &str) -> StoreError {
    let message = format!("{what} is damaged ({why}), and so was the new one");
    StoreError::new(StoreErrorCode::Damaged, message, "Go on without it, and tell the person.")
}

fn gone(path: &Path) -> StoreError {
    let message = format!("{} was taken away as it was opened", path.display());
    StoreError::new(StoreErrorCode::Io, message, "Try again.")
}

/// An unused name next to it.
fn free_name(path: &Path) -> PathBuf {
    let now = now();
    let names = (0u32..).map(|number| match number {
        0 => with_ending(path, &format!("{DAMAGED}{now}")),
        number => with_ending(path, &format!("{DAMAGED}{now}-{number}")),
    });
    let mut names = names.filter(|name| name.symlink_metadata().is_err());
    names.next().unwrap_or_else(|| with_ending(path, ".damaged"))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Seconds of Unix time.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
