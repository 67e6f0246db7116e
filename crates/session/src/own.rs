//! The calls that the conversation answers itself, from what it knows: checklists, and a search of
//! its own words. They are named, budgeted, judged and kept like all others; what they come to
//! counts once their result is on disk, so that a replayed conversation knows the same. Pure.

use crate::checklist::{Checklists, Refusal, View};
use protocol::call::{Call, Outcome, ToolResult};
use protocol::content::Block;
use protocol::session::Happened;
use serde_json::{Map, Value};

/// Messages that a search gives where it does not say.
const FOUND: usize = 10;
/// Most messages of a search.
const FOUND_MOST: usize = 50;
/// Characters of a message around what was found.
const AROUND: usize = 150;

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Person,
    Model,
}

/// What the conversation knows beside its messages.
#[derive(Debug, Default)]
pub(crate) struct Own {
    checklists: Checklists,
    /// Every prompt and every answer's words, also those that are sent to the model no more.
    said: Vec<(Who, String)>,
    /// Calls of ours that wait for their result.
    open: Vec<Call>,
}

/// One of the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Create,
    Update,
    Search,
}

fn tool(name: &str) -> Option<Tool> {
    match name {
        "checklist_create" => Some(Tool::Create),
        "checklist_update" => Some(Tool::Update),
        "history_search" => Some(Tool::Search),
        _ => None,
    }
}

/// Whether a tool of that name is answered here.
pub(crate) fn is_own(name: &str) -> bool {
    tool(name).is_some()
}

impl Own {
    /// Takes in one thing that happened.
    pub(crate) fn apply(&mut self, happened: &Happened) {
        match happened {
            Happened::Prompt { text } => self.said.push((Who::Person, text.clone())),
            Happened::Answer { blocks, .. } => {
                let words: Vec<&str> = blocks.iter().filter_map(words_of).collect();
                if !words.is_empty() {
                    self.said.push((Who::Model, words.join("\n")));
                }
            }
            Happened::Called { call } if is_own(&call.tool) => self.open.push(call.clone()),
            Happened::Result { call, result, .. } => {
                let Some(at) = self.open.iter().position(|open| open.id == *call) else { return };
                let call = self.open.remove(at);
                if !result.is_error {
                    // What it came to was said before; here it only becomes so.
                    let _ = change(&mut self.checklists, &call);
                }
            }
            Happened::Called { .. } | Happened::TurnEnded { .. } | Happened::Compacted { .. } => {}
        }
    }

    /// What a call comes to, if it is one of ours. Nothing is changed yet.
    pub(crate) fn answer(&self, call: &Call) -> Option<ToolResult> {
        let found = match tool(&call.tool)? {
            Tool::Search => self.search(&object(call)),
            Tool::Create | Tool::Update => {
                change(&mut self.checklists.clone(), call).unwrap_or_else(|| Ok(nothing()))
            }
        };
        Some(result(&call.tool, found))
    }

    /// What a conversation that lost its beginning must not forget: the checklists that are open.
    pub(crate) fn open_checklists(&self) -> Option<String> {
        self.checklists.open()
    }

    fn search(&self, input: &Map<String, Value>) -> Result<View, Refusal> {
        let keyword = input.get("keyword").and_then(Value::as_str).unwrap_or_default().trim();
        if keyword.is_empty() {
            let hint = "Say what to look for.".to_owned();
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
                    Who::Person => "person",
                    Who::Model => "you",
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
        Ok(View { text, summary: format!("{} messages with {keyword:?}", found.len()) })
    }
}

/// Carries a call on checklists out; `None` for any other.
fn change(checklists: &mut Checklists, call: &Call) -> Option<Result<View, Refusal>> {
    match tool(&call.tool)? {
        Tool::Create => Some(checklists.create(&object(call))),
        Tool::Update => Some(checklists.update(&object(call))),
        Tool::Search => None,
    }
}

/// The arguments; what is no object is refused before and has none.
fn object(call: &Call) -> Map<String, Value> {
    serde_json::from_str(&call.input).unwrap_or_default()
}

fn words_of(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text } => Some(text),
        Block::Thinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } => None,
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

fn nothing() -> View {
    View { text: String::new(), summary: String::new() }
}

fn result(tool: &str, found: Result<View, Refusal>) -> ToolResult {
    match found {
        Ok(View { text, summary }) => {
            ToolResult { outcome: Outcome::Done, text, summary, is_error: false, code: None }
        }
        Err((code, message, hint)) => ToolResult {
            outcome: Outcome::Failed,
            text: format!("Error [{code}] {tool}: {message}\nHint: {hint}"),
            summary: format!("{tool}: {message}"),
            is_error: true,
            code: Some(code.to_owned()),
        },
    }
}
