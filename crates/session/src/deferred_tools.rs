//! Tools that requests list once the model has looked for them or called them: those of rare use, and those of
//! servers where the schemas of all would fill too much of the context. Pure, and independent of where a tool
//! comes from. Used by `room` and `builtin_tools`.
//!
//! The list of a request only grows, and keeps its order, so that a vendor's prompt cache keeps its
//! prefix: first the tools that are never deferred, then the others in the order in which they were
//! found or called.

use crate::token_size::BYTES_A_TOKEN;
use protocol::session::{OfferedTool, SessionSetup, ToolListing};

/// The tool that finds the others.
pub(crate) const TOOL_SEARCH: &str = "tool_search";
/// The part of the context that schemas may fill before those of servers are deferred: one in so many.
const SHARE: u64 = 10;
/// Most tools that one search loads.
const FOUND: usize = 5;

/// The beginning of a found tool in a result. What was loaded is read from the results again.
const BEGINS: &str = "<tool name=\"";

/// Points of a word of the query that a tool has in its name, in the words for its use, or in its description.
const POINTS: [usize; 3] = [6, 4, 1];
/// Words that every request has.
const IDLE: &[&str] = &[
    "a", "an", "the", "to", "of", "for", "in", "on", "at", "by", "with", "from", "into", "and",
    "or", "not", "is", "are", "was", "be", "it", "its", "this", "that", "these", "all", "any",
    "some", "my", "me", "i", "you", "we", "how", "what", "which", "can", "do", "does", "want",
    "need", "please", "use", "using", "tool", "tools",
];

/// Bytes of a tool in a request.
pub(crate) fn size(tool: &OfferedTool) -> usize {
    tool.spec.name.len() + tool.spec.description.len() + tool.spec.input_schema.len()
}

/// The tools of a session, as requests list them.
struct Listed<'a> {
    /// From the start.
    first: Vec<&'a OfferedTool>,
    search: Option<&'a OfferedTool>,
    /// Once they are loaded.
    deferred: Vec<&'a OfferedTool>,
}

impl<'a> Listed<'a> {
    fn of(setup: &'a SessionSetup) -> Self {
        let known = setup.offered().filter(|tool| tool.listing != ToolListing::Denied);
        let (search, all): (Vec<_>, Vec<_>) = known.partition(|tool| tool.spec.name == TOOL_SEARCH);
        // Without a search none could be loaded.
        let Some(search) = search.first().copied() else {
            return Self { first: all, search: None, deferred: Vec::new() };
        };
        let is_searched =
            |tool: &&OfferedTool| matches!(tool.listing, ToolListing::Searched { .. });
        let is_small = is_small(all.iter().filter(|tool| !is_searched(tool)), setup.facts.context);
        let (first, deferred): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|tool| match tool.listing {
                ToolListing::Always => true,
                ToolListing::IfSmall => is_small,
                ToolListing::Searched { .. } | ToolListing::Denied => false,
            });
        let search = Some(search).filter(|_| !deferred.is_empty());
        Self { first, search, deferred }
    }
}

fn is_small<'a>(tools: impl Iterator<Item = &'a &'a OfferedTool>, context: Option<u64>) -> bool {
    let tokens = tools.map(|tool| size(tool)).sum::<usize>() / BYTES_A_TOKEN;
    context.is_none_or(|context| u64::try_from(tokens).unwrap_or(u64::MAX) <= context / SHARE)
}

/// The tools of the next request, where these were loaded, in that order.
pub(crate) fn offered(setup: &SessionSetup, loaded: &[String]) -> Vec<OfferedTool> {
    let Listed { first, search, deferred } = Listed::of(setup);
    let search = search.map(|search| naming(search, &deferred));
    let named = |name: &String| deferred.iter().find(|tool| tool.spec.name == *name);
    let loaded = loaded.iter().filter_map(named);
    first.into_iter().cloned().chain(search).chain(loaded.map(|tool| (*tool).clone())).collect()
}

/// The search with the names of all that it finds. They stay when tools are loaded, for the caches.
fn naming(search: &OfferedTool, deferred: &[&OfferedTool]) -> OfferedTool {
    let names: Vec<&str> = deferred.iter().map(|tool| tool.spec.name.as_str()).collect();
    let mut search = search.clone();
    search.spec.description.push_str(&format!(" It finds: {}.", names.join(", ")));
    search
}

/// The text that a search gives: the best matches, each with the beginning of its description. The next
/// request has all of it, and the schema.
pub(crate) fn search(query: &str, setup: &SessionSetup) -> (String, String) {
    let found = matches(query, &Listed::of(setup).deferred);
    if found.is_empty() {
        let text = format!(
            "No tool matches {query:?}. Try one word of what the tool does, or a name of the list in \
             the description of {TOOL_SEARCH}."
        );
        return (text, "no tool found".to_owned());
    }
    let mut text =
        "These tools are loaded. You can call them from your next answer on.\n".to_owned();
    for tool in &found {
        let spec = &tool.spec;
        let about = spec.description.split_inclusive(". ").next().unwrap_or_default().trim_end();
        text.push_str(&format!("\n{BEGINS}{}\">\n{about}\n</tool>\n", spec.name));
    }
    let names: Vec<&str> = found.iter().map(|tool| tool.spec.name.as_str()).collect();
    (text, format!("found {}", names.join(", ")))
}

/// The tools that a query lists by their names; for any other query, those that match its words best and
/// those that match nearly as well.
fn matches<'a>(query: &str, deferred: &[&'a OfferedTool]) -> Vec<&'a OfferedTool> {
    let names = query.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    let names: Vec<String> =
        names.map(str::to_lowercase).filter(|name| !name.is_empty() && !is_idle(name)).collect();
    let named = |name: &String| deferred.iter().find(|tool| tool.spec.name.to_lowercase() == *name);
    let mut found: Vec<&OfferedTool> = names.iter().filter_map(named).copied().collect();
    if found.len() < names.len() {
        // One word may be a word of the sentence: `delete a memory`.
        found.retain(|tool| named_in(&names, tool));
        let mut scored: Vec<_> = scores(query, deferred).into_iter().zip(deferred).collect();
        // Equals stay in the order of the table.
        scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        let best = scored.first().map_or(0, |(score, _)| *score);
        let near = scored.into_iter().filter(|(score, _)| *score > 0 && score * 3 >= best * 2);
        let near: Vec<&OfferedTool> = near.map(|(_, tool)| *tool).collect();
        found.extend(near.into_iter().filter(|tool| !named_in(&names, tool)));
    }
    found.truncate(FOUND);
    found
}

fn named_in(names: &[String], tool: &OfferedTool) -> bool {
    tool.spec.name.contains('_') && names.contains(&tool.spec.name.to_lowercase())
}

/// How well each tool matches the words of a query. A word that few tools have counts more.
fn scores(query: &str, deferred: &[&OfferedTool]) -> Vec<usize> {
    let mut scores = vec![0; deferred.len()];
    for word in words(query).into_iter().filter(|word| !is_idle(word)) {
        let points: Vec<usize> = deferred.iter().map(|tool| points(tool, &word)).collect();
        let having = points.iter().filter(|points| **points > 0).count().max(1);
        for (score, points) in scores.iter_mut().zip(points) {
            *score += points * deferred.len() / having;
        }
    }
    scores
}

fn is_idle(word: &str) -> bool {
    IDLE.contains(&word)
}

/// The points of a tool for one word.
fn points(tool: &OfferedTool, word: &str) -> usize {
    let of_use = match &tool.listing {
        ToolListing::Searched { words } => words.as_str(),
        ToolListing::Always | ToolListing::IfSmall | ToolListing::Denied => "",
    };
    let texts = [&tool.spec.name, of_use, &tool.spec.description];
    let has = |text: &str| words(text).iter().any(|known| is_same(word, known));
    texts.iter().zip(POINTS).find(|(text, _)| has(text)).map_or(0, |(_, points)| points)
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// True for forms of one word: they differ in an ending of at most three letters, as `memory` and `memories` do.
fn is_same(one: &str, other: &str) -> bool {
    let common = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let (one, other) = (one.chars().count(), other.chars().count());
    let (short, long) = (one.min(other), one.max(other));
    one == other && common == one || common >= 3 && common + 1 >= short && common + 3 >= long
}

/// The names of the tools in the result of a search, in its order.
pub(crate) fn found_in(result: &str) -> Vec<String> {
    let names = result.lines().filter_map(|line| line.strip_prefix(BEGINS)?.strip_suffix("\">"));
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::content::ToolSpec;
    use protocol::judgement::ToolKind;
    use protocol::session::CopyBeforeChange;

    fn tool(name: &str, description: &str, listing: ToolListing) -> OfferedTool {
        let (name, description) = (name.to_owned(), description.to_owned());
        let input_schema = format!("{{\"title\":\"{}\"}}", "x".repeat(300));
        OfferedTool {
            spec: ToolSpec { name, description, input_schema },
            kind: ToolKind::Query,
            copies: CopyBeforeChange::None,
            listing,
        }
    }

    fn searched(words: &str) -> ToolListing {
        ToolListing::Searched { words: words.to_owned() }
    }

    fn table() -> Vec<OfferedTool> {
        vec![
            tool("read", "Read a file.", ToolListing::Always),
            tool("memory_add", "Save a memory.", searched("remember")),
            tool(TOOL_SEARCH, "Find tools.", ToolListing::Always),
            tool("git_log", "Show commits. Newest first.", searched("history who blame")),
            tool("git_show", "Show one of them.", searched("old version")),
            tool("bash", "Run a command.", ToolListing::Always),
            tool("rewrite", "Edit code.", ToolListing::Denied),
            tool(
                "mcp__tracker__list_issues",
                "List the open tickets of a project.",
                ToolListing::IfSmall,
            ),
        ]
    }

    fn names(tools: &[OfferedTool]) -> Vec<&str> {
        tools.iter().map(|tool| tool.spec.name.as_str()).collect()
    }

    fn setup(context: Option<u64>) -> SessionSetup {
        let mut setup = crate::limits::tests::setup(table());
        setup.facts.context = context;
        setup
    }

    #[test]
    fn rare_tools_are_deferred_in_each_context_and_those_of_servers_in_a_small_one() {
        // About 330 tokens from the start: a tenth of 4,000, not of 3,000.
        let server = "mcp__tracker__list_issues";
        for (context, first, finds) in [
            (None, vec!["read", "bash", server], "memory_add, git_log, git_show."),
            (Some(4_000), vec!["read", "bash", server], "memory_add, git_log, git_show."),
            (
                Some(3_000),
                vec!["read", "bash"],
                "memory_add, git_log, git_show, mcp__tracker__list_issues.",
            ),
        ] {
            let setup = setup(context);
            let start = offered(&setup, &[]);
            assert_eq!(names(&start), [&first[..], &[TOOL_SEARCH]].concat());
            let search = &start[start.len() - 1].spec.description;
            assert!(search.ends_with(&format!("It finds: {finds}")), "{search}");
            let loaded = ["git_log", "nope", "read", "rewrite", "memory_add"].map(str::to_owned);
            for count in 0..=loaded.len() {
                let next = offered(&setup, &loaded[..count]);
                assert_eq!(next[..start.len()], start[..], "the prefix stays");
            }
            let all = offered(&setup, &loaded);
            assert_eq!(names(&all)[start.len()..], ["git_log", "memory_add"]);
        }
    }

    #[test]
    fn a_session_without_the_search_or_without_deferred_tools_has_every_tool() {
        let mut without = setup(Some(3_000));
        without.tools.retain(|tool| tool.spec.name != TOOL_SEARCH);
        let all =
            ["read", "memory_add", "git_log", "git_show", "bash", "mcp__tracker__list_issues"];
        assert_eq!(names(&offered(&without, &[])), all);
        let mut denied = setup(None);
        denied.tools[2].listing = ToolListing::Denied;
        assert_eq!(names(&offered(&denied, &[])), all);
        let mut few = setup(None);
        few.tools.retain(|tool| tool.listing == ToolListing::Always);
        assert_eq!(names(&offered(&few, &[])), ["read", "bash"]);
    }

    #[test]
    fn a_search_finds_by_name_and_by_words_and_its_result_says_what_was_loaded() {
        for (query, wanted) in [
            ("git_log", vec!["git_log"]),
            ("who committed it", vec!["git_log"]),
            ("Git_Show, git_log", vec!["git_show", "git_log"]),
            ("git_show of the history", vec!["git_show", "git_log"]),
            ("remembering", vec!["memory_add"]),
            ("memories", vec!["memory_add"]),
            ("git", vec!["git_log", "git_show"]),
            ("an old version", vec!["git_show"]),
            ("tickets", vec!["mcp__tracker__list_issues"]),
            ("mcp__tracker__list_issues, git_log", vec!["mcp__tracker__list_issues", "git_log"]),
            ("rewrite code", vec![]),
            ("the tool to use for this", vec![]),
            ("nothing", vec![]),
            ("", vec![]),
        ] {
            let (text, summary) = search(query, &setup(Some(3_000)));
            assert_eq!(found_in(&text), wanted, "{query}: {text}");
            assert!(!summary.is_empty());
        }
        let (text, _) = search("git_log", &setup(None));
        assert!(text.ends_with("\n<tool name=\"git_log\">\nShow commits.\n</tool>\n"), "{text}");
        let mut many = setup(None);
        many.tools.extend((0..9).map(|n| tool(&format!("s_{n}"), "A tool.", searched("many"))));
        assert_eq!(found_in(&search("many", &many).0).len(), FOUND);
    }

    #[test]
    fn forms_of_a_word_are_the_same_and_other_words_are_not() {
        for (one, other) in [
            ("commit", "commits"),
            ("memory", "memories"),
            ("edit", "editing"),
            ("undo", "undoing"),
        ] {
            assert!(is_same(one, other) && is_same(other, one), "{one} {other}");
        }
        for (one, other) in
            [("command", "commit"), ("add", "address"), ("log", "git"), ("on", "one"), ("", "a")]
        {
            assert!(!is_same(one, other) && !is_same(other, one), "{one} {other}");
        }
    }
}
