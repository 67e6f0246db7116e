//! A call in one line: its most informative argument, and its title for people.

use crate::lines::one_line;
use protocol::call::{Call, CallOrigin};
use protocol::hidden::visible;
use protocol::judgement::Question;
use serde_json::{Map, Value};

/// Most characters of an argument without a name that people know.
const ARGUMENT: usize = 60;

/// The most informative argument of a call, else all of them.
pub(crate) fn gist(call: &Call) -> String {
    visible(&telling_argument(&call.input))
}

/// A call as people name it, without JSON: a command by itself, behind `!` where a person typed it, else the tool and its most informative argument.
#[must_use]
pub fn call_title(call: &Call) -> String {
    let title = title_of(&call.tool, &call.input);
    match call.origin {
        CallOrigin::Person => format!("!{title}"),
        CallOrigin::Model { .. }
        | CallOrigin::EventHook
        | CallOrigin::EditHook
        | CallOrigin::ServerStart
        | CallOrigin::PromptPart
        | CallOrigin::Undo
        | CallOrigin::PinnedRead => title,
    }
}

/// The same of a question, with paths below the project as a person there names them.
#[must_use]
pub fn question_title(question: &Question, project: &str) -> String {
    let title = title_of(&question.tool, &question.input);
    let project = format!("{} {}/", question.tool, visible(project.trim_end_matches('/')));
    match title.strip_prefix(&project) {
        Some(path) => format!("{} {path}", question.tool),
        None => title,
    }
}

fn title_of(tool: &str, input: &str) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str(input) else {
        return visible(&format!("{tool} {input}"));
    };
    let word = |name: &str| fields.get(name).and_then(Value::as_str);
    let items = || fields.get("items").and_then(Value::as_array).map_or(0, Vec::len);
    let known = match tool {
        "bash" => word("command").map(str::to_owned),
        "powershell" => word("script").map(str::to_owned),
        "task" => word("description").map(|task| format!("agent: {task}")),
        "checklist_create" => Some(match items() {
            1 => "checklist: 1 item".to_owned(),
            count => format!("checklist: {count} items"),
        }),
        "checklist_update" => word("item")
            .zip(word("status"))
            .map(|(item, status)| format!("checklist: {item}: {}", status.replace('_', " "))),
        "exit_plan" => Some("plan".to_owned()),
        "ask_user" => {
            let asked = |name: &str| fields.get("questions")?.get(0)?.get(name)?.as_str();
            asked("question").map(|question| format!("asks you: {}", one_line(question, ARGUMENT)))
        }
        _ => None,
    };
    // A tool of an MCP server.
    let arguments = word("arguments").and_then(|it| serde_json::from_str(it).ok());
    let of_server =
        word("tool").zip(arguments).map(|(tool, of)| format!("{tool} {}", in_words(&of)));
    let title = known.or(of_server).unwrap_or_else(|| {
        format!("{tool} {}", telling(&fields).unwrap_or_else(|| in_words(&fields)))
    });
    visible(title.trim_end())
}

/// All arguments, as words.
fn in_words(fields: &Map<String, Value>) -> String {
    let value = |value: &Value| match value {
        Value::String(text) => one_line(text, ARGUMENT),
        Value::Array(all) => format!("{} items", all.len()),
        Value::Object(all) => format!("{} fields", all.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    };
    let words = fields.iter().map(|(name, of)| format!("{name} {}", value(of)));
    words.collect::<Vec<_>>().join(", ")
}

/// The most informative argument of a call, else all of them.
#[must_use]
pub fn telling_argument(input: &str) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str(input) else {
        return input.to_owned();
    };
    telling(&fields).unwrap_or_else(|| input.to_owned())
}

fn telling(fields: &Map<String, Value>) -> Option<String> {
    let word = |name: &str| fields.get(name).and_then(Value::as_str);
    // A tool of an MCP server, and the start of one.
    if let (Some(tool), Some(arguments)) = (word("tool"), word("arguments")) {
        return Some(format!("{tool} {arguments}"));
    }
    if let (Some(name), true) = (word("name"), fields.contains_key("start_ms")) {
        return Some(name.to_owned());
    }
    let telling = ["command", "argv", "path", "pattern", "url", "query", "plan"];
    let value = telling.iter().find_map(|name| fields.get(*name))?;
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::ids::{CallId, SessionId};

    #[test]
    fn no_title_is_json() {
        for (tool, input, title) in [
            ("bash", r#"{"command":"cargo test"}"#, "cargo test"),
            ("edit", r#"{"path":"a.rs","old_text":"x"}"#, "edit a.rs"),
            ("task", r#"{"description":"Find callers","prompt":"…"}"#, "agent: Find callers"),
            ("checklist_create", r#"{"group":"fix","items":["a","b","c"]}"#, "checklist: 3 items"),
            (
                "checklist_update",
                r#"{"item":"2","status":"in_progress"}"#,
                "checklist: 2: in progress",
            ),
            ("exit_plan", r##"{"plan":"# Plan\n1. Change"}"##, "plan"),
            ("ask_user", r#"{"questions":[{"question":"Which?"}]}"#, "asks you: Which?"),
            ("ask_user", r#"{"questions":[]}"#, "ask_user questions 0 items"),
            ("bash_output", r#"{"id":3}"#, "bash_output id 3"),
            ("undo_list", "{}", "undo_list"),
            (
                "mcp",
                r#"{"tool":"mcp__t__ask","arguments":"{\"text\":\"why\"}"}"#,
                "mcp__t__ask text why",
            ),
            ("odd", "no json", "odd no json"),
        ] {
            let id = CallId { session: SessionId("s".to_owned()), number: 1 };
            let (tool, input) = (tool.to_owned(), input.to_owned());
            let call = Call { id, origin: CallOrigin::model("u"), tool, input };
            assert_eq!(call_title(&call), title);
        }
    }
}
