//! `git_show`: one commit, or a file as it was in one.

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

pub struct GitShowTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The commit, tag or branch, or COMMIT:PATH.
    #[serde(rename = "ref")]
    #[schemars(rename = "ref")]
    pub reference: String,
}

impl ToolSpec for GitShowTool {
    type Input = Input;
    const NAME: &'static str = "git_show";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::GitLook;
    const DESCRIPTION: &'static str = "Show a commit of the git repository with its changes, or a file at a commit, for \
        example HEAD~1:src/main.rs.";
    const ALIASES: &'static [Alias] = &[];
    const FOUND_BY: Option<&'static str> = Some(
        "inspect one commit revision old older version of a file at tag branch diff patch of a commit \
        between commits",
    );
    const EXAMPLE: &'static str = r#"{"ref":"HEAD~1:src/main.rs"}"#;
    const FIELD_ALIASES: FieldAliases =
        &[("commit", Field("ref")), ("revision", Field("ref")), ("rev", Field("ref"))];
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::All)];

    fn facts(input: &Input) -> JudgedFacts {
        git::facts(&words(input))
    }
}

pub fn words(input: &Input) -> Vec<String> {
    let mut words: Vec<String> =
        ["show", "--no-ext-diff", "--no-textconv", "--no-show-signature", "--end-of-options"]
            .map(str::to_owned)
            .into();
    words.extend([input.reference.clone(), "--".to_owned()]);
    words
}
