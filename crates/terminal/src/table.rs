//! Tables of Markdown as rows. Pure.

use crate::row::{Piece, Row, wrap};
use crate::theme::Theme;
use unicode_width::UnicodeWidthStr;

/// A table that is being read: its rows of cells.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) rows: Vec<Vec<Vec<Piece>>>,
    /// The row that is being read.
    pub(crate) row: Vec<Vec<Piece>>,
}

/// Columns as wide as their widest cell, narrowed together where the terminal is too narrow.
pub(crate) fn table_rows(table: Table, width: usize, look: &Theme) -> Vec<Row> {
    let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
    if columns == 0 {
        return Vec::new();
    }
    let cell_width = |cell: &Vec<Piece>| cell.iter().map(|piece| piece.text.width()).sum::<usize>();
    let widest = |at: usize| {
        table.rows.iter().filter_map(|row| row.get(at)).map(cell_width).max().unwrap_or(0).max(1)
    };
    let mut widths: Vec<usize> = (0..columns).map(widest).collect();
    let room = width.saturating_sub(3 * (columns - 1)).max(2 * columns);
    while widths.iter().sum::<usize>() > room {
        let Some(most) = widths.iter_mut().max() else { break };
        *most -= 1;
    }
    let mut rows = Vec::new();
    for (number, cells) in table.rows.into_iter().enumerate() {
        let under = Piece::new("", look.text);
        let empty = Vec::new();
        let wrapped: Vec<Vec<Row>> = (0..columns)
            .map(|at| wrap(cells.get(at).unwrap_or(&empty), widths[at], &under))
            .collect();
        for line in 0..wrapped.iter().map(Vec::len).max().unwrap_or(0) {
            let mut row = Row::default();
            for (at, cell) in wrapped.iter().enumerate() {
                if at > 0 {
                    row = row.with(" │ ", look.dim);
                }
                let part = cell.get(line).cloned().unwrap_or_default();
                let rest = widths[at].saturating_sub(part.width());
                row.pieces.extend(part.pieces);
                row = row.with(&" ".repeat(rest), look.text);
            }
            rows.push(row);
        }
        if number == 0 {
            let parts: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            rows.push(Row::new(&parts.join("─┼─"), look.dim));
        }
    }
    rows
}
