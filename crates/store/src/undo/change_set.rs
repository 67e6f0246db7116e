//! Files as diffs against their content before some calls, for people. For `undo` only.

use super::{UndoStore, list};
use crate::failure::StoreError;
use crate::file_copy::{FileCopy, NOT_KEPT, UNKNOWN, look};
use crate::undo_coverage::UndoCoverage;
use protocol::hidden::line_for_model;
use protocol::store::{ChangeSet, FileBackup, FileDiff};
use rusqlite::{Connection, params};
use similar::TextDiff;
use std::path::Path;
use std::time::{Duration, Instant};

/// Most files with a diff, and bytes of all diffs: a person reads them.
const FILES: usize = 500;
const BYTES: usize = 2 << 20;
/// Most bytes of the files that are read for it, and of one of them.
const READ: u64 = 64 << 20;
const LARGEST: u64 = 8 << 20;
/// Most notes; the rest is counted.
const NOTES: usize = 100;
/// Most bytes of a file with a diff: a line of one byte takes many times that in memory.
const OF_A_FILE: usize = 1 << 20;
/// After this long a diff is finished roughly, and after all of that no other begins: the store answers
/// nothing else meanwhile.
const PATIENCE: Duration = Duration::from_millis(200);
const OF_ALL: Duration = Duration::from_secs(1);

/// A path as it was before the first of the calls.
struct EarlierFile {
    path: String,
    /// The calls that changed it.
    calls: Vec<u32>,
    /// The stored change with its content.
    change: i64,
    kind: String,
    digest: Option<String>,
}

impl UndoStore {
    /// Compares files with their content before the call `since` and all later ones.
    pub(crate) fn change_set(
        &mut self,
        since: u32,
        cover: &UndoCoverage,
    ) -> Result<ChangeSet, StoreError> {
        let (mut files, mut notes) = (Vec::new(), Vec::new());
        let (earlier, unknown) = self
            .file
            .look(|connection| Ok((earlier(connection, since)?, unknown(connection, since)?)))?;
        let begun = Instant::now();
        let (mut room, mut bytes, mut left_out) = (READ, 0, 0);
        for before in earlier {
            let full = Path::new(&before.path);
            let path =
                line_for_model(&full.strip_prefix(&self.project).unwrap_or(full).to_string_lossy())
                    .into_owned();
            if before.kind == NOT_KEPT {
                let why = before.digest.filter(|why| why != NOT_KEPT);
                let why = why.unwrap_or_else(|| "too large, or no file".to_owned());
                notes.push(format!("{path} is not covered: {why}."));
                continue;
            }
            let is_full = files.len() == FILES || bytes >= BYTES || room < LARGEST;
            if is_full || begun.elapsed() > OF_ALL {
                left_out += 1;
                continue;
            }
            let mut found = Vec::new();
            if !full.is_dir() || full.is_symlink() {
                look(full, &mut room, &mut found);
            }
            let now = found.pop();
            let content = self.file.look(|connection| content(connection, &before))?;
            let Some(diff) = difference(&path, &before, &content, now.as_ref()) else { continue };
            if bytes + diff.len() > BYTES {
                left_out += 1;
                continue;
            }
            bytes += diff.len();
            files.push(FileDiff { path, calls: before.calls, diff });
        }
        notes.extend(unknown);
        notes.extend(
            cover.unwritten.iter().filter(|(call, _)| *call >= since).map(|(_, line)| line.clone()),
        );
        let mut standing = Vec::new();
        if self.file.look(list::let_go)? {
            standing.push(list::LET_GO.trim_end().to_owned());
        }
        if !self.file.set_aside_before().is_empty() {
            standing.push("Earlier copies were damaged and are not compared.".to_owned());
        }
        standing.push(list::coverage(cover).trim_end().to_owned());
        let more = notes.len().saturating_sub(NOTES);
        notes.truncate(NOTES);
        if more > 0 {
            notes.push(format!("{more} more notes are not shown."));
        }
        notes.extend(standing);
        if left_out > 0 {
            notes.push(format!("{left_out} more files may differ; they are too many to be shown."));
        }
        for note in &mut notes {
            *note = line_for_model(note).into_owned();
        }
        Ok(ChangeSet { files, notes })
    }
}

/// A unified diff, or one line; none where both are equal.
fn difference(
    path: &str,
    before: &EarlierFile,
    content: &[u8],
    now: Option<&FileCopy>,
) -> Option<String> {
    let Some(now) = now.filter(|now| now.kind != NOT_KEPT) else {
        return Some("it is too large now, or no file\n".to_owned());
    };
    if now.digest == before.digest && before.digest.as_deref() != Some(UNKNOWN) {
        // Permissions are all that may differ.
        return None;
    }
    let link = |digest: &Option<String>| {
        digest.as_deref().and_then(|it| it.strip_prefix(FileBackup::LINK)).map(str::to_owned)
    };
    match (link(&before.digest), link(&now.digest)) {
        (None, None) => {}
        (was, is) => {
            let name = |link: Option<String>| {
                link.map_or_else(|| "no link".to_owned(), |to| format!("a link to {to}"))
            };
            return Some(
                line_for_model(&format!("it was {} and is {}", name(was), name(is))).into_owned()
                    + "\n",
            );
        }
    }
    if content.len().max(now.bytes.len()) > OF_A_FILE {
        let (old, new) = (content.len(), now.bytes.len());
        return Some(format!("too large for a diff: it had {old} bytes and has {new}\n"));
    }
    let text = |bytes| std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let (Some(old), Some(new)) = (text(content), text(&now.bytes)) else {
        let (old, new) = (content.len(), now.bytes.len());
        return Some(format!("no text: it had {old} bytes and has {new}\n"));
    };
    let name = |kind: &str, side: &str| match kind {
        "absent" => "/dev/null".to_owned(),
        _ => format!("{side}/{path}"),
    };
    let mut config = TextDiff::configure();
    let diff = config.timeout(PATIENCE).diff_lines(old, new);
    let (from, to) = (name(&before.kind, "a"), name(now.kind, "b"));
    let text = diff.unified_diff().context_radius(3).header(&from, &to).to_string();
    // An empty file has no lines to show.
    Some(if text.is_empty() { format!("--- {from}\n+++ {to}\n") } else { text })
}

fn content(connection: &Connection, file: &EarlierFile) -> rusqlite::Result<Vec<u8>> {
    let select = "SELECT bytes FROM file WHERE change = ?1 AND path = ?2";
    connection.query_row(select, params![file.change, file.path], |row| row.get(0))
}

fn earlier(connection: &Connection, since: u32) -> rusqlite::Result<Vec<EarlierFile>> {
    let mut firsts = connection.prepare(
        "SELECT path, kind, first, before, calls FROM file JOIN (SELECT path AS name, \
         min(change) AS first, group_concat(CASE WHEN before IS NOT after OR ended = 0 OR kind = 'not kept' \
         THEN call END) AS calls FROM file JOIN change ON change.id = change WHERE call >= ?1 \
         GROUP BY path) ON name = path AND first = change WHERE calls IS NOT NULL ORDER BY path",
    )?;
    let rows = firsts.query_map([since], |row| {
        let calls: String = row.get(4)?;
        Ok(EarlierFile {
            path: row.get(0)?,
            kind: row.get(1)?,
            change: row.get(2)?,
            digest: row.get(3)?,
            calls: calls.split(',').filter_map(|call| call.parse().ok()).collect(),
        })
    })?;
    rows.collect()
}

/// Commands whose changes are unknown, one sentence each.
fn unknown(connection: &Connection, since: u32) -> rusqlite::Result<Vec<String>> {
    let mut commands = connection.prepare(
        "SELECT call, words, notes FROM change JOIN command ON change = id \
         WHERE call >= ?1 AND (ended = 0 OR notes <> '') ORDER BY id",
    )?;
    let rows = commands.query_map([since], |row| {
        let (call, words, notes): (u32, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(format!("Call {call} (`{words}`): {notes}."))
    })?;
    rows.collect()
}
