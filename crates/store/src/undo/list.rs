//! The changes as people and models are shown them, the newest first. For `undo` only.

use super::{UndoStore, command_rows};
use crate::StoreResult;
use crate::database::now;
use crate::failure::{StoreError, arguments};
use crate::file_copy::{NOT_KEPT, UNKNOWN};
use crate::undo_coverage::UndoCoverage;
use protocol::call::Call;
use protocol::hidden::line;
use rusqlite::Connection;
use serde::Deserialize;
use std::path::Path;

/// Calls that the list shows.
const LISTED: u32 = 20;
/// Characters of a call's files.
const FILES: usize = 400;
/// SQLite's `user_version` as a flag: some changes were removed to save space.
pub(super) const SOME_LET_GO: i64 = 1;
/// The note about it.
pub(super) const LET_GO: &str = "Older changes were removed to stay below 500 calls and 256 MiB.\n";

#[derive(Debug, Deserialize)]
struct UndoListInput {
    /// Only changes of calls before this one.
    before: Option<u32>,
}

/// A row of the list.
#[derive(Default)]
struct UndoRow {
    id: i64,
    call: u32,
    tool: String,
    time: i64,
    ended: bool,
    /// For a command: its command line and further notes.
    command: Option<(String, String)>,
    files: Vec<UndoFile>,
}

struct UndoFile {
    path: String,
    kind: String,
    before: Option<String>,
    after: Option<String>,
}

impl UndoStore {
    pub(crate) fn list(
        &mut self,
        call: &Call,
        cover: &UndoCoverage,
    ) -> Result<StoreResult, StoreError> {
        let UndoListInput { before } = arguments(&call.input)?;
        let before = before.unwrap_or(u32::MAX);
        let ((rows, all), let_go) =
            self.file.look(|connection| Ok((rows(connection, before)?, let_go(connection)?)))?;
        let mut text: String =
            cover.unwritten.iter().rev().map(|(_, line)| format!("{line}\n")).collect();
        let unwritten = text.len();
        text.extend(rows.iter().map(|row| self.shown(row)));
        match (rows.last(), all.saturating_sub(rows.len())) {
            (None, _) if unwritten > 0 => {}
            (None, _) if before == u32::MAX => {
                text.push_str("nothing that was changed in this session is kept\n");
            }
            (None, _) => text.push_str(&format!("nothing older than change {before} is kept\n")),
            (Some(_), 0) => {}
            (Some(last), more) => {
                let way = format!("undo_list with before = {}", last.call);
                text.push_str(&format!("[… {more} older changes; they are shown by {way} …]\n"));
            }
        }
        if let Some((time, path)) = self.file.set_aside_before().first() {
            text.push_str(&format!(
                "What was changed until {} is not covered: its copies were damaged, and lie \
                 aside as {}.\n",
                ago(*time),
                path.display()
            ));
        }
        if let_go {
            text.push_str(LET_GO);
        }
        text.push_str(&coverage(cover));
        Ok(StoreResult { text, summary: format!("{all} changes") })
    }

    fn shown(&self, row: &UndoRow) -> String {
        let ago = ago(u64::try_from(row.time).unwrap_or_default());
        let files: Vec<String> = row
            .files
            .iter()
            .filter(|file| row.changed(file))
            .map(|file| self.did(row, file))
            .collect();
        let many = match files.len() {
            0..4 => String::new(),
            many => format!("{many} files: "),
        };
        let files = as_fit(&files);
        let (words, notes) = match &row.command {
            Some((words, notes)) => (format!(" `{words}`"), notes.as_str()),
            None => (String::new(), ""),
        };
        let between = if files.is_empty() || notes.is_empty() { "" } else { "; " };
        format!("{} {}{words}, {ago}: {many}{files}{between}{notes}\n", row.call, row.tool)
    }

    fn did(&self, row: &UndoRow, UndoFile { path, kind, before, after }: &UndoFile) -> String {
        let path = Path::new(path);
        let path = path.strip_prefix(&self.project).unwrap_or(path).display();
        let did = match (before, after) {
            (Some(why), _) if kind == NOT_KEPT && why != NOT_KEPT => {
                return format!("{path} (not covered: {why})");
            }
            _ if kind == NOT_KEPT => "not covered: too large, no file, or outside the project",
            _ if !row.ended && row.command.is_none() => "its end was not observed",
            (_, Some(after)) if after == UNKNOWN => {
                "not covered: too large now, or outside the project"
            }
            _ if kind == command_rows::MODE => "permissions changed",
            (None, _) => "made",
            (Some(_), None) => "removed",
            (Some(_), Some(_)) => "changed",
        };
        format!("{path} ({did})")
    }
}

impl UndoRow {
    fn changed(&self, UndoFile { kind, before, after, .. }: &UndoFile) -> bool {
        [NOT_KEPT, command_rows::MODE].contains(&kind.as_str()) || !self.ended || before != after
    }
}

/// True if some changes were removed to save space.
pub(super) fn let_go(connection: &Connection) -> rusqlite::Result<bool> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(version == SOME_LET_GO)
}

/// The note about changes of commands that are never covered.
pub(super) fn coverage(cover: &UndoCoverage) -> String {
    match cover.unable {
        Some(why) => format!("Changes of commands are not covered: {why}.\n"),
        None => {
            let gap = cover.gap.as_ref().map(|gap| format!(", nor in {gap}")).unwrap_or_default();
            format!(
                "Changes of commands are not covered in ignored files, in files larger than 256 KiB, \
                 in `.git` and outside the project{gap}. Undo attributes every change made \
                 during a command to that command.\n"
            )
        }
    }
}

/// How long it is since.
fn ago(time: u64) -> String {
    match now().saturating_sub(time) {
        ago @ 0..60 => format!("{ago} s ago"),
        ago @ 60..3_600 => format!("{} min ago", ago / 60),
        ago => format!("{} h ago", ago / 3_600),
    }
}

/// As many as there is room for, and the number of the others.
fn as_fit(files: &[String]) -> String {
    let mut text = String::new();
    for (at, file) in files.iter().enumerate() {
        let file = line(file, FILES);
        if at > 0 && text.chars().count() + file.chars().count() > FILES {
            return format!("{text}, and {} more files", files.len() - at);
        }
        let between = if at > 0 { ", " } else { "" };
        text = format!("{text}{between}{file}");
    }
    text
}

/// The newest changes of calls before this one, and how many there are in all.
fn rows(connection: &Connection, before: u32) -> rusqlite::Result<(Vec<UndoRow>, usize)> {
    let all: u32 =
        connection
            .query_row("SELECT count(*) FROM change WHERE call < ?1", [before], |row| row.get(0))?;
    let mut changes = connection.prepare(
        "SELECT id, tool, time, ended, call, words, notes FROM change \
         LEFT JOIN command ON change = id WHERE call < ?1 ORDER BY id DESC LIMIT ?2",
    )?;
    let mut files = connection
        .prepare("SELECT path, kind, before, after FROM file WHERE change = ?1 ORDER BY path")?;
    let found = changes.query_map([before, LISTED], |row| {
        let (words, notes): (Option<String>, Option<String>) = (row.get(5)?, row.get(6)?);
        Ok(UndoRow {
            id: row.get(0)?,
            tool: row.get(1)?,
            time: row.get(2)?,
            ended: row.get(3)?,
            call: row.get(4)?,
            command: words.zip(notes),
            files: Vec::new(),
        })
    })?;
    let mut rows = Vec::new();
    for row in found {
        let mut row = row?;
        let all = files.query_map([row.id], |file| {
            Ok(UndoFile {
                path: file.get(0)?,
                kind: file.get(1)?,
                before: file.get(2)?,
                after: file.get(3)?,
            })
        })?;
        row.files = all.collect::<Result<_, _>>()?;
        rows.push(row);
    }
    Ok((rows, usize::try_from(all).unwrap_or(usize::MAX)))
}
