//! Every rule of the stream, and every dialect that is known, as a table.
#![allow(clippy::unwrap_used)]

use super::*;

fn feed(chunks: &[&str]) -> Result<Vec<AnswerStep>, FormatError> {
    let mut decoder = ChatDecoder::default();
    let mut out = Vec::new();
    for data in chunks {
        decoder.event("", data, &mut out)?;
    }
    Ok(out)
}

fn piece(index: u32, delta: AnswerDelta) -> AnswerStep {
    AnswerStep::Piece { index, delta }
}

fn choice(delta: &str) -> String {
    format!(
        r#"{{"id":"c","model":"m-1","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#
    )
}

fn finish(reason: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#)
}

fn calls(list: &str) -> String {
    choice(&format!(r#"{{"tool_calls":{list}}}"#))
}

const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8}}}"#;
const DONE: &str = "[DONE]";

fn ended(stop: StopReason, usage: Usage, model: &str) -> AnswerStep {
    AnswerStep::Ended(AnswerEnd { stop, usage, model: model.into() })
}

/// The whole calls of an answer: id, name and arguments.
fn whole_calls(steps: &[AnswerStep]) -> Vec<(String, String, String)> {
    let mut open: std::collections::BTreeMap<u32, (String, String, String)> = Default::default();
    let mut whole = Vec::new();
    for step in steps {
        let AnswerStep::Piece { index, delta } = step else { continue };
        match delta {
            AnswerDelta::ToolStart { id, name } => {
                let before = open.insert(*index, (id.clone(), name.clone(), String::new()));
                assert!(before.is_none(), "begun twice");
            }
            AnswerDelta::ToolInput(more) => open.get_mut(index).unwrap().2.push_str(more),
            AnswerDelta::BlockDone => whole.extend(open.remove(index)),
            AnswerDelta::Text(_) | AnswerDelta::Thinking(_) | AnswerDelta::ThinkingDone { .. } => {}
        }
    }
    whole
}

fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.into(), name.into(), arguments.into())
}

#[test]
fn text_and_its_usage() {
    let got = feed(&[
        &choice(r#"{"role":"assistant","content":""}"#),
        &choice(r#"{"content":"Hel"}"#),
        &choice(r#"{"content":"lo"}"#),
        &finish("stop"),
        USAGE,
    ])
    .unwrap();
    let usage = Usage { input: Some(12), output: Some(5), cache_read: Some(8), cache_write: None };
    assert_eq!(
        got,
        [
            piece(2, AnswerDelta::Text("Hel".into())),
            piece(2, AnswerDelta::Text("lo".into())),
            piece(2, AnswerDelta::BlockDone),
            ended(StopReason::EndTurn, usage, "m-1"),
        ]
    );
}

#[test]
fn a_call_in_pieces_joined_by_index() {
    let got = feed(&[
        &choice(r#"{"content":"I look."}"#),
        &calls(r#"[{"index":0,"id":"call_a","type":"function","function":{"name":"read","arguments":""}}]"#),
        &calls(r#"[{"index":0,"function":{"arguments":"{\"path\":"}}]"#),
        &calls(r#"[{"index":1,"id":"call_b","type":"function","function":{"name":"ls","arguments":""}}]"#),
        &calls(r#"[{"index":0,"function":{"arguments":"\"a\"}"}}]"#),
        &calls(r#"[{"index":1,"function":{"arguments":"{}"}}]"#),
        &finish("tool_calls"),
        DONE,
    ])
    .unwrap();
    assert_eq!(
        whole_calls(&got),
        [call("call_a", "read", r#"{"path":"a"}"#), call("call_b", "ls", "{}")]
    );
    assert_eq!(
        got[1],
        piece(2, AnswerDelta::BlockDone),
        "the text is closed before the call begins"
    );
    assert_eq!(*got.last().unwrap(), ended(StopReason::ToolUse, Usage::default(), "m-1"));
}

#[test]
fn dialects_of_calls() {
    let a = call("a", "read", r#"{"p":1}"#);
    let b = call("b", "ls", r#"{"p":2}"#);
    let one = r#"{"name":"read","arguments":"{\"p\":1}"}"#;
    let two = r#"{"name":"ls","arguments":"{\"p\":2}"}"#;
    let cases: Vec<(&str, Vec<String>, Vec<_>)> = vec![
        (
            "all at index 0 with ids of their own",
            vec![
                calls(&format!(r#"[{{"index":0,"id":"a","function":{one}}}]"#)),
                calls(&format!(r#"[{{"index":0,"id":"b","function":{two}}}]"#)),
            ],
            vec![a.clone(), b.clone()],
        ),
        (
            "both in one chunk, no index",
            vec![calls(&format!(
                r#"[{{"id":"a","function":{one}}},{{"id":"b","function":{two}}}]"#
            ))],
            vec![a.clone(), b.clone()],
        ),
        (
            "no ids, all at index 0",
            vec![calls(&format!(
                r#"[{{"index":0,"function":{one}}},{{"index":0,"function":{two}}}]"#
            ))],
            vec![call("call_1", "read", r#"{"p":1}"#), call("call_2", "ls", r#"{"p":2}"#)],
        ),
        (
            "from index 1, id and name in every piece",
            vec![
                calls(r#"[{"index":1,"id":"a","function":{"name":"read","arguments":"{\"p\":"}}]"#),
                calls(r#"[{"index":1,"id":"a","function":{"name":"read","arguments":"1}"}}]"#),
            ],
            vec![a.clone()],
        ),
        (
            "an empty id in later pieces",
            vec![
                calls(r#"[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":"}}]"#),
                calls(r#"[{"index":0,"id":"","function":{"name":"","arguments":"1}"}}]"#),
            ],
            vec![a.clone()],
        ),
        (
            "pieces without index",
            vec![
                calls(r#"[{"id":"a","function":{"name":"read","arguments":"{\"p\":"}}]"#),
                calls(r#"[{"function":{"arguments":"1}"}}]"#),
            ],
            vec![a.clone()],
        ),
        (
            "arguments as an object",
            vec![calls(r#"[{"index":0,"id":"a","function":{"name":"read","arguments":{"p":1}}}]"#)],
            vec![a.clone()],
        ),
        (
            "no arguments, empty ones, null",
            vec![calls(
                r#"[{"index":0,"id":"x","function":{"name":"ls"}},{"index":1,"id":"y","function":{"name":"ls","arguments":""}},{"index":2,"id":"z","function":{"name":"ls","arguments":null}}]"#,
            )],
            vec![call("x", "ls", "{}"), call("y", "ls", "{}"), call("z", "ls", "{}")],
        ),
        (
            "arguments before the name",
            vec![
                calls(r#"[{"index":0,"id":"a","function":{"arguments":"{\"p\""}}]"#),
                calls(r#"[{"index":0,"function":{"name":"read","arguments":":1}"}}]"#),
            ],
            vec![a.clone()],
        ),
    ];
    for (dialect, chunks, want) in cases {
        // Said to have stopped, although calls came.
        let end = finish("stop");
        let mut all: Vec<&str> = chunks.iter().map(String::as_str).collect();
        all.extend([end.as_str(), end.as_str(), DONE]);
        let got = feed(&all).unwrap();
        assert_eq!(whole_calls(&got), want, "{dialect}");
        let Some(AnswerStep::Ended(ending)) = got.last() else { panic!("{dialect}: no end") };
        assert_eq!(ending.stop, StopReason::ToolUse, "{dialect}");
        assert_eq!(
            got.iter().filter(|s| matches!(s, AnswerStep::Ended(_))).count(),
            1,
            "{dialect}"
        );
    }
}

#[test]
fn a_call_that_was_cut_is_never_done() {
    let whole = r#"[{"index":0,"id":"a","function":{"name":"read","arguments":"{}"}}]"#;
    let cut = r#"[{"index":1,"id":"b","function":{"name":"ls","arguments":"{}"}}]"#;
    let got = feed(&[&calls(whole), &calls(cut), &finish("length"), DONE]).unwrap();
    assert_eq!(whole_calls(&got), [call("a", "read", "{}")]);
    assert_eq!(*got.last().unwrap(), ended(StopReason::MaxTokens, Usage::default(), "m-1"));
    // The control: with another reason both are.
    let got = feed(&[&calls(whole), &calls(cut), &finish("stop"), DONE]).unwrap();
    assert_eq!(whole_calls(&got).len(), 2);
}

#[test]
fn nothing_counts_without_a_reason() {
    let text = choice(r#"{"content":"half"}"#);
    assert!(matches!(feed(&[&text, DONE]), Err(FormatError::NoReason)));
    let mut out = Vec::new();
    let mut decoder = ChatDecoder::default();
    decoder.event("", &text, &mut out).unwrap();
    decoder.body_ended(&mut out).unwrap();
    assert!(!out.iter().any(|step| matches!(step, AnswerStep::Ended(_))));
    // The reason alone is enough where the body then ends.
    decoder.event("", &finish("stop"), &mut out).unwrap();
    decoder.body_ended(&mut out).unwrap();
    assert!(matches!(out.last(), Some(AnswerStep::Ended(_))));
}

#[test]
fn reasoning_under_each_name_and_what_must_come_back() {
    for name in ["reasoning_content", "reasoning"] {
        let got = feed(&[
            &choice(&format!(r#"{{"{name}":"hm "}}"#)),
            &choice(&format!(r#"{{"{name}":"\"so\""}}"#)),
            &choice(r#"{"content":"Yes."}"#),
            &finish("stop"),
            DONE,
        ])
        .unwrap();
        assert_eq!(got[0], piece(0, AnswerDelta::Thinking("hm ".into())));
        let raw = format!(r#"{{"type":"chat_reasoning","{name}":"hm \"so\""}}"#);
        assert!(got.contains(&piece(0, AnswerDelta::ThinkingDone { raw })), "{got:?}");
    }
    let got = feed(&[
        &choice(r#"{"reasoning":"a","reasoning_details":[{"type":"reasoning.encrypted", "data":"x=="}]}"#),
        &finish("stop"),
        DONE,
    ])
    .unwrap();
    let raw = r#"{"type":"chat_reasoning","reasoning":"a","reasoning_details":[{"type":"reasoning.encrypted", "data":"x=="}]}"#;
    assert_eq!(got[1], piece(0, AnswerDelta::ThinkingDone { raw: raw.into() }));
    let got = feed(&[
        &calls(r#"[{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s"}}}]"#),
        &finish("tool_calls"),
        DONE,
    ])
    .unwrap();
    let raw = r#"{"type":"beside","api":"chat","place":"with","fields":{"google":{"thought_signature":"s"}}}"#;
    assert!(got.contains(&piece(1, AnswerDelta::ThinkingDone { raw: raw.into() })), "{got:?}");
}

#[test]
fn errors_refusals_and_reasons() {
    let failed = |chunks: &[&str]| match feed(chunks).unwrap().pop() {
        Some(AnswerStep::Failed(error)) => (error.words(), error.status),
        other => panic!("{other:?}"),
    };
    let text = choice(r#"{"content":"half"}"#);
    assert_eq!(
        failed(&[&text, r#"{"error":{"message":"Overloaded","code":502}}"#]),
        ("Overloaded".into(), Some(502))
    );
    assert_eq!(failed(&[r#"{"error":"out of memory"}"#]), ("out of memory".into(), None));
    assert_eq!(failed(&[&text, &finish("error")]).0, "it ended with an error");
    let stop = |chunks: &[&str]| match feed(chunks).unwrap().pop() {
        Some(AnswerStep::Ended(ending)) => ending.stop,
        other => panic!("{other:?}"),
    };
    let refusal = |words: &str| StopReason::Refusal { explanation: words.into() };
    assert_eq!(
        stop(&[
            &choice(r#"{"refusal":"I will"}"#),
            &choice(r#"{"refusal":" not."}"#),
            &finish("stop"),
            DONE
        ]),
        refusal("I will not.")
    );
    assert_eq!(stop(&[&text, &finish("content_filter"), DONE]), refusal("content_filter"));
    assert_eq!(stop(&[&text, &finish("eos"), DONE]), StopReason::Other("eos".into()));
}

#[test]
fn what_is_no_chunk_breaks_it_and_what_is_newer_does_not() {
    for bad in ["{torn", "7", r#"{"choices":"no"}"#, r#"{"choices":[{"delta":{"content":7}}]}"#] {
        assert!(matches!(feed(&[bad]), Err(FormatError::Format { .. })), "{bad}");
    }
    let nameless = calls(r#"[{"index":0,"id":"a","function":{"arguments":"{}"}}]"#);
    assert!(matches!(feed(&[&nameless, &finish("stop"), DONE]), Err(FormatError::Lacks { .. })));
    let mut decoder = ChatDecoder::default();
    let mut out = Vec::new();
    for idle in ["", r#"{"choices":[]}"#, r#"{"type":"ping"}"#] {
        assert!(!decoder.event("", idle, &mut out).unwrap(), "{idle} is no progress");
    }
    let parts = choice(
        r#"{"content":[{"type":"text","text":"from"},{"type":"text","text":" parts"}],"new_field":{}}"#,
    );
    assert!(decoder.event("", &parts, &mut out).unwrap());
    assert_eq!(out, [piece(2, AnswerDelta::Text("from parts".into()))]);
    let other = r#"{"choices":[{"index":1,"delta":{"content":"another answer"}}]}"#;
    decoder.event("", other, &mut out).unwrap();
    assert_eq!(out.len(), 1);
}
