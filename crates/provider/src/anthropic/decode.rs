//! Events of a Messages stream to pieces of an answer: a terminal event or nothing.

use super::wire::{
    AnthropicBlockStart, AnthropicDelta as WireDelta, AnthropicEvent, AnthropicEventKind,
};
use crate::server_error::read_error;
use crate::step::{AnswerEnd, AnswerStep, ContentBudget, FormatError, size};
use protocol::content::{StopReason, Usage};
use protocol::provider::AnswerDelta;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The decoder of one answer.
#[derive(Debug, Clone, Default)]
pub struct AnthropicDecoder {
    started: bool,
    model: String,
    usage: Usage,
    stop: Option<StopReason>,
    blocks: BTreeMap<u32, AnthropicBlockState>,
    room: ContentBudget,
}

/// A block of the answer while it comes.
#[derive(Debug, Clone)]
enum AnthropicBlockState {
    Text {
        opened: bool,
    },
    Thinking {
        text: String,
        signature: String,
    },
    /// Whole from its start, and opaque.
    Redacted {
        raw: String,
    },
    Tool {
        /// Arguments that came with the start; used when no piece follows.
        at_start: Option<String>,
        pieces: bool,
    },
    /// Of a type that is newer than this build.
    Unknown,
    Closed,
}

impl AnthropicDecoder {
    /// Decodes one event and appends its steps. `name` is used if the data has no `type`. Returns
    /// true if the event is progress, which a ping is not.
    ///
    /// # Errors
    /// [`FormatError`] when the stream cannot be trusted any more.
    pub fn event(
        &mut self,
        name: &str,
        data: &str,
        out: &mut Vec<AnswerStep>,
    ) -> Result<bool, FormatError> {
        let mut event: AnthropicEvent<'_> = match serde_json::from_str(data) {
            Ok(event) => event,
            Err(source) => return skip_unless_ours(name, data, source),
        };
        if event.kind.is_empty() {
            event.kind = Cow::Borrowed(name);
        }
        match event.kind.as_ref() {
            "ping" => return Ok(false),
            "message_start" => self.message_start(event, out),
            "content_block_start" => self.block_start(&event, out)?,
            "content_block_delta" => self.block_delta(event, out)?,
            "content_block_stop" => self.block_stop(&event, out)?,
            "message_delta" => self.message_delta(event),
            "message_stop" => out.push(AnswerStep::Ended(self.end()?)),
            "error" => out.push(AnswerStep::Failed(read_error(data).unwrap_or_default())),
            _ => {}
        }
        Ok(true)
    }

    fn message_start(&mut self, event: AnthropicEvent<'_>, out: &mut Vec<AnswerStep>) {
        // Gateways that fall back to another model in mid-stream begin again.
        if std::mem::replace(&mut self.started, true) {
            *self = Self { started: true, room: self.room, ..Self::default() };
            out.push(AnswerStep::StartedOver);
        }
        if let Some(message) = event.message {
            self.model = message.model.unwrap_or_default();
            if let Some(tokens) = message.usage {
                tokens.overwrite(&mut self.usage);
            }
        }
    }

    fn block_start(
        &mut self,
        event: &AnthropicEvent<'_>,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        let index = index_of(event)?;
        let raw =
            event.content_block.ok_or_else(|| FormatError::lacks(&event.kind, "content_block"))?;
        if self.blocks.contains_key(&index) {
            return Err(FormatError::out_of_place(&event.kind, index));
        }
        let start: AnthropicBlockStart<'_> = serde_json::from_str(raw.get())
            .map_err(|source| FormatError::Format { event: event.kind.to_string(), source })?;
        let block = match start.kind.as_ref() {
            "text" => {
                let text = start.text.unwrap_or_default();
                let opened = !text.is_empty();
                if opened {
                    self.emit(index, AnswerDelta::Text(text), out)?;
                }
                AnthropicBlockState::Text { opened }
            }
            "thinking" => {
                let text = start.thinking.unwrap_or_default();
                if !text.is_empty() {
                    self.emit(index, AnswerDelta::Thinking(text.clone()), out)?;
                }
                let signature = start.signature.unwrap_or_default();
                AnthropicBlockState::Thinking { text, signature }
            }
            "redacted_thinking" => {
                let raw = raw.get().to_owned();
                self.room.admit(raw.len())?;
                AnthropicBlockState::Redacted { raw }
            }
            "tool_use" => {
                let id = start.id.ok_or_else(|| FormatError::lacks(&event.kind, "id"))?;
                let name = start.name.ok_or_else(|| FormatError::lacks(&event.kind, "name"))?;
                self.emit(index, AnswerDelta::ToolStart { id, name }, out)?;
                AnthropicBlockState::Tool {
                    at_start: start.input.map(RawValue::get).map(str::to_owned),
                    pieces: false,
                }
            }
            _ => AnthropicBlockState::Unknown,
        };
        self.blocks.insert(index, block);
        Ok(())
    }

    fn block_delta(
        &mut self,
        mut event: AnthropicEvent<'_>,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        let index = index_of(&event)?;
        let Some(delta): Option<WireDelta<'_>> = event.delta.take() else {
            return Err(FormatError::lacks(&event.kind, "delta"));
        };
        let said = match (self.blocks.get_mut(&index), delta.kind.as_ref()) {
            (None | Some(AnthropicBlockState::Closed), _) => {
                return Err(FormatError::out_of_place(&event.kind, index));
            }
            (Some(AnthropicBlockState::Unknown), _) => None,
            (Some(AnthropicBlockState::Text { opened }), "text_delta") => {
                let text = delta.text.unwrap_or_default();
                *opened |= !text.is_empty();
                Some(AnswerDelta::Text(text))
            }
            (Some(AnthropicBlockState::Thinking { text, .. }), "thinking_delta") => {
                let more = delta.thinking.unwrap_or_default();
                text.push_str(&more);
                Some(AnswerDelta::Thinking(more))
            }
            (Some(AnthropicBlockState::Thinking { signature, .. }), "signature_delta") => {
                signature.push_str(&delta.signature.unwrap_or_default());
                None
            }
            (Some(AnthropicBlockState::Tool { pieces, .. }), "input_json_delta") => {
                let json = delta.partial_json.unwrap_or_default();
                *pieces |= !json.is_empty();
                Some(AnswerDelta::ToolInput(json))
            }
            (Some(_), "text_delta" | "thinking_delta" | "signature_delta" | "input_json_delta") => {
                return Err(FormatError::out_of_place(&event.kind, index));
            }
            // Citations, and deltas newer than this build.
            (Some(_), _) => None,
        };
        match said {
            Some(delta) if size(&delta) > 0 => self.emit(index, delta, out),
            Some(_) | None => Ok(()),
        }
    }

    fn block_stop(
        &mut self,
        event: &AnthropicEvent<'_>,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        let index = index_of(event)?;
        let done = match self.blocks.insert(index, AnthropicBlockState::Closed) {
            None | Some(AnthropicBlockState::Closed) => {
                return Err(FormatError::out_of_place(&event.kind, index));
            }
            // A block that never opened needs no end.
            Some(AnthropicBlockState::Unknown | AnthropicBlockState::Text { opened: false }) => {
                return Ok(());
            }
            Some(AnthropicBlockState::Text { opened: true }) => AnswerDelta::BlockDone,
            Some(AnthropicBlockState::Thinking { text, signature }) => {
                AnswerDelta::ThinkingDone { raw: thinking_block(&text, &signature) }
            }
            Some(AnthropicBlockState::Redacted { raw }) => AnswerDelta::ThinkingDone { raw },
            Some(AnthropicBlockState::Tool { at_start, pieces }) => {
                if !pieces {
                    let input = at_start.unwrap_or_else(|| "{}".to_owned());
                    self.emit(index, AnswerDelta::ToolInput(input), out)?;
                }
                AnswerDelta::BlockDone
            }
        };
        self.emit(index, done, out)
    }

    fn message_delta(&mut self, event: AnthropicEvent<'_>) {
        if let Some(tokens) = event.usage {
            tokens.overwrite(&mut self.usage);
        }
        let Some(delta) = event.delta else { return };
        let Some(reason) = delta.stop_reason else {
            return;
        };
        self.stop = Some(match reason.as_str() {
            "end_turn" => StopReason::EndTurn,
            "tool_use" => StopReason::ToolUse,
            "max_tokens" => StopReason::MaxTokens,
            "stop_sequence" => StopReason::StopSequence,
            "pause_turn" => StopReason::PauseTurn,
            "refusal" => StopReason::Refusal {
                explanation: delta
                    .stop_details
                    .and_then(|details| details.explanation.or(details.category))
                    .unwrap_or_default(),
            },
            "model_context_window_exceeded" => StopReason::ContextFull,
            _ => StopReason::Other(reason),
        });
    }

    fn end(&mut self) -> Result<AnswerEnd, FormatError> {
        Ok(AnswerEnd {
            stop: self.stop.take().ok_or(FormatError::NoReason)?,
            usage: self.usage,
            model: std::mem::take(&mut self.model),
        })
    }

    fn emit(
        &mut self,
        index: u32,
        delta: AnswerDelta,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        self.room.emit(index, delta, out)
    }
}

/// An event that the full form does not fit: an error if it is one of ours, else skipped.
fn skip_unless_ours(
    name: &str,
    data: &str,
    source: serde_json::Error,
) -> Result<bool, FormatError> {
    let kind = match serde_json::from_str::<AnthropicEventKind<'_>>(data) {
        Ok(named) if named.kind.is_empty() => name.to_owned(),
        Ok(named) => named.kind.into_owned(),
        // Other vendors' end mark, which some gateways add.
        Err(_) if data.trim() == "[DONE]" => return Ok(true),
        Err(_) => name.to_owned(),
    };
    let ours = matches!(
        kind.as_str(),
        "" | "message_start"
            | "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta"
            | "message_stop"
            | "error"
    );
    if ours {
        return Err(FormatError::Format { event: kind, source });
    }
    Ok(true)
}

/// The block as it must be echoed. Its strings are kept; their JSON is written once, here, and
/// never again.
fn thinking_block(text: &str, signature: &str) -> String {
    #[derive(serde::Serialize)]
    struct AnthropicThinkingEcho<'a> {
        r#type: &'static str,
        thinking: &'a str,
        signature: &'a str,
    }
    serde_json::to_string(&AnthropicThinkingEcho { r#type: "thinking", thinking: text, signature })
        // Two strings always serialise.
        .unwrap_or_default()
}

fn index_of(event: &AnthropicEvent<'_>) -> Result<u32, FormatError> {
    event.index.ok_or_else(|| FormatError::lacks(&event.kind, "index"))
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
