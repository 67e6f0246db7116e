//! OpenAI Responses for tests: its stream, and its refusals in its own words.

use super::rules::{Refusal, refuse};
use super::{Issued, Say, chat, halves, vendor::Stop};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn invalid<T>(message: String) -> Result<T, Refusal> {
    refuse(400, chat::INVALID, message)
}

pub fn error(message: &str) -> Value {
    json!({"type": "error", "code": "server_error", "message": message, "param": null,
           "sequence_number": 99})
}

/// The events of an answer; without an end if there is no reason for one.
pub fn events(said: &[Say], stop: Option<Stop>) -> Vec<Value> {
    let response = |status: &str, output: &[Value]| {
        json!({"id": "resp_1", "object": "response", "created_at": 1, "status": status,
               "model": "test-model", "output": output, "error": null, "incomplete_details": null,
               "parallel_tool_calls": true, "tool_choice": "auto", "tools": []})
    };
    let mut events = vec![
        json!({"type": "response.created", "response": response("in_progress", &[])}),
        json!({"type": "response.in_progress", "response": response("in_progress", &[])}),
    ];
    let mut output = Vec::new();
    for (at, said) in said.iter().enumerate() {
        let (added, done) = match said {
            Say::Text(text) => {
                let item = |status: &str, content: Value| {
                    json!({"id": format!("msg_{at}"), "type": "message", "status": status,
                           "role": "assistant", "content": content})
                };
                let part = json!({"type": "output_text", "text": text, "annotations": []});
                (item("in_progress", json!([])), item("completed", json!([part])))
            }
            Say::Thinking(text, signature) => {
                let item = |summary: Value, encrypted: &str| {
                    json!({"id": format!("rs_{at}"), "type": "reasoning", "summary": summary,
                           "encrypted_content": encrypted})
                };
                let summary = json!([{"type": "summary_text", "text": text}]);
                // At its beginning it is incomplete.
                (item(json!([]), "half"), item(summary, signature))
            }
            Say::Call(id, tool, input) | Say::HalfACall(id, tool, input) => {
                let status = match said {
                    Say::HalfACall(..) => "incomplete",
                    Say::Text(_) | Say::Thinking(..) | Say::Call(..) => "completed",
                };
                let item = |status: &str, arguments: &str| {
                    json!({"id": format!("fc_{at}"), "type": "function_call", "status": status,
                           "arguments": arguments, "call_id": id, "name": tool})
                };
                (item("in_progress", ""), item(status, input))
            }
        };
        let place = |kind: &str, fields: Value| {
            let mut event = json!({"type": format!("response.{kind}"), "output_index": at,
                                   "item_id": done["id"]});
            for (name, value) in fields.as_object().into_iter().flatten() {
                event[name] = value.clone();
            }
            event
        };
        events.push(place("output_item.added", json!({"item": added})));
        match said {
            Say::Text(text) => {
                let part = |text: &str| {
                    json!({"content_index": 0, "part":
                    {"type": "output_text", "text": text, "annotations": []}})
                };
                events.push(place("content_part.added", part("")));
                for half in halves(text) {
                    events.push(place(
                        "output_text.delta",
                        json!({"content_index": 0, "delta": half, "logprobs": []}),
                    ));
                }
                events.push(place(
                    "output_text.done",
                    json!({"content_index": 0, "text": text, "logprobs": []}),
                ));
                events.push(place("content_part.done", part(text)));
            }
            Say::Thinking(text, _) => {
                let part = |text: &str| json!({"summary_index": 0, "part": {"type": "summary_text", "text": text}});
                events.push(place("reasoning_summary_part.added", part("")));
                let delta = json!({"summary_index": 0, "delta": text});
                events.push(place("reasoning_summary_text.delta", delta));
                let whole = json!({"summary_index": 0, "text": text});
                events.push(place("reasoning_summary_text.done", whole));
                events.push(place("reasoning_summary_part.done", part(text)));
            }
            Say::Call(_, tool, input) => {
                for half in halves(input) {
                    let delta = json!({ "delta": half });
                    events.push(place("function_call_arguments.delta", delta));
                }
                let whole = json!({"arguments": input, "name": tool});
                events.push(place("function_call_arguments.done", whole));
            }
            Say::HalfACall(_, _, input) => {
                let delta = json!({ "delta": input });
                events.push(place("function_call_arguments.delta", delta));
            }
        }
        events.push(place("output_item.done", json!({"item": done})));
        output.push(done);
    }
    if let Some(stop) = stop {
        let (kind, reason) = match stop {
            Stop::Done | Stop::Calls => ("completed", None),
            Stop::MaxTokens => ("incomplete", Some("max_output_tokens")),
            Stop::Refused => ("incomplete", Some("content_filter")),
        };
        let mut whole = response(kind, &output);
        if let Some(reason) = reason {
            whole["incomplete_details"] = json!({ "reason": reason });
        }
        whole["usage"] = json!({"input_tokens": 20, "input_tokens_details": {"cached_tokens": 7},
                                "output_tokens": 25, "total_tokens": 45,
                                "output_tokens_details": {"reasoning_tokens": 0}});
        events.push(json!({"type": format!("response.{kind}"), "response": whole}));
    }
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    events
}

pub fn check(body: &Value, issued: &[Issued]) -> Result<(), Refusal> {
    const FIELDS: [&str; 9] = [
        "model",
        "instructions",
        "input",
        "tools",
        "stream",
        "store",
        "include",
        "max_output_tokens",
        "reasoning",
    ];
    let Some(fields) = body.as_object() else {
        return invalid("We could not parse the JSON body of your request.".into());
    };
    if let Some(unknown) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return invalid(format!("Unknown parameter: '{unknown}'."));
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        return invalid("Missing required parameter: 'model'.".into());
    }
    if body["stream"] != true || body["store"] != false {
        return invalid("this server answers streams and stores nothing".into());
    }
    if body["max_output_tokens"].as_u64().is_none_or(|tokens| tokens < 16) {
        return invalid("Invalid 'max_output_tokens': integer below minimum value.".into());
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        if tool["type"] != "function" {
            return invalid("Invalid value for 'tools[].type'".into());
        }
        chat::check_tool(tool)?;
    }
    check_input(body["input"].as_array().map(Vec::as_slice).unwrap_or_default(), issued)
}

fn check_input(input: &[Value], issued: &[Issued]) -> Result<(), Refusal> {
    if input.is_empty() {
        return invalid("Missing required parameter: 'input'.".into());
    }
    let mut open: BTreeMap<&str, bool> = BTreeMap::new();
    for (at, item) in input.iter().enumerate() {
        match item["type"].as_str().unwrap_or_default() {
            "message" => {
                let wanted = match item["role"].as_str() {
                    Some("assistant") => "output_text",
                    Some("user") => "input_text",
                    other => {
                        return invalid(format!("Invalid value: '{other:?}' input[{at}].role"));
                    }
                };
                let parts = item["content"].as_array().map(Vec::as_slice).unwrap_or_default();
                let good = |part: &Value| {
                    let is_text = part["type"] == wanted;
                    (is_text && part["text"].as_str().is_some_and(|t| !t.is_empty()))
                        || (item["role"] == "user" && shows(part))
                };
                if parts.is_empty() || !parts.iter().all(good) {
                    return invalid(format!(
                        "Invalid value: input[{at}].content. Supported values are: '{wanted}'."
                    ));
                }
            }
            "function_call" => {
                let id = item["call_id"].as_str().unwrap_or_default();
                if id.is_empty() || open.insert(id, false).is_some() {
                    return invalid(format!("Duplicate or empty call_id: {id:?}"));
                }
                if !item["arguments"].is_string() || item["name"].as_str().is_none_or(str::is_empty)
                {
                    return invalid(format!("Invalid type for 'input[{at}].arguments'."));
                }
                let arguments = item["arguments"].as_str().unwrap_or_default();
                if serde_json::from_str::<Value>(arguments).is_err() {
                    return invalid(format!("Invalid JSON in 'input[{at}].arguments'."));
                }
                check_reasoning_before(input, at, id, issued)?;
            }
            "function_call_output" => {
                let id = item["call_id"].as_str().unwrap_or_default();
                match open.get_mut(id) {
                    Some(answered @ false) => *answered = true,
                    Some(true) => return invalid(format!("Duplicate output for {id}.")),
                    None => {
                        return invalid(format!(
                            "No tool call found for function call output with call_id {id}."
                        ));
                    }
                }
                let parts = item["output"].as_array().map(Vec::as_slice).unwrap_or_default();
                let good = |part: &Value| part["type"] == "input_text" || shows(part);
                if !item["output"].is_string() && (parts.is_empty() || !parts.iter().all(good)) {
                    return invalid(format!("Missing required parameter: 'input[{at}].output'."));
                }
            }
            "reasoning" => {
                let encrypted = item["encrypted_content"].as_str().unwrap_or_default();
                let known =
                    issued.iter().flat_map(|i| &i.thought).any(|(_, sealed)| sealed == encrypted);
                if !known {
                    return invalid("The encrypted content for item could not be verified.".into());
                }
                let follows = input.get(at + 1).map(|next| {
                    next["type"] == "function_call"
                        || next["type"] == "reasoning"
                        || (next["type"] == "message" && next["role"] == "assistant")
                });
                if follows != Some(true) {
                    return invalid(format!(
                        "Item '{}' of type 'reasoning' was provided without its required following item.",
                        item["id"].as_str().unwrap_or_default()
                    ));
                }
            }
            other => return invalid(format!("Invalid value: '{other}' at input[{at}].type")),
        }
    }
    match open.iter().find(|(_, answered)| !**answered) {
        Some((id, _)) => invalid(format!("No tool output found for function call {id}.")),
        None => Ok(()),
    }
}

/// A call that came with reasoning follows it.
fn check_reasoning_before(
    input: &[Value],
    at: usize,
    id: &str,
    issued: &[Issued],
) -> Result<(), Refusal> {
    let Some(issued) = issued.iter().find(|i| i.calls.iter().any(|call| call == id)) else {
        return Ok(());
    };
    let there = |(_, sealed): &(String, String)| {
        input[..at].iter().any(|item| item["encrypted_content"] == sealed.as_str())
    };
    match issued.thought.iter().all(there) {
        true => Ok(()),
        false => invalid(format!(
            "Item of type 'function_call' ({id}) was provided without its required 'reasoning' item."
        )),
    }
}

/// An image or a file in the vendor's form.
fn shows(part: &Value) -> bool {
    let is_data = |field: &str, kind: &str| {
        part[field].as_str().is_some_and(|url| url.starts_with(&format!("data:{kind}/")))
    };
    match part["type"].as_str() {
        Some("input_image") => is_data("image_url", "image"),
        Some("input_file") => is_data("file_data", "application") && part["filename"].is_string(),
        _ => false,
    }
}
