//! The vendor's events and errors as types, every field optional: which ones must be there is
//! judged in `decode`, where a lack can be named. Used by `decode` and `encode`.

use protocol::content::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Any event. Fields that we do not know are skipped.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct AnthropicEvent<'a> {
    #[serde(rename = "type", default, borrow)]
    pub kind: Cow<'a, str>,
    pub index: Option<u32>,
    pub message: Option<AnthropicMessageStart>,
    #[serde(borrow)]
    pub content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    pub delta: Option<AnthropicDelta<'a>>,
    pub usage: Option<AnthropicTokens>,
}

/// The least that is read of an event that the full form does not fit.
#[derive(Debug, Deserialize)]
pub(crate) struct AnthropicEventKind<'a> {
    #[serde(rename = "type", default, borrow)]
    pub kind: Cow<'a, str>,
}

/// The message in `message_start`.
#[derive(Debug, Deserialize)]
pub(crate) struct AnthropicMessageStart {
    pub model: Option<String>,
    pub usage: Option<AnthropicTokens>,
}

/// A block as `content_block_start` gives it.
#[derive(Debug, Deserialize)]
pub(crate) struct AnthropicBlockStart<'a> {
    #[serde(rename = "type", default, borrow)]
    pub kind: Cow<'a, str>,
    pub text: Option<String>,
    pub thinking: Option<String>,
    pub signature: Option<String>,
    pub id: Option<String>,
    pub name: Option<String>,
    #[serde(borrow)]
    pub input: Option<&'a RawValue>,
}

/// The `delta` of `content_block_delta` and of `message_delta`.
#[derive(Debug, Deserialize)]
pub(crate) struct AnthropicDelta<'a> {
    #[serde(rename = "type", default, borrow)]
    pub kind: Cow<'a, str>,
    pub text: Option<String>,
    pub thinking: Option<String>,
    pub signature: Option<String>,
    pub partial_json: Option<String>,
    pub stop_reason: Option<String>,
    pub stop_details: Option<StopDetails>,
}

/// Why the model declined.
#[derive(Debug, Deserialize)]
pub(crate) struct StopDetails {
    pub explanation: Option<String>,
    pub category: Option<String>,
}

/// Tokens as the vendor counts them; cumulative within an answer.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct AnthropicTokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

impl AnthropicTokens {
    /// Overwrites the counts that are present and keeps the others.
    pub(crate) fn overwrite(self, usage: &mut Usage) {
        usage.input = self.input_tokens.or(usage.input);
        usage.output = self.output_tokens.or(usage.output);
        usage.cache_read = self.cache_read_input_tokens.or(usage.cache_read);
        usage.cache_write = self.cache_creation_input_tokens.or(usage.cache_write);
    }
}
