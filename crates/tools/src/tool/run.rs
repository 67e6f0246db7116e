//! `run`: a program with its arguments, without a shell.

use crate::arguments::command_rights::{GitSettingsChoice, SigningChoice};
use crate::arguments::dialect::{COMMAND_FIELDS, FieldAliases};
use crate::arguments::facts::{JobPlace, JudgedFacts};
use crate::command::{self, ARGUMENT_BYTES, CommandSpec};
use crate::failure::{FailureCode, ToolFailure};
use crate::rule_target::{Inherit, InheritedRules};
use crate::spec::{Alias, Tool};
use crate::text::shell_words::shell_words;
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct RunTool;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The program and its arguments, each as it is: nothing is expanded, no quoting is needed.
    argv: Vec<String>,
    /// Longest time it may take, in milliseconds, up to 600000; 120000 where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    timeout_ms: Option<u64>,
    /// Write access to git settings and hooks (.git/config, .git/hooks), which git remote add, git
    /// push -u and git branch -m need. Default: keep. Write needs approval.
    #[serde(default)]
    git_settings: GitSettingsChoice,
    /// Sign git commits and tags with the user's ssh key, as their git settings say. Only the
    /// signatures are made outside the sandbox. On needs approval.
    #[serde(default)]
    git_signing: SigningChoice,
    /// One more directory that it may read and write, as an absolute path; for this call alone. A
    /// person is asked about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
}

impl Tool for RunTool {
    type Input = Input;
    const NAME: &'static str = "run";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Command;
    const DESCRIPTION: &'static str = "Run one program with its arguments in the project directory, without a shell: no \
        quoting, no pipes, no variables. Otherwise it works as bash. Prefer it if an argument \
        contains characters that a shell would interpret.";
    const ALIASES: &'static [Alias] = &[Alias::plain("exec"), Alias::plain("run_program")];
    const EXAMPLE: &'static str = r#"{"argv":["git","log","--oneline"]}"#;
    const FIELD_ALIASES: FieldAliases = COMMAND_FIELDS;
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::All)];

    fn facts(input: &Input) -> JudgedFacts {
        JudgedFacts {
            command: Some(shell_words(&input.argv)),
            git: Some(input.git_settings.into()),
            signing: input.git_signing.into(),
            directory: input.directory.clone(),
            ..JudgedFacts::default()
        }
    }

    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let Input { argv, timeout_ms, git_settings: _, git_signing: _, directory: _ } = input;
        check(&argv)?;
        let text = shell_words(&argv);
        let (env, without, place) = (Vec::new(), None, JobPlace::Foreground);
        command::run(CommandSpec { argv, text, env, without, timeout_ms, place }, ctx)
    }
}

/// Refuses arguments that no program can receive.
fn check(argv: &[String]) -> Result<(), ToolFailure> {
    let invalid =
        |text: &str, hint: &str| Err(ToolFailure::new(FailureCode::InvalidArguments, text, hint));
    match argv.first().map(|name| name.trim()) {
        None => return invalid("argv is empty", "Name the program, then its arguments."),
        Some("") => return invalid("the program name is empty", "Name the program first."),
        Some(_) => {}
    }
    if argv.iter().any(|word| word.contains('\0')) {
        return invalid("an argument contains a NUL character", "");
    }
    if argv.iter().any(|word| word.len() > ARGUMENT_BYTES) {
        return invalid(
            "an argument is longer than 128 KiB",
            "Write it to a file with write, and give the program that file.",
        );
    }
    Ok(())
}
