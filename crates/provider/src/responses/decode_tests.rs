//! Every rule of the stream as a table.
#![allow(clippy::unwrap_used)]

use super::*;

fn feed(events: &[&str]) -> Result<Vec<AnswerStep>, FormatError> {
    let mut decoder = ResponsesDecoder::default();
    let mut out = Vec::new();
    for data in events {
        decoder.event("", data, &mut out)?;
    }
    Ok(out)
}

fn piece(index: u32, delta: AnswerDelta) -> AnswerStep {
    AnswerStep::Piece { index, delta }
}

const CREATED: &str = r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"gpt-x","status":"in_progress","output":[],"usage":null}}"#;
const COMPLETED: &str = r#"{"type":"response.completed","response":{"model":"gpt-x-1","output":[],"usage":{"input_tokens":30,"input_tokens_details":{"cached_tokens":20},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":37}}}"#;
const MESSAGE: &str = r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}"#;
const MESSAGE_DONE: &str = r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_2","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello","annotations":[]}]}}"#;
const CALL: &str = r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_1","name":"read"}}"#;

fn text(words: &str) -> String {
    format!(
        r#"{{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"{words}","logprobs":[]}}"#
    )
}

fn arguments(words: &str) -> String {
    let words = serde_json::to_string(words).unwrap();
    format!(
        r#"{{"type":"response.function_call_arguments.delta","item_id":"fc_9","output_index":1,"delta":{words}}}"#
    )
}

fn call_done(status: &str, arguments: &str) -> String {
    let arguments = serde_json::to_string(arguments).unwrap();
    format!(
        r#"{{"type":"response.output_item.done","output_index":1,"item":{{"id":"fc_2","type":"function_call","status":"{status}","arguments":{arguments},"call_id":"call_1","name":"read"}}}}"#
    )
}

fn ended(stop: StopReason) -> AnswerStep {
    let usage = Usage { input: Some(10), output: Some(7), cache_read: Some(20), cache_write: None };
    AnswerStep::Ended(AnswerEnd { stop, usage, model: "gpt-x-1".into() })
}

fn start() -> AnswerStep {
    piece(3, AnswerDelta::ToolStart { id: "call_1".into(), name: "read".into() })
}

#[test]
fn text_and_a_call_whose_item_ids_change() {
    let got = feed(&[
        CREATED,
        r#"{"type":"response.in_progress","response":{}}"#,
        MESSAGE,
        r#"{"type":"response.content_part.added","output_index":0,"part":{"type":"output_text","text":""}}"#,
        &text("Hel"),
        &text("lo"),
        r#"{"type":"response.output_text.done","output_index":0,"text":"Hello"}"#,
        MESSAGE_DONE,
        CALL,
        &arguments("{\"path\":"),
        &arguments("1}"),
        r#"{"type":"response.function_call_arguments.done","output_index":1,"arguments":"{\"path\":1}"}"#,
        &call_done("completed", "{\"path\":1}"),
        r#"{"type":"response.of_tomorrow","output_index":"x","delta":{}}"#,
        COMPLETED,
    ])
    .unwrap();
    assert_eq!(
        got,
        [
            piece(1, AnswerDelta::Text("Hel".into())),
            piece(1, AnswerDelta::Text("lo".into())),
            piece(1, AnswerDelta::BlockDone),
            start(),
            piece(3, AnswerDelta::ToolInput("{\"path\":".into())),
            piece(3, AnswerDelta::ToolInput("1}".into())),
            piece(3, AnswerDelta::BlockDone),
            ended(StopReason::ToolUse),
        ]
    );
}

#[test]
fn a_call_without_pieces_takes_what_is_told_later() {
    for (later, input) in [
        (vec![call_done("completed", "{\"a\":1}")], "{\"a\":1}"),
        (vec![call_done("completed", "")], "{}"),
        (
            vec![
                r#"{"type":"response.function_call_arguments.done","output_index":1,"arguments":"{\"b\":1}"}"#.to_owned(),
                call_done("completed", "{\"b\":1}"),
            ],
            "{\"b\":1}",
        ),
    ] {
        let mut events = vec![CREATED, CALL];
        events.extend(later.iter().map(String::as_str));
        assert_eq!(
            feed(&events).unwrap(),
            [start(), piece(3, AnswerDelta::ToolInput(input.into())), piece(3, AnswerDelta::BlockDone)]
        );
    }
    // Not announced at all.
    let got = feed(&[CREATED, &call_done("completed", "{}"), COMPLETED]).unwrap();
    assert_eq!(got[0], start());
    assert_eq!(got[2], piece(3, AnswerDelta::BlockDone));
}

#[test]
fn a_call_that_was_cut_is_never_done() {
    let cut = r#"{"type":"response.incomplete","response":{"model":"gpt-x-1","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":30,"input_tokens_details":{"cached_tokens":20},"output_tokens":7}}}"#;
    for events in [
        vec![CREATED.to_owned(), CALL.into(), arguments("{\"pa")],
        vec![CREATED.to_owned(), CALL.into(), arguments("{\"pa"), call_done("incomplete", "{\"pa")],
    ] {
        let mut events: Vec<&str> = events.iter().map(String::as_str).collect();
        events.push(cut);
        let got = feed(&events).unwrap();
        assert!(!got.contains(&piece(3, AnswerDelta::BlockDone)), "{got:?}");
        assert_eq!(*got.last().unwrap(), ended(StopReason::MaxTokens));
    }
    // The text is complete; only the end of its item is missing.
    let whole =
        r#"{"type":"response.function_call_arguments.done","output_index":1,"arguments":"{}"}"#;
    let got = feed(&[CREATED, CALL, &arguments("{}"), whole, COMPLETED]).unwrap();
    assert!(got.contains(&piece(3, AnswerDelta::BlockDone)));
}

#[test]
fn reasoning_is_kept_as_its_end_tells_it() {
    let got = feed(&[
        CREATED,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"half"}}"#,
        r#"{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"One."}"#,
        r#"{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":1}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"Two."}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1", "type":"reasoning","summary":[],"encrypted_content":"whole=="}}"#,
    ])
    .unwrap();
    let words: Vec<_> = got
        .iter()
        .filter_map(|step| match step {
            AnswerStep::Piece { delta: AnswerDelta::Thinking(words), .. } => Some(words.as_str()),
            AnswerStep::Piece { .. }
            | AnswerStep::StartedOver
            | AnswerStep::Ended(_)
            | AnswerStep::Failed(_) => None,
        })
        .collect();
    assert_eq!(words, ["One.", "\n\n", "Two."]);
    let raw = r#"{"id":"rs_1", "type":"reasoning","summary":[],"encrypted_content":"whole=="}"#;
    assert_eq!(*got.last().unwrap(), piece(1, AnswerDelta::ThinkingDone { raw: raw.into() }));
}

#[test]
fn a_phase_is_kept_beside_its_message() {
    let done = MESSAGE_DONE.replace("\"role\"", "\"phase\":\"commentary\",\"role\"");
    let got = feed(&[CREATED, &done, COMPLETED]).unwrap();
    let raw =
        r#"{"type":"beside","api":"responses","place":"with","fields":{"phase":"commentary"}}"#;
    assert_eq!(
        got,
        [
            piece(1, AnswerDelta::Text("Hello".into())),
            piece(0, AnswerDelta::ThinkingDone { raw: raw.into() }),
            piece(1, AnswerDelta::BlockDone),
            ended(StopReason::EndTurn),
        ]
    );
}

#[test]
fn terminal_events_and_errors_in_every_shape() {
    let last = |data: &str| feed(&[CREATED, MESSAGE, &text("half"), data]).unwrap().pop().unwrap();
    for data in [
        r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"Oops"}}}"#,
        r#"{"type":"error","code":"server_error","message":"Oops","param":null}"#,
        r#"{"type":"error","error":{"code":"server_error","message":"Oops"}}"#,
    ] {
        let AnswerStep::Failed(error) = last(data) else { panic!("{data}") };
        assert_eq!(error.words(), "server_error: Oops", "{data}");
    }
    let filtered = r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}"#;
    let AnswerStep::Ended(ending) = last(filtered) else { panic!() };
    assert_eq!(ending.stop, StopReason::Refusal { explanation: "content_filter".into() });
    let refused = feed(&[
        CREATED,
        MESSAGE,
        r#"{"type":"response.refusal.delta","output_index":0,"delta":"I will"}"#,
        r#"{"type":"response.refusal.delta","output_index":0,"delta":" not."}"#,
        COMPLETED,
    ])
    .unwrap();
    assert_eq!(
        *refused.last().unwrap(),
        ended(StopReason::Refusal { explanation: "I will not.".into() })
    );
}

#[test]
fn a_second_beginning_voids_the_first() {
    let got = feed(&[CREATED, MESSAGE, &text("old"), CREATED, MESSAGE, &text("new"), COMPLETED]);
    assert_eq!(
        got.unwrap(),
        [
            piece(1, AnswerDelta::Text("old".into())),
            AnswerStep::StartedOver,
            piece(1, AnswerDelta::Text("new".into())),
            piece(1, AnswerDelta::BlockDone),
            ended(StopReason::EndTurn),
        ]
    );
}

#[test]
fn items_that_only_the_end_tells() {
    let end = r#"{"type":"response.completed","response":{"model":"m","output":[{"type":"message","content":[{"type":"output_text","text":"all"}]},{"type":"function_call","call_id":"c","name":"ls","arguments":"{}"}]}}"#;
    let got = feed(&[CREATED, end]).unwrap();
    assert_eq!(got[0], piece(1, AnswerDelta::Text("all".into())));
    assert!(got.contains(&piece(3, AnswerDelta::BlockDone)));
    assert!(matches!(
        got.last(),
        Some(AnswerStep::Ended(AnswerEnd { stop: StopReason::ToolUse, .. }))
    ));
}

#[test]
fn what_does_not_fit_breaks_it() {
    for events in [
        vec!["{torn"],
        vec![r#"{"type":"response.output_text.delta","output_index":0,"delta":7}"#],
        vec![r#"{"type":"response.output_text.delta","delta":"x"}"#],
        vec![CREATED, MESSAGE, MESSAGE],
        vec![
            CREATED,
            r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{}"}"#,
        ],
        vec![CREATED, MESSAGE_DONE, MESSAGE_DONE],
    ] {
        assert!(feed(&events).is_err(), "{events:?}");
    }
    assert!(feed(&[CREATED, "[DONE]", ""]).unwrap().is_empty());
}
