//! `ls`: one level of a directory.

use crate::arguments::dialect::ArgMeaning::{Ignored, Unmet};
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct LsTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Relative to the project directory, or absolute.
    #[serde(default = "here")]
    pub path: String,
}

pub(super) fn here() -> String {
    ".".to_owned()
}

impl ToolSpec for LsTool {
    type Input = Input;
    const NAME: &'static str = "ls";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Query;
    const DESCRIPTION: &'static str = "List one level of a directory, directories first: d (directory), f (file) or l (symbolic \
        link), size in bytes, name. Ignored files are counted, not listed.";
    const ALIASES: &'static [Alias] = &[
        Alias::plain("list_directory"),
        Alias::plain("list_dir"),
        Alias::plain("file-list"),
        Alias::plain("list_files"),
        Alias::plain("list"),
    ];
    const LIMITS: &'static str = "At most 500 entries.";
    const EXAMPLE: &'static str = r#"{"path":"src"}"#;
    const FIELD_ALIASES: FieldAliases = &[
        (
            "ignore",
            Unmet("ignore was ignored: all entries that no ignore file excludes are listed."),
        ),
        ("recursive", Unmet("One level is listed; glob finds files at any depth.")),
        ("depth", Unmet("One level is listed; glob finds files at any depth.")),
        ("max_depth", Ignored),
        ("limit", Ignored),
        ("offset", Ignored),
        ("show_hidden", Ignored),
        ("all", Ignored),
        ("respect_git_ignore", Ignored),
        ("file_filtering_options", Ignored),
    ];
    const CACHEABLE: bool = true;

    fn facts(input: &Input) -> JudgedFacts {
        JudgedFacts { paths: vec![input.path.clone()], ..JudgedFacts::default() }
    }
}
