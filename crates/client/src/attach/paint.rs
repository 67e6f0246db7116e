//! Escape sequences that let finished lines scroll away above the live rows. Pure.

use crate::colour::Colour;
use crate::live_rows::LiveRows;

/// Remembers the live rows on the screen.
#[derive(Debug, Default)]
pub(crate) struct Painter {
    /// Columns of each live row up to that of the cursor, and the cursor's column.
    above: Vec<usize>,
    cursor: usize,
}

impl Painter {
    /// Erases the live rows, writes `finished`, and paints `live` below it. `columns` is the
    /// present width; the terminal may have been wider before.
    pub(crate) fn frame(
        &mut self,
        finished: &str,
        live: &LiveRows,
        columns: usize,
        colour: Colour,
    ) -> String {
        let mut out = self.erase(columns);
        out.push_str(&finished.replace('\n', "\r\n"));
        let rows: Vec<_> = live.rows.iter().map(|row| row.painted(colour)).collect();
        out.push_str(&rows.join("\r\n"));
        let (row, column) = live.cursor;
        match live.rows.len().saturating_sub(row + 1) {
            0 => {}
            up => out.push_str(&format!("\u{1b}[{up}A")),
        }
        out.push('\r');
        if column > 0 {
            out.push_str(&format!("\u{1b}[{column}C"));
        }
        out.push_str("\u{1b}[?25h");
        self.above = live.rows.iter().take(row).map(crate::live_rows::LiveRow::columns).collect();
        self.cursor = column;
        out
    }

    /// Erases the live rows. The cursor moves to their first row.
    pub(crate) fn erase(&mut self, columns: usize) -> String {
        let columns = columns.max(1);
        // A terminal that became narrower has folded the rows.
        let folded = |width: &usize| width.div_ceil(columns).max(1);
        let up = self.above.iter().map(folded).sum::<usize>() + self.cursor / columns;
        self.above.clear();
        self.cursor = 0;
        match up {
            0 => "\u{1b}[?25l\r\u{1b}[J".to_owned(),
            up => format!("\u{1b}[?25l\r\u{1b}[{up}A\u{1b}[J"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live_rows::{LiveRow, Paint};

    fn live(rows: &[&str], cursor: (usize, usize)) -> LiveRows {
        let row = |text: &&str| LiveRow { text: (*text).to_owned(), paint: Paint::Plain };
        LiveRows { rows: rows.iter().map(row).collect(), cursor }
    }

    #[test]
    fn rows_are_painted_over_and_finished_lines_stay() {
        let mut painter = Painter::default();
        let first = painter.frame("", &live(&["status", "> ab"], (1, 4)), 80, Colour::Off);
        assert_eq!(first, "\u{1b}[?25l\r\u{1b}[Jstatus\r\n> ab\r\u{1b}[4C\u{1b}[?25h");
        let next = painter.frame("done\n", &live(&["status", "> "], (1, 2)), 80, Colour::Off);
        assert!(next.starts_with("\u{1b}[?25l\r\u{1b}[1A\u{1b}[Jdone\r\nstatus"), "{next:?}");
    }

    #[test]
    fn a_narrower_terminal_has_folded_the_rows_above() {
        let mut painter = Painter::default();
        painter.frame("", &live(&["0123456789", "> "], (1, 2)), 80, Colour::Off);
        assert_eq!(painter.erase(4), "\u{1b}[?25l\r\u{1b}[3A\u{1b}[J");
    }

    #[test]
    fn the_cursor_may_stand_above_the_last_row() {
        let mut painter = Painter::default();
        let out = painter.frame("", &live(&["a", "b", "c"], (1, 0)), 80, Colour::Off);
        assert!(out.ends_with("a\r\nb\r\nc\u{1b}[1A\r\u{1b}[?25h"), "{out:?}");
    }
}
