//! `web_search`: searches the web with a search engine.

use crate::failure::{FailureCode, ToolFailure};
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use tool_specs::ToolAnswer;
use tool_specs::tool::web_search::{Input, WebSearchTool};

/// Longest query in characters.
const QUERY_CHARS: usize = 500;

impl Tool for WebSearchTool {
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
