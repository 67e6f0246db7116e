//! What an undo writes: the earlier content of the files of one call, or of one file that several
//! calls changed. For `undo` only.

use super::{UndoStore, command_rows, list};
use crate::commands::UNCERTAIN;
use crate::failure::{StoreError, StoreErrorCode, arguments};
use crate::file_copy::{NOT_KEPT, UNKNOWN};
use crate::undo_coverage::UndoCoverage;
use protocol::call::Call;
use protocol::confinement::FilePath;
use protocol::store::{FileBackup, PriorContent};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Deserialize;
use std::path::{Component, Path, PathBuf};

const HINT: &str = "undo_list shows what can be undone.";

#[derive(Debug, Deserialize)]
struct UndoRestore {
    /// The call's number, which is the change's for all who ask.
    id: u32,
    /// This file alone.
    path: Option<String>,
    /// The file as it was before this call; the call `id` is the last one that changed it.
    since: Option<u32>,
    /// These files stay as they are.
    #[serde(default)]
    except: Vec<String>,
}

/// A path as a call found it and left it.
struct StoredFile {
    path: String,
    kind: String,
    mode: u32,
    bytes: Vec<u8>,
    before: Option<String>,
    after: Option<String>,
}

/// The columns of a [`StoredFile`], in its order.
const COLUMNS: &str = "path, kind, mode, bytes, before, after";
/// True for a row of a path that its call changed.
const CHANGED: &str = "(before IS NOT after OR kind IN ('not kept', 'mode'))";
/// The same of a change whose end may be unknown.
const TOUCHED: &str = "(before IS NOT after OR kind IN ('not kept', 'mode') OR ended = 0)";

impl UndoStore {
    /// The data needed to undo a change, or the part of it that the call names.
    pub(crate) fn fetch(
        &mut self,
        call: &Call,
        cover: &UndoCoverage,
    ) -> Result<Vec<FileBackup>, StoreError> {
        let asked: UndoRestore = arguments(&call.input)?;
        match &asked.path {
            Some(path) if asked.except.is_empty() => {
                let first = asked.since.unwrap_or(asked.id);
                if first > asked.id {
                    let message = format!("since {first} is above id {}", asked.id);
                    return Err(invalid(message));
                }
                let file = self.one_file(path, (first, asked.id))?;
                let gap = self.gap(file.first, first, cover)?.map(|why| FileBackup {
                    path: file.backup.path.clone(),
                    before: PriorContent::NotKept(why),
                    after: None,
                });
                Ok(std::iter::once(file.backup).chain(gap).collect())
            }
            Some(_) => Err(invalid("except has no meaning with path".to_owned())),
            None if asked.since.is_some() => {
                Err(invalid("since has no meaning without path".to_owned()))
            }
            None => self.whole_change(&asked, cover),
        }
    }

    /// The files of one call.
    fn whole_change(
        &mut self,
        asked: &UndoRestore,
        cover: &UndoCoverage,
    ) -> Result<Vec<FileBackup>, StoreError> {
        let id = asked.id;
        let row = self.file.look(|connection| {
            let ended = connection
                .query_row(
                    "SELECT ended, notes FROM change LEFT JOIN command ON change = change.id \
                     WHERE call = ?1",
                    [id],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()?;
            let mut files = connection.prepare(&format!(
                "SELECT {COLUMNS} FROM file \
                 WHERE change = (SELECT id FROM change WHERE call = ?1) \
                 AND {CHANGED} ORDER BY path"
            ))?;
            let files = files.query_map([id], StoredFile::of)?;
            Ok((ended, files.collect::<Result<Vec<_>, _>>()?))
        })?;
        let (change, mut files): (Option<(bool, Option<String>)>, _) = row;
        let Some((ended, command)) = change else {
            return Err(self.unlisted(id, cover, HINT)?);
        };
        if !ended {
            let message = match &command {
                Some(why) => format!("change {id} cannot be restored: {why}"),
                None => {
                    format!(
                        "the end of change {id} was not observed, so its final state is unknown"
                    )
                }
            };
            return Err(not_covered(message, "Look at its files, and edit them."));
        }
        let except: Vec<_> = asked.except.iter().map(|path| self.full(path)).collect();
        files.retain(|file| !except.iter().any(|path| path.as_path() == Path::new(&file.path)));
        if files.is_empty() && !except.is_empty() {
            let message = format!("all files of change {id} were restored one by one");
            return Err(StoreError::new(StoreErrorCode::NotFound, message, HINT));
        }
        let mut kept = Vec::new();
        for mut file in files {
            if command.is_some() && file.after.as_deref() == Some(UNKNOWN) {
                // It is on the list as not covered, and the rest comes back.
                let before = match file.take_content() {
                    Some(PriorContent::NotKept(why)) => PriorContent::NotKept(why),
                    Some(
                        PriorContent::Absent | PriorContent::File { .. } | PriorContent::Link(_),
                    )
                    | None => PriorContent::NotKept(command_rows::LEFT_UNKNOWN.to_owned()),
                };
                kept.push(FileBackup { path: file.path, before, after: file.after });
                continue;
            }
            kept.push(file.backup()?);
        }
        if kept.iter().all(|file| matches!(file.before, PriorContent::NotKept(_))) {
            let message = format!("no file of change {id} is covered, so nothing is restored");
            return Err(not_covered(message, HINT));
        }
        kept.extend(command.and_then(|notes| self.uncertain(&notes)));
        Ok(kept)
    }

    /// Names that a command may have made and that stay, as one entry: a rewind is not whole without them.
    fn uncertain(&self, notes: &str) -> Option<FileBackup> {
        let note = notes.split("; ").find(|note| note.contains(UNCERTAIN))?;
        let why = note.trim_start_matches("not covered: ").to_owned();
        let path = self.project.to_string_lossy().into_owned();
        Some(FileBackup { path, before: PriorContent::NotKept(why), after: None })
    }

    /// One file as it was before the first of these calls that changed it.
    fn one_file(&mut self, named: &str, calls: (u32, u32)) -> Result<OneFile, StoreError> {
        let full = self.full(named);
        let path = full.to_string_lossy();
        let (ends, mut first) = self.file.look(|connection| {
            Ok((ends(connection, &path, calls)?, first(connection, &path, calls)?))
        })?;
        let (Some(begin), Some(last), Some(file)) = (ends.first(), ends.last(), first.take())
        else {
            let (since, id) = calls;
            let message = match since == id {
                true => format!("call {id} changed nothing at {named} that is covered"),
                false => {
                    format!("no call from {since} to {id} changed {named} as far as is covered")
                }
            };
            return Err(StoreError::new(StoreErrorCode::NotFound, message, HINT));
        };
        if let Some(open) = ends.iter().find(|change| !change.ended) {
            let message = format!(
                "the end of change {} was not observed, so the final state of {named} is unknown",
                open.call
            );
            return Err(not_covered(message, "Look at the file, and edit it."));
        }
        let broken =
            ends.iter().zip(ends.iter().skip(1)).find(|(one, next)| one.after != next.before);
        if let Some((one, next)) = broken {
            let message = format!(
                "nothing was restored: between call {} and call {} something else changed {named}",
                one.call, next.call
            );
            let hint =
                format!("undo_restore of change {} alone reverts what that call did.", last.call);
            return Err(not_covered(message, &hint));
        }
        if begin.before == last.after && !ends.iter().any(|change| change.is_mode) {
            let message = format!("{named} is as it was before call {}", begin.call);
            return Err(StoreError::new(StoreErrorCode::NotFound, message, HINT));
        }
        let backup = StoredFile { after: last.after.clone(), ..file }.backup()?;
        match &backup.before {
            PriorContent::NotKept(why) => {
                Err(not_covered(format!("{named} is not covered: {why}"), HINT))
            }
            PriorContent::Absent | PriorContent::File { .. } | PriorContent::Link(_) => {
                Ok(OneFile { first: begin.call, backup })
            }
        }
    }

    /// Why something from the call `since` on, but before the first known change of a file, may have
    /// changed the file too. Behind that, its content tells.
    fn gap(
        &mut self,
        known: u32,
        since: u32,
        cover: &UndoCoverage,
    ) -> Result<Option<String>, StoreError> {
        let (unknown, oldest, let_go) = self.file.look(|connection| {
            let unknown = connection.query_row(
                "SELECT min(call) FROM change WHERE call BETWEEN ?1 AND ?2 AND ended = 0",
                [since, known.saturating_sub(1)],
                |row| row.get::<_, Option<u32>>(0),
            )?;
            let oldest = "SELECT min(call) FROM change";
            let oldest: Option<u32> = connection.query_row(oldest, [], |row| row.get(0))?;
            Ok((unknown, oldest, list::let_go(connection)?))
        })?;
        let unwritten = cover.unwritten.iter().map(|(call, _)| *call);
        let unwritten = unwritten.filter(|call| (since..known).contains(call)).min();
        let removed = let_go && oldest.is_some_and(|oldest| oldest > since);
        Ok(match (unknown.or(unwritten), removed) {
            (Some(call), _) => {
                Some(format!("what call {call} may have changed in it is not covered"))
            }
            (None, true) => Some("older copies of it may have been removed".to_owned()),
            (None, false) => None,
        })
    }

    /// The path under which a file that a person or a model names is stored.
    fn full(&self, named: &str) -> PathBuf {
        let mut full = PathBuf::new();
        for part in self.project.join(named).components() {
            match part {
                Component::ParentDir => drop(full.pop()),
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => full.push(part),
            }
        }
        // A directory above may be a link; the last part is the file or link itself.
        let above = full.parent().and_then(|above| above.canonicalize().ok());
        match (above, full.file_name()) {
            (Some(above), Some(name)) => above.join(name),
            (_, _) => full,
        }
    }
}

/// One file to be restored.
struct OneFile {
    /// The first call that is known to have changed it.
    first: u32,
    backup: FileBackup,
}

/// What a call did to one path.
struct FileChange {
    call: u32,
    ended: bool,
    before: Option<String>,
    after: Option<String>,
    is_mode: bool,
}

/// The calls from the first to the last of these that changed a path, in their order.
fn ends(
    connection: &Connection,
    path: &str,
    (first, last): (u32, u32),
) -> rusqlite::Result<Vec<FileChange>> {
    let mut changes = connection.prepare(&format!(
        "SELECT call, ended, before, after, kind FROM file JOIN change ON change.id = change \
         WHERE path = ?1 AND call BETWEEN ?2 AND ?3 AND {TOUCHED} ORDER BY change.id"
    ))?;
    let changes = changes.query_map(params![path, first, last], |row| {
        Ok(FileChange {
            call: row.get(0)?,
            ended: row.get(1)?,
            before: row.get(2)?,
            after: row.get(3)?,
            is_mode: row.get::<_, String>(4)? == command_rows::MODE,
        })
    })?;
    changes.collect()
}

/// A path as the first of these calls found it.
fn first(
    connection: &Connection,
    path: &str,
    (first, last): (u32, u32),
) -> rusqlite::Result<Option<StoredFile>> {
    let select = format!(
        "SELECT {COLUMNS} FROM file JOIN change ON change.id = change \
         WHERE path = ?1 AND call BETWEEN ?2 AND ?3 AND {TOUCHED} ORDER BY change.id LIMIT 1"
    );
    connection.query_row(&select, params![path, first, last], StoredFile::of).optional()
}

impl StoredFile {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            path: row.get(0)?,
            kind: row.get(1)?,
            mode: row.get(2)?,
            bytes: row.get(3)?,
            before: row.get(4)?,
            after: row.get(5)?,
        })
    }

    /// Takes the content before the call; none where it is not stored.
    fn take_content(&mut self) -> Option<PriorContent> {
        match (self.kind.as_str(), &self.before) {
            ("file" | command_rows::MODE, _) => {
                let bytes = std::mem::take(&mut self.bytes);
                Some(PriorContent::File { bytes, mode: self.mode })
            }
            ("link", Some(digest)) => digest
                .strip_prefix(FileBackup::LINK)
                .map(|to| PriorContent::Link(FilePath::from(to))),
            ("absent", _) => Some(PriorContent::Absent),
            (NOT_KEPT, Some(why)) if why != NOT_KEPT => Some(PriorContent::NotKept(why.clone())),
            _ => None,
        }
    }

    /// What an undo writes; an error where a part of it is unknown.
    fn backup(mut self) -> Result<FileBackup, StoreError> {
        let Some(before) = self.take_content() else {
            let message = format!("there is no copy of {}, so nothing is restored", self.path);
            return Err(not_covered(message, HINT));
        };
        if self.after.as_deref() == Some(UNKNOWN) {
            let message = format!(
                "the content that the call left at {} is unknown: it is too large, or outside \
                 the project; so nothing is restored",
                self.path
            );
            return Err(not_covered(message, HINT));
        }
        Ok(FileBackup { path: self.path, before, after: self.after })
    }
}

fn invalid(message: String) -> StoreError {
    StoreError::new(StoreErrorCode::InvalidArguments, message, "Leave it out.")
}

fn not_covered(message: String, hint: &str) -> StoreError {
    StoreError::new(StoreErrorCode::NotCovered, message, hint)
}
