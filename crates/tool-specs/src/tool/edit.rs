//! `edit`: one exact piece of a file replaced by another.

use crate::arguments::dialect::ArgMeaning::Field;
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct EditTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Relative to the project directory, or absolute.
    pub path: String,
    /// The text to replace, exactly as in the file, including white space, without line numbers.
    pub old_string: String,
    /// The replacement.
    pub new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    pub replace_all: bool,
}

impl ToolSpec for EditTool {
    type Input = Input;
    const NAME: &'static str = "edit";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Mutate;
    const REQUIRES_READ: bool = true;
    const DESCRIPTION: &'static str = "Replace text in a file. old_string must occur exactly once, unless replace_all is set: \
        include surrounding lines to make it unique.";
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
}
