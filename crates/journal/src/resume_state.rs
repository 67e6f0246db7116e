//! The state of a session at the end of its journal, needed to resume it.
//!
//! Every line is checked, and of most no more than the front is read: a session of a gigabyte is
//! opened as fast as it is read. Texts kept beside the journal are looked for, and read when they
//! are needed.

use crate::reader::JournalReader;
use crate::record::{about_a_call, ends_a_call};
use crate::{
    ExpandedPrompt, JournalEntry, JournalRecord, LineDamage, ReadError, TurnEnd, WorkerDeaths,
    line, read, spill,
};
use std::collections::BTreeMap;
use std::path::Path;

/// The state of a session, from its journal.
#[derive(Debug, Clone, PartialEq)]
pub struct ResumeState {
    /// The records that still hold, in order; the first is the header. Those of calls that ended,
    /// prompts, answers and the ends of turns are left out, and kinds unknown here.
    pub entries: Vec<JournalEntry>,
    /// How many turns there were.
    pub turns: u32,
    /// The number of the last prompt's record; 0 where there was none.
    pub prompted: u64,
    /// The state of its last turn.
    pub turn: LastTurn,
    /// The text of the slash command that began the last turn, if one did and it has no end.
    pub prompt: Option<Box<ExpandedPrompt>>,
    /// Which round asked for the calls that are open; 0 where none is.
    pub round: u32,
}

/// How the last turn of a session stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LastTurn {
    /// It has no end on disk.
    Open,
    /// It has no end on disk, and the session was ended in order there.
    Left,
    /// Deaths of a process ended it.
    Died(WorkerDeaths),
    /// It ended otherwise, or there was none.
    #[default]
    Ended,
}

impl ResumeState {
    /// The oldest waiting prompt waits no more, if any does.
    fn oldest_begins(&mut self) {
        let Some(oldest) = self.entries.iter().position(|entry| lets_wait(&entry.record)) else {
            return;
        };
        if let JournalRecord::TakenBack { waiting } = &mut self.entries[oldest].record {
            waiting.remove(0);
            if !waiting.is_empty() {
                return;
            }
        }
        self.entries.remove(oldest);
    }

    /// True if a person chose another model since the last prompt.
    #[must_use]
    pub fn has_new_model(&self) -> bool {
        let names_one = |record: &JournalRecord| {
            matches!(record, JournalRecord::Changed { model: Some(_), .. })
        };
        self.entries.iter().any(|entry| entry.seq > self.prompted && names_one(&entry.record))
    }
}

impl LastTurn {
    /// Takes the next record of the journal in.
    pub(crate) fn take(&mut self, record: &JournalRecord) {
        if let JournalRecord::TurnEnded { end } = record {
            *self = Self::Ended;
            if let TurnEnd::ProcessDied(deaths) = end {
                *self = Self::Died(deaths.clone());
            }
        } else if matches!(record, JournalRecord::Prompt { .. }) {
            *self = Self::Open;
        } else if matches!(record, JournalRecord::Closed) && *self == Self::Open {
            *self = Self::Left;
        } else if *self == Self::Left && is_of_a_turn(record) {
            // It went on.
            *self = Self::Open;
        }
    }

    /// True if it has no end on disk.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open | Self::Left)
    }

    /// How it was cut short, if it was; it is turn number `turns`. Of an open one the records tell no
    /// more than that the supervisor wrote none after them. A session that was ended in order was cut
    /// short by nothing.
    #[must_use]
    pub fn cut_short(&self, turns: u32) -> Option<WorkerDeaths> {
        let of_supervisor = |cause: &str| WorkerDeaths {
            process: "agentd-supervisor".to_owned(),
            cause: cause.to_owned(),
            count: 1,
            place: format!("in turn {turns}, before that turn had its end"),
        };
        match self {
            Self::Open => Some(of_supervisor("ended, or its disk took no more records,")),
            Self::Died(deaths) => Some(deaths.clone()),
            Self::Left | Self::Ended => None,
        }
    }
}

/// True if a prompt waits by this record.
fn lets_wait(record: &JournalRecord) -> bool {
    if let JournalRecord::TakenBack { waiting } = record {
        return !waiting.is_empty();
    }
    matches!(record, JournalRecord::Queued { .. })
}

/// True if an unfinished turn continues with this record.
pub(crate) fn is_of_a_turn(record: &JournalRecord) -> bool {
    matches!(
        record,
        JournalRecord::Answer { .. }
            | JournalRecord::Proposed { .. }
            | JournalRecord::Joined { .. }
            | JournalRecord::Start { .. }
            | JournalRecord::Result { .. }
            | JournalRecord::Interrupted { .. }
    )
}

/// Reads the journal of the session in this directory, without its lock and without changing it.
///
/// # Errors
/// Fails if there is no journal, or it cannot be read to its end.
pub fn past_of(session_dir: &Path) -> Result<ResumeState, ReadError> {
    past(&mut read(session_dir)?)
}

/// Reads the journal to its end.
pub(crate) fn past(reader: &mut JournalReader) -> Result<ResumeState, ReadError> {
    let mut past = ResumeState {
        entries: Vec::new(),
        turns: 0,
        prompted: 0,
        turn: LastTurn::Ended,
        prompt: None,
        round: 0,
    };
    // Lines of calls stay unparsed until the end of their call is found.
    let mut calls = OpenLines::default();
    let (mut answer, mut end, mut prompt) = (Vec::new(), Vec::new(), Vec::new());
    while reader.next_line()? {
        if past.entries.is_empty() {
            past.entries.push(reader.entry()?);
            continue;
        }
        let front = line::check(reader.line()).and_then(|()| line::front(reader.line()));
        let front = front.map_err(|damage| reader.damaged(damage))?;
        reader.check_place(front.seq)?;
        let goes_on = ["ANSWER", "PROPOSED", "JOINED", "START"].contains(&&*front.kind)
            || ends_a_call(&front.kind);
        if past.turn == LastTurn::Left && goes_on {
            past.turn = LastTurn::Open;
        }
        look_for_texts(reader)?;
        match (&*front.kind, front.call) {
            ("PROMPT", _) => {
                past.turns += 1;
                past.prompted = front.seq;
                past.turn = LastTurn::Open;
                prompt.clear();
                if is_expanded(reader.line()) {
                    prompt.extend_from_slice(reader.line());
                }
                past.oldest_begins();
            }
            ("JOINED", _) => past.oldest_begins(),
            ("TURN_ENDED", _) => {
                past.turn = LastTurn::Ended;
                end.clear();
                end.extend_from_slice(reader.line());
            }
            ("CLOSED", _) if past.turn == LastTurn::Open => past.turn = LastTurn::Left,
            ("CLOSED", _) => {}
            ("ANSWER", _) => {
                answer.clear();
                answer.extend_from_slice(reader.line());
            }
            ("TAKEN_BACK", _) => {
                past.entries.retain(|entry| !lets_wait(&entry.record));
                let entry = reader.entry()?;
                if lets_wait(&entry.record) {
                    past.entries.push(entry);
                }
                continue;
            }
            (kind, Some(call)) if ends_a_call(kind) => calls.end(call),
            (kind, Some(call)) if about_a_call(kind) => calls.keep(call, reader.line()),
            (kind, None) if about_a_call(kind) => return Err(reader.damaged(LineDamage::NoRecord)),
            (kind, _) if !JournalRecord::KINDS.contains(&kind) => {}
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
    if asked && let JournalRecord::Answer { round, .. } = reader.entry_of(&answer)?.record {
        past.round = round;
    }
    if past.turn == LastTurn::Ended && !end.is_empty() {
        past.turn.take(&reader.entry_of(&end)?.record);
    }
    // It is read only where it matters, as above.
    if past.turn.is_open()
        && !prompt.is_empty()
        && let JournalRecord::Prompt { expanded, .. } = reader.entry_of(&prompt)?.record
    {
        past.prompt = expanded;
    }
    past.entries.extend(open);
    past.entries.sort_by_key(|entry| entry.seq);
    Ok(past)
}

/// True if a prompt has the text of a slash command; decided without parsing it. Quotes inside a text
/// have a backslash before them.
fn is_expanded(line: &[u8]) -> bool {
    memchr::memmem::find(line, br#","expanded":{"#).is_some()
        || memchr::memmem::find(line, br#"{"expanded":{"#).is_some()
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

/// A missing text is detected here; a changed one when it is read.
fn look_for_texts(reader: &JournalReader) -> Result<(), ReadError> {
    if !spill::may_refer(reader.line()) {
        return Ok(());
    }
    let line = line::open(reader.line()).map_err(|damage| reader.damaged(damage))?;
    if !JournalRecord::KINDS.contains(&line.kind.as_str()) {
        return Ok(());
    }
    spill::references(&line.fields)
        .into_iter()
        .try_for_each(|(digest, bytes)| reader.blobs.check(digest, bytes))
        .map_err(|error| reader.damaged(LineDamage::Blob(error)))
}
