//! The open question: what is asked, why, in which cage, and the keys that answer. Pure.

use crate::diff;
use crate::markdown::Markdown;
use crate::row::{Piece, Row, wrap, wrap_text};
use crate::theme::Theme;
use client::{Screen, argument_lines, asks, describe_widening, key_hint, mark_hidden};
use protocol::judgement::Question;

/// The rows of a question: its subject, which may be scrolled, and what must be in view.
pub(crate) struct QuestionRows {
    pub(crate) subject: Vec<Row>,
    pub(crate) facts: Vec<Row>,
}

/// The oldest question of a screen.
pub(crate) fn question(screen: &Screen, width: usize, look: &Theme) -> Option<QuestionRows> {
    let question = screen.items().questions().first()?;
    let Question { call, tool, confinement, reason, widens, offers, .. } = question;
    let title = match question.is_of_server() {
        true => reason.clone(),
        false => format!("{tool} {}: {}", call.number, asks(question)),
    };
    let mut subject = vec![Row::new(&title, look.asks).cut(width)];
    subject.extend(subject_rows(question, width, look));
    let mut facts = Vec::new();
    let mut fact = |label: &str, text: &str, style| {
        let pieces = [Piece::new(label, look.dim), Piece::new(text, style)];
        facts.extend(wrap(&pieces, width, &Piece::new("       ", look.text)));
    };
    if question.is_of_server() {
        let note = format!("({confinement}; {})", asks(question));
        fact("", &note, look.dim);
    } else {
        fact("why:   ", reason, look.text);
        fact("cage:  ", confinement, look.text);
    }
    for widening in widens {
        fact("wider: ", &describe_widening(widening), look.bad);
    }
    for offer in offers.iter().filter(|_| !question.is_plan() && !question.is_of_server()) {
        fact("rule:  ", offer, look.dim);
    }
    if let Some(keys) = key_hint(screen) {
        facts.extend(wrap_text(&keys, look.asks, width, "  "));
    }
    Some(QuestionRows { subject, facts })
}

fn subject_rows(question: &Question, width: usize, look: &Theme) -> Vec<Row> {
    if question.is_plan() {
        return Markdown::new(mark_hidden(&question.preview)).rows(width, "", look);
    }
    let preview = match question.preview.trim().is_empty() {
        true => argument_lines(&question.input),
        false => question.preview.clone(),
    };
    let preview = mark_hidden(&preview);
    let preview = preview.trim_end();
    if question.is_of_server() {
        return preview.lines().flat_map(|line| wrap_text(line, look.text, width, "  ")).collect();
    }
    if diff::is_unified(preview) {
        let under = Piece::new("            ", look.text);
        let rows = diff::unified(preview, look);
        return rows.iter().flat_map(|row| wrap(&row.pieces, width, &under)).collect();
    }
    let line = |line: &str| wrap_text(line, diff::by_sign(line, look), width, "");
    preview.lines().flat_map(line).collect()
}
