//! `verify`: runs the verifier that the user configured, in each edited package. Only the
//! conversation calls it; models do not see it.

use crate::arguments::facts::{ConfiguredRun, JudgedFacts};
use crate::rule_target::{Inherit, InheritedRules};
use crate::spec::{Alias, Caller, ToolSpec};
use protocol::confinement::{Network, Profile};
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct VerifyTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The command, for a shell.
    pub command: String,
    /// The file that marks a package: the command is run where the nearest one lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The files that were edited.
    pub paths: Vec<String>,
}

impl ToolSpec for VerifyTool {
    type Input = Input;
    const NAME: &'static str = "verify";
    // Never retried automatically: build scripts may have any effect.
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Verify;
    const CALLER: Caller = Caller::Conversation;
    const DESCRIPTION: &'static str = "Run the configured verifier after edits.";
    const ALIASES: &'static [Alias] = &[];
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::DenyAndAsk)];

    fn facts(input: &Input) -> JudgedFacts {
        let Input { command, package, paths } = input;
        let (package, paths) = (package.clone(), paths.clone());
        let configured = ConfiguredRun::EditHook { command: command.clone(), package, paths };
        JudgedFacts {
            command: Some(command.clone()),
            configured: Some(configured),
            network: Some(Network::Off),
            ..JudgedFacts::default()
        }
    }
}
