//! `powershell`: a script of PowerShell, where that is installed.

use crate::arguments::dialect::ArgMeaning::{Field, Seconds, Time};
use crate::arguments::dialect::{BACKGROUND, FieldAliases};
use crate::arguments::facts::JudgedFacts;
use crate::rule_target::{Inherit, InheritedRules};
use crate::spec::{Alias, ToolSpec};
use crate::text::shell_words::shell_words;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct PowershellTool;

/// Its executable outside of Windows.
const PWSH: &str = "pwsh";

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The script, run by pwsh in the project directory, without profile and standard input.
    pub script: String,
    /// Longest time it may take, in milliseconds, up to 600000; 120000 where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
}

impl ToolSpec for PowershellTool {
    type Input = Input;
    const NAME: &'static str = "powershell";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Command;
    const PROGRAM: Option<&'static str> = Some(PWSH);
    const DESCRIPTION: &'static str = "Run a PowerShell script in the project directory. As with bash, it is confined to the \
        project, and the last line of the result is its exit code.";
    const ALIASES: &'static [Alias] = &[Alias::plain("run_powershell"), Alias::plain("pwsh")];
    const FOUND_BY: Option<&'static str> = Some("pwsh windows script cmdlet");
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
}

pub fn argv(script: &str) -> Vec<String> {
    [PWSH, "-NoProfile", "-NonInteractive", "-Command", script].map(str::to_owned).to_vec()
}
