//! A help topic as a manual page, in roff. Pure.

use super::markdown::{InlineText, PageBlock, PageSpan, Table, parse, plain};
use super::{Topic, markdown_of};
use roff::{Roff, bold, roman};

/// The whole page of a topic.
pub(crate) fn page(topic: &Topic) -> String {
    let title = format!("agentd-{}", topic.name);
    let mut page = Roff::new();
    page.control("TH", [title.as_str(), "7"]);
    write(&mut page, topic);
    page.render()
}

/// The topic as sections, to follow another page.
pub(crate) fn sections(topic: &Topic) -> String {
    let mut page = Roff::new();
    write(&mut page, topic);
    page.to_roff()
}

fn write(page: &mut Roff, topic: &Topic) {
    for block in parse(&markdown_of(topic)) {
        match block {
            PageBlock::Title(title) => {
                page.control("SH", [plain(&title).to_uppercase().as_str()]);
            }
            PageBlock::Heading(heading) => {
                page.control("SS", [plain(&heading).as_str()]);
            }
            PageBlock::Paragraph(text) => {
                page.control("PP", []);
                page.text(inlines(&text));
            }
            PageBlock::Item(_, text) => {
                page.control("IP", ["\\(bu", "2"]);
                page.text(inlines(&text));
            }
            PageBlock::Code(code) => {
                page.control("PP", []);
                page.control("nf", []);
                for line in code.lines() {
                    page.text([roman(line)]);
                }
                page.control("fi", []);
            }
            PageBlock::Table(table) => rows(page, &table),
        }
    }
}

/// Each row as a tagged paragraph: the first cell is the tag.
fn rows(page: &mut Roff, table: &Table) {
    for row in &table.rows {
        let Some((first, others)) = row.split_first() else { continue };
        page.control("TP", []);
        page.text(inlines(first));
        for (cell, name) in others.iter().zip(table.header.iter().skip(1)) {
            let mut text = inlines(cell);
            if others.len() > 1 {
                text.insert(0, roman(format!("{}: ", plain(name))));
            }
            page.text(text);
            if others.len() > 1 {
                page.control("br", []);
            }
        }
    }
}

/// Code in bold.
fn inlines(text: &InlineText) -> Vec<roff::Inline> {
    let spans = text.iter().map(|span| match span {
        PageSpan::Text(text) => roman(text.as_str()),
        PageSpan::Code(code) => bold(code.as_str()),
    });
    spans.collect()
}
