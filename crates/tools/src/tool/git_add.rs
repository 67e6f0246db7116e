//! `git_add`: files staged for the next commit.

use crate::arguments::dialect::{ArgMeaning::Field, FieldAliases};
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

pub(super) struct GitAddTool;

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

impl Tool for GitAddTool {
    type Input = Input;
    const NAME: &'static str = "git_add";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Command;
    const DESCRIPTION: &'static str = "Stage files of the git repository for the next commit: the given paths, or with all \
        every change below the project directory.";
    const ALIASES: &'static [Alias] = &[];
    const EXAMPLE: &'static str = r#"{"paths":["src"]}"#;
    const FIELD_ALIASES: FieldAliases = &[("files", Field("paths")), ("path", Field("paths"))];
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::All)];

    fn facts(input: &Input) -> JudgedFacts {
        git::facts(&words(input))
    }

    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        if input.all != input.paths.is_empty() {
            return Err(ToolFailure::new(
                FailureCode::InvalidArguments,
                "either paths or all must be given",
                "Give the paths to stage, or set all.",
            ));
        }
        for path in &input.paths {
            git::path(path, ctx)?;
        }
        git::run(words(&input), GitMode::Adds, ctx)
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
