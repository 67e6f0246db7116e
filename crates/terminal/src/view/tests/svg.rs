//! A buffer of cells as a picture that a browser shows.

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::style::{Color, Modifier};
use std::collections::BTreeMap;
use unicode_width::UnicodeWidthStr;

/// Size of a cell in pixels.
const CELL: (usize, usize) = (8, 17);
const MARGIN: usize = 10;
const BACK: &str = "#16181d";
const FRONT: &str = "#d4d7dd";

pub(super) fn svg(buffer: &Buffer) -> String {
    let rows: String = (0..buffer.area.height).map(|y| row(buffer, y)).collect();
    framed(buffer, "", &rows)
}

/// One screen after the other, without end: each with the seconds for which it is shown. Each row of cells is there
/// while it is the same. No script: a browser plays it in an `img` too, and stands still at the last screen if the
/// person wants no motion.
pub(super) fn animated(screens: &[(Buffer, f64)]) -> String {
    let total: f64 = screens.iter().map(|(_, seconds)| seconds).sum();
    let begins: Vec<f64> = screens
        .iter()
        .scan(0.0, |at, (_, seconds)| Some(std::mem::replace(at, *at + seconds) / total * 100.0))
        .collect();
    let mut motions: Vec<String> = Vec::new();
    let mut rows = String::new();
    for y in 0..screens[0].0.area.height {
        let mut shown: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, (buffer, _)) in screens.iter().enumerate() {
            shown.entry(row(buffer, y)).or_default().push(at);
        }
        for (cells, at) in shown.into_iter().filter(|(cells, _)| !cells.is_empty()) {
            if at.len() == screens.len() {
                rows.push_str(&cells);
                continue;
            }
            let mut steps = String::new();
            for (step, begin) in begins.iter().enumerate() {
                let is_shown = at.contains(&step);
                if step == 0 || is_shown != at.contains(&(step - 1)) {
                    let state = if is_shown { "visible" } else { "hidden" };
                    steps.push_str(&format!("{begin:.2}%{{visibility:{state}}}"));
                }
            }
            let motion = motions.iter().position(|known| *known == steps).unwrap_or_else(|| {
                motions.push(steps);
                motions.len() - 1
            });
            let last = if at.contains(&(screens.len() - 1)) { " z" } else { "" };
            rows.push_str(&format!("<g class=\"a{motion}{last}\">\n{cells}</g>\n"));
        }
    }
    let mut style = format!(
        "<style>\ng g{{visibility:hidden;animation:{total:.2}s step-end infinite}}\n\
         @media (prefers-reduced-motion:reduce){{g g{{animation:none}}g g.z{{visibility:visible}}}}\n"
    );
    for (motion, steps) in motions.iter().enumerate() {
        style.push_str(&format!(
            "@keyframes m{motion}{{{steps}}}\n.a{motion}{{animation-name:m{motion}}}\n"
        ));
    }
    framed(&screens[0].0, &(style + "</style>\n"), &rows)
}

fn framed(buffer: &Buffer, style: &str, rows: &str) -> String {
    let (columns, lines) = (usize::from(buffer.area.width), usize::from(buffer.area.height));
    let (width, height) = (columns * CELL.0 + 2 * MARGIN, lines * CELL.1 + 2 * MARGIN);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n{style}\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACK}\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
         font-size=\"13.2\" xml:space=\"preserve\">\n{rows}</g>\n</svg>\n"
    )
}

/// The cells of one row that are not empty.
fn row(buffer: &Buffer, y: u16) -> String {
    let area = buffer.area;
    let mut out = String::new();
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

fn colour(colour: Color, usual: &str) -> String {
    let named = match colour {
        Color::Rgb(red, green, blue) => return format!("#{red:02x}{green:02x}{blue:02x}"),
        Color::Black => "#16181d",
        Color::Red | Color::LightRed | Color::Indexed(1 | 9) => "#f0717a",
        Color::Green | Color::LightGreen | Color::Indexed(2 | 10) => "#8cc570",
        Color::Yellow | Color::LightYellow | Color::Indexed(3 | 11) => "#e2bd6b",
        Color::Blue | Color::LightBlue | Color::Indexed(4 | 12) => "#6cb0f0",
        Color::Magenta | Color::LightMagenta | Color::Indexed(5 | 13) => "#cf86e0",
        Color::Cyan | Color::LightCyan | Color::Indexed(6 | 14) => "#5cc0c8",
        Color::Gray => "#a5abb6",
        Color::DarkGray => "#737b8a",
        Color::White => "#ffffff",
        Color::Reset | Color::Indexed(_) => usual,
    };
    named.to_owned()
}
