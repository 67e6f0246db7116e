//! `write`: a whole file, made or replaced in one step.

use crate::arguments::dialect::ArgMeaning::{Field, Ignored};
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct WriteTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Relative to the project directory, or absolute.
    pub path: String,
    /// The whole new content.
    pub content: String,
}

impl ToolSpec for WriteTool {
    type Input = Input;
    const NAME: &'static str = "write";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Mutate;
    const DESCRIPTION: &'static str = "Create a file, with missing directories, or replace its whole content. To change part of a \
        file use edit.";
    const ALIASES: &'static [Alias] = &[
        Alias::plain("write_file"),
        Alias::plain("create_file"),
        Alias::plain("file-create"),
        Alias::plain("file-write"),
        Alias::plain("write_to_file"),
    ];
    const EXAMPLE: &'static str = r#"{"path":"notes.md","content":"one\n"}"#;
    const FIELD_ALIASES: FieldAliases = &[
        ("contents", Field("content")),
        ("file_text", Field("content")),
        ("text", Field("content")),
        ("code_edit", Field("content")),
        ("overwrite", Ignored),
        ("create_dirs", Ignored),
        ("encoding", Ignored),
        ("line_count", Ignored),
    ];

    fn facts(input: &Input) -> JudgedFacts {
        JudgedFacts { paths: vec![input.path.clone()], ..JudgedFacts::default() }
    }
}
