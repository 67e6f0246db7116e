//! Every rule of the stream as a table.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::step::ServerError;

fn feed(events: &[&str]) -> Result<Vec<AnswerStep>, FormatError> {
    let mut decoder = AnthropicDecoder::default();
    let mut out = Vec::new();
    for data in events {
        decoder.event("", data, &mut out)?;
    }
    Ok(out)
}

fn piece(index: u32, delta: AnswerDelta) -> AnswerStep {
    AnswerStep::Piece { index, delta }
}

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","role":"assistant","model":"claude-x","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":7,"cache_creation_input_tokens":3,"output_tokens":1}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;
const TEXT: &str =
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
const TOOL: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{}}}"#;
const DONE: &str = r#"{"type":"content_block_stop","index":0}"#;

fn end(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"output_tokens":25}}}}"#
    )
}

fn said(text: &str) -> String {
    format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
    )
}

fn json(part: &str) -> String {
    format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":{}}}}}"#,
        serde_json::to_string(part).unwrap()
    )
}

fn ending(stop: StopReason) -> AnswerStep {
    AnswerStep::Ended(AnswerEnd {
        stop,
        usage: Usage {
            input: Some(10),
            output: Some(25),
            cache_read: Some(7),
            cache_write: Some(3),
        },
        model: "claude-x".into(),
    })
}

#[test]
fn text_with_pings_and_unknown_events() {
    let got = feed(&[
        START,
        r#"{"type":"ping"}"#,
        TEXT,
        &said("Hel"),
        r#"{"type":"from_the_future","delta":"no object","index":"x"}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}"#,
        &said("lo"),
        DONE,
        &end("end_turn"),
        STOP,
    ]);
    assert_eq!(
        got.unwrap(),
        [
            piece(0, AnswerDelta::Text("Hel".into())),
            piece(0, AnswerDelta::Text("lo".into())),
            piece(0, AnswerDelta::BlockDone),
            ending(StopReason::EndTurn),
        ]
    );
}

#[test]
fn a_call_in_pieces_and_one_without_arguments() {
    let got = feed(&[
        START,
        TOOL,
        &json(""),
        &json("{\"path\": \"a"),
        &json(".rs\"}"),
        DONE,
        &end("tool_use"),
        STOP,
    ])
    .unwrap();
    let start = AnswerDelta::ToolStart { id: "toolu_1".into(), name: "read".into() };
    assert_eq!(
        got,
        [
            piece(0, start.clone()),
            piece(0, AnswerDelta::ToolInput("{\"path\": \"a".into())),
            piece(0, AnswerDelta::ToolInput(".rs\"}".into())),
            piece(0, AnswerDelta::BlockDone),
            ending(StopReason::ToolUse),
        ]
    );
    let whole = TOOL.replace(r#""input":{}"#, r#""input":{"path": 1}"#);
    for (open, input) in [(TOOL, "{}"), (&whole, "{\"path\": 1}")] {
        assert_eq!(
            feed(&[START, open, &json(""), DONE]).unwrap(),
            [
                piece(0, start.clone()),
                piece(0, AnswerDelta::ToolInput(input.into())),
                piece(0, AnswerDelta::BlockDone),
            ]
        );
    }
}

#[test]
fn a_block_without_its_stop_is_never_done() {
    let got = feed(&[START, TOOL, &json("{\"a\""), &end("max_tokens"), STOP]).unwrap();
    assert!(!got.contains(&piece(0, AnswerDelta::BlockDone)));
    assert_eq!(got.last().unwrap(), &ending(StopReason::MaxTokens));
}

#[test]
fn thinking_is_kept_for_the_echo_also_without_words() {
    let thinking = r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#;
    let words = r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"why \"é\"\n"}}"#;
    let signed = r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB/+=="}}"#;
    assert_eq!(
        feed(&[START, thinking, words, signed, DONE]).unwrap(),
        [
            piece(0, AnswerDelta::Thinking("why \"é\"\n".into())),
            piece(
                0,
                AnswerDelta::ThinkingDone {
                    raw: r#"{"type":"thinking","thinking":"why \"é\"\n","signature":"EqQB/+=="}"#
                        .into()
                }
            ),
        ]
    );
    assert_eq!(
        feed(&[START, thinking, signed, DONE]).unwrap(),
        [piece(
            0,
            AnswerDelta::ThinkingDone {
                raw: r#"{"type":"thinking","thinking":"","signature":"EqQB/+=="}"#.into()
            }
        )]
    );
    let redacted = r#"{"type":"content_block_start","index":0,"content_block": {"type":"redacted_thinking", "data":"\u0041=="}}"#;
    assert_eq!(
        feed(&[START, redacted, DONE]).unwrap(),
        [piece(
            0,
            AnswerDelta::ThinkingDone {
                raw: r#"{"type":"redacted_thinking", "data":"\u0041=="}"#.into()
            }
        )]
    );
}

#[test]
fn unknown_blocks_and_empty_ones_leave_nothing() {
    let server = r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}"#;
    assert_eq!(feed(&[START, server, &json("{"), DONE]).unwrap(), []);
    assert_eq!(feed(&[START, TEXT, &said(""), DONE]).unwrap(), []);
}

#[test]
fn a_second_message_start_starts_over() {
    let got = feed(&[
        START,
        TEXT,
        &said("half"),
        START,
        TEXT,
        &said("whole"),
        DONE,
        &end("end_turn"),
        STOP,
    ]);
    assert_eq!(
        got.unwrap(),
        [
            piece(0, AnswerDelta::Text("half".into())),
            AnswerStep::StartedOver,
            piece(0, AnswerDelta::Text("whole".into())),
            piece(0, AnswerDelta::BlockDone),
            ending(StopReason::EndTurn),
        ]
    );
}

#[test]
fn every_reason_to_stop() {
    let refusal = r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"category":"cyber","explanation":"no"}},"usage":{"output_tokens":25}}"#;
    let plain = StopReason::Refusal { explanation: String::new() };
    let cases = [
        (end("end_turn"), StopReason::EndTurn),
        (end("tool_use"), StopReason::ToolUse),
        (end("max_tokens"), StopReason::MaxTokens),
        (end("stop_sequence"), StopReason::StopSequence),
        (end("pause_turn"), StopReason::PauseTurn),
        (end("refusal"), plain),
        (refusal.to_owned(), StopReason::Refusal { explanation: "no".into() }),
        (end("model_context_window_exceeded"), StopReason::ContextFull),
        (end("whim"), StopReason::Other("whim".into())),
    ];
    for (event, stop) in cases {
        assert_eq!(feed(&[START, &event, STOP]).unwrap(), [ending(stop)]);
    }
}

#[test]
fn the_server_may_fail_at_any_point() {
    let got = feed(&[
        START,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_9"}"#,
    ]);
    assert_eq!(
        got.unwrap(),
        [AnswerStep::Failed(ServerError {
            kind: "overloaded_error".into(),
            message: "Overloaded".into(),
            request_id: Some("req_9".into()),
            ..ServerError::default()
        })]
    );
}

#[test]
fn what_cannot_be_trusted_is_refused_by_name() {
    let wrong =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":7}}"#;
    let cases: &[(&[&str], &str)] = &[
        (&["{torn"], "event `` is not in the vendor's format"),
        (&[START, TEXT, wrong], "event `content_block_delta` is not in the vendor's format"),
        (&[START, &said("x")], "event `content_block_delta` is out of place at block 0"),
        (&[START, TEXT, TEXT], "event `content_block_start` is out of place at block 0"),
        (
            &[START, TEXT, DONE, &said("x")],
            "event `content_block_delta` is out of place at block 0",
        ),
        (&[START, TEXT, DONE, DONE], "event `content_block_stop` is out of place at block 0"),
        (&[START, TOOL, &said("x")], "event `content_block_delta` is out of place at block 0"),
        (&[START, r#"{"type":"content_block_stop"}"#], "event `content_block_stop` has no index"),
        (&[START, STOP], "the answer ended without a reason (stop_reason)"),
    ];
    for (events, words) in cases {
        assert_eq!(&feed(events).unwrap_err().to_string(), words);
    }
    // The control: other vendors' end mark harms nothing.
    assert_eq!(feed(&[START, "[DONE]"]).unwrap(), []);
}

#[test]
fn the_event_line_serves_where_the_data_has_no_type() {
    let mut out = Vec::new();
    let mut decoder = AnthropicDecoder::default();
    assert!(!decoder.event("ping", "{}", &mut out).unwrap());
    let error = r#"{"error":{"type":"api_error","message":"m"}}"#;
    assert!(decoder.event("error", error, &mut out).unwrap());
    assert!(matches!(out.as_slice(), [AnswerStep::Failed(_)]));
}

#[test]
fn content_is_bounded() {
    let mut decoder = AnthropicDecoder::default();
    let mut out = Vec::new();
    decoder.event("", START, &mut out).unwrap();
    decoder.event("", TEXT, &mut out).unwrap();
    let big = said(&"x".repeat(8 << 20));
    let mut fed = 0;
    let refused = loop {
        out.clear();
        match decoder.event("", &big, &mut out) {
            Ok(_) => fed += 1,
            Err(format_error) => break format_error,
        }
    };
    assert!(matches!(refused, FormatError::TooLarge));
    assert_eq!(fed, 4);
}
