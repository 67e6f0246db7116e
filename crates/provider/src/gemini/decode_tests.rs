//! Every rule of the stream as a table.
#![allow(clippy::unwrap_used)]

use super::*;

fn feed(pieces: &[&str]) -> Result<Vec<AnswerStep>, FormatError> {
    let mut decoder = GeminiDecoder::default();
    let mut out = Vec::new();
    for data in pieces {
        decoder.event(data, &mut out)?;
    }
    Ok(out)
}

fn piece(index: u32, delta: AnswerDelta) -> AnswerStep {
    AnswerStep::Piece { index, delta }
}

fn parts(parts: &str) -> String {
    format!(
        r#"{{"candidates":[{{"content":{{"parts":[{parts}],"role":"model"}},"index":0}}],"usageMetadata":{{"promptTokenCount":9}},"modelVersion":"gemini-x"}}"#
    )
}

fn last(parts: &str, reason: &str) -> String {
    format!(
        r#"{{"candidates":[{{"content":{{"parts":[{parts}]}},"finishReason":"{reason}"}}],"usageMetadata":{{"promptTokenCount":30,"candidatesTokenCount":5,"thoughtsTokenCount":2,"cachedContentTokenCount":20}}}}"#
    )
}

fn ended(stop: StopReason) -> AnswerStep {
    let usage = Usage { input: Some(10), output: Some(7), cache_read: Some(20), cache_write: None };
    AnswerStep::Ended(AnswerEnd { stop, usage, model: "gemini-x".into() })
}

fn kept(place: &str, fields: &str) -> AnswerDelta {
    let raw = format!(r#"{{"type":"beside","api":"gemini","place":"{place}","fields":{fields}}}"#);
    AnswerDelta::ThinkingDone { raw }
}

#[test]
fn text_with_its_signature_in_a_last_empty_piece() {
    let got = feed(&[
        &parts(r#"{"text":"Hel"}"#),
        &parts(r#"{"text":"lo"}"#),
        &last(r#"{"text":"","thoughtSignature":"c2ln"}"#, "STOP"),
    ])
    .unwrap();
    assert_eq!(
        got,
        [
            piece(2, AnswerDelta::Text("Hel".into())),
            piece(2, AnswerDelta::Text("lo".into())),
            piece(1, kept("behind", r#"{"text":"","thoughtSignature":"c2ln"}"#)),
            piece(2, AnswerDelta::BlockDone),
            ended(StopReason::EndTurn),
        ]
    );
}

#[test]
fn thoughts_calls_and_signatures() {
    let got = feed(&[
        &parts(r#"{"text":"I ","thought":true}"#),
        &parts(r#"{"text":"think.","thought":true}"#),
        &parts(r#"{"functionCall":{"name":"read","args":{"path": "a"}},"thoughtSignature":"s1"},{"functionCall":{"id":"x1","name":"ls"}}"#),
        &last("", "STOP"),
    ])
    .unwrap();
    assert_eq!(
        got,
        [
            piece(2, AnswerDelta::Thinking("I ".into())),
            piece(2, AnswerDelta::Thinking("think.".into())),
            piece(
                2,
                AnswerDelta::ThinkingDone { raw: r#"{"text":"I think.","thought":true}"#.into() }
            ),
            piece(3, kept("with", r#"{"thoughtSignature":"s1"}"#)),
            piece(4, AnswerDelta::ToolStart { id: "agentd_call_1".into(), name: "read".into() }),
            piece(4, AnswerDelta::ToolInput(r#"{"path": "a"}"#.into())),
            piece(4, AnswerDelta::BlockDone),
            piece(6, AnswerDelta::ToolStart { id: "x1".into(), name: "ls".into() }),
            piece(6, AnswerDelta::ToolInput("{}".into())),
            piece(6, AnswerDelta::BlockDone),
            ended(StopReason::ToolUse),
        ]
    );
}

#[test]
fn a_signed_text_stands_alone() {
    let got = feed(&[
        &parts(r#"{"text":"a"},{"text":"b","thoughtSignature":"s"},{"text":"c"}"#),
        &last("", "STOP"),
    ]);
    assert_eq!(
        got.unwrap()[..6],
        [
            piece(2, AnswerDelta::Text("a".into())),
            piece(2, AnswerDelta::BlockDone),
            piece(3, kept("with", r#"{"thoughtSignature":"s"}"#)),
            piece(4, AnswerDelta::Text("b".into())),
            piece(4, AnswerDelta::BlockDone),
            piece(6, AnswerDelta::Text("c".into())),
        ]
    );
}

#[test]
fn every_reason_has_its_outcome() {
    let refusal = |words: &str| StopReason::Refusal { explanation: words.into() };
    for (reason, stop) in [
        ("STOP", StopReason::EndTurn),
        ("MAX_TOKENS", StopReason::MaxTokens),
        ("SAFETY", refusal("SAFETY")),
        ("RECITATION", refusal("RECITATION")),
        ("OTHER", StopReason::Other("OTHER".into())),
        ("OF_TOMORROW", StopReason::Other("OF_TOMORROW".into())),
    ] {
        let got = feed(&[&parts(r#"{"text":"x"}"#), &last("", reason)]).unwrap();
        assert_eq!(*got.last().unwrap(), ended(stop), "{reason}");
    }
    for reason in ["MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "TOO_MANY_TOOL_CALLS"] {
        let got = feed(&[&last("", reason)]).unwrap();
        assert!(
            matches!(got.last(), Some(AnswerStep::Failed(error)) if error.nature().is_none()),
            "{reason}"
        );
    }
    let blocked =
        r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"modelVersion":"gemini-x"}"#;
    let Some(AnswerStep::Ended(ending)) = feed(&[blocked]).unwrap().pop() else { panic!() };
    assert_eq!(ending.stop, refusal("PROHIBITED_CONTENT"));
}

#[test]
fn errors_as_object_and_as_array() {
    for data in [
        r#"{"error":{"code":503,"message":"Busy","status":"UNAVAILABLE"}}"#,
        r#"[{"error":{"code":503,"message":"Busy","status":"UNAVAILABLE"}}]"#,
    ] {
        let got = feed(&[&parts(r#"{"text":"half"}"#), data]).unwrap();
        let Some(AnswerStep::Failed(error)) = got.last() else { panic!("{got:?}") };
        assert_eq!(error.words(), "UNAVAILABLE: Busy");
    }
}

#[test]
fn what_does_not_fit_breaks_it_and_what_is_newer_does_not() {
    for bad in [
        "{torn",
        "[]",
        r#"{"candidates":7}"#,
        &parts(r#"{"functionCall":{"args":{}}}"#),
        &parts(r#"{"functionCall":{"name":"ls","willContinue":true}}"#),
    ] {
        assert!(feed(&[bad]).is_err(), "{bad}");
    }
    let newer =
        parts(r#"{"of_tomorrow":{}},{"inlineData":{"mimeType":"x","data":""}},{"text":"ok"}"#);
    assert_eq!(feed(&[&newer]).unwrap(), [piece(2, AnswerDelta::Text("ok".into()))]);
    let mut decoder = GeminiDecoder::default();
    assert!(!decoder.event(r#"{"usageMetadata":{}}"#, &mut Vec::new()).unwrap());
}
