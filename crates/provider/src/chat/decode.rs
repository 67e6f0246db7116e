//! Chunks of a stream to pieces of an answer: a finish reason with the stream's end, or nothing.
//!
//! Block 0 is the reasoning; these servers send one per answer. Each later block has two indices,
//! the first for its vendor metadata.

use super::wire::{ChatChunk, ChatDelta as WireDelta, ChatFunction, ChatToolCall};
use crate::context_full;
use crate::server_error::read_error;
use crate::step::{AnswerEnd, AnswerStep, ContentBudget, FormatError, ServerError};
use crate::vendor_metadata::{self, MetadataPlace};
use protocol::content::{StopReason, Usage};
use protocol::provider::{AnswerDelta, Api};
use serde::Serialize;
use serde_json::value::RawValue;

/// The place of the reasoning.
const REASONING: u32 = 0;

/// The decoder of one answer.
#[derive(Debug, Clone, Default)]
pub struct ChatDecoder {
    room: ContentBudget,
    model: String,
    usage: Usage,
    /// Why it ended, by the server's name; none before.
    finish: Option<String>,
    refusal: String,
    /// Text and calls so far.
    blocks: u32,
    /// The text that goes on.
    text: Option<u32>,
    reasoning: ChatReasoningEcho,
    calls: Vec<ChatCallState>,
}

/// Reasoning as it must be sent back.
#[derive(Debug, Clone, Default, Serialize)]
struct ChatReasoningEcho {
    r#type: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning_content: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Box<RawValue>>,
}

/// A call while it comes.
#[derive(Debug, Clone)]
struct ChatCallState {
    /// The server's place for it, which several calls may share.
    place: Option<u32>,
    /// The server's id, if it has one.
    id: Option<String>,
    /// Ours.
    index: u32,
    /// True once its name has arrived and `ToolStart` was emitted.
    begun: bool,
    arguments: String,
    beside: Option<Box<RawValue>>,
}

impl ChatDecoder {
    /// Decodes one chunk and appends its steps. Returns true if it is progress.
    ///
    /// # Errors
    /// [`FormatError`] when the stream cannot be trusted any more.
    pub fn event(
        &mut self,
        name: &str,
        data: &str,
        out: &mut Vec<AnswerStep>,
    ) -> Result<bool, FormatError> {
        match data.trim() {
            "" => return Ok(false),
            "[DONE]" => return self.end(out).map(|()| true),
            _ => {}
        }
        if name == "error" {
            out.push(AnswerStep::Failed(read_error(data).unwrap_or_default()));
            return Ok(true);
        }
        let chunk: ChatChunk<'_> = serde_json::from_str(data)
            .map_err(|source| FormatError::Format { event: "chunk".to_owned(), source })?;
        if let Some(error) = chunk.error {
            let unread = || ServerError { message: error.get().to_owned(), ..Default::default() };
            out.push(AnswerStep::Failed(read_error(data).unwrap_or_else(unread)));
            return Ok(true);
        }
        if let Some(model) = chunk.model.filter(|model| !model.is_empty()) {
            self.model = model;
        }
        let (choices, tokens) = (chunk.choices.unwrap_or_default(), chunk.usage);
        if let Some(tokens) = tokens {
            self.usage = tokens.usage();
        }
        let bare = choices.is_empty();
        for choice in choices {
            // One answer was asked for.
            if choice.index.unwrap_or(0) != 0 {
                continue;
            }
            if let Some(delta) = choice.delta {
                self.delta(delta, out)?;
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                if reason == "error" {
                    let message = "it ended with an error".to_owned();
                    out.push(AnswerStep::Failed(ServerError { message, ..Default::default() }));
                    return Ok(true);
                }
                self.finish = Some(reason);
            }
        }
        if bare && tokens.is_some() && self.finish.is_some() {
            // Nothing but the end mark follows the count, and not every server sends that.
            self.end(out)?;
        }
        Ok(!bare || tokens.is_some())
    }

    /// The body ended without an end mark: good enough once the reason was there.
    pub(crate) fn body_ended(&mut self, out: &mut Vec<AnswerStep>) -> Result<(), FormatError> {
        match self.finish {
            Some(_) => self.end(out),
            None => Ok(()),
        }
    }

    fn delta(
        &mut self,
        delta: WireDelta<'_>,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        let thought = |words: Option<super::wire::ChatText>| {
            words.map(|words| words.0).filter(|words| !words.is_empty())
        };
        // Gateways say the same under both names.
        let told = match (thought(delta.reasoning_content), thought(delta.reasoning)) {
            (Some(words), _) => {
                self.reasoning.reasoning_content.push_str(&words);
                Some(words)
            }
            (None, Some(words)) => {
                self.reasoning.reasoning.push_str(&words);
                Some(words)
            }
            (None, None) => None,
        };
        if let Some(words) = told {
            self.room.emit(REASONING, AnswerDelta::Thinking(words), out)?;
        }
        for detail in delta.reasoning_details.into_iter().flatten() {
            self.room.admit(detail.get().len())?;
            self.reasoning.reasoning_details.push(detail.to_owned());
        }
        if let Some(words) = delta.refusal {
            self.room.admit(words.0.len())?;
            self.refusal.push_str(&words.0);
        }
        if let Some(words) = delta.content.filter(|words| !words.0.is_empty()) {
            let index = match self.text {
                Some(index) => index,
                None => self.open(),
            };
            self.text = Some(index);
            self.room.emit(index, AnswerDelta::Text(words.0), out)?;
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(call, out)?;
        }
        Ok(())
    }

    fn call(
        &mut self,
        said: ChatToolCall<'_>,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        let id = said.id.filter(|id| !id.is_empty());
        let ChatFunction { name, arguments } =
            said.function.unwrap_or(ChatFunction { name: None, arguments: None });
        let name = name.filter(|name| !name.is_empty());
        let at = match self.known(said.index, id.as_deref(), name.is_some()) {
            Some(at) => at,
            None => {
                self.close_text(out)?;
                let index = self.open();
                self.calls.push(ChatCallState {
                    place: said.index,
                    id,
                    index,
                    begun: false,
                    arguments: String::new(),
                    beside: None,
                });
                self.calls.len() - 1
            }
        };
        let made_up = format!("call_{}", at + 1);
        let call = &mut self.calls[at];
        if let Some(extra) = said.extra_content.filter(|extra| extra.get().starts_with('{')) {
            self.room.admit(extra.get().len())?;
            call.beside = Some(extra.to_owned());
        }
        let more = arguments.map(piece).transpose()?.unwrap_or_default();
        call.arguments.push_str(&more);
        let more = match (call.begun, name) {
            (true, _) => more,
            (false, Some(name)) => {
                call.begun = true;
                let id = call.id.clone().unwrap_or(made_up);
                self.room.emit(call.index, AnswerDelta::ToolStart { id, name }, out)?;
                call.arguments.clone()
            }
            // Kept until its name is there.
            (false, None) => return self.room.admit(more.len()),
        };
        match more.is_empty() {
            true => Ok(()),
            false => self.room.emit(call.index, AnswerDelta::ToolInput(more), out),
        }
    }

    /// The call that a piece belongs to; `None` if the piece begins a new one. Servers number calls
    /// from 0, from 1, all of them 0, or not at all, and give ids once, always, or never.
    fn known(&self, place: Option<u32>, id: Option<&str>, named: bool) -> Option<usize> {
        let here = |call: &&ChatCallState| place.is_none() || call.place == place;
        let of_id = |call: &ChatCallState| id.is_some() && call.id.as_deref() == id;
        if let Some(at) = self.calls.iter().rposition(|call| here(&call) && of_id(call)) {
            return Some(at);
        }
        let at = self.calls.iter().rposition(|call| here(&call))?;
        let before = &self.calls[at];
        let another_id = id.is_some() && before.id.is_some();
        let another_name = named && before.begun && is_object(&before.arguments);
        (!another_id && !another_name).then_some(at)
    }

    fn open(&mut self) -> u32 {
        self.blocks += 1;
        self.blocks * 2
    }

    fn close_text(&mut self, out: &mut Vec<AnswerStep>) -> Result<(), FormatError> {
        match self.text.take() {
            Some(index) => self.room.emit(index, AnswerDelta::BlockDone, out),
            None => Ok(()),
        }
    }

    fn end(&mut self, out: &mut Vec<AnswerStep>) -> Result<(), FormatError> {
        let reason = self.finish.take().ok_or(FormatError::NoReason)?;
        let last_block = self.blocks * 2;
        self.close_text(out)?;
        let calls = std::mem::take(&mut self.calls);
        let any_calls = !calls.is_empty();
        for call in calls {
            if reason == "length" && call.index == last_block {
                // The server does not report where it was cut, so the call stays unfinished.
                continue;
            }
            if !call.begun {
                return Err(FormatError::lacks("tool_calls", "name"));
            }
            if let Some(fields) = &call.beside {
                let raw = vendor_metadata::write(Api::Chat, MetadataPlace::With, fields);
                self.room.emit(call.index - 1, AnswerDelta::ThinkingDone { raw }, out)?;
            }
            if call.arguments.trim().is_empty() {
                self.room.emit(call.index, AnswerDelta::ToolInput("{}".to_owned()), out)?;
            }
            self.room.emit(call.index, AnswerDelta::BlockDone, out)?;
        }
        let mut reasoning = std::mem::take(&mut self.reasoning);
        if reasoning.is_there() {
            reasoning.r#type = "chat_reasoning";
            // Strings and JSON that was read always serialise.
            let raw = serde_json::to_string(&reasoning).unwrap_or_default();
            self.room.emit(REASONING, AnswerDelta::ThinkingDone { raw }, out)?;
        }
        let stop = match reason.as_str() {
            _ if !self.refusal.is_empty() => {
                StopReason::Refusal { explanation: std::mem::take(&mut self.refusal) }
            }
            "content_filter" => StopReason::Refusal { explanation: reason },
            "length" => StopReason::MaxTokens,
            reason if context_full::is_message(reason) => StopReason::ContextFull,
            "tool_calls" | "function_call" => StopReason::ToolUse,
            _ if any_calls => StopReason::ToolUse,
            "stop" => StopReason::EndTurn,
            _ => StopReason::Other(reason),
        };
        let model = std::mem::take(&mut self.model);
        out.push(AnswerStep::Ended(AnswerEnd { stop, usage: self.usage, model }));
        Ok(())
    }
}

impl ChatReasoningEcho {
    fn is_there(&self) -> bool {
        !self.reasoning_content.is_empty()
            || !self.reasoning.is_empty()
            || !self.reasoning_details.is_empty()
    }
}

/// A piece of arguments: the text of a string, or an object as it stands.
fn piece(raw: &RawValue) -> Result<String, FormatError> {
    match raw.get().starts_with('"') {
        true => serde_json::from_str(raw.get())
            .map_err(|source| FormatError::Format { event: "arguments".to_owned(), source }),
        false => Ok(raw.get().to_owned()),
    }
}

fn is_object(arguments: &str) -> bool {
    crate::body::object(arguments).is_some()
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
