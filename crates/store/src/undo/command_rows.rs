//! How the changes of a command are written beside those of file tools. For `undo` only.

use super::{CommandEnd, OF_A_CALL, RanCommand};
use crate::database::now;
use crate::failure::StoreError;
use crate::file_copy::{FILES, NOT_KEPT, UNKNOWN};
use crate::snapshot::{ChangedFile, ContentBefore};
use rusqlite::{Transaction, params};

/// The kind of a file whose permissions only were changed.
pub(super) const MODE: &str = "mode";
/// Why something is not put back of which a copy is kept.
pub(super) const LEFT_UNKNOWN: &str = "the current content is too large, or was not read in time";

/// True if one call can restore all of them.
pub(super) fn fits(files: &[ChangedFile]) -> bool {
    let bytes = files.iter().map(|file| match &file.before {
        ContentBefore::File { bytes, .. } | ContentBefore::Mode { bytes, .. } => bytes.len() as u64,
        ContentBefore::Absent | ContentBefore::Link { .. } | ContentBefore::NotCovered(_) => 0,
    });
    files.len() <= FILES && bytes.sum::<u64>() <= OF_A_CALL
}

/// A change with its files, once for a call; its number.
pub(super) fn put(
    transaction: &Transaction<'_>,
    ran: RanCommand<'_>,
    end: CommandEnd,
    files: &[ChangedFile],
    notes: &str,
) -> Result<Option<i64>, StoreError> {
    let Some(change) = begin(transaction, ran, end, notes)? else { return Ok(None) };
    let none = Vec::new();
    for ChangedFile { path, before, after } in files {
        let (kind, mode, bytes, before, after) = match before {
            ContentBefore::Absent => ("absent", 0, &none, None, after.as_deref()),
            ContentBefore::File { bytes, mode, digest } => {
                ("file", *mode, bytes, Some(digest), after.as_deref())
            }
            ContentBefore::Mode { bytes, mode, digest } => {
                (MODE, *mode, bytes, Some(digest), after.as_deref())
            }
            ContentBefore::Link { digest } => ("link", 0, &none, Some(digest), after.as_deref()),
            ContentBefore::NotCovered(why) => (NOT_KEPT, 0, &none, Some(why), Some(UNKNOWN)),
        };
        transaction.execute(
            "INSERT OR IGNORE INTO file (change, path, kind, mode, bytes, before, after) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![change, path, kind, mode, bytes, before, after],
        )?;
    }
    Ok(Some(change))
}

/// A change of which nothing is known, and why.
pub(super) fn put_unknown(
    transaction: &Transaction<'_>,
    ran: RanCommand<'_>,
    why: &str,
) -> Result<Option<i64>, StoreError> {
    begin(transaction, ran, CommandEnd::Unseen, &format!("not covered: {why}"))
}

fn begin(
    transaction: &Transaction<'_>,
    RanCommand { call, tool, words }: RanCommand<'_>,
    end: CommandEnd,
    notes: &str,
) -> Result<Option<i64>, StoreError> {
    let time = i64::try_from(now()).unwrap_or(i64::MAX);
    let new = transaction.execute(
        "INSERT OR IGNORE INTO change (call, tool, time, ended) VALUES (?1, ?2, ?3, ?4)",
        params![call, tool, time, end == CommandEnd::Seen],
    )?;
    if new == 0 {
        return Ok(None);
    }
    let change = transaction.last_insert_rowid();
    transaction.execute(
        "INSERT INTO command (change, words, notes) VALUES (?1, ?2, ?3)",
        params![change, words, notes],
    )?;
    Ok(Some(change))
}
