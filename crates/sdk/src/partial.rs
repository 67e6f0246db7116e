//! A streamed answer as the events of the Messages interface, which programs know.
//! <https://platform.claude.com/docs/en/build-with-claude/streaming>

use protocol::client::AnswerPart;
use protocol::content::{ContentBlock, Usage};
use serde_json::{Value, json};

/// An answer that is being streamed.
#[derive(Debug, Default)]
pub(crate) struct PartialAnswer {
    open: Option<OpenBlock>,
    /// Of the next block.
    index: u32,
    state: AnswerState,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum AnswerState {
    #[default]
    NotBegun,
    Begun,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    Text,
    Thinking,
    Tool,
}

impl PartialAnswer {
    /// A piece comes.
    pub(crate) fn piece(&mut self, part: AnswerPart, text: &str, model: &str) -> Vec<Value> {
        let mut events = Vec::new();
        if self.state == AnswerState::NotBegun {
            self.state = AnswerState::Begun;
            events.push(json!({"type": "message_start", "message": {
                "id": "msg_agentd", "type": "message", "role": "assistant", "model": model, "content": [],
                "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 0, "output_tokens": 0},
            }}));
        }
        let (kind, block, delta) = match part {
            AnswerPart::Text => (
                OpenBlock::Text,
                json!({"type": "text", "text": ""}),
                Some(json!({"type": "text_delta", "text": text})),
            ),
            AnswerPart::Thinking => (
                OpenBlock::Thinking,
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                Some(json!({"type": "thinking_delta", "thinking": text})),
            ),
            AnswerPart::Tool => {
                let name = tool_specs::hook_tool_name(text);
                (
                    OpenBlock::Tool,
                    json!({"type": "tool_use", "id": "", "name": name, "input": {}}),
                    None,
                )
            }
            AnswerPart::Arguments => (
                OpenBlock::Tool,
                json!({"type": "tool_use", "id": "", "name": "", "input": {}}),
                Some(json!({"type": "input_json_delta", "partial_json": text})),
            ),
        };
        if self.open != Some(kind) || part == AnswerPart::Tool {
            events.extend(self.close());
            events.push(
                json!({"type": "content_block_start", "index": self.index, "content_block": block}),
            );
            self.open = Some(kind);
        }
        events.extend(delta.map(
            |delta| json!({"type": "content_block_delta", "index": self.index, "delta": delta}),
        ));
        events
    }

    /// The answer is whole. Nothing where nothing was streamed.
    pub(crate) fn end(&mut self, blocks: &[ContentBlock], usage: Usage) -> Vec<Value> {
        if self.state == AnswerState::NotBegun {
            return Vec::new();
        }
        let calls = blocks.iter().any(|block| matches!(block, ContentBlock::ToolUse { .. }));
        let stop = if calls { "tool_use" } else { "end_turn" };
        let mut events: Vec<Value> = self.close().into_iter().collect();
        events.push(json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": null},
            "usage": {"output_tokens": usage.output.unwrap_or(0)},
        }));
        events.push(json!({"type": "message_stop"}));
        *self = Self::default();
        events
    }

    /// What was streamed is void.
    pub(crate) fn strike(&mut self) -> Vec<Value> {
        if self.state == AnswerState::NotBegun {
            return Vec::new();
        }
        let events = self.close().into_iter().chain([json!({"type": "message_stop"})]).collect();
        *self = Self::default();
        events
    }

    fn close(&mut self) -> Option<Value> {
        self.open.take()?;
        let event = json!({"type": "content_block_stop", "index": self.index});
        self.index += 1;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(events: &[Value]) -> Vec<&str> {
        events.iter().filter_map(|event| event["type"].as_str()).collect()
    }

    #[test]
    fn each_block_begins_and_ends_once() {
        let mut answer = PartialAnswer::default();
        let mut events = answer.piece(AnswerPart::Thinking, "hm", "m");
        events.extend(answer.piece(AnswerPart::Text, "He", "m"));
        events.extend(answer.piece(AnswerPart::Text, "llo", "m"));
        events.extend(answer.piece(AnswerPart::Tool, "bash", "m"));
        events.extend(answer.piece(AnswerPart::Arguments, "{}", "m"));
        events.extend(answer.piece(AnswerPart::Tool, "bash", "m"));
        let call = ContentBlock::ToolUse {
            id: "t".to_owned(),
            name: "bash".to_owned(),
            input: "{}".to_owned(),
        };
        events.extend(answer.end(&[call], Usage::default()));
        let wanted = [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ];
        assert_eq!(kinds(&events), wanted);
        assert_eq!(events[8]["content_block"]["name"], "Bash");
        assert_eq!(
            (&events[11]["index"], &events[13]["delta"]["stop_reason"]),
            (&3.into(), &"tool_use".into())
        );
        assert!(answer.end(&[], Usage::default()).is_empty() && answer.strike().is_empty());
    }
}
