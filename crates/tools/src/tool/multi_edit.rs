//! `multi_edit`: replaces several pieces of one file together, or none of them.

use crate::edit::edit_buffer::{EditBuffer, SearchText};
use crate::edit::find_replace::{Replacement, TextSpan, alike_note, apply_replacements};
use crate::edit::replace::replace;
use crate::failure::{FailureCode, ToolFailure};
use crate::files::precondition;
use crate::spec::Tool;
use crate::text::diff;
use crate::tool_context::ToolContext;
use protocol::call::FileEffect;
use tool_specs::ToolAnswer;
use tool_specs::tool::multi_edit::{EditItem, Input, MultiEditTool};

/// Most edits of one call.
const EDITS: usize = 200;

impl Tool for MultiEditTool {
    fn preview(input: Input, ctx: &ToolContext<'_>) -> Result<String, ToolFailure> {
        let (draft, new, ..) = edited(&input, ctx)?;
        Ok(diff::unified(&ctx.shown(&draft.target.real), &draft.old, &new))
    }

    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let (draft, new, lines, notes) = edited(&input, ctx)?;
        let shown = ctx.shown(&draft.target.real);
        let diff = diff::unified(&shown, &draft.old, &new);
        ctx.check_cancelled()?;
        replace(&draft.target, Some(&draft.before), new.as_bytes())?;
        ctx.record_version(&draft.target, precondition::digest(new.as_bytes()));
        let count = match lines.as_slice() {
            [only] => format!("line {only}"),
            several => format!("{} places", several.len()),
        };
        let effects = vec![FileEffect::Written(draft.target.recorded())];
        let summary = format!("edited {shown}: {count}");
        let footer = notes;
        Ok(ToolAnswer {
            footer,
            ..ToolAnswer::done(format!("{summary}\n{diff}"), summary, effects)
        })
    }
}

/// The file, its new text, the lines at which something is replaced, and notes.
fn edited(
    input: &Input,
    ctx: &ToolContext<'_>,
) -> Result<(EditBuffer, String, Vec<usize>, Vec<String>), ToolFailure> {
    if input.edits.is_empty() {
        return Err(invalid("edits is empty", "Give at least one edit."));
    }
    if input.edits.len() > EDITS {
        let text = format!("{} edits, but at most {EDITS} are allowed", input.edits.len());
        return Err(invalid(&text, "Split them over several calls."));
    }
    let draft = EditBuffer::open(&input.path, ctx)?;
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    for (at, edit) in input.edits.iter().enumerate() {
        found.extend(located((at, edit), &draft, &mut notes)?.into_iter().map(|place| (at, place)));
    }
    found.sort_by_key(|(at, exchange)| (exchange.start(), *at));
    for pair in found.windows(2) {
        if let [(a, one), (b, other)] = pair
            && one.overlaps(other)
        {
            return Err(ToolFailure::new(
                FailureCode::Overlap,
                format!(
                    "edits[{a}] (line {}) and edits[{b}] (line {}) replace the same text",
                    one.line(&draft.old),
                    other.line(&draft.old)
                ),
                "Nothing was changed. Combine both into one edit.",
            ));
        }
    }
    let exchanges: Vec<Replacement> = found.into_iter().map(|(_, exchange)| exchange).collect();
    let new = apply_replacements(&draft.old, &exchanges);
    if new == draft.old {
        return Err(invalid("the edits change nothing", "Edits keep the file's line endings."));
    }
    if new.trim().is_empty() && !draft.old.trim().is_empty() {
        return Err(invalid(
            "the edits would empty the whole file",
            "Use write to replace its whole content, or delete to remove it.",
        ));
    }
    let lines = exchanges.iter().map(|exchange| exchange.line(&draft.old)).collect();
    Ok((draft, new, lines, notes))
}

/// Where one edit replaces, in the file as it is.
fn located(
    (at, edit): (usize, &EditItem),
    draft: &EditBuffer,
    notes: &mut Vec<String>,
) -> Result<Vec<Replacement>, ToolFailure> {
    let wrong = |what: &str, hint: &str| Err(invalid(&format!("edits[{at}]{what}"), hint));
    match (&edit.find, edit.start_line, edit.end_line) {
        (Some(find), None, None) => {
            if find.is_empty() {
                return wrong(".find is empty", "Give the text to replace, or its lines.");
            }
            let field = format!("edits[{at}].find");
            let piece = SearchText { field: &field, text: find };
            let hint = "Include more surrounding lines, use start_line and end_line, or set \
                replace_all.";
            let places = match edit.replace_all {
                true => draft.all(piece)?,
                false => vec![draft.only(piece, hint)?],
            };
            if !places.iter().all(|place| place.is_exact(&draft.old, find)) {
                notes.push(alike_note(&field));
            }
            let exchange = |place| Replacement::of_piece(&draft.old, place, find, &edit.replace);
            Ok(places.into_iter().map(exchange).collect())
        }
        (None, Some(first), Some(last)) => {
            if last < first {
                return wrong(
                    &format!(": end_line {last} comes before start_line {first}"),
                    "To add lines, replace a line with itself and the new lines.",
                );
            }
            match TextSpan::lines(&draft.old, first, last) {
                Ok(place) => Ok(vec![Replacement::of_lines(&draft.old, place, &edit.replace)]),
                Err(count) => Err(ToolFailure::new(
                    FailureCode::PastEnd,
                    format!(
                        "edits[{at}]: lines {first} to {last} go past the end; {:?} has {count} \
                         lines",
                        draft.target.named
                    ),
                    "Nothing was changed. Read the file again.",
                )),
            }
        }
        (None, None, None) => {
            wrong(" has neither find nor lines", "Give find, or start_line and end_line.")
        }
        (None, Some(_), None) => wrong(" has no end_line", "Give both lines; they may be equal."),
        (None, None, Some(_)) => wrong(" has no start_line", "Give both lines; they may be equal."),
        (Some(_), Some(_), _) | (Some(_), None, Some(_)) => {
            wrong(" has both find and lines", "Give only one of them.")
        }
    }
}

fn invalid(text: &str, hint: &str) -> ToolFailure {
    ToolFailure::new(FailureCode::InvalidArguments, text, hint)
}
