//! Markdown as rows. Pure. Finished parts are rendered once; only the last block of a text that still
//! grows is rendered again.

use crate::highlight::Highlighter;
use crate::row::{Piece, Row, wrap};
use crate::table::{Table, table_rows};
use crate::theme::Theme;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use ratatui_core::style::{Modifier, Style};
use std::rc::Rc;
use unicode_width::UnicodeWidthStr;

/// A block that is longer is rendered in parts, so that one that grows costs no more with each word.
const LONGEST_BLOCK: usize = 8 << 10;
/// Columns of code before its text.
const CODE_INDENT: &str = "  ";

/// A text of which more may come.
#[derive(Debug)]
pub(crate) struct Markdown {
    text: String,
    width: usize,
    /// Rows of the text up to here, in bytes.
    done: usize,
    rows: Vec<Row>,
    fence: Option<Fence>,
}

/// An open block of code.
#[derive(Debug)]
struct Fence {
    mark: char,
    length: usize,
    code: Highlighter,
}

impl Markdown {
    pub(crate) fn new(text: String) -> Self {
        Self { text, width: 0, done: 0, rows: Vec::new(), fence: None }
    }

    /// The rows are made anew.
    pub(crate) fn forget_rows(&mut self) {
        (self.done, self.fence) = (0, None);
        self.rows.clear();
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// All rows at this width, with `streaming` behind the text.
    pub(crate) fn rows(&mut self, width: usize, streaming: &str, look: &Theme) -> Vec<Row> {
        self.last_rows(width, streaming, look, usize::MAX)
    }

    /// The last rows; as many as asked for, or some more.
    pub(crate) fn last_rows(
        &mut self,
        width: usize,
        streaming: &str,
        look: &Theme,
        most: usize,
    ) -> Vec<Row> {
        if self.width != width {
            self.width = width;
            self.forget_rows();
        }
        self.advance(look);
        let mut rows = self.rows[self.rows.len().saturating_sub(most)..].to_vec();
        let tail = format!("{}{streaming}", &self.text[self.done..]);
        match &self.fence {
            Some(fence) if tail.is_empty() || closes(&tail, fence) => {}
            Some(_) => rows.extend(code_rows(&tail, None, width, look)),
            None => rows.extend(prose(&tail, width, look)),
        }
        while rows.last().is_some_and(|row| row.text().trim().is_empty()) {
            rows.pop();
        }
        rows
    }

    /// Renders all blocks that can change no more.
    fn advance(&mut self, look: &Theme) {
        loop {
            let before = self.done;
            match &mut self.fence {
                Some(fence) => {
                    let Some(end) = self.text[self.done..].find('\n') else { return };
                    let line = &self.text[self.done..self.done + end];
                    self.done += end + 1;
                    if closes(line, fence) {
                        self.fence = None;
                        self.rows.push(Row::default());
                    } else {
                        self.rows.extend(code_rows(line, Some(&mut fence.code), self.width, look));
                    }
                }
                None => self.advance_prose(look),
            }
            if self.done == before {
                return;
            }
        }
    }

    fn advance_prose(&mut self, look: &Theme) {
        let tail = &self.text[self.done..];
        // A block of code is read line by line.
        let mut at = 0;
        for line in tail.split_inclusive('\n') {
            if let (Some(fence), true) = (opens(line, look), line.ends_with('\n')) {
                self.rows.extend(prose(&tail[..at], self.width, look));
                self.done += at + line.len();
                self.fence = Some(fence);
                return;
            }
            at += line.len();
        }
        let cut = last_block(tail).or_else(|| {
            let end = (tail.len() > LONGEST_BLOCK).then(|| tail.rfind(['\n', ' ']))??;
            Some(end + 1)
        });
        if let Some(cut) = cut.filter(|cut| *cut > 0) {
            self.rows.extend(prose(&tail[..cut], self.width, look));
            self.done += cut;
        }
    }
}

/// Where the last block begins, which may still grow.
fn last_block(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut last = None;
    let mut note = |start: usize| {
        // The start of a line: blocks may be indented. What follows without an empty line may yet
        // become a part of the block before.
        let line = text[..start].rfind('\n').map_or(0, |end| end + 1);
        if line == 0 || text[..line - 1].ends_with('\n') {
            last = Some(line);
        }
    };
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(_) => {
                if depth == 0 {
                    note(range.start);
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Rule if depth == 0 => note(range.start),
            Event::Rule
            | Event::Text(_)
            | Event::Code(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::Html(_)
            | Event::InlineHtml(_)
            | Event::FootnoteReference(_)
            | Event::SoftBreak
            | Event::HardBreak
            | Event::TaskListMarker(_) => {}
        }
    }
    last
}

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

fn opens(line: &str, look: &Theme) -> Option<Fence> {
    let text = line.trim_start_matches(' ');
    if line.len() - text.len() > 3 {
        return None;
    }
    let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = text.chars().take_while(|c| *c == mark).count();
    let info = text[length..].trim();
    (length >= 3 && !info.contains('`')).then(|| Fence {
        mark,
        length,
        code: Highlighter::of_language(info, look),
    })
}

fn closes(line: &str, fence: &Fence) -> bool {
    let text = line.trim();
    text.chars().count() >= fence.length && text.chars().all(|c| c == fence.mark)
}

/// Rows of code; long lines go on in the next row.
fn code_rows(
    text: &str,
    mut code: Option<&mut Highlighter>,
    width: usize,
    look: &Theme,
) -> Vec<Row> {
    let under = Piece::new(CODE_INDENT, look.text);
    let mut rows = Vec::new();
    for line in text.trim_end_matches('\n').split('\n') {
        let mut pieces = match &mut code {
            Some(code) => code.line(line),
            None => vec![Piece::new(line, look.text)],
        };
        pieces.insert(0, under.clone());
        rows.extend(wrap(&pieces, width, &under));
    }
    rows
}

/// Rows of text without open blocks of code, each block with an empty row behind it.
fn prose(text: &str, width: usize, look: &Theme) -> Vec<Row> {
    let mut writer = Writer {
        look,
        width,
        rows: Vec::new(),
        line: Vec::new(),
        styles: vec![look.text],
        link: None,
        link_text: String::new(),
        lists: Vec::new(),
        items: Vec::new(),
        quotes: 0,
        table: None,
        code: None,
    };
    for event in Parser::new_ext(text, options()) {
        writer.event(event);
    }
    writer.flush();
    writer.rows
}

/// Most columns of a row of prose: longer ones are hard to read on. Code and tables take all.
const PROSE: usize = 100;

struct Writer<'a> {
    look: &'a Theme,
    width: usize,
    rows: Vec<Row>,
    /// The paragraph that is being collected.
    line: Vec<Piece>,
    styles: Vec<Style>,
    link: Option<Rc<str>>,
    /// The text of the open link.
    link_text: String,
    /// The next number of each open list; none for one without numbers.
    lists: Vec<Option<u64>>,
    /// The marks of the open items; empty once they were written.
    items: Vec<(String, bool)>,
    quotes: usize,
    table: Option<Table>,
    code: Option<(Highlighter, String)>,
}

/// True if the text of a link looks like an address, and not like its target.
fn names_another(text: &str, target: &str) -> bool {
    let bare = |address: &str| {
        let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
        rest.trim_start_matches("www.").trim_end_matches('/').to_lowercase()
    };
    let word = text.trim();
    let looks_so = word.contains("://")
        || (!word.contains(char::is_whitespace)
            && word.split('/').next().is_some_and(|host| host.trim_matches('.').contains('.')));
    looks_so && bare(word) != bare(target)
}

impl Writer<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.piece(&text, self.style()),
            },
            Event::Code(text) => self.piece(&text, self.style().patch(self.look.code)),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.piece(&text, self.style()),
            Event::Html(text) | Event::InlineHtml(text) => {
                for (at, line) in text.split('\n').enumerate() {
                    if at > 0 {
                        self.flush();
                    }
                    self.piece(line, self.style());
                }
            }
            Event::FootnoteReference(name) => self.piece(&format!("[{name}]"), self.style()),
            Event::SoftBreak => self.piece(" ", self.style()),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.flush();
                let line = "─".repeat(self.width.min(40));
                self.rows.push(Row::new(&line, self.look.dim));
                self.rows.push(Row::default());
            }
            Event::TaskListMarker(done) => {
                self.piece(if done { "[x] " } else { "[ ] " }, self.style());
            }
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or(self.look.text)
    }

    fn piece(&mut self, text: &str, style: Style) {
        if self.link.is_some() {
            self.link_text.push_str(text);
        }
        let piece = Piece { link: self.link.clone(), ..Piece::new(text, style) };
        match self.table.as_mut().and_then(|table| table.row.last_mut()) {
            Some(cell) => cell.push(piece),
            None => self.line.push(piece),
        }
    }

    fn styled(&mut self, style: Style) {
        let style = self.style().patch(style);
        self.styles.push(style);
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => {
                self.flush();
                self.styled(self.look.heading);
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.quotes += 1;
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                let code = Highlighter::of_language(&language, self.look);
                self.code = Some((code, String::new()));
            }
            Tag::List(first) => {
                self.flush();
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    Some(None) | None => "• ".to_owned(),
                };
                self.items.push((mark, false));
            }
            Tag::Table(_) => {
                self.flush();
                self.table = Some(Table::default());
            }
            Tag::TableCell => {
                if let Some(table) = &mut self.table {
                    table.row.push(Vec::new());
                }
            }
            Tag::Emphasis => self.styled(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.styled(Style::new().add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => self.styled(Style::new().add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.styled(self.look.link);
                self.link = Some(protocol::hidden::on_screen(&dest_url).into());
                self.link_text.clear();
            }
            Tag::TableHead => self.styled(self.look.bold()),
            Tag::Paragraph
            | Tag::TableRow
            | Tag::HtmlBlock
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.flush();
                if self.lists.is_empty() {
                    self.rows.push(Row::default());
                }
            }
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.flush();
                self.rows.push(Row::default());
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::CodeBlock => {
                if let Some((mut code, text)) = self.code.take() {
                    let (first, _) = self.prefix();
                    let width = self.width.saturating_sub(first.width()).max(8);
                    let rows = code_rows(&text, Some(&mut code), width, self.look);
                    let indent = " ".repeat(first.width());
                    self.rows
                        .extend(rows.into_iter().map(|row| row.behind(&indent, self.look.text)));
                    self.rows.push(Row::default());
                }
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                if self.lists.is_empty() {
                    self.rows.push(Row::default());
                }
            }
            TagEnd::Item => {
                self.flush();
                self.items.pop();
            }
            TagEnd::TableRow | TagEnd::TableHead => {
                if tag == TagEnd::TableHead {
                    self.styles.pop();
                }
                if let Some(table) = &mut self.table {
                    let row = std::mem::take(&mut table.row);
                    table.rows.push(row);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.rows.extend(table_rows(table, self.width, self.look));
                    self.rows.push(Row::default());
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                // A text that looks like another address would hide where the link leads.
                let target = self.link.take();
                if let Some(target) = target.filter(|it| names_another(&self.link_text, it)) {
                    self.piece(&format!(" ({target})"), self.look.dim);
                }
            }
            TagEnd::HtmlBlock => {
                self.flush();
                self.rows.push(Row::default());
            }
            TagEnd::TableCell
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    /// What stands before the first row of a paragraph, and before the others.
    fn prefix(&self) -> (String, String) {
        let quote = "│ ".repeat(self.quotes);
        let (mut first, mut other) = (quote.clone(), quote);
        for (mark, written) in &self.items {
            let indent = " ".repeat(mark.width());
            first.push_str(if *written { &indent } else { mark });
            other.push_str(&indent);
        }
        (first, other)
    }

    fn flush(&mut self) {
        if self.line.is_empty() {
            return;
        }
        let (first, other) = self.prefix();
        for item in &mut self.items {
            item.1 = true;
        }
        let mut pieces = vec![Piece::new(&first, self.look.dim)];
        pieces.append(&mut self.line);
        let mut rows = wrap(&pieces, self.width.min(PROSE), &Piece::new(&other, self.look.dim));
        if let Some(row) = rows.first_mut() {
            // The bars of a quote are no text; the mark of an item is.
            row.margin = 2 * self.quotes;
        }
        self.rows.extend(rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_link_whose_text_is_another_address_shows_its_target() {
        let shown = |text: &str| {
            let rows = prose(text, 200, &Theme::ansi());
            rows.iter().map(Row::text).collect::<Vec<_>>().join("\n")
        };
        let text = shown("[https://bank.example](https://evil.example/x)");
        assert!(text.contains("https://bank.example (https://evil.example/x)"), "{text}");
        assert!(shown("[bank.example](https://evil.example)").contains("(https://evil.example)"));
        for fine in ["[the docs](https://a.example)", "[a.example/](https://www.a.example)"] {
            assert!(!shown(fine).contains("(http"), "{fine}");
        }
    }

    const SAMPLE: &str = "# Title\n\nSome *words* and `code`, [a link](https://example.org/x).\n\n- one\n- two\n  1. deep\n\n> said\n\n```rust\nlet a = 1;\n\nlet b = 2;\n```\n\n| a | b |\n|---|---|\n| 1 | two words |\n\nLast.\n";

    fn shown(markdown: &mut Markdown, width: usize) -> Vec<String> {
        let rows = markdown.rows(width, "", &Theme::ansi());
        rows.iter().map(|row| row.text().trim_end().to_owned()).collect()
    }

    #[test]
    fn markdown_is_shown_as_what_it_says() {
        let rows = shown(&mut Markdown::new(SAMPLE.to_owned()), 60);
        assert_eq!(
            rows,
            [
                "Title",
                "",
                "Some words and code, a link.",
                "",
                "• one",
                "• two",
                "  1. deep",
                "",
                "│ said",
                "",
                "  let a = 1;",
                "",
                "  let b = 2;",
                "",
                "a │ b",
                "──┼──────────",
                "1 │ two words",
                "",
                "Last."
            ]
        );
        let rows = Markdown::new(SAMPLE.to_owned()).rows(60, "", &Theme::ansi());
        let links: Vec<_> = rows
            .iter()
            .flat_map(|row| &row.pieces)
            .filter_map(|piece| piece.link.clone())
            .collect();
        assert_eq!(links, ["https://example.org/x".into()]);
    }

    #[test]
    fn a_closing_fence_at_the_end_of_the_text_is_no_code() {
        let mut open = Markdown::new("```sh\nls\n".to_owned());
        assert_eq!(open.rows(60, "``", &Theme::ansi()).len(), 2, "not closed yet");
        for close in ["```", "  ```", "`````"] {
            let mut text = Markdown::new(format!("```sh\nls\n{close}"));
            assert_eq!(shown(&mut text, 60), ["  ls"], "{close}");
        }
    }

    proptest! {
        /// A text that came in pieces looks as if it had come at once.
        #[test]
        fn pieces_do_not_matter(cuts in proptest::collection::vec(0usize..SAMPLE.len(), 0..12), width in 12usize..90) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|at| SAMPLE.is_char_boundary(*at)).collect();
            cuts.sort_unstable();
            let mut streamed = Markdown::new(String::new());
            let mut from = 0;
            for cut in cuts.into_iter().chain([SAMPLE.len()]) {
                streamed.push(&SAMPLE[from..cut]);
                from = cut;
                shown(&mut streamed, width);
            }
            prop_assert_eq!(shown(&mut streamed, width), shown(&mut Markdown::new(SAMPLE.to_owned()), width));
        }

        /// Any text is shown, in rows that fit.
        #[test]
        fn any_text_fits(text in "[-#*`>|~\\[\\]() \\n0-9a-zäé日👩‍👧\\t\u{7}]{0,200}", width in 10usize..50) {
            for row in Markdown::new(text).rows(width, "", &Theme::ansi()) {
                prop_assert!(row.width() <= width, "{:?}", row.text());
            }
        }
    }
}
