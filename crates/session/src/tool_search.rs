//! Finds tools by a query: by their names and aliases as calls know them, else by words about their use. Pure, and
//! independent of where a tool comes from. Used by `deferred_tools`.

use protocol::session::{OfferedTool, ToolListing};
use std::collections::{BTreeMap, BTreeSet};

/// Most tools that a search by words loads. Each that the query names is loaded.
const FOUND: usize = 5;
/// Most words of a name.
const LONGEST_NAME: usize = 12;

/// Points of a word of the query that a tool has in its name, in the words for its use, or in its description.
/// One that only begins like a word there has half of them.
const POINTS: [usize; 3] = [6, 5, 4];
/// Points of a word that is a part of the name, or of a text in a script without blanks.
const PART: usize = 3;
/// Letters of a word that begins like another, and of a part of a name, at least.
const BEGINNING: usize = 4;
/// Percent of the points of a tool that has each word in its name, without which none matches.
const FLOOR: usize = 42;

/// Words that tell no tool from another.
const IDLE: &[&str] = &[
    "a", "an", "the", "to", "of", "for", "in", "on", "at", "by", "with", "from", "into", "and",
    "or", "not", "is", "are", "was", "be", "it", "its", "this", "that", "these", "all", "any",
    "some", "my", "me", "i", "you", "we", "how", "what", "which", "when", "where", "can", "do",
    "does", "want", "need", "please", "use", "using", "tool", "tools", "select", "about",
    "between", "then", "there", "via",
];

/// The tools that a query finds.
#[derive(Debug, Default)]
pub(crate) struct FoundTools<'a> {
    /// Loaded, the best match first.
    pub loaded: Vec<&'a OfferedTool>,
    /// Matches that are too many to be loaded.
    pub left_out: Vec<&'a OfferedTool>,
    /// Matches that are about as good, and are listed already.
    pub listed: Vec<&'a OfferedTool>,
}

/// The deferred tools that the query names, and those that match its other words best and clearly better than each
/// tool that is listed already.
pub(crate) fn find<'a>(
    query: &str,
    listed: &[&'a OfferedTool],
    deferred: &[&'a OfferedTool],
) -> FoundTools<'a> {
    let all: Vec<&OfferedTool> = listed.iter().chain(deferred).copied().collect();
    let pieces = query.split_whitespace().filter(|piece| !is_object(piece));
    let words: Vec<String> = pieces.flat_map(words).filter(|word| !is_idle(word)).collect();
    let (named, rest) = named(&words, &Names::of(&all));
    let (mut known, mut loaded): (Vec<_>, Vec<_>) =
        named.into_iter().partition(|tool| listed.contains(tool));
    let rest: BTreeSet<String> = rest.iter().map(|word| stem(word)).collect();
    let (scores, whole) = scores(&rest, &all);
    let (of_listed, of_deferred) = scores.split_at(listed.len());
    let best = |scores: &[usize]| scores.iter().copied().max().unwrap_or_default();
    let (best_listed, best_deferred) = (best(of_listed), best(of_deferred));
    if best_listed.max(best_deferred) * 100 < whole * FLOOR || whole == 0 {
        return FoundTools { loaded, left_out: Vec::new(), listed: known };
    }
    let is_near = |score: usize| score * 5 > best_listed * 6 && score * 3 >= best_deferred * 2;
    let near = of_deferred.iter().zip(deferred).filter(|(score, _)| is_near(**score));
    let mut near: Vec<_> = near.filter(|(_, tool)| !loaded.contains(tool)).collect();
    // Equals stay in the order of the table.
    near.sort_by_key(|(score, _)| std::cmp::Reverse(**score));
    // Where more than that match alike, as all tools of a server by its name, none is better than another.
    let equals =
        near.first().map_or(0, |(best, _)| near.partition_point(|(score, _)| score >= best));
    let mut near: Vec<&OfferedTool> = near.into_iter().map(|(_, tool)| *tool).collect();
    let left_out = near.split_off(if equals > FOUND { 0 } else { near.len().min(FOUND) });
    loaded.extend(near);
    let is_best = |score: usize| score == best_listed && score * 6 >= best_deferred * 5;
    let alike = of_listed.iter().zip(listed).filter(|(score, _)| is_best(**score));
    known.extend(alike.map(|(_, tool)| *tool));
    FoundTools { loaded, left_out, listed: known }
}

/// The names and aliases of tools, written together in lower case.
struct Names<'a>(BTreeMap<String, Name<'a>>);

struct Name<'a> {
    tools: Vec<&'a OfferedTool>,
    /// A name of several words is no word of a sentence by chance.
    is_clear: bool,
}

impl<'a> Names<'a> {
    fn of(tools: &[&'a OfferedTool]) -> Self {
        let mut names = BTreeMap::new();
        for tool in tools {
            for name in tool.aliases.iter().chain([&tool.spec.name]) {
                let all: Vec<String> = words(name).collect();
                let own: Vec<String> = all.iter().filter(|word| !is_idle(word)).cloned().collect();
                // A query may have it with its idle words in one piece, or without them.
                for (key, is_clear) in
                    [(all.concat(), all.len() > 1), (own.concat(), own.len() > 1)]
                {
                    let known =
                        names.entry(key).or_insert_with(|| Name { tools: Vec::new(), is_clear });
                    if !known.tools.contains(tool) {
                        known.tools.push(*tool);
                    }
                }
            }
        }
        names.remove("");
        Self(names)
    }
}

/// The tools that a query names, in its order, and its other words. A name of one word counts where the query has
/// names only: `delete a memory` names no tool.
fn named<'a>(query: &[String], names: &Names<'a>) -> (Vec<&'a OfferedTool>, Vec<String>) {
    let (mut found, mut rest) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < query.len() {
        let ends = (at + 1..=query.len().min(at + LONGEST_NAME)).rev();
        let mut known = ends.filter_map(|end| Some((end, names.0.get(&query[at..end].concat())?)));
        match known.next() {
            Some((end, name)) => {
                found.push((name, &query[at..end]));
                at = end;
            }
            None => {
                rest.push(query[at].clone());
                at += 1;
            }
        }
    }
    if !rest.is_empty() {
        let unclear = found.extract_if(.., |(name, _)| !name.is_clear);
        rest.extend(unclear.flat_map(|(_, words)| words.to_vec()));
    }
    let mut tools: Vec<&OfferedTool> = Vec::new();
    for tool in found.iter().flat_map(|(name, _)| &name.tools) {
        if !tools.contains(tool) {
            tools.push(tool);
        }
    }
    (tools, rest)
}

/// The words of a tool.
struct ToolWords {
    /// Of its name, of its use, of its description.
    texts: [BTreeSet<String>; 3],
    /// Its name in one piece.
    name: String,
}

impl ToolWords {
    fn of(tool: &OfferedTool) -> Self {
        let stems = |text: &str| words(text).map(|word| stem(&word)).collect();
        let known = match &tool.listing {
            ToolListing::Searched { words } => words.as_str(),
            ToolListing::Always | ToolListing::IfSmall | ToolListing::Denied => "",
        };
        let (of_use, spec) = (format!("{known} {}", tool.aliases.join(" ")), &tool.spec);
        Self {
            texts: [stems(&spec.name), stems(&of_use), stems(&spec.description)],
            name: words(&spec.name).collect(),
        }
    }

    /// The points for one word of the query.
    fn points(&self, word: &str) -> usize {
        let points = |fits: &dyn Fn(&BTreeSet<String>) -> bool| {
            self.texts.iter().zip(POINTS).find(|(text, _)| fits(text)).map(|(_, points)| points)
        };
        let whole = points(&|text| text.contains(word));
        let beginning = || points(&|text| text.iter().any(|known| begins_like(word, known)));
        whole.or_else(|| Some(beginning()? / 2)).unwrap_or_else(|| self.part(word))
    }

    fn part(&self, word: &str) -> usize {
        let has = match word.is_ascii() {
            true => word.len() >= BEGINNING && self.name.contains(word),
            false => self.texts.iter().flatten().any(|known| known.contains(word)),
        };
        if has { PART } else { 0 }
    }
}

/// How well each tool matches these words, and the points of one that has all in its name. A word that few tools
/// have counts more; one that none has, as much as the rarest of the others.
fn scores(query: &BTreeSet<String>, tools: &[&OfferedTool]) -> (Vec<usize>, usize) {
    let known: Vec<ToolWords> = tools.iter().map(|tool| ToolWords::of(tool)).collect();
    let (mut scores, mut whole, mut rarest, mut unknown) = (vec![0; tools.len()], 0, 0, 0);
    for word in query {
        let points: Vec<usize> = known.iter().map(|tool| tool.points(word)).collect();
        let having = points.iter().filter(|points| **points > 0).count();
        let Some(weight) = tools.len().checked_div(having) else {
            unknown += 1;
            continue;
        };
        rarest = rarest.max(weight);
        whole += POINTS[0] * tools.len() / having;
        for (score, points) in scores.iter_mut().zip(points) {
            *score += points * tools.len() / having;
        }
    }
    (scores, whole + POINTS[0] * rarest * unknown)
}

/// True for an address or a path: a thing to use a tool on.
fn is_object(piece: &str) -> bool {
    let leads_on = |(at, _): (usize, _)| piece[at + 1..].starts_with(char::is_alphanumeric);
    piece.contains([':', '.']) && piece.match_indices('/').any(leads_on) || piece.starts_with('/')
}

fn is_idle(word: &str) -> bool {
    IDLE.contains(&word)
}

/// The words of a text in lower case: `createIssue` has two.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut split = String::new();
    let mut before = ' ';
    for c in text.chars() {
        if c.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit()) {
            split.push(' ');
        }
        split.extend(c.to_lowercase());
        before = c;
    }
    let words: Vec<String> =
        split.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect();
    words.into_iter().filter(|word| !word.is_empty())
}

/// A word without the endings of a plural and of `-ing`.
fn stem(word: &str) -> String {
    let letters = word.len();
    if let Some(begin) = word.strip_suffix("ies").filter(|_| letters > 4) {
        return format!("{begin}y");
    }
    if let Some(begin) = word.strip_suffix("ing").filter(|_| letters > 5) {
        let doubled = ["bb", "dd", "gg", "mm", "nn", "pp", "rr", "tt"];
        let is_doubled = doubled.iter().any(|end| begin.ends_with(end));
        return begin[..begin.len() - usize::from(is_doubled)].to_owned();
    }
    let plural = word.strip_suffix('s').filter(|_| letters > 3 && !word.ends_with("ss"));
    plural.unwrap_or(word).to_owned()
}

/// True if one of two words is the beginning of the other.
fn begins_like(one: &str, other: &str) -> bool {
    let short = one.len().min(other.len());
    short >= BEGINNING && (one.starts_with(other) || other.starts_with(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deferred_tools::tests::{searched, tool};

    #[track_caller]
    fn found(query: &str) -> (Vec<String>, Vec<String>) {
        let called = |aliases: &[&str], tool: OfferedTool| {
            let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
            OfferedTool { aliases, ..tool }
        };
        let always = |name, description| tool(name, description, ToolListing::Always);
        let of_server = |name, description| tool(name, description, ToolListing::IfSmall);
        let listed = [
            always("read", "Read a text file or an image."),
            always("bash", "Run a shell command."),
            called(&["create_file"], always("write", "Write a file or directory.")),
        ];
        let deferred = [
            called(&["remember"], tool("memory_add", "Save a memory.", searched("note"))),
            called(&["forget"], tool("memory_remove", "Delete a memory.", searched("old"))),
            tool("git_log", "Show commits. Newest first.", searched("history who committed")),
            tool("git_show", "Show one of them.", searched("old version")),
            tool("run", "Run a program.", searched("execute argv")),
            tool("web_fetch", "Read a page, or an image.", searched("url open link")),
            tool("multi_edit", "Edit a file often.", searched("several")),
            called(&["kill_shell"], tool("bash_stop", "End a command.", searched("kill"))),
            called(&["use_skill"], tool("skill_activate", "Follow a skill.", searched("recipe"))),
            of_server("mcp__github__createIssue", "Writes."),
            of_server("mcp__github__listpulls", "Many."),
            of_server("mcp__net__s", "搜索网页内容"),
        ];
        let names = |tools: Vec<&OfferedTool>| {
            tools.iter().map(|tool| tool.spec.name.clone()).collect::<Vec<_>>()
        };
        let refs = |tools: &'static [OfferedTool]| tools.iter().collect::<Vec<_>>();
        let (listed, deferred) = (refs(Vec::leak(listed.into())), refs(Vec::leak(deferred.into())));
        let found = find(query, &listed, &deferred);
        assert!(found.left_out.is_empty(), "{query}");
        (names(found.loaded), names(found.listed))
    }

    #[test]
    fn a_query_names_tools_as_calls_do() {
        for (query, wanted) in [
            ("git_log", vec!["git_log"]),
            ("WebFetch", vec!["web_fetch"]),
            ("webfetch", vec!["web_fetch"]),
            ("select:WebFetch,MultiEdit", vec!["web_fetch", "multi_edit"]),
            ("KillShell", vec!["bash_stop"]),
            ("UseSkill, useskill", vec!["skill_activate"]),
            ("Git_Show, git-log", vec!["git_show", "git_log"]),
            ("git log, git show", vec!["git_log", "git_show"]),
            (
                "git_log git_show run memory_add memory_remove multi_edit",
                vec!["git_log", "git_show", "run", "memory_add", "memory_remove", "multi_edit"],
            ),
            ("git log and a page with an url", vec!["git_log", "web_fetch"]),
            ("remember or forget", vec!["memory_add", "memory_remove"]),
            ("mcp__github__createIssue", vec!["mcp__github__createIssue"]),
            ("run", vec!["run"]),
            ("select:Bash,Run", vec!["run"]),
        ] {
            let (loaded, _) = found(query);
            assert_eq!(loaded, wanted, "{query}");
        }
    }

    #[test]
    fn a_query_finds_tools_by_words() {
        for (query, wanted) in [
            ("who committed it", vec!["git_log"]),
            ("remembering", vec!["memory_add"]),
            ("delete a memory", vec!["memory_remove"]),
            ("delete memories", vec!["memory_remove"]),
            ("stop a running command", vec!["bash_stop"]),
            ("create issue", vec!["mcp__github__createIssue"]),
            ("issues", vec!["mcp__github__createIssue"]),
            ("pulls", vec!["mcp__github__listpulls"]),
            ("网页", vec!["mcp__net__s"]),
            ("open https://docs.rs/landlock", vec!["web_fetch"]),
            ("history of src/main.rs", vec!["git_log"]),
        ] {
            assert_eq!(
                found(query),
                (wanted.iter().map(|name| (*name).to_owned()).collect(), vec![]),
                "{query}"
            );
        }
    }

    #[test]
    fn what_no_tool_does_finds_none_and_what_a_listed_one_does_names_it() {
        for query in
            ["lint", "copy a file", "send an email", "the tool to use", "", "页面", "later"]
        {
            assert_eq!(found(query), (vec![], vec![]), "{query}");
        }
        for (query, wanted) in [
            ("read an image", "read"),
            ("a shell command", "bash"),
            ("create a directory", "write"),
        ] {
            assert_eq!(found(query), (vec![], vec![wanted.to_owned()]), "{query}");
        }
    }

    #[test]
    fn of_many_that_match_alike_none_is_loaded_and_all_are_named() {
        let of_server = |at| tool(&format!("mcp__hub__{at}"), "", ToolListing::IfSmall);
        let all: Vec<OfferedTool> = ["a", "b", "c", "d", "e", "f"].map(of_server).into();
        let all: Vec<&OfferedTool> = all.iter().collect();
        let found = find("hub", &[], &all);
        assert_eq!((found.loaded.len(), found.left_out.len()), (0, 6));
        assert_eq!(find("hub", &[], &all[..5]).loaded.len(), 5, "the control");
    }

    #[test]
    fn words_are_split_at_capitals_and_lose_two_endings() {
        let all = |text: &str| words(text).collect::<Vec<_>>();
        assert_eq!(
            all("createIssue v2Beta MCP__a-b"),
            ["create", "issue", "v2", "beta", "mcp", "a", "b"]
        );
        for (word, wanted) in [
            ("commits", "commit"),
            ("memories", "memory"),
            ("editing", "edit"),
            ("running", "run"),
            ("calling", "call"),
            ("class", "class"),
            ("string", "str"),
            ("undo", "undo"),
        ] {
            assert_eq!(stem(word), wanted);
        }
        for (one, other) in [("commit", "committed"), ("outdated", "outdate")] {
            assert!(begins_like(one, other) && begins_like(other, one), "{one} {other}");
        }
        for (one, other) in [
            ("file", "filter"),
            ("path", "patch"),
            ("form", "forget"),
            ("lint", "line"),
            ("add", "address"),
            ("", "a"),
        ] {
            assert!(!begins_like(one, other) && !begins_like(other, one), "{one} {other}");
        }
    }

    #[test]
    fn a_long_query_is_fast_enough() {
        let query = "ab ".repeat(200);
        assert_eq!(found(&query), (vec![], vec![]));
    }
}
