//! Changes made by a session's calls, stored for undo: the content of each path before a call, and
//! the digest after it. For file tools the copies are made here before they run; changes of
//! commands come from `commands`. `list` formats them for people and models, `change_set` makes
//! diffs of them, `backups` returns what an undo writes.
//!
//! The copies are best effort: they are made before the call runs, but no call waits for a slow
//! disk, and a call without a copy is listed as such.

mod backups;
mod change_set;
mod command_rows;
mod inherit;
mod list;

use crate::database::{Database, Durable, now};
use crate::failure::{StoreError, StoreErrorCode};
use crate::file_copy::{FileCopy, NOT_KEPT, UNKNOWN, digest_now, look, not_kept};
use crate::snapshot::ChangedFile;
use crate::undo_coverage::UndoCoverage;
use inherit::SharedChanges;
use protocol::call::FileEffect;
use protocol::ids::CallId;
use protocol::store::{FileChanges, StoreSetup, UndoCover};
use rusqlite::{Transaction, params};
use std::path::{Path, PathBuf};

/// Most bytes of one call: they go back in one message.
const OF_A_CALL: u64 = 12 << 20;
/// Maximum number of calls of a session, and of bytes of all their copies; the oldest are removed
/// first.
const CALLS: i64 = 500;
const BYTES: i64 = 256 << 20;

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS change (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    call INTEGER NOT NULL UNIQUE,
    tool TEXT NOT NULL,
    time INTEGER NOT NULL,
    ended INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS file (
    change INTEGER NOT NULL REFERENCES change (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    kind TEXT NOT NULL,
    mode INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    before TEXT,
    after TEXT,
    UNIQUE (change, path)
);
CREATE TABLE IF NOT EXISTS command (
    change INTEGER PRIMARY KEY REFERENCES change (id) ON DELETE CASCADE,
    words TEXT NOT NULL,
    notes TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS unchanged (call INTEGER PRIMARY KEY);";

/// The changes of one session.
#[derive(Debug)]
pub(crate) struct UndoStore {
    file: Database,
    path: PathBuf,
    /// Changes that are still to be taken over from the session that this one is a copy of.
    shared: Option<SharedChanges>,
    /// Why they could not be.
    notes: Vec<String>,
    project: PathBuf,
}

/// The file's name in the directory of a session.
const NAME: &str = "undo.db";

/// Whether the end of a command is known; later changes are not attributed to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandEnd {
    Seen,
    /// Unknown: its changes are listed, but never restored.
    Unseen,
}

/// A command that ran.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RanCommand<'a> {
    pub(crate) call: u32,
    pub(crate) tool: &'a str,
    /// Its command line, shortened.
    pub(crate) words: &'a str,
}

impl UndoStore {
    pub(crate) fn of(setup: &StoreSetup) -> Self {
        let session = setup.project_store.to_path().join("sessions").join(&setup.session.0);
        let path = session.join(NAME);
        let file = Database::at(path.clone(), SCHEMA, "the undo data", Durable::Always);
        let (shared, notes) = (SharedChanges::of(setup, NAME), Vec::new());
        Self { file, path, shared, notes, project: setup.confinement.project.to_path() }
    }

    /// Takes over the changes that this session shares with the one that it is a copy of. Once,
    /// before anything else is asked of this store.
    pub(crate) fn inherit(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        if let Err(why) = shared.copy(&self.path) {
            self.notes.push(format!(
                "changes before this copy of the session cannot be undone in it: {}",
                why.message
            ));
        }
    }

    /// Notes about damaged files that were moved aside, for people; returned once.
    pub(crate) fn damages(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.extend(self.file.damages());
        notes
    }

    /// Backs up the content of these paths, once per call; whether that brings all of it back.
    pub(crate) fn keep(
        &mut self,
        call: &CallId,
        tool: &str,
        paths: &[String],
    ) -> Result<UndoCover, StoreError> {
        let found = copies(paths);
        self.file.change(|transaction| {
            let time = i64::try_from(now()).unwrap_or(i64::MAX);
            let new = transaction.execute(
                "INSERT OR IGNORE INTO change (call, tool, time) VALUES (?1, ?2, ?3)",
                params![call.number, tool, time],
            )?;
            if new == 0 {
                return Ok(());
            }
            let change = transaction.last_insert_rowid();
            for FileCopy { path, kind, mode, bytes, digest } in &found {
                transaction.execute(
                    "INSERT OR IGNORE INTO file (change, path, kind, mode, bytes, before) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    params![change, path, kind, mode, bytes, digest],
                )?;
            }
            bound(transaction, change)
        })?;
        Ok(cover_of(&found))
    }

    /// A command changed these.
    pub(crate) fn record(
        &mut self,
        ran: RanCommand<'_>,
        end: CommandEnd,
        notes: &str,
        files: &[ChangedFile],
    ) -> Result<(), StoreError> {
        match command_rows::fits(files) {
            true => self.file.change(|transaction| {
                let change = command_rows::put(transaction, ran, end, files, notes)?;
                change.map_or(Ok(()), |change| bound(transaction, change))
            }),
            // A partial restore would be neither the old state nor the new one.
            false => {
                let why =
                    format!("it changed {} files, more than one call can restore", files.len());
                self.not_followed(ran, &why)
            }
        }
    }

    /// A command was followed, and changed nothing.
    pub(crate) fn changed_nothing(&mut self, call: u32) -> Result<(), StoreError> {
        self.file.change(|transaction| {
            let put = "INSERT OR IGNORE INTO unchanged (call) VALUES (?1)";
            Ok(transaction.execute(put, [call]).map(drop)?)
        })
    }

    /// Why there is nothing to be put back of a call that is not on the list.
    fn unlisted(
        &mut self,
        id: u32,
        cover: &UndoCoverage,
        hint: &str,
    ) -> Result<StoreError, StoreError> {
        let unchanged = self.file.look(|connection| {
            connection.query_row(
                "SELECT EXISTS (SELECT 1 FROM unchanged WHERE call = ?1)",
                [id],
                |row| row.get::<_, bool>(0),
            )
        })?;
        let unwritten = cover.unwritten.iter().find(|(call, _)| *call == id);
        Ok(match (unchanged, unwritten, cover.unable) {
            (true, _, _) => StoreError::new(
                StoreErrorCode::NotFound,
                format!("call {id} changed nothing that is covered"),
                hint,
            ),
            (false, Some((_, line)), _) => StoreError::new(StoreErrorCode::NotCovered, line, hint),
            (false, None, Some(why)) => {
                let why =
                    format!("there is no change {id}: changes of commands are not covered: {why}");
                StoreError::new(StoreErrorCode::NotCovered, why, hint)
            }
            (false, None, None) => {
                let why = format!("there is no change {id}: the changes of that call are unknown");
                StoreError::new(StoreErrorCode::NotCovered, why, hint)
            }
        })
    }

    /// A command ran, and its changes cannot be undone.
    pub(crate) fn not_followed(
        &mut self,
        ran: RanCommand<'_>,
        why: &str,
    ) -> Result<(), StoreError> {
        self.file.change(|transaction| {
            let change = command_rows::put_unknown(transaction, ran, why)?;
            change.map_or(Ok(()), |change| bound(transaction, change))
        })
    }

    /// A call has ended: records the content after it, as reported by the call if it could. A call
    /// that changed nothing is removed.
    pub(crate) fn ended(
        &mut self,
        call: &CallId,
        did: Option<&FileChanges>,
    ) -> Result<(), StoreError> {
        let paths = self.file.look(|connection| {
            let mut rows = connection.prepare(
                "SELECT path, kind, before FROM file JOIN change ON change.id = change \
                 WHERE call = ?1 AND ended = 0",
            )?;
            let rows = rows.query_map([call.number], |row| {
                let (path, kind): (String, String) = (row.get(0)?, row.get(1)?);
                Ok((path, kind, row.get::<_, Option<String>>(2)?))
            })?;
            rows.collect::<Result<Vec<_>, _>>()
        })?;
        let after = |path: &str, kind: &str, before: Option<String>| match (kind, did) {
            (NOT_KEPT, _) => Some(UNKNOWN.to_owned()),
            (_, None) => digest_now(path),
            (_, Some(did)) => left(did, path, before),
        };
        let after: Vec<_> = paths
            .into_iter()
            .map(|(path, kind, before)| (after(&path, &kind, before), path))
            .collect();
        if after.is_empty() {
            return Ok(());
        }
        self.file.change(|transaction| {
            for (digest, path) in &after {
                transaction.execute(
                    "UPDATE file SET after = ?1 WHERE path = ?2 AND \
                     change = (SELECT id FROM change WHERE call = ?3)",
                    params![digest, path, call.number],
                )?;
            }
            transaction.execute("UPDATE change SET ended = 1 WHERE call = ?1", [call.number])?;
            transaction.execute(
                "DELETE FROM change WHERE call = ?1 AND NOT EXISTS (SELECT 1 FROM file \
                 WHERE change = change.id AND before IS NOT after)",
                [call.number],
            )?;
            transaction
                .execute("DELETE FROM file WHERE change NOT IN (SELECT id FROM change)", [])?;
            Ok(())
        })
    }
}

/// Whether undo would bring these paths back: only with a copy of everything at them.
pub(crate) fn covers(paths: &[String]) -> UndoCover {
    cover_of(&copies(paths))
}

fn cover_of(copies: &[FileCopy]) -> UndoCover {
    match copies.iter().find(|copy| copy.kind == NOT_KEPT) {
        None => UndoCover::Covers,
        Some(FileCopy { path, .. }) => UndoCover::Leaves(format!(
            "no copy of `{path}` can be kept (too large, or not readable)"
        )),
    }
}

/// The content at these paths.
fn copies(paths: &[String]) -> Vec<FileCopy> {
    let mut room = OF_A_CALL;
    let mut found = Vec::new();
    for path in paths {
        let before = found.len();
        look(Path::new(path), &mut room, &mut found);
        if found.len() == before {
            // A directory without a file in it: it does not come back, which is to be said.
            found.push(not_kept(path.clone()));
        }
    }
    found
}

/// Takes the oldest changes away, as far as it takes.
fn bound(transaction: &Transaction<'_>, newest: i64) -> Result<(), StoreError> {
    let many = transaction.execute("DELETE FROM change WHERE id <= ?1 - ?2", [newest, CALLS])?;
    let large = transaction.execute(
        "DELETE FROM change WHERE id < ?1 AND id <= (SELECT max(change) FROM (SELECT change, \
         sum(length(bytes)) OVER (ORDER BY change DESC) AS total FROM file) WHERE total > ?2)",
        [newest, BYTES],
    )?;
    transaction.execute("DELETE FROM file WHERE change NOT IN (SELECT id FROM change)", [])?;
    if many + large > 0 {
        // The list shows this from now on.
        transaction.pragma_update(None, "user_version", list::SOME_LET_GO)?;
    }
    Ok(())
}

/// The content that a call left at a path, as reported by the call. Changes of other processes are
/// not attributed to it.
fn left(did: &FileChanges, path: &str, before: Option<String>) -> Option<String> {
    let at = |own: &String| Path::new(path).starts_with(own);
    let own = did.effects.iter().rev().find_map(|effect| match effect {
        FileEffect::Deleted(own) if at(own) => Some(OwnChange::Away),
        FileEffect::Written(own) | FileEffect::Created(own) if own == path => {
            Some(OwnChange::There)
        }
        FileEffect::Deleted(_)
        | FileEffect::Written(_)
        | FileEffect::Created(_)
        | FileEffect::Read(_)
        | FileEffect::Ran(_)
        | FileEffect::Signed { .. } => None,
    });
    match own {
        None => before,
        Some(OwnChange::Away) => None,
        Some(OwnChange::There) => match did.left.iter().rev().find(|file| file.path == path) {
            Some(file) => Some(file.digest.clone()),
            None => digest_now(path),
        },
    }
}

/// The kind of change that a call made at a path.
enum OwnChange {
    There,
    Away,
}
