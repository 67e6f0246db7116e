//! `glob`: files by a pattern, newest first.

use super::ls::here;
use crate::arguments::dialect::ArgMeaning::{Field, Ignored, Unmet};
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::rule_target::{MatchedBy, RuleDepth};
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct GlobTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// As in .gitignore: `*.rs` at any depth, `/src/**/*.rs` from the directory on; a slash at the end
    /// finds directories. Absolute paths work too.
    pub pattern: String,
    /// The directory to look in.
    #[serde(default = "here")]
    pub path: String,
}

impl ToolSpec for GlobTool {
    type Input = Input;
    const NAME: &'static str = "glob";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Query;
    const DESCRIPTION: &'static str =
        "Find files by name pattern, newest first. Ignored files are not listed.";
    const ALIASES: &'static [Alias] = &[
        Alias::plain("file-find"),
        Alias::plain("find_files"),
        Alias::plain("glob_files"),
        Alias::plain("file_glob_search"),
    ];
    const LIMITS: &'static str = "At most 200 files.";
    const EXAMPLE: &'static str = r#"{"pattern":"*.rs","path":"src"}"#;
    const FIELD_ALIASES: FieldAliases = &[
        ("glob_pattern", Field("pattern")),
        ("query", Field("pattern")),
        ("glob", Field("pattern")),
        ("case_sensitive", Ignored),
        ("respect_git_ignore", Ignored),
        ("respect_gemini_ignore", Ignored),
        ("limit", Ignored),
        ("max_results", Ignored),
        ("head_limit", Ignored),
        (
            "exclude",
            Unmet("exclude was ignored: all matching files that are not ignored are listed."),
        ),
    ];
    const MATCHED_BY: MatchedBy = MatchedBy::Path(RuleDepth::Below);
    const CACHEABLE: bool = true;

    fn facts(input: &Input) -> JudgedFacts {
        JudgedFacts { paths: vec![input.path.clone()], ..JudgedFacts::default() }
    }
}
