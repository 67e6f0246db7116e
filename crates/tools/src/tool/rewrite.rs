//! `rewrite`: a file edited by its syntax tree, all edits together or none.

use super::scan::unsupported;
use crate::edit::edit_buffer::EditBuffer;
use crate::edit::find_replace::{Replacement, apply_replacements};
use crate::edit::replace::replace;
use crate::engine::syntax::{FindBy, TextEdit, TreeEdit};
use crate::failure::{FailureCode, ToolFailure};
use crate::files::precondition;
use crate::files::source_text::SOURCE_MAX;
use crate::spec::Tool;
use crate::text::diff;
use crate::tool_context::ToolContext;
use protocol::call::FileEffect;
use std::collections::BTreeSet;
use tool_specs::ToolAnswer;
use tool_specs::tool::rewrite::{CodeReplacement, Input, RewriteTool, SyntaxEdit};

/// Most edits of one call.
const EDITS: usize = 50;
/// Most symbols that are named.
const SYMBOLS: usize = 20;

impl Tool for RewriteTool {
    fn preview(input: Input, ctx: &ToolContext<'_>) -> Result<String, ToolFailure> {
        let change = edited(input, ctx)?;
        Ok(diff::unified(&ctx.shown(&change.draft.target.real), &change.draft.old, &change.new))
    }

    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let RewrittenFile { draft, new, places, symbols, left_inside } = edited(input, ctx)?;
        let shown = ctx.shown(&draft.target.real);
        let diff = diff::unified(&shown, &draft.old, &new);
        ctx.check_cancelled()?;
        replace(&draft.target, Some(&draft.before), new.as_bytes())?;
        ctx.record_version(&draft.target, precondition::digest(new.as_bytes()));
        let count = if places == 1 { "1 place".to_owned() } else { format!("{places} places") };
        let summary = format!("rewrote {shown}: {count}");
        let body = format!("{summary}{}\n{diff}", in_words(&symbols));
        let effects = vec![FileEffect::Written(draft.target.recorded())];
        let mut answer = ToolAnswer::done(body, summary, effects);
        if left_inside > 0 {
            answer.footer.push(format!(
                "[{left_inside} more matches are inside replaced ones and were not changed; \
                    repeat the edit for them]"
            ));
        }
        Ok(answer)
    }
}

struct RewrittenFile {
    draft: EditBuffer,
    new: String,
    places: usize,
    symbols: BTreeSet<String>,
    left_inside: usize,
}

fn edited(input: Input, ctx: &ToolContext<'_>) -> Result<RewrittenFile, ToolFailure> {
    let syntax = ctx.syntax()?;
    if input.edits.is_empty() || input.edits.len() > EDITS {
        let text = format!("edits has {} edits", input.edits.len());
        return Err(invalid(&text, &format!("Give at least one and at most {EDITS}.")));
    }
    let draft = EditBuffer::open(&input.path, ctx)?;
    let Some(language) = syntax.language_of_file(&draft.target.real) else {
        return Err(unsupported(syntax, &format!("{:?}", draft.target.named)));
    };
    if draft.old.len() as u64 > SOURCE_MAX {
        let text = format!("{:?} is too large for a syntax tree", draft.target.named);
        return Err(ToolFailure::new(FailureCode::TooLarge, text, "Use edit."));
    }
    let mut found: Vec<(usize, TextEdit)> = Vec::new();
    let mut left_inside = 0;
    for (at, edit) in input.edits.into_iter().enumerate() {
        let edit = meant(at, edit)?;
        ctx.check_cancelled()?;
        let placed = syntax
            .places(language, &draft.old, &edit)
            .map_err(|misfit| EditError(at, misfit).failure())?;
        left_inside += placed.left_inside;
        found.extend(placed.pieces.into_iter().map(|piece| (at, piece)));
    }
    found.sort_by_key(|(at, piece)| (piece.place.start, *at));
    for pair in found.windows(2) {
        if let [(a, one), (b, other)] = pair
            && other.place.start < one.place.end
        {
            let line = draft.old[..other.place.start].matches('\n').count() + 1;
            return Err(ToolFailure::new(
                FailureCode::Overlap,
                format!("edits[{a}] and edits[{b}] change the same code, at line {line}"),
                "Nothing was changed. Make them in two calls.",
            ));
        }
    }
    let symbols = found
        .iter()
        .map(|(_, piece)| piece.symbol.clone())
        .filter(|name| !name.is_empty())
        .collect();
    let places = found.len();
    let exchanges: Vec<Replacement> =
        found.into_iter().map(|(_, piece)| Replacement::of_bytes(piece.place, piece.new)).collect();
    let new = apply_replacements(&draft.old, &exchanges);
    if new == draft.old {
        return Err(invalid(
            "the edits change nothing",
            "The file already has the result of these edits.",
        ));
    }
    if let Some(line) = syntax.first_syntax_error(language, &draft.old, &new) {
        return Err(ToolFailure::new(
            FailureCode::BrokenSyntax,
            format!(
                "after the edits the file would not be valid {language}, at line {line} of \
                    the new text"
            ),
            "Nothing was changed. Correct the replacement, or use edit for an intermediate \
                step.",
        ));
    }
    Ok(RewrittenFile { draft, new, places, symbols, left_inside })
}

/// Converts one edit for the engine.
fn meant(at: usize, edit: SyntaxEdit) -> Result<TreeEdit, ToolFailure> {
    let CodeReplacement { pattern, rule, replacement, within, within_symbol } = edit.replace;
    let find = match (pattern, rule) {
        (Some(pattern), None) => FindBy::Pattern(pattern),
        (None, Some(rule)) => FindBy::Rule(serde_json::Value::Object(rule).to_string()),
        (Some(_), Some(_)) | (None, None) => {
            let text = format!("edits[{at}].replace needs either pattern or rule");
            return Err(invalid(&text, "A pattern is code with metavariables."));
        }
    };
    Ok(TreeEdit { find, replacement, within, within_symbol })
}

/// An engine's answer with the edit it is about.
struct EditError(usize, crate::engine::error::EngineError);

impl EditError {
    fn failure(self) -> ToolFailure {
        let Self(at, misfit) = self;
        let mut failure = ToolFailure::from(misfit);
        failure.message = format!("edits[{at}]: {}", failure.message);
        failure
    }
}

fn in_words(symbols: &BTreeSet<String>) -> String {
    if symbols.is_empty() {
        return String::new();
    }
    let named: Vec<&str> = symbols.iter().take(SYMBOLS).map(String::as_str).collect();
    let more = match symbols.len().saturating_sub(SYMBOLS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("\nin {}{more}", named.join(", "))
}

fn invalid(text: &str, hint: &str) -> ToolFailure {
    ToolFailure::new(FailureCode::InvalidArguments, text, hint)
}
