//! `git_add`: files staged for the next commit.

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

pub struct GitAddTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The files and directories to stage, removed ones too.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Stage all that changed, instead of paths.
    #[serde(default)]
    pub all: bool,
}

impl ToolSpec for GitAddTool {
    type Input = Input;
    const NAME: &'static str = "git_add";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Command;
    const DESCRIPTION: &'static str = "Stage files of the git repository for the next commit: the given paths, or with all \
        every change below the project directory.";
    const ALIASES: &'static [Alias] = &[];
    const FOUND_BY: Option<&'static str> = Some("stage staging index add files for commit");
    const EXAMPLE: &'static str = r#"{"paths":["src"]}"#;
    const FIELD_ALIASES: FieldAliases = &[("files", Field("paths")), ("path", Field("paths"))];
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::All)];

    fn facts(input: &Input) -> JudgedFacts {
        git::facts(&words(input))
    }
}

pub fn words(input: &Input) -> Vec<String> {
    let mut words: Vec<String> = ["add", "--verbose"].map(str::to_owned).into();
    if input.all {
        words.push("--all".to_owned());
    }
    words.push("--".to_owned());
    words.extend(if input.all { vec![".".to_owned()] } else { input.paths.clone() });
    words
}
