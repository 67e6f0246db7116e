//! `format`: runs the formatter that the user configured on an edited file. The formatter is a
//! filter: it reads the file on standard input, and this tool replaces the file with its output.
//! Only the conversation calls it; models do not see it.

use crate::arguments::facts::{ConfiguredRun, JudgedFacts};
use crate::rule_target::{Inherit, InheritedRules};
use crate::spec::{Alias, Caller, ToolSpec};
use crate::text::shell_words::shell_words;
use protocol::confinement::{Network, Profile};
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Stands for the file in a command.
const PATH: &str = "{path}";

pub struct FormatTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The command in words; `{path}` in a word is replaced by the file's path.
    pub command: String,
    /// The file that marks a package: the command is run where the nearest one lies, or else where
    /// the file does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The file that was edited.
    pub path: String,
}

impl ToolSpec for FormatTool {
    type Input = Input;
    const NAME: &'static str = "format";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Format;
    const CALLER: Caller = Caller::Conversation;
    // A version that another process wrote meanwhile is not formatted.
    const REQUIRES_READ: bool = true;
    const DESCRIPTION: &'static str = "Format an edited file with the configured formatter.";
    const ALIASES: &'static [Alias] = &[];
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::DenyAndAsk)];

    fn facts(input: &Input) -> JudgedFacts {
        let (command, package) = (input.command.clone(), input.package.clone());
        let paths = vec![input.path.clone()];
        JudgedFacts {
            paths: paths.clone(),
            configured: Some(ConfiguredRun::EditHook { command, package, paths }),
            command: Some(shell_words(&words(&input.command, &input.path))),
            network: Some(Network::Off),
            ..JudgedFacts::default()
        }
    }
}

/// The words of a command; empty if they cannot be split, which the configuration check refuses.
pub fn words(command: &str, path: &str) -> Vec<String> {
    let words = shlex::split(command).unwrap_or_default();
    words.iter().map(|word| word.replace(PATH, path)).collect()
}
