//! `edit`: one exact piece of a file replaced by another.

use crate::answer::Answer;
use crate::arguments::Facts;
use crate::diff;
use crate::failure::{Code, Failure};
use crate::kinds;
use crate::passage::{self, Passage};
use crate::replace::{Before, LOADED_MAX, before, replace};
use crate::site::{Site, Target, not_found};
use crate::spec::{Alias, Tool};
use protocol::call::Effect;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most line numbers that an ambiguous match names.
const PLACES: usize = 10;

pub(super) struct Edit;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The file, relative to the project directory or absolute.
    path: String,
    /// The text to replace, exactly as it stands in the file, white space included, without line
    /// numbers. It must be there once, unless replace_all is set.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl Tool for Edit {
    type Input = Input;
    const NAME: &'static str = "edit";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Mutate;
    const DESCRIPTION: &'static str = "Replace a piece of a file by another. old_string must match \
        exactly, white space included, and be there only once unless replace_all is set; give lines \
        around it to make it so.";
    const ALIASES: &'static [Alias] =
        &[Alias::plain("edit_file"), Alias::plain("str_replace"), Alias::plain("file-edit")];

    fn facts(input: &Input) -> Facts {
        Facts { paths: vec![input.path.clone()], ..Facts::default() }
    }

    fn preview(input: Input, site: &Site<'_>) -> Result<String, Failure> {
        let change = Change::find(&input, site)?;
        Ok(diff::unified(&site.shown(&change.target.real), &change.old, &change.new))
    }

    fn run(input: Input, site: &mut Site<'_>) -> Result<Answer, Failure> {
        let change = Change::find(&input, site)?;
        let shown = site.shown(&change.target.real);
        let diff = diff::unified(&shown, &change.old, &change.new);
        site.go_on()?;
        replace(&change.target, Some(&change.before), change.new.as_bytes())?;
        let places = change.lines.len();
        let count = if places == 1 {
            format!("line {}", change.lines[0])
        } else {
            format!("{places} places")
        };
        let body = format!("edited {shown}: {count}\n{diff}");
        let effects = vec![Effect::Written(change.target.recorded())];
        Ok(Answer::done(body, format!("edited {shown}: {count}"), effects))
    }
}

/// An edit that has found its place.
struct Change {
    target: Target,
    before: Before,
    old: String,
    new: String,
    /// The lines at which pieces are replaced, counted from 1.
    lines: Vec<usize>,
}

impl Change {
    fn find(input: &Input, site: &Site<'_>) -> Result<Self, Failure> {
        let invalid =
            |text: &str, hint: &str| Err(Failure::new(Code::InvalidArguments, text, hint));
        if input.old_string.is_empty() {
            return invalid(
                "old_string is empty",
                "Use write to make a file or to replace all of it.",
            );
        }
        if input.old_string == input.new_string {
            return invalid(
                "old_string and new_string are the same",
                "There is nothing to change.",
            );
        }
        let target = site.to_write(&input.path)?;
        let Some(mut before) = before(site, &target)? else {
            return Err(not_found(&target));
        };
        let old = text(&target, &mut before)?;
        let found = Passage::find(&old, &input.old_string);
        match found.as_slice() {
            [] => return Err(no_match(input, &old)),
            [..] if input.replace_all => {}
            [only] => {
                if let Some(next) = only.overlapped(&old, &input.old_string) {
                    return Err(ambiguous(input, &old, &[only.clone(), next]));
                }
            }
            several => return Err(ambiguous(input, &old, several)),
        }
        let lines = found.iter().map(|passage| passage.line(&old)).collect();
        let new = passage::replaced(&old, &found, &input.old_string, &input.new_string);
        if new == old {
            return invalid(
                "the edit changes nothing",
                "Line ends of the file are kept as they are.",
            );
        }
        Ok(Self { target, before, old, new, lines })
    }
}

/// The file as text.
fn text(target: &Target, before: &mut Before) -> Result<String, Failure> {
    let Some(bytes) = before.bytes.take() else {
        return Err(Failure::new(
            Code::TooLarge,
            format!(
                "{:?} has {} bytes; a file to edit may have {LOADED_MAX}",
                target.named, before.size
            ),
            "Use bash with sed or a small script.",
        ));
    };
    if let Some(kind) = kinds::binary(&bytes[..bytes.len().min(kinds::SNIFFED)]) {
        let text = format!("{:?} is a binary file ({kind})", target.named);
        return Err(Failure::new(Code::Binary, text, "Only text can be edited."));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        Failure::new(
            Code::NotUtf8,
            format!("line {line} of {:?} is not UTF-8", target.named),
            "Use bash with sed, or convert the file with iconv first.",
        )
    })
}

fn no_match(input: &Input, text: &str) -> Failure {
    let mut message = format!("old_string is not in {:?} (0 matches)", input.path);
    let candidates = passage::nearest_lines(text, &input.old_string);
    if candidates.is_empty() {
        message.push_str("; nothing in it is like it");
    } else {
        message.push_str("; the nearest places are");
        for candidate in &candidates {
            message.push_str(&format!("\n{}\t{}", candidate.line, candidate.text));
        }
    }
    let hint = if candidates.iter().any(|candidate| candidate.only_space_differs) {
        "A place differs in white space only. Read it and copy it exactly."
    } else {
        "Read that part of the file again and copy the text exactly, without line numbers."
    };
    Failure::new(Code::NoMatch, message, hint)
}

fn ambiguous(input: &Input, text: &str, found: &[Passage]) -> Failure {
    let lines: Vec<String> =
        found.iter().take(PLACES).map(|passage| passage.line(text).to_string()).collect();
    let more = if found.len() > PLACES { ", …" } else { "" };
    Failure::new(
        Code::Ambiguous,
        format!(
            "old_string is in {:?} {} times, at lines {}{more}",
            input.path,
            found.len(),
            lines.join(", ")
        ),
        "Give more of the lines around the right place, or set replace_all.",
    )
}
