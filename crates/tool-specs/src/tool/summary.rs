//! `summary`: the outline of a file, from its syntax tree.

use crate::arguments::facts::JudgedFacts;
use crate::rule_target::{Inherit, InheritedRules};
use crate::runner_program::RunnerProgram;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct SummaryTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The file, relative to the project directory or absolute.
    pub path: String,
}

impl ToolSpec for SummaryTool {
    type Input = Input;
    const NAME: &'static str = "summary";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Query;
    const RUNNER: RunnerProgram = RunnerProgram::Code;
    const DESCRIPTION: &'static str = "Show the outline of one file: imports, types and functions with their signatures and \
        line numbers; headings of Markdown, keys of TOML and JSON. Use it before reading a \
        long file.";
    const ALIASES: &'static [Alias] =
        &[Alias::plain("get_file_summary"), Alias::plain("file-summary"), Alias::plain("outline")];
    const FOUND_BY: Option<&'static str> = Some(
        "overview outline of source code symbols functions classes signatures structure table of \
        contents skim",
    );
    const EXAMPLE: &'static str = r#"{"path":"src/main.rs"}"#;
    // Both show the text of a file.
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("read", Inherit::All)];
    const CACHEABLE: bool = true;

    fn facts(input: &Input) -> JudgedFacts {
        JudgedFacts { paths: vec![input.path.clone()], ..JudgedFacts::default() }
    }
}
