//! Size limits of requests and results, from the setup of a session. Used by `history`.

use crate::budget::BudgetLimits;
use crate::builtin_tools::HISTORY_SEARCH;
use crate::old_results::ReadAgain;
use protocol::session::SessionSetup;

/// Size limits of requests and results.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HistoryLimits {
    /// Requests and calls.
    pub most: BudgetLimits,
    /// Most characters of one result.
    pub result_chars: usize,
    /// How the model reads a result again that was cut.
    pub again: ReadAgain,
    /// Tokens that the model's context holds, where that is known.
    pub context: Option<usize>,
    /// Most tokens of one answer, which need their room too.
    pub answer_tokens: usize,
}

/// The producer of a result truncates it; this is the last limit for the others. A web page may
/// have this many characters, whatever the limit for other results.
const PAGE: usize = 41_000;

/// Warning thresholds, and the size limits of a request.
pub(crate) fn limits(setup: &SessionSetup) -> HistoryLimits {
    HistoryLimits {
        most: BudgetLimits {
            rounds: setup.max_rounds.max(1),
            calls: setup.max_calls,
            session_calls: setup.max_session.calls,
            cost: setup.max_session.cost,
            used: setup.max_session.used,
        },
        result_chars: usize::try_from(setup.context.max_result_chars)
            .unwrap_or(usize::MAX)
            .max(PAGE),
        again: match setup.offered().any(|tool| tool.spec.name == HISTORY_SEARCH) {
            true => ReadAgain::Search,
            false => ReadAgain::Call,
        },
        context: setup.facts.context.and_then(|tokens| usize::try_from(tokens).ok()),
        answer_tokens: usize::try_from(setup.max_tokens).unwrap_or(usize::MAX),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::deferred_tools::tests::tool;
    use protocol::client::ModelFacts;
    use protocol::context::{CompactionKind, ContextSettings};
    use protocol::ids::SessionId;
    use protocol::session::{OfferedTool, SessionBounds, ToolListing};

    #[test]
    fn a_cut_names_the_search_where_the_model_has_it() {
        let mut search = tool(HISTORY_SEARCH, "Search.", ToolListing::Always);
        for (listing, again) in [
            (ToolListing::Searched { words: String::new() }, ReadAgain::Search),
            (ToolListing::Denied, ReadAgain::Call),
        ] {
            search.listing = listing;
            assert_eq!(limits(&setup(vec![search.clone()])).again, again);
        }
    }

    /// A conversation with these tools.
    pub(crate) fn setup(tools: Vec<OfferedTool>) -> SessionSetup {
        SessionSetup {
            id: SessionId("0123456789ab".into()),
            project: "/p".into(),
            model: "m".into(),
            system: "s".into(),
            tools,
            max_rounds: 25,
            max_calls: 300,
            max_session: SessionBounds::default(),
            max_tokens: 1000,
            parallel: 4,
            context: ContextSettings { max_result_chars: 30_000, compaction: CompactionKind::Cut },
            facts: ModelFacts::default(),
            pinned: Vec::new(),
            hooks: protocol::hook::SessionHooks::default(),
            mode: protocol::judgement::PermissionMode::Ask,
        }
    }
}
