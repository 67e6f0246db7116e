//! The whole screen: model and view state in, cells out. Pure.

use crate::conversation::Conversation;
use crate::markdown::Markdown;
use crate::pager::Pager;
use crate::panels::{self, PanelFacts, PanelView, Started};
use crate::picker::{Picker, PickerKind};
use crate::question::{QuestionScroll, list_rows};
use crate::row::{Links, Row};
use crate::selection::{PlacedRow, Selection};
use crate::theme::Theme;
use client::{ConnectionState, Screen, TurnClock, display_width, status_row, waiting_row};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use std::time::Instant;

/// From this width on the panels have room beside the conversation.
const WIDE: u16 = 100;
const PANELS: u16 = 36;
/// Rows that a list may take, also from a question below the conversation.
const LIST_ROWS: u16 = 8;
/// Columns before the conversation while a block of it is chosen.
const MARGIN: u16 = 2;
/// Rows of the input line.
const TYPED: usize = 10;
const QUEUED: usize = 3;

/// What the keys reach.
#[derive(Debug)]
pub(crate) enum Mode {
    /// The input line or the question.
    Input,
    /// The blocks of the conversation; a search is being typed, or not.
    Browse(Option<String>),
    Pager(Pager),
    Picker(Picker),
}

/// Everything that is shown and is no part of the screen model.
#[derive(Debug)]
pub(crate) struct ViewState {
    pub(crate) conversation: Conversation,
    pub(crate) mode: Mode,
    pub(crate) look: Theme,
    pub(crate) checklist: String,
    /// The project's directory.
    pub(crate) project: String,
    pub(crate) started: Started,
    /// The times of the turn.
    pub(crate) clock: TurnClock,
    /// The shown part of the question's subject.
    pub(crate) question: QuestionScroll,
    pub(crate) panels: PanelView,
    /// The words of the last search.
    pub(crate) search: String,
    pub(crate) hint: Option<String>,
    /// What the mouse selects.
    pub(crate) selection: Selection,
    /// Columns and rows of the conversation in the last frame.
    pub(crate) size: (usize, usize),
}

impl ViewState {
    /// Where the panels are in a terminal of so many columns.
    pub(crate) fn panel_place(&self, screen: &Screen, columns: u16) -> PanelPlace {
        match (self.panels, columns >= WIDE) {
            (PanelView::ByNews, true) if panels::have_news(screen, &self.checklist) => {
                PanelPlace::Beside
            }
            (PanelView::Hidden, true) if panels::have_trouble(screen) => PanelPlace::Beside,
            (PanelView::Shown, true) => PanelPlace::Beside,
            (PanelView::Shown, false) => PanelPlace::InFront,
            (PanelView::ByNews | PanelView::Hidden, _) => PanelPlace::Nowhere,
        }
    }

    fn panel_facts(&self) -> PanelFacts<'_> {
        let Self { checklist, project, started, .. } = self;
        PanelFacts { checklist, project, started }
    }
}

/// Where the panels are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PanelPlace {
    /// Beside the conversation.
    Beside,
    /// In the place of the conversation.
    InFront,
    Nowhere,
}

/// One frame.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) buffer: Buffer,
    pub(crate) cursor: Option<(u16, u16)>,
    pub(crate) links: Links,
}

impl Frame {
    fn new(area: Rect) -> Self {
        Self { buffer: Buffer::empty(area), cursor: None, links: Vec::new() }
    }

    fn rows(&mut self, rows: &[Row], at: (u16, u16), width: u16) {
        for (y, row) in (at.1..).zip(rows) {
            row.draw(&mut self.buffer, (at.0, y), width, &mut self.links);
        }
    }

    /// Empties so many rows from this one on, for others on top. Blanks would not do: a style leaves what it does not
    /// name as it was.
    fn clear(&mut self, top: u16, count: usize, width: u16) {
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        let covered = Rect::new(0, top, width, count).intersection(self.buffer.area);
        covered.positions().for_each(|cell| self.buffer[cell].reset());
        self.links.retain(|link| !(covered.top()..covered.bottom()).contains(&link.y));
    }
}

/// Paints the screen.
pub(crate) fn frame(state: &mut ViewState, screen: &Screen, area: Rect) -> Frame {
    let mut frame = Frame::new(area);
    if let Mode::Pager(pager) = &state.mode {
        let rows = paint_pager(&mut frame, pager, area, &state.look);
        state.selection.placed(rows);
        mark_selection(&mut frame, state);
        return frame;
    }
    let place = state.panel_place(screen, area.width);
    let beside = place == PanelPlace::Beside;
    let width = if beside { area.width - PANELS - 2 } else { area.width };
    let columns = usize::from(width);
    let look = state.look;
    let bottom = bottom_rows(state, screen, columns, usize::from(area.height));
    let height = area.height.saturating_sub(u16::try_from(bottom.rows.len()).unwrap_or(u16::MAX));
    paint_conversation(&mut frame, state, screen, (width, height));
    if place == PanelPlace::InFront {
        frame.clear(0, usize::from(height), width);
        let rows = panels::panels(screen, state.panel_facts(), columns, &look);
        frame.rows(&rows[..rows.len().min(usize::from(height))], (0, 0), width);
    }
    if screen.connection() == ConnectionState::Closed && height > 0 && screen.session().is_some() {
        let words = " connection lost; connecting again. The conversation stays readable.";
        let bar = Row::new(&format!("{words:columns$}"), look.alarm).cut(columns);
        frame.clear(0, 1, width);
        frame.rows(&[bar], (0, 0), width);
    }
    frame.rows(&bottom.rows, (0, height), width);
    let (x, y) = bottom.cursor;
    let inside = (x.min(width.saturating_sub(1)), (height + y).min(area.height.saturating_sub(1)));
    frame.cursor = matches!(state.mode, Mode::Input).then_some(inside);
    if beside {
        let line = Row::new("│", look.dim);
        frame.rows(&vec![line; usize::from(area.height)], (width, 0), 1);
        let inner = usize::from(PANELS);
        let rows = panels::panels(screen, state.panel_facts(), inner, &look);
        frame.rows(&rows[..rows.len().min(usize::from(area.height))], (width + 2, 0), PANELS);
    }
    if let Mode::Picker(picker) = &mut state.mode {
        // The table has what the panels have, and more of it.
        let width = if picker.kind == PickerKind::Running { area.width } else { width };
        // A question leaves no row in a low terminal, and a list that takes the keys is seen.
        let bottom = height.max(area.height.min(LIST_ROWS));
        let rows = picker.view((usize::from(width), usize::from(bottom)), &look);
        let rows = &rows[..rows.len().min(usize::from(bottom))];
        let top = bottom - u16::try_from(rows.len()).unwrap_or(0);
        frame.clear(top, rows.len(), width);
        frame.rows(rows, (0, top), width);
    }
    frame
}

fn paint_conversation(frame: &mut Frame, state: &mut ViewState, screen: &Screen, size: (u16, u16)) {
    let (mut width, height) = size;
    let look = state.look;
    let chosen = state.conversation.chosen();
    // The rows make room for the mark of what is chosen.
    let margin = if chosen.is_some() && width > 4 * MARGIN { MARGIN } else { 0 };
    width -= margin;
    state.size = (usize::from(width), usize::from(height));
    let streaming = protocol::hidden::on_screen(screen.items().streaming());
    let mut live = Vec::new();
    let mut behind = streaming.as_str();
    if !streaming.is_empty() && !state.conversation.ends_with_answer() {
        live = Markdown::new(String::new()).rows(usize::from(width), &streaming, &look);
        behind = "";
    }
    live.extend(panels::running(screen, &state.started, usize::from(width), &look));
    let shown = state.conversation.view(state.size, behind, &live, &look);
    let searched = if matches!(state.mode, Mode::Browse(_)) { &*state.search } else { "" };
    let (mut places, mut placed) = (Vec::new(), Vec::new());
    let top = height.saturating_sub(u16::try_from(shown.len()).unwrap_or(height));
    let found_row = state.conversation.found_in_view();
    for (at, (y, (block, row))) in (top..).zip(&shown).enumerate() {
        if let Some(block) = block {
            places.push((y, *block));
        }
        let is_chosen = chosen.is_some() && *block == chosen && !row.text().trim().is_empty();
        if is_chosen && margin > 0 {
            frame.rows(&[Row::new("▎", look.asks)], (0, y), margin);
        }
        let found = if found_row == Some(at) { look.found_here } else { look.found() };
        let row = row.clone().marked(searched, found);
        row.draw(&mut frame.buffer, (margin, y), width, &mut frame.links);
        placed.push(PlacedRow { at: (margin, y), width, row });
    }
    state.conversation.placed(places);
    state.selection.placed(placed);
    mark_selection(frame, state);
}

/// Lays the mark over what is selected.
fn mark_selection(frame: &mut Frame, state: &ViewState) {
    for (y, columns) in state.selection.marked() {
        let marked = Rect::new(columns.start, y, columns.end - columns.start, 1);
        frame.buffer.set_style(marked.intersection(frame.buffer.area), state.look.found_here);
    }
}

/// The rows below the conversation, and the place of the cursor in them.
struct BottomRows {
    rows: Vec<Row>,
    cursor: (u16, u16),
}

fn bottom_rows(
    state: &mut ViewState,
    screen: &Screen,
    columns: usize,
    height: usize,
) -> BottomRows {
    let look = state.look;
    let (editor, mark) = screen.input();
    let typed = editor.layout(display_width(mark), columns);
    let first = (typed.cursor.0 + 1).saturating_sub(TYPED);
    let mut input = Vec::new();
    for (at, text) in typed.rows.iter().enumerate().skip(first).take(TYPED) {
        let start = if at == 0 { mark.to_owned() } else { " ".repeat(display_width(mark)) };
        input.push(Row::new(&start, look.prompt).with(text, look.text));
    }
    let mut between = Vec::new();
    let queue = screen.queued();
    for prompt in queue.iter().take(QUEUED) {
        between.push(Row::new(&waiting_row(prompt, columns), look.dim).cut(columns));
    }
    if queue.len() > QUEUED {
        between.push(Row::new(&format!("{} more wait", queue.len() - QUEUED), look.dim));
    }
    if let Some(line) = state.clock.line(screen, columns, Instant::now()) {
        let style = if line.mark == "●" { look.text } else { look.asks };
        let row = Row::new(&format!("{} ", line.mark), look.asks);
        between.push(row.with(&line.phase, style).with(&line.rest, look.dim).cut(columns));
    }
    if let Some(words) = hint(state, screen) {
        between.push(Row::new(&words, look.dim).cut(columns));
    }
    let line = Row::new(&"─".repeat(columns), look.dim);
    let status = Row::new(&status_row(screen, columns), look.dim);
    let fixed = between.len() + input.len() + 3;
    let mut rows = Vec::new();
    if let Some(question) = screen.question() {
        // The answers are always in view; of the question, what fits.
        let list = list_rows(screen, (columns, height), &look);
        let room = height.saturating_sub(fixed + list.len() + 2).max(2);
        rows.push(line.clone());
        let of = (&*state.project, &look);
        rows.extend(state.question.shown(question, (columns, room), of));
        rows.extend(list);
    }
    rows.extend(between);
    rows.push(line);
    let above = rows.len();
    rows.extend(input);
    rows.push(status);
    // In a terminal of few rows the input stays in view.
    let cursor_row = above + typed.cursor.0 - first;
    let surplus = rows.len().saturating_sub(height).min(cursor_row);
    rows.drain(..surplus);
    if surplus > 0 {
        state.question.is_cut();
    }
    rows.truncate(height);
    let place = |value: usize| u16::try_from(value).unwrap_or(u16::MAX);
    BottomRows { rows, cursor: (place(typed.cursor.1), place(cursor_row - surplus)) }
}

fn hint(state: &ViewState, screen: &Screen) -> Option<String> {
    if let Mode::Browse(typed) = &state.mode {
        return Some(match (typed, &state.hint) {
            (Some(words), _) => format!("/{words}"),
            (None, Some(hint)) => hint.clone(),
            (None, None) if !screen.items().questions().is_empty() => {
                "a question waits: i goes to it".to_owned()
            }
            (None, None) => {
                "↑ ↓ choose, Enter unfold, o open, / n N search, y copy, Ctrl-G file, i back"
                    .to_owned()
            }
        });
    }
    if let Some(hint) = screen.hint() {
        return Some(hint.to_owned());
    }
    if let Some(hint) = &state.hint {
        return Some(hint.clone());
    }
    match state.conversation.below() {
        0 => None,
        count => Some(format!("↓ {count} new below; PgDn goes there")),
    }
}

/// Returns the rows of its text.
fn paint_pager(frame: &mut Frame, pager: &Pager, area: Rect, look: &Theme) -> Vec<PlacedRow> {
    let (columns, height) = (usize::from(area.width), usize::from(area.height));
    let title = Row::new(&pager.title, look.heading).cut(columns);
    frame.rows(&[title], (0, 0), area.width);
    let rows = pager.view(height.saturating_sub(2), look);
    frame.rows(&rows, (0, 1), area.width);
    if area.height > 1 {
        let status = Row::new(&pager.status(), look.dim).cut(columns);
        frame.rows(&[status], (0, area.height - 1), area.width);
    }
    (1..).zip(rows).map(|(y, row)| PlacedRow { at: (0, y), width: area.width, row }).collect()
}
