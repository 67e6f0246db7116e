//! A hand-written answer as the stream a server would have sent; pure.

use super::line::ScriptedPiece;
use serde_json::{Value, json};

/// The server-sent events of an answer that says `said`, whole, in request `round`.
pub(super) fn stream(said: &[ScriptedPiece], round: u32) -> String {
    let mut events = vec![json!({
        "type": "message_start",
        "message": {"model": "recorded", "content": []},
    })];
    let mut stop = "end_turn";
    for (index, said) in said.iter().enumerate() {
        let (start, deltas) = match said {
            ScriptedPiece::Text { text } => (
                json!({"type": "text", "text": ""}),
                vec![json!({"type": "text_delta", "text": text})],
            ),
            ScriptedPiece::Thinking { thinking, signature } => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                vec![
                    json!({"type": "thinking_delta", "thinking": thinking}),
                    json!({"type": "signature_delta", "signature": signature}),
                ],
            ),
            ScriptedPiece::Call { call, id, input } => {
                stop = "tool_use";
                let made_up = format!("toolu_{round}_{index}");
                let id = id.as_ref().unwrap_or(&made_up);
                let input = input.clone().map_or_else(|| json!({}), Value::Object);
                (
                    json!({"type": "tool_use", "id": id, "name": call, "input": {}}),
                    vec![json!({"type": "input_json_delta", "partial_json": input.to_string()})],
                )
            }
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        for delta in deltas {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop}}));
    events.push(json!({"type": "message_stop"}));
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}
