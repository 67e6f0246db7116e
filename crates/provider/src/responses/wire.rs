//! The vendor's events and items as types, every field optional: which ones must be there is judged
//! in `decode`. Used by `decode` alone.

use crate::step::with_cache_apart;
use protocol::content::{StopReason, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Any event. Fields that we do not know are skipped.
#[derive(Debug, Deserialize)]
pub(super) struct ResponsesEvent<'a> {
    #[serde(rename = "type", default, borrow)]
    pub kind: Cow<'a, str>,
    #[serde(default)]
    pub output_index: Option<u32>,
    #[serde(default)]
    pub summary_index: Option<u32>,
    #[serde(default)]
    pub delta: Option<String>,
    #[serde(default)]
    pub arguments: Option<String>,
    #[serde(borrow, default)]
    pub item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub response: Option<ResponsesAnswer<'a>>,
}

/// The least that is read of an event that the full form does not fit.
#[derive(Debug, Deserialize)]
pub(super) struct ResponsesEventKind<'a> {
    #[serde(rename = "type", default, borrow)]
    pub kind: Cow<'a, str>,
}

/// The answer as a whole, as its first and its last event tell it.
#[derive(Debug, Deserialize)]
pub(super) struct ResponsesAnswer<'a> {
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub usage: Option<ResponsesTokens>,
    #[serde(default)]
    pub incomplete_details: Option<ResponsesIncomplete>,
    #[serde(borrow, default)]
    pub output: Option<Vec<&'a RawValue>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ResponsesIncomplete {
    #[serde(default)]
    pub reason: Option<String>,
}

impl ResponsesIncomplete {
    pub(super) fn stop(self) -> StopReason {
        match self.reason.as_deref() {
            Some("max_output_tokens") => StopReason::MaxTokens,
            Some("content_filter") => {
                StopReason::Refusal { explanation: "content_filter".to_owned() }
            }
            Some(other) => StopReason::Other(other.to_owned()),
            None => StopReason::Other("incomplete".to_owned()),
        }
    }
}

/// One item of the answer.
#[derive(Debug, Deserialize)]
pub(super) struct ResponsesItem<'a> {
    #[serde(rename = "type", default, borrow)]
    pub kind: Cow<'a, str>,
    #[serde(default)]
    pub call_id: Option<String>,
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub arguments: Option<String>,
    #[serde(default)]
    pub status: Option<String>,
    #[serde(default)]
    pub phase: Option<String>,
    #[serde(default)]
    pub content: Option<Vec<ResponsesPart>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ResponsesPart {
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub refusal: Option<String>,
}

/// Token counts; the input's count includes the tokens from the cache.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct ResponsesTokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    #[serde(default)]
    input_tokens_details: Option<InputDetails>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
    #[serde(default)]
    cache_write_tokens: Option<u64>,
}

impl ResponsesTokens {
    pub(super) fn usage(self) -> Usage {
        let details = self.input_tokens_details;
        let read = details.and_then(|d| d.cached_tokens);
        let write = details.and_then(|d| d.cache_write_tokens);
        Usage { output: self.output_tokens, ..with_cache_apart(self.input_tokens, (read, write)) }
    }
}
