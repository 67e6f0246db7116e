//! `delete`: removes files, links and, with `recursive`, directories.

use crate::arguments::dialect::ArgMeaning::Field;
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::rule_target::{Inherit, InheritedRules, MatchedBy, RuleDepth};
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct DeleteTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The paths to delete, relative to the project directory or absolute: either all are deleted
    /// or none. For a symbolic link the link itself is deleted, not its target.
    pub paths: Vec<String>,
    /// Delete directories with all that is in them. Without it a directory is an error.
    #[serde(default)]
    pub recursive: bool,
}

impl ToolSpec for DeleteTool {
    type Input = Input;
    const NAME: &'static str = "delete";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Mutate;
    const DESCRIPTION: &'static str = "Delete files, and with recursive also directories. The result keeps the content of \
        deleted text files as a diff.";
    const ALIASES: &'static [Alias] = &[
        Alias::plain("delete_file"),
        Alias::plain("remove_file"),
        Alias::plain("file-delete"),
        Alias::plain("delete_files"),
    ];
    const FOUND_BY: Option<&'static str> = Some("remove rm unlink erase file directory folder");
    const LIMITS: &'static str = "At most 100 paths.";
    const EXAMPLE: &'static str = r#"{"paths":["build"],"recursive":true}"#;
    const FIELD_ALIASES: FieldAliases = &[("path", Field("paths"))];
    const MATCHED_BY: MatchedBy = MatchedBy::Path(RuleDepth::Below);
    // Permission to write a file does not include removing directories.
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("write", Inherit::DenyAndAsk)];

    fn facts(input: &Input) -> JudgedFacts {
        JudgedFacts {
            paths: input.paths.clone(),
            removed: input.paths.clone(),
            ..JudgedFacts::default()
        }
    }
}
