//! `agentd show` and `agentd export`: prints a session's journal, without a supervisor. Damage is
//! reported after the readable records before it.

use crate::audit::{basis, end_of, time};
use crate::cli::{ExportFormat, Redact};
use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::describe::{Describer, Description, EndedCall, LINE, ran};
use crate::export;
use crate::fleet_commands::{self, FetchedSession};
use crate::sessions;
use client::{CallState, InterruptedEnd, one_line};
use journal::{JournalEntry, OpenCall, WorkerDeaths};
use protocol::hidden::{in_json, on_screen, visible};
use protocol::ids::SessionId;
use serde_json::json;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Use of the flag `--calls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallDetail {
    Line,
    Full,
}

pub(crate) fn show(beginning: &str, calls: CallDetail, json: bool) -> Result<CliExit, CliError> {
    if json {
        return each(beginning, line, cut_short_lines);
    }
    let mut describer = Describer::default();
    let text = |entry: &JournalEntry| {
        let said = describer.describe(entry);
        said.map_or_else(String::new, |said| on_screen(&words(entry.time, &said, calls)))
    };
    each(beginning, text, cut_short_words)
}

pub(crate) fn export(
    beginning: &str,
    format: ExportFormat,
    redact: Redact,
) -> Result<CliExit, CliError> {
    match format {
        ExportFormat::Html => export::html(beginning, redact),
        ExportFormat::Atif => export::atif(beginning, redact),
        ExportFormat::Json | ExportFormat::Markdown if redact == Redact::KnownShapes => {
            Err(CliError::user("--redact needs --format html or atif"))
        }
        // A copy of the records, and nothing else.
        ExportFormat::Json => each(beginning, line, |_| String::new()),
        ExportFormat::Markdown => {
            let mut describer = Describer::default();
            // Control codes of a tool's output are removed, for files and screens.
            let text = |entry: &JournalEntry| {
                let said = describer.describe(entry);
                said.map_or_else(String::new, |said| on_screen(&as_markdown(entry.time, &said)))
            };
            each(beginning, text, cut_short_markdown)
        }
    }
}

/// Prints the readable records of a session, then its interrupted turn and calls.
fn each(
    beginning: &str,
    mut text: impl FnMut(&JournalEntry) -> String,
    rest: impl Fn(&CutShort) -> String,
) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let fetched = fleet_commands::is_elsewhere(&context, beginning)?
        .then(|| FetchedSession::get(beginning))
        .transpose()?;
    let session = match &fetched {
        Some(fetched) => fetched.session.clone(),
        None => sessions::named(&context, beginning)?,
    };
    let unreadable = |error: &journal::ReadError| {
        CliError::config(chain(error)).exit(CliExit::Failed).hint(format!(
            "`agentd fork {session}` starts a new session from the undamaged records"
        ))
    };
    let directory = match &fetched {
        Some(fetched) => fetched.path(),
        None => sessions::directory(&context, &session),
    };
    let reader = journal::read(&directory).map_err(|error| unreadable(&error))?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    for entry in reader {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let _ = out.flush();
                return Err(unreadable(&error));
            }
        };
        // A reader that closed the pipe has read enough.
        if out.write_all(text(&entry).as_bytes()).is_err() {
            return Ok(CliExit::Done);
        }
    }
    if let Some(cut) = CutShort::of(session, &directory) {
        let _ = out.write_all(rest(&cut).as_bytes());
    }
    let _ = out.flush();
    Ok(CliExit::Done)
}

/// Calls and a turn without a recorded end, in a session that no process runs.
struct CutShort {
    session: SessionId,
    calls: Vec<OpenCall>,
    /// The interrupted turn, if its end is not on record.
    turn: Option<WorkerDeaths>,
}

impl CutShort {
    fn of(session: SessionId, directory: &Path) -> Option<Self> {
        // Checked before the records are read: a turn that ends meanwhile is either found ended, or
        // its session was locked.
        let held = journal::is_held(directory);
        let past = journal::past_of(directory).ok()?;
        let deaths = past.turn.cut_short(past.turns);
        let calls = journal::Past::fold(&past.entries).open_calls();
        let none = deaths.is_none() && calls.is_empty();
        if none || past.turn.is_open() && (held || journal::is_held(directory)) {
            return None;
        }
        let turn = deaths.filter(|_| past.turn.is_open());
        Some(Self { session, calls, turn })
    }
}

fn cut_short_words(cut: &CutShort) -> String {
    let mut text = String::new();
    for call in &cut.calls {
        let ran = ran(call.progress);
        text.push_str(&format!("   {} cut short (agentd ended); {ran}\n", call.number));
    }
    if let Some(deaths) = &cut.turn {
        text.push_str(&format!("   the turn was cut short: {deaths}\n"));
    }
    format!("{text}   `agentd -p PROMPT --resume {}` continues\n", cut.session)
}

fn cut_short_markdown(cut: &CutShort) -> String {
    let calls = cut.calls.iter().map(|call| {
        format!("\nCall {} was cut short: agentd ended; {}.\n", call.number, ran(call.progress))
    });
    let turn = cut.turn.iter();
    let turn = turn.map(|deaths| format!("\n*the turn was cut short: {deaths}*\n"));
    on_screen(&calls.chain(turn).collect::<String>())
}

/// Not on record, so without a number.
fn cut_short_lines(cut: &CutShort) -> String {
    let call = |call: &OpenCall| json!({"kind": "CUT_SHORT", "call": call.number, "tool": call.tool, "progress": call.progress});
    let turn = |deaths: &WorkerDeaths| json!({"kind": "CUT_SHORT", "turn": deaths});
    let lines = cut.calls.iter().map(call).chain(cut.turn.iter().map(turn));
    lines.map(|line| format!("{}\n", in_json(&line.to_string()))).collect()
}

fn line(entry: &JournalEntry) -> String {
    let mut fields = entry.record.to_object();
    fields.insert("seq".to_owned(), entry.seq.into());
    fields.insert("time".to_owned(), entry.time.into());
    format!("{}\n", in_json(&json!(fields).to_string()))
}

/// A record as lines.
fn words(time_of: u64, said: &Description<'_>, calls: CallDetail) -> String {
    match said {
        Description::Began(header) => format!(
            "session {}\nproject {}\nmodel   {}\nbegan   {}\n{}",
            header.id,
            header.project.0.display(),
            header.model,
            time(time_of),
            header.parent.as_ref().map_or(String::new(), |parent| {
                format!("copied from {} up to record {}\n", parent.session, parent.seq)
            }) + &header.task.as_ref().map_or(String::new(), |task| {
                format!(
                    "sub-agent {} of session {}, call {}\n",
                    task.agent, task.session, task.call
                )
            }),
        ),
        Description::Prompt(text) => {
            format!("\n{}  ({})\n\n", quoted(text), time(time_of))
        }
        Description::Joined(text) => {
            format!("\n{}  ({}, joined the turn)\n\n", quoted(text), time(time_of))
        }
        Description::Answer(text) => format!("{}\n", text.trim_end()),
        Description::Proposed { call, tool, input } => match calls {
            CallDetail::Line => {
                format!("{call}. {} {}\n", one_line(tool, LINE), one_line(&visible(input), LINE))
            }
            CallDetail::Full => format!("{call}. {} {}\n", one_line(tool, LINE), visible(input)),
        },
        Description::Denied { call, message, basis: why } => match calls {
            CallDetail::Line => format!("   {call} ⊘ not allowed: {}\n", one_line(message, LINE)),
            CallDetail::Full => {
                let why = one_line(&basis(why), LINE);
                format!("   {call} denied {why}: {}\n", one_line(message, LINE))
            }
        },
        Description::Allowed { call, basis: why } => match calls {
            CallDetail::Line => String::new(),
            CallDetail::Full => format!("   {call} allowed {}\n", one_line(&basis(why), LINE)),
        },
        Description::OfCall { call, step } => format!("   {call} {step}\n"),
        Description::Ended(EndedCall { call, outcome, summary, whole, cached_from, .. }) => {
            let state = CallState::of(outcome, InterruptedEnd::of_summary(summary));
            let state = format!("{} {}", state.mark(), state.word());
            let again = cached_from.map_or(String::new(), |by| {
                format!(" (cached from call {by}; its files are unchanged)")
            });
            match calls {
                CallDetail::Line => {
                    format!("   {call} {state}: {}{again}\n", one_line(summary, LINE))
                }
                CallDetail::Full => {
                    format!("   {call} {state}: {summary}{again}\n{}", indented(whole))
                }
            }
        }
        Description::CutShort { call, cause, ran, tampered } => {
            let names: String = tampered.iter().map(|name| format!("   {name}\n")).collect();
            format!("   {call} cut short ({cause}); {ran}\n{names}")
        }
        Description::Tampered(names) => tampered(names),
        Description::Turn(text) | Description::Setting(text) => format!("   {text}\n"),
        Description::Unknown(kind) => format!("   ({kind})\n"),
    }
}

/// A person's words, marked as such.
fn quoted(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
}

/// The protected files that you are asked about before the next command.
fn tampered(names: &[String]) -> String {
    match names {
        [] => "\n   the changed protected files were accepted\n".to_owned(),
        names => format!("\n   changed protected files: {}\n", names.join("; ")),
    }
}

fn as_markdown(time_of: u64, said: &Description<'_>) -> String {
    match said {
        Description::Began(header) => format!(
            "# Session {}\n\n- project: `{}`\n- model: {}\n- began: {}\n",
            header.id,
            header.project.0.display(),
            header.model,
            time(time_of)
        ),
        Description::Prompt(text) => {
            format!("\n## {}\n\n{}\n", time(time_of), text.trim_end())
        }
        Description::Joined(text) => {
            format!("\n### {}, joined the turn\n\n{}\n", time(time_of), text.trim_end())
        }
        Description::Answer(text) => format!("\n### Answer\n\n{}\n", text.trim_end()),
        Description::Proposed { call, tool, input } => {
            format!("\n### Call {call}: {}\n\n{}", one_line(tool, LINE), fenced("json", input))
        }
        Description::Denied { call, message, .. } => {
            format!("\nCall {call} was not allowed: {message}\n")
        }
        Description::OfCall { call, step } => format!("\nCall {call} {step}.\n"),
        Description::Ended(EndedCall { call, outcome: how, summary, text, .. }) => {
            format!("\nCall {call} ended ({}):\n\n{}", end_of(how, summary), fenced("", text))
        }
        Description::CutShort { call, cause, ran, tampered } => {
            let names: String = tampered.iter().map(|name| format!("- {name}\n")).collect();
            format!("\nCall {call} was cut short: {cause}; {ran}.\n{names}")
        }
        Description::Tampered(names) => tampered(names),
        Description::Turn(text) => format!("\n*{text}*\n"),
        Description::Allowed { .. } | Description::Setting(_) | Description::Unknown(_) => {
            String::new()
        }
    }
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
