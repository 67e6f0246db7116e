//! `run`: a program with its arguments, without a shell.

use crate::arguments::command_rights::{GitSettingsChoice, SigningChoice};
use crate::arguments::dialect::{COMMAND_FIELDS, FieldAliases};
use crate::arguments::facts::JudgedFacts;
use crate::rule_target::{Inherit, InheritedRules};
use crate::spec::{Alias, ToolSpec};
use crate::text::shell_words::shell_words;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct RunTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The program and its arguments, each as it is: nothing is expanded, no quoting is needed.
    pub argv: Vec<String>,
    /// Longest time it may take, in milliseconds, up to 600000; 120000 where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// Write access to git settings and hooks (.git/config, .git/hooks), which git remote add, git
    /// push -u and git branch -m need. Default: keep. Write needs approval.
    #[serde(default)]
    pub git_settings: GitSettingsChoice,
    /// Sign git commits and tags with the user's ssh key, as their git settings say. Only the
    /// signatures are made outside the sandbox. On needs approval.
    #[serde(default)]
    pub git_signing: SigningChoice,
    /// One more directory that it may read and write, as an absolute path; for this call alone. A
    /// person is asked about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

impl ToolSpec for RunTool {
    type Input = Input;
    const NAME: &'static str = "run";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Command;
    const DESCRIPTION: &'static str = "Run one program with its arguments in the project directory, without a shell: no \
        quoting, no pipes, no variables. Otherwise it works as bash. Prefer it if an argument \
        contains characters that a shell would interpret.";
    const ALIASES: &'static [Alias] = &[Alias::plain("exec"), Alias::plain("run_program")];
    const FOUND_BY: Option<&'static str> =
        Some("execute program argv without shell no quoting exec binary arguments");
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
}
