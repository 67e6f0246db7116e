//! `agentd show` and `agentd export`: a session as its journal holds it, with a supervisor or
//! without. What is damaged is named; what stands before it is shown.

use crate::audit::{outcome, time};
use crate::cli::ExportFormat;
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::place::Place;
use crate::sessions;
use client::{one_line, plain};
use journal::{Block, Entry, Record, Span, TurnEnd};
use serde_json::{Value, json};
use std::io::{BufWriter, Write};

/// Longest line about a call, in characters.
const LINE: usize = 120;

/// Whether calls are shown with all they said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calls {
    InALine,
    Whole,
}

pub(crate) fn show(beginning: &str, calls: Calls, json: bool) -> Result<Exit, Failure> {
    let safe = |text: String| plain(&text);
    match json {
        true => each(beginning, line),
        false => each(beginning, |entry| safe(words(entry, calls))),
    }
}

pub(crate) fn export(beginning: &str, format: ExportFormat) -> Result<Exit, Failure> {
    match format {
        ExportFormat::Json => each(beginning, line),
        ExportFormat::Markdown => each(beginning, markdown),
    }
}

/// Prints each record of a session, as far as they can be read.
fn each(beginning: &str, text: impl Fn(&Entry) -> String) -> Result<Exit, Failure> {
    let place = Place::of_process()?;
    let session = sessions::named(&place, beginning)?;
    let unreadable = |error: &journal::ReadError| {
        Failure::config(chain(error)).exit(Exit::Failed).hint(format!(
            "`agentd fork {session}` begins a new session from the records that are good"
        ))
    };
    let reader = journal::read(&sessions::directory(&place, &session))
        .map_err(|error| unreadable(&error))?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    for entry in reader {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let _ = out.flush();
                return Err(unreadable(&error));
            }
        };
        // Whoever closed the pipe has read enough.
        if out.write_all(text(&entry).as_bytes()).is_err() {
            return Ok(Exit::Done);
        }
    }
    let _ = out.flush();
    Ok(Exit::Done)
}

fn line(entry: &Entry) -> String {
    let mut fields = match (&entry.record, serde_json::to_value(&entry.record)) {
        (_, Ok(Value::Object(fields))) => fields,
        // A kind that this build does not know: its own words.
        (Record::Unknown { kind, fields }, _) => {
            let mut fields = fields.clone();
            fields.insert("kind".to_owned(), kind.as_str().into());
            fields
        }
        (_, _) => serde_json::Map::new(),
    };
    fields.insert("seq".to_owned(), entry.seq.into());
    fields.insert("time".to_owned(), entry.time.into());
    format!("{}\n", json!(fields))
}

/// What a person is shown of a record.
fn words(entry: &Entry, calls: Calls) -> String {
    match &entry.record {
        Record::Session(header) => format!(
            "session {}\nproject {}\nmodel   {}\nbegan   {}\n{}",
            header.id,
            header.project.0.display(),
            header.model,
            time(entry.time),
            header.parent.as_ref().map_or(String::new(), |parent| {
                format!("copied from {} up to record {}\n", parent.session, parent.seq)
            }),
        ),
        Record::Prompt { text } => {
            let lines: Vec<_> = text.trim_end().lines().map(|line| format!("> {line}")).collect();
            format!("\n{}  ({})\n\n", lines.join("\n"), time(entry.time))
        }
        Record::Answer { blocks, .. } => match texts(blocks) {
            text if text.trim().is_empty() => String::new(),
            text => format!("{}\n", text.trim_end()),
        },
        Record::Proposed { call, tool, input, .. } => match calls {
            Calls::InALine => format!("{call}. {tool} {}\n", one_line(input, LINE)),
            Calls::Whole => format!("{call}. {tool} {input}\n"),
        },
        Record::Denied { call, message, .. } => {
            format!("   {call} not allowed: {}\n", one_line(message, LINE))
        }
        Record::Expired { call } => format!("   {call} nobody answered in time\n"),
        Record::Result { call, summary, text, full, recalled, .. } => {
            let again = recalled
                .map_or(String::new(), |by| format!(" (as for call {by}; nothing had changed)"));
            match calls {
                Calls::InALine => format!("   {call} {}{again}\n", one_line(summary, LINE)),
                // The model got a part of it.
                Calls::Whole => {
                    let text = indented(full.as_ref().unwrap_or(text));
                    format!("   {call} {summary}{again}\n{text}")
                }
            }
        }
        Record::Interrupted { call, cause, progress, .. } => {
            let ran = match progress {
                journal::Progress::NeverStarted => "it never ran",
                journal::Progress::MayHaveRun => "it may have run",
            };
            format!("   {call} cut short ({cause}); {ran}\n")
        }
        Record::TurnEnded { end } => format!("   {}\n", ending(end)),
        Record::Unknown { kind, fields: _ } => format!("   ({kind})\n"),
        Record::Changed { network, mode, added, model, pinned, unpinned, by } => {
            let network = network.as_ref().map(|word| format!("network {word}"));
            let mode = mode.as_ref().map(|name| format!("mode {name}"));
            let added = added.as_ref().map(|path| format!("added {}", path.0.display()));
            let model = model.as_ref().map(|name| format!("model {name}"));
            let pinned = pinned.as_ref().map(|file| format!("pinned {file}"));
            let unpinned = unpinned.as_ref().map(|file| format!("{file} pinned no more"));
            let what = network.or(mode).or(added).or(model).or(pinned).or(unpinned);
            let what = what.unwrap_or_default();
            format!("   {what} (by {by})\n")
        }
        Record::Learned { rule, by, unwritten: _ } => match rule.line {
            0 => format!("   {} allowed in {} (by {by})\n", rule.text, rule.file),
            line => {
                format!("   {} allowed from now on (by {by}; {}:{line})\n", rule.text, rule.file)
            }
        },
        // A prompt that waited comes again where its turn begins.
        Record::Queued { .. }
        | Record::TakenBack
        | Record::Compacted { .. }
        | Record::Seen { .. }
        | Record::Asked { .. }
        | Record::Approved { .. }
        | Record::Start { .. } => String::new(),
    }
}

/// For files and screens alike: control codes of what a tool printed are none here.
fn markdown(entry: &Entry) -> String {
    plain(&as_markdown(entry))
}

fn as_markdown(entry: &Entry) -> String {
    match &entry.record {
        Record::Session(header) => format!(
            "# Session {}\n\n- project: `{}`\n- model: {}\n- began: {}\n",
            header.id,
            header.project.0.display(),
            header.model,
            time(entry.time)
        ),
        Record::Prompt { text } => format!("\n## {}\n\n{}\n", time(entry.time), text.trim_end()),
        Record::Answer { blocks, .. } => match texts(blocks) {
            text if text.trim().is_empty() => String::new(),
            text => format!("\n### Answer\n\n{}\n", text.trim_end()),
        },
        Record::Proposed { call, tool, input, .. } => {
            format!("\n### Call {call}: {tool}\n\n{}", fenced("json", input))
        }
        Record::Denied { call, message, .. } => {
            format!("\nCall {call} was not allowed: {message}\n")
        }
        Record::Expired { call } => format!("\nCall {call}: nobody answered in time.\n"),
        Record::Result { call, outcome: how, text, .. } => {
            format!("\nCall {call} ended ({}):\n\n{}", outcome(how), fenced("", text))
        }
        Record::Interrupted { call, cause, .. } => {
            format!("\nCall {call} was cut short: {cause}\n")
        }
        Record::TurnEnded { end } => format!("\n*{}*\n", ending(end)),
        Record::Queued { .. }
        | Record::TakenBack
        | Record::Compacted { .. }
        | Record::Changed { .. }
        | Record::Learned { .. }
        | Record::Seen { .. }
        | Record::Asked { .. }
        | Record::Approved { .. }
        | Record::Start { .. }
        | Record::Unknown { .. } => String::new(),
    }
}

fn texts(blocks: &[Block]) -> String {
    let mut texts = Vec::new();
    for block in blocks {
        if let Block::Text { text } = block {
            texts.push(text.as_str());
        }
    }
    texts.join("\n\n")
}

fn indented(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("     {line}\n")).collect()
}

/// A block that the text cannot end: its fence is longer than any in it.
fn fenced(kind: &str, text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}{kind}\n{}\n{fence}\n", text.trim_end())
}

fn ending(end: &TurnEnd) -> String {
    match end {
        TurnEnd::Done => "the turn ended".to_owned(),
        TurnEnd::RoundsUsedUp { rounds } => format!("the turn used up its {rounds} rounds"),
        TurnEnd::CallsUsedUp { calls, of: Span::Turn } => {
            format!("the turn used up its {calls} calls")
        }
        TurnEnd::CallsUsedUp { calls, of: Span::Session } => {
            format!("the session used up its {calls} calls")
        }
        TurnEnd::Declined { explanation } => format!("the model declined: {explanation}"),
        TurnEnd::Truncated => "the answer was cut at its limit".to_owned(),
        // By a person, or by a death that nobody was there to go on after: the records say no more.
        TurnEnd::Interrupted => "the turn was stopped before its end".to_owned(),
        TurnEnd::ProviderFailed { failure: _, message } => message.clone(),
    }
}
