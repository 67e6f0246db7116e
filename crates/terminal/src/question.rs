//! The open question: what is asked, why, in which cage, and the list of answers. Pure.

use crate::diff;
use crate::markdown::Markdown;
use crate::row::{Piece, Row, wrap, wrap_text};
use crate::theme::Theme;
use client::{
    Direction, QuestionShown, Screen, argument_lines, asks, describe_widening, question_title,
};
use protocol::hidden::visible;
use protocol::judgement::Question;

/// Rows of the end of a subject that stay in view where it does not fit.
const TAIL: usize = 6;
/// Rows of a terminal that has all answers of a list in view.
const ALL_ANSWERS: usize = 18;

/// The rows of a question in so many columns. Colouring a long diff takes a while, so they are made once.
#[derive(Debug)]
struct MadeRows {
    question: Question,
    width: usize,
    rows: Vec<Row>,
    /// How many rows at the end are reason, cage and rights.
    facts: usize,
}

impl MadeRows {
    fn of(question: &Question, (width, project): (usize, &str), look: &Theme) -> Self {
        let mut rows = vec![Row::new(&title(question, project), look.asks).cut(width)];
        rows.extend(subject_rows(question, width, look));
        let facts = fact_rows(question, width, look);
        let count = facts.len();
        rows.extend(facts);
        Self { question: question.clone(), width, rows, facts: count }
    }
}

/// The shown part of a question. At first its head and its tail: what a command does last is often
/// what it does worst.
#[derive(Debug, Default)]
pub(crate) struct QuestionScroll {
    made: Option<MadeRows>,
    /// The first shown row, once the reader has scrolled.
    top: Option<usize>,
    room: usize,
    /// Rows at the end that the fold shows.
    tail: usize,
    /// How many rows were shown, from the first one on without a gap.
    reached: usize,
    all: usize,
}

impl QuestionScroll {
    pub(crate) fn scroll(&mut self, way: Direction) {
        let step = self.room.max(1);
        self.top = Some(match (self.top, way) {
            (Some(top), Direction::End) => top + step,
            (Some(top), Direction::Start) => top.saturating_sub(step),
            // Of the fold, the row behind the shown head.
            (None, Direction::End) => self.room - self.tail,
            (None, Direction::Start) => 0,
        });
    }

    /// The rows are made anew: their styles are others.
    pub(crate) fn forget_rows(&mut self) {
        self.made = None;
    }

    /// How much of the question the reader has seen.
    pub(crate) fn seen(&self, question: &Question) -> QuestionShown {
        let is_of = self.made.as_ref().is_some_and(|made| made.question == *question);
        match is_of && self.reached + self.tail >= self.all {
            true => QuestionShown::Whole,
            false => QuestionShown::InPart,
        }
    }

    /// True if not all rows have room at once.
    pub(crate) fn is_folded(&self) -> bool {
        self.all > self.room
    }

    /// The terminal is too small for the shown rows.
    pub(crate) fn is_cut(&mut self) {
        (self.reached, self.tail) = (0, 0);
    }

    /// The rows that are shown of a question in so many columns and rows; one more row names the hidden ones.
    pub(crate) fn shown(
        &mut self,
        question: &Question,
        (width, room): (usize, usize),
        (project, look): (&str, &Theme),
    ) -> Vec<Row> {
        if self.made.as_ref().is_some_and(|made| made.question.call != question.call) {
            *self = Self::default();
        }
        let is_of = |made: &MadeRows| made.width == width && made.question == *question;
        let made = self.made.take().filter(is_of);
        let made = self
            .made
            .insert(made.unwrap_or_else(|| MadeRows::of(question, (width, project), look)));
        let rows = &made.rows;
        let all = rows.len();
        (self.room, self.all) = (room, all);
        if all <= room {
            (self.reached, self.tail) = (all, 0);
            return rows.clone();
        }
        let note = |words: String| Row::new(&words, look.dim);
        let Some(top) = self.top else {
            let tail = (TAIL + made.facts).min(room / 2);
            let head = room - tail;
            (self.reached, self.tail) = (head, tail);
            let hidden = format!("  rows {} to {} of {all} are hidden", head + 1, all - tail);
            let mut shown = rows[..head].to_vec();
            shown.push(note(format!("{hidden}; PgDn shows them, then Enter allows it")));
            shown.extend_from_slice(&rows[all - tail..]);
            return shown;
        };
        let (top, end) = (top.min(all - room), top.min(all - room) + room);
        self.top = Some(top);
        if top <= self.reached {
            self.reached = self.reached.max(end);
        }
        let mut shown = rows[top..end].to_vec();
        shown.push(note(format!("  rows {} to {end} of {all}; PgUp, PgDn scroll", top + 1)));
        shown
    }
}

/// The list of answers below the question, and what Enter does. In a terminal of few rows only the row that Enter
/// answers with.
pub(crate) fn list_rows(
    screen: &Screen,
    (width, height): (usize, usize),
    look: &Theme,
) -> Vec<Row> {
    let Some(list) = screen.answer_rows() else {
        return wrap_text("another terminal has to answer", look.asks, width, "  ");
    };
    let mut rows = Vec::new();
    if let Some(head) = &list.head {
        rows.extend(wrap_text(head, look.text, width, "  "));
    }
    if let Some((at, count)) = screen.question_place().filter(|(_, count)| *count > 1) {
        let words = format!("question {at} of {count}; Tab goes to the next");
        rows.push(Row::new(&words, look.dim).cut(width));
    }
    for answer in list.rows.iter().filter(|answer| answer.is_marked || height >= ALL_ANSWERS) {
        let (mark, style) = if answer.is_marked { ("❯ ", look.asks) } else { ("  ", look.text) };
        rows.extend(wrap_text(&format!("{mark}{}", answer.text), style, width, "    "));
    }
    rows.extend(wrap_text(&list.enter, look.dim, width, "  "));
    rows
}

fn title(question: &Question, project: &str) -> String {
    if question.is_of_server() {
        return question.reason.clone();
    }
    if !question.of_model().is_empty() {
        return "The model asks you:".to_owned();
    }
    if question.is_plan() {
        return format!("{}: {}", question.tool, asks(question));
    }
    match diff::counts(&question.preview) {
        Some((added, removed)) => {
            format!("{}  +{added} -{removed}", question_title(question, project))
        }
        None if question.preview.trim().is_empty() => {
            format!("{}: {}", question_title(question, project), asks(question))
        }
        // The subject is the command.
        None => format!("{}: {}", question.tool, asks(question)),
    }
}

fn fact_rows(question: &Question, width: usize, look: &Theme) -> Vec<Row> {
    let mut facts = Vec::new();
    let mut fact = |label: &str, text: &str, style| {
        let pieces = [Piece::new(label, look.dim), Piece::new(text, style)];
        facts.extend(wrap(&pieces, width, &Piece::new("       ", look.text)));
    };
    if !question.of_model().is_empty() {
        fact("", &format!("({})", question.confinement), look.dim);
    } else if question.is_of_server() {
        let note = format!("({}; {})", question.confinement, asks(question));
        fact("", &note, look.dim);
    } else {
        if question.has_own_reason() {
            fact("why:   ", &question.reason, look.text);
        }
        fact("cage:  ", &question.confinement, look.text);
    }
    for widening in &question.widens {
        fact("wider: ", &describe_widening(widening), look.bad);
    }
    facts
}

fn subject_rows(question: &Question, width: usize, look: &Theme) -> Vec<Row> {
    if question.is_plan() {
        return Markdown::new(visible(&question.preview)).rows(width, "", look);
    }
    let preview = match question.preview.trim().is_empty() {
        true => argument_lines(&question.input),
        false => question.preview.clone(),
    };
    let preview = visible(&preview);
    let preview = preview.trim_end();
    if question.is_of_server() || !question.of_model().is_empty() {
        return preview.lines().flat_map(|line| wrap_text(line, look.text, width, "  ")).collect();
    }
    if diff::is_unified(preview) {
        return diff::of_call(preview, width, look);
    }
    let line = |line: &str| wrap_text(line, diff::by_sign(line, look), width, "");
    preview.lines().flat_map(line).collect()
}
