//! The rows at the bottom of an attached terminal that are repainted: streamed line, running calls,
//! queued prompts, key hint, settings, input line. Pure.

use crate::call_gist::call_title;
use crate::colour::Colour;
use crate::cost::{context_left, count};
use crate::lines::{fitting, last_lines, one_line, truncate};
use crate::living_line::LivingLine;
use crate::screen::{ConnectionState, Focus, Screen, TurnState};
use crate::screen_items::{CallBlock, CallPlace};
use protocol::client::{ClientRights, WaitingText, WhileBusy};
use protocol::confinement::Network;
use protocol::hidden::on_screen;
use unicode_width::UnicodeWidthStr;

/// Most rows of streamed text, running calls, a call's output, and queued prompts.
const STREAMED: usize = 6;
const RUNNING: usize = 8;
const OUTPUT: usize = 3;
const QUEUED: usize = 3;
/// Characters of a session's name.
const NAME: usize = 24;
/// Rows of the input line.
const TYPED: usize = 10;

/// How a row is painted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Plain,
    Dim,
    Bold,
}

/// One row, not wider than the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LiveRow {
    pub(crate) text: String,
    pub(crate) paint: Paint,
}

impl LiveRow {
    pub(crate) fn painted(&self, colour: Colour) -> String {
        match self.paint {
            Paint::Plain => self.text.clone(),
            Paint::Dim => colour.dim(&self.text),
            Paint::Bold => colour.bold(&self.text),
        }
    }

    pub(crate) fn columns(&self) -> usize {
        self.text.width()
    }
}

/// All rows, and the position of the cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LiveRows {
    pub(crate) rows: Vec<LiveRow>,
    pub(crate) cursor: (usize, usize),
}

/// The rows of a screen in a terminal of so many columns and rows.
pub(crate) fn live_rows(
    screen: &Screen,
    living: Option<&LivingLine>,
    (columns, height): (usize, usize),
) -> LiveRows {
    let row = |text: &str, paint| LiveRow { text: truncate(text, columns), paint };
    let mut rows = Vec::new();
    rows.extend(streamed(screen, columns));
    let only = living.and(screen.items.only_call());
    for block in screen.items.open().iter().take(RUNNING) {
        let is_living = only.is_some_and(|only| only.call.id == block.call.id);
        let shown = if is_living { living_output(block) } else { running(block) };
        rows.extend(shown.into_iter().map(|(text, paint)| row(&text, paint)));
    }
    let queue = screen.queued();
    for prompt in queue.iter().take(QUEUED) {
        rows.push(row(&waiting_row(prompt, columns), Paint::Dim));
    }
    if queue.len() > QUEUED {
        rows.push(row(&format!("{} more wait", queue.len() - QUEUED), Paint::Dim));
    }
    if let Some(line) = living {
        rows.push(row(&line.text(), Paint::Dim));
    }
    rows.extend(answer_rows(screen, columns));
    if let Some(hint) = &screen.hint {
        rows.push(row(&on_screen(hint), Paint::Dim));
    }
    rows.push(row(&status_row(screen, columns), Paint::Dim));
    let (editor, mark) = screen.input();
    let typed = editor.layout(mark.width(), columns);
    // Of a long text the rows around the cursor are shown.
    let first = (typed.cursor.0 + 1).saturating_sub(TYPED);
    let above = rows.len();
    for (at, text) in typed.rows.iter().enumerate().skip(first).take(TYPED) {
        let indent = if at == 0 { mark.to_owned() } else { " ".repeat(mark.width()) };
        rows.push(LiveRow { text: format!("{indent}{text}"), paint: Paint::Plain });
    }
    let cursor = (above + typed.cursor.0 - first, typed.cursor.1);
    // All rows must fit the terminal: rows that scrolled away cannot be repainted.
    let surplus = rows.len().saturating_sub(height.saturating_sub(1).max(1)).min(cursor.0);
    rows.drain(..surplus);
    LiveRows { rows, cursor: (cursor.0 - surplus, cursor.1) }
}

/// A prompt that waits, and for what.
#[must_use]
pub fn waiting_row(prompt: &WaitingText, columns: usize) -> String {
    let what = match prompt.busy {
        WhileBusy::Steer => "joins the turn",
        WhileBusy::Queue => "queued",
    };
    format!("{what}: {}", one_line(&prompt.text, columns))
}

/// The answers to the open question, for a terminal of lines.
pub(crate) fn answers_in_line(screen: &Screen) -> Option<String> {
    let question = screen.items.questions().first()?;
    let more = match screen.items.questions().len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let name = format!("{} {}{more}", one_line(&question.tool, 200), question.call.number);
    if screen.options.rights == ClientRights::ReadOnly {
        return Some(format!("{name}: another terminal has to answer"));
    }
    let words = screen.answers()?.in_words(screen.focus);
    Some(match screen.focus {
        Focus::Line => format!("{name}: {words}"),
        Focus::Rule(_) | Focus::Form => words,
    })
}

/// The list of answers below the open question, and what Enter does.
fn answer_rows(screen: &Screen, columns: usize) -> Vec<LiveRow> {
    let row = |text: &str, paint| LiveRow { text: truncate(text, columns), paint };
    let Some(list) = screen.answer_rows() else {
        // Another terminal has to answer.
        return answers_in_line(screen).map(|text| row(&text, Paint::Bold)).into_iter().collect();
    };
    let mut rows: Vec<LiveRow> =
        list.head.iter().map(|head| row(&on_screen(head), Paint::Dim)).collect();
    if let Some((at, count)) = screen.question_place().filter(|(_, count)| *count > 1) {
        rows.push(row(&format!("question {at} of {count}; Tab goes to the next"), Paint::Dim));
    }
    rows.extend(list.rows.iter().map(|answer| match answer.is_marked {
        true => row(&format!("❯ {}", answer.text), Paint::Bold),
        false => row(&format!("  {}", answer.text), Paint::Plain),
    }));
    rows.push(row(&list.enter, Paint::Dim));
    rows
}

/// The unfinished line of the answer, its last rows.
fn streamed(screen: &Screen, columns: usize) -> Vec<LiveRow> {
    let text = on_screen(screen.items.streaming());
    let mut rows = Vec::new();
    for line in text.lines() {
        let mut rest = line;
        loop {
            let fits = fitting(rest, columns);
            rows.push(LiveRow { text: rest[..fits].replace('\t', " "), paint: Paint::Plain });
            rest = &rest[fits..];
            if rest.is_empty() {
                break;
            }
        }
    }
    let surplus = rows.len().saturating_sub(STREAMED);
    rows.drain(..surplus);
    rows
}

fn running(block: &CallBlock) -> Vec<(String, Paint)> {
    let state = match (block.place, block.runs()) {
        (CallPlace::Background, _) => "runs in the background",
        (CallPlace::Foreground, true) => "runs",
        (CallPlace::Foreground, false) => "waits",
    };
    let title = one_line(&call_title(&block.call), 200);
    let mut rows = vec![(format!("● {title} ({state})"), Paint::Bold)];
    if block.is_in_background() {
        return rows;
    }
    rows.extend(last_lines(&block.tail, OUTPUT).into_iter().map(output_row));
    rows
}

/// The output of the call that the living line is about, without the last line, which is there.
fn living_output(block: &CallBlock) -> Vec<(String, Paint)> {
    let mut lines = last_lines(&block.tail, OUTPUT);
    lines.pop();
    lines.into_iter().map(output_row).collect()
}

fn output_row(line: String) -> (String, Paint) {
    (format!("  {line}"), Paint::Dim)
}

/// One fact of the status row.
struct StatusWord {
    /// Of a row that is too narrow, the highest goes first.
    rank: StatusRank,
    text: String,
}

/// What a narrow terminal leaves out, the last first. What protects the person is the last to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StatusRank {
    Protection,
    Rights,
    State,
    Model,
    Context,
    Cost,
    Session,
    Tokens,
}

/// State, settings, model, context, cost, tokens and session, as many of them as fit.
#[must_use]
pub fn status_row(screen: &Screen, columns: usize) -> String {
    let mut words = status_words(screen);
    let leave_out = |words: &mut Vec<StatusWord>, kept: StatusRank| {
        while joined(words).width() > columns
            && let Some(least) = words.iter().map(|word| word.rank).max().filter(|it| *it > kept)
            && let Some(at) = words.iter().rposition(|word| word.rank == least)
        {
            words.remove(at);
        }
    };
    leave_out(&mut words, StatusRank::Cost);
    if joined(&words).width() > columns {
        // A mode is known by its name.
        for word in &mut words {
            word.text = word.text.trim_start_matches("mode ").to_owned();
        }
    }
    leave_out(&mut words, StatusRank::Protection);
    joined(&words)
}

fn joined(words: &[StatusWord]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" · ")
}

fn status_words(screen: &Screen) -> Vec<StatusWord> {
    let facts = screen.facts.as_ref();
    let mut words = Vec::new();
    let mut word = |rank, text: String| words.push(StatusWord { rank, text });
    let state = match (screen.connection, screen.turn) {
        (ConnectionState::Closed, _) => "connecting",
        (ConnectionState::Replaying, _) => "reading",
        (ConnectionState::Live, _) if !screen.items.questions().is_empty() => "asking",
        (ConnectionState::Live, TurnState::Working) => "working",
        (ConnectionState::Live, TurnState::Idle) => "ready",
    };
    word(StatusRank::State, state.to_owned());
    if screen.options.rights == ClientRights::ReadOnly {
        word(StatusRank::Rights, "WATCHING".to_owned());
    }
    if let Some(facts) = facts {
        word(StatusRank::Protection, format!("mode {}", facts.mode.name()));
        let network = match (facts.network, facts.hosts.as_slice()) {
            (Network::Off, _) => "net off".to_owned(),
            (Network::On, _) => "net ON".to_owned(),
            (Network::Listed, []) => "net: no host".to_owned(),
            (Network::Listed, [only]) => format!("net {only}"),
            (Network::Listed, several) => format!("net {} hosts", several.len()),
        };
        word(StatusRank::Protection, network);
        // The first words name the tier. Every question shows the rest.
        let sandbox = facts.sandbox.split(['(', ';']).next().unwrap_or_default().trim();
        if !sandbox.is_empty() {
            word(StatusRank::Protection, on_screen(sandbox));
        }
        if !facts.model.is_empty() {
            word(StatusRank::Model, on_screen(&facts.model));
        }
    }
    let of_model = facts.map(|facts| facts.of_model).unwrap_or_default();
    let left = context_left(screen.tokens.newest, of_model);
    if let (Some(window), Some(left)) = (of_model.context, left) {
        let used = window.saturating_sub(left);
        word(StatusRank::Context, format!("{}/{}", count(used), count(window)));
    }
    if let Some(cost) = screen.tokens.spent.in_words() {
        word(StatusRank::Cost, cost);
    }
    if let (Some(input), Some(output)) = (screen.tokens.all.input, screen.tokens.all.output) {
        word(StatusRank::Tokens, format!("{} in {} out", count(input), count(output)));
    }
    if let Some(facts) = facts {
        let name = match facts.name.as_str() {
            "" => facts.session.0.clone(),
            name => one_line(name, NAME),
        };
        word(StatusRank::Session, format!("session {name}"));
    }
    words
}
