//! What a list of sessions shows of one. A short journal is read whole; of a longer one only its
//! beginning and its last record, so that a list costs no more for sessions that went on for months.

use crate::reader::FILE;
use crate::{Entry, Header, ReadError, Record, newest, read};
use std::path::Path;

/// A journal of so many bytes at most is read whole.
const WHOLE: u64 = 256 << 10;
/// Records of a longer one among which its first prompt is looked for.
const HEAD: usize = 64;

/// A session at a glance.
#[derive(Debug, Default)]
pub struct Glance {
    /// Its first record.
    pub header: Option<Header>,
    /// When it began, in milliseconds of Unix time; 0 where nothing can be read.
    pub began: u64,
    /// When its last record was written, likewise.
    pub last: u64,
    /// The words it began with; empty where they are long or there are none.
    pub first_prompt: String,
    /// Its prompts; unknown where the journal is long.
    pub turns: Option<u32>,
    /// What keeps it from being read, as far as was looked.
    pub trouble: Option<ReadError>,
}

/// Looks at the session in this directory, without its lock and without changing it. One that
/// cannot be read is told of by what could be.
#[must_use]
pub fn glance(session_dir: &Path) -> Glance {
    let mut seen = Glance::default();
    seen.trouble = look(session_dir, &mut seen).err();
    seen
}

fn look(dir: &Path, seen: &mut Glance) -> Result<(), ReadError> {
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
    for time in newest(dir, 1, |entry| Some(entry.time))? {
        seen.last = time;
    }
    Ok(())
}

impl Glance {
    fn take(&mut self, Entry { seq: _, time, record }: Entry) {
        self.last = time;
        if let Record::Session(header) = record {
            self.began = time;
            self.header = Some(header);
        } else if let Record::Prompt { text } = record {
            if self.first_prompt.is_empty() {
                self.first_prompt = text;
            }
            self.turns = self.turns.map(|turns| turns + 1);
        }
    }
}
