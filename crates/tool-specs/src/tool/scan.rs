//! `scan`: searches for code by its syntax tree.

use super::ls::here;
use crate::arguments::dialect::ArgMeaning::Field;
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::rule_target::{Inherit, InheritedRules, MatchedBy, RuleDepth};
use crate::runner_program::RunnerProgram;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ScanTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The code to find. $NAME matches one syntax node, $$$NAME any number: `fetch($URL, $$$)`, `if
    /// ($A) { $$$BODY }`. Several patterns are searched independently.
    pub patterns: Vec<String>,
    /// The file or directory to search.
    #[serde(default = "here")]
    pub path: String,
    /// Search only files of this language; where it is left out, of each that can be read:
    /// TypeScript, TSX, JavaScript, HTML, CSS, Python, Rust, Go, Java, C, C++, Bash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Stop after so many matches.
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = 500))]
    pub limit: usize,
}

fn limit() -> usize {
    50
}

impl ToolSpec for ScanTool {
    type Input = Input;
    const NAME: &'static str = "scan";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Query;
    const RUNNER: RunnerProgram = RunnerProgram::Code;
    const DESCRIPTION: &'static str = "Find code by its syntax. A pattern is code with metavariables; white space and layout \
        do not matter. Each match is path:line:[enclosing symbol] code, followed by the value \
        of each metavariable. For plain text use grep.";
    const ALIASES: &'static [Alias] = &[Alias::plain("code-scan"), Alias::plain("ast_grep")];
    const FOUND_BY: Option<&'static str> = Some(
        "structural search syntax tree AST query callers calls references of a function usages semantic \
        code search",
    );
    const LIMITS: &'static str = "At most 500 matches.";
    const EXAMPLE: &'static str = r#"{"patterns":["fetch($URL, $$$)"],"path":"src"}"#;
    const FIELD_ALIASES: FieldAliases = &[
        ("pattern", Field("patterns")),
        ("lang", Field("language")),
        ("max_results", Field("limit")),
    ];
    const MATCHED_BY: MatchedBy = MatchedBy::Path(RuleDepth::Below);
    // Both show the text of files.
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("grep", Inherit::All)];
    const CACHEABLE: bool = true;

    fn facts(input: &Input) -> JudgedFacts {
        JudgedFacts { paths: vec![input.path.clone()], ..JudgedFacts::default() }
    }
}
