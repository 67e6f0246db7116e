//! A request as the body of `POST …:streamGenerateContent`, signatures put back where they were.

use super::MADE_UP;
use crate::answer_schema;
use crate::arguments::{ArgumentObject, tool_name};
use crate::body::{EncodeError, calls_are_forbidden, object, tools};
use crate::images::RequestImages;
use crate::pinned_updates;
use crate::vendor_metadata::{self, MetadataPlace};
use protocol::content::{ContentBlock, ImageRef, Message, MessageRole, ModelRequest, ToolSpec};
use protocol::provider::{Api, Effort};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A placeholder that the vendor accepts as the signature of a call by another vendor's model.
const FOREIGN: &str = "skip_thought_signature_validator";

/// The body for `request`.
///
/// # Errors
/// [`EncodeError`].
pub fn encode(request: &ModelRequest, effort: Option<Effort>) -> Result<String, EncodeError> {
    let mut contents = Vec::new();
    let mut names = BTreeMap::new();
    let signs = signs(&request.model);
    let said = pinned_updates::inside(request, pinned_updates::SYSTEM_UPDATED);
    for (at, message) in said.iter().enumerate() {
        match message.role {
            MessageRole::User => {
                user(message, (&names, &RequestImages::of(request)), &mut contents)
            }
            MessageRole::Assistant => {
                let parts = model(message, at + 1, signs, &mut names)?;
                if !parts.is_empty() {
                    contents.push(GeminiContent { role: "model", parts });
                }
            }
        }
    }
    if contents.is_empty() {
        return Err(EncodeError::Empty);
    }
    let response_json_schema = answer_schema::enforced(request);
    let body = GeminiBody {
        system_instruction: match request.system.trim() {
            "" => None,
            text => Some(GeminiSystem { parts: [GeminiPart::text(text)] }),
        },
        contents,
        tools: declarations(&request.tools)?,
        tool_config: calls_are_forbidden(request)
            .then_some(ToolConfig { function_calling_config: CallingConfig { mode: "NONE" } }),
        generation_config: GeminiGeneration {
            max_output_tokens: request.max_tokens,
            thinking_config: effort.map(|effort| GeminiThinking::of(effort, &request.model)),
            response_mime_type: response_json_schema.as_ref().map(|_| "application/json"),
            response_json_schema,
        },
    };
    serde_json::to_string(&body).map_err(EncodeError::Json)
}

/// True if the server refuses calls without a signature, as it does since the third generation.
fn signs(model: &str) -> SignaturePolicy {
    match model.contains("gemini-1") || model.contains("gemini-2") {
        true => SignaturePolicy::MayLack,
        false => SignaturePolicy::Must,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SignaturePolicy {
    Must,
    MayLack,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<GeminiSystem<'a>>,
    contents: Vec<GeminiContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<GeminiTools<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig>,
    generation_config: GeminiGeneration,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig {
    function_calling_config: CallingConfig,
}

#[derive(Serialize)]
struct CallingConfig {
    mode: &'static str,
}

#[derive(Serialize)]
struct GeminiSystem<'a> {
    parts: [GeminiPart<'a>; 1],
}

#[derive(Serialize)]
struct GeminiContent<'a> {
    role: &'static str,
    parts: Vec<GeminiPart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiTools<'a> {
    function_declarations: Vec<GeminiTool<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiTool<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a RawValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiGeneration {
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<GeminiThinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<Box<RawValue>>,
}

/// The third generation takes a level, those before it a budget.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiThinking {
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
}

impl GeminiThinking {
    fn of(effort: Effort, model: &str) -> Self {
        let (level, budget) = match effort {
            Effort::Low => ("low", 1024),
            Effort::Medium => ("medium", 8192),
            Effort::High => ("high", 24576),
        };
        let (thinking_level, thinking_budget) = match signs(model) {
            SignaturePolicy::Must => (Some(level), None),
            SignaturePolicy::MayLack => (None, Some(budget)),
        };
        Self { include_thoughts: true, thinking_level, thinking_budget }
    }
}

/// One part, by the vendor's names.
#[derive(Serialize)]
#[serde(untagged)]
enum GeminiPart<'a> {
    /// As it came.
    Raw(&'a RawValue),
    #[serde(rename_all = "camelCase")]
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<Cow<'a, str>>,
    },
    #[serde(rename_all = "camelCase")]
    Call {
        function_call: GeminiCall<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<Cow<'a, str>>,
    },
    #[serde(rename_all = "camelCase")]
    Response {
        function_response: GeminiFunctionResponse<'a>,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        inline_data: GeminiInlineData,
    },
    Missing {
        text: String,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiInlineData {
    mime_type: &'static str,
    data: String,
}

#[derive(Serialize)]
struct GeminiCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    args: ArgumentObject<'a>,
}

#[derive(Serialize)]
struct GeminiFunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    response: GeminiOutcome<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum GeminiOutcome<'a> {
    Output(&'a str),
    Error(&'a str),
}

impl<'a> GeminiPart<'a> {
    fn text(text: &'a str) -> Self {
        Self::Text { text, thought_signature: None }
    }

    fn image(image: &ImageRef, images: &RequestImages<'_>) -> Self {
        match images.base64(image) {
            Ok(data) => Self::Image {
                inline_data: GeminiInlineData { mime_type: image.media.name(), data },
            },
            Err(text) => Self::Missing { text },
        }
    }
}

fn declarations(specs: &[ToolSpec]) -> Result<Vec<GeminiTools<'_>>, EncodeError> {
    if specs.is_empty() {
        return Ok(Vec::new());
    }
    let function_declarations = tools(specs)?
        .into_iter()
        .map(|tool| GeminiTool {
            name: tool.name,
            description: tool.description,
            parameters_json_schema: tool.parameters,
        })
        .collect();
    Ok(vec![GeminiTools { function_declarations }])
}

/// The results in a content of their own, right behind the calls; the words in another, with the images
/// of results. Only models since the third generation take images inside a result.
fn user<'a>(
    message: &'a Message,
    (names, images): (&BTreeMap<&'a str, &'a str>, &RequestImages<'_>),
    contents: &mut Vec<GeminiContent<'a>>,
) {
    let mut results = Vec::new();
    let mut words = Vec::new();
    for block in &message.blocks {
        match block {
            ContentBlock::ToolResult { id, text, is_error, images: shown } => {
                results.push(GeminiPart::Response {
                    function_response: GeminiFunctionResponse {
                        id: sent_id(id),
                        name: tool_name(names.get(id.as_str()).copied().unwrap_or_default()),
                        response: match is_error {
                            true => GeminiOutcome::Error(text),
                            false => GeminiOutcome::Output(text),
                        },
                    },
                });
                words.extend(shown.iter().map(|image| GeminiPart::image(image, images)));
            }
            ContentBlock::Image { image } => words.push(GeminiPart::image(image, images)),
            ContentBlock::Text { text } if !text.trim().is_empty() => {
                words.push(GeminiPart::text(text))
            }
            ContentBlock::Text { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::ToolUse { .. } => {}
        }
    }
    for parts in [results, words] {
        if !parts.is_empty() {
            contents.push(GeminiContent { role: "user", parts });
        }
    }
}

fn model<'a>(
    message: &'a Message,
    number: usize,
    signs: SignaturePolicy,
    names: &mut BTreeMap<&'a str, &'a str>,
) -> Result<Vec<GeminiPart<'a>>, EncodeError> {
    let mut parts = Vec::new();
    let mut signature = None;
    let mut behind = None;
    let mut calls = 0;
    for block in &message.blocks {
        match block {
            ContentBlock::Thinking { raw, .. } => {
                let part = object(raw).ok_or(EncodeError::Thinking { message: number })?;
                match vendor_metadata::read(Api::Gemini, raw) {
                    Some(kept) if kept.place == MetadataPlace::With => {
                        signature = signed(kept.fields)
                    }
                    Some(kept) => behind = Some(kept.fields),
                    None if is_signed_thought(part) => parts.push(GeminiPart::Raw(part)),
                    // Thoughts in words are for people, and another vendor's for another vendor.
                    None => {}
                }
            }
            ContentBlock::Text { text } => {
                if !text.trim().is_empty() {
                    let thought_signature = signature.take();
                    parts.push(GeminiPart::Text { text, thought_signature });
                }
                parts.extend(behind.take().map(GeminiPart::Raw));
            }
            ContentBlock::ToolUse { id, name, input } => {
                names.insert(id, name);
                calls += 1;
                let foreign =
                    (calls == 1 && signs == SignaturePolicy::Must).then(|| FOREIGN.into());
                parts.push(GeminiPart::Call {
                    function_call: GeminiCall {
                        id: sent_id(id),
                        name: tool_name(name),
                        args: ArgumentObject(input),
                    },
                    thought_signature: signature.take().or(foreign),
                });
            }
            ContentBlock::ToolResult { .. } | ContentBlock::Image { .. } => {}
        }
    }
    Ok(parts)
}

fn sent_id(id: &str) -> Option<&str> {
    (!id.starts_with(MADE_UP)).then_some(id)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SignedThought<'a> {
    #[serde(default)]
    thought: bool,
    #[serde(borrow)]
    thought_signature: Cow<'a, str>,
}

fn signed(fields: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<SignedThought<'_>>(fields.get())
        .ok()
        .map(|signed| signed.thought_signature)
}

fn is_signed_thought(part: &RawValue) -> bool {
    serde_json::from_str::<SignedThought<'_>>(part.get()).is_ok_and(|signed| signed.thought)
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
