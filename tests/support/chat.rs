//! OpenAI Chat Completions for tests: its stream, and its refusals in its own words.

use super::rules::{Refusal, refuse};
use super::{Say, halves, vendor::Stop};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The vendor's name for a request at fault.
pub const INVALID: &str = "invalid_request_error";

fn invalid<T>(message: String) -> Result<T, Refusal> {
    refuse(400, INVALID, message)
}

pub fn error(status: u16, code: &str, message: &str) -> Value {
    let kind = if status < 500 { INVALID } else { "server_error" };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

/// The chunks of an answer; without an end if there is no reason for one.
pub fn events(said: &[Say], stop: Option<Stop>) -> Vec<Value> {
    let chunk = |choices: Value| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
               "model": "test-model", "system_fingerprint": "fp", "choices": choices})
    };
    let choice = |delta: Value, reason: Value| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]))
    };
    let mut events = vec![choice(json!({"role": "assistant", "content": ""}), Value::Null)];
    let mut calls = 0;
    for said in said {
        match said {
            Say::Text(text) => events.push(choice(json!({"content": text}), Value::Null)),
            Say::Thinking(text, _) => {
                events.push(choice(json!({"reasoning_content": text}), Value::Null));
            }
            Say::Call(id, tool, input) | Say::HalfACall(id, tool, input) => {
                let call = |fields: Value| choice(json!({"tool_calls": [fields]}), Value::Null);
                events.push(call(json!({"index": calls, "id": id, "type": "function",
                                        "function": {"name": tool, "arguments": ""}})));
                for part in halves(input) {
                    events.push(call(json!({"index": calls, "function": {"arguments": part}})));
                }
                calls += 1;
            }
        }
    }
    if let Some(stop) = stop {
        let reason = match stop {
            Stop::Done => "stop",
            Stop::Calls => "tool_calls",
            Stop::MaxTokens => "length",
            Stop::Refused => "content_filter",
        };
        events.push(choice(json!({}), json!(reason)));
        let mut usage = chunk(json!([]));
        usage["usage"] = json!({"prompt_tokens": 20, "completion_tokens": 25, "total_tokens": 45,
                                "prompt_tokens_details": {"cached_tokens": 7}});
        events.push(usage);
    }
    events
}

/// The request line and the headers, of both of OpenAI's interfaces.
pub fn check_head(
    line: &str,
    path: &str,
    headers: &[(String, String)],
    key: Option<&str>,
) -> Result<(), Refusal> {
    let header = |name| headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
    if !line.starts_with(&format!("POST {path} ")) {
        return refuse(404, INVALID, format!("Invalid URL ({line})"));
    }
    let given = header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    match (given, key) {
        (None | Some(""), _) => {
            return refuse(401, "invalid_api_key", "You didn't provide an API key.".into());
        }
        (Some(given), Some(key)) if given != key => {
            return refuse(401, "invalid_api_key", "Incorrect API key provided".into());
        }
        (Some(_), _) => {}
    }
    if header("content-type") != Some("application/json") {
        return invalid("Unsupported content type".into());
    }
    Ok(())
}

pub fn check(body: &Value) -> Result<(), Refusal> {
    const FIELDS: [&str; 10] = [
        "model",
        "messages",
        "tools",
        "stream",
        "stream_options",
        "max_completion_tokens",
        "max_tokens",
        "reasoning_effort",
        "temperature",
        "tool_choice",
    ];
    let Some(fields) = body.as_object() else {
        return invalid("We could not parse the JSON body of your request.".into());
    };
    if let Some(unknown) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return invalid(format!("Unrecognized request argument supplied: {unknown}"));
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        return invalid("you must provide a model parameter".into());
    }
    if body["stream"] != true || body["stream_options"]["include_usage"] != true {
        return invalid("this server answers streams with usage only".into());
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        if tool["type"] != "function" {
            return invalid("Invalid value for 'tools[].type'".into());
        }
        check_tool(&tool["function"])?;
    }
    check_messages(body["messages"].as_array().map(Vec::as_slice).unwrap_or_default())
}

/// Of both interfaces.
pub fn check_tool(tool: &Value) -> Result<(), Refusal> {
    let name = tool["name"].as_str().unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return invalid(format!("Invalid 'tools[].name': string does not match pattern: {name}"));
    }
    if tool["parameters"]["type"] != "object" {
        return invalid(format!("Invalid schema for function '{name}'"));
    }
    if tool["strict"] == true && tool["parameters"]["additionalProperties"] != false {
        return invalid(format!(
            "Invalid schema for function '{name}': 'additionalProperties' is required to be supplied and to be false."
        ));
    }
    Ok(())
}

fn check_messages(messages: &[Value]) -> Result<(), Refusal> {
    if messages.is_empty() {
        return invalid("Invalid 'messages': empty array.".into());
    }
    let mut open: BTreeSet<String> = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if !matches!(role, "system" | "developer" | "user" | "assistant" | "tool") {
            return invalid(format!("Invalid value: '{role}' at messages[{at}].role"));
        }
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(id) {
                return invalid("messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.".into());
            }
            if !message["content"].is_string() {
                return invalid(format!("Missing required parameter: 'messages[{at}].content'."));
            }
            continue;
        }
        if !open.is_empty() {
            let ids: Vec<String> = open.into_iter().collect();
            return invalid(format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
                ids.join(", ")
            ));
        }
        let calls = message["tool_calls"].as_array();
        if calls.is_some_and(Vec::is_empty) {
            return invalid(format!("Invalid 'messages[{at}].tool_calls': empty array."));
        }
        let parts = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let good = |part: &Value| match part["type"].as_str() {
            Some("text") => part["text"].is_string(),
            Some("image_url") => {
                part["image_url"]["url"].as_str().is_some_and(|url| url.starts_with("data:image/"))
            }
            _ => false,
        };
        let shows = role == "user" && !parts.is_empty() && parts.iter().all(good);
        if !shows && !message["content"].is_string() && (role != "assistant" || calls.is_none()) {
            return invalid(format!(
                "Invalid value for 'content': expected a string, got null. messages[{at}]"
            ));
        }
        for call in calls.into_iter().flatten() {
            let arguments = call["function"]["arguments"].as_str();
            let Some(arguments) = arguments else {
                return invalid(format!(
                    "Invalid type for 'messages[{at}].tool_calls[].function.arguments': expected a string"
                ));
            };
            // Not refused by the vendor itself, but by many of the servers like it.
            if serde_json::from_str::<Value>(arguments).is_err() {
                return invalid("tool call arguments are not valid JSON".into());
            }
            if call["function"]["name"].as_str().is_none_or(str::is_empty) {
                return invalid("Missing required parameter: tool_calls[].function.name".into());
            }
            let id = call["id"].as_str().unwrap_or_default();
            if id.is_empty() || !open.insert(id.to_owned()) {
                return invalid(format!("Invalid 'messages[{at}].tool_calls[].id': {id:?}"));
            }
        }
    }
    match open.is_empty() {
        true => Ok(()),
        false => invalid("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.".into()),
    }
}
