//! The second copy of a session's journal, at a fleet: the lines to send, the texts and images that they
//! refer to, and the session that another host makes of them.

use crate::blobs::Blobs;
use crate::fork::UNFINISHED;
use crate::reader::{BLOBS, FILE, read};
use crate::{AppendError, BlobError, CreateError, Digest, Journal, ReadError, disk};
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// Marks in front of a digest in a line.
const MARKS: [&str; 2] = [r#""$blob":""#, r#""$image":""#];

/// Kinds of records of which [`JournalRecord::barrier_of_copy`](crate::JournalRecord::barrier_of_copy) is
/// never true.
const UNHURRIED: [&str; 7] =
    ["ANSWER", "PROPOSED", "SEEN", "SPENT", "COMPACTED", "APPROVED", "RESULT"];

/// True if something may wait for the second copy of this line.
#[must_use]
pub fn is_waited_for(line: &str) -> bool {
    // A quote inside a text has a backslash before it.
    !UNHURRIED.iter().any(|kind| line.contains(&format!("\"kind\":\"{kind}\"")))
}

/// The lines of a session's journal behind this record, each checked, without its line end.
///
/// # Errors
/// As [`read`].
pub fn lines_after(session_dir: &Path, seq: u64) -> Result<Vec<String>, ReadError> {
    let mut reader = read(session_dir)?.without_texts();
    let mut lines = Vec::new();
    while reader.next_line()? {
        let line = String::from_utf8_lossy(reader.line()).into_owned();
        if reader.entry()?.seq > seq {
            lines.push(line);
        }
    }
    Ok(lines)
}

/// The texts and images that a line refers to.
#[must_use]
pub fn kept_beside(line: &str) -> Vec<Digest> {
    let mut found = Vec::new();
    for mark in MARKS {
        // A quote inside a text has a backslash before it: a text cannot hold a mark.
        let digests =
            line.split(mark).skip(1).filter_map(|rest| rest.get(..64)?.parse::<Digest>().ok());
        found.extend(digests);
    }
    found
}

/// The bytes of a text or an image of the session in this directory.
///
/// # Errors
/// It is gone, or not what its name says.
pub fn kept_bytes(session_dir: &Path, digest: Digest) -> Result<Vec<u8>, BlobError> {
    Blobs::at(session_dir.join(BLOBS)).get_bytes(digest)
}

/// Makes a session of the lines and of what they refer to. It is there as a whole, or not at all.
///
/// # Errors
/// See [`CreateError`]; there is a session of that name already.
pub fn restore(
    sessions: &Path,
    id: &str,
    lines: &[String],
    beside: &[Vec<u8>],
) -> Result<(), CreateError> {
    let place = sessions.join(id);
    if place.exists() {
        return Err(CreateError::Exists { id: id.to_owned() });
    }
    let unfinished = sessions.join(format!("{id}{UNFINISHED}"));
    let _ = fs::remove_dir_all(&unfinished);
    let failed = |source| CreateError::Io { path: unfinished.clone(), source };
    let journal = Journal::create_in(sessions, &unfinished, id)?;
    let blobs = Blobs::at(unfinished.join(BLOBS));
    for bytes in beside {
        blobs.put_bytes(bytes).map_err(AppendError::Blob)?;
    }
    let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    let file = fs::OpenOptions::new().append(true).open(unfinished.join(FILE));
    let written = file.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_data()
    });
    written.map_err(failed)?;
    drop(journal);
    // Every line is checked before the session has its name.
    let read = lines_after(&unfinished, 0).map_err(|error| failed(std::io::Error::other(error)))?;
    if read.len() != lines.len() {
        return Err(failed(std::io::Error::other("its last record is cut short")));
    }
    fs::rename(&unfinished, &place).and_then(|()| disk::sync_dir(sessions)).map_err(failed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{FORMAT, JournalRecord, SessionHeader};

    fn header() -> SessionHeader {
        SessionHeader {
            format: FORMAT,
            id: "s1".to_owned(),
            project: Path::new("/p").to_path_buf().into(),
            model: "m".to_owned(),
            agentd: "0.1.0".to_owned(),
            parent: None,
            task: None,
            fleet_task: Some(7),
        }
    }

    #[test]
    fn a_line_is_waited_for_unless_no_record_of_its_kind_is_a_barrier() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(dir.path(), header()).unwrap();
        let (call, tool_kind) = (1, crate::ToolKind::Mutation);
        let records = [
            JournalRecord::Prompt { text: "\"kind\":\"RESULT\"".to_owned(), expanded: None },
            JournalRecord::Start { call, tool_kind, contained: false },
            JournalRecord::Expired { call },
            JournalRecord::Compacted { dropped: 1, result_chars: 1, old: 0 },
        ];
        for record in &records {
            journal.append(record).unwrap();
        }
        let lines = lines_after(&dir.path().join("s1"), 1).unwrap();
        let waited: Vec<_> = lines.iter().map(|line| is_waited_for(line)).collect();
        let barriers: Vec<_> = records.iter().map(JournalRecord::barrier_of_copy).collect();
        assert_eq!(waited, barriers, "{lines:?}");
    }

    #[test]
    fn a_restored_session_is_the_same_with_its_long_texts() {
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (dir.path().join("here"), dir.path().join("there"));
        let mut journal = Journal::create(&here, header()).unwrap();
        let long = "x\"$blob\":\"".repeat(10_000);
        let prompt = JournalRecord::Prompt { text: long.clone(), expanded: None };
        journal.append(&prompt).unwrap();
        drop(journal);
        let session = here.join("s1");
        let lines = lines_after(&session, 0).unwrap();
        assert_eq!((lines.len(), lines_after(&session, 1).unwrap().len()), (2, 1));
        let digests: Vec<_> = lines.iter().flat_map(|line| kept_beside(line)).collect();
        assert_eq!(digests, [Digest::of(long.as_bytes())]);
        let beside: Vec<_> =
            digests.iter().map(|digest| kept_bytes(&session, *digest).unwrap()).collect();
        fs::create_dir_all(&there).unwrap();
        restore(&there, "s1", &lines, &beside).unwrap();
        let records = |place: &Path| {
            read(&place.join("s1")).unwrap().map(|entry| entry.unwrap().record).collect::<Vec<_>>()
        };
        assert_eq!(records(&there), records(&here));
        assert!(matches!(restore(&there, "s1", &lines, &[]), Err(CreateError::Exists { .. })));
        // A line that is not whole makes no session.
        let cut = [lines[0].clone(), lines[1][..20].to_owned()];
        assert!(restore(&there, "s2", &cut, &[]).is_err());
        assert!(!there.join("s2").exists());
    }
}
