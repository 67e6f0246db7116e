//! `git_commit`: commits the staged changes.

use crate::arguments::facts::JudgedFacts;
use crate::git;
use crate::rule_target::{Inherit, InheritedRules};
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct GitCommitTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The first line of the message.
    pub subject: String,
    /// The rest of the message, after an empty line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

impl ToolSpec for GitCommitTool {
    type Input = Input;
    const NAME: &'static str = "git_commit";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Git;
    const DESCRIPTION: &'static str = "Commit the staged changes of the git repository. The author comes from the user's git \
        settings. Hooks do not run and the commit is not signed; to sign, use bash with \
        git_signing \"on\".";
    const ALIASES: &'static [Alias] = &[];
    const FOUND_BY: Option<&'static str> = Some("commit record save changes message staged");
    const EXAMPLE: &'static str = r#"{"subject":"Fix the parser"}"#;
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::All)];

    fn facts(input: &Input) -> JudgedFacts {
        git::facts(&words(input))
    }
}

pub fn words(input: &Input) -> Vec<String> {
    let mut words: Vec<String> = ["commit", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace"]
        .map(str::to_owned)
        .into();
    words.push(format!("--message={}", input.subject.trim()));
    words.extend(input.body.iter().map(|body| format!("--message={body}")));
    words
}
