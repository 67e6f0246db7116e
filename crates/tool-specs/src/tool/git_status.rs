//! `git_status`: the files that differ from the last commit.

use crate::arguments::facts::JudgedFacts;
use crate::git;
use crate::rule_target::{Inherit, InheritedRules};
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct GitStatusTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

impl ToolSpec for GitStatusTool {
    type Input = Input;
    const NAME: &'static str = "git_status";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::GitLook;
    const DESCRIPTION: &'static str = "Show branch and changed, staged and untracked files of the git repository, in git's short \
        format.";
    const ALIASES: &'static [Alias] = &[];
    const EXAMPLE: &'static str = "{}";
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::All)];

    fn facts(input: &Input) -> JudgedFacts {
        git::facts(&words(input))
    }
}

pub fn words(_: &Input) -> Vec<String> {
    ["status", "--short", "--branch", "--ignore-submodules=dirty"].map(str::to_owned).into()
}
