//! A buffer of cells as a picture that a browser shows.

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

/// Size of a cell in pixels.
const CELL: (usize, usize) = (8, 17);
const MARGIN: usize = 10;
const BACK: &str = "#16181d";
const FRONT: &str = "#d4d7dd";

pub(super) fn svg(buffer: &Buffer) -> String {
    let area = buffer.area;
    let (columns, rows) = (usize::from(area.width), usize::from(area.height));
    let (width, height) = (columns * CELL.0 + 2 * MARGIN, rows * CELL.1 + 2 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACK}\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
         font-size=\"13.2\" xml:space=\"preserve\">\n"
    );
    for y in 0..area.height {
        let mut x = 0;
        while x < area.width {
            let first = &buffer[(x, y)];
            let begin = x;
            let mut text = String::new();
            // A run of one style; characters that are not ASCII stand in a place of their own.
            while x < area.width && style(&buffer[(x, y)]) == style(first) {
                let symbol = buffer[(x, y)].symbol();
                if !symbol.is_ascii() && x > begin {
                    break;
                }
                text.push_str(symbol);
                x += u16::try_from(symbol.width().max(1)).unwrap();
                if !symbol.is_ascii() {
                    break;
                }
            }
            write(&mut out, first, &text, (usize::from(begin), usize::from(y)));
        }
    }
    out.push_str("</g>\n</svg>\n");
    out
}

fn style(cell: &Cell) -> (Color, Color, Modifier) {
    (cell.fg, cell.bg, cell.modifier)
}

fn write(out: &mut String, cell: &Cell, text: &str, at: (usize, usize)) {
    let (x, y) = (MARGIN + at.0 * CELL.0, MARGIN + at.1 * CELL.1);
    let (mut front, mut back) = (colour(cell.fg, FRONT), colour(cell.bg, BACK));
    if cell.modifier.contains(Modifier::REVERSED) {
        std::mem::swap(&mut front, &mut back);
    }
    if back != BACK {
        let width = text.width() * CELL.0;
        let height = CELL.1;
        out.push_str(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{back}\"/>\n"
        ));
    }
    if text.trim().is_empty() {
        return;
    }
    let mut marks = String::new();
    for (modifier, mark) in [
        (Modifier::BOLD, " font-weight=\"bold\""),
        (Modifier::DIM, " opacity=\"0.6\""),
        (Modifier::ITALIC, " font-style=\"italic\""),
        (Modifier::UNDERLINED, " text-decoration=\"underline\""),
    ] {
        if cell.modifier.contains(modifier) {
            marks.push_str(mark);
        }
    }
    let text = text.trim_end();
    let length = text.width() * CELL.0;
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace(' ', "\u{a0}");
    let y = y + 13;
    out.push_str(&format!(
        "<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\" fill=\"{front}\"{marks}>{text}</text>\n"
    ));
}

fn colour(colour: Color, usual: &'static str) -> &'static str {
    match colour {
        Color::Black => "#16181d",
        Color::Red | Color::LightRed => "#f0717a",
        Color::Green | Color::LightGreen => "#8cc570",
        Color::Yellow | Color::LightYellow => "#e2bd6b",
        Color::Blue | Color::LightBlue => "#6cb0f0",
        Color::Magenta | Color::LightMagenta => "#cf86e0",
        Color::Cyan | Color::LightCyan => "#5cc0c8",
        Color::Gray => "#a5abb6",
        Color::DarkGray => "#737b8a",
        Color::White => "#ffffff",
        Color::Reset | Color::Rgb(..) | Color::Indexed(_) => usual,
    }
}
