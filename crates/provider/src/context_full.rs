//! The words of vendors and servers for a conversation that is too long for the model. Data and its reading; used by
//! `server_error`.

/// Each row: the parts of a message, in their order and in small letters. Collected from the servers' sources and from
/// the error tables of other clients (github.com/badlogic/pi-mono `packages/ai/src/utils/overflow.ts`,
/// github.com/BerriAI/litellm `exception_mapping_utils.py`, github.com/sst/opencode `provider/error.ts`).
const MESSAGES: &[&[&str]] = &[
    // Anthropic, and servers like it; also Ollama ("prompt too long; exceeded max context length by 12 tokens").
    &["prompt is too long"],
    &["prompt too long"],
    &["input length and `max_tokens` exceed context limit"],
    // OpenAI, OpenRouter, DeepSeek, vLLM, SGLang, Mistral, LiteLLM.
    &["maximum context length"],
    &["exceeds the context window"],
    &["exceed the context window"],
    &["exceeds the configured limit of", "tokens"],
    &["exceed the configured limit of", "tokens"],
    // Google.
    &["input token count", "exceeds the maximum"],
    &["input token count"],
    // Amazon Bedrock.
    &["input is too long for requested model"],
    // xAI: "This model's maximum prompt length is 131072 but the request contains 537812 tokens."
    &["maximum prompt length is"],
    // Groq: "Please reduce the length of the messages or completion."
    &["reduce the length of the messages"],
    // GitHub Copilot: "prompt token count of 70000 exceeds the limit of 64000".
    &["prompt token count", "exceeds the limit of"],
    // llama.cpp: "the request exceeds the available context size".
    &["exceeds the available context size"],
    // LM Studio: "The number of tokens to keep from the initial prompt is greater than the context length", and "the
    // model is loaded with context length of only 4096 tokens".
    &["greater than the context length"],
    &["loaded with context length of only"],
    // Ollama: "the input length exceeds the context length"; newer vLLM: "the model's context length is only 8192
    // tokens", "The decoder prompt (length 9000) is longer than the maximum model length of 8192".
    &["input length", "exceeds", "context length"],
    &["context length is only"],
    &["longer than the maximum model length"],
    &["maximum input length of"],
    &["maximum allowed input length"],
    // Together: "The input (250000 tokens) is longer than the model's context length (200000 tokens)."
    &["is longer than the model", "context length"],
    // MiniMax.
    &["context window exceeds limit"],
    // Moonshot: "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)".
    &["exceeded model token limit"],
    // Z.ai: "Prompt exceeds max length"; as the reason of an end: "model_context_window_exceeded".
    &["prompt exceeds max length"],
    &["model_context_window_exceeded"],
    // DashScope: "Range of input length should be [1, 30000]".
    &["range of input length should be"],
    // Servers like these, in general.
    &["context_length_exceeded"],
    &["context length exceeded"],
    &["token limit exceeded"],
];

/// Names for it: OpenAI and others, llama.cpp, GitHub Copilot, and Z.ai's number.
const NAMES: [&str; 4] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "model_max_prompt_tokens_exceeded",
    "1261",
];

/// True for an error of this name.
pub(crate) fn is_name(kind: &str) -> bool {
    NAMES.contains(&kind)
}

/// True for an error with this message.
pub(crate) fn is_message(message: &str) -> bool {
    let message: String = message.chars().take(2000).collect::<String>().to_lowercase();
    MESSAGES.iter().any(|parts| {
        let mut rest = Some(message.as_str());
        for part in *parts {
            rest = rest.and_then(|text| text.split_once(part)).map(|(_, behind)| behind);
        }
        rest.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_about_the_length_are_known_and_others_are_not() {
        for message in [
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            "prompt token count of 70000 exceeds the limit of 64000",
            "the input length exceeds the context length",
            "prompt too long; exceeded max context length by 12 tokens",
            "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
            "You passed 9001 input tokens. However, the model's context length is only 8192 tokens",
        ] {
            assert!(is_message(message), "{message}");
        }
        for message in [
            "max_tokens exceeds the limit of 8192",
            "Too many tokens, please wait before trying again.",
            "tools.3.custom.input_schema: JSON schema is invalid",
            "The image exceeds the maximum size",
        ] {
            assert!(!is_message(message), "{message}");
        }
    }
}
