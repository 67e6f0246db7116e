//! `edit`: one exact piece of a file replaced by another.

use crate::answer::Answer;
use crate::arguments::Facts;
use crate::diff;
use crate::draft::{Draft, Piece};
use crate::failure::{Code, Failure};
use crate::judged;
use crate::passage;
use crate::replace::{Before, replace};
use crate::site::{Site, Target};
use crate::spec::{Alias, Premise, Tool};
use protocol::call::Effect;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    const PREMISE: Premise = Premise::FilesAsRead;
    const DESCRIPTION: &'static str = "Replace a piece of a file by another. old_string must match \
        exactly, white space included, and be there only once unless replace_all is set; give lines \
        around it to make it so.";
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
        site.saw(&change.target, judged::digest(change.new.as_bytes()));
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
        let draft = Draft::open(&input.path, site)?;
        let piece = Piece { field: "old_string", text: &input.old_string };
        let found = if input.replace_all {
            draft.all(piece)?
        } else {
            vec![draft.only(
                piece,
                "Give more of the lines around the right place, or set replace_all.",
            )?]
        };
        let Draft { target, before, old } = draft;
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
