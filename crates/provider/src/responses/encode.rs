//! A request as the body of `POST …/responses`. Nothing is kept by the server, so everything the
//! model said goes back in order, its reasoning encrypted as it came.

use crate::answer_schema::{self, NamedSchema};
use crate::arguments::{arguments, tool_name};
use crate::body::{EncodeError, FunctionSpec, calls_are_forbidden, effort_word, object, tools};
use crate::images::{RequestImages, is_document};
use crate::pinned_updates;
use crate::vendor_metadata::{self, MetadataPlace};
use protocol::content::{ContentBlock, ImageRef, Message, MessageRole, ModelRequest};
use protocol::provider::{Api, Effort};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The least `max_output_tokens` that the vendor takes.
const LEAST_TOKENS: u32 = 16;

/// The body for `request`, with `stream: true` and `store: false`.
///
/// # Errors
/// [`EncodeError`].
pub fn encode(request: &ModelRequest, effort: Option<Effort>) -> Result<String, EncodeError> {
    let mut input = Vec::new();
    let said = pinned_updates::inside(request, pinned_updates::UPDATED);
    for (at, message) in said.iter().enumerate() {
        match message.role {
            MessageRole::User => user(message, &RequestImages::of(request), &mut input),
            MessageRole::Assistant => assistant(message, at + 1, &mut input)?,
        }
    }
    if input.is_empty() {
        return Err(EncodeError::Empty);
    }
    let body = ResponsesBody {
        model: &request.model,
        instructions: request.system.trim(),
        input,
        tools: tools(&request.tools)?
            .into_iter()
            .map(|tool| ResponsesTool { r#type: "function", tool, strict: false })
            .collect(),
        tool_choice: calls_are_forbidden(request).then_some("none"),
        stream: true,
        store: false,
        include: match reasons(&request.model) {
            true => &["reasoning.encrypted_content"],
            false => &[],
        },
        max_output_tokens: request.max_tokens.max(LEAST_TOKENS),
        reasoning: effort.map(|effort| ResponsesReasoning { effort: effort_word(effort) }),
        text: answer_schema::enforced(request).map(|schema| ResponsesText {
            format: ResponsesFormat { r#type: "json_schema", schema: NamedSchema::of(schema) },
        }),
    };
    serde_json::to_string(&body).map_err(EncodeError::Json)
}

/// True if the model accepts the request for its reasoning; older models refuse it.
fn reasons(model: &str) -> bool {
    !["gpt-3", "gpt-4", "chatgpt"].iter().any(|old| model.starts_with(old))
}

#[derive(Serialize)]
struct ResponsesBody<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    input: Vec<ResponsesInputItem<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ResponsesTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'a [&'static str],
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ResponsesReasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<ResponsesText>,
}

#[derive(Serialize)]
struct ResponsesText {
    format: ResponsesFormat,
}

#[derive(Serialize)]
struct ResponsesFormat {
    r#type: &'static str,
    #[serde(flatten)]
    schema: NamedSchema,
}

#[derive(Serialize)]
struct ResponsesReasoning {
    effort: &'static str,
}

#[derive(Serialize)]
struct ResponsesTool<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    tool: FunctionSpec<'a>,
    strict: bool,
}

/// One item, by the vendor's names.
#[derive(Serialize)]
#[serde(untagged)]
enum ResponsesInputItem<'a> {
    /// Reasoning as it came.
    Raw(&'a RawValue),
    Words {
        r#type: &'static str,
        role: &'static str,
        content: Vec<ResponsesInputPart<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<Cow<'a, str>>,
    },
    Call {
        r#type: &'static str,
        call_id: &'a str,
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
    },
    Output {
        r#type: &'static str,
        call_id: &'a str,
        output: ResponsesOutput<'a>,
    },
}

/// The output of a call: text, or parts where it shows images.
#[derive(Serialize)]
#[serde(untagged)]
enum ResponsesOutput<'a> {
    Text(&'a str),
    Parts(Vec<ResponsesInputPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponsesInputPart<'a> {
    InputText { text: Cow<'a, str> },
    OutputText { text: Cow<'a, str> },
    InputImage { image_url: String, detail: &'static str },
    InputFile { filename: &'a str, file_data: String },
}

impl<'a> ResponsesInputPart<'a> {
    fn text(text: &'a str) -> Self {
        Self::InputText { text: text.into() }
    }

    fn image(image: &'a ImageRef, images: &RequestImages<'_>) -> Self {
        match images.data_url(image) {
            Ok(file_data) if is_document(image) => {
                Self::InputFile { filename: &image.name, file_data }
            }
            Ok(image_url) => Self::InputImage { image_url, detail: "auto" },
            Err(text) => Self::InputText { text: text.into() },
        }
    }
}

/// The results first, then the words.
fn user<'a>(
    message: &'a Message,
    images: &RequestImages<'_>,
    input: &mut Vec<ResponsesInputItem<'a>>,
) {
    let mut content = Vec::new();
    for block in &message.blocks {
        match block {
            ContentBlock::ToolResult { id, text, is_error: _, images: shown } => {
                let output = match shown.is_empty() {
                    true => ResponsesOutput::Text(text),
                    false => {
                        let words = [ResponsesInputPart::text(text)].into_iter();
                        let shown = shown.iter().map(|it| ResponsesInputPart::image(it, images));
                        ResponsesOutput::Parts(words.chain(shown).collect())
                    }
                };
                input.push(ResponsesInputItem::Output {
                    r#type: "function_call_output",
                    call_id: id,
                    output,
                })
            }
            ContentBlock::Image { image } => content.push(ResponsesInputPart::image(image, images)),
            ContentBlock::Text { text } if !text.trim().is_empty() => {
                content.push(ResponsesInputPart::text(text));
            }
            ContentBlock::Text { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::ToolUse { .. } => {}
        }
    }
    if !content.is_empty() {
        input.push(ResponsesInputItem::Words {
            r#type: "message",
            role: "user",
            content,
            phase: None,
        });
    }
}

fn assistant<'a>(
    message: &'a Message,
    number: usize,
    input: &mut Vec<ResponsesInputItem<'a>>,
) -> Result<(), EncodeError> {
    let mut phase = None;
    for block in &message.blocks {
        match block {
            ContentBlock::Thinking { raw, .. } => {
                let item = object(raw).ok_or(EncodeError::Thinking { message: number })?;
                match vendor_metadata::read(Api::Responses, raw) {
                    Some(kept) if kept.place == MetadataPlace::With => {
                        phase = read_phase(kept.fields)
                    }
                    Some(_) => {}
                    None if is_reasoning(raw) => input.push(ResponsesInputItem::Raw(item)),
                    // Another vendor's.
                    None => {}
                }
            }
            ContentBlock::Text { text } if text.trim().is_empty() => {}
            ContentBlock::Text { text } => input.push(ResponsesInputItem::Words {
                r#type: "message",
                role: "assistant",
                content: vec![ResponsesInputPart::OutputText { text: text.into() }],
                phase: phase.take(),
            }),
            ContentBlock::ToolUse { id, name, input: said } => {
                input.push(ResponsesInputItem::Call {
                    r#type: "function_call",
                    call_id: id,
                    name: tool_name(name),
                    arguments: arguments(said),
                })
            }
            ContentBlock::ToolResult { .. } | ContentBlock::Image { .. } => {}
        }
    }
    // Reasoning that nothing follows is refused.
    while matches!(input.last(), Some(ResponsesInputItem::Raw(_))) {
        input.pop();
    }
    Ok(())
}

#[derive(Deserialize)]
struct ResponsesPhase<'a> {
    #[serde(borrow)]
    phase: Cow<'a, str>,
}

fn read_phase(fields: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<ResponsesPhase<'_>>(fields.get()).ok().map(|phase| phase.phase)
}

/// True for reasoning of this vendor that any of its servers can read: encrypted, or plain text.
/// Reasoning with only an id is stored on a server, which was asked to store nothing.
fn is_reasoning(raw: &str) -> bool {
    #[derive(Deserialize)]
    struct ReasoningKind<'a> {
        #[serde(rename = "type", default, borrow)]
        kind: Cow<'a, str>,
        #[serde(borrow, default)]
        encrypted_content: Option<&'a RawValue>,
        #[serde(default)]
        content: Option<Vec<serde::de::IgnoredAny>>,
    }
    serde_json::from_str::<ReasoningKind<'_>>(raw).is_ok_and(|item| {
        let in_the_open = item.content.is_some_and(|parts| !parts.is_empty());
        item.kind == "reasoning" && (item.encrypted_content.is_some() || in_the_open)
    })
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
