//! `multi_edit`: replaces several pieces of one file together, or none of them.

use crate::arguments::dialect::ArgMeaning::Field;
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::rule_target::{Inherit, InheritedRules};
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct MultiEditTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The file, relative to the project directory or absolute.
    pub path: String,
    /// The edits. All are located in the file as it is now, so their order does not matter and line
    /// numbers do not shift; none may overlap another.
    pub edits: Vec<EditItem>,
}

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct EditItem {
    /// The text to replace, exactly as in the file; it must occur once. Either this, or start_line
    /// and end_line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub find: Option<String>,
    /// The first line to replace, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub start_line: Option<usize>,
    /// The last line to replace, itself included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub end_line: Option<usize>,
    /// The replacement; empty deletes the text.
    pub replace: String,
    /// Replace every occurrence of find.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub replace_all: bool,
}

fn is_unset(flag: &bool) -> bool {
    !flag
}

impl ToolSpec for MultiEditTool {
    type Input = Input;
    const NAME: &'static str = "multi_edit";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Mutate;
    const REQUIRES_READ: bool = true;
    const DESCRIPTION: &'static str = "Make several edits in one file: either all are made or none. Each edit gives the exact \
        text to find, or the lines from start_line to end_line, and the replacement.";
    const ALIASES: &'static [Alias] =
        &[Alias::plain("edit_lines"), Alias::plain("multi_edit_file")];
    const FOUND_BY: Option<&'static str> =
        Some("several edits multiple replacements at once batch lines range one file");
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
}
