//! How a snapshot lies in its file. For `snapshot`.

use super::RunningCommand;
use super::compare::{Index, NoCopyReason, SnapshotEntry, StampProof, StoredCopy};
use super::tree::{EntryKind, ListingState, TreeEntry};
use crate::database::Database;
use crate::failure::StoreError;
use protocol::call::ReadStamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

pub(super) const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS entry (
    path BLOB PRIMARY KEY,
    kind TEXT NOT NULL,
    mode INTEGER NOT NULL,
    device INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    size INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    settled INTEGER NOT NULL,
    copy TEXT NOT NULL,
    says TEXT NOT NULL,
    bytes BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS open (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    call INTEGER NOT NULL,
    tool TEXT NOT NULL,
    words TEXT NOT NULL,
    since INTEGER NOT NULL
);";

/// The names of kinds and copies in the file.
const KINDS: [(&str, EntryKind); 5] = [
    ("file", EntryKind::File),
    ("link", EntryKind::Link),
    ("directory", EntryKind::Directory(ListingState::All)),
    ("unlisted", EntryKind::Directory(ListingState::Not)),
    ("other", EntryKind::Other),
];

/// A row to be written; no entry where the name is gone.
#[derive(Debug)]
pub(super) struct SnapshotRow {
    pub(super) path: OsString,
    pub(super) entry: Option<SnapshotEntry>,
    pub(super) bytes: Vec<u8>,
}

impl SnapshotRow {
    pub(super) fn of(path: &OsStr, entry: Option<&SnapshotEntry>) -> Self {
        Self { path: path.to_owned(), entry: entry.cloned(), bytes: Vec::new() }
    }
}

/// Writes rows, and the command that begins now, in one transaction.
pub(super) fn write(
    file: &mut Database,
    rows: &[SnapshotRow],
    open: Option<&RunningCommand>,
) -> Result<(), StoreError> {
    file.change(|transaction| {
        let mut remove = transaction.prepare("DELETE FROM entry WHERE path = ?1")?;
        let mut put = transaction.prepare(
            "INSERT OR REPLACE INTO entry VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?;
        for SnapshotRow { path, entry, bytes } in rows {
            let path = path.as_bytes();
            let Some(SnapshotEntry { seen, proof, copy }) = entry else {
                remove.execute([path])?;
                continue;
            };
            let ReadStamp { device, inode, size, modified, changed } = seen.stamp;
            let kind = KINDS.iter().find(|(_, kind)| *kind == seen.kind);
            let (name, says) = match copy {
                StoredCopy::Kept(digest) => ("kept", digest.as_str()),
                StoredCopy::Link(to) => ("link", to.as_str()),
                StoredCopy::Rules(rules) => ("rules", rules.as_str()),
                StoredCopy::Not(why) => ("not", why.text()),
            };
            put.execute(params![
                path,
                kind.map(|(name, _)| *name),
                seen.mode,
                device.cast_signed(),
                inode.cast_signed(),
                size.cast_signed(),
                modified,
                changed,
                *proof == StampProof::Settled,
                name,
                says,
                bytes,
            ])?;
        }
        if let Some(RunningCommand { call, tool, words, since }) = open {
            transaction.execute(
                "INSERT OR REPLACE INTO open VALUES (1, ?1, ?2, ?3, ?4)",
                params![call, tool, words, since],
            )?;
        }
        Ok(())
    })
}

/// All that is known, without the copies themselves.
pub(super) fn load(file: &mut Database) -> Result<Index, StoreError> {
    file.look(|connection| {
        let mut rows = connection.prepare(
            "SELECT path, kind, mode, device, inode, size, modified, changed, settled, copy, says \
             FROM entry",
        )?;
        let rows = rows.query_map([], |row| {
            let path: Vec<u8> = row.get(0)?;
            Ok((OsString::from_vec(path), entry(row)?))
        })?;
        rows.collect()
    })
}

fn entry(row: &Row<'_>) -> rusqlite::Result<SnapshotEntry> {
    let number = |at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
    let (kind, copy): (String, String) = (row.get(1)?, row.get(9)?);
    let says: String = row.get(10)?;
    let kind =
        KINDS.iter().find(|(name, _)| *name == kind).map_or(EntryKind::Other, |(_, kind)| *kind);
    let stamp = ReadStamp {
        device: number(3)?,
        inode: number(4)?,
        size: number(5)?,
        modified: row.get(6)?,
        changed: row.get(7)?,
    };
    let copy = match copy.as_str() {
        "kept" => StoredCopy::Kept(says),
        "link" => StoredCopy::Link(says),
        "rules" => StoredCopy::Rules(says),
        _ => {
            let why = NoCopyReason::ALL.into_iter().find(|why| why.text() == says);
            StoredCopy::Not(why.unwrap_or(NoCopyReason::NotYet))
        }
    };
    let proof = if row.get(8)? { StampProof::Settled } else { StampProof::Racy };
    Ok(SnapshotEntry { seen: TreeEntry { kind, mode: row.get(2)?, stamp }, proof, copy })
}

/// The copy of one file.
pub(super) fn bytes(connection: &Connection, path: &Path) -> rusqlite::Result<Option<Vec<u8>>> {
    let mut row =
        connection.prepare("SELECT bytes FROM entry WHERE path = ?1 AND copy = 'kept'")?;
    row.query_row([path.as_os_str().as_bytes()], |row| row.get(0)).optional()
}

pub(super) fn open(file: &mut Database) -> Result<Option<RunningCommand>, StoreError> {
    file.look(|connection| {
        connection
            .query_row("SELECT call, tool, words, since FROM open", [], |row| {
                Ok(RunningCommand {
                    call: row.get(0)?,
                    tool: row.get(1)?,
                    words: row.get(2)?,
                    since: row.get(3)?,
                })
            })
            .optional()
    })
}

pub(super) fn close(file: &mut Database) -> Result<(), StoreError> {
    file.change(|transaction| Ok(transaction.execute("DELETE FROM open", []).map(drop)?))
}
