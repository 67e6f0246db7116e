//! `summary`: the outline of a file, from its syntax tree.

use crate::engine::syntax::Outline;
use crate::failure::ToolFailure;
use crate::files::source_text;
use crate::spec::Tool;
use crate::text::lines::cut_line;
use crate::tool_context::ToolContext;
use protocol::call::FileEffect;
use protocol::hidden::line_for_model;
use tool_specs::ToolAnswer;
use tool_specs::tool::summary::{Input, SummaryTool};

/// More entries are counted, not listed.
const ENTRIES: usize = 500;
/// Most characters of an entry.
const ENTRY_CHARS: usize = 200;
/// Lines shown of a file that has no outline.
const FIRST: usize = 20;

impl Tool for SummaryTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let target = ctx.existing(&input.path)?;
        let text = source_text::read_named(&target, &ctx.extras.read_set)?;
        ctx.check_cancelled()?;
        let syntax = ctx.syntax()?;
        let (lines, bytes) = (text.lines().count(), text.len());
        let outline = syntax.outline(&target.real, &text);
        let shown = ctx.shown(&target.real);
        let kind = outline.as_ref().map_or("text", |outline| outline.language);
        let head = format!("{shown}: {kind}, {lines} lines, {bytes} bytes\n");
        let summary = format!("{shown}: {kind}, {lines} lines");
        let effects = vec![FileEffect::Read(target.recorded())];
        match outline {
            Some(outline) if !outline.entries.is_empty() => {
                let mut answer = ToolAnswer::done(head + &listed(&outline), summary, effects);
                answer.how_to_get_more = "read the file with offset and limit".into();
                answer.footer = notes(&outline);
                Ok(answer)
            }
            Some(_) | None => {
                let first: Vec<String> =
                    text.lines().take(FIRST).map(|line| cut_line(line, ENTRY_CHARS, 0)).collect();
                let mut answer = ToolAnswer::done(head + &first.join("\n"), summary, effects);
                if lines > FIRST {
                    let more = lines - FIRST;
                    answer.footer.push(format!("[the first {FIRST} lines; {more} not shown]"));
                }
                Ok(answer)
            }
        }
    }
}

fn listed(outline: &Outline) -> String {
    let entries = outline.entries.iter().take(ENTRIES).map(|entry| {
        let lines = match entry.last > entry.line {
            true => format!("{}-{}", entry.line, entry.last),
            false => entry.line.to_string(),
        };
        let text = cut_line(&line_for_model(&entry.text), ENTRY_CHARS, 0);
        format!("{lines}\t{}{text}", "  ".repeat(entry.depth))
    });
    entries.collect::<Vec<_>>().join("\n")
}

fn notes(outline: &Outline) -> Vec<String> {
    let mut notes = Vec::new();
    if outline.entries.len() > ENTRIES {
        let (all, more) = (outline.entries.len(), outline.entries.len() - ENTRIES);
        notes.push(format!("[{ENTRIES} of {all} entries; {more} not shown, find them with scan]"));
    }
    if outline.errors {
        let language = outline.language;
        notes.push(format!(
            "[parts of the file are not valid {language}; the outline may be incomplete]"
        ));
    }
    notes
}
