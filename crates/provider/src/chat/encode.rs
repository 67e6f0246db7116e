//! A request as the body of `POST …/chat/completions`, in the form that all these servers take.

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

/// The body for `request`, streamed, with usage at its end.
///
/// # Errors
/// [`EncodeError`].
pub fn encode(
    request: &ModelRequest,
    effort: Option<Effort>,
    base_url: &str,
) -> Result<String, EncodeError> {
    // The vendor's own server has newer names for two things that all others know by the old.
    let openai = base_url.contains("//api.openai.com");
    // Mistral's server sends usage unasked, and refuses fields that it does not know.
    let sends_usage = base_url.contains("//api.mistral.ai");
    let mut messages = Vec::new();
    if !request.system.trim().is_empty() {
        let role = if openai { "developer" } else { "system" };
        messages.push(ChatMessage {
            content: Some(ChatContent::Text(request.system.as_str().into())),
            ..ChatMessage::of(role)
        });
    }
    let said = pinned_updates::inside(request, pinned_updates::UPDATED);
    for (at, message) in said.iter().enumerate() {
        match message.role {
            MessageRole::User => user(message, &RequestImages::of(request), &mut messages),
            MessageRole::Assistant => messages.extend(assistant(message, at + 1)?),
        }
    }
    if messages.iter().all(|turn| turn.role == "system" || turn.role == "developer") {
        return Err(EncodeError::Empty);
    }
    let most = Some(request.max_tokens);
    let (max_completion_tokens, max_tokens) = if openai { (most, None) } else { (None, most) };
    let body = ChatBody {
        model: &request.model,
        messages,
        tools: tools(&request.tools)?
            .into_iter()
            .map(|function| ChatTool { r#type: "function", function })
            .collect(),
        tool_choice: calls_are_forbidden(request).then_some("none"),
        stream: true,
        stream_options: (!sends_usage).then_some(StreamOptions { include_usage: true }),
        max_completion_tokens,
        max_tokens,
        reasoning_effort: effort.map(effort_word),
        response_format: answer_schema::enforced(request).map(|schema| ResponseFormat {
            r#type: "json_schema",
            json_schema: NamedSchema::of(schema),
        }),
    };
    serde_json::to_string(&body).map_err(EncodeError::Json)
}

#[derive(Serialize)]
struct ChatBody<'a> {
    model: &'a str,
    messages: Vec<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat>,
}

#[derive(Serialize)]
struct ResponseFormat {
    r#type: &'static str,
    json_schema: NamedSchema,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ChatTool<'a> {
    r#type: &'static str,
    function: FunctionSpec<'a>,
}

#[derive(Serialize)]
struct ChatMessage<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    content: Option<ChatContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatCall<'a>>,
    #[serde(flatten)]
    reasoning: ChatReasoning<'a>,
}

/// Text, or parts where there are images. Many servers take only text where there are none.
#[derive(Serialize)]
#[serde(untagged)]
enum ChatContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ChatPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ChatImageUrl },
}

#[derive(Serialize)]
struct ChatImageUrl {
    url: String,
}

impl ChatPart<'_> {
    fn image(image: &ImageRef, images: &RequestImages<'_>) -> Self {
        if is_document(image) {
            let text = format!(
                "[{image} cannot be shown: this model's interface takes images, not documents. Read it \
                 as text, with `pdftotext` for example]"
            );
            return Self::Text { text: text.into() };
        }
        match images.data_url(image) {
            Ok(url) => Self::ImageUrl { image_url: ChatImageUrl { url } },
            Err(text) => Self::Text { text: text.into() },
        }
    }
}

/// Reasoning as it came, for servers that ask for it.
#[derive(Default, Serialize, Deserialize)]
struct ChatReasoning<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct ChatCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: ChatFunctionCall<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct ChatFunctionCall<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

impl ChatMessage<'_> {
    fn of(role: &'static str) -> Self {
        Self {
            role,
            tool_call_id: None,
            content: None,
            tool_calls: Vec::new(),
            reasoning: ChatReasoning::default(),
        }
    }
}

/// The results first, each a message of its own, then the words. These servers take only text in the
/// message of a result, so that its images stand in the next message of the user.
fn user<'a>(message: &'a Message, images: &RequestImages<'_>, messages: &mut Vec<ChatMessage<'a>>) {
    let mut shown = Vec::new();
    for block in &message.blocks {
        match block {
            ContentBlock::ToolResult { id, text, is_error: _, images: of_result } => {
                messages.push(ChatMessage {
                    tool_call_id: Some(id),
                    content: Some(ChatContent::Text(text.as_str().into())),
                    ..ChatMessage::of("tool")
                });
                for image in of_result {
                    let text = format!("[{image}, from the result of call {id}]");
                    shown.push(ChatPart::Text { text: text.into() });
                    shown.push(ChatPart::image(image, images));
                }
            }
            ContentBlock::Image { image } => shown.push(ChatPart::image(image, images)),
            ContentBlock::Text { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::ToolUse { .. } => {}
        }
    }
    let words = words(message);
    let content = match shown.is_empty() {
        true => words.map(ChatContent::Text),
        false => {
            let words = words.map(|text| ChatPart::Text { text });
            Some(ChatContent::Parts(words.into_iter().chain(shown).collect()))
        }
    };
    if let Some(content) = content {
        messages.push(ChatMessage { content: Some(content), ..ChatMessage::of("user") });
    }
}

fn assistant(message: &Message, number: usize) -> Result<Option<ChatMessage<'_>>, EncodeError> {
    let mut turn = ChatMessage {
        content: words(message).map(ChatContent::Text),
        ..ChatMessage::of("assistant")
    };
    let mut extra = None;
    let mut thought = None;
    for block in &message.blocks {
        match block {
            ContentBlock::Thinking { raw, .. } => {
                object(raw).ok_or(EncodeError::Thinking { message: number })?;
                match vendor_metadata::read(Api::Chat, raw) {
                    Some(kept) if kept.place == MetadataPlace::With => extra = Some(kept.fields),
                    Some(_) | None if raw.contains("\"chat_reasoning\"") => {
                        thought = serde_json::from_str(raw).ok();
                    }
                    // Another vendor's.
                    Some(_) | None => {}
                }
            }
            ContentBlock::ToolUse { id, name, input } => turn.tool_calls.push(ChatCall {
                id,
                r#type: "function",
                function: ChatFunctionCall { name: tool_name(name), arguments: arguments(input) },
                extra_content: extra.take(),
            }),
            ContentBlock::Text { .. }
            | ContentBlock::Image { .. }
            | ContentBlock::ToolResult { .. } => {}
        }
    }
    if !turn.tool_calls.is_empty() {
        // Without a call, servers have no use for the reasoning, and some refuse it.
        turn.reasoning = thought.unwrap_or_default();
    }
    let is_empty = turn.content.is_none() && turn.tool_calls.is_empty();
    Ok((!is_empty).then_some(turn))
}

/// The whole text of a message; `None` if it has none.
fn words(message: &Message) -> Option<Cow<'_, str>> {
    let texts: Vec<&str> = message
        .blocks
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text { text } if !text.trim().is_empty() => Some(text.as_str()),
            ContentBlock::Text { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::ToolUse { .. }
            | ContentBlock::Image { .. }
            | ContentBlock::ToolResult { .. } => None,
        })
        .collect();
    match texts.as_slice() {
        [] => None,
        [one] => Some((*one).into()),
        several => Some(several.join("\n\n").into()),
    }
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
