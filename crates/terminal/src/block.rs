//! The parts of a conversation: items of the screen model as blocks with rows. Pure.

use crate::diff;
use crate::markdown::Markdown;
use crate::row::{Row, wrap_text};
use crate::theme::Theme;
use client::{
    CallBlock, CallLine, CallState, ScreenItem, call_title, describe_change, display_width,
    failure_of, fault_of_turn, is_checklist, reason_of_person, shown_output, telling_argument,
    without_refusals,
};
use protocol::confinement::{Enforced, Tier};
use protocol::hidden::on_screen;
use protocol::judgement::SERVER_QUESTION;
use protocol::session::TurnEnd;

/// Last lines of a call's output in a folded block.
const FOLDED: usize = 6;
/// Rows of a folded prompt, and of one that is not folded.
const PROMPT: usize = 6;
const WHOLE_PROMPT: usize = 12;
/// Lines of a change in a folded block.
const FOLDED_DIFF: usize = 30;
/// Refusals in a folded block.
const REFUSALS: usize = 5;
/// Calls that only look. Their results are folded to one line where nothing went wrong.
const QUERIES: &[&str] = &[
    "read",
    "ls",
    "glob",
    "grep",
    "scan",
    "summary",
    "git_status",
    "git_log",
    "git_diff",
    "git_show",
    "history_search",
    "tool_search",
    "memory_search",
    "skill_list",
    "skill_activate",
    "web_fetch",
    "web_search",
    "undo_list",
];

/// What a block is.
#[derive(Debug)]
pub(crate) enum Entry {
    Prompt(String),
    /// The answer so far, in Markdown.
    Answer(Box<Markdown>),
    /// Reasoning of the model.
    Thinking(String),
    Call(Box<CallBlock>),
    /// Calls in a row that only looked.
    Queries(Vec<CallBlock>),
    /// agentd's own words.
    Note(String),
    /// Something is not as it should be.
    Error(String),
    /// A decision of a person: allowed or not.
    Decided(String, bool),
    /// What a turn took.
    Totals(String),
    /// The end of a turn without a fault.
    TurnEnd,
}

/// How much of a block is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fold {
    Folded,
    Open,
}

/// A part of the conversation.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) entry: Entry,
    pub(crate) fold: Fold,
    /// Its rows at the width they were made for.
    cache: Option<(usize, Vec<Row>)>,
}

impl Block {
    pub(crate) fn new(entry: Entry) -> Self {
        Self { entry, fold: Fold::Folded, cache: None }
    }

    /// The block of an item; none for an item that another part of the screen shows.
    pub(crate) fn of(item: ScreenItem) -> Option<Self> {
        let entry = match item {
            ScreenItem::Prompt(text) => Entry::Prompt(text),
            ScreenItem::Text(text) => Entry::Answer(Box::new(Markdown::new(text))),
            ScreenItem::Thinking(text) => Entry::Thinking(text),
            ScreenItem::Struck(reason) => {
                Entry::Note(format!("the shown part of this answer is void: {reason}"))
            }
            ScreenItem::Proposed(_) | ScreenItem::Asked(_) | ScreenItem::Retrying(_) => {
                return None;
            }
            // The line of the call says it.
            ScreenItem::Decided { tool, .. } if tool != SERVER_QUESTION => return None,
            ScreenItem::Decided { tool, allowed, basis } => {
                let word = if allowed { "answered" } else { "not answered" };
                Entry::Decided(format!("{tool} {word}: {basis}"), allowed)
            }
            ScreenItem::Ended(call) if is_quiet_query(&call) => Entry::Queries(vec![*call]),
            ScreenItem::Ended(call) => Entry::Call(call),
            ScreenItem::TurnTotals(totals) => match totals.in_words() {
                words if words.is_empty() => return None,
                words => Entry::Totals(words),
            },
            ScreenItem::TurnEnded(TurnEnd::Interrupted) => {
                Entry::Note("the turn was stopped".to_owned())
            }
            ScreenItem::TurnEnded(end) => match fault_of_turn(&end) {
                Some(fault) => Entry::Error(fault),
                None => Entry::TurnEnd,
            },
            ScreenItem::Changed(change, by) => {
                Entry::Note(format!("{} (by {by})", describe_change(&change)))
            }
            ScreenItem::Note(text) => Entry::Note(text),
            ScreenItem::Error(text) => Entry::Error(text),
        };
        Some(Self::new(entry))
    }

    /// Takes a newer block into this one where both are parts of one whole.
    pub(crate) fn absorb(&mut self, newer: Self) -> Option<Self> {
        match (&mut self.entry, newer.entry) {
            (Entry::Answer(text), Entry::Answer(more)) => text.push(more.text()),
            (Entry::Queries(calls), Entry::Queries(more)) => calls.extend(more),
            (_, entry) => return Some(Self { entry, ..newer }),
        }
        self.cache = None;
        None
    }

    pub(crate) fn toggle(&mut self) {
        self.fold = match self.fold {
            Fold::Folded => Fold::Open,
            Fold::Open => Fold::Folded,
        };
        self.cache = None;
    }

    /// The rows are made anew: their styles are others.
    pub(crate) fn forget_rows(&mut self) {
        self.cache = None;
        if let Entry::Answer(markdown) = &mut self.entry {
            markdown.forget_rows();
        }
    }

    /// How many rows with these words it has where it is unfolded for them.
    pub(crate) fn count_of(&mut self, words: &str, width: usize, look: &Theme) -> usize {
        let fold = self.fold;
        let count = self.rows_with(words, width, look).len();
        if self.fold != fold {
            self.toggle();
        }
        count
    }

    /// The places of its rows with these words. Unfolds it where some of them are not in view. Of words on two rows the
    /// first one counts.
    pub(crate) fn rows_with(&mut self, words: &str, width: usize, look: &Theme) -> Vec<usize> {
        let words = words.to_lowercase();
        let text = self.text().to_lowercase();
        let lines = text.lines().filter(|line| line.contains(&words)).count();
        if lines == 0 {
            return Vec::new();
        }
        let mut found = find_rows(self.rows(width, look), &words);
        if found.len() < lines && matches!(self.fold, Fold::Folded) {
            self.toggle();
            found = find_rows(self.rows(width, look), &words);
        }
        // Some of its text is on no row.
        if found.is_empty() { vec![0] } else { found }
    }

    /// Its rows, with an empty one behind them where it is a part of its own.
    pub(crate) fn rows(&mut self, width: usize, look: &Theme) -> &[Row] {
        if self.cache.as_ref().is_none_or(|(made_for, _)| *made_for != width) {
            let rows = self.render(width, look);
            self.cache = Some((width, rows));
        }
        self.cache.as_ref().map(|(_, rows)| rows.as_slice()).unwrap_or_default()
    }

    /// Its last rows, with a line that is still streamed; as many as asked for, or some more.
    pub(crate) fn last_rows(
        &mut self,
        width: usize,
        streaming: &str,
        look: &Theme,
        most: usize,
    ) -> Vec<Row> {
        if let Entry::Answer(markdown) = &mut self.entry {
            let mut rows = markdown.last_rows(width, streaming, look, most);
            rows.push(Row::default());
            return rows;
        }
        let rows = self.rows(width, look);
        rows[rows.len().saturating_sub(most)..].to_vec()
    }

    fn render(&mut self, width: usize, look: &Theme) -> Vec<Row> {
        let mut rows = match &mut self.entry {
            Entry::Prompt(text) => prompt_rows(text, self.fold, width, look),
            Entry::Answer(markdown) => markdown.rows(width, "", look),
            Entry::Thinking(text) => thinking_rows(text, self.fold, width, look),
            Entry::Call(call) => call_rows(call, self.fold, width, look),
            Entry::Queries(calls) => query_rows(calls, self.fold, width, look),
            Entry::Note(text) | Entry::Totals(text) => wrap_text(text, look.dim, width, ""),
            Entry::Error(text) => wrap_text(&format!("✗ agentd: {text}"), look.bad, width, "  "),
            Entry::Decided(text, allowed) => {
                let (mark, style) = if *allowed { ("✓", look.good) } else { ("✗", look.bad) };
                wrap_text(&format!("{mark} {text}"), style, width, "  ")
            }
            Entry::TurnEnd => return Vec::new(),
        };
        rows.push(Row::default());
        rows
    }

    /// All of its text, for copies, searches and the pager.
    pub(crate) fn text(&self) -> String {
        match &self.entry {
            Entry::Prompt(text)
            | Entry::Thinking(text)
            | Entry::Note(text)
            | Entry::Totals(text)
            | Entry::Error(text) => text.clone(),
            Entry::Decided(text, _) => text.clone(),
            Entry::Answer(markdown) => markdown.text().to_owned(),
            Entry::Call(call) => call_text(call),
            Entry::Queries(calls) => calls.iter().map(call_text).collect::<Vec<_>>().join("\n\n"),
            Entry::TurnEnd => String::new(),
        }
    }

    /// Rows of the whole, for the pager.
    pub(crate) fn whole(&mut self, width: usize, look: &Theme) -> Vec<Row> {
        let before = std::mem::replace(&mut self.fold, Fold::Open);
        let rows = self.render(width, look);
        self.fold = before;
        rows
    }
}

fn find_rows(rows: &[Row], words: &str) -> Vec<usize> {
    let texts: Vec<String> = rows.iter().map(|row| row.text().to_lowercase()).collect();
    let of_one = texts.iter().enumerate().filter(|(_, text)| text.contains(words));
    let found: Vec<usize> = of_one.map(|(row, _)| row).collect();
    let words = without_blanks(words);
    if !found.is_empty() || words.is_empty() {
        return found;
    }
    let (mut ink, mut starts) = (String::new(), Vec::new());
    for text in &texts {
        starts.push(ink.len());
        ink.push_str(&without_blanks(text));
    }
    let row_at = |(at, _)| starts.partition_point(|start| *start <= at).saturating_sub(1);
    ink.match_indices(&words).map(row_at).collect()
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn is_quiet_query(call: &CallBlock) -> bool {
    QUERIES.contains(&call.call.tool.as_str())
        && call.refused.is_empty()
        && call.result.as_ref().is_some_and(|result| !result.is_error)
}

fn call_text(call: &CallBlock) -> String {
    let mut text = call_title(&call.call);
    let subject = telling_argument(&call.call.input);
    if !text.contains(&subject) {
        text.push_str(&format!("\n{subject}"));
    }
    if let Some(result) = &call.result {
        text.push_str(&format!("\n{}", result.text.trim_end()));
    }
    for refusal in &call.refused {
        text.push_str(&format!("\nrefused: {refusal}"));
    }
    text
}

fn heading(call: &CallBlock, width: usize, look: &Theme) -> Row {
    let line = CallLine::of(call);
    let style = match line.state {
        CallState::Done => look.good,
        CallState::Failed => look.bad,
        CallState::NotRun => look.refused,
        CallState::Unknown | CallState::Runs => look.asks,
    };
    let is_uncaged = call.cage.as_ref().and_then(Enforced::of_command) == Some(Tier::C);
    let danger = if is_uncaged { " · NO SANDBOX" } else { "" };
    let quiet = if line.state == CallState::Done { look.dim } else { style };
    let end = line.end();
    let start = Row::new(&format!("{} ", line.state.mark()), style).with(&line.title, look.text);
    let room = width.saturating_sub(display_width(&end) + display_width(danger)).max(12);
    start.cut(room).with(&end, quiet).with(danger, look.bad).cut(width)
}

/// What an unfolded call says beyond its line: the approval, the cage, the record.
fn about(call: &CallBlock) -> String {
    let is_allowed = CallLine::of(call).state != CallState::NotRun;
    let verdict = if is_allowed { "allowed" } else { "not allowed" };
    let basis = call.basis.as_ref().map(|basis| format!("{verdict}: {basis}"));
    let cage = call.cage.as_ref().and_then(Enforced::of_command).map(|tier| match tier {
        Tier::A => "full sandbox".to_owned(),
        Tier::B => "partial sandbox".to_owned(),
        Tier::C => "NO SANDBOX".to_owned(),
    });
    let record = format!("record: agentd audit show {}", call.call.id);
    basis.into_iter().chain(cage).chain([record]).collect::<Vec<_>>().join(" · ")
}

fn prompt_rows(text: &str, fold: Fold, width: usize, look: &Theme) -> Vec<Row> {
    let mut rows = wrap_text(text, look.prompt, width.saturating_sub(2), "");
    if fold == Fold::Folded && rows.len() > WHOLE_PROMPT {
        let more = format!("… {} more lines", rows.len() - PROMPT);
        rows.truncate(PROMPT);
        rows.push(Row::new(&more, look.dim));
    }
    rows.into_iter().map(|row| row.behind("▌ ", look.prompt)).collect()
}

fn thinking_rows(text: &str, fold: Fold, width: usize, look: &Theme) -> Vec<Row> {
    let text = on_screen(text);
    if fold == Fold::Open {
        return wrap_text(&format!("thinking: {text}"), look.dim, width, "  ");
    }
    let more = match text.lines().count() {
        0 | 1 => String::new(),
        count => format!(" … {} more lines", count - 1),
    };
    let first = format!("thinking: {}", text.lines().next().unwrap_or_default());
    let room = width.saturating_sub(Row::new(&more, look.dim).width()).max(12);
    vec![Row::new(&first, look.dim).cut(room).with(&more, look.dim).cut(width)]
}

fn call_rows(call: &CallBlock, fold: Fold, width: usize, look: &Theme) -> Vec<Row> {
    let mut rows = vec![heading(call, width, look)];
    let inner = width.saturating_sub(2);
    let indent = |row: Row| row.behind("  ", look.text);
    let Some(result) = &call.result else { return rows };
    let is_open = fold == Fold::Open;
    if is_open {
        rows.extend(wrap_text(&about(call), look.dim, inner, "").into_iter().map(indent));
        let subject = telling_argument(&call.call.input);
        if subject.contains('\n') || subject.len() > inner {
            rows.extend(wrap_text(&subject, look.code, inner, "").into_iter().map(indent));
        }
    }
    // The model's text is in view once it is asked for.
    let output = match is_open {
        true => without_refusals(&result.text, &call.refused),
        false => shown_output(call),
    };
    let output = output.trim_end();
    let summary = result.summary.trim();
    // The heading says it.
    let output =
        output.strip_prefix(summary).filter(|_| diff::is_unified(output)).unwrap_or(output);
    let output = output.trim_start_matches('\n');
    if diff::is_unified(output) {
        let wrapped = diff::wrapped(output, inner, look);
        let most = if is_open { usize::MAX } else { FOLDED_DIFF };
        let left_out = wrapped.len().saturating_sub(most);
        rows.extend(wrapped.into_iter().take(most).map(indent));
        if left_out > 0 {
            rows.push(Row::new(&format!("  … {left_out} more lines"), look.dim));
        }
    } else {
        let lines: Vec<&str> = output.lines().collect();
        let all = is_open || is_checklist(&call.call);
        let first = if all { 0 } else { lines.len().saturating_sub(FOLDED) };
        if first > 0 {
            rows.push(Row::new(&format!("  … {first} more lines"), look.dim));
        }
        for line in &lines[first..] {
            match all {
                true => rows.extend(wrap_text(line, look.dim, inner, "").into_iter().map(indent)),
                false => rows.push(indent(Row::new(line, look.dim).cut(inner))),
            }
        }
    }
    if let Some(why) = failure_of(call).filter(|_| !is_open) {
        rows.extend(wrap_text(why, look.bad, inner, "").into_iter().map(indent));
    }
    if let Some(reason) = reason_of_person(call).filter(|_| !is_open) {
        let reason = format!("“{reason}”");
        rows.extend(wrap_text(&reason, look.text, inner, "").into_iter().map(indent));
    }
    let most = if is_open { usize::MAX } else { REFUSALS };
    for refusal in call.refused.iter().take(most) {
        let line = format!("⊘ refused: {refusal}");
        rows.extend(wrap_text(&line, look.refused, inner, "  ").into_iter().map(indent));
    }
    if call.refused.len() > most {
        let more = call.refused.len() - most;
        rows.push(Row::new(&format!("  ⊘ and {more} more refusals"), look.refused));
    }
    rows
}

fn query_rows(calls: &[CallBlock], fold: Fold, width: usize, look: &Theme) -> Vec<Row> {
    if let (Fold::Folded, [_, _, ..]) = (fold, calls) {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for call in calls {
            match counts.iter_mut().find(|(tool, _)| *tool == call.call.tool) {
                Some((_, count)) => *count += 1,
                None => counts.push((&call.call.tool, 1)),
            }
        }
        let words: Vec<String> = counts
            .iter()
            .map(
                |(tool, count)| {
                    if *count > 1 { format!("{tool} ×{count}") } else { (*tool).to_owned() }
                },
            )
            .collect();
        let line = Row::new("✓ ", look.good).with(&words.join(", "), look.dim);
        return vec![line.cut(width)];
    }
    match fold {
        Fold::Open => calls.iter().flat_map(|call| call_rows(call, fold, width, look)).collect(),
        Fold::Folded => calls.iter().map(|call| heading(call, width, look)).collect(),
    }
}
