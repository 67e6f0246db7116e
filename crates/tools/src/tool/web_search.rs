//! `web_search`: searches the web with a search engine.

use crate::arguments::dialect::{
    ArgMeaning::{Field, Unmet},
    FieldAliases,
};
use crate::arguments::facts::JudgedFacts;
use crate::failure::{FailureCode, ToolFailure};
use crate::rule_target::{Inherit, InheritedRules};
use crate::runner_program::RunnerProgram;
use crate::spec::{Alias, Tool};
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest query in characters.
const QUERY_CHARS: usize = 500;

pub(super) struct WebSearchTool;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The search terms.
    query: String,
    /// Most results.
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = 10))]
    limit: usize,
}

fn limit() -> usize {
    5
}

impl Tool for WebSearchTool {
    type Input = Input;
    const NAME: &'static str = "web_search";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Web;
    const RUNNER: RunnerProgram = RunnerProgram::Web;
    const DESCRIPTION: &'static str = "Search the web. Each result has a title, an address and a short excerpt. Read a result \
        with web_fetch.";
    const ALIASES: &'static [Alias] =
        &[Alias::plain("search_web"), Alias::plain("google_web_search")];
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

    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let query = input.query.trim();
        if query.is_empty() || query.chars().count() > QUERY_CHARS {
            let why = format!("a query has 1 to {QUERY_CHARS} characters");
            return Err(ToolFailure::new(FailureCode::InvalidArguments, why, ""));
        }
        let hits = ctx.web()?.search(query, input.limit, ctx.cancel)?;
        let mut text = String::new();
        for (at, hit) in hits.iter().enumerate() {
            text.push_str(&format!("{}. {}\n   {}\n", at + 1, hit.title, hit.url));
            if !hit.snippet.is_empty() {
                text.push_str(&format!("   {}\n", hit.snippet));
            }
        }
        if hits.is_empty() {
            text.push_str("no results");
        }
        let summary = format!("{} results for {query:?}", hits.len());
        Ok(ToolAnswer::done(text, summary, Vec::new()))
    }
}
