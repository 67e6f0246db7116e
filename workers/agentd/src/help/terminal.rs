//! A help topic as text of at most 80 columns, headings in bold where colours are on. Pure.

use super::markdown::{InlineText, PageBlock, PageSpan, Table, plain};
use client::{Colour, display_width, wrap};

/// Columns of the text.
const WIDTH: usize = 80;
/// Widest first column of a table with two columns; longer cells have a line of their own.
const FIRST_COLUMN: usize = 28;

/// The page as text.
pub(super) fn render(blocks: &[PageBlock], colour: Colour) -> String {
    let mut text = String::new();
    let mut in_list = false;
    for block in blocks {
        let is_item = matches!(block, PageBlock::Item(..));
        let joins = in_list && is_item;
        if !text.is_empty() && !joins {
            text.push('\n');
        }
        in_list = is_item;
        match block {
            PageBlock::Title(title) | PageBlock::Heading(title) => {
                text.push_str(&colour.bold(&plain(title)));
                text.push('\n');
            }
            PageBlock::Paragraph(paragraph) => text.push_str(&lines(&plain(paragraph), 0)),
            PageBlock::Item(depth, item) => {
                let indent = " ".repeat(2 * depth);
                text.push_str(&lines(&format!("{indent}- {}", plain(item)), 2));
            }
            PageBlock::Code(code) => {
                text.extend(code.lines().map(|line| match line {
                    "" => "\n".to_owned(),
                    line => format!("    {line}\n"),
                }));
            }
            PageBlock::Table(table) => text.push_str(&rows(table, colour)),
        }
    }
    text
}

/// A wrapped paragraph. Further lines are indented by `under` columns.
fn lines(text: &str, under: usize) -> String {
    wrap(text, WIDTH, under) + "\n"
}

fn rows(table: &Table, colour: Colour) -> String {
    match grid_widths(table) {
        Some(widths) => grid(table, &widths, colour),
        None if table.header.len() == 2 => pairs(table, colour),
        None => stacked(table, colour),
    }
}

/// The widths of the columns, where each row fits into one line.
fn grid_widths(table: &Table) -> Option<Vec<usize>> {
    let rows = || table.rows.iter().chain([&table.header]);
    let width = |column: usize| {
        let cells = rows().filter_map(|row| row.get(column));
        cells.map(|cell| display_width(&plain(cell))).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.header.len()).map(width).collect();
    let all = widths.iter().sum::<usize>() + 2 * widths.len();
    (all <= WIDTH).then_some(widths)
}

fn grid(table: &Table, widths: &[usize], colour: Colour) -> String {
    let line = |row: &Vec<InlineText>| {
        let cells = row.iter().zip(widths).enumerate();
        let cells = cells.map(|(at, (cell, width))| {
            padded(&if at == 0 { name(cell) } else { plain(cell) }, *width)
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let header = colour.bold(&format!("  {}", line(&table.header)));
    let rows = table.rows.iter().map(|row| format!("  {}\n", line(row)));
    format!("{header}\n{}", rows.collect::<String>())
}

/// Two columns: a name, and wrapped text.
fn pairs(table: &Table, colour: Colour) -> String {
    let name = |row: &Vec<InlineText>| row.first().map(name).unwrap_or_default();
    let widest = table.rows.iter().map(|row| display_width(&name(row))).max().unwrap_or(0);
    let column = widest.min(FIRST_COLUMN) + 4;
    let mut text = String::new();
    for row in &table.rows {
        let name = name(row);
        let about = row.get(1).map(|cell| plain(cell)).unwrap_or_default();
        let room = WIDTH - column;
        let about = wrap(&about, room, 0).replace('\n', &format!("\n{}", " ".repeat(column)));
        let shown = colour.bold(&name);
        if display_width(&name) + 4 <= column {
            let gap = " ".repeat(column - 2 - display_width(&name));
            text.push_str(&format!("  {shown}{gap}{about}\n"));
        } else {
            text.push_str(&format!("  {shown}\n{}{about}\n", " ".repeat(column)));
        }
    }
    text
}

/// The first cell as a line; below it the others, each after the name of its column.
fn stacked(table: &Table, colour: Colour) -> String {
    let mut text = String::new();
    for row in &table.rows {
        for (at, cell) in row.iter().enumerate() {
            let cell = if at == 0 { name(cell) } else { plain(cell) };
            if at == 0 {
                text.push_str(&format!("  {}\n", colour.bold(&cell)));
            } else if !cell.is_empty() {
                let name = table.header.get(at).map(|name| plain(name)).unwrap_or_default();
                text.push_str(&lines(&format!("    {name}: {cell}"), 2));
            }
        }
    }
    text
}

/// A cell of a first column: code as it is.
fn name(cell: &InlineText) -> String {
    let text = cell.iter().map(|span| match span {
        PageSpan::Text(text) | PageSpan::Code(text) => text.as_str(),
    });
    text.collect()
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(display_width(text))))
}
