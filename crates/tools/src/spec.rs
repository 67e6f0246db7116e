//! What a tool declares about itself: the trait behind a line of the table.

use crate::arguments::facts::JudgedFacts;
use crate::arguments::invalid::InvalidCall;
use crate::arguments::schema;
use crate::failure::ToolFailure;
use crate::runner_program::RunnerProgram;
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Another name under which models and people call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alias {
    /// The other name.
    pub name: &'static str,
    /// JSON object of arguments that this name implies where the call does not give them.
    pub defaults: &'static str,
}

impl Alias {
    /// A name that implies nothing.
    pub(crate) const fn plain(name: &'static str) -> Self {
        Self { name, defaults: "{}" }
    }
}

/// Who calls a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// Models, which are told of it.
    Model,
    /// The conversation alone, on its own account.
    Conversation,
}

/// One tool as the table has it, without the code that runs it.
#[derive(Debug, Clone, Copy)]
pub struct ToolDeclaration {
    /// The real name.
    pub name: &'static str,
    /// Whether it looks or changes.
    pub kind: ToolKind,
    /// The cage its calls run in.
    pub profile: Profile,
    /// The program that runs it.
    pub runner: RunnerProgram,
    /// What its arguments rest on.
    pub requires_read: bool,
    /// For how long its answer holds.
    pub cacheable: bool,
    /// Who calls it.
    pub caller: Caller,
    /// The program that has to be installed; the tool is not offered where it is not.
    pub program: Option<&'static str>,
    /// What the model is told.
    pub description: &'static str,
    /// Other names.
    pub aliases: &'static [Alias],
    /// JSON schema of its arguments, the same bytes at every call.
    pub schema: fn() -> String,
    pub(crate) check: fn(serde_json::Value) -> Result<(String, JudgedFacts), InvalidCall>,
}

impl ToolDeclaration {
    /// As which of the two a call of it is judged: what changes nothing but agentd's own notes
    /// is never asked about, though it waits for its neighbours as a change does.
    #[must_use]
    pub fn judged_as(&self) -> ToolKind {
        match self.profile {
            Profile::Store | Profile::Session => ToolKind::Query,
            Profile::Probe
            | Profile::Query
            | Profile::Mutate
            | Profile::Command
            | Profile::Verify
            | Profile::Format
            | Profile::Git
            | Profile::GitLook
            | Profile::Broker
            | Profile::Provider
            | Profile::Web => self.kind,
        }
    }
}

/// What a verdict on a change is bound to, at each path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProbeMode {
    /// The file there, whatever links lead to it.
    Content,
    /// All that would be gone: a file, a directory with what is in it, a link itself.
    Removal,
}

/// A tool. `run` is reached through a table of its own, so that a program that only reads
/// [`ToolDeclaration`]s does not link it.
pub(crate) trait Tool {
    /// Its arguments; the doc comments of the fields are what the model reads about them.
    type Input: DeserializeOwned + Serialize + JsonSchema;
    /// The real name.
    const NAME: &'static str;
    /// Whether it looks or changes.
    const KIND: ToolKind;
    /// The cage its calls run in.
    const PROFILE: Profile;
    /// What the model is told.
    const DESCRIPTION: &'static str;
    /// Other names.
    const ALIASES: &'static [Alias];

    /// The program that runs it.
    const RUNNER: RunnerProgram = RunnerProgram::Tool;

    /// The program that has to be installed.
    const PROGRAM: Option<&'static str> = None;

    /// What its arguments rest on.
    const REQUIRES_READ: bool = false;

    /// For how long its answer holds.
    const CACHEABLE: bool = false;

    /// Who calls it.
    const CALLER: Caller = Caller::Model;

    /// What the look before a verdict sees at a path.
    const PROBE_MODE: ProbeMode = ProbeMode::Content;

    /// What a verdict needs to know about a call.
    fn facts(input: &Self::Input) -> JudgedFacts;

    /// The unified diff that the call would make; empty for tools that make none.
    fn preview(_input: Self::Input, _ctx: &ToolContext<'_>) -> Result<String, ToolFailure> {
        Ok(String::new())
    }

    /// Does it. Nothing is changed where this fails, except by a command.
    fn run(input: Self::Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure>;
}

/// The table's entry for a tool.
pub(crate) const fn spec_of<T: Tool>() -> ToolDeclaration {
    ToolDeclaration {
        name: T::NAME,
        kind: T::KIND,
        profile: T::PROFILE,
        runner: T::RUNNER,
        requires_read: T::REQUIRES_READ,
        cacheable: T::CACHEABLE,
        caller: T::CALLER,
        program: T::PROGRAM,
        description: T::DESCRIPTION,
        aliases: T::ALIASES,
        schema: crate::arguments::schema::text_of::<T::Input>,
        check: crate::spec::check::<T>,
    }
}

/// The working half of a tool.
#[derive(Clone, Copy)]
pub(crate) struct ToolImpl {
    /// The tool's real name.
    pub name: &'static str,
    /// See [`Tool::PROBE_MODE`].
    pub probe_mode: ProbeMode,
    /// See [`Tool::preview`]; the input is normalised JSON.
    pub preview: fn(&str, &ToolContext<'_>) -> Result<String, ToolFailure>,
    /// See [`Tool::run`]; the input is normalised JSON.
    pub run: fn(&str, &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure>,
}

/// The working half of `T`.
pub(crate) const fn impl_of<T: Tool>() -> ToolImpl {
    ToolImpl {
        name: T::NAME,
        probe_mode: T::PROBE_MODE,
        preview: |input, ctx| T::preview(parse_input::<T>(input)?, ctx),
        run: |input, ctx| T::run(parse_input::<T>(input)?, ctx),
    }
}

/// The arguments, which `interpret` has checked before.
fn parse_input<T: Tool>(input: &str) -> Result<T::Input, ToolFailure> {
    serde_json::from_str(input).map_err(|error| {
        ToolFailure::new(
            crate::FailureCode::InvalidArguments,
            format!("the arguments do not fit: {error}"),
            "",
        )
    })
}

/// Checks and normalises the arguments of one tool; see [`ToolDeclaration`].
pub(crate) fn check<T: Tool>(
    input: serde_json::Value,
) -> Result<(String, JudgedFacts), InvalidCall> {
    let serde_json::Value::Object(fields) = &input else {
        return Err(InvalidCall::NotAnObject { tool: T::NAME });
    };
    schema::check(T::NAME, &schema::value_of::<T::Input>(), fields)?;
    // Sorted here and not by serde_json's map, whose order depends on how it was built.
    let sorted: std::collections::BTreeMap<_, _> = fields.iter().collect();
    let unreadable = |error: serde_json::Error| InvalidCall::NotJson {
        tool: T::NAME,
        reason: error.to_string(),
    };
    let text = serde_json::to_string(&sorted).map_err(unreadable)?;
    // It fits the schema: what is wrong now is what it says.
    let parsed: T::Input = serde_json::from_value(input)
        .map_err(|error| InvalidCall::Unfit { tool: T::NAME, reason: error.to_string() })?;
    Ok((text, T::facts(&parsed)))
}
