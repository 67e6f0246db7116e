//! `edit`: one exact piece of a file replaced by another.

use crate::edit::edit_buffer::{EditBuffer, SearchText};
use crate::edit::find_replace;
use crate::edit::replace::{OriginalFile, replace};
use crate::failure::{FailureCode, ToolFailure};
use crate::files::precondition;
use crate::files::target_path::TargetPath;
use crate::spec::Tool;
use crate::text::diff;
use crate::tool_context::ToolContext;
use protocol::call::FileEffect;
use tool_specs::ToolAnswer;
use tool_specs::tool::edit::{EditTool, Input};

impl Tool for EditTool {
    fn preview(input: Input, ctx: &ToolContext<'_>) -> Result<String, ToolFailure> {
        let change = LocatedEdit::find(&input, ctx)?;
        Ok(diff::unified(&ctx.shown(&change.target.real), &change.old, &change.new))
    }

    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let change = LocatedEdit::find(&input, ctx)?;
        let shown = ctx.shown(&change.target.real);
        let diff = diff::unified(&shown, &change.old, &change.new);
        ctx.check_cancelled()?;
        replace(&change.target, Some(&change.before), change.new.as_bytes())?;
        ctx.record_version(&change.target, precondition::digest(change.new.as_bytes()));
        let places = change.lines.len();
        let count = if places == 1 {
            format!("line {}", change.lines[0])
        } else {
            format!("{places} places")
        };
        let body = format!("edited {shown}: {count}\n{diff}");
        let effects = vec![FileEffect::Written(change.target.recorded())];
        let mut answer = ToolAnswer::done(body, format!("edited {shown}: {count}"), effects);
        answer.footer.extend(change.is_alike.then(|| find_replace::alike_note("old_string")));
        Ok(answer)
    }
}

/// An edit that has found its place.
struct LocatedEdit {
    target: TargetPath,
    before: OriginalFile,
    old: String,
    new: String,
    /// The lines at which pieces are replaced, counted from 1.
    lines: Vec<usize>,
    /// The piece was found in another form only.
    is_alike: bool,
}

impl LocatedEdit {
    fn find(input: &Input, ctx: &ToolContext<'_>) -> Result<Self, ToolFailure> {
        let invalid = |text: &str, hint: &str| {
            Err(ToolFailure::new(FailureCode::InvalidArguments, text, hint))
        };
        if input.old_string.is_empty() {
            return invalid(
                "old_string is empty",
                "Use write to create a file or to replace its whole content.",
            );
        }
        if input.old_string == input.new_string {
            return invalid(
                "old_string and new_string are the same",
                "There is nothing to change.",
            );
        }
        let draft = EditBuffer::open(&input.path, ctx)?;
        let piece = SearchText { field: "old_string", text: &input.old_string };
        let found = if input.replace_all {
            draft.all(piece)?
        } else {
            vec![draft.only(piece, "Include more surrounding lines, or set replace_all.")?]
        };
        let EditBuffer { target, before, old } = draft;
        let lines = found.iter().map(|passage| passage.line(&old)).collect();
        let is_alike = !found.iter().all(|place| place.is_exact(&old, &input.old_string));
        let new = find_replace::replace_spans(&old, &found, &input.old_string, &input.new_string);
        if new == old {
            return invalid("the edit changes nothing", "Edits keep the file's line endings.");
        }
        Ok(Self { target, before, old, new, lines, is_alike })
    }
}
