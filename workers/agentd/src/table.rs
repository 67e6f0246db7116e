//! Rows as columns of text, each as wide as its widest cell.

use client::display_width;

/// The rows, one a line, two spaces between columns.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width =
        |column: usize| rows.iter().map(|row| display_width(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let gap = " ".repeat(width.saturating_sub(display_width(cell)) + 2);
            line.push_str(cell);
            line.push_str(&gap);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
