//! `bash_input`: text for the standard input of a background command. The supervisor answers it, see
//! the crate `supervise`.

use crate::arguments::dialect::ArgMeaning::Field;
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::{CallAbout, JobAsk, JobRequest, JudgedFacts};
use crate::rule_target::{Inherit, InheritedRules, MatchedBy};
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use protocol::tool::AfterInput;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct BashInputTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The number of the background command, as its result gives it.
    pub call: u32,
    /// The text, with the line breaks that the program waits for.
    pub text: String,
    /// Close the input behind it: the program sees the end of its input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub close: bool,
}

impl ToolSpec for BashInputTool {
    type Input = Input;
    const NAME: &'static str = "bash_input";
    // A shell in the background runs what it is given.
    const KIND: ToolKind = ToolKind::Mutation;
    const JUDGED_AS: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Session;
    const MATCHED_BY: MatchedBy = MatchedBy::Command;
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::DenyAndAsk)];
    const DESCRIPTION: &'static str = "Write text to the standard input of a background command. It is a pipe, not a terminal. \
        See bash_output for what the command prints then.";
    const ALIASES: &'static [Alias] = &[Alias::plain("write_stdin")];
    const FOUND_BY: Option<&'static str> =
        Some("stdin send type answer prompt interactive keystrokes background process");
    const LIMITS: &'static str = "At most 64 KiB.";
    const EXAMPLE: &'static str = r#"{"call":3,"text":"yes\n"}"#;
    const FIELD_ALIASES: FieldAliases = &[
        ("id", Field("call")),
        ("bash_id", Field("call")),
        ("session_id", Field("call")),
        ("chars", Field("text")),
        ("input", Field("text")),
    ];

    fn facts(input: &Input) -> JudgedFacts {
        let Input { call, text, close } = input;
        let then = if *close { AfterInput::Close } else { AfterInput::KeepOpen };
        JudgedFacts {
            command: Some(text.clone()),
            about: Some(CallAbout::Job(JobRequest {
                call: *call,
                asks: JobAsk::Input { text: text.clone(), then },
            })),
            ..JudgedFacts::default()
        }
    }
}
