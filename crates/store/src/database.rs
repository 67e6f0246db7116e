//! One SQLite file that is never in the way: it is made when it is first needed, found anew when
//! somebody took it away, and set aside when it is damaged. Used by the things that are kept.
//!
//! What a call changed and what it came to are written in one transaction, under the call's name:
//! asked again, the call is told the same and nothing is done twice.

use crate::Answer;
use crate::failure::{Code, Failure, is_damage};
use protocol::ids::CallId;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a writer of another session is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Calls of which is remembered what they came to: many times those that can be open at once.
const REMEMBERED: u32 = 10_000;

/// Behind the name of one that was set aside; then comes the time.
const DAMAGED: &str = ".damaged-";

/// The ledger of calls; what else is in a file, its user says.
const LEDGER: &str = "CREATE TABLE IF NOT EXISTS done (
    at INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    call INTEGER NOT NULL,
    text TEXT NOT NULL,
    summary TEXT NOT NULL,
    UNIQUE (session, call)
);";

/// What of a file outlives a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durable {
    /// All that was said to be kept.
    Always,
    /// Whatever the system had written by then; the file stays whole.
    UnlessPowerFails,
}

/// One file.
#[derive(Debug)]
pub(crate) struct Database {
    path: PathBuf,
    schema: &'static str,
    /// What it is to people: `this project's memory`.
    what: &'static str,
    durable: Durable,
    open: Option<Open>,
    /// What was set aside since somebody asked.
    damages: Vec<String>,
    /// How often that happened.
    lives: u32,
}

#[derive(Debug)]
struct Open {
    connection: Connection,
    /// The file that is open, by device and number.
    file: (u64, u64),
}

/// Why something was not done here.
enum Trouble {
    Failed(Failure),
    /// The file is to blame, and how.
    Damaged(String),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        match is_damage(&error) {
            true => Self::Damaged(error.to_string()),
            false => Self::Failed(error.into()),
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        match failure.code {
            Code::Damaged => Self::Damaged(failure.message),
            Code::InvalidArguments
            | Code::NotFound
            | Code::TooLarge
            | Code::DiskFull
            | Code::Busy
            | Code::UnknownTool
            | Code::NotCovered
            | Code::Io => Self::Failed(failure),
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

    /// What was set aside, for people; said once.
    pub(crate) fn damages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.damages)
    }

    /// How often the file was begun anew in place of a damaged one.
    pub(crate) fn lives(&self) -> u32 {
        self.lives
    }

    /// Takes the file away, and what belongs to it.
    pub(crate) fn remove(&mut self) {
        self.open = None;
        for ending in ["", "-wal", "-shm"] {
            // What is left is found by the next one.
            let _ = std::fs::remove_file(with_ending(&self.path, ending));
        }
    }

    /// Does a change once: if it was done for this call before, only says again what it came to.
    pub(crate) fn once(
        &mut self,
        call: &CallId,
        change: impl Fn(&Transaction<'_>) -> Result<Answer, Failure>,
    ) -> Result<Answer, Failure> {
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

    /// Changes something, all of it or nothing.
    pub(crate) fn change<T>(
        &mut self,
        change: impl Fn(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.with(|connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = change(&transaction)?;
            transaction.commit()?;
            Ok(done)
        })
    }

    /// What lies beside it because it was damaged, the newest first, with the second of its end.
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

    /// Whether anything was ever written.
    pub(crate) fn is_there(&self) -> bool {
        self.path.exists()
    }

    /// Looks something up. What was never written has nothing in it, and is not made for a look.
    pub(crate) fn look<T: Default>(
        &mut self,
        look: impl Fn(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Failure> {
        if !self.is_there() {
            return Ok(T::default());
        }
        self.with(|connection| Ok(look(connection)?))
    }

    /// Works on the file; on a new one, once, where it turns out to be damaged.
    fn with<T>(
        &mut self,
        work: impl Fn(&mut Connection) -> Result<T, Trouble>,
    ) -> Result<T, Failure> {
        let there = file(&self.path);
        match self.opened().and_then(&work) {
            Ok(done) => return Ok(done),
            Err(Trouble::Failed(failure)) => return Err(failure),
            // Another session was faster, and what is there now is its new one.
            Err(Trouble::Damaged(_)) if file(&self.path) != there => self.open = None,
            Err(Trouble::Damaged(error)) => self.set_aside(&error)?,
        }
        self.opened().and_then(work).map_err(|trouble| match trouble {
            Trouble::Failed(failure) => failure,
            Trouble::Damaged(why) => still_damaged(self.what, &why),
        })
    }

    fn opened(&mut self) -> Result<&mut Connection, Trouble> {
        let there = file(&self.path);
        // Another session may have set it aside, or a person removed it: what is written to a file
        // that nobody finds is lost.
        if self.open.as_ref().is_none_or(|open| there != Some(open.file)) {
            self.open = None;
            let connection = self.connect()?;
            let Some(file) = file(&self.path) else {
                return Err(Trouble::Failed(gone(&self.path)));
            };
            return Ok(&mut self.open.insert(Open { connection, file }).connection);
        }
        match &mut self.open {
            Some(open) => Ok(&mut open.connection),
            None => Err(Trouble::Failed(gone(&self.path))),
        }
    }

    fn connect(&self) -> Result<Connection, Trouble> {
        if let Some(directory) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|error| {
                let message = format!("{}: {error}", directory.display());
                Trouble::Failed(Failure::new(
                    Code::Io,
                    message,
                    "Go on without it, and tell the person.",
                ))
            })?;
        }
        // Something that is no file is in the way as much as a file that is no database.
        if self.path.symlink_metadata().is_ok_and(|there| !there.is_file()) {
            return Err(Trouble::Damaged("it is no regular file".to_owned()));
        }
        let connection = Connection::open(&self.path)?;
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        let synchronous = match self.durable {
            Durable::Always => "full",
            Durable::UnlessPowerFails => "normal",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "temp_store", "memory")?;
        // A schema of somebody else's making must not run what it likes.
        connection.pragma_update(None, "trusted_schema", false)?;
        let whole: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if whole != "ok" {
            return Err(Trouble::Damaged(whole));
        }
        connection.execute_batch(LEDGER)?;
        connection.execute_batch(self.schema)?;
        Ok(connection)
    }

    /// Moves the file away under a name of its own, with what belongs to it.
    fn set_aside(&mut self, why: &str) -> Result<(), Failure> {
        self.open = None;
        let kept = free_name(&self.path);
        for ending in ["", "-wal", "-shm"] {
            let from = with_ending(&self.path, ending);
            match std::fs::rename(&from, with_ending(&kept, ending)) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(Failure::new(
                        Code::Damaged,
                        format!("{} is damaged and cannot be moved: {error}", from.display()),
                        "Go on without it, and tell the person.",
                    ));
                }
            }
        }
        self.lives += 1;
        self.damages.push(format!(
            "{} was damaged ({why}); it was set aside as {} and a new one was begun",
            self.what,
            kept.display()
        ));
        Ok(())
    }
}

/// What a call came to, if it was done before.
fn done(transaction: &Transaction<'_>, call: &CallId) -> rusqlite::Result<Option<Answer>> {
    let found = transaction.query_row(
        "SELECT text, summary FROM done WHERE session = ?1 AND call = ?2",
        params![call.session.0, call.number],
        |row| Ok(Answer { text: row.get(0)?, summary: row.get(1)? }),
    );
    found.optional()
}

fn file(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|there| (there.dev(), there.ino()))
}

fn still_damaged(what: &str, why: &str) -> Failure {
    let message = format!("{what} is damaged ({why}), and so was the new one");
    Failure::new(Code::Damaged, message, "Go on without it, and tell the person.")
}

fn gone(path: &Path) -> Failure {
    let message = format!("{} was taken away as it was opened", path.display());
    Failure::new(Code::Io, message, "Try again.")
}

/// A name beside it that nobody has.
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
