//! Calls that the conversation answers itself, from its own state: checklists, approved plans, and
//! searching its messages and the tools. They are named, budgeted, judged and recorded like all others. Their effects apply
//! once their result is durable, so that a replayed conversation has the same state. Pure.

use crate::checklist::{ChecklistView, Checklists, Refusal};
use crate::deferred_tools::{self, TOOL_SEARCH};
use crate::plan;
use protocol::call::{Call, CallStage, Outcome, SEPARATOR, ToolResult};
use protocol::content::ContentBlock;
use protocol::judgement::{ASK_USER, EXIT_PLAN};
use protocol::mcp;
use protocol::session::{SessionEvent, SessionSetup};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The tool that searches earlier messages, and shows results that were cut.
pub(crate) const HISTORY_SEARCH: &str = "history_search";
/// The tools for a command in the background, beside the one that reads its output.
const OF_BACKGROUND: [&str; 2] = ["bash_input", "bash_stop"];
/// Most characters of a search for tools.
const LONGEST_QUERY: usize = 400;
/// Messages that a search gives where it does not say.
const FOUND: usize = 10;
/// Most messages of a search.
const FOUND_MOST: usize = 50;
/// Characters of context around a match.
const AROUND: usize = 150;

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    Person,
    Model,
}

/// State of the conversation besides its messages.
#[derive(Debug, Default)]
pub(crate) struct BuiltinTools {
    checklists: Checklists,
    /// The text of every prompt and answer, including those no longer sent to the model.
    said: Vec<(Speaker, String)>,
    /// Calls of ours that wait for their result.
    open: Vec<Call>,
    /// Tools that a search found or a result named, in that order.
    loaded: Vec<String>,
    /// Results that were cut to make room, by the numbers of their calls.
    cut: BTreeMap<u32, String>,
}

/// One of the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BuiltinTool {
    Create,
    Update,
    Search,
    Plan,
    Ask,
    Tools,
}

fn tool(name: &str) -> Option<BuiltinTool> {
    match name {
        "checklist_create" => Some(BuiltinTool::Create),
        "checklist_update" => Some(BuiltinTool::Update),
        TOOL_SEARCH => Some(BuiltinTool::Tools),
        HISTORY_SEARCH => Some(BuiltinTool::Search),
        EXIT_PLAN => Some(BuiltinTool::Plan),
        ASK_USER => Some(BuiltinTool::Ask),
        _ => None,
    }
}

/// True if the conversation answers calls of this tool.
pub(crate) fn is_own(name: &str) -> bool {
    tool(name).is_some()
}

impl BuiltinTools {
    /// Takes in one thing that happened.
    pub(crate) fn apply(&mut self, happened: &SessionEvent) {
        match happened {
            SessionEvent::Prompt { text, .. } => self.said.push((Speaker::Person, text.clone())),
            SessionEvent::Answer { blocks, .. } => {
                let words: Vec<&str> = blocks.iter().filter_map(words_of).collect();
                if !words.is_empty() {
                    self.said.push((Speaker::Model, words.join("\n")));
                }
            }
            SessionEvent::Called { call } => {
                // A server's own errors do not say that the arguments were wrong.
                if call.origin.is_model() {
                    self.load(tool_of_server(call));
                }
                if is_own(&call.tool) {
                    self.open.push(call.clone());
                }
            }
            SessionEvent::Result { call, origin, stage, result } => {
                if origin.is_model() {
                    self.load(ways_on(*stage, result));
                }
                let Some(at) = self.open.iter().position(|open| open.id == *call) else { return };
                let call = self.open.remove(at);
                if !result.is_error {
                    if call.tool == TOOL_SEARCH {
                        self.load(deferred_tools::found_in(&result.text));
                    }
                    // The result was computed before; here it takes effect.
                    let _ = change(&mut self.checklists, &call);
                }
            }
            SessionEvent::TurnEnded { .. }
            | SessionEvent::BackgroundEnded { .. }
            | SessionEvent::Joined { .. }
            | SessionEvent::Compacted { .. } => {}
        }
    }

    /// A result was cut to make room. What is in its place names the tool that shows it.
    pub(crate) fn keep_result(&mut self, call: u32, text: String) {
        self.load([HISTORY_SEARCH.to_owned()]);
        self.cut.entry(call).or_insert(text);
    }

    /// The newest prompt was refused: a search must not find it.
    pub(crate) fn forget_prompt(&mut self) {
        let newest = self.said.iter().rposition(|(who, _)| *who == Speaker::Person);
        if let Some(at) = newest {
            self.said.remove(at);
        }
    }

    /// The result of a call, if it is for one of these tools. Changes no state yet.
    pub(crate) fn answer(&self, call: &Call, setup: &SessionSetup) -> Option<ToolResult> {
        let found = match tool(&call.tool)? {
            BuiltinTool::Plan => return Some(plan::approved()),
            // Its text are the answers, which come with the broker's verdict.
            BuiltinTool::Ask => {
                Ok(ChecklistView { text: String::new(), summary: "answered".to_owned() })
            }
            BuiltinTool::Search => self.search(&object(call)),
            BuiltinTool::Tools => {
                let input = object(call);
                let query = input.get("query").and_then(Value::as_str).unwrap_or_default();
                match query.chars().count() > LONGEST_QUERY {
                    true => Err(too_long()),
                    false => {
                        let (text, summary) = deferred_tools::search(query, setup);
                        Ok(ChecklistView { text, summary })
                    }
                }
            }
            BuiltinTool::Create | BuiltinTool::Update => {
                change(&mut self.checklists.clone(), call).unwrap_or_else(|| Ok(nothing()))
            }
        };
        Some(result(&call.tool, found))
    }

    /// The tools that were loaded.
    pub(crate) fn loaded(&self) -> &[String] {
        &self.loaded
    }

    fn load(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names {
            if !self.loaded.contains(&name) {
                self.loaded.push(name);
            }
        }
    }

    /// Open checklists, which a compacted conversation must keep.
    pub(crate) fn open_checklists(&self) -> Option<String> {
        self.checklists.open()
    }

    fn cut_result(&self, call: u64) -> Result<ChecklistView, Refusal> {
        let kept = u32::try_from(call).ok().and_then(|call| self.cut.get(&call));
        let Some(text) = kept else {
            let hint = "A result that was left out names its call.".to_owned();
            return Err(("not_found", format!("no result of call {call} was left out"), hint));
        };
        Ok(ChecklistView { text: text.clone(), summary: format!("the result of call {call}") })
    }

    fn search(&self, input: &Map<String, Value>) -> Result<ChecklistView, Refusal> {
        if let Some(call) = input.get("call").and_then(Value::as_u64) {
            return self.cut_result(call);
        }
        let keyword = input.get("keyword").and_then(Value::as_str).unwrap_or_default().trim();
        if keyword.is_empty() {
            let hint =
                "Give keyword, the words to search for, or call, the number of a call whose \
                        result was left out."
                    .to_owned();
            return Err(("invalid_arguments", "keyword is empty".to_owned(), hint));
        }
        let wanted = keyword.to_lowercase();
        let limit = input.get("limit").and_then(Value::as_u64);
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(FOUND);
        let found: Vec<String> = self
            .said
            .iter()
            .zip(1..)
            .filter_map(|((who, text), number)| {
                let who = match who {
                    Speaker::Person => "person",
                    Speaker::Model => "you",
                };
                Some(format!("{number}. {who}: {}\n", around(text, &wanted)?))
            })
            .collect();
        let left_out = found.len().saturating_sub(limit.clamp(1, FOUND_MOST));
        let mut text = match found.is_empty() {
            true => format!("no message of this session holds {keyword:?}\n"),
            false => found[left_out..].concat(),
        };
        if left_out > 0 {
            text.insert_str(
                0,
                &format!("[… {left_out} earlier messages left out; raise limit …]\n"),
            );
        }
        Ok(ChecklistView { text, summary: format!("{} messages with {keyword:?}", found.len()) })
    }
}

/// The name under which requests list the tool of a server that is called.
fn tool_of_server(call: &Call) -> Option<String> {
    let name = || object(call).get("tool")?.as_str().map(str::to_owned);
    if call.tool == mcp::CALL { name() } else { None }
}

/// The tools that a result of the model's call names as the way on: those for a command in the background, those in
/// the hint of an error, and the tool whose arguments did not fit.
fn ways_on(stage: CallStage, result: &ToolResult) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    if stage == CallStage::InBackground {
        names.extend(OF_BACKGROUND.map(str::to_owned));
    }
    // Where a command printed something, the text begins with its words.
    if result.text.lines().any(|line| line == SEPARATOR) {
        return names;
    }
    let said = result.text.strip_prefix("Error [").and_then(|text| text.split_once("] "));
    let Some((code, said)) = said.filter(|(code, _)| result.code.as_deref() == Some(code)) else {
        return names;
    };
    if code == "invalid_arguments" {
        names.extend(said.split_once(':').map(|(tool, _)| tool.to_owned()));
    }
    // For a tool that is none, the hint names all.
    let hint = said.lines().find_map(|line| line.strip_prefix("Hint: "));
    let hint = hint.filter(|_| code != "unknown_tool").unwrap_or_default();
    let words = hint.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    names.extend(words.filter(|word| word.contains('_')).map(str::to_owned));
    names
}

/// Carries a call on checklists out; `None` for any other.
fn change(checklists: &mut Checklists, call: &Call) -> Option<Result<ChecklistView, Refusal>> {
    match tool(&call.tool)? {
        BuiltinTool::Create => Some(checklists.create(&object(call))),
        BuiltinTool::Update => Some(checklists.update(&object(call))),
        BuiltinTool::Search | BuiltinTool::Plan | BuiltinTool::Ask | BuiltinTool::Tools => None,
    }
}

/// The arguments; calls whose arguments are not an object are refused before, and have none here.
fn object(call: &Call) -> Map<String, Value> {
    serde_json::from_str(&call.input).unwrap_or_default()
}

fn words_of(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text { text } => Some(text),
        ContentBlock::Thinking { .. }
        | ContentBlock::ToolUse { .. }
        | ContentBlock::Image { .. }
        | ContentBlock::ToolResult { .. } => None,
    }
}

/// The part of a text around the first place of `wanted`, which is in lower case; on one line.
fn around(text: &str, wanted: &str) -> Option<String> {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: String = wanted.split_whitespace().collect::<Vec<_>>().join(" ");
    let at = line.to_lowercase().find(&wanted)?;
    // Lower case may have other lengths; a place within a few characters is near enough.
    let at = line.to_lowercase()[..at].chars().count();
    let from = at.saturating_sub(AROUND);
    let length = AROUND * 2 + wanted.chars().count();
    let total = line.chars().count();
    let before = if from > 0 { "…" } else { "" };
    let behind = if from + length < total { "…" } else { "" };
    let part: String = line.chars().skip(from).take(length).collect();
    Some(format!("{before}{part}{behind}"))
}

fn too_long() -> Refusal {
    let text = format!("query has more than {LONGEST_QUERY} characters");
    let hint = "Give names of tools, or a few words about what a tool does.".to_owned();
    ("invalid_arguments", text, hint)
}

fn nothing() -> ChecklistView {
    ChecklistView { text: String::new(), summary: String::new() }
}

fn result(tool: &str, found: Result<ChecklistView, Refusal>) -> ToolResult {
    match found {
        Ok(ChecklistView { text, summary }) => {
            let (code, images) = (None, Vec::new());
            ToolResult { outcome: Outcome::Done, text, summary, is_error: false, code, images }
        }
        Err((code, message, hint)) => ToolResult {
            outcome: Outcome::Failed,
            text: format!("Error [{code}] {tool}: {message}\nHint: {hint}"),
            summary: format!("{tool}: {message}"),
            is_error: true,
            code: Some(code.to_owned()),
            images: Vec::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(code: &str, tool: &str, hint: &str) -> ToolResult {
        ToolResult::error(Outcome::Failed, code, tool, "it says undo_restore", hint)
    }

    #[test]
    fn a_result_loads_the_tools_that_it_names_as_the_way_on() {
        let gone_on = ToolResult { code: None, text: "Ran.".to_owned(), ..failed("", "", "") };
        // A program may print what looks like an error.
        let printed = ToolResult { code: None, ..failed("not_found", "x", "use web_fetch") };
        for (stage, result, wanted) in [
            (CallStage::InBackground, gone_on, vec!["bash_input", "bash_stop"]),
            (
                CallStage::Ended,
                failed("not_found", "memory_remove", "memory_search shows the ids."),
                vec!["memory_search"],
            ),
            (
                CallStage::Ended,
                failed("invalid_arguments", "scan", "It must be a list."),
                vec!["scan"],
            ),
            (
                CallStage::Ended,
                failed("unknown_tool", "nope", "The tools are web_fetch, git_log."),
                vec![],
            ),
            (CallStage::Ended, failed("not_found", "read", ""), vec![]),
            (CallStage::Ended, printed, vec![]),
        ] {
            assert_eq!(ways_on(stage, &result), wanted, "{}", result.text);
        }
    }
}
