//! `edit`: one exact piece of a file replaced by another.

use crate::arguments::dialect::{ArgMeaning::Field, FieldAliases};
use crate::arguments::facts::JudgedFacts;
use crate::edit::edit_buffer::{EditBuffer, SearchText};
use crate::edit::find_replace;
use crate::edit::replace::{OriginalFile, replace};
use crate::failure::{FailureCode, ToolFailure};
use crate::files::precondition;
use crate::files::target_path::TargetPath;
use crate::spec::{Alias, Tool};
use crate::text::diff;
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::call::FileEffect;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct EditTool;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The file, relative to the project directory or absolute.
    path: String,
    /// The text to replace, exactly as in the file, including white space, without line numbers. It
    /// must occur once, unless replace_all is set.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl Tool for EditTool {
    type Input = Input;
    const NAME: &'static str = "edit";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Mutate;
    const REQUIRES_READ: bool = true;
    const DESCRIPTION: &'static str = "Replace text in a file. old_string must match exactly, including white space, and \
        occur only once unless replace_all is set; include surrounding lines to make it \
        unique.";
    const ALIASES: &'static [Alias] = &[
        Alias::plain("edit_file"),
        Alias::plain("str_replace"),
        Alias::plain("file-edit"),
        Alias::plain("replace"),
        Alias::plain("search_replace"),
        // One tool for all that an editor does.
        Alias::plain("str_replace_editor"),
        Alias::plain("str_replace_based_edit_tool"),
        Alias::plain("text_editor"),
    ];
    const EXAMPLE: &'static str = r#"{"path":"notes.md","old_string":"one","new_string":"two"}"#;
    const FIELD_ALIASES: FieldAliases = &[
        ("old_str", Field("old_string")),
        ("old_text", Field("old_string")),
        ("find", Field("old_string")),
        ("search", Field("old_string")),
        ("before", Field("old_string")),
        ("new_str", Field("new_string")),
        ("new_text", Field("new_string")),
        ("replace", Field("new_string")),
        ("replacement", Field("new_string")),
        ("after", Field("new_string")),
        ("allow_multiple", Field("replace_all")),
    ];

    fn facts(input: &Input) -> JudgedFacts {
        JudgedFacts { paths: vec![input.path.clone()], ..JudgedFacts::default() }
    }

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
