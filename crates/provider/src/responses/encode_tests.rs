//! The request body.
#![allow(clippy::unwrap_used)]

use super::*;
use protocol::content::ToolSpec;
use serde_json::{Value, json};

fn text(text: &str) -> ContentBlock {
    ContentBlock::Text { text: text.into() }
}

fn raw(raw: &str) -> ContentBlock {
    ContentBlock::Thinking { text: String::new(), raw: raw.into() }
}

fn call(id: &str, input: &str) -> ContentBlock {
    ContentBlock::ToolUse { id: id.into(), name: "read".into(), input: input.into() }
}

fn request(model: &str, turns: Vec<(MessageRole, Vec<ContentBlock>)>) -> ModelRequest {
    ModelRequest {
        round: 1,
        model: model.into(),
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

#[test]
fn a_conversation_whose_reasoning_goes_back_before_its_call() {
    let ours = r#"{"id":"rs_1", "type":"reasoning","summary":[],"encrypted_content":"e=="}"#;
    let turns = vec![
        (MessageRole::User, vec![text("go")]),
        (
            MessageRole::Assistant,
            vec![
                raw(ours),
                raw(
                    r#"{"type":"beside","api":"responses","place":"with","fields":{"phase":"commentary"}}"#,
                ),
                text("I look."),
                call("call_1", r#"{"p": 1}"#),
                call("call_2", "no json"),
            ],
        ),
        (
            MessageRole::User,
            vec![
                ContentBlock::ToolResult {
                    id: "call_1".into(),
                    text: "A".into(),
                    is_error: false,
                    images: Vec::new(),
                },
                ContentBlock::ToolResult {
                    id: "call_2".into(),
                    text: "B".into(),
                    is_error: true,
                    images: Vec::new(),
                },
                text("and?"),
            ],
        ),
        (
            MessageRole::Assistant,
            vec![
                raw(r#"{"type":"reasoning","id":"rs_2","summary":[]}"#),
                raw(r#"{"type":"thinking","thinking":"t","signature":"s"}"#),
                text("done"),
                raw(ours),
            ],
        ),
        (MessageRole::User, vec![text("thanks")]),
    ];
    let sent = encode(&request("gpt-5", turns), Some(Effort::Low)).unwrap();
    assert!(sent.contains(ours), "byte for byte: {sent}");
    let body: Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(
        body["input"],
        json!([
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "e=="},
            {"type": "message", "role": "assistant", "phase": "commentary",
             "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": r#"{"p": 1}"#},
            {"type": "function_call", "call_id": "call_2", "name": "read",
             "arguments": r#"{"invalid_arguments":"no json"}"#},
            {"type": "function_call_output", "call_id": "call_1", "output": "A"},
            {"type": "function_call_output", "call_id": "call_2", "output": "B"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and?"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "thanks"}]},
        ])
    );
    assert_eq!(body["instructions"], "Be brief.");
    assert_eq!((&body["store"], &body["stream"]), (&json!(false), &json!(true)));
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(body["max_output_tokens"], 16, "the vendor takes no less");
    assert_eq!(body["reasoning"], json!({"effort": "low"}));
    assert!(
        sent.contains(r#""parameters":{"type": "object", "z": 1, "a": 2},"strict":false"#),
        "{sent}"
    );
}

#[test]
fn older_models_are_not_asked_for_reasoning_and_nothing_is_no_request() {
    let sent =
        encode(&request("gpt-4.1", vec![(MessageRole::User, vec![text("hi")])]), None).unwrap();
    let body: Value = serde_json::from_str(&sent).unwrap();
    assert!(body.get("include").is_none() && body.get("reasoning").is_none(), "{sent}");
    let empty = encode(&request("gpt-5", vec![(MessageRole::User, vec![text(" ")])]), None);
    assert!(matches!(empty, Err(EncodeError::Empty)));
}
