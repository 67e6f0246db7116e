//! `git_log`: the newest commits.

use crate::arguments::dialect::ArgMeaning::Field;
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::git;
use crate::rule_target::{Inherit, InheritedRules};
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct GitLogTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// How many commits; 10 where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub limit: Option<u8>,
    /// Only commits that changed this file or directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl ToolSpec for GitLogTool {
    type Input = Input;
    const NAME: &'static str = "git_log";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::GitLook;
    const DESCRIPTION: &'static str = "List the newest commits of the git repository with short hash, date, author, subject \
        and branches.";
    const ALIASES: &'static [Alias] = &[];
    const FOUND_BY: Option<&'static str> =
        Some("history commits recent changes who author blame when last commit log");
    const LIMITS: &'static str = "At most 50 commits.";
    const EXAMPLE: &'static str = r#"{"limit":5,"path":"src/main.rs"}"#;
    const FIELD_ALIASES: FieldAliases =
        &[("max_count", Field("limit")), ("count", Field("limit")), ("n", Field("limit"))];
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::All)];

    fn facts(input: &Input) -> JudgedFacts {
        git::facts(&words(input))
    }
}

pub fn words(input: &Input) -> Vec<String> {
    let mut words: Vec<String> =
        ["log", "--no-show-signature", "--format=%h %as %an: %s%d"].map(str::to_owned).into();
    words.push(format!("--max-count={}", input.limit.unwrap_or(10)));
    words.push("--".to_owned());
    words.extend(input.path.clone());
    words
}
