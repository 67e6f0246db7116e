//! The views for programs: one JSON object a line, in the shapes that scripts already read.

use crate::transcript::{Conclusion, OpenedSession, Transcript};
use crate::view::{Moment, Shown, View};
use protocol::call::{Call, Outcome};
use protocol::client::Event;
use protocol::content::{Block, Usage};
use protocol::session::TurnEnd;
use serde_json::{Map, Value, json};

/// `--output-format json`: the result alone.
#[derive(Debug, Default)]
pub struct JsonView;

/// `--output-format stream-json`: the opening, each message, the result.
#[derive(Debug, Default)]
pub struct StreamJsonView;

impl View for JsonView {
    fn show(&mut self, transcript: &Transcript, moment: Moment<'_>) -> Shown {
        match moment {
            Moment::Concluded(conclusion) => line(result(transcript.opened(), conclusion)),
            Moment::Opened(opened) => Shown { out: String::new(), err: opened.warning_lines() },
            Moment::Happened(_) => Shown::default(),
        }
    }
}

impl View for StreamJsonView {
    fn show(&mut self, transcript: &Transcript, moment: Moment<'_>) -> Shown {
        match moment {
            Moment::Opened(opened) => Shown { err: opened.warning_lines(), ..line(init(opened)) },
            Moment::Happened(event) => message(transcript, event).map(line).unwrap_or_default(),
            Moment::Concluded(conclusion) => line(result(transcript.opened(), conclusion)),
        }
    }
}

/// The result of a run that failed before it had a session.
#[must_use]
pub fn failure_line(message: &str) -> String {
    let failure = json!({
        "type": "result",
        "subtype": "error_during_execution",
        "is_error": true,
        "result": message,
        "num_turns": 0,
    });
    format!("{failure}\n")
}

fn line(value: Value) -> Shown {
    Shown { out: format!("{value}\n"), err: String::new() }
}

fn init(opened: &OpenedSession) -> Value {
    json!({
        "type": "system",
        "subtype": "init",
        "session_id": opened.session.0,
        "cwd": opened.project,
        "model": opened.model,
        "tools": opened.tools,
        "permissionMode": opened.mode.name(),
        "sandbox": opened.sandbox,
        "agentd_version": protocol::BUILD_ID,
    })
}

/// The line of an event that is a message of the conversation.
fn message(transcript: &Transcript, event: &Event) -> Option<Value> {
    let opened = transcript.opened();
    match event {
        Event::Answer { blocks, usage } => Some(json!({
            "type": "assistant",
            "message": {
                "role": "assistant",
                "model": opened.model,
                "content": blocks.iter().map(content).collect::<Vec<_>>(),
                "usage": tokens(*usage),
            },
            "parent_tool_use_id": null,
            "session_id": opened.session.0,
        })),
        Event::CallEnded { call, result, refused } => {
            let known = transcript.calls.get(call)?;
            Some(json!({
                "type": "user",
                "message": {
                    "role": "user",
                    "content": [{
                        "type": "tool_result",
                        "tool_use_id": known.call.use_id,
                        "content": result.text,
                        "is_error": result.is_error,
                    }],
                },
                "parent_tool_use_id": null,
                "session_id": opened.session.0,
                "tool_use_result": {
                    "call": call.to_string(),
                    "tool": known.call.tool,
                    "outcome": outcome(&result.outcome),
                    "code": result.code,
                    "refused": refused,
                },
            }))
        }
        Event::Prompt { .. }
        | Event::TextDelta { .. }
        | Event::Struck { .. }
        | Event::Proposed { .. }
        | Event::Asked { .. }
        | Event::Decided { .. }
        | Event::Started { .. }
        | Event::Output { .. }
        | Event::TurnEnded { .. }
        | Event::Degraded { .. } => None,
    }
}

fn content(block: &Block) -> Value {
    match block {
        Block::Text { text } => json!({"type": "text", "text": text}),
        Block::Thinking { text, raw: _ } => json!({"type": "thinking", "thinking": text}),
        Block::ToolUse { id, name, input } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": arguments(input)})
        }
        Block::ToolResult { id, text, is_error } => json!({
            "type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error,
        }),
    }
}

/// Arguments as the object they are; as text where the model kept to no JSON.
fn arguments(input: &str) -> Value {
    serde_json::from_str(input).unwrap_or_else(|_| Value::from(input))
}

fn result(opened: &OpenedSession, conclusion: &Conclusion) -> Value {
    let subtype = match (&conclusion.end, &conclusion.fault) {
        (Some(TurnEnd::Done), None) => "success",
        (Some(TurnEnd::RoundsUsedUp { .. } | TurnEnd::CallsUsedUp { .. }), _) => "error_max_turns",
        _ => "error_during_execution",
    };
    let text = match &conclusion.fault {
        Some(fault) if conclusion.words.is_empty() => fault,
        Some(_) | None => &conclusion.words,
    };
    let mut line = json!({
        "type": "result",
        "subtype": subtype,
        "is_error": conclusion.fault.is_some(),
        "result": text,
        "session_id": opened.session.0,
        "num_turns": conclusion.num_turns,
        "duration_ms": conclusion.duration_ms,
        "usage": tokens(conclusion.usage),
        "permission_denials": conclusion.nobody_to_ask.iter().map(denial).collect::<Vec<_>>(),
    });
    if let (Some(fault), Some(line)) = (&conclusion.fault, line.as_object_mut()) {
        line.insert("error".to_owned(), Value::from(fault.as_str()));
    }
    line
}

fn denial(call: &Call) -> Value {
    json!({
        "tool_name": call.tool,
        "tool_use_id": call.use_id,
        "tool_input": arguments(&call.input),
        "call": call.id.to_string(),
    })
}

/// Tokens under the names that scripts know; what is not known is left out.
fn tokens(usage: Usage) -> Value {
    let Usage { input, output, cache_read, cache_write } = usage;
    let known = [
        ("input_tokens", input),
        ("output_tokens", output),
        ("cache_read_input_tokens", cache_read),
        ("cache_creation_input_tokens", cache_write),
    ];
    let known =
        known.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?.into())));
    Value::Object(known.collect::<Map<_, _>>())
}

fn outcome(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Done => json!({"kind": "done"}),
        Outcome::Failed => json!({"kind": "failed"}),
        Outcome::Exited { code } => json!({"kind": "exited", "code": code}),
        Outcome::Signalled { signal } => json!({"kind": "signalled", "signal": signal}),
        Outcome::TimedOut => json!({"kind": "timed_out"}),
        Outcome::Denied => json!({"kind": "denied"}),
        Outcome::Refused { rule } => json!({"kind": "refused", "rule": rule}),
        Outcome::Confined { what } => json!({"kind": "confined", "what": what}),
        Outcome::OutOfMemory => json!({"kind": "out_of_memory"}),
        Outcome::Crashed => json!({"kind": "crashed"}),
        Outcome::Interrupted => json!({"kind": "interrupted"}),
        Outcome::Invalid => json!({"kind": "invalid"}),
    }
}
