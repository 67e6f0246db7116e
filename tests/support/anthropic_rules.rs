//! Refusals of the real Messages API, in its words. Pure; used by `vendor.rs`.

use serde_json::Value;
use std::collections::BTreeSet;

/// Thinking that the server sent, whole: it must come back as it was.
#[derive(Debug, Clone)]
pub struct Issued {
    /// Text and signature of each block.
    pub thought: Vec<(String, String)>,
    /// The calls of the same answer; a message with one of them begins with the thinking.
    pub calls: Vec<String>,
    /// The vendor's own loop paused: the answer comes back as the last message.
    pub paused: bool,
}

/// A refusal in the vendor's shape.
pub struct Refusal {
    pub status: u16,
    pub kind: &'static str,
    pub message: String,
}

pub fn refuse<T>(status: u16, kind: &'static str, message: String) -> Result<T, Refusal> {
    Err(Refusal { status, kind, message })
}

fn invalid<T>(message: String) -> Result<T, Refusal> {
    refuse(400, "invalid_request_error", message)
}

/// The request line and the headers.
pub fn check(line: &str, headers: &[(String, String)], key: Option<&str>) -> Result<(), Refusal> {
    let header = |name| headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
    if !line.starts_with("POST /v1/messages ") {
        return refuse(404, "not_found_error", "Not Found".into());
    }
    let given = header("x-api-key")
        .or_else(|| header("authorization").and_then(|value| value.strip_prefix("Bearer ")));
    match (given, key) {
        (None | Some(""), _) => {
            return refuse(401, "authentication_error", "x-api-key header is required".into());
        }
        (Some(given), Some(key)) if given != key => {
            return refuse(401, "authentication_error", "invalid x-api-key".into());
        }
        (Some(_), _) => {}
    }
    if header("anthropic-version") != Some("2023-06-01") {
        return invalid("anthropic-version: header is required".into());
    }
    if header("content-type") != Some("application/json") {
        return invalid("content-type: must be application/json".into());
    }
    Ok(())
}

/// Checks the body in itself and against earlier answers.
pub fn check_body(body: &Value, issued: &[Issued]) -> Result<(), Refusal> {
    const FIELDS: [&str; 15] = [
        "model",
        "max_tokens",
        "messages",
        "system",
        "tools",
        "stream",
        "thinking",
        "output_config",
        "metadata",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "tool_choice",
        "cache_control",
    ];
    let Some(fields) = body.as_object() else {
        return invalid("The request body is not valid JSON".into());
    };
    if let Some(unknown) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return invalid(format!("{unknown}: Extra inputs are not permitted"));
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        return invalid("model: Field required".into());
    }
    if body["max_tokens"].as_u64().is_none_or(|tokens| tokens == 0) {
        return invalid("max_tokens: Input should be greater than or equal to 1".into());
    }
    if body["stream"] != Value::Bool(true) {
        return invalid("stream: this server answers streams only".into());
    }
    let marks = count_marks(body);
    if marks > 4 {
        return invalid(format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {marks}."
        ));
    }
    check_tools(&body["tools"])?;
    if let Some(blocks) = body["system"].as_array() {
        for block in blocks {
            check_text(block, "system")?;
        }
    }
    check_messages(&body["messages"], issued)
}

fn check_tools(tools: &Value) -> Result<(), Refusal> {
    let mut names = BTreeSet::new();
    for (at, tool) in tools.as_array().into_iter().flatten().enumerate() {
        let name = tool["name"].as_str().unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 128 || !name.chars().all(plain) {
            return invalid(format!(
                "tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            ));
        }
        if !names.insert(name) {
            return invalid("tools: Tool names must be unique.".into());
        }
        let schema = &tool["input_schema"];
        if !schema.is_object() {
            return invalid(format!("tools.{at}.custom.input_schema: Field required"));
        }
        if schema["type"] != "object" {
            return invalid(format!(
                "tools.{at}.custom.input_schema.type: Input should be 'object'"
            ));
        }
    }
    Ok(())
}

/// A turn: neighbouring messages of one role are one, as the real API has it.
struct Turn<'a> {
    /// Of its first message.
    at: usize,
    role: &'a str,
    content: Vec<&'a Value>,
}

fn check_messages(messages: &Value, issued: &[Issued]) -> Result<(), Refusal> {
    let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if !matches!(role, "user" | "assistant") {
            return invalid(format!("messages.{at}.role: Input should be 'user' or 'assistant'"));
        }
        let content: Vec<&Value> = message["content"].as_array().into_iter().flatten().collect();
        if content.is_empty() && message["content"].as_str().is_none_or(str::is_empty) {
            return invalid(format!(
                "messages.{at}: all messages must have non-empty content except for the optional final assistant message"
            ));
        }
        match turns.last_mut() {
            Some(turn) if turn.role == role => turn.content.extend(content),
            _ => turns.push(Turn { at, role, content }),
        }
    }
    match (turns.first(), turns.last()) {
        (Some(first), Some(last)) => {
            if first.role != "user" {
                return invalid("messages: first message must use the \"user\" role".into());
            }
            let paused = issued.last().is_some_and(|issued| issued.paused);
            if last.role != "user" && !paused {
                return invalid("This model does not support assistant message prefill. The conversation must end with a user message.".into());
            }
        }
        _ => return invalid("messages: at least one message is required".into()),
    }
    let mut ids = BTreeSet::new();
    for turn in &turns {
        for (index, block) in turn.content.iter().enumerate() {
            check_block(block, turn, index, issued)?;
            if block["type"] == "tool_use" && !ids.insert(block["id"].as_str()) {
                return invalid("messages: `tool_use` ids must be unique".into());
            }
        }
        check_thinking_first(turn, issued)?;
    }
    for (at, turn) in turns.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &turns[before]);
        check_results(turn, before)?;
        check_calls(turn, turns.get(at + 1))?;
    }
    Ok(())
}

fn check_block(
    block: &Value,
    turn: &Turn<'_>,
    index: usize,
    issued: &[Issued],
) -> Result<(), Refusal> {
    let place = format!("messages.{}.content.{index}", turn.at);
    match (block["type"].as_str().unwrap_or_default(), turn.role) {
        ("text", _) => check_text(block, "messages"),
        ("image" | "document", "user") => check_image(block, &place),
        ("tool_use", "assistant") => {
            for field in ["id", "name"] {
                if block[field].as_str().is_none_or(str::is_empty) {
                    return invalid(format!(
                        "{place}.tool_use.{field}: String should have at least 1 character"
                    ));
                }
            }
            if !block["input"].is_object() {
                return invalid(format!(
                    "{place}.tool_use.input: Input should be a valid dictionary"
                ));
            }
            Ok(())
        }
        ("tool_result", "user") => {
            let empty = block["content"].as_str().is_none_or(str::is_empty)
                && block["content"].as_array().is_none_or(Vec::is_empty);
            match block["is_error"].as_bool() {
                Some(true) if empty => invalid(format!(
                    "{place}.tool_result: content cannot be empty if `is_error` is true"
                )),
                _ => {
                    block["content"].as_array().into_iter().flatten().try_for_each(
                        |part| match part["type"].as_str() {
                            Some("text") => check_text(part, &place),
                            _ => check_image(part, &place),
                        },
                    )
                }
            }
        }
        ("thinking", "assistant") => {
            let said = |(text, signature): &(String, String)| {
                block["thinking"] == text.as_str() && block["signature"] == signature.as_str()
            };
            match issued.iter().any(|issued| issued.thought.iter().any(said)) {
                true if block.get("cache_control").is_none() => Ok(()),
                true => invalid(format!(
                    "{place}.thinking.cache_control: Extra inputs are not permitted"
                )),
                false => invalid(format!("{place}: Invalid `signature` in `thinking` block")),
            }
        }
        (kind, role) => {
            invalid(format!("{place}: `{kind}` blocks are not permitted in {role} messages"))
        }
    }
}

fn check_image(block: &Value, place: &str) -> Result<(), Refusal> {
    let (kind, source) = (block["type"].as_str().unwrap_or_default(), &block["source"]);
    let media = source["media_type"].as_str().unwrap_or_default();
    let fits = match kind {
        "image" => ["image/jpeg", "image/png", "image/gif", "image/webp"].contains(&media),
        "document" => media == "application/pdf",
        _ => false,
    };
    let has_data = source["data"].as_str().is_some_and(|data| !data.is_empty());
    match fits && source["type"] == "base64" && has_data {
        true => Ok(()),
        false => invalid(format!("{place}.{kind}.source: Input should be a valid base64 source")),
    }
}

fn check_text(block: &Value, place: &str) -> Result<(), Refusal> {
    match block["text"].as_str() {
        None | Some("") => invalid(format!("{place}: text content blocks must be non-empty")),
        Some(text) if text.trim().is_empty() => {
            invalid(format!("{place}: text content blocks must contain non-whitespace text"))
        }
        Some(_) => Ok(()),
    }
}

/// A turn with a call that came with thinking begins with thinking.
fn check_thinking_first(turn: &Turn<'_>, issued: &[Issued]) -> Result<(), Refusal> {
    let thought =
        turn.content.iter().filter(|block| block["type"] == "tool_use").any(|block| {
            issued.iter().any(|i| i.calls.iter().any(|id| block["id"] == id.as_str()))
        });
    let first = turn.content.first().and_then(|block| block["type"].as_str()).unwrap_or_default();
    if thought && first != "thinking" {
        return invalid(format!(
            "messages.{}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`",
            turn.at
        ));
    }
    Ok(())
}

fn check_results(turn: &Turn<'_>, before: Option<&Turn<'_>>) -> Result<(), Refusal> {
    let mut answered = BTreeSet::new();
    for (index, block) in turn.content.iter().enumerate() {
        if block["type"] != "tool_result" {
            continue;
        }
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        let asked = before.is_some_and(|before| {
            before.content.iter().any(|b| b["type"] == "tool_use" && b["id"] == id)
        });
        if !asked {
            return invalid(format!(
                "messages.{}.content.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
                turn.at
            ));
        }
        if !answered.insert(id) {
            return invalid(format!(
                "messages.{}.content.{index}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}",
                turn.at
            ));
        }
    }
    Ok(())
}

/// Every call has its result in the next turn, before anything else in it.
fn check_calls(turn: &Turn<'_>, next: Option<&Turn<'_>>) -> Result<(), Refusal> {
    let leading = |id: &Value| {
        next.is_some_and(|next| {
            let mut results = next.content.iter().take_while(|b| b["type"] == "tool_result");
            results.any(|block| block["tool_use_id"] == *id)
        })
    };
    let open: Vec<&str> = turn
        .content
        .iter()
        .filter(|block| block["type"] == "tool_use" && !leading(&block["id"]))
        .filter_map(|block| block["id"].as_str())
        .collect();
    if open.is_empty() {
        return Ok(());
    }
    invalid(format!(
        "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        turn.at,
        open.join(", ")
    ))
}

fn count_marks(value: &Value) -> usize {
    match value {
        Value::Object(fields) => {
            usize::from(fields.contains_key("cache_control"))
                + fields
                    .iter()
                    // Arguments and schemas may hold the word as data.
                    .filter(|(name, _)| !matches!(name.as_str(), "input" | "input_schema"))
                    .map(|(_, value)| count_marks(value))
                    .sum::<usize>()
        }
        Value::Array(values) => values.iter().map(count_marks).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
