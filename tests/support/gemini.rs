//! Google Gemini for tests: its stream, and its refusals in its own words.

use super::rules::{Refusal, refuse};
use super::{Issued, Say, halves, vendor::Stop};
use serde_json::{Value, json};

const INVALID: &str = "INVALID_ARGUMENT";

fn invalid<T>(message: String) -> Result<T, Refusal> {
    refuse(400, INVALID, message)
}

pub fn error(status: u16, name: &str, message: &str) -> Value {
    json!({"error": {"code": status, "message": message, "status": name, "details": []}})
}

/// The pieces of an answer; without an end if there is no reason for one. A signature stands at the
/// first call, or in a last piece without words.
pub fn events(said: &[Say], stop: Option<Stop>) -> Vec<Value> {
    let piece = |parts: Vec<Value>| {
        json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}],
               "usageMetadata": {"promptTokenCount": 20, "totalTokenCount": 20},
               "modelVersion": "test-model", "responseId": "r1"})
    };
    let mut events = Vec::new();
    let mut signature = None;
    for said in said {
        match said {
            Say::Text(text) => {
                for half in halves(text) {
                    events.push(piece(vec![json!({ "text": half })]));
                }
            }
            Say::Thinking(text, signed) => {
                events.push(piece(vec![json!({"text": text, "thought": true})]));
                signature = Some(signed.clone());
            }
            Say::Call(id, tool, input) => {
                // Arguments are objects here. Other arguments end the answer with an error.
                let Ok(args @ Value::Object(_)) = serde_json::from_str::<Value>(input) else {
                    let mut last = piece(Vec::new());
                    last["candidates"][0]["finishReason"] = json!("MALFORMED_FUNCTION_CALL");
                    events.push(last);
                    return events;
                };
                let mut part = json!({"functionCall": {"id": id, "name": tool, "args": args}});
                if let Some(signature) = signature.take() {
                    part["thoughtSignature"] = json!(signature);
                }
                events.push(piece(vec![part]));
            }
            // A call never comes in pieces, so a cut call does not come at all.
            Say::HalfACall(..) => {}
        }
    }
    if let Some(stop) = stop {
        let reason = match stop {
            Stop::Done | Stop::Calls => "STOP",
            Stop::MaxTokens => "MAX_TOKENS",
            Stop::Refused => "SAFETY",
        };
        let mut last = piece(match signature {
            Some(signature) => vec![json!({"text": "", "thoughtSignature": signature})],
            None => Vec::new(),
        });
        last["candidates"][0]["finishReason"] = json!(reason);
        last["usageMetadata"] = json!({"promptTokenCount": 20, "cachedContentTokenCount": 7,
                                       "candidatesTokenCount": 25, "totalTokenCount": 45});
        events.push(last);
    }
    events
}

pub fn check_head(
    line: &str,
    headers: &[(String, String)],
    key: Option<&str>,
) -> Result<(), Refusal> {
    let header = |name| headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
    let path = line.strip_prefix("POST ").and_then(|rest| rest.split(' ').next());
    let path = path.unwrap_or_default();
    let fits = path.starts_with("/v1beta/models/")
        && path.ends_with(":streamGenerateContent?alt=sse")
        && !path.contains("key=");
    if !fits {
        return refuse(404, "NOT_FOUND", format!("Requested entity was not found: {path}"));
    }
    match (header("x-goog-api-key"), key) {
        (None | Some(""), _) => refuse(
            403,
            "PERMISSION_DENIED",
            "Method doesn't allow unregistered callers. Please use API Key.".into(),
        ),
        (Some(given), Some(key)) if given != key => {
            invalid("API key not valid. Please pass a valid API key.".into())
        }
        (Some(_), _) => Ok(()),
    }
}

pub fn check(body: &Value, issued: &[Issued]) -> Result<(), Refusal> {
    const FIELDS: [&str; 5] =
        ["contents", "systemInstruction", "tools", "generationConfig", "toolConfig"];
    let Some(fields) = body.as_object() else {
        return invalid("Invalid JSON payload received.".into());
    };
    if let Some(unknown) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return invalid(format!(
            "Invalid JSON payload received. Unknown name \"{unknown}\": Cannot find field."
        ));
    }
    for tool in body["tools"][0]["functionDeclarations"].as_array().into_iter().flatten() {
        let name = tool["name"].as_str().unwrap_or_default();
        if name.is_empty() || tool["parametersJsonSchema"]["type"] != "object" {
            return invalid(format!("Invalid function declaration: {name:?}"));
        }
    }
    let contents = body["contents"].as_array().map(Vec::as_slice).unwrap_or_default();
    if contents.is_empty() {
        return invalid("GenerateContentRequest.contents: contents is not specified".into());
    }
    for (at, content) in contents.iter().enumerate() {
        let role = content["role"].as_str().unwrap_or_default();
        if !matches!(role, "user" | "model") {
            return invalid("Please use a valid role: user, model.".into());
        }
        let parts = content["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
        if parts.is_empty() {
            return invalid(format!(
                "GenerateContentRequest.contents[{at}].parts: must not be empty"
            ));
        }
        for part in parts {
            check_part(part, at)?;
        }
        check_turn(contents, at, issued)?;
    }
    Ok(())
}

fn check_part(part: &Value, at: usize) -> Result<(), Refusal> {
    let kinds = ["text", "functionCall", "functionResponse", "inlineData"];
    if kinds.iter().filter(|kind| part.get(**kind).is_some()).count() != 1 {
        return invalid(format!(
            "contents[{at}].parts: required oneof field 'data' must have one initialized field"
        ));
    }
    if let Some(call) = part.get("functionCall")
        && (!call["args"].is_object() || call["name"].as_str().is_none_or(str::is_empty))
    {
        return invalid(format!("Invalid value at 'contents[{at}].parts.function_call'"));
    }
    if let Some(response) = part.get("functionResponse") {
        if response["name"].as_str().is_none_or(str::is_empty) {
            return invalid(format!(
                "contents[{at}].parts: function_response.name: Name cannot be empty."
            ));
        }
        if !response["response"].is_object() {
            return invalid(format!(
                "Invalid value at 'contents[{at}].parts.function_response.response'"
            ));
        }
    }
    Ok(())
}

/// Calls and their responses are in neighbouring contents, in equal number, and each signature is
/// sent back.
fn check_turn(contents: &[Value], at: usize, issued: &[Issued]) -> Result<(), Refusal> {
    let names = |at: Option<usize>, kind: &str| -> Vec<String> {
        let parts = at.and_then(|at| contents.get(at)).and_then(|c| c["parts"].as_array());
        let named = |part: &Value| part[kind]["name"].as_str().map(str::to_owned);
        parts.into_iter().flatten().filter_map(named).collect()
    };
    let calls = names(Some(at), "functionCall");
    if !calls.is_empty() && names(Some(at + 1), "functionResponse") != calls {
        return invalid("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.".into());
    }
    let responses = names(Some(at), "functionResponse");
    if !responses.is_empty() {
        if names(at.checked_sub(1), "functionCall").is_empty() {
            return invalid("Please ensure that function response turn comes immediately after a function call turn.".into());
        }
        if contents[at]["parts"].as_array().is_some_and(|parts| parts.len() != responses.len()) {
            return invalid("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.".into());
        }
    }
    for part in contents[at]["parts"].as_array().into_iter().flatten() {
        let id = part["functionCall"]["id"].as_str();
        let signed =
            issued.iter().find(|i| i.calls.first().map(String::as_str) == id && id.is_some());
        let Some((_, signature)) = signed.and_then(|issued| issued.thought.last()) else {
            continue;
        };
        if part["thoughtSignature"] != signature.as_str() {
            return invalid("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.".into());
        }
    }
    Ok(())
}
