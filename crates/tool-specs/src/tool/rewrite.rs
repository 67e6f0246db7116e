//! `rewrite`: a file edited by its syntax tree, all edits together or none.

use crate::arguments::dialect::ArgMeaning::Field;
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::rule_target::{Inherit, InheritedRules};
use crate::runner_program::RunnerProgram;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct RewriteTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The file, relative to the project directory or absolute.
    pub path: String,
    /// The edits. All are located in the file as it is now, so their order does not matter; none
    /// may change the same code as another.
    pub edits: Vec<SyntaxEdit>,
}

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct SyntaxEdit {
    /// Replace code that matches a pattern.
    pub replace: CodeReplacement,
}

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct CodeReplacement {
    /// Code with metavariables: $NAME stands for one piece of the tree, $$$NAME for any number.
    /// Each match is replaced. Either this or rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// A rule of ast-grep as an object, for example {"kind": "call_expression", "has": {"pattern":
    /// "await $A"}}.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<serde_json::Map<String, serde_json::Value>>,
    /// The replacement, with the same metavariables.
    pub replacement: String,
    /// Only inside code that looks like this pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// Only inside the function, type or module of this name; `Type.method` where one is not clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_symbol: Option<String>,
}

impl ToolSpec for RewriteTool {
    type Input = Input;
    const NAME: &'static str = "rewrite";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Mutate;
    const REQUIRES_READ: bool = true;
    const RUNNER: RunnerProgram = RunnerProgram::Code;
    const DESCRIPTION: &'static str = "Edit a source file by its syntax: replace all code that matches a pattern. Either all \
        edits are made or none. For plain text and to rename something use edit.";
    const ALIASES: &'static [Alias] = &[Alias::plain("code-edit"), Alias::plain("ast_edit")];
    const FOUND_BY: Option<&'static str> = Some(
        "refactor codemod structural replace syntax tree AST search and replace code pattern transform",
    );
    const LIMITS: &'static str = "At most 50 edits.";
    const EXAMPLE: &'static str =
        r#"{"path":"a.rs","edits":[{"replace":{"pattern":"go($A)","replacement":"run($A)"}}]}"#;
    const FIELD_ALIASES: FieldAliases = &[("ops", Field("edits")), ("operations", Field("edits"))];
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("edit", Inherit::All)];

    fn facts(input: &Input) -> JudgedFacts {
        JudgedFacts { paths: vec![input.path.clone()], ..JudgedFacts::default() }
    }
}
