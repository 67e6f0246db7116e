//! The request body, byte for byte.
#![allow(clippy::unwrap_used)]

use super::*;

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        round: 1,
        model: "m".into(),
        system: String::new(),
        tools: Vec::new(),
        messages,
        max_tokens: 9,
        updated: None,
        calls: protocol::content::ToolChoice::Yes,
        images: Vec::new(),
        answer_schema: None,
    }
}

fn user(blocks: Vec<ContentBlock>) -> Message {
    Message { role: MessageRole::User, blocks }
}

fn assistant(blocks: Vec<ContentBlock>) -> Message {
    Message { role: MessageRole::Assistant, blocks }
}

fn text(text: &str) -> ContentBlock {
    ContentBlock::Text { text: text.into() }
}

fn call(id: &str, input: &str) -> ContentBlock {
    ContentBlock::ToolUse { id: id.into(), name: "read".into(), input: input.into() }
}

fn result(id: &str, text: &str, is_error: bool) -> ContentBlock {
    ContentBlock::ToolResult { id: id.into(), text: text.into(), is_error, images: Vec::new() }
}

fn messages(body: &str) -> &str {
    let at = body.find("\"messages\":").unwrap();
    &body[at + 11..body.len() - 1]
}

const MARK: &str = r#""cache_control":{"type":"ephemeral"}"#;

#[test]
fn the_smallest_request() {
    let body = encode(&request(vec![user(vec![text("hi")])]), None).unwrap();
    assert_eq!(
        body,
        format!(
            r#"{{"model":"m","max_tokens":9,"stream":true,"messages":[{{"role":"user","content":[{{"type":"text","text":"hi",{MARK}}}]}}]}}"#
        )
    );
}

#[test]
fn a_whole_round_with_marks_on_tools_system_and_two_user_messages() {
    let schema = r#"{ "type":"object", "b":1, "a":2 }"#;
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: "d".into(),
        input_schema: schema.into(),
    };
    let raw = r#"{"type":"thinking", "thinking":"h\u0069","signature":"s=="}"#;
    let mut ask = request(vec![
        user(vec![text("go")]),
        assistant(vec![
            ContentBlock::Thinking { text: "hi".into(), raw: raw.into() },
            call("t1", r#"{"z": 1, "a": [ ]}"#),
            call("t2", ""),
        ]),
        user(vec![text("[FILES UPDATED]"), result("t1", "", false), result("t2", "", true)]),
    ]);
    ask.system = "be good".into();
    ask.tools = vec![tool("read"), tool("ls")];
    let body = encode(&ask, None).unwrap();
    assert_eq!(body, encode(&ask, None).unwrap());
    assert_eq!(body.matches(MARK).count(), 4);
    assert!(body.contains(&format!(
        r#""tools":[{{"name":"read","description":"d","input_schema":{schema}}},{{"name":"ls","description":"d","input_schema":{schema},{MARK}}}]"#
    )));
    assert!(body.contains(&format!(r#""system":[{{"type":"text","text":"be good",{MARK}}}]"#)));
    assert_eq!(
        messages(&body),
        format!(
            concat!(
                r#"[{{"role":"user","content":[{{"type":"text","text":"go",{mark}}}]}},"#,
                r#"{{"role":"assistant","content":[{raw},"#,
                r#"{{"type":"tool_use","id":"t1","name":"read","input":{{"z": 1, "a": [ ]}}}},"#,
                r#"{{"type":"tool_use","id":"t2","name":"read","input":{{}}}}]}},"#,
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1"}},"#,
                r#"{{"type":"tool_result","tool_use_id":"t2","content":"(no output)","is_error":true,{mark}}},"#,
                r#"{{"type":"text","text":"[FILES UPDATED]"}}]}}]"#
            ),
            mark = MARK,
            raw = raw
        )
    );
}

#[test]
fn arguments_that_are_no_object_are_shown_to_the_model_as_it_said_them() {
    for (said, sent) in [
        (r#"{"a":"#, r#"{"invalid_arguments":"{\"a\":"}"#),
        ("[1]", r#"{"invalid_arguments":"[1]"}"#),
        ("null", r#"{"invalid_arguments":"null"}"#),
        (" \n", "{}"),
        (" {\"a\":1} ", "{\"a\":1}"),
    ] {
        let ask = request(vec![user(vec![text("x")]), assistant(vec![call("t", said)])]);
        let body = encode(&ask, None).unwrap();
        assert!(body.contains(&format!(r#""input":{sent}"#)), "{said}: {body}");
    }
}

#[test]
fn nothing_empty_is_sent_and_turns_of_one_speaker_are_joined() {
    let ask = request(vec![
        user(vec![text("a")]),
        assistant(vec![text("  \n")]),
        user(vec![text(""), text("b")]),
    ]);
    assert_eq!(
        messages(&encode(&ask, None).unwrap()),
        format!(
            r#"[{{"role":"user","content":[{{"type":"text","text":"a"}},{{"type":"text","text":"b",{MARK}}}]}}]"#
        )
    );
    assert!(matches!(encode(&request(vec![user(vec![text(" ")])]), None), Err(EncodeError::Empty)));
}

#[test]
fn damage_is_named() {
    let thinking = ContentBlock::Thinking { text: String::new(), raw: "{torn".into() };
    let ask = request(vec![user(vec![text("a")]), assistant(vec![thinking])]);
    assert!(matches!(encode(&ask, None), Err(EncodeError::Thinking { message: 2 })));
    let mut ask = request(vec![user(vec![text("a")])]);
    ask.tools.push(ToolSpec {
        name: "bad".into(),
        description: String::new(),
        input_schema: "true".into(),
    });
    assert_eq!(
        encode(&ask, None).unwrap_err().to_string(),
        "the input schema of tool `bad` is not a JSON object"
    );
}

#[test]
fn models_that_weigh_their_thinking_are_told_an_effort_and_older_ones_a_budget() {
    let sent = |model: &str, max_tokens| {
        let ask = ModelRequest {
            model: model.into(),
            max_tokens,
            ..request(vec![user(vec![text("a")])])
        };
        let body = encode(&ask, Some(Effort::High)).unwrap();
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        (body["thinking"].to_string(), body["output_config"].to_string())
    };
    let adaptive = (r#"{"type":"adaptive"}"#.to_owned(), r#"{"effort":"high"}"#.to_owned());
    for model in [
        "claude-opus-4-6",
        "claude-sonnet-4-6-20260205",
        "claude-opus-4-8",
        "claude-sonnet-5",
        "claude-opus-5-5",
        "anthropic.claude-fable-5-1-v1:0",
    ] {
        assert_eq!(sent(model, 100), adaptive, "{model}");
    }
    for model in ["claude-opus-4-5", "claude-sonnet-4-20250514", "claude-3-7-sonnet-20250219", "m"]
    {
        let budget = r#"{"budget_tokens":24576,"type":"enabled"}"#.to_owned();
        assert_eq!(sent(model, 64_000), (budget, "null".to_owned()), "{model}");
        assert_eq!(sent(model, 1000), ("null".to_owned(), "null".to_owned()), "{model}: no room");
    }
    let older = request(vec![user(vec![text("a")])]);
    let ask = ModelRequest { model: "claude-opus-4-6".into(), ..older.clone() };
    let leaves_out = r#""thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}}"#;
    for effort in [None, Some(Effort::Low)] {
        let body = encode_leaving_out(&ask, effort).unwrap();
        assert!(body.contains(leaves_out), "{body}");
        let to_older = encode_leaving_out(&older, effort).unwrap();
        assert_eq!(to_older, encode(&older, effort).unwrap(), "it does not know of that");
    }
    let body = encode(&ask, None).unwrap();
    assert!(!body.contains("thinking") && !body.contains("output_config"), "{body}");
}
