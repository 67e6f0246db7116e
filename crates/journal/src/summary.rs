//! The summary of a session for lists. A short journal is read whole; of a longer one only its
//! beginning and its last record are parsed, and its prompts are counted without parsing them. So
//! lists stay cheap for sessions of many months.

use crate::reader::FILE;
use crate::resume_state::is_of_a_turn;
use crate::{
    JournalEntry, JournalRecord, LastTurn, ReadError, SessionHeader, WorkerDeaths, is_held, newest,
    read,
};
use memchr::memmem;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// A journal of so many bytes at most is read whole.
const WHOLE: u64 = 256 << 10;
/// Records of a longer one among which its first prompt is looked for.
const HEAD: usize = 64;
/// A journal of so many bytes at most has its prompts counted: a twentieth of a second.
const COUNTED: u64 = 256 << 20;
/// How a prompt stands on its line. Inside a text its quotes would be escaped.
const PROMPT: &[u8] = br#","kind":"PROMPT","#;
/// How a changed setting stands on its line.
const CHANGED: &[u8] = br#","kind":"CHANGED","#;
/// Bytes from there on that hold a name's whole record.
const NAME_LINE: u64 = 4 << 10;
/// Bytes searched per read.
const STEP: usize = 256 << 10;

/// A session at a glance.
#[derive(Debug, Default)]
pub struct SessionSummary {
    /// Its first record.
    pub header: Option<SessionHeader>,
    /// When it began, in milliseconds of Unix time; 0 where nothing can be read.
    pub began: u64,
    /// When its last record was written, likewise.
    pub last: u64,
    /// The words it began with; empty where they are long or there are none.
    pub first_prompt: String,
    /// The name that a person gave it; empty where none did.
    pub name: String,
    /// Its prompts; unknown where the journal is very long.
    pub turns: Option<u32>,
    /// How its last turn stands.
    pub turn: LastTurn,
    /// The damage found so far, if any.
    pub trouble: Option<ReadError>,
    /// True if a process held its lock.
    held: bool,
}

/// Summarizes the session in this directory, without its lock and without changing it. An
/// unreadable session is summarized by its readable part.
#[must_use]
pub fn glance(session_dir: &Path) -> SessionSummary {
    // Asked first: a turn that ends while the records are read is found ended, or was held.
    let mut seen = SessionSummary { held: is_held(session_dir), ..SessionSummary::default() };
    seen.trouble = look(session_dir, &mut seen).err();
    seen
}

fn look(dir: &Path, seen: &mut SessionSummary) -> Result<(), ReadError> {
    let entries = read(dir)?.without_texts();
    let length = std::fs::metadata(dir.join(FILE)).map_or(0, |found| found.len());
    if length <= WHOLE {
        seen.turns = Some(0);
        return entries.into_iter().try_for_each(|entry| entry.map(|entry| seen.take(entry)));
    }
    for entry in entries.take(HEAD) {
        seen.take(entry?);
        if !seen.first_prompt.is_empty() {
            break;
        }
    }
    // The newest record about turns stands near the end, but for a turn that is open.
    let (mut last, mut goes_on) = (None, false);
    let about_turns = newest(dir, 1, |JournalEntry { seq: _, time, record }| {
        last.get_or_insert(time);
        goes_on |= is_of_a_turn(&record);
        matches!(
            record,
            JournalRecord::Prompt { .. } | JournalRecord::TurnEnded { .. } | JournalRecord::Closed
        )
        .then_some(record)
    });
    for record in about_turns? {
        if matches!(record, JournalRecord::Closed) {
            seen.turn = if goes_on { LastTurn::Open } else { LastTurn::Left };
        } else {
            seen.turn.take(&record);
        }
    }
    seen.last = last.unwrap_or(seen.last);
    if length <= COUNTED {
        let path = dir.join(FILE);
        let searched = File::open(&path).and_then(|mut journal| {
            let found = search(&journal)?;
            Ok((newest_name(&mut journal, &found.changes)?, found.prompts))
        });
        let (name, prompts) = searched.map_err(|source| ReadError::Io { path, source })?;
        (seen.name, seen.turns) = (name.unwrap_or_default(), Some(prompts));
    }
    Ok(())
}

/// What a search of a whole journal finds without parsing it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// The number of prompts.
    prompts: u32,
    /// Where the records of changed settings stand: the bytes before each [`CHANGED`].
    changes: Vec<u64>,
}

fn search(mut journal: impl Read) -> io::Result<Found> {
    let (prompt, changed) = (memmem::Finder::new(PROMPT), memmem::Finder::new(CHANGED));
    let mut bytes = vec![0; STEP];
    let (mut found, mut kept, mut at) = (Found::default(), 0, 0);
    loop {
        let read = journal.read(&mut bytes[kept..])?;
        if read == 0 {
            return Ok(found);
        }
        let length = kept + read;
        // Of a longer pattern the end of the last piece may be searched twice.
        let piece = |pattern: &[u8]| kept.saturating_sub(pattern.len() - 1)..length;
        let prompts = prompt.find_iter(&bytes[piece(PROMPT)]).count();
        found.prompts += u32::try_from(prompts).unwrap_or(u32::MAX);
        let changes = piece(CHANGED);
        let first = at + changes.start as u64;
        found.changes.extend(changed.find_iter(&bytes[changes]).map(|it| first + it as u64));
        // A pattern that starts in this piece and ends in the next; a whole one would be longer.
        kept = length.min(PROMPT.len().max(CHANGED.len()) - 1);
        at += (length - kept) as u64;
        bytes.copy_within(length - kept..length, 0);
    }
}

/// The name in the newest of these records that has one.
fn newest_name(journal: &mut (impl Read + Seek), changes: &[u64]) -> io::Result<Option<String>> {
    for at in changes.iter().rev() {
        // Without the comma and before the line's end, it is an object as the whole line is.
        journal.seek(SeekFrom::Start(at + 1))?;
        let mut bytes = b"{".to_vec();
        journal.by_ref().take(NAME_LINE).read_to_end(&mut bytes)?;
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        if let Ok(JournalRecord::Changed { name: Some(name), .. }) = serde_json::from_slice(line) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

impl SessionSummary {
    /// The way in which the session's last turn was cut short, if it was; an open turn counts only
    /// if no process holds the session.
    #[must_use]
    pub fn cut_short(&self, session_dir: &Path) -> Option<WorkerDeaths> {
        match self.turn {
            LastTurn::Open if self.held || is_held(session_dir) => None,
            // Its person had the session ended.
            LastTurn::Left => None,
            LastTurn::Open | LastTurn::Died(_) | LastTurn::Ended => {
                self.turn.cut_short(self.turns.unwrap_or_default())
            }
        }
    }

    fn take(&mut self, JournalEntry { seq: _, time, record }: JournalEntry) {
        self.last = time;
        self.turn.take(&record);
        if let JournalRecord::Session(header) = record {
            self.began = time;
            self.header = Some(header);
        } else if let JournalRecord::Prompt { text, .. } = record {
            if self.first_prompt.is_empty() {
                self.first_prompt = text;
            }
            self.turns = self.turns.map(|turns| turns + 1);
        } else if let JournalRecord::Changed { name: Some(name), .. } = record {
            self.name = name;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::line::seal;
    use serde_json::{Map, Value};
    use std::io::Cursor;

    /// Gives its bytes out in pieces, as a file may.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(buffer.len());
            self.0.read(&mut buffer[..most])
        }
    }

    #[test]
    fn prompts_are_counted_wherever_they_stand_and_what_is_said_is_none() {
        let says = |text: &str| Map::from_iter([("text".to_owned(), Value::from(text))]);
        let mut journal = String::new();
        for n in 1..=40 {
            journal += &seal(3 * n, 5, "PROMPT", &says("words"));
            journal += &seal(3 * n + 1, 5, "QUEUED", &says(r#","kind":"PROMPT","text":"no""#));
            journal += &seal(3 * n + 2, 5, "TURN_ENDED", &says(""));
        }
        for piece in [1, 2, 16, 17, 18, 50, 1000, usize::MAX] {
            assert_eq!(search(Pieces(journal.as_bytes(), piece)).unwrap().prompts, 40, "{piece}");
        }
    }

    #[test]
    fn the_newest_name_is_found_wherever_it_stands() {
        let changed = |field: &str, value: &str| {
            let fields = [(field, value), ("by", "ann")].map(|(k, v)| (k.to_owned(), v.into()));
            Map::from_iter(fields)
        };
        let mut journal = String::new();
        for n in 1..=40 {
            journal += &seal(3 * n, 5, "CHANGED", &changed("name", &format!("name {n}")));
            journal += &seal(3 * n + 1, 5, "CHANGED", &changed("model", "m"));
            let says = r#","kind":"CHANGED","name":"no""#;
            journal += &seal(3 * n + 2, 5, "PROMPT", &changed("text", says));
        }
        for piece in [1, 2, 17, 18, 19, 50, 1000, usize::MAX] {
            let found = search(Pieces(journal.as_bytes(), piece)).unwrap();
            assert_eq!((found.prompts, found.changes.len()), (40, 80), "{piece}");
            let name = newest_name(&mut Cursor::new(&journal), &found.changes).unwrap();
            assert_eq!(name.as_deref(), Some("name 40"), "{piece}");
        }
        let none = newest_name(&mut Cursor::new(&journal), &[]).unwrap();
        assert_eq!(none, None);
    }
}
