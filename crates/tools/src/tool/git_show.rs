//! `git_show`: one commit, or a file as it was in one.

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

pub(super) struct GitShow;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The commit, tag or branch, or COMMIT:PATH.
    #[serde(rename = "ref")]
    #[schemars(rename = "ref")]
    reference: String,
}

impl Tool for GitShow {
    type Input = Input;
    const NAME: &'static str = "git_show";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::GitLook;
    const DESCRIPTION: &'static str = "Show a commit of the git repository with its changes, or a file as it was in one, as in \
        HEAD~1:src/main.rs.";
    const ALIASES: &'static [Alias] = &[];

    fn facts(input: &Input) -> Facts {
        git::facts(&words(input))
    }

    fn run(input: Input, site: &mut Site<'_>) -> Result<Answer, Failure> {
        if input.reference.trim().is_empty() {
            return Err(Failure::new(
                Code::InvalidArguments,
                "ref is empty",
                "Name a commit, for example HEAD.",
            ));
        }
        git::run(words(&input), Work::Looks, site)
    }
}

fn words(input: &Input) -> Vec<String> {
    let mut words: Vec<String> =
        ["show", "--no-ext-diff", "--no-textconv", "--no-show-signature", "--end-of-options"]
            .map(str::to_owned)
            .into();
    words.extend([input.reference.clone(), "--".to_owned()]);
    words
}
