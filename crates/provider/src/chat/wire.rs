//! One chunk of a stream as types, every field optional. Used by `decode` alone.

use crate::step::with_cache_apart;
use protocol::content::Usage;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// What one `data:` line holds.
#[derive(Debug, Deserialize)]
pub(super) struct Chunk<'a> {
    pub model: Option<String>,
    #[serde(borrow, default)]
    pub choices: Option<Vec<Choice<'a>>>,
    pub usage: Option<Tokens>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    pub index: Option<u32>,
    #[serde(borrow, default)]
    pub delta: Option<Delta<'a>>,
    #[serde(default)]
    pub finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(default)]
    pub content: Option<Words>,
    /// DeepSeek, vLLM, llama.cpp.
    #[serde(default)]
    pub reasoning_content: Option<Words>,
    /// Ollama, OpenRouter.
    #[serde(default)]
    pub reasoning: Option<Words>,
    #[serde(borrow, default)]
    pub reasoning_details: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    pub refusal: Option<Words>,
    #[serde(borrow, default)]
    pub tool_calls: Option<Vec<ToolCall<'a>>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ToolCall<'a> {
    #[serde(default)]
    pub index: Option<u32>,
    #[serde(default)]
    pub id: Option<String>,
    #[serde(borrow, default)]
    pub function: Option<Function<'a>>,
    #[serde(borrow, default)]
    pub extra_content: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Function<'a> {
    #[serde(default)]
    pub name: Option<String>,
    /// A string in pieces; some servers send the object itself.
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
}

/// A text, or the texts of a list of parts.
#[derive(Debug)]
pub(super) struct Words(pub String);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Words;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of parts")
            }
            fn visit_str<E>(self, text: &str) -> Result<Words, E> {
                Ok(Words(text.to_owned()))
            }
            fn visit_string<E>(self, text: String) -> Result<Words, E> {
                Ok(Words(text))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Words, A::Error> {
                let mut all = String::new();
                while let Some(part) = parts.next_element::<Part>()? {
                    all.push_str(&part.text.unwrap_or_default());
                }
                Ok(Words(all))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: Option<String>,
    #[serde(rename = "type", default)]
    _kind: IgnoredAny,
}

/// Tokens as these servers count them: what came from the cache is part of the prompt's.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Tokens {
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

impl Tokens {
    pub(super) fn usage(self) -> Usage {
        let details = self.prompt_tokens_details;
        let read = details.and_then(|d| d.cached_tokens).or(self.prompt_cache_hit_tokens);
        let write = details.and_then(|d| d.cache_write_tokens);
        let cache = (read, write);
        Usage { output: self.completion_tokens, ..with_cache_apart(self.prompt_tokens, cache) }
    }
}
