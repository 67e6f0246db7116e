//! Events of a Responses stream to pieces of an answer: a terminal event or nothing.
//!
//! Items are identified by `output_index`, since some servers change their ids during the stream.
//! Each item has two indices in the answer, the first for its vendor metadata.

use super::wire::{ResponsesAnswer, ResponsesEvent, ResponsesEventKind, ResponsesItem};
use crate::server_error::read_error;
use crate::step::{AnswerEnd, AnswerStep, ContentBudget, FormatError, ServerError};
use crate::vendor_metadata::{self, MetadataPlace};
use protocol::content::{StopReason, Usage};
use protocol::provider::{AnswerDelta, Api};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The decoder of one answer.
#[derive(Debug, Clone, Default)]
pub struct ResponsesDecoder {
    room: ContentBudget,
    started: bool,
    model: String,
    usage: Usage,
    refusal: String,
    items: BTreeMap<u32, ResponsesItemState>,
    calls: u32,
}

/// An item while it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponsesItemState {
    Message {
        said: bool,
    },
    Reasoning,
    Call {
        said: bool,
        /// The server said that its arguments are whole.
        whole: bool,
    },
    /// Of a kind that is newer than this build, or that was not asked for.
    Other,
    Done,
}

impl ResponsesDecoder {
    /// Decodes one event and appends its steps. `name` is used if the data has no `type`. Returns
    /// true if the event is progress.
    ///
    /// # Errors
    /// [`FormatError`] when the stream cannot be trusted any more.
    pub fn event(
        &mut self,
        name: &str,
        data: &str,
        out: &mut Vec<AnswerStep>,
    ) -> Result<bool, FormatError> {
        let mut event: ResponsesEvent<'_> = match serde_json::from_str(data) {
            Ok(event) => event,
            Err(source) => return skip_unless_ours(name, data, source, out),
        };
        if event.kind.is_empty() {
            event.kind = Cow::Borrowed(name);
        }
        match event.kind.as_ref() {
            "keepalive" | "ping" => return Ok(false),
            "response.created" => self.created(event, out),
            "response.output_item.added" => self.added(&event, out)?,
            "response.output_text.delta" => self.text(event, out)?,
            "response.reasoning_summary_part.added" if event.summary_index.unwrap_or(0) > 0 => {
                event.delta = Some("\n\n".to_owned());
                self.thinking(event, out)?;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.thinking(event, out)?;
            }
            "response.refusal.delta" => {
                let words = event.delta.unwrap_or_default();
                self.room.admit(words.len())?;
                self.refusal.push_str(&words);
            }
            "response.function_call_arguments.delta" => {
                let more = event.delta.take().unwrap_or_default();
                self.arguments(&event, more, out)?;
            }
            "response.function_call_arguments.done" => {
                let all = event.arguments.take().unwrap_or_default();
                self.arguments_done(&event, all, out)?;
            }
            "response.output_item.done" => {
                let index = index_of(&event)?;
                let raw = event.item.ok_or_else(|| FormatError::lacks(&event.kind, "item"))?;
                self.done(index, raw, out)?;
            }
            "response.completed" => {
                let response = event.response;
                self.end(response, None, out)?;
            }
            "response.incomplete" => {
                let mut response = event.response;
                let details = response.as_mut().and_then(|r| r.incomplete_details.take());
                let stop = details.map_or(StopReason::Other("incomplete".into()), |d| d.stop());
                self.end(response, Some(stop), out)?;
            }
            "response.failed" | "response.cancelled" | "error" => {
                let unnamed =
                    || ServerError { message: event.kind.to_string(), ..Default::default() };
                out.push(AnswerStep::Failed(read_error(data).unwrap_or_else(unnamed)));
            }
            _ => {}
        }
        Ok(true)
    }

    fn created(&mut self, event: ResponsesEvent<'_>, out: &mut Vec<AnswerStep>) {
        if std::mem::replace(&mut self.started, true) {
            *self = Self { started: true, room: self.room, ..Self::default() };
            out.push(AnswerStep::StartedOver);
        }
        self.model = event.response.and_then(|response| response.model).unwrap_or_default();
    }

    fn added(
        &mut self,
        event: &ResponsesEvent<'_>,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        let index = index_of(event)?;
        let raw = event.item.ok_or_else(|| FormatError::lacks(&event.kind, "item"))?;
        if self.items.contains_key(&index) {
            return Err(FormatError::out_of_place(&event.kind, index));
        }
        let item = parse(&event.kind, raw)?;
        let coming = match item.kind.as_ref() {
            "message" => ResponsesItemState::Message { said: false },
            "reasoning" => ResponsesItemState::Reasoning,
            "function_call" => self.begin(index, &event.kind, item, out)?,
            _ => ResponsesItemState::Other,
        };
        self.items.insert(index, coming);
        Ok(())
    }

    fn begin(
        &mut self,
        index: u32,
        event: &str,
        item: ResponsesItem<'_>,
        out: &mut Vec<AnswerStep>,
    ) -> Result<ResponsesItemState, FormatError> {
        let name = item.name.filter(|name| !name.is_empty());
        let event = event.to_owned();
        let name = name.ok_or(FormatError::Lacks { event, what: "name" })?;
        self.calls += 1;
        let id = item.call_id.or(item.id).filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| format!("call_{}", self.calls));
        self.room.emit(block(index), AnswerDelta::ToolStart { id, name }, out)?;
        Ok(ResponsesItemState::Call { said: false, whole: false })
    }

    fn text(
        &mut self,
        mut event: ResponsesEvent<'_>,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        let index = index_of(&event)?;
        let words = event.delta.take().unwrap_or_default();
        match self.items.entry(index).or_insert(ResponsesItemState::Message { said: false }) {
            ResponsesItemState::Message { said } => *said |= !words.is_empty(),
            ResponsesItemState::Reasoning
            | ResponsesItemState::Call { .. }
            | ResponsesItemState::Other
            | ResponsesItemState::Done => {
                return Err(FormatError::out_of_place(&event.kind, index));
            }
        }
        match words.is_empty() {
            true => Ok(()),
            false => self.room.emit(block(index), AnswerDelta::Text(words), out),
        }
    }

    fn thinking(
        &mut self,
        mut event: ResponsesEvent<'_>,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        let index = index_of(&event)?;
        let words = event.delta.take().unwrap_or_default();
        match self.items.entry(index).or_insert(ResponsesItemState::Reasoning) {
            ResponsesItemState::Reasoning if words.is_empty() => Ok(()),
            ResponsesItemState::Reasoning => {
                self.room.emit(block(index), AnswerDelta::Thinking(words), out)
            }
            ResponsesItemState::Message { .. }
            | ResponsesItemState::Call { .. }
            | ResponsesItemState::Other
            | ResponsesItemState::Done => Err(FormatError::out_of_place(&event.kind, index)),
        }
    }

    fn arguments(
        &mut self,
        event: &ResponsesEvent<'_>,
        more: String,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        let index = index_of(event)?;
        let Some(ResponsesItemState::Call { said, whole: false }) = self.items.get_mut(&index)
        else {
            return Err(FormatError::out_of_place(&event.kind, index));
        };
        if more.is_empty() {
            return Ok(());
        }
        *said = true;
        self.room.emit(block(index), AnswerDelta::ToolInput(more), out)
    }

    fn arguments_done(
        &mut self,
        event: &ResponsesEvent<'_>,
        all: String,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        let index = index_of(event)?;
        let Some(ResponsesItemState::Call { said, whole }) = self.items.get_mut(&index) else {
            return Err(FormatError::out_of_place(&event.kind, index));
        };
        *whole = true;
        if std::mem::replace(said, true) || all.is_empty() {
            return Ok(());
        }
        self.room.emit(block(index), AnswerDelta::ToolInput(all), out)
    }

    /// The item as it must be echoed.
    fn done(
        &mut self,
        index: u32,
        raw: &RawValue,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        const EVENT: &str = "response.output_item.done";
        let item = parse(EVENT, raw)?;
        let before = self.items.insert(index, ResponsesItemState::Done);
        match (item.kind.as_ref(), before) {
            (_, Some(ResponsesItemState::Done)) => {
                Err(FormatError::OutOfPlace { event: EVENT.to_owned(), index })
            }
            ("message", before) => self.message_done(
                index,
                item,
                before == Some(ResponsesItemState::Message { said: true }),
                out,
            ),
            ("reasoning", _) => {
                let raw = raw.get().to_owned();
                self.room.emit(block(index), AnswerDelta::ThinkingDone { raw }, out)
            }
            ("function_call", before) => {
                let cut = item.status.as_deref() == Some("incomplete");
                let arguments = item.arguments.clone().unwrap_or_default();
                let said = match before {
                    Some(ResponsesItemState::Call { said, .. }) => said,
                    Some(_) | None => {
                        self.begin(index, EVENT, item, out)?;
                        false
                    }
                };
                if cut {
                    return Ok(());
                }
                if !said {
                    let all = if arguments.trim().is_empty() { "{}".into() } else { arguments };
                    self.room.emit(block(index), AnswerDelta::ToolInput(all), out)?;
                }
                self.room.emit(block(index), AnswerDelta::BlockDone, out)
            }
            (_, _) => Ok(()),
        }
    }

    fn message_done(
        &mut self,
        index: u32,
        item: ResponsesItem<'_>,
        mut said: bool,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        for part in item.content.into_iter().flatten() {
            if let Some(refusal) = part.refusal
                && self.refusal.is_empty()
            {
                self.refusal = refusal;
            }
            // Words that came only here.
            if let Some(text) = part.text.filter(|text| !said && !text.is_empty()) {
                said = true;
                self.room.emit(block(index), AnswerDelta::Text(text), out)?;
            }
        }
        if !said {
            return Ok(());
        }
        if let Some(phase) = item.phase {
            let fields = serde_json::value::to_raw_value(&serde_json::json!({ "phase": phase }))
                .map_err(|source| FormatError::Format { event: "phase".to_owned(), source })?;
            let raw = vendor_metadata::write(Api::Responses, MetadataPlace::With, &fields);
            self.room.emit(block(index) - 1, AnswerDelta::ThinkingDone { raw }, out)?;
        }
        self.room.emit(block(index), AnswerDelta::BlockDone, out)
    }

    fn end(
        &mut self,
        response: Option<ResponsesAnswer<'_>>,
        stop: Option<StopReason>,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        if let Some(response) = response {
            if let Some(tokens) = response.usage {
                self.usage = tokens.usage();
            }
            if let Some(model) = response.model {
                self.model = model;
            }
            // Servers that tell the items here and nowhere else.
            if self.items.is_empty() {
                for (index, raw) in (0..).zip(response.output.unwrap_or_default()) {
                    self.done(index, raw, out)?;
                }
            }
        }
        for (index, item) in std::mem::take(&mut self.items) {
            match item {
                ResponsesItemState::Message { said: true }
                | ResponsesItemState::Call { whole: true, .. } => {
                    self.room.emit(block(index), AnswerDelta::BlockDone, out)?;
                }
                ResponsesItemState::Message { said: false }
                | ResponsesItemState::Call { whole: false, .. }
                | ResponsesItemState::Reasoning
                | ResponsesItemState::Other
                | ResponsesItemState::Done => {}
            }
        }
        let stop = match stop {
            _ if !self.refusal.is_empty() => {
                StopReason::Refusal { explanation: std::mem::take(&mut self.refusal) }
            }
            Some(stop) => stop,
            None if self.calls > 0 => StopReason::ToolUse,
            None => StopReason::EndTurn,
        };
        let model = std::mem::take(&mut self.model);
        out.push(AnswerStep::Ended(AnswerEnd { stop, usage: self.usage, model }));
        Ok(())
    }
}

/// An item's index in the answer; the index before it is for vendor metadata.
fn block(index: u32) -> u32 {
    index.saturating_mul(2).saturating_add(1)
}

fn parse<'a>(event: &str, raw: &'a RawValue) -> Result<ResponsesItem<'a>, FormatError> {
    serde_json::from_str(raw.get())
        .map_err(|source| FormatError::Format { event: event.to_owned(), source })
}

/// An event that the full form does not fit: an error if it is one of ours, else skipped.
fn skip_unless_ours(
    name: &str,
    data: &str,
    source: serde_json::Error,
    out: &mut Vec<AnswerStep>,
) -> Result<bool, FormatError> {
    let kind = match serde_json::from_str::<ResponsesEventKind<'_>>(data) {
        Ok(named) if named.kind.is_empty() => name.to_owned(),
        Ok(named) => named.kind.into_owned(),
        // Chat's end mark, which some gateways add, or an empty keep-alive.
        Err(_) if matches!(data.trim(), "[DONE]" | "") => return Ok(false),
        Err(_) => name.to_owned(),
    };
    if kind == "error"
        && let Some(error) = read_error(data)
    {
        out.push(AnswerStep::Failed(error));
        return Ok(true);
    }
    let ours = matches!(
        kind.as_str(),
        "" | "error"
            | "response.created"
            | "response.output_item.added"
            | "response.output_item.done"
            | "response.output_text.delta"
            | "response.refusal.delta"
            | "response.reasoning_summary_text.delta"
            | "response.reasoning_text.delta"
            | "response.function_call_arguments.delta"
            | "response.function_call_arguments.done"
            | "response.completed"
            | "response.incomplete"
            | "response.failed"
    );
    match ours {
        true => Err(FormatError::Format { event: kind, source }),
        false => Ok(true),
    }
}

fn index_of(event: &ResponsesEvent<'_>) -> Result<u32, FormatError> {
    event.output_index.ok_or_else(|| FormatError::lacks(&event.kind, "output_index"))
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
