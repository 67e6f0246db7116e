//! `git_commit`: what is staged, committed.

use crate::answer::Answer;
use crate::arguments::Facts;
use crate::failure::{Code, Failure};
use crate::git::{self, Work};
use crate::site::Site;
use crate::spec::{Alias, Tool};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct GitCommit;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The first line of the message.
    subject: String,
    /// What follows it after an empty line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
}

impl Tool for GitCommit {
    type Input = Input;
    const NAME: &'static str = "git_commit";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Git;
    const DESCRIPTION: &'static str = "Commit what is staged in the git repository. The author is the person, by their git settings. \
        Hooks do not run, and the commit is not signed: bash with git_signing on signs.";
    const ALIASES: &'static [Alias] = &[];

    fn facts(input: &Input) -> Facts {
        git::facts(&words(input))
    }

    fn run(input: Input, site: &mut Site<'_>) -> Result<Answer, Failure> {
        let subject = input.subject.trim();
        if subject.is_empty() || subject.contains('\n') {
            return Err(Failure::new(
                Code::InvalidArguments,
                "subject must be one line that says something",
                "Put everything else into body.",
            ));
        }
        git::run(words(&input), Work::Commits, site)
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
