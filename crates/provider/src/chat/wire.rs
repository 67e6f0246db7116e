//! One chunk of a stream as types, every field optional. Used by `decode` alone.

use crate::step::with_cache_apart;
use protocol::content::Usage;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The content of one `data:` line.
#[derive(Debug, Deserialize)]
pub(super) struct ChatChunk<'a> {
    pub model: Option<String>,
    #[serde(borrow, default)]
    pub choices: Option<Vec<ChatChoice<'a>>>,
    pub usage: Option<ChatTokens>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ChatChoice<'a> {
    #[serde(default)]
    pub index: Option<u32>,
    #[serde(borrow, default)]
    pub delta: Option<ChatDelta<'a>>,
    #[serde(default)]
    pub finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ChatDelta<'a> {
    #[serde(default)]
    pub content: Option<ChatText>,
    /// DeepSeek, vLLM, llama.cpp.
    #[serde(default)]
    pub reasoning_content: Option<ChatText>,
    /// Ollama, OpenRouter.
    #[serde(default)]
    pub reasoning: Option<ChatText>,
    #[serde(borrow, default)]
    pub reasoning_details: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    pub refusal: Option<ChatText>,
    #[serde(borrow, default)]
    pub tool_calls: Option<Vec<ChatToolCall<'a>>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ChatToolCall<'a> {
    #[serde(default)]
    pub index: Option<u32>,
    #[serde(default)]
    pub id: Option<String>,
    #[serde(borrow, default)]
    pub function: Option<ChatFunction<'a>>,
    #[serde(borrow, default)]
    pub extra_content: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ChatFunction<'a> {
    #[serde(default)]
    pub name: Option<String>,
    /// A string in pieces; some servers send the object itself.
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
}

/// A text, or the texts of a list of parts.
#[derive(Debug)]
pub(super) struct ChatText(pub String);

impl<'de> Deserialize<'de> for ChatText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = ChatText;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of parts")
            }
            fn visit_str<E>(self, text: &str) -> Result<ChatText, E> {
                Ok(ChatText(text.to_owned()))
            }
            fn visit_string<E>(self, text: String) -> Result<ChatText, E> {
                Ok(ChatText(text))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<ChatText, A::Error> {
                let mut all = String::new();
                while let Some(part) = parts.next_element::<ChatPart>()? {
                    all.push_str(&part.text.unwrap_or_default());
                }
                Ok(ChatText(all))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[derive(Deserialize)]
struct ChatPart {
    #[serde(default)]
    text: Option<String>,
    #[serde(rename = "type", default)]
    _kind: IgnoredAny,
}

/// Token counts of these servers: the prompt's count includes the tokens from the cache.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct ChatTokens {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    /// DeepSeek.
    #[serde(default)]
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
    #[serde(default)]
    cache_write_tokens: Option<u64>,
}

impl ChatTokens {
    pub(super) fn usage(self) -> Usage {
        let details = self.prompt_tokens_details;
        let read = details.and_then(|d| d.cached_tokens).or(self.prompt_cache_hit_tokens);
        let write = details.and_then(|d| d.cache_write_tokens);
        let cache = (read, write);
        Usage { output: self.completion_tokens, ..with_cache_apart(self.prompt_tokens, cache) }
    }
}
