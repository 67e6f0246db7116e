//! `git_diff`: changes that are not committed yet.

use crate::arguments::dialect::ArgMeaning::{Field, Ignored};
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::git;
use crate::rule_target::{Inherit, InheritedRules};
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct GitDiffTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only this file or directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Show staged changes.
    #[serde(default)]
    pub staged: bool,
    /// Unchanged lines around each change; default 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 20))]
    pub context: Option<u8>,
}

impl ToolSpec for GitDiffTool {
    type Input = Input;
    const NAME: &'static str = "git_diff";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::GitLook;
    const DESCRIPTION: &'static str = "Show uncommitted changes of the git repository: the unstaged ones, or with `staged` the \
        staged ones.";
    const ALIASES: &'static [Alias] = &[];
    const EXAMPLE: &'static str = r#"{"path":"src","staged":true}"#;
    const FIELD_ALIASES: FieldAliases =
        &[("cached", Field("staged")), ("unified", Field("context")), ("target", Ignored)];
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::All)];

    fn facts(input: &Input) -> JudgedFacts {
        git::facts(&words(input))
    }
}

pub fn words(input: &Input) -> Vec<String> {
    let mut words: Vec<String> =
        ["diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"]
            .map(str::to_owned)
            .into();
    words.push(format!("-U{}", input.context.unwrap_or(3)));
    if input.staged {
        words.push("--cached".to_owned());
    }
    words.push("--".to_owned());
    words.extend(input.path.clone());
    words
}
