//! `web_search`: what a search engine finds.

use crate::answer::Answer;
use crate::arguments::Facts;
use crate::failure::{Code, Failure};
use crate::site::Site;
use crate::spec::{Alias, Runner, Tool};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest query in characters.
const QUERY_CHARS: usize = 500;

pub(super) struct WebSearch;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// What to look for, in the words of a search engine.
    query: String,
    /// Most results.
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = 10))]
    limit: usize,
}

fn limit() -> usize {
    5
}

impl Tool for WebSearch {
    type Input = Input;
    const NAME: &'static str = "web_search";
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Web;
    const RUNNER: Runner = Runner::Web;
    const DESCRIPTION: &'static str = "Search the web: title, address and a few words of each result. \
        Read one with web_fetch.";
    const ALIASES: &'static [Alias] =
        &[Alias::plain("search_web"), Alias::plain("google_web_search")];

    fn facts(_: &Input) -> Facts {
        Facts::default()
    }

    fn run(input: Input, site: &mut Site<'_>) -> Result<Answer, Failure> {
        let query = input.query.trim();
        if query.is_empty() || query.chars().count() > QUERY_CHARS {
            let why = format!("a query has 1 to {QUERY_CHARS} characters");
            return Err(Failure::new(Code::InvalidArguments, why, ""));
        }
        let hits = site.web()?.search(query, input.limit, site.cancel)?;
        let mut text = String::new();
        for (at, hit) in hits.iter().enumerate() {
            text.push_str(&format!("{}. {}\n   {}\n", at + 1, hit.title, hit.url));
            if !hit.snippet.is_empty() {
                text.push_str(&format!("   {}\n", hit.snippet));
            }
        }
        if hits.is_empty() {
            text.push_str("nothing was found");
        }
        let summary = format!("{} results for {query:?}", hits.len());
        Ok(Answer::done(text, summary, Vec::new()))
    }
}
