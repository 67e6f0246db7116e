//! `git_commit`: commits the staged changes.

use crate::arguments::facts::JudgedFacts;
use crate::command::git::{self, GitMode};
use crate::failure::{FailureCode, ToolFailure};
use crate::rule_target::{Inherit, InheritedRules};
use crate::spec::{Alias, Tool};
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct GitCommitTool;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The first line of the message.
    subject: String,
    /// The rest of the message, after an empty line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
}

impl Tool for GitCommitTool {
    type Input = Input;
    const NAME: &'static str = "git_commit";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Git;
    const DESCRIPTION: &'static str = "Commit the staged changes of the git repository. The author comes from the user's git \
        settings. Hooks do not run and the commit is not signed; to sign, use bash with \
        git_signing \"on\".";
    const ALIASES: &'static [Alias] = &[];
    const EXAMPLE: &'static str = r#"{"subject":"Fix the parser"}"#;
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::All)];

    fn facts(input: &Input) -> JudgedFacts {
        git::facts(&words(input))
    }

    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let subject = input.subject.trim();
        if subject.is_empty() || subject.contains('\n') {
            return Err(ToolFailure::new(
                FailureCode::InvalidArguments,
                "subject must be one non-empty line",
                "Put the rest into body.",
            ));
        }
        git::run(words(&input), GitMode::Commits, ctx)
    }
}

fn words(input: &Input) -> Vec<String> {
    let mut words: Vec<String> = ["commit", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace"]
        .map(str::to_owned)
        .into();
    words.push(format!("--message={}", input.subject.trim()));
    words.extend(input.body.iter().map(|body| format!("--message={body}")));
    words
}
