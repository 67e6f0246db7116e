//! `git_add`: files staged for the next commit.

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

pub(super) struct GitAdd;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The files and directories to stage, removed ones too.
    #[serde(default)]
    paths: Vec<String>,
    /// Stage all that changed, instead of paths.
    #[serde(default)]
    all: bool,
}

impl Tool for GitAdd {
    type Input = Input;
    const NAME: &'static str = "git_add";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Command;
    const DESCRIPTION: &'static str = "Stage files of the git repository for the next commit: paths, or with all everything that \
        changed below the project directory.";
    const ALIASES: &'static [Alias] = &[];

    fn facts(input: &Input) -> Facts {
        git::facts(&words(input))
    }

    fn run(input: Input, site: &mut Site<'_>) -> Result<Answer, Failure> {
        if input.all != input.paths.is_empty() {
            return Err(Failure::new(
                Code::InvalidArguments,
                "either paths or all must be given",
                "Name the paths to stage, or set all.",
            ));
        }
        for path in &input.paths {
            git::path(path, site)?;
        }
        git::run(words(&input), Work::Adds, site)
    }
}

fn words(input: &Input) -> Vec<String> {
    let mut words: Vec<String> = ["add", "--verbose"].map(str::to_owned).into();
    if input.all {
        words.push("--all".to_owned());
    }
    words.push("--".to_owned());
    words.extend(if input.all { vec![".".to_owned()] } else { input.paths.clone() });
    words
}
