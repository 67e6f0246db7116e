//! The two views that print lines: above rows that are repainted, or, for a terminal that cannot
//! repaint, one below the other.

use super::edit::lend_as_is;
use super::paint::Painter;
use super::terminal::{self, RawMode};
use crate::colour::Colour;
use crate::line_view::{Labels, LineView, LiveArea};
use crate::lines::wrap;
use crate::live_rows::{LiveRows, answers_in_line, live_rows};
use crate::living_line::TurnClock;
use crate::screen::{LongText, Screen, ScreenInput};
use crate::screen_items::ScreenItem;
use crate::screen_view::ScreenView;
use crate::terminal_use::TerminalUse;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Finished lines scroll away above the live rows.
#[derive(Debug)]
pub struct InlineView {
    lines: PrintedLines,
    painter: Painter,
    /// The painted rows, and the terminal width at that time.
    painted: Option<(LiveRows, u16)>,
    clock: TurnClock,
    /// Absent once the terminal was given back.
    raw: Option<RawMode>,
}

/// Lines one below the other.
#[derive(Debug)]
pub struct LinesView {
    lines: PrintedLines,
    /// The last key hint that was printed.
    shown_hint: Option<String>,
    labels: Labels,
    /// Is the last printed item a part of an answer?
    in_answer: bool,
    /// The times of turns. No line of this view changes by itself.
    clock: TurnClock,
}

/// Lines for good that are not written yet.
#[derive(Debug)]
struct PrintedLines {
    view: LineView,
    unwritten: String,
}

impl PrintedLines {
    fn new(view: LineView) -> Self {
        Self { view, unwritten: String::new() }
    }

    fn show(&mut self, item: &ScreenItem) {
        let columns = usize::from(terminal::size().0);
        self.unwritten.push_str(&self.view.in_columns(columns).lines(item));
    }

    fn show_earlier(&mut self, items: &[ScreenItem]) {
        self.show(&ScreenItem::Note("earlier:".to_owned()));
        items.iter().for_each(|item| self.show(item));
        self.show(&ScreenItem::Note("up to here".to_owned()));
    }

    fn take(&mut self) -> String {
        std::mem::take(&mut self.unwritten)
    }
}

impl InlineView {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// If its mode cannot be set.
    pub fn enter(colour: Colour) -> io::Result<Self> {
        Ok(Self {
            lines: PrintedLines::new(LineView::new(colour, LiveArea::Shown)),
            painter: Painter::default(),
            painted: None,
            clock: TurnClock::default(),
            raw: Some(RawMode::enter()?),
        })
    }
}

impl ScreenView for InlineView {
    fn take(&mut self, input: ScreenInput, screen: &Screen) -> Vec<ScreenInput> {
        self.clock.note(&input, screen, Instant::now());
        vec![input]
    }

    fn show(&mut self, item: ScreenItem) {
        self.lines.show(&self.clock.timed(item, Instant::now()));
    }

    fn show_earlier(&mut self, items: Vec<ScreenItem>) {
        self.lines.show_earlier(&items);
    }

    fn open(&mut self, text: LongText) {
        self.lines.show(&ScreenItem::Note(format!("{}\n{}", text.title, text.text())));
    }

    fn start_over(&mut self) {
        self.clock = TurnClock::default();
    }

    fn bell(&mut self) {
        self.lines.unwritten.push('\u{7}');
    }

    fn repaint(&mut self) {
        self.painted = None;
        self.lines.unwritten.push_str("\u{1b}[2J\u{1b}[H");
    }

    fn lend_terminal(&mut self, run: TerminalUse<'_>) -> io::Result<Result<String, String>> {
        let erased = self.painter.erase(usize::from(terminal::size().0));
        write_out(&(self.lines.take().replace('\n', "\r\n") + &erased))?;
        self.raw = None;
        let result = run();
        self.raw = Some(RawMode::enter()?);
        self.painted = None;
        Ok(result)
    }

    fn paint(&mut self, screen: &Screen) -> io::Result<()> {
        let (columns, rows) = terminal::size();
        let size = (usize::from(columns), usize::from(rows));
        let living = self.clock.line(screen, size.0, Instant::now());
        let live = live_rows(screen, living.as_ref(), size);
        let same = self.painted.as_ref() == Some(&(live.clone(), columns));
        if same && self.lines.unwritten.is_empty() {
            return Ok(());
        }
        let (finished, colour) = (self.lines.take(), self.lines.view.colour());
        let frame = self.painter.frame(&finished, &live, usize::from(columns), colour);
        self.painted = Some((live, columns));
        write_out(&frame)
    }

    fn input_columns(&self) -> usize {
        usize::from(terminal::size().0)
    }

    fn tick(&self, _screen: &Screen) -> Option<Duration> {
        self.clock.until_next(Instant::now())
    }

    fn leave(&mut self, _screen: &Screen) {
        let end = self.painter.erase(usize::from(terminal::size().0)) + "\u{1b}[?25h";
        let _ = write_out(&(self.lines.take().replace('\n', "\r\n") + &end));
        self.raw = None;
    }
}

impl LinesView {
    /// A view of lines only.
    #[must_use]
    pub fn new(colour: Colour, labels: Labels) -> Self {
        let view = LineView::new(colour, LiveArea::Absent).with_labels(labels);
        Self {
            lines: PrintedLines::new(view),
            shown_hint: None,
            labels,
            in_answer: false,
            clock: TurnClock::default(),
        }
    }
}

impl ScreenView for LinesView {
    fn take(&mut self, input: ScreenInput, screen: &Screen) -> Vec<ScreenInput> {
        self.clock.note(&input, screen, Instant::now());
        vec![input]
    }

    fn show(&mut self, item: ScreenItem) {
        let is_answer = matches!(item, ScreenItem::Text(_));
        if is_answer && !self.in_answer && self.labels == Labels::Words {
            self.lines.unwritten.push_str("Model:\n");
        }
        self.in_answer = is_answer;
        self.lines.show(&self.clock.timed(item, Instant::now()));
    }

    fn show_earlier(&mut self, items: Vec<ScreenItem>) {
        self.lines.show_earlier(&items);
    }

    fn open(&mut self, text: LongText) {
        self.lines.show(&ScreenItem::Note(format!("{}\n{}", text.title, text.text())));
    }

    fn start_over(&mut self) {
        self.clock = TurnClock::default();
    }

    fn bell(&mut self) {
        self.lines.unwritten.push('\u{7}');
    }

    fn repaint(&mut self) {}

    fn lend_terminal(&mut self, run: TerminalUse<'_>) -> io::Result<Result<String, String>> {
        lend_as_is(run)
    }

    fn paint(&mut self, screen: &Screen) -> io::Result<()> {
        let mut text = self.lines.take();
        let asking = screen.hint().map(str::to_owned).or_else(|| answers_in_line(screen));
        if asking != self.shown_hint {
            if let Some(words) = &asking {
                let columns = usize::from(terminal::size().0);
                text.push_str(&format!("{}\n", wrap(words, columns, 0)));
            }
            self.shown_hint = asking;
        }
        write_out(&text)
    }

    fn input_columns(&self) -> usize {
        usize::from(terminal::size().0)
    }

    fn tick(&self, _screen: &Screen) -> Option<Duration> {
        None
    }

    fn leave(&mut self, _screen: &Screen) {
        let _ = write_out(&self.lines.take());
    }
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
