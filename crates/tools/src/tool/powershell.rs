//! `powershell`: a script of PowerShell, where that is installed.

use crate::arguments::dialect::{
    ArgMeaning::{Field, Seconds, Time},
    BACKGROUND, FieldAliases,
};
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

pub(super) struct PowershellTool;

/// Its executable outside of Windows.
const PWSH: &str = "pwsh";

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The script, run by pwsh in the project directory, without profile and standard input.
    script: String,
    /// Longest time it may take, in milliseconds, up to 600000; 120000 where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    timeout_ms: Option<u64>,
}

impl Tool for PowershellTool {
    type Input = Input;
    const NAME: &'static str = "powershell";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Command;
    const PROGRAM: Option<&'static str> = Some(PWSH);
    const DESCRIPTION: &'static str = "Run a PowerShell script in the project directory. As with bash, it is confined to the \
        project, and the last line of the result is its exit code.";
    const ALIASES: &'static [Alias] = &[Alias::plain("run_powershell"), Alias::plain("pwsh")];
    const EXAMPLE: &'static str = r#"{"script":"Get-ChildItem"}"#;
    const FIELD_ALIASES: FieldAliases = &[
        ("command", Field("script")),
        ("timeout", Time("timeout_ms")),
        ("timeout_seconds", Seconds("timeout_ms")),
        ("run_in_background", BACKGROUND),
        ("is_background", BACKGROUND),
    ];
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::All)];

    fn facts(input: &Input) -> JudgedFacts {
        JudgedFacts { command: Some(shell_words(&argv(&input.script))), ..JudgedFacts::default() }
    }

    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let Input { script, timeout_ms } = input;
        let invalid =
            |text: &str, hint: &str| ToolFailure::new(FailureCode::InvalidArguments, text, hint);
        if script.trim().is_empty() {
            return Err(invalid("the script is empty", "Say what to run."));
        }
        if script.contains('\0') {
            return Err(invalid("the script contains a NUL character", ""));
        }
        if script.len() > ARGUMENT_BYTES {
            let hint = "Write it to a file with write, and run that with -File.";
            return Err(invalid("the script is longer than 128 KiB", hint));
        }
        let argv = argv(&script);
        let text = shell_words(&argv);
        let (env, without, place) = (Vec::new(), None, JobPlace::Foreground);
        command::run(CommandSpec { argv, text, env, without, timeout_ms, place }, ctx)
    }
}

fn argv(script: &str) -> Vec<String> {
    [PWSH, "-NoProfile", "-NonInteractive", "-Command", script].map(str::to_owned).to_vec()
}
