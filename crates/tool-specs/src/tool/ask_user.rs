//! `ask_user`: asks the person one to four questions, with options and free text. Answered by a person, through the
//! broker; the conversation itself has the rest of the result. See the crate `session`.

use crate::arguments::dialect::{ArgMeaning::Field, FieldAliases};
use crate::arguments::facts::JudgedFacts;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::{ASK_USER, ToolKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct AskUserTool;

/// The arguments.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// One to four questions.
    pub questions: Vec<AskedInput>,
}

/// One question.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskedInput {
    /// The whole question.
    pub question: String,
    /// One or two words for what it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub header: String,
    /// Two to eight answers to choose from, the one that you recommend first; none for words only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<OptionInput>,
    /// True where several options may be chosen.
    #[serde(default, skip_serializing_if = "is_false")]
    pub multi_select: bool,
}

/// One option.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptionInput {
    /// Its name, a few words.
    pub label: String,
    /// What choosing it means.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

// The form of serde's `skip_serializing_if`.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(value: &bool) -> bool {
    !value
}

impl ToolSpec for AskUserTool {
    type Input = Input;
    const NAME: &'static str = ASK_USER;
    // It changes nothing. The broker asks a person all the same.
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Session;
    const DESCRIPTION: &'static str = "Ask the user what only they can decide, when the work depends on it. They choose \
        options or answer in their own words. Never ask for a secret, for permission to use a tool, or what you can find out.";
    const ALIASES: &'static [Alias] =
        &[Alias::plain("ask_user_question"), Alias::plain("request_user_input")];
    const FOUND_BY: Option<&'static str> =
        Some("question questions person choose options clarify decide preference confirm input");
    const LIMITS: &'static str = "At most four questions of eight options.";
    const EXAMPLE: &'static str = r#"{"questions":[{"question":"Which store?","options":[{"label":"SQLite","description":"a file"},{"label":"PostgreSQL"}]}]}"#;
    const FIELD_ALIASES: FieldAliases = &[("questions.multiSelect", Field("multi_select"))];

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }
}
