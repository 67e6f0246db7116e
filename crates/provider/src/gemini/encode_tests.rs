//! The request body.
#![allow(clippy::unwrap_used)]

use super::*;
use serde_json::{Value, json};

fn text(text: &str) -> ContentBlock {
    ContentBlock::Text { text: text.into() }
}

fn raw(raw: &str) -> ContentBlock {
    ContentBlock::Thinking { text: String::new(), raw: raw.into() }
}

fn kept(place: &str, fields: &str) -> ContentBlock {
    raw(&format!(r#"{{"type":"beside","api":"gemini","place":"{place}","fields":{fields}}}"#))
}

fn call(id: &str, name: &str, input: &str) -> ContentBlock {
    ContentBlock::ToolUse { id: id.into(), name: name.into(), input: input.into() }
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

fn body(model: &str, turns: Vec<(MessageRole, Vec<ContentBlock>)>) -> Value {
    serde_json::from_str(&encode(&request(model, turns), None).unwrap()).unwrap()
}

#[test]
fn signatures_go_back_to_where_they_were() {
    let turns = vec![
        (MessageRole::User, vec![text("go")]),
        (
            MessageRole::Assistant,
            vec![
                raw(r#"{"text":"hm","thought":true}"#),
                kept("behind", r#"{"text":"","thoughtSignature":"s0"}"#),
                text("I look."),
                kept("with", r#"{"thoughtSignature":"s1"}"#),
                call("agentd_call_1", "read", r#"{"p": 1}"#),
                call("x2", "ls", "no json"),
            ],
        ),
        (
            MessageRole::User,
            vec![
                ContentBlock::ToolResult {
                    id: "agentd_call_1".into(),
                    text: "A".into(),
                    is_error: false,
                    images: Vec::new(),
                },
                ContentBlock::ToolResult {
                    id: "x2".into(),
                    text: "B".into(),
                    is_error: true,
                    images: Vec::new(),
                },
                text("and?"),
            ],
        ),
    ];
    let body = body("gemini-3-pro", turns);
    assert_eq!(
        body["contents"],
        json!([
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "model", "parts": [
                {"text": "I look."},
                {"text": "", "thoughtSignature": "s0"},
                {"functionCall": {"name": "read", "args": {"p": 1}}, "thoughtSignature": "s1"},
                {"functionCall": {"id": "x2", "name": "ls", "args": {"invalid_arguments": "no json"}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "read", "response": {"output": "A"}}},
                {"functionResponse": {"id": "x2", "name": "ls", "response": {"error": "B"}}},
            ]},
            {"role": "user", "parts": [{"text": "and?"}]},
        ])
    );
    assert_eq!(body["systemInstruction"], json!({"parts": [{"text": "Be brief."}]}));
    assert_eq!(body["generationConfig"], json!({"maxOutputTokens": 9}));
    assert_eq!(
        body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"],
        json!({"type": "object", "z": 1, "a": 2})
    );
}

#[test]
fn a_foreign_call_is_marked_where_the_model_asks_for_signatures() {
    let foreign = raw(r#"{"type":"thinking","thinking":"t","signature":"s"}"#);
    let turns = || {
        vec![
            (MessageRole::User, vec![text("go")]),
            (
                MessageRole::Assistant,
                vec![foreign.clone(), call("a", "read", ""), call("b", "read", "{}")],
            ),
        ]
    };
    let parts = |model| body(model, turns())["contents"][1]["parts"].clone();
    let newer = parts("gemini-3-pro");
    assert_eq!(newer[0]["thoughtSignature"], FOREIGN);
    assert!(newer[1].get("thoughtSignature").is_none(), "{newer}");
    assert_eq!(newer[0]["functionCall"]["args"], json!({}));
    assert!(parts("gemini-2.5-pro")[0].get("thoughtSignature").is_none());
}

#[test]
fn effort_as_a_level_or_as_a_budget() {
    let sent = |model| {
        let request = request(model, vec![(MessageRole::User, vec![text("hi")])]);
        let body = encode(&request, Some(Effort::Low)).unwrap();
        let body: Value = serde_json::from_str(&body).unwrap();
        body["generationConfig"]["thinkingConfig"].clone()
    };
    assert_eq!(sent("gemini-3-pro"), json!({"includeThoughts": true, "thinkingLevel": "low"}));
    assert_eq!(sent("gemini-2.5-pro"), json!({"includeThoughts": true, "thinkingBudget": 1024}));
    assert!(matches!(encode(&request("m", Vec::new()), None), Err(EncodeError::Empty)));
}
