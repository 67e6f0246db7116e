//! Pieces of a Gemini stream to pieces of an answer: a finish reason or nothing.
//!
//! Each block has two places in the answer, the first for the signature that is kept beside it.

use super::MADE_UP;
use super::wire::{GeminiChunk, GeminiChunkCall, GeminiChunkPart, GeminiPromptFeedback};
use crate::server_error::read_error;
use crate::step::{AnswerEnd, AnswerStep, ContentBudget, FormatError, ServerError};
use crate::vendor_metadata::{self, MetadataPlace};
use protocol::content::{StopReason, Usage};
use protocol::provider::{AnswerDelta, Api};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

/// The decoder of one answer.
#[derive(Debug, Clone, Default)]
pub struct GeminiDecoder {
    room: ContentBudget,
    model: String,
    usage: Usage,
    blocks: u32,
    calls: u32,
    open: Option<GeminiBlockState>,
}

/// The block that goes on.
#[derive(Debug, Clone)]
enum GeminiBlockState {
    Text { index: u32 },
    Thought { index: u32, text: String },
}

impl GeminiDecoder {
    /// Decodes one piece and appends its steps. Returns true if it is progress.
    ///
    /// # Errors
    /// [`FormatError`] when the stream cannot be trusted any more.
    pub fn event(&mut self, data: &str, out: &mut Vec<AnswerStep>) -> Result<bool, FormatError> {
        if matches!(data.trim(), "" | "[DONE]") {
            return Ok(false);
        }
        let format = |source| FormatError::Format { event: "piece".to_owned(), source };
        if data.trim_start().starts_with('[') {
            // On some paths an error comes as an array of one.
            let no_error = || format(serde::de::Error::custom("an array where an object belongs"));
            out.push(AnswerStep::Failed(read_error(data).ok_or_else(no_error)?));
            return Ok(true);
        }
        let response: GeminiChunk<'_> = serde_json::from_str(data).map_err(format)?;
        if let Some(error) = response.error {
            let unread = || ServerError { message: error.get().to_owned(), ..Default::default() };
            out.push(AnswerStep::Failed(read_error(data).unwrap_or_else(unread)));
            return Ok(true);
        }
        if let Some(model) = response.model_version {
            self.model = model;
        }
        if let Some(tokens) = response.usage_metadata {
            self.usage = tokens.usage();
        }
        let candidates = response.candidates.unwrap_or_default();
        let mut progress = false;
        for candidate in candidates {
            // One answer was asked for.
            if candidate.index.unwrap_or(0) != 0 {
                continue;
            }
            progress = true;
            for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
                self.part(part, out)?;
            }
            match candidate.finish_reason.as_deref() {
                None | Some("" | "FINISH_REASON_UNSPECIFIED") => {}
                Some(reason) => {
                    let message = candidate.finish_message.unwrap_or_default();
                    self.finish(reason, message, out)?;
                    return Ok(true);
                }
            }
        }
        if let Some(GeminiPromptFeedback { block_reason: Some(reason), block_reason_message }) =
            response.prompt_feedback
        {
            self.end(refusal(&reason, &block_reason_message.unwrap_or_default()), out)?;
            return Ok(true);
        }
        Ok(progress)
    }

    fn part(
        &mut self,
        part: GeminiChunkPart<'_>,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        let signature = part.thought_signature.filter(|signature| !signature.is_empty());
        if let Some(call) = part.function_call {
            return self.call(call, signature.as_deref(), out);
        }
        let Some(text) = part.text else { return Ok(()) };
        match (part.thought == Some(true), signature) {
            (true, signature) => self.thought(text, signature, out),
            (false, None) if text.is_empty() => Ok(()),
            (false, None) => {
                let index = match self.open {
                    Some(GeminiBlockState::Text { index }) => index,
                    Some(GeminiBlockState::Thought { .. }) | None => {
                        self.close(out)?;
                        let index = self.place();
                        self.open = Some(GeminiBlockState::Text { index });
                        index
                    }
                };
                self.room.emit(index, AnswerDelta::Text(text), out)
            }
            (false, Some(signature)) if text.is_empty() => {
                // The last piece of many answers; it belongs behind the text.
                let Some(GeminiBlockState::Text { index }) = self.open else { return Ok(()) };
                let fields = raw(&json!({"text": "", "thoughtSignature": signature}))?;
                let raw = vendor_metadata::write(Api::Gemini, MetadataPlace::Behind, &fields);
                self.room.emit(index - 1, AnswerDelta::ThinkingDone { raw }, out)?;
                self.close(out)
            }
            (false, Some(signature)) => {
                // A signed text is not joined with others.
                self.close(out)?;
                let index = self.place();
                self.sign(index, &signature, out)?;
                self.room.emit(index, AnswerDelta::Text(text), out)?;
                self.room.emit(index, AnswerDelta::BlockDone, out)
            }
        }
    }

    fn thought(
        &mut self,
        more: String,
        signature: Option<String>,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        if !matches!(self.open, Some(GeminiBlockState::Thought { .. })) {
            self.close(out)?;
            let index = self.place();
            self.open = Some(GeminiBlockState::Thought { index, text: String::new() });
        }
        if let Some(GeminiBlockState::Thought { index, text }) = &mut self.open {
            text.push_str(&more);
            let index = *index;
            self.room.admit(more.len())?;
            if !more.is_empty() {
                self.room.emit(index, AnswerDelta::Thinking(more), out)?;
            }
        }
        match signature {
            Some(signature) => self.close_thought(Some(&signature), out),
            None => Ok(()),
        }
    }

    fn call(
        &mut self,
        call: GeminiChunkCall<'_>,
        signature: Option<&str>,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        let lacks = |what| FormatError::lacks("functionCall", what);
        if call.will_continue == Some(true) {
            return Err(lacks("whole arguments"));
        }
        let name = call.name.filter(|name| !name.is_empty()).ok_or_else(|| lacks("name"))?;
        self.close(out)?;
        let index = self.place();
        self.calls += 1;
        let made_up = || format!("{MADE_UP}{}", self.calls);
        let id = call.id.filter(|id| !id.is_empty()).unwrap_or_else(made_up);
        if let Some(signature) = signature {
            self.sign(index, signature, out)?;
        }
        self.room.emit(index, AnswerDelta::ToolStart { id, name }, out)?;
        let arguments = call.args.map_or("{}", RawValue::get).to_owned();
        self.room.emit(index, AnswerDelta::ToolInput(arguments), out)?;
        self.room.emit(index, AnswerDelta::BlockDone, out)
    }

    /// Keeps a signature beside the block at `index`.
    fn sign(
        &mut self,
        index: u32,
        signature: &str,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        let fields = raw(&json!({ "thoughtSignature": signature }))?;
        let raw = vendor_metadata::write(Api::Gemini, MetadataPlace::With, &fields);
        self.room.emit(index - 1, AnswerDelta::ThinkingDone { raw }, out)
    }

    fn place(&mut self) -> u32 {
        self.blocks += 1;
        self.blocks * 2
    }

    fn close(&mut self, out: &mut Vec<AnswerStep>) -> Result<(), FormatError> {
        match self.open {
            Some(GeminiBlockState::Text { index }) => {
                self.open = None;
                self.room.emit(index, AnswerDelta::BlockDone, out)
            }
            Some(GeminiBlockState::Thought { .. }) => self.close_thought(None, out),
            None => Ok(()),
        }
    }

    fn close_thought(
        &mut self,
        signature: Option<&str>,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        let Some(GeminiBlockState::Thought { index, text }) = self.open.take() else {
            return Ok(());
        };
        let part = match signature {
            Some(signature) => {
                json!({"text": text, "thought": true, "thoughtSignature": signature})
            }
            None => json!({"text": text, "thought": true}),
        };
        self.room.emit(index, AnswerDelta::ThinkingDone { raw: part.to_string() }, out)
    }

    fn finish(
        &mut self,
        reason: &str,
        message: String,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        let stop = match reason {
            "STOP" if self.calls > 0 => StopReason::ToolUse,
            "STOP" => StopReason::EndTurn,
            "MAX_TOKENS" => StopReason::MaxTokens,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE"
            | "IMAGE_SAFETY" => refusal(reason, &message),
            // The model's slip, not the request's fault: asked again.
            "MALFORMED_FUNCTION_CALL"
            | "MALFORMED_RESPONSE"
            | "UNEXPECTED_TOOL_CALL"
            | "TOO_MANY_TOOL_CALLS"
            | "MISSING_THOUGHT_SIGNATURE" => {
                let kind = reason.to_owned();
                out.push(AnswerStep::Failed(ServerError { kind, message, ..Default::default() }));
                return Ok(());
            }
            _ => StopReason::Other(reason.to_owned()),
        };
        self.end(stop, out)
    }

    fn end(&mut self, stop: StopReason, out: &mut Vec<AnswerStep>) -> Result<(), FormatError> {
        self.close(out)?;
        let model = std::mem::take(&mut self.model);
        out.push(AnswerStep::Ended(AnswerEnd { stop, usage: self.usage, model }));
        Ok(())
    }
}

fn refusal(reason: &str, message: &str) -> StopReason {
    let explanation = match message.is_empty() {
        true => reason.to_owned(),
        false => format!("{reason}: {message}"),
    };
    StopReason::Refusal { explanation }
}

fn raw(fields: &serde_json::Value) -> Result<Box<RawValue>, FormatError> {
    to_raw_value(fields)
        .map_err(|source| FormatError::Format { event: "signature".to_owned(), source })
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
