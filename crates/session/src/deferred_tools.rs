//! Tools that the model gets only when it looks for them, where the schemas of all would fill too much of
//! its context. Pure, and independent of where a tool comes from. Used by `room` and `builtin_tools`.
//!
//! The list of a request only grows, and keeps its order, so that a vendor's prompt cache keeps its
//! prefix: first the tools that are never deferred, then the others in the order in which they were
//! found or called.

use crate::token_size::BYTES_A_TOKEN;
use protocol::session::{OfferedTool, SessionSetup};

/// The tool that finds the others.
pub(crate) const TOOL_SEARCH: &str = "tool_search";
/// The part of the context that schemas may fill: one in so many.
const SHARE: u64 = 10;
/// Most tools that one search loads.
const FOUND: usize = 5;
/// Tools that are never deferred: without them the model could not begin.
const CORE: &[&str] = &[
    "read",
    "ls",
    "glob",
    "grep",
    "write",
    "edit",
    "bash",
    "bash_output",
    "history_search",
    protocol::judgement::EXIT_PLAN,
    TOOL_SEARCH,
];

/// The beginning of a found tool in a result. What was loaded is read from the results again.
const BEGINS: &str = "<tool name=\"";

/// Bytes of a tool in a request.
pub(crate) fn size(tool: &OfferedTool) -> usize {
    tool.spec.name.len() + tool.spec.description.len() + tool.spec.input_schema.len()
}

/// The tools of the next request, where these were loaded, in that order.
pub(crate) fn offered(setup: &SessionSetup, loaded: &[String]) -> Vec<OfferedTool> {
    let all = || setup.offered().filter(|tool| tool.spec.name != TOOL_SEARCH);
    let search = setup.tools.iter().find(|tool| tool.spec.name == TOOL_SEARCH);
    let (Some(search), true) = (search, is_too_large(all(), setup.facts.context)) else {
        return all().cloned().collect();
    };
    let core = all().filter(|tool| is_core(tool)).cloned();
    let named = |name: &String| all().find(|tool| tool.spec.name == *name && !is_core(tool));
    let loaded = loaded.iter().filter_map(named).cloned();
    core.chain([naming(search, all())]).chain(loaded).collect()
}

fn is_core(tool: &OfferedTool) -> bool {
    CORE.contains(&tool.spec.name.as_str())
}

fn is_too_large<'a>(tools: impl Iterator<Item = &'a OfferedTool>, context: Option<u64>) -> bool {
    let tokens = tools.map(size).sum::<usize>() / BYTES_A_TOKEN;
    context.is_some_and(|context| u64::try_from(tokens).unwrap_or(u64::MAX) > context / SHARE)
}

/// The search with the names of all that it finds. They stay when tools are loaded, for the caches.
fn naming<'a>(search: &OfferedTool, all: impl Iterator<Item = &'a OfferedTool>) -> OfferedTool {
    let names: Vec<&str> =
        all.filter(|tool| !is_core(tool)).map(|tool| tool.spec.name.as_str()).collect();
    let mut search = search.clone();
    search.spec.description.push_str(&format!(" It finds: {}.", names.join(", ")));
    search
}

/// The text that a search gives: the best matches, each with its description and schema.
pub(crate) fn search(query: &str, setup: &[OfferedTool]) -> (String, String) {
    let words: Vec<String> = query
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let candidates = setup.iter().filter(|tool| !is_core(tool));
    let mut found: Vec<(usize, &OfferedTool)> = candidates
        .map(|tool| (score(tool, &words), tool))
        .filter(|(score, _)| *score > 0)
        .collect();
    // Equals stay in the order of the table.
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.truncate(FOUND);
    if found.is_empty() {
        let text = format!(
            "No tool matches {query:?}. Try one word of what the tool does, or a name of the list in \
             the description of {TOOL_SEARCH}."
        );
        return (text, "no tool found".to_owned());
    }
    let mut text =
        "These tools are loaded. You can call them from your next answer on.\n".to_owned();
    for (_, tool) in &found {
        let spec = &tool.spec;
        text.push_str(&format!(
            "\n{BEGINS}{}\">\n{}\nArguments: {}\n</tool>\n",
            spec.name, spec.description, spec.input_schema
        ));
    }
    let names: Vec<&str> = found.iter().map(|(_, tool)| tool.spec.name.as_str()).collect();
    (text, format!("found {}", names.join(", ")))
}

/// How well a tool matches: its name counts most.
fn score(tool: &OfferedTool, words: &[String]) -> usize {
    let name = tool.spec.name.to_lowercase();
    let description = tool.spec.description.to_lowercase();
    let of_word = |word: &String| match () {
        () if name == *word => 20,
        () if name.contains(word.as_str()) => 5,
        () if description.contains(word.as_str()) => 1,
        () => 0,
    };
    words.iter().map(of_word).sum()
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

    fn tool(name: &str, description: &str) -> OfferedTool {
        let (name, description) = (name.to_owned(), description.to_owned());
        let input_schema = format!("{{\"title\":\"{}\"}}", "x".repeat(300));
        OfferedTool {
            spec: ToolSpec { name, description, input_schema },
            kind: ToolKind::Query,
            copies: CopyBeforeChange::None,
        }
    }

    fn table() -> Vec<OfferedTool> {
        vec![
            tool("read", "Read a file."),
            tool("web_fetch", "Fetch a page of the web."),
            tool(TOOL_SEARCH, "Find tools."),
            tool("git_log", "Show commits."),
            tool("bash", "Run a command."),
            tool("mcp__tracker__list_issues", "List the open tickets of a project."),
        ]
    }

    fn names(tools: &[OfferedTool]) -> Vec<&str> {
        tools.iter().map(|tool| tool.spec.name.as_str()).collect()
    }

    #[test]
    fn a_small_window_defers_all_but_the_core_and_the_list_only_grows() {
        let setup = crate::limits::tests::setup(table());
        let with = |context| {
            let mut setup = setup.clone();
            setup.facts.context = context;
            setup
        };
        // About 600 tokens: a tenth of 6,000, not of 5,000.
        let whole = ["read", "web_fetch", "git_log", "bash", "mcp__tracker__list_issues"];
        assert_eq!(names(&offered(&with(None), &[])), whole);
        assert_eq!(names(&offered(&with(Some(9_000)), &[])), whole);
        let small = with(Some(5_000));
        let first = offered(&small, &[]);
        assert_eq!(names(&first), ["read", "bash", TOOL_SEARCH]);
        assert!(
            first[2]
                .spec
                .description
                .contains("It finds: web_fetch, git_log, mcp__tracker__list_issues.")
        );
        let loaded = ["git_log", "nope", "read", "web_fetch"].map(str::to_owned);
        for count in 0..=loaded.len() {
            let next = offered(&small, &loaded[..count]);
            assert_eq!(next[..3], first[..], "the prefix stays");
        }
        let all = offered(&small, &loaded);
        assert_eq!(names(&all), ["read", "bash", TOOL_SEARCH, "git_log", "web_fetch"]);
        // A session without the search has every tool.
        let mut without = small;
        without.tools.retain(|tool| tool.spec.name != TOOL_SEARCH);
        assert_eq!(names(&offered(&without, &[])), whole);
    }

    #[test]
    fn a_search_finds_by_name_and_by_description_and_its_result_says_what_was_loaded() {
        for (query, wanted) in [
            ("git_log", vec!["git_log"]),
            ("page web", vec!["web_fetch"]),
            ("tickets", vec!["mcp__tracker__list_issues"]),
            ("mcp__tracker__list_issues, git_log", vec!["git_log", "mcp__tracker__list_issues"]),
            ("nothing", vec![]),
            ("", vec![]),
        ] {
            let (text, summary) = search(query, &table());
            let found = found_in(&text);
            if query != "Run a command" {
                assert_eq!(found, wanted, "{query}: {text}");
            }
            assert!(
                !found.iter().any(|name| ["bash", "read", TOOL_SEARCH].contains(&name.as_str()))
            );
            assert!(!summary.is_empty());
        }
        let many: Vec<_> = (0..9).map(|n| tool(&format!("mcp__s__{n}"), "A tool.")).collect();
        assert_eq!(found_in(&search("mcp__s", &many).0).len(), FOUND);
    }
}
