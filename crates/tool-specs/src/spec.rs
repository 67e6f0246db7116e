//! The declaration of a tool: the trait that each row of the table implements, and the row.

use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::arguments::invalid::InvalidCall;
use crate::arguments::schema;
use crate::rule_target::{InheritedRules, MatchedBy, RuleTarget};
use crate::runner_program::RunnerProgram;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::sync::Arc;

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
    /// Models.
    Model,
    /// The conversation alone, on its own account.
    Conversation,
    /// Models, by the name of a server's tool. The server describes it.
    ModelOfServer,
}

/// One tool as the table has it, without the code that runs it.
#[derive(Debug, Clone, Copy)]
pub struct ToolDeclaration {
    /// The real name.
    pub name: &'static str,
    /// Query or mutation.
    pub kind: ToolKind,
    judged_as: ToolKind,
    /// The cage its calls run in, unless a call needs another.
    pub profile: Profile,
    /// The program that runs it.
    pub runner: RunnerProgram,
    /// True if the files that it names must be unchanged since the model read them.
    pub requires_read: bool,
    /// True if its result may be reused while every file that it read is unchanged.
    pub cacheable: bool,
    /// Who calls it.
    pub caller: Caller,
    /// The program that has to be installed; the tool is not offered where it is not.
    pub program: Option<&'static str>,
    /// The description for the model.
    pub description: &'static str,
    /// Other names.
    pub aliases: &'static [Alias],
    /// Words by which `tool_search` finds it; requests list a tool without them from the start.
    pub found_by: Option<&'static str>,
    /// Its limits, in words; may be empty.
    pub limits: &'static str,
    /// Arguments of an example call, as JSON.
    pub example: &'static str,
    /// The part of a call that patterns of its rules are matched with.
    pub matched_by: MatchedBy,
    /// Other tools whose rules apply as well.
    pub inherits: &'static [InheritedRules],
    /// Field names of other agents.
    pub(crate) field_aliases: FieldAliases,
    /// JSON schema of its arguments, the same text at every call.
    pub schema: fn() -> serde_json::Value,
    pub(crate) check: fn(serde_json::Value) -> Result<CheckedInput, InvalidCall>,
}

impl ToolDeclaration {
    /// The kind that the verdict uses. A call that changes only agentd's own notes is never a
    /// question for the user, although it does not run in parallel with its neighbours.
    #[must_use]
    pub const fn judged_as(&self) -> ToolKind {
        self.judged_as
    }
}

/// The arguments of a call in the type of its tool, for the code that runs it: JSON is read once.
#[derive(Debug, Clone)]
pub struct TypedInput(Arc<dyn Any + Send + Sync>);

impl TypedInput {
    /// The arguments, if they are those of this tool.
    #[must_use]
    pub fn of<T: ToolSpec>(&self) -> Option<&T::Input> {
        self.0.downcast_ref()
    }
}

/// Arguments that fit their tool.
pub(crate) struct CheckedInput {
    /// As JSON, keys sorted.
    pub text: String,
    pub facts: JudgedFacts,
    pub typed: TypedInput,
}

/// What a tool is. The trait `Tool` of the crate `tools` runs it.
pub trait ToolSpec {
    /// Its arguments. The doc comments of the fields are the model's documentation.
    type Input: DeserializeOwned + Serialize + JsonSchema + Clone + Send + Sync + 'static;
    /// The real name.
    const NAME: &'static str;
    /// Query or mutation.
    const KIND: ToolKind;
    /// The cage its calls run in.
    const PROFILE: Profile;
    /// The kind that the verdict uses.
    const JUDGED_AS: ToolKind = judged_as(Self::PROFILE, Self::KIND);
    /// The description for the model.
    const DESCRIPTION: &'static str;
    /// Other names.
    const ALIASES: &'static [Alias];

    /// Words by which `tool_search` finds it, beside those of its name and description. Requests list a
    /// tool without them from the start; one with them, once it was found or a result names it.
    const FOUND_BY: Option<&'static str> = None;

    /// Its limits, in words.
    const LIMITS: &'static str = "";

    /// Arguments of an example call, as JSON.
    const EXAMPLE: &'static str = "";

    /// Other agents' names for its fields; a field of a nested object is written `outer.name`.
    const FIELD_ALIASES: FieldAliases = &[];

    /// The part of a call that patterns of its rules are matched with.
    const MATCHED_BY: MatchedBy = MatchedBy::of(Self::PROFILE);

    /// Other tools whose rules apply as well.
    const INHERITS: &'static [InheritedRules] = &[];

    /// The program that runs it.
    const RUNNER: RunnerProgram = RunnerProgram::Tool;

    /// The program that has to be installed.
    const PROGRAM: Option<&'static str> = None;

    /// True if the files that it names must be unchanged since the model read them.
    const REQUIRES_READ: bool = false;

    /// True if its result may be reused while every file that it read is unchanged.
    const CACHEABLE: bool = false;

    /// Who calls it.
    const CALLER: Caller = Caller::Model;

    /// The facts about a call that a verdict needs.
    fn facts(input: &Self::Input) -> JudgedFacts;
}

/// The table's entry for a tool.
pub(crate) const fn spec_of<T: ToolSpec>() -> ToolDeclaration {
    ToolDeclaration {
        name: T::NAME,
        kind: T::KIND,
        judged_as: T::JUDGED_AS,
        profile: T::PROFILE,
        runner: T::RUNNER,
        requires_read: T::REQUIRES_READ,
        cacheable: T::CACHEABLE,
        caller: T::CALLER,
        program: T::PROGRAM,
        description: T::DESCRIPTION,
        aliases: T::ALIASES,
        found_by: T::FOUND_BY,
        limits: T::LIMITS,
        example: T::EXAMPLE,
        matched_by: T::MATCHED_BY,
        inherits: T::INHERITS,
        field_aliases: T::FIELD_ALIASES,
        schema: crate::arguments::schema::listed_of::<T::Input>,
        check: crate::spec::check::<T>,
    }
}

/// Checks and normalises the arguments of one tool; see [`ToolDeclaration`].
pub(crate) fn check<T: ToolSpec>(input: serde_json::Value) -> Result<CheckedInput, InvalidCall> {
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
    // The value fits the schema, so the error is in its content.
    let parsed: T::Input = serde_json::from_value(input)
        .map_err(|error| InvalidCall::Unfit { tool: T::NAME, reason: error.to_string() })?;
    Ok(CheckedInput { text, facts: T::facts(&parsed), typed: TypedInput(Arc::new(parsed)) })
}

/// The kind that verdicts use for a tool of this policy and kind.
const fn judged_as(profile: Profile, kind: ToolKind) -> ToolKind {
    match profile {
        Profile::Store | Profile::Session => ToolKind::Query,
        Profile::Probe
        | Profile::Query
        | Profile::Mutate
        | Profile::Command
        | Profile::Verify
        | Profile::Format
        | Profile::Git
        | Profile::GitLook
        | Profile::Hook
        | Profile::GuardHook
        | Profile::Document
        | Profile::Mcp
        | Profile::McpWrite
        | Profile::McpRemote
        | Profile::Broker
        | Profile::Provider
        | Profile::Web => kind,
    }
}

/// The rule table's entry for a tool.
pub(crate) const fn rule_target_of<T: ToolSpec>() -> RuleTarget {
    RuleTarget {
        name: T::NAME,
        kind: T::JUDGED_AS,
        matched_by: T::MATCHED_BY,
        inherits: T::INHERITS,
    }
}
