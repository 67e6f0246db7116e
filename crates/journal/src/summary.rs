//! The summary of a session for lists. A short journal is read whole; of a longer one only its
//! beginning and its last record are parsed, and its prompts are counted without parsing them. So
//! lists stay cheap for sessions of many months.

use crate::reader::FILE;
use crate::resume_state::is_of_a_turn;
use crate::{
    JournalEntry, JournalRecord, LastTurn, ReadError, SessionCost, SessionHeader, Usage,
    WorkerDeaths, is_held, newest, read,
};
use memchr::memmem;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
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
/// A journal of so many bytes at most has its costs summed.
const SUMMED: u64 = 64 << 20;
/// Where the kind of a record stands on its line.
const KIND: usize = 80;
/// The last bytes of a line of an answer that hold its cost: numbers, and the ID of a session.
const COST_TAIL: usize = 500;
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
    /// What it cost; unknown where the journal is very long.
    pub cost: SessionCost,
    /// How its last turn stands.
    pub turn: LastTurn,
    /// The damage found so far, if any.
    pub trouble: Option<ReadError>,
    /// True if a process held its lock.
    held: bool,
    /// The calls of sub-agents whose cost is counted.
    tasks: BTreeSet<u32>,
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
    seen.cost = SessionCost::default();
    if length <= SUMMED {
        let path = dir.join(FILE);
        let summed = File::open(&path).and_then(|journal| cost_of(BufReader::new(journal)));
        seen.cost = summed.map_err(|source| ReadError::Io { path, source })?;
    }
    Ok(())
}

/// The cost in all lines. Only those of summaries, which are few, are parsed.
fn cost_of(mut journal: impl BufRead) -> io::Result<SessionCost> {
    let (mut cost, mut tasks, mut line) = (SessionCost::default(), BTreeSet::new(), Vec::new());
    loop {
        line.clear();
        if journal.read_until(b'\n', &mut line)? == 0 {
            return Ok(cost);
        }
        let head = &line[..line.len().min(KIND)];
        let is = |kind: &[u8]| memmem::find(head, kind).is_some();
        if is(br#","kind":"ANSWER","#) {
            let tail = &line[line.len().saturating_sub(COST_TAIL)..];
            match number_behind(tail, br#","cost":"#) {
                Some(more) => cost.add(Some(more)),
                // Of an answer that was stopped, the vendor counted nothing.
                None if memmem::find(tail, br#""usage":{}"#).is_some() => {}
                None => cost.add(None),
            }
        } else if is(br#","kind":"SPENT","#) && tasks.insert(number_behind(&line, br#","call":"#)) {
            cost.add(number_behind(&line, br#","cost":"#));
        } else if is(br#","kind":"SUMMARY","#)
            && let Ok(JournalRecord::Summary(step)) = serde_json::from_slice(&line)
            && let Some((_, of_summary)) = step.use_of_model()
        {
            cost.add(of_summary);
        }
    }
}

/// The number behind the last of these words.
fn number_behind(line: &[u8], words: &[u8]) -> Option<u64> {
    let at = memmem::rfind(line, words)? + words.len();
    let digits = line[at..].iter().take_while(|byte| byte.is_ascii_digit());
    String::from_utf8(digits.copied().collect()).ok()?.parse().ok()
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
        } else if let JournalRecord::Answer { usage, cost, .. } = record {
            if usage != Usage::default() || cost.is_some() {
                self.cost.add(cost);
            }
        } else if let JournalRecord::Spent { call, cost, .. } = record {
            if self.tasks.insert(call) {
                self.cost.add(cost);
            }
        } else if let JournalRecord::Summary(step) = record
            && let Some((_, cost)) = step.use_of_model()
        {
            self.cost.add(cost);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::line::seal;
    use serde_json::{Map, Value, json};
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
    fn the_cost_of_a_long_journal_is_that_of_its_records() {
        let line =
            |kind: &str, fields: Value| seal(7, 5, kind, &serde_json::from_value(fields).unwrap());
        let says = r#","kind":"ANSWER","cost":9000"#;
        let answer = |text: &str, usage: Value, cost: Option<u64>| {
            let blocks = json!([{ "type": "text", "text": text }]);
            let mut fields = json!({ "round": 1, "blocks": blocks, "usage": usage });
            if let Some(cost) = cost {
                fields["cost"] = cost.into();
            }
            line("ANSWER", fields)
        };
        let used = || json!({ "input": 3, "output": 4 });
        let spent = |call: u32| {
            let fields = json!({ "call": call, "session": "s1-1", "rounds": 2, "calls": 3, "usage": {}, "cost": 7 });
            line("SPENT", fields)
        };
        let summary =
            json!({ "step": "written", "round": 1, "text": says, "usage": {}, "cost": 2 });
        let mut journal = answer(says, used(), Some(5)) + &spent(1) + &spent(1) + &spent(2);
        journal += &line("SUMMARY", summary);
        journal += &answer(&"x".repeat(3000), json!({}), None);
        journal += &line("PROMPT", json!({ "text": says }));
        let sum = |journal: &str| cost_of(journal.as_bytes()).unwrap();
        assert_eq!(sum(&journal), SessionCost::Whole(21));
        // As the fold over the records has it.
        let mut seen = SessionSummary::default();
        for line in journal.lines() {
            let record = serde_json::from_str(line).unwrap();
            seen.take(JournalEntry { seq: 1, time: 1, record });
        }
        assert_eq!(seen.cost, SessionCost::Whole(21));
        journal += &answer(says, used(), None);
        assert_eq!(sum(&journal), SessionCost::AtLeast(21));
        assert_eq!(sum(""), SessionCost::Unknown);
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
