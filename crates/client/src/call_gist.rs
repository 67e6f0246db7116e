//! The part of a call that tells most, for one line about it.

use protocol::call::Call;
use protocol::hidden::visible;

/// The most informative argument of a call, else all of them.
pub(crate) fn gist(call: &Call) -> String {
    visible(&telling_argument(&call.input))
}

/// The most informative argument of a call, else all of them.
#[must_use]
pub fn telling_argument(input: &str) -> String {
    let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(input) else {
        return input.to_owned();
    };
    let word = |name: &str| fields.get(name).and_then(serde_json::Value::as_str);
    // A tool of an MCP server, and the start of one.
    if let (Some(tool), Some(arguments)) = (word("tool"), word("arguments")) {
        return format!("{tool} {arguments}");
    }
    if let (Some(name), true) = (word("name"), fields.contains_key("start_ms")) {
        return name.to_owned();
    }
    let telling = ["command", "argv", "path", "pattern", "url", "query", "plan"];
    match telling.iter().find_map(|name| fields.get(*name)) {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => input.to_owned(),
    }
}
