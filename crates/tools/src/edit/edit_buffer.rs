//! A file with text to replace: loads it and finds the places of a text in it. For `edit` and
//! `multi_edit`.

use crate::edit::find_replace::TextSpan;
use crate::edit::near_miss::{NearMiss, near_miss};
use crate::edit::replace::{LOADED_MAX, OriginalFile, load_original};
use crate::failure::{FailureCode, ToolFailure};
use crate::files::file_type;
use crate::files::target_path::{TargetPath, not_found};
use crate::tool_context::ToolContext;

/// Most line numbers that an ambiguous match names.
const PLACES: usize = 10;

/// A text file about to be edited.
pub(crate) struct EditBuffer {
    pub target: TargetPath,
    pub before: OriginalFile,
    pub old: String,
}

/// A piece of text that a call names, and how the call names it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchText<'a> {
    /// The field that holds it, for messages.
    pub field: &'a str,
    pub text: &'a str,
}

impl EditBuffer {
    /// Loads the file at `path`.
    pub fn open(path: &str, ctx: &ToolContext<'_>) -> Result<Self, ToolFailure> {
        let target = ctx.to_write(path)?;
        let Some(mut before) = load_original(ctx, &target)? else {
            return Err(not_found(&target));
        };
        let old = text(&target, &mut before)?;
        Ok(Self { target, before, old })
    }

    /// The one place of a piece.
    pub fn only(&self, piece: SearchText<'_>, hint: &str) -> Result<TextSpan, ToolFailure> {
        let mut found = TextSpan::find(&self.old, piece.text);
        if found.is_empty() {
            found = TextSpan::find_alike(&self.old, piece.text);
        }
        match found.as_slice() {
            [] => Err(self.no_match(piece)),
            [only] => match only.overlapped(&self.old, piece.text) {
                Some(next) => Err(self.ambiguous(piece, &[only.clone(), next], hint)),
                None => Ok(found.remove(0)),
            },
            several => Err(self.ambiguous(piece, several, hint)),
        }
    }

    /// Every place of a piece, at least one; in another form only if it is the only one.
    pub fn all(&self, piece: SearchText<'_>) -> Result<Vec<TextSpan>, ToolFailure> {
        let mut found = TextSpan::find(&self.old, piece.text);
        if found.is_empty() {
            let hint = "Each is in another form: copy the text from the file, place by place.";
            found = vec![self.only(piece, hint)?];
        }
        Ok(found)
    }

    fn no_match(&self, piece: SearchText<'_>) -> ToolFailure {
        let NearMiss { places, hint } = near_miss(&self.old, piece.text, piece.field);
        let message =
            format!("{} is not in {:?} (0 matches){places}", piece.field, self.target.named);
        ToolFailure::new(FailureCode::NoMatch, message, hint)
    }

    fn ambiguous(&self, piece: SearchText<'_>, found: &[TextSpan], hint: &str) -> ToolFailure {
        let lines: Vec<String> =
            found.iter().take(PLACES).map(|passage| passage.line(&self.old).to_string()).collect();
        let more = if found.len() > PLACES { ", …" } else { "" };
        ToolFailure::new(
            FailureCode::Ambiguous,
            format!(
                "{} is in {:?} {} times, at lines {}{more}",
                piece.field,
                self.target.named,
                found.len(),
                lines.join(", ")
            ),
            hint,
        )
    }
}

/// The file as text.
fn text(target: &TargetPath, before: &mut OriginalFile) -> Result<String, ToolFailure> {
    let Some(bytes) = before.bytes.take() else {
        return Err(ToolFailure::new(
            FailureCode::TooLarge,
            format!(
                "{:?} has {} bytes; the limit for edits is {LOADED_MAX}",
                target.named, before.size
            ),
            "Use bash with sed or a small script.",
        ));
    };
    if let Some(kind) = file_type::binary_type(&bytes[..bytes.len().min(file_type::SNIFFED)]) {
        let text = format!("{:?} is a binary file ({kind})", target.named);
        let hint = match file_type::is_utf16(&bytes) {
            true => "Text is edited as UTF-8; with bash, iconv -f UTF-16 -t UTF-8 converts it.",
            false => "Only text files can be edited.",
        };
        return Err(ToolFailure::new(FailureCode::Binary, text, hint));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        ToolFailure::new(
            FailureCode::NotUtf8,
            format!("line {line} of {:?} is not UTF-8", target.named),
            file_type::NOT_UTF8_HINT,
        )
    })
}
