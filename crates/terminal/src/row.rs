//! Styled text in rows no wider than their place. Pure. Widths are those of `unicode-width`, which
//! the buffer uses too.

use ratatui_core::buffer::Buffer;
use ratatui_core::style::Style;
use std::ops::Range;
use std::rc::Rc;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Columns of a tab. Terminals differ in their stops, so none is sent.
const TAB: &str = "    ";

/// A piece of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) style: Style,
    /// Where it leads.
    pub(crate) link: Option<Rc<str>>,
}

impl Piece {
    /// `text` gets visible marks for control codes, and no tabs.
    pub(crate) fn new(text: &str, style: Style) -> Self {
        let text = protocol::hidden::on_screen(text).replace('\t', TAB).replace('\n', " ");
        Self { text, style, link: None }
    }
}

/// One row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) pieces: Vec<Piece>,
    /// Columns of marks and indents before its text.
    pub(crate) margin: usize,
    /// What stands between the text of the row before and its own.
    pub(crate) joint: Joint,
}

/// What stands between the texts of two rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Joint {
    /// A line end.
    #[default]
    LineEnd,
    /// So many blanks: the line was wrapped there, in a word if there is none.
    Blanks(usize),
}

impl Row {
    pub(crate) fn new(text: &str, style: Style) -> Self {
        Self::of(vec![Piece::new(text, style)])
    }

    pub(crate) fn of(pieces: Vec<Piece>) -> Self {
        Self { pieces, margin: 0, joint: Joint::LineEnd }
    }

    pub(crate) fn with(mut self, text: &str, style: Style) -> Self {
        self.pieces.push(Piece::new(text, style));
        self
    }

    /// The same behind `text`, which is a mark or an indent.
    pub(crate) fn behind(mut self, text: &str, style: Style) -> Self {
        self.margin += text.width();
        self.pieces.insert(0, Piece::new(text, style));
        self
    }

    pub(crate) fn width(&self) -> usize {
        self.pieces.iter().map(|piece| piece.text.width()).sum()
    }

    pub(crate) fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }

    /// Cut at the right, with a mark that says so.
    pub(crate) fn cut(mut self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        let mut kept = Vec::new();
        for mut piece in std::mem::take(&mut self.pieces) {
            let fits = fitting(&piece.text, left);
            left -= piece.text[..fits].width();
            let whole = fits == piece.text.len();
            piece.text.truncate(fits);
            let style = piece.style;
            kept.push(piece);
            if !whole {
                if width > 0 {
                    kept.push(Piece::new("…", style));
                }
                break;
            }
        }
        Self { pieces: kept, ..self }
    }

    /// The text between two columns, the second one not included, and the columns of its characters. Marks and indents
    /// are no text, and a character belongs to it with each of its columns.
    pub(crate) fn part(&self, columns: Range<usize>) -> (String, Range<usize>) {
        let (mut at, mut text) = (0, String::new());
        let (mut first, mut last) = (None, 0);
        for grapheme in self.pieces.iter().flat_map(|piece| piece.text.graphemes(true)) {
            let from = at;
            at += grapheme.width();
            if from >= self.margin && from < columns.end && at > columns.start {
                first = first.or(Some(from));
                last = at;
                text.push_str(grapheme);
            }
        }
        (text, first.unwrap_or(last)..last)
    }

    /// With `style` laid over all of it.
    pub(crate) fn patched(mut self, style: Style) -> Self {
        for piece in &mut self.pieces {
            piece.style = piece.style.patch(style);
        }
        self
    }

    /// With blanks in `style` up to this width.
    pub(crate) fn filled(self, width: usize, style: Style) -> Self {
        let rest = width.saturating_sub(self.width());
        if rest == 0 { self } else { self.with(&" ".repeat(rest), style) }
    }

    /// With `style` laid over each place of these words, in whatever case. A character that consists of several is
    /// marked as a whole: its parts alone are other characters.
    pub(crate) fn marked(mut self, words: &str, style: Style) -> Self {
        let lower = |c: char| c.to_lowercase().next().unwrap_or(c);
        let words: Vec<char> = words.chars().map(lower).collect();
        let text = self.text();
        let letters: Vec<char> = text.chars().map(lower).collect();
        let mut is_marked = vec![false; letters.len()];
        if !words.is_empty() {
            for (at, window) in letters.windows(words.len()).enumerate() {
                if window == words {
                    is_marked[at..at + words.len()].fill(true);
                }
            }
        }
        let mut end = 0;
        for grapheme in text.graphemes(true) {
            let start = end;
            end += grapheme.chars().count();
            let is_touched = is_marked[start..end].contains(&true);
            is_marked[start..end].fill(is_touched);
        }
        let mut marks = is_marked.into_iter();
        let mut pieces: Vec<Piece> = Vec::new();
        for piece in std::mem::take(&mut self.pieces) {
            let mut begins = true;
            for (letter, is_marked) in piece.text.chars().zip(marks.by_ref()) {
                let style = if is_marked { piece.style.patch(style) } else { piece.style };
                match pieces.last_mut() {
                    Some(last) if !begins && last.style == style => last.text.push(letter),
                    Some(_) | None => {
                        let link = piece.link.clone();
                        pieces.push(Piece { text: letter.to_string(), style, link });
                    }
                }
                begins = false;
            }
        }
        Self { pieces, ..self }
    }

    /// Writes it into a buffer, and the places of its links behind one another.
    pub(crate) fn draw(&self, buffer: &mut Buffer, at: (u16, u16), width: u16, links: &mut Links) {
        let (mut x, y) = at;
        let end = x.saturating_add(width).min(buffer.area.right());
        if y >= buffer.area.bottom() {
            return;
        }
        for piece in &self.pieces {
            if x >= end {
                return;
            }
            let (next, _) =
                buffer.set_stringn(x, y, &piece.text, usize::from(end - x), piece.style);
            if let Some(link) = &piece.link {
                links.push(Link { y, from: x, to: next, target: Rc::clone(link) });
            }
            x = next;
        }
    }
}

/// Cells that lead somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) y: u16,
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) target: Rc<str>,
}

/// All of a frame.
pub(crate) type Links = Vec<Link>;

/// How many bytes of `text` fit into so many columns.
fn fitting(text: &str, columns: usize) -> usize {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += grapheme.width();
        if used > columns {
            return at;
        }
    }
    text.len()
}

/// Rows of at most `width` columns, broken between words where that is possible. All but the first
/// begin with `under`.
pub(crate) fn wrap(pieces: &[Piece], width: usize, under: &Piece) -> Vec<Row> {
    let all: usize = pieces.iter().map(|piece| piece.text.width()).sum();
    if all <= width {
        return vec![Row::of(pieces.to_vec())];
    }
    let mut rows = Vec::new();
    let mut row = RowBuilder::default();
    let room = |rows: &Vec<(Row, Joint)>| {
        let indent = if rows.is_empty() { 0 } else { under.text.width() };
        width.saturating_sub(indent).max(2)
    };
    for piece in pieces {
        for word in piece.text.split_inclusive(' ') {
            let wide = word.trim_end().width();
            if row.width + wide > room(&rows) && row.width > 0 {
                rows.push(row.finish());
            }
            if wide <= room(&rows) {
                row.push(word, piece);
                continue;
            }
            // A word that is wider than a row.
            for grapheme in word.graphemes(true) {
                if row.width + grapheme.width() > room(&rows) {
                    rows.push(row.finish());
                }
                row.push(grapheme, piece);
            }
        }
    }
    if !row.pieces.is_empty() || rows.is_empty() {
        rows.push(row.finish());
    }
    let mut joint = Joint::LineEnd;
    let indented = |(at, (mut row, next)): (usize, (Row, Joint))| {
        row.joint = std::mem::replace(&mut joint, next);
        if at > 0 && !under.text.is_empty() {
            row.pieces.insert(0, under.clone());
            row.margin = under.text.width();
        }
        row
    };
    rows.into_iter().enumerate().map(indented).collect()
}

/// The same for a text of one style; line ends stay.
pub(crate) fn wrap_text(text: &str, style: Style, width: usize, under: &str) -> Vec<Row> {
    let under = Piece::new(under, style);
    let wrapped = |line| wrap(&[Piece::new(line, style)], width, &under);
    text.trim_end_matches('\n').split('\n').flat_map(wrapped).collect()
}

#[derive(Default)]
struct RowBuilder {
    pieces: Vec<Piece>,
    width: usize,
}

impl RowBuilder {
    fn push(&mut self, text: &str, like: &Piece) {
        self.width += text.width();
        match self.pieces.last_mut() {
            Some(last) if last.style == like.style && last.link == like.link => {
                last.text.push_str(text);
            }
            Some(_) | None => {
                self.pieces.push(Piece { text: text.to_owned(), ..like.clone() });
            }
        }
    }

    /// The row, and what stands between it and the next one.
    fn finish(&mut self) -> (Row, Joint) {
        let mut row = Row::of(std::mem::take(&mut self.pieces));
        self.width = 0;
        let mut blanks = 0;
        if let Some(last) = row.pieces.last_mut() {
            let words = last.text.trim_end_matches(' ').len();
            blanks = last.text.len() - words;
            last.text.truncate(words);
        }
        (row, Joint::Blanks(blanks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(rows: &[Row]) -> Vec<String> {
        rows.iter().map(Row::text).collect()
    }

    #[test]
    fn rows_break_between_words_and_long_words_inside() {
        let style = Style::new();
        let rows = wrap_text("one two three four", style, 9, "  ");
        assert_eq!(texts(&rows), ["one two", "  three", "  four"]);
        assert_eq!(texts(&wrap_text("aaaabbbbcc", style, 4, "")), ["aaaa", "bbbb", "cc"]);
        assert_eq!(
            texts(&wrap_text("日本語のテキスト", style, 6, "")),
            ["日本語", "のテキ", "スト"]
        );
        assert_eq!(texts(&wrap_text("", style, 6, "")), [""]);
        assert_eq!(texts(&wrap_text("a\n\nb", style, 6, "")), ["a", "", "b"]);
    }

    #[test]
    fn a_mark_splits_no_character() {
        let mark = Style::new().add_modifier(ratatui_core::style::Modifier::BOLD);
        let marked = |text: &str, words: &str| -> Vec<(String, bool)> {
            let row = Row::new(text, Style::new()).marked(words, mark);
            row.pieces.into_iter().map(|piece| (piece.text, piece.style == mark)).collect()
        };
        let part = |text: &str, is_marked| (text.to_owned(), is_marked);
        let accent = [part("caf", false), part("e\u{301}", true), part(" x", false)];
        assert_eq!(marked("cafe\u{301} x", "e"), accent);
        assert_eq!(marked("cafe\u{301} x", "\u{301}"), accent);
        assert_eq!(marked("a👩‍👧b", "👩"), [part("a", false), part("👩‍👧", true), part("b", false)]);
        assert_eq!(marked("Tea", "e"), [part("T", false), part("e", true), part("a", false)]);
        assert_eq!(marked("cafe\u{301}", "x"), [part("cafe\u{301}", false)]);
    }

    #[test]
    fn no_row_is_wider_than_its_place_whatever_the_characters() {
        let corpus = "e\u{301}e\u{301} 👩‍👩‍👧‍👦👩‍👩‍👧‍👦 ❤️❤️ 🇩🇪🇩🇪 한국어 ﷽ a\u{200b}b ｆｕｌｌ";
        for width in 2..40 {
            for row in wrap_text(corpus, Style::new(), width, "") {
                assert!(row.width() <= width, "{width}: {:?}", row.text());
            }
            let cut = Row::new(corpus, Style::new()).cut(width);
            assert!(cut.width() <= width, "{width}: {:?}", cut.text());
        }
    }
}
