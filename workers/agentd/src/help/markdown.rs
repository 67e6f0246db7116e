//! Markdown of a help topic as blocks: headings, paragraphs, list items, code, tables. Pure.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Text of a block: plain text and code spans in turn.
pub(crate) type InlineText = Vec<PageSpan>;

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageSpan {
    Text(String),
    Code(String),
}

/// A block of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageBlock {
    /// The title of the page.
    Title(InlineText),
    Heading(InlineText),
    Paragraph(InlineText),
    /// An item of a list, by its depth from 0.
    Item(usize, InlineText),
    /// Lines that stay as they are.
    Code(String),
    Table(Table),
}

/// A table: its header and its rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) header: Vec<InlineText>,
    pub(crate) rows: Vec<Vec<InlineText>>,
}

/// The text with code spans in backticks.
pub(crate) fn plain(inline: &[PageSpan]) -> String {
    let text = inline.iter().map(|span| match span {
        PageSpan::Text(text) => text.clone(),
        PageSpan::Code(code) => format!("`{code}`"),
    });
    text.collect()
}

/// Reads a page.
pub(crate) fn parse(markdown: &str) -> Vec<PageBlock> {
    let mut reader = MarkdownReader::default();
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        reader.take(event);
    }
    reader.blocks
}

#[derive(Default)]
struct MarkdownReader {
    blocks: Vec<PageBlock>,
    inline: InlineText,
    /// Lists that are open.
    lists: usize,
    code: Option<String>,
    table: Table,
    row: Vec<InlineText>,
}

impl MarkdownReader {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.inline.push(PageSpan::Text(text.into_string())),
            },
            Event::Code(code) => self.inline.push(PageSpan::Code(code.into_string())),
            Event::SoftBreak | Event::HardBreak => self.inline.push(PageSpan::Text(" ".to_owned())),
            // Not used in topics.
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
                self.blocks.push(PageBlock::Title(text));
            }
            TagEnd::Heading(_) => {
                let text = std::mem::take(&mut self.inline);
                self.blocks.push(PageBlock::Heading(text));
            }
            TagEnd::Paragraph if self.lists == 0 => {
                let text = std::mem::take(&mut self.inline);
                self.blocks.push(PageBlock::Paragraph(text));
            }
            TagEnd::Item => self.end_item(),
            TagEnd::List(_) => self.lists = self.lists.saturating_sub(1),
            TagEnd::CodeBlock => {
                let code = self.code.take().unwrap_or_default();
                self.blocks.push(PageBlock::Code(code));
            }
            TagEnd::TableCell => self.row.push(std::mem::take(&mut self.inline)),
            TagEnd::TableHead => self.table.header = std::mem::take(&mut self.row),
            TagEnd::TableRow => self.table.rows.push(std::mem::take(&mut self.row)),
            TagEnd::Table => self.blocks.push(PageBlock::Table(std::mem::take(&mut self.table))),
            _ => {}
        }
    }

    fn end_item(&mut self) {
        if !self.inline.is_empty() {
            let text = std::mem::take(&mut self.inline);
            self.blocks.push(PageBlock::Item(self.lists.saturating_sub(1), text));
        }
    }
}
