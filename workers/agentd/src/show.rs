//! `agentd show` and `agentd export`: prints a session's journal, without a supervisor. Damage is
//! reported after the readable records before it.

use crate::audit::{basis, outcome, time};
use crate::cli::{ExportFormat, Redact};
use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::export;
use crate::fleet_commands::{self, FetchedSession};
use crate::sessions;
use client::{in_dollars, mark_hidden, one_line, sanitize};
use journal::{
    CallProgress, CallSpan, CompactionCause, ContentBlock, JournalEntry, JournalRecord, OpenCall,
    SummaryStep, TurnEnd, WorkerDeaths,
};
use protocol::ids::SessionId;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Longest line about a call, in characters.
const LINE: usize = 120;

/// Use of the flag `--calls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallDetail {
    Line,
    Full,
}

pub(crate) fn show(beginning: &str, calls: CallDetail, json: bool) -> Result<CliExit, CliError> {
    let safe = |text: String| sanitize(&text);
    match json {
        true => each(beginning, line, cut_short_lines),
        false => {
            let mut asked = QuestionTimes::default();
            let text = |entry: &JournalEntry| safe(words(entry, calls, asked.waited(entry)));
            each(beginning, text, cut_short_words)
        }
    }
}

pub(crate) fn export(
    beginning: &str,
    format: ExportFormat,
    redact: Redact,
) -> Result<CliExit, CliError> {
    match format {
        ExportFormat::Html => export::html(beginning, redact),
        ExportFormat::Json | ExportFormat::Markdown if redact == Redact::KnownShapes => {
            Err(CliError::user("--redact needs --format html"))
        }
        // A copy of the records, and nothing else.
        ExportFormat::Json => each(beginning, line, |_| String::new()),
        ExportFormat::Markdown => {
            let mut asked = QuestionTimes::default();
            let text = |entry: &JournalEntry| markdown(entry, asked.waited(entry));
            each(beginning, text, cut_short_markdown)
        }
    }
}

/// The end of a server's question.
fn server_question(action: &str, by: Option<&str>) -> String {
    let by = by.map_or_else(|| "nobody".to_owned(), |by| one_line(by, LINE));
    format!("asked a question of its MCP server: {} by {by}", one_line(action, LINE))
}

/// When the question of each call was first asked, in milliseconds of Unix time.
#[derive(Default)]
struct QuestionTimes(BTreeMap<u32, u64>);

impl QuestionTimes {
    /// The wait for an answer, to follow a sentence, where this record says that it ended.
    fn waited(&mut self, entry: &JournalEntry) -> String {
        if let JournalRecord::Asked { call, .. } = &entry.record {
            self.0.entry(*call).or_insert(entry.time);
        }
        let JournalRecord::Expired { call } = &entry.record else { return String::new() };
        let waited = self.0.remove(call).map(|asked| entry.time.saturating_sub(asked));
        let rounded = waited.map(|ms| if ms < 1000 { ms } else { ms / 1000 * 1000 });
        rounded
            .map_or_else(String::new, |ms| format!(" (asked for {})", config::written_duration(ms)))
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
    sanitize(&calls.chain(turn).collect::<String>())
}

/// Not on record, so without a number.
fn cut_short_lines(cut: &CutShort) -> String {
    let call = |call: &OpenCall| json!({"kind": "CUT_SHORT", "call": call.number, "tool": call.tool, "progress": call.progress});
    let turn = |deaths: &WorkerDeaths| json!({"kind": "CUT_SHORT", "turn": deaths});
    let lines = cut.calls.iter().map(call).chain(cut.turn.iter().map(turn));
    lines.map(|line| format!("{line}\n")).collect()
}

fn ran(progress: CallProgress) -> &'static str {
    match progress {
        CallProgress::NeverStarted => "it never started",
        CallProgress::MayHaveRun => "it may have run",
    }
}

fn line(entry: &JournalEntry) -> String {
    let mut fields = match (&entry.record, serde_json::to_value(&entry.record)) {
        (_, Ok(Value::Object(fields))) => fields,
        // A kind that this build does not know: its fields as they are.
        (JournalRecord::Unknown { kind, fields }, _) => {
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

/// A record as text.
fn words(entry: &JournalEntry, calls: CallDetail, waited: String) -> String {
    match &entry.record {
        JournalRecord::Session(header) => format!(
            "session {}\nproject {}\nmodel   {}\nbegan   {}\n{}",
            header.id,
            header.project.0.display(),
            header.model,
            time(entry.time),
            header.parent.as_ref().map_or(String::new(), |parent| {
                format!("copied from {} up to record {}\n", parent.session, parent.seq)
            }) + &header.task.as_ref().map_or(String::new(), |task| {
                format!(
                    "sub-agent {} of session {}, call {}\n",
                    task.agent, task.session, task.call
                )
            }),
        ),
        JournalRecord::Prompt { text, .. } => {
            let lines: Vec<_> = text.trim_end().lines().map(|line| format!("> {line}")).collect();
            format!("\n{}  ({})\n\n", lines.join("\n"), time(entry.time))
        }
        JournalRecord::Answer { blocks, .. } => match texts(blocks) {
            text if text.trim().is_empty() => String::new(),
            text => format!("{}\n", text.trim_end()),
        },
        JournalRecord::Proposed { call, tool, input, .. } => match calls {
            CallDetail::Line => format!("{call}. {tool} {}\n", one_line(&mark_hidden(input), LINE)),
            CallDetail::Full => format!("{call}. {tool} {}\n", mark_hidden(input)),
        },
        JournalRecord::Denied { call, message, basis: why } => match calls {
            CallDetail::Line => format!("   {call} not allowed: {}\n", one_line(message, LINE)),
            CallDetail::Full => {
                let why = one_line(&basis(why), LINE);
                format!("   {call} denied {why}: {}\n", one_line(message, LINE))
            }
        },
        JournalRecord::Approved { call, basis: why, .. } => match calls {
            CallDetail::Line => String::new(),
            CallDetail::Full => format!("   {call} allowed {}\n", one_line(&basis(why), LINE)),
        },
        JournalRecord::Expired { call } => format!("   {call} was not answered in time{waited}\n"),
        JournalRecord::Answered { call, action, by } => {
            format!("   {call} {}\n", server_question(action, by.as_deref()))
        }
        JournalRecord::Background { call, .. } => {
            format!("   {call} goes on in the background\n")
        }
        // The result names the session.
        JournalRecord::Spent { .. } => String::new(),
        JournalRecord::Result { call, summary, text, full, recalled, .. } => {
            let again = recalled.map_or(String::new(), |by| {
                format!(" (cached from call {by}; its files are unchanged)")
            });
            match calls {
                CallDetail::Line => format!("   {call} {}{again}\n", one_line(summary, LINE)),
                // The model got only a part of a long text.
                CallDetail::Full => {
                    let text = indented(full.as_ref().unwrap_or(text));
                    format!("   {call} {summary}{again}\n{text}")
                }
            }
        }
        JournalRecord::Interrupted { call, cause, progress, tampered, .. } => {
            let names: String = tampered.iter().map(|name| format!("   {name}\n")).collect();
            format!("   {call} cut short ({cause}); {}\n{names}", ran(*progress))
        }
        JournalRecord::TurnEnded { end } => format!("   {}\n", ending(end)),
        JournalRecord::Unknown { kind, fields: _ } => format!("   ({kind})\n"),
        JournalRecord::Changed {
            network,
            mode,
            added,
            model,
            pinned,
            unpinned,
            appended_system,
            cost_limit,
            flag,
            by,
        } => {
            let network = network.as_ref().map(|word| format!("network {word}"));
            let mode = mode.as_ref().map(|name| format!("mode {name}"));
            let added = added.as_ref().map(|path| format!("added {}", path.0.display()));
            let model = model.as_ref().map(|name| format!("model {name}"));
            let pinned = pinned.as_ref().map(|file| format!("pinned {file}"));
            let unpinned = unpinned.as_ref().map(|file| format!("{file} unpinned"));
            let appended = appended_system
                .as_ref()
                .map(|text| format!("system prompt ends with: {}", one_line(text, LINE)));
            let cost = cost_limit.map(|most| format!("cost limit {}", in_dollars(most)));
            let flag = flag.as_ref().map(|(key, value)| format!("{key} {}", one_line(value, LINE)));
            let all =
                [network, mode, added, model, pinned, unpinned, appended, cost, flag].into_iter();
            let what = all.flatten().next().unwrap_or_default();
            format!("   {what} (by {by})\n")
        }
        JournalRecord::Learned { rule, by, unwritten: _ } => match rule.line {
            0 => format!("   {} allowed in {} (by {by})\n", rule.text, rule.file),
            line => {
                format!("   {} allowed from now on (by {by}; {}:{line})\n", rule.text, rule.file)
            }
        },
        JournalRecord::Tampered { names } => tampered(names),
        JournalRecord::Summary(record) => format!("   {}\n", summary(record)),
        // A queued prompt is recorded again when its turn begins.
        JournalRecord::Queued { .. }
        | JournalRecord::TakenBack
        | JournalRecord::Closed
        | JournalRecord::Compacted { .. }
        | JournalRecord::Seen { .. }
        | JournalRecord::Asked { .. }
        | JournalRecord::Start { .. } => String::new(),
    }
}

/// A step of a summary that replaces messages.
pub(crate) fn summary(record: &SummaryStep) -> String {
    match record {
        SummaryStep::Asked { dropped, cause, .. } => {
            let why = match cause {
                CompactionCause::Person => "you asked for it",
                CompactionCause::Full => "the context is nearly full",
            };
            format!("the model is asked for a summary of the first {dropped} messages: {why}")
        }
        SummaryStep::Written { text, .. } => {
            format!("this summary by the model replaces the messages before it:\n{text}")
        }
        SummaryStep::Failed { reason, .. } => format!("the model wrote no summary: {reason}"),
        SummaryStep::Edited { text } => format!("you changed the summary:\n{text}"),
    }
}

/// The protected files that you are asked about before the next command.
fn tampered(names: &[String]) -> String {
    match names {
        [] => "\n   the changed protected files were accepted\n".to_owned(),
        names => format!("\n   changed protected files: {}\n", names.join("; ")),
    }
}

/// Control codes of a tool's output are removed, for files and screens.
fn markdown(entry: &JournalEntry, waited: String) -> String {
    sanitize(&as_markdown(entry, waited))
}

fn as_markdown(entry: &JournalEntry, waited: String) -> String {
    match &entry.record {
        JournalRecord::Session(header) => format!(
            "# Session {}\n\n- project: `{}`\n- model: {}\n- began: {}\n",
            header.id,
            header.project.0.display(),
            header.model,
            time(entry.time)
        ),
        JournalRecord::Prompt { text, .. } => {
            format!("\n## {}\n\n{}\n", time(entry.time), text.trim_end())
        }
        JournalRecord::Answer { blocks, .. } => match texts(blocks) {
            text if text.trim().is_empty() => String::new(),
            text => format!("\n### Answer\n\n{}\n", text.trim_end()),
        },
        JournalRecord::Proposed { call, tool, input, .. } => {
            format!("\n### Call {call}: {tool}\n\n{}", fenced("json", input))
        }
        JournalRecord::Denied { call, message, .. } => {
            format!("\nCall {call} was not allowed: {message}\n")
        }
        JournalRecord::Expired { call } => {
            format!("\nCall {call} was not answered in time{waited}.\n")
        }
        JournalRecord::Answered { call, action, by } => {
            format!("\nCall {call} {}.\n", server_question(action, by.as_deref()))
        }
        JournalRecord::Background { call, .. } => {
            format!("\nCall {call} goes on in the background.\n")
        }
        JournalRecord::Spent { .. } => String::new(),
        JournalRecord::Result { call, outcome: how, text, .. } => {
            format!("\nCall {call} ended ({}):\n\n{}", outcome(how), fenced("", text))
        }
        JournalRecord::Interrupted { call, cause, progress, tampered, .. } => {
            let names: String = tampered.iter().map(|name| format!("- {name}\n")).collect();
            format!("\nCall {call} was cut short: {cause}; {}.\n{names}", ran(*progress))
        }
        JournalRecord::Tampered { names } => tampered(names),
        JournalRecord::TurnEnded { end } => format!("\n*{}*\n", ending(end)),
        JournalRecord::Summary(record) => format!("\n*{}*\n", summary(record)),
        JournalRecord::Queued { .. }
        | JournalRecord::TakenBack
        | JournalRecord::Closed
        | JournalRecord::Compacted { .. }
        | JournalRecord::Changed { .. }
        | JournalRecord::Learned { .. }
        | JournalRecord::Seen { .. }
        | JournalRecord::Asked { .. }
        | JournalRecord::Approved { .. }
        | JournalRecord::Start { .. }
        | JournalRecord::Unknown { .. } => String::new(),
    }
}

fn texts(blocks: &[ContentBlock]) -> String {
    let mut texts = Vec::new();
    for block in blocks {
        if let ContentBlock::Text { text } = block {
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

/// How a turn ended, in words.
pub(crate) fn ending(end: &TurnEnd) -> String {
    match end {
        TurnEnd::Done => "the turn ended".to_owned(),
        TurnEnd::RoundsUsedUp { rounds } => format!("the turn used up its {rounds} rounds"),
        TurnEnd::CostReached { spent: Some(spent), most } => format!(
            "the session had cost {}, and its limit was {}",
            in_dollars(*spent),
            in_dollars(*most)
        ),
        TurnEnd::CostReached { spent: None, most } => {
            format!("an answer had no known cost, and the limit was {}", in_dollars(*most))
        }
        TurnEnd::CallsUsedUp { calls, of: CallSpan::Turn } => {
            format!("the turn used up its {calls} calls")
        }
        TurnEnd::CallsUsedUp { calls, of: CallSpan::Session } => {
            format!("the session used up its {calls} calls")
        }
        TurnEnd::Declined { explanation } => format!("the model declined: {explanation}"),
        TurnEnd::Truncated => "the answer was truncated at its token limit".to_owned(),
        TurnEnd::StoppedByHook { reason } => format!("a hook ended the turn: {reason}"),
        TurnEnd::Interrupted => "the turn was stopped".to_owned(),
        TurnEnd::ProviderFailed { kind: _, message } => message.clone(),
        TurnEnd::ProcessDied(died) => format!("the turn was cut short: {died}"),
    }
}
