//! `multi_edit`: replaces several pieces of one file together, or none of them.

use crate::arguments::dialect::{ArgMeaning::Field, FieldAliases};
use crate::arguments::facts::JudgedFacts;
use crate::edit::edit_buffer::{EditBuffer, SearchText};
use crate::edit::find_replace::{Replacement, TextSpan, alike_note, apply_replacements};
use crate::edit::replace::replace;
use crate::failure::{FailureCode, ToolFailure};
use crate::files::precondition;
use crate::rule_target::{Inherit, InheritedRules};
use crate::spec::{Alias, Tool};
use crate::text::diff;
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::call::FileEffect;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most edits of one call.
const EDITS: usize = 200;

pub(super) struct MultiEditTool;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The file, relative to the project directory or absolute.
    path: String,
    /// The edits. All are located in the file as it is now, so their order does not matter and line
    /// numbers do not shift; none may overlap another.
    edits: Vec<EditItem>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(super) struct EditItem {
    /// The text to replace, exactly as in the file; it must occur once. Either this, or start_line
    /// and end_line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    find: Option<String>,
    /// The first line to replace, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    start_line: Option<usize>,
    /// The last line to replace, itself included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    end_line: Option<usize>,
    /// The replacement; empty deletes the text.
    replace: String,
    /// Replace every occurrence of find.
    #[serde(default, skip_serializing_if = "is_unset")]
    replace_all: bool,
}

fn is_unset(flag: &bool) -> bool {
    !flag
}

impl Tool for MultiEditTool {
    type Input = Input;
    const NAME: &'static str = "multi_edit";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Mutate;
    const REQUIRES_READ: bool = true;
    const DESCRIPTION: &'static str = "Make several edits in one file: either all are made or none. Each edit gives the exact \
        text to find, or the lines from start_line to end_line, and the replacement.";
    const ALIASES: &'static [Alias] =
        &[Alias::plain("edit_lines"), Alias::plain("multi_edit_file")];
    const LIMITS: &'static str = "At most 200 edits.";
    const EXAMPLE: &'static str = r#"{"path":"notes.md","edits":[{"find":"one","replace":"two"}]}"#;
    const FIELD_ALIASES: FieldAliases = &[
        ("edits.old_string", Field("find")),
        ("edits.old_str", Field("find")),
        ("edits.old_text", Field("find")),
        ("edits.search", Field("find")),
        ("edits.new_string", Field("replace")),
        ("edits.new_str", Field("replace")),
        ("edits.new_text", Field("replace")),
        ("edits.replacement", Field("replace")),
    ];
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("edit", Inherit::All)];

    fn facts(input: &Input) -> JudgedFacts {
        JudgedFacts { paths: vec![input.path.clone()], ..JudgedFacts::default() }
    }

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
