//! The request body.
#![allow(clippy::unwrap_used)]

use super::*;
use protocol::content::ToolSpec;
use serde_json::{Value, json};

const LOCAL: &str = "http://localhost:11434";

fn text(text: &str) -> ContentBlock {
    ContentBlock::Text { text: text.into() }
}

fn call(id: &str, input: &str) -> ContentBlock {
    ContentBlock::ToolUse { id: id.into(), name: "read".into(), input: input.into() }
}

fn result(id: &str, text: &str) -> ContentBlock {
    ContentBlock::ToolResult {
        id: id.into(),
        text: text.into(),
        is_error: false,
        images: Vec::new(),
    }
}

fn raw(raw: &str) -> ContentBlock {
    ContentBlock::Thinking { text: String::new(), raw: raw.into() }
}

fn request(turns: Vec<(MessageRole, Vec<ContentBlock>)>) -> ModelRequest {
    ModelRequest {
        round: 1,
        model: "m".into(),
        system: "Be brief.".into(),
        tools: vec![ToolSpec {
            name: "read".into(),
            description: "Reads.".into(),
            input_schema: r#"{"type": "object", "z": 1, "a": 2}"#.into(),
        }],
        messages: turns.into_iter().map(|(role, blocks)| Message { role, blocks }).collect(),
        max_tokens: 9,
        updated: None,
        calls: protocol::content::ToolChoice::Yes,
        images: Vec::new(),
        answer_schema: None,
    }
}

fn body(turns: Vec<(MessageRole, Vec<ContentBlock>)>, base_url: &str) -> Value {
    serde_json::from_str(&encode(&request(turns), None, base_url).unwrap()).unwrap()
}

#[test]
fn a_conversation_as_these_servers_want_it() {
    use MessageRole::{Assistant, User};
    let turns = vec![
        (User, vec![text("go"), text(" "), text("now")]),
        (
            Assistant,
            vec![
                raw(r#"{"type":"chat_reasoning","reasoning_content":"hm"}"#),
                raw(r#"{"type":"beside","api":"chat","place":"with","fields":{"google":{"s":1}}}"#),
                call("a", r#"{"p": 1}"#),
                call("b", "no json"),
                call("c", ""),
            ],
        ),
        (User, vec![result("a", "A"), result("b", "B"), result("c", "C"), text("and?")]),
        (Assistant, vec![raw(r#"{"type":"chat_reasoning","reasoning":"x"}"#), text("done")]),
        (User, vec![text("thanks")]),
    ];
    let body = body(turns, LOCAL);
    let function = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "go\n\nnow"},
            {"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [
                {"id": "a", "type": "function", "function": function("read", r#"{"p": 1}"#),
                 "extra_content": {"google": {"s": 1}}},
                {"id": "b", "type": "function",
                 "function": function("read", r#"{"invalid_arguments":"no json"}"#)},
                {"id": "c", "type": "function", "function": function("read", "{}")},
            ]},
            {"role": "tool", "tool_call_id": "a", "content": "A"},
            {"role": "tool", "tool_call_id": "b", "content": "B"},
            {"role": "tool", "tool_call_id": "c", "content": "C"},
            {"role": "user", "content": "and?"},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": "thanks"},
        ])
    );
    assert_eq!(
        (&body["stream"], &body["stream_options"]),
        (&json!(true), &json!({"include_usage": true}))
    );
    assert_eq!((&body["max_tokens"], body.get("max_completion_tokens")), (&json!(9), None));
}

#[test]
fn the_vendor_s_own_server_has_newer_names() {
    let body = body(vec![(MessageRole::User, vec![text("hi")])], "https://api.openai.com/v1");
    assert_eq!(body["messages"][0]["role"], "developer");
    assert_eq!((&body["max_completion_tokens"], body.get("max_tokens")), (&json!(9), None));
}

#[test]
fn schemas_are_byte_stable_and_bad_ones_are_named() {
    let mut request = request(vec![(MessageRole::User, vec![text("hi")])]);
    let sent = encode(&request, Some(Effort::High), LOCAL).unwrap();
    assert!(sent.contains(r#""parameters":{"type": "object", "z": 1, "a": 2}"#), "{sent}");
    assert!(sent.contains(r#""reasoning_effort":"high""#));
    request.tools[0].input_schema = "[]".into();
    assert!(matches!(encode(&request, None, LOCAL), Err(EncodeError::Schema { .. })));
    request.tools.clear();
    request.messages.clear();
    assert!(matches!(encode(&request, None, LOCAL), Err(EncodeError::Empty)));
}

#[test]
fn another_vendor_s_reasoning_is_left_out() {
    let foreign = raw(r#"{"type":"thinking","thinking":"t","signature":"s"}"#);
    let turns = vec![
        (MessageRole::User, vec![text("go")]),
        (MessageRole::Assistant, vec![foreign, text("done")]),
        (MessageRole::User, vec![text("more")]),
    ];
    let sent = body(turns, LOCAL);
    assert_eq!(sent["messages"][2], json!({"role": "assistant", "content": "done"}));
    let torn =
        vec![(MessageRole::User, vec![text("go")]), (MessageRole::Assistant, vec![raw("torn")])];
    let torn = encode(&request(torn), None, LOCAL);
    assert!(matches!(torn, Err(EncodeError::Thinking { message: 2 })));
}

#[test]
fn usage_is_asked_for_except_of_a_server_that_refuses_the_question() {
    let turns = || vec![(MessageRole::User, vec![text("go")])];
    let asked = body(turns(), "https://api.deepseek.com");
    assert_eq!(asked["stream_options"], json!({"include_usage": true}));
    let mistral = body(turns(), "https://api.mistral.ai/v1");
    assert!(mistral.get("stream_options").is_none(), "{mistral}");
    assert_eq!(mistral["max_tokens"], 9);
}
