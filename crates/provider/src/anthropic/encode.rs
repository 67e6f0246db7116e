//! A request as the body of `POST /v1/messages`: byte-stable where the vendor's prompt cache
//! compares bytes, opaque blocks echoed as they came.
//!
//! This file ensures the order that the interface demands (results first, no two turns of one role
//! in a row, nothing empty). The session ensures that every call has its result.

use super::wire::AnthropicEventKind;
use crate::answer_schema;
use crate::arguments::{ArgumentObject, plain, tool_name};
use crate::body::{EncodeError, calls_are_forbidden, effort_word, object};
use crate::images::{RequestImages, is_document};
use crate::pinned_updates;
use protocol::content::{
    ContentBlock, ImageRef, Message, MessageRole, ModelRequest, ToolSpec, UpdatePosition,
};
use protocol::provider::Effort;
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The body for `request`, with `stream: true`.
///
/// Prompt cache breakpoints, at most four: the last tool, the system text, the last user message
/// and the one before it. The vendor searches only 20 blocks back from a breakpoint, and one round
/// of many calls is longer. In a message with results the breakpoint is on the last result, so that
/// text which changes every round comes after it: the changed pinned files are the last block of
/// the last user message. If that text must be inside the last result, this result has no
/// breakpoint.
///
/// # Errors
/// [`EncodeError`].
pub fn encode(request: &ModelRequest, effort: Option<Effort>) -> Result<String, EncodeError> {
    body(request, effort.and_then(|effort| thinking(effort, request)), effort)
}

/// Like [`encode()`], and asks the server to leave out thinking that it can no longer accept. Only
/// models with adaptive thinking know this option, and they think by default; for others the
/// request is unchanged.
///
/// # Errors
/// [`EncodeError`].
pub(crate) fn encode_leaving_out(
    request: &ModelRequest,
    effort: Option<Effort>,
) -> Result<String, EncodeError> {
    if !is_adaptive(&request.model) {
        return encode(request, effort);
    }
    let block_binding = Some(BlockBinding { prefix_mismatch_behavior: "drop_block" });
    body(request, Some(AnthropicThinking::Adaptive { block_binding }), effort)
}

fn body(
    request: &ModelRequest,
    thinking: Option<AnthropicThinking>,
    effort: Option<Effort>,
) -> Result<String, EncodeError> {
    let (said, behind) = match &request.updated {
        None => (Cow::Borrowed(request.messages.as_slice()), None),
        Some(updated) => match updated.place {
            UpdatePosition::BehindResults => {
                let block = pinned_updates::block(pinned_updates::UPDATED, updated);
                (Cow::Borrowed(request.messages.as_slice()), Some(block))
            }
            UpdatePosition::InsideLastResult => {
                (pinned_updates::inside(request, pinned_updates::UPDATED), None)
            }
        },
    };
    let mut turns = turns(&said, &RequestImages::of(request))?;
    if turns.is_empty() {
        return Err(EncodeError::Empty);
    }
    let unmarked = usize::from(matches!(said, Cow::Owned(_)));
    let marked = 2 - unmarked;
    let users = turns.iter_mut().rev().filter(|turn| turn.role == "user");
    users.skip(unmarked).take(marked).for_each(mark);
    if let (Some(block), Some(last)) = (&behind, turns.last_mut())
        && last.role == "user"
    {
        last.content.push(AnthropicContent::text(block));
    }
    let body = AnthropicBody {
        model: &request.model,
        max_tokens: request.max_tokens,
        stream: true,
        thinking,
        output_config: OutputConfig {
            effort: effort.filter(|_| is_adaptive(&request.model)).map(effort_word),
            format: answer_schema::enforced(request).map(AnthropicFormat::of),
        },
        tools: tools(&request.tools)?,
        tool_choice: calls_are_forbidden(request).then_some(AnthropicToolChoice { r#type: "none" }),
        system: match request.system.trim() {
            "" => Vec::new(),
            _ => vec![AnthropicContent::text(&request.system).marked()],
        },
        messages: turns,
    };
    serde_json::to_string(&body).map_err(EncodeError::Json)
}

#[derive(Serialize)]
struct AnthropicBody<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<AnthropicThinking>,
    #[serde(skip_serializing_if = "OutputConfig::is_empty")]
    output_config: OutputConfig,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<AnthropicTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<AnthropicToolChoice>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<AnthropicContent<'a>>,
    messages: Vec<AnthropicTurn<'a>>,
}

#[derive(Serialize)]
struct AnthropicToolChoice {
    r#type: &'static str,
}

#[derive(Serialize)]
struct AnthropicTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum AnthropicThinking {
    /// As long as the model finds right for its effort.
    Adaptive {
        #[serde(skip_serializing_if = "Option::is_none")]
        block_binding: Option<BlockBinding>,
    },
    /// So long at most.
    Enabled { budget_tokens: u32 },
}

#[derive(Serialize)]
struct BlockBinding {
    prefix_mismatch_behavior: &'static str,
}

#[derive(Serialize)]
struct OutputConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<AnthropicFormat>,
}

impl OutputConfig {
    fn is_empty(&self) -> bool {
        self.effort.is_none() && self.format.is_none()
    }
}

#[derive(Serialize)]
struct AnthropicFormat {
    r#type: &'static str,
    schema: Box<RawValue>,
}

impl AnthropicFormat {
    fn of(schema: Box<RawValue>) -> Self {
        Self { r#type: "json_schema", schema }
    }
}

/// Models since 4.6 choose their thinking budget themselves, and those since 4.7 refuse a fixed
/// one; older models need one. The vendor wants it below `max_tokens`; where there is no room for
/// it, there is no thinking.
fn thinking(effort: Effort, request: &ModelRequest) -> Option<AnthropicThinking> {
    const LEAST: u32 = 1024;
    if is_adaptive(&request.model) {
        return Some(AnthropicThinking::Adaptive { block_binding: None });
    }
    let wanted = match effort {
        Effort::Low => 2048,
        Effort::Medium => 8192,
        Effort::High => 24576,
    };
    let budget_tokens = wanted.min(request.max_tokens / 2);
    (budget_tokens >= LEAST).then_some(AnthropicThinking::Enabled { budget_tokens })
}

/// True if the model is the vendor's 4.6 or newer, by its name: family then version, as in
/// `claude-opus-4-6`, or in older names the version first. A date is not taken for a version.
fn is_adaptive(model: &str) -> bool {
    let Some(at) = model.find("claude-") else { return false };
    let parts = model[at..].split(['-', '.', '@', ':']);
    let mut numbers = parts.filter(|part| part.len() < 3).filter_map(|part| part.parse().ok());
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (4, 6)
}

#[derive(Serialize)]
struct AnthropicTurn<'a> {
    role: &'static str,
    content: Vec<AnthropicContent<'a>>,
}

#[derive(Serialize, Clone, Copy)]
struct CacheControl {
    r#type: &'static str,
}

const EPHEMERAL: CacheControl = CacheControl { r#type: "ephemeral" };

/// One block, by the vendor's names.
#[derive(Serialize)]
#[serde(untagged)]
enum AnthropicContent<'a> {
    /// As it came.
    Raw(&'a RawValue),
    Text {
        r#type: &'static str,
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Use {
        r#type: &'static str,
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: ArgumentObject<'a>,
    },
    Result {
        r#type: &'static str,
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "AnthropicResultContent::is_empty")]
        content: AnthropicResultContent<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        /// `image`, or `document`.
        r#type: &'static str,
        source: AnthropicSource,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Missing {
        r#type: &'static str,
        text: String,
    },
}

/// The content of a result: text, or blocks where it shows images.
#[derive(Serialize)]
#[serde(untagged)]
enum AnthropicResultContent<'a> {
    Text(&'a str),
    Blocks(Vec<AnthropicContent<'a>>),
}

impl AnthropicResultContent<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }
}

#[derive(Serialize)]
struct AnthropicSource {
    r#type: &'static str,
    media_type: &'static str,
    data: String,
}

impl<'a> AnthropicContent<'a> {
    fn text(text: &'a str) -> Self {
        Self::Text { r#type: "text", text, cache_control: None }
    }

    fn image(image: &ImageRef, images: &RequestImages<'_>) -> Self {
        match images.base64(image) {
            Ok(data) => Self::Image {
                r#type: if is_document(image) { "document" } else { "image" },
                source: AnthropicSource { r#type: "base64", media_type: image.media.name(), data },
                cache_control: None,
            },
            Err(text) => Self::Missing { r#type: "text", text },
        }
    }

    fn marked(mut self) -> Self {
        self.mark();
        self
    }

    fn mark(&mut self) {
        match self {
            Self::Text { cache_control, .. }
            | Self::Result { cache_control, .. }
            | Self::Image { cache_control, .. } => {
                *cache_control = Some(EPHEMERAL);
            }
            // Opaque blocks cannot carry a breakpoint, and a marked message never ends in a call.
            Self::Raw(_) | Self::Use { .. } | Self::Missing { .. } => {}
        }
    }

    fn is_result(&self) -> bool {
        matches!(self, Self::Result { .. })
    }
}

fn mark(turn: &mut AnthropicTurn<'_>) {
    let last_result = turn.content.iter().rposition(AnthropicContent::is_result);
    let at = last_result.unwrap_or(turn.content.len().saturating_sub(1));
    if let Some(content) = turn.content.get_mut(at) {
        content.mark();
    }
}

fn tools(specs: &[ToolSpec]) -> Result<Vec<AnthropicTool<'_>>, EncodeError> {
    let mut tools = specs
        .iter()
        .map(|spec| {
            Ok(AnthropicTool {
                name: &spec.name,
                description: &spec.description,
                input_schema: object(&spec.input_schema)
                    .ok_or_else(|| EncodeError::Schema { tool: spec.name.clone() })?,
                cache_control: None,
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(EPHEMERAL);
    }
    Ok(tools)
}

fn turns<'a>(
    messages: &'a [Message],
    images: &RequestImages<'_>,
) -> Result<Vec<AnthropicTurn<'a>>, EncodeError> {
    let mut turns: Vec<AnthropicTurn<'_>> = Vec::with_capacity(messages.len());
    for (at, message) in messages.iter().enumerate() {
        let role = match message.role {
            MessageRole::User => "user",
            MessageRole::Assistant => "assistant",
        };
        let mut content = contents(message, at + 1, images)?;
        if content.is_empty() {
            continue;
        }
        match turns.last_mut() {
            Some(last) if last.role == role => last.content.append(&mut content),
            Some(_) | None => turns.push(AnthropicTurn { role, content }),
        }
    }
    for turn in &mut turns {
        // Stable: results keep their order, and so does all else.
        turn.content.sort_by_key(|content| !content.is_result());
    }
    Ok(turns)
}

fn contents<'a>(
    message: &'a Message,
    number: usize,
    images: &RequestImages<'_>,
) -> Result<Vec<AnthropicContent<'a>>, EncodeError> {
    let mut contents = Vec::with_capacity(message.blocks.len());
    for block in &message.blocks {
        contents.push(match block {
            ContentBlock::Text { text } if text.trim().is_empty() => continue,
            ContentBlock::Text { text } => AnthropicContent::text(text),
            ContentBlock::Thinking { raw, .. } => match ours(raw, number)? {
                Some(raw) => AnthropicContent::Raw(raw),
                // Another vendor's, from before the model was changed.
                None => continue,
            },
            ContentBlock::ToolUse { id, name, input } => AnthropicContent::Use {
                r#type: "tool_use",
                // Another vendor's may have other letters.
                id: plain(id),
                name: tool_name(name),
                input: ArgumentObject(input),
            },
            ContentBlock::Image { image } => AnthropicContent::image(image, images),
            ContentBlock::ToolResult { id, text, is_error, images: shown } => {
                AnthropicContent::Result {
                    r#type: "tool_result",
                    tool_use_id: plain(id),
                    // An error without words is refused.
                    content: match (is_error, text.is_empty(), shown.is_empty()) {
                        (true, true, _) => AnthropicResultContent::Text("(no output)"),
                        (_, _, true) => AnthropicResultContent::Text(text),
                        (_, _, false) => {
                            let words = Some(text.as_str()).filter(|text| !text.trim().is_empty());
                            let words = words.map(AnthropicContent::text).into_iter();
                            let shown = shown.iter().map(|it| AnthropicContent::image(it, images));
                            AnthropicResultContent::Blocks(words.chain(shown).collect())
                        }
                    },
                    is_error: *is_error,
                    cache_control: None,
                }
            }
        });
    }
    Ok(contents)
}

/// The block as it came, if it came from this vendor.
fn ours(raw: &str, message: usize) -> Result<Option<&RawValue>, EncodeError> {
    let raw = object(raw).ok_or(EncodeError::Thinking { message })?;
    let named: AnthropicEventKind<'_> =
        serde_json::from_str(raw.get()).map_err(EncodeError::Json)?;
    Ok(matches!(named.kind.as_ref(), "thinking" | "redacted_thinking").then_some(raw))
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
