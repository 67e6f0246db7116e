//! Markdown of a help topic as blocks: headings, paragraphs, list items, code, tables. Pure.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Text of a block: plain text and code spans in turn.
pub(crate) type Inline = Vec<Span>;

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Span {
    Text(String),
    Code(String),
}

/// A block of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Block {
    /// The title of the page.
    Title(Inline),
    Heading(Inline),
    Paragraph(Inline),
    /// An item of a list, by its depth from 0.
    Item(usize, Inline),
    /// Lines that stay as they are.
    Code(String),
    Table(Table),
}

/// A table: its header and its rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) header: Vec<Inline>,
    pub(crate) rows: Vec<Vec<Inline>>,
}

/// The text with code spans in backticks.
pub(crate) fn plain(inline: &[Span]) -> String {
    let text = inline.iter().map(|span| match span {
        Span::Text(text) => text.clone(),
        Span::Code(code) => format!("`{code}`"),
    });
    text.collect()
}

/// Reads a page.
pub(crate) fn parse(markdown: &str) -> Vec<Block> {
    let mut reader = Reader::default();
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        reader.take(event);
    }
    reader.blocks
}

#[derive(Default)]
struct Reader {
    blocks: Vec<Block>,
    inline: Inline,
    /// Lists that are open.
    lists: usize,
    code: Option<String>,
    table: Table,
    row: Vec<Inline>,
}

impl Reader {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.inline.push(Span::Text(text.into_string())),
            },
            Event::Code(code) => self.inline.push(Span::Code(code.into_string())),
            Event::SoftBreak | Event::HardBreak => self.inline.push(Span::Text(" ".to_owned())),
            // The topics have none of these.
            Event::Html(_)
            | Event::InlineHtml(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_)
            | Event::Rule
            | Event::TaskListMarker(_) => {}
        }
    }

    #[allow(clippy::wildcard_enum_match_arm)]
    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::List(_) => {
                // The text of the item that this list is part of.
                self.end_item();
                self.lists += 1;
            }
            Tag::CodeBlock(_) => self.code = Some(String::new()),
            Tag::Table(_) => self.table = Table::default(),
            _ => {}
        }
    }

    #[allow(clippy::wildcard_enum_match_arm)]
    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(HeadingLevel::H1) => {
                let text = std::mem::take(&mut self.inline);
                self.blocks.push(Block::Title(text));
            }
            TagEnd::Heading(_) => {
                let text = std::mem::take(&mut self.inline);
                self.blocks.push(Block::Heading(text));
            }
            TagEnd::Paragraph if self.lists == 0 => {
                let text = std::mem::take(&mut self.inline);
                self.blocks.push(Block::Paragraph(text));
            }
            TagEnd::Item => self.end_item(),
            TagEnd::List(_) => self.lists = self.lists.saturating_sub(1),
            TagEnd::CodeBlock => {
                let code = self.code.take().unwrap_or_default();
                self.blocks.push(Block::Code(code));
            }
            TagEnd::TableCell => self.row.push(std::mem::take(&mut self.inline)),
            TagEnd::TableHead => self.table.header = std::mem::take(&mut self.row),
            TagEnd::TableRow => self.table.rows.push(std::mem::take(&mut self.row)),
            TagEnd::Table => self.blocks.push(Block::Table(std::mem::take(&mut self.table))),
            _ => {}
        }
    }

    fn end_item(&mut self) {
        if !self.inline.is_empty() {
            let text = std::mem::take(&mut self.inline);
            self.blocks.push(Block::Item(self.lists.saturating_sub(1), text));
        }
    }
}
