//! How far a session had come: what whoever opens a journal has to know before it goes on.
//!
//! Every line is checked, and of most no more than the front is read: a session of a gigabyte is
//! opened as fast as it is read. Texts kept beside the journal are looked for, and read when they
//! are needed.

use crate::reader::Reader;
use crate::record::{about_a_call, ends_a_call};
use crate::{Damage, Entry, ReadError, Record, bulk, line};
use std::collections::BTreeMap;

/// What a journal says of its session's present.
#[derive(Debug, Clone, PartialEq)]
pub struct Past {
    /// The records that still hold, in order; the first is the header. Those of calls that ended,
    /// prompts, answers and the ends of turns are left out, and kinds unknown here.
    pub entries: Vec<Entry>,
    /// How many turns there were.
    pub turns: u32,
    /// How the last of them stands.
    pub turn: Turn,
    /// Which round asked for the calls that are open; 0 where none is.
    pub round: u32,
}

/// Whether a session is in the middle of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It has no end on disk.
    Open,
    /// It ended, or there was none.
    Ended,
}

/// Reads the journal to its end.
pub(crate) fn past(reader: &mut Reader) -> Result<Past, ReadError> {
    let mut past = Past { entries: Vec::new(), turns: 0, turn: Turn::Ended, round: 0 };
    // Lines are kept as they are until it is known whether their call ended.
    let mut calls = OpenLines::default();
    let mut answer = Vec::new();
    while reader.next_line()? {
        if past.entries.is_empty() {
            past.entries.push(reader.entry()?);
            continue;
        }
        let front = line::check(reader.line()).and_then(|()| line::front(reader.line()));
        let front = front.map_err(|damage| reader.damaged(damage))?;
        reader.check_place(front.seq)?;
        look_for_texts(reader)?;
        match (&*front.kind, front.call) {
            ("PROMPT", _) => {
                past.turns += 1;
                past.turn = Turn::Open;
                // It was the oldest of those that waited, if any did.
                let waits = |entry: &Entry| matches!(entry.record, Record::Queued { .. });
                if let Some(oldest) = past.entries.iter().position(waits) {
                    past.entries.remove(oldest);
                }
            }
            ("TURN_ENDED", _) => past.turn = Turn::Ended,
            ("ANSWER", _) => {
                answer.clear();
                answer.extend_from_slice(reader.line());
            }
            ("TAKEN_BACK", _) => {
                past.entries.retain(|entry| !matches!(entry.record, Record::Queued { .. }));
            }
            (kind, Some(call)) if ends_a_call(kind) => calls.end(call),
            (kind, Some(call)) if about_a_call(kind) => calls.keep(call, reader.line()),
            (kind, None) if about_a_call(kind) => return Err(reader.damaged(Damage::NoRecord)),
            (kind, _) if !Record::KINDS.contains(&kind) => {}
            _ => {
                past.entries.push(reader.entry()?);
                continue;
            }
        }
        reader.pass();
    }
    let open: Result<Vec<_>, _> = calls.lines().map(|line| reader.entry_of(line)).collect();
    let open = open?;
    // It is read only where it matters: it may be long.
    let asked = !open.is_empty() && !answer.is_empty();
    if asked && let Record::Answer { round, .. } = reader.entry_of(&answer)?.record {
        past.round = round;
    }
    past.entries.extend(open);
    past.entries.sort_by_key(|entry| entry.seq);
    Ok(past)
}

/// The lines of calls that have no end yet, as they are.
#[derive(Default)]
struct OpenLines {
    /// Each call's lines, each with its line end.
    of: BTreeMap<u32, Vec<u8>>,
    /// Used again, so that a journal of a million calls does not cost a million allocations.
    spare: Vec<Vec<u8>>,
}

impl OpenLines {
    fn keep(&mut self, call: u32, line: &[u8]) {
        let lines = self.of.entry(call).or_insert_with(|| self.spare.pop().unwrap_or_default());
        lines.extend_from_slice(line);
        lines.push(b'\n');
    }

    fn end(&mut self, call: u32) {
        if let Some(mut lines) = self.of.remove(&call) {
            lines.clear();
            self.spare.push(lines);
        }
    }

    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        // The line end of the last is no line.
        let lines = self.of.values().flat_map(|lines| lines.split(|byte| *byte == b'\n'));
        lines.filter(|line| !line.is_empty())
    }
}

/// A text that is gone is found now; one that was changed when it is read.
fn look_for_texts(reader: &Reader) -> Result<(), ReadError> {
    if !bulk::may_refer(reader.line()) {
        return Ok(());
    }
    let line = line::open(reader.line()).map_err(|damage| reader.damaged(damage))?;
    if !Record::KINDS.contains(&line.kind.as_str()) {
        return Ok(());
    }
    bulk::references(&line.fields)
        .into_iter()
        .try_for_each(|(digest, bytes)| reader.blobs.check(digest, bytes))
        .map_err(|error| reader.damaged(Damage::Blob(error)))
}
