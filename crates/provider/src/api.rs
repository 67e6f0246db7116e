//! The vendors' interfaces behind one door: one arm each.

use crate::body::EncodeError;
use crate::step::{AnswerStep, FormatError};
use crate::{anthropic, chat, gemini, responses};
use protocol::content::ModelRequest;
use protocol::provider::{Api, Auth, ModelServer};
use protocol::surrogates;
use std::borrow::Cow;

/// How a server treats thinking of earlier answers that it can no longer accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldThinking {
    /// It does as it does by itself.
    Sent,
    /// It leaves it out.
    LeftOut,
}

/// The body of a request.
///
/// # Errors
/// [`EncodeError`].
pub fn encode(
    server: &ModelServer,
    request: &ModelRequest,
    old: OldThinking,
) -> Result<String, EncodeError> {
    let body = match server.api {
        Api::Anthropic if old == OldThinking::LeftOut => {
            anthropic::encode_leaving_out(request, server.effort)
        }
        Api::Anthropic => anthropic::encode(request, server.effort),
        Api::Responses => responses::encode(request, server.effort),
        Api::Chat => chat::encode(request, server.effort, &server.base_url),
        Api::Gemini => gemini::encode(request, server.effort),
    }?;
    // Opaque blocks, schemas and older journals may hold JSON that strict servers refuse.
    let strict = match surrogates::replaced(&body) {
        Cow::Owned(strict) => Some(strict),
        Cow::Borrowed(_) => None,
    };
    Ok(strict.unwrap_or(body))
}

/// The path after the base URL, which has no slash at its end. If the URL has a path of its own, no
/// version is added: other servers have theirs elsewhere.
pub(crate) fn path(api: Api, base: &str, model: &str) -> String {
    let bare = base.is_empty();
    match api {
        Api::Anthropic if base.ends_with("/v1") => "/messages".to_owned(),
        Api::Anthropic => "/v1/messages".to_owned(),
        Api::Responses if bare => "/v1/responses".to_owned(),
        Api::Responses => "/responses".to_owned(),
        Api::Chat if bare => "/v1/chat/completions".to_owned(),
        Api::Chat => "/chat/completions".to_owned(),
        Api::Gemini if bare => format!("/v1beta/models/{model}:streamGenerateContent"),
        Api::Gemini => format!("/models/{model}:streamGenerateContent"),
    }
}

/// The query of its address.
pub(crate) fn query(api: Api) -> Option<&'static str> {
    match api {
        Api::Anthropic | Api::Responses | Api::Chat => None,
        // Without it the answer is one long array.
        Api::Gemini => Some("alt=sse"),
    }
}

/// The header for the key, and the prefix of its value.
pub(crate) fn key_header(api: Api, auth: Auth) -> Option<(&'static str, &'static str)> {
    match (auth, api) {
        (Auth::Keyless, _) => None,
        (Auth::Bearer, _) => Some(("authorization", "Bearer ")),
        (Auth::ApiKey, Api::Anthropic) => Some(("x-api-key", "")),
        (Auth::ApiKey, Api::Gemini) => Some(("x-goog-api-key", "")),
        (Auth::ApiKey, Api::Responses | Api::Chat) => Some(("api-key", "")),
    }
}

/// Headers of the interface itself.
pub(crate) fn headers(api: Api) -> &'static [(&'static str, &'static str)] {
    match api {
        Api::Anthropic => &[("anthropic-version", anthropic::VERSION)],
        Api::Responses | Api::Chat | Api::Gemini => &[],
    }
}

/// True if the server refused the request only because of old thinking.
pub(crate) fn is_for_old_thinking(api: Api, refusal: &str) -> bool {
    match api {
        Api::Anthropic => anthropic::is_bound_elsewhere(refusal),
        Api::Responses | Api::Chat | Api::Gemini => false,
    }
}

/// The decoder of one answer.
#[derive(Debug, Clone)]
pub enum AnswerDecoder {
    /// Anthropic Messages.
    Anthropic(anthropic::AnthropicDecoder),
    /// OpenAI Responses.
    Responses(responses::ResponsesDecoder),
    /// OpenAI Chat Completions.
    Chat(chat::ChatDecoder),
    /// Google Gemini.
    Gemini(gemini::GeminiDecoder),
}

impl AnswerDecoder {
    /// For an answer in this language.
    #[must_use]
    pub fn new(api: Api) -> Self {
        match api {
            Api::Anthropic => Self::Anthropic(anthropic::AnthropicDecoder::default()),
            Api::Responses => Self::Responses(responses::ResponsesDecoder::default()),
            Api::Chat => Self::Chat(chat::ChatDecoder::default()),
            Api::Gemini => Self::Gemini(gemini::GeminiDecoder::default()),
        }
    }

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
        match self {
            Self::Anthropic(decoder) => decoder.event(name, data, out),
            Self::Responses(decoder) => decoder.event(name, data, out),
            Self::Chat(decoder) => decoder.event(name, data, out),
            Self::Gemini(decoder) => decoder.event(data, out),
        }
    }

    /// The body has ended: the end of the answer for interfaces whose servers leave their end mark
    /// out.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn body_ended(&mut self, out: &mut Vec<AnswerStep>) -> Result<(), FormatError> {
        match self {
            Self::Anthropic(_) | Self::Responses(_) | Self::Gemini(_) => Ok(()),
            Self::Chat(decoder) => decoder.body_ended(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_and_without_a_path_of_their_own() {
        let cases = [
            (Api::Anthropic, "", "/v1/messages"),
            (Api::Anthropic, "/anthropic", "/v1/messages"),
            (Api::Anthropic, "/v1", "/messages"),
            (Api::Responses, "", "/v1/responses"),
            (Api::Responses, "/v1", "/responses"),
            (Api::Chat, "", "/v1/chat/completions"),
            (Api::Chat, "/api/v1", "/chat/completions"),
            (Api::Chat, "/v1beta/openai", "/chat/completions"),
            (Api::Gemini, "", "/v1beta/models/m:streamGenerateContent"),
            (Api::Gemini, "/v1", "/models/m:streamGenerateContent"),
        ];
        for (api, base, behind) in cases {
            assert_eq!(path(api, base, "m"), behind, "{api:?} {base}");
        }
    }
}
