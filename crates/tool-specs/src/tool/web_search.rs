//! `web_search`: searches the web with a search engine.

use crate::arguments::dialect::ArgMeaning::{Field, Unmet};
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::rule_target::{Inherit, InheritedRules};
use crate::runner_program::RunnerProgram;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct WebSearchTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The search terms.
    pub query: String,
    /// Most results.
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = 10))]
    pub limit: usize,
}

fn limit() -> usize {
    5
}

impl ToolSpec for WebSearchTool {
    type Input = Input;
    const NAME: &'static str = "web_search";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Web;
    const RUNNER: RunnerProgram = RunnerProgram::Web;
    const DESCRIPTION: &'static str = "Search the web. Each result has a title, an address and a short excerpt. Read a result \
        with web_fetch.";
    const ALIASES: &'static [Alias] =
        &[Alias::plain("search_web"), Alias::plain("google_web_search")];
    const FOUND_BY: Option<&'static str> = Some(
        "internet online google duckduckgo look up search engine news latest documentation error message",
    );
    const LIMITS: &'static str = "At most 10 results.";
    const EXAMPLE: &'static str = r#"{"query":"rust landlock crate","limit":3}"#;
    const FIELD_ALIASES: FieldAliases = &[
        ("q", Field("query")),
        ("search_term", Field("query")),
        ("num_results", Field("limit")),
        ("max_results", Field("limit")),
        ("count", Field("limit")),
        ("allowed_domains", Unmet("allowed_domains was ignored: put `site:NAME` into the query.")),
        ("blocked_domains", Unmet("blocked_domains was ignored: put `-site:NAME` into the query.")),
    ];
    // Rules that deny a host hold for every way to reach it.
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("host", Inherit::DenyAndAsk)];

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }
}
