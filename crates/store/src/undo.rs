//! What calls changed in a session, kept so that it can be taken back: what was at each path before a
//! call, and by its digest what the call left there. Of file tools it is kept here before they run; of
//! commands it is found by `commands`. `list` is what people and models are shown.
//!
//! The copies are for comfort: they are made before the call runs, but no call waits for a disk that
//! is slow, and one for which nothing could be kept says so in the list.

mod commanded;
mod list;

use crate::commands::Cover;
use crate::database::{Database, Durable, now};
use crate::failure::{Code, Failure, arguments};
use crate::found::{Found, NOT_KEPT, UNKNOWN, digest_now, look, not_kept};
use crate::snapshot::Changed;
use protocol::call::{Call, Effect};
use protocol::confinement::FilePath;
use protocol::ids::CallId;
use protocol::store::{Did, KeptFile, StoreSetup, Was};
use rusqlite::{OptionalExtension, Transaction, params};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Most bytes of one call: they go back in one message.
const OF_A_CALL: u64 = 12 << 20;
/// Most calls of a session, and most bytes of all of them; the oldest go first.
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
pub(crate) struct Undo {
    file: Database,
    project: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Restore {
    /// The call's number, which is the change's for all who ask.
    id: u32,
}

/// Whether it is known when a command was over: what was changed later is not its.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Seen,
    /// What it changed is shown, and never put back.
    Unseen,
}

/// A command that ran.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ran<'a> {
    pub(crate) call: u32,
    pub(crate) tool: &'a str,
    /// What it ran, short.
    pub(crate) words: &'a str,
}

impl Undo {
    pub(crate) fn of(setup: &StoreSetup) -> Self {
        let session = setup.project_store.to_path().join("sessions").join(&setup.session.0);
        let file =
            Database::at(session.join("undo.db"), SCHEMA, "what could be undone", Durable::Always);
        Self { file, project: setup.confinement.project.to_path() }
    }

    /// What was set aside, for people; said once.
    pub(crate) fn damages(&mut self) -> Vec<String> {
        self.file.damages()
    }

    /// Keeps what is at these paths; once for a call.
    pub(crate) fn keep(
        &mut self,
        call: &CallId,
        tool: &str,
        paths: &[String],
    ) -> Result<(), Failure> {
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
            for Found { path, kind, mode, bytes, digest } in &found {
                transaction.execute(
                    "INSERT OR IGNORE INTO file (change, path, kind, mode, bytes, before) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    params![change, path, kind, mode, bytes, digest],
                )?;
            }
            bound(transaction, change)
        })
    }

    /// A command changed these.
    pub(crate) fn record(
        &mut self,
        ran: Ran<'_>,
        end: End,
        notes: &str,
        files: &[Changed],
    ) -> Result<(), Failure> {
        match commanded::fits(files) {
            true => self.file.change(|transaction| {
                let change = commanded::put(transaction, ran, end, files, notes)?;
                change.map_or(Ok(()), |change| bound(transaction, change))
            }),
            // Half of what it did put back would be neither the one state nor the other.
            false => {
                let why =
                    format!("it changed {} files, more than can be put back at once", files.len());
                self.not_followed(ran, &why)
            }
        }
    }

    /// A command was followed, and changed nothing.
    pub(crate) fn changed_nothing(&mut self, call: u32) -> Result<(), Failure> {
        self.file.change(|transaction| {
            let put = "INSERT OR IGNORE INTO unchanged (call) VALUES (?1)";
            Ok(transaction.execute(put, [call]).map(drop)?)
        })
    }

    /// Why there is nothing to be put back of a call that is not on the list.
    fn unlisted(&mut self, id: u32, cover: &Cover, hint: &str) -> Result<Failure, Failure> {
        let unchanged = self.file.look(|connection| {
            connection.query_row(
                "SELECT EXISTS (SELECT 1 FROM unchanged WHERE call = ?1)",
                [id],
                |row| row.get::<_, bool>(0),
            )
        })?;
        let unwritten = cover.unwritten.iter().find(|(call, _)| *call == id);
        Ok(match (unchanged, unwritten, cover.unable) {
            (true, _, _) => Failure::new(
                Code::NotFound,
                format!("call {id} changed nothing that is covered"),
                hint,
            ),
            (false, Some((_, line)), _) => Failure::new(Code::NotCovered, line, hint),
            (false, None, Some(why)) => {
                let why =
                    format!("there is no change {id}: what commands change is not covered: {why}");
                Failure::new(Code::NotCovered, why, hint)
            }
            (false, None, None) => {
                let why =
                    format!("there is no change {id}: nothing is known of what that call did");
                Failure::new(Code::NotCovered, why, hint)
            }
        })
    }

    /// A command ran, and what it changed cannot be put back.
    pub(crate) fn not_followed(&mut self, ran: Ran<'_>, why: &str) -> Result<(), Failure> {
        self.file.change(|transaction| {
            let change = commanded::put_unknown(transaction, ran, why)?;
            change.map_or(Ok(()), |change| bound(transaction, change))
        })
    }

    /// A call is over: what it left is known now, from itself where it could say. One that changed
    /// nothing is forgotten.
    pub(crate) fn ended(&mut self, call: &CallId, did: Option<&Did>) -> Result<(), Failure> {
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

    /// What it takes to undo one of them.
    pub(crate) fn fetch(&mut self, call: &Call, cover: &Cover) -> Result<Vec<KeptFile>, Failure> {
        let Restore { id } = arguments(&call.input)?;
        let row = self.file.look(|connection| {
            let ended = connection
                .query_row(
                    "SELECT ended, notes FROM change LEFT JOIN command ON change = change.id \
                     WHERE call = ?1",
                    [id],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()?;
            let mut files = connection.prepare(
                "SELECT path, kind, mode, bytes, before, after FROM file \
                 WHERE change = (SELECT id FROM change WHERE call = ?1) \
                 AND (before IS NOT after OR kind IN ('not kept', 'mode')) ORDER BY path",
            )?;
            let files = files.query_map([id], |row| {
                let (path, kind): (String, String) = (row.get(0)?, row.get(1)?);
                let (mode, bytes): (u32, Vec<u8>) = (row.get(2)?, row.get(3)?);
                let before: Option<String> = row.get(4)?;
                let before = match (kind.as_str(), before) {
                    ("file" | commanded::MODE, _) => Some(Was::File { bytes, mode }),
                    ("link", Some(digest)) => {
                        digest.strip_prefix(KeptFile::LINK).map(|to| Was::Link(FilePath::from(to)))
                    }
                    ("absent", _) => Some(Was::Absent),
                    (NOT_KEPT, Some(why)) if why != NOT_KEPT => Some(Was::NotKept(why)),
                    _ => None,
                };
                Ok((path, before, row.get(5)?))
            })?;
            let files: Vec<(String, Option<Was>, Option<String>)> =
                files.collect::<Result<_, _>>()?;
            Ok((ended, files))
        })?;
        let hint = "undo_list shows what can be undone.";
        let (change, files): (Option<(bool, Option<String>)>, _) = row;
        let Some((ended, command)) = change else {
            return Err(self.unlisted(id, cover, hint)?);
        };
        if !ended {
            let message = match &command {
                Some(why) => format!("change {id} cannot be put back: {why}"),
                None => {
                    format!("the end of change {id} was not seen, so nobody knows what it left")
                }
            };
            return Err(Failure::new(
                Code::NotCovered,
                message,
                "Look at its files, and edit them.",
            ));
        }
        let mut kept = Vec::new();
        for (path, before, after) in files {
            let unknown = after.as_deref() == Some(UNKNOWN);
            if command.is_some() && unknown {
                // It is on the list as not covered, and the rest comes back.
                let before = match before {
                    Some(Was::NotKept(why)) => Was::NotKept(why),
                    Some(Was::Absent | Was::File { .. } | Was::Link(_)) | None => {
                        Was::NotKept(commanded::LEFT_UNKNOWN.to_owned())
                    }
                };
                kept.push(KeptFile { path, before, after });
                continue;
            }
            let Some(before) = before else {
                let message = format!("no copy was kept of {path}, so nothing is put back");
                return Err(Failure::new(Code::NotCovered, message, hint));
            };
            if unknown {
                let message = format!(
                    "nobody knows what the call left at {path}: it is too large, or outside the \
                     project; so nothing is put back"
                );
                return Err(Failure::new(Code::NotCovered, message, hint));
            }
            kept.push(KeptFile { path, before, after });
        }
        if kept.iter().all(|file| matches!(file.before, Was::NotKept(_))) {
            let message = format!("no file of change {id} is covered, so nothing is put back");
            return Err(Failure::new(Code::NotCovered, message, hint));
        }
        Ok(kept)
    }
}

/// Takes the oldest changes away, as far as it takes.
fn bound(transaction: &Transaction<'_>, newest: i64) -> Result<(), Failure> {
    let many = transaction.execute("DELETE FROM change WHERE id <= ?1 - ?2", [newest, CALLS])?;
    let large = transaction.execute(
        "DELETE FROM change WHERE id < ?1 AND id <= (SELECT max(change) FROM (SELECT change, \
         sum(length(bytes)) OVER (ORDER BY change DESC) AS total FROM file) WHERE total > ?2)",
        [newest, BYTES],
    )?;
    transaction.execute("DELETE FROM file WHERE change NOT IN (SELECT id FROM change)", [])?;
    if many + large > 0 {
        // The list says so from now on.
        transaction.pragma_update(None, "user_version", list::SOME_LET_GO)?;
    }
    Ok(())
}

/// What a call left at a path, by its own account. Somebody else's changes are not its.
fn left(did: &Did, path: &str, before: Option<String>) -> Option<String> {
    let at = |own: &String| Path::new(path).starts_with(own);
    let own = did.effects.iter().rev().find_map(|effect| match effect {
        Effect::Deleted(own) if at(own) => Some(Own::Away),
        Effect::Written(own) | Effect::Created(own) if own == path => Some(Own::There),
        Effect::Deleted(_)
        | Effect::Written(_)
        | Effect::Created(_)
        | Effect::Read(_)
        | Effect::Ran(_)
        | Effect::Signed { .. } => None,
    });
    match own {
        None => before,
        Some(Own::Away) => None,
        Some(Own::There) => match did.left.iter().rev().find(|file| file.path == path) {
            Some(file) => Some(file.digest.clone()),
            None => digest_now(path),
        },
    }
}

/// How a call changed what was at a path.
enum Own {
    There,
    Away,
}
