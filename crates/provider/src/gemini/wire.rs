//! One piece of a stream as types, every field optional. Used by `decode` alone.

use crate::step::with_cache_apart;
use protocol::content::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A `GenerateContentResponse`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiChunk<'a> {
    #[serde(borrow, default)]
    pub candidates: Option<Vec<GeminiCandidate<'a>>>,
    #[serde(default)]
    pub prompt_feedback: Option<GeminiPromptFeedback>,
    #[serde(default)]
    pub usage_metadata: Option<GeminiTokens>,
    #[serde(default)]
    pub model_version: Option<String>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiCandidate<'a> {
    #[serde(default)]
    pub index: Option<u32>,
    #[serde(borrow, default)]
    pub content: Option<GeminiChunkContent<'a>>,
    #[serde(default)]
    pub finish_reason: Option<String>,
    #[serde(default)]
    pub finish_message: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct GeminiChunkContent<'a> {
    #[serde(borrow, default)]
    pub parts: Option<Vec<GeminiChunkPart<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiChunkPart<'a> {
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub thought: Option<bool>,
    #[serde(default)]
    pub thought_signature: Option<String>,
    #[serde(borrow, default)]
    pub function_call: Option<GeminiChunkCall<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiChunkCall<'a> {
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(borrow, default)]
    pub args: Option<&'a RawValue>,
    /// Vertex sends arguments in pieces if it is asked to.
    #[serde(default)]
    pub will_continue: Option<bool>,
}

/// Why a prompt was refused.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiPromptFeedback {
    #[serde(default)]
    pub block_reason: Option<String>,
    #[serde(default)]
    pub block_reason_message: Option<String>,
}

/// Token counts, cumulative; the prompt's count includes the tokens from the cache.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiTokens {
    #[serde(default)]
    prompt_token_count: Option<u64>,
    #[serde(default)]
    candidates_token_count: Option<u64>,
    #[serde(default)]
    thoughts_token_count: Option<u64>,
    #[serde(default)]
    cached_content_token_count: Option<u64>,
}

impl GeminiTokens {
    pub(super) fn usage(self) -> Usage {
        let cache = (self.cached_content_token_count, None);
        Usage {
            output: match (self.candidates_token_count, self.thoughts_token_count) {
                (None, None) => None,
                (said, thought) => Some(said.unwrap_or(0).saturating_add(thought.unwrap_or(0))),
            },
            ..with_cache_apart(self.prompt_token_count, cache)
        }
    }
}
