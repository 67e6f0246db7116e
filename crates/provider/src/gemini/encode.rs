//! A request as the body of `POST …:streamGenerateContent`, signatures put back where they were.

use super::MADE_UP;
use crate::beside::{self, Place};
use crate::body::{EncodeError, calls_are_forbidden, object, tools};
use crate::updates;
use protocol::content::{Block, Message, ModelRequest, Role, ToolSpec};
use protocol::provider::{Api, Effort};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What the vendor takes in place of the signature of a call that another vendor's model made.
const FOREIGN: &str = "skip_thought_signature_validator";

/// The body for `request`.
///
/// # Errors
/// [`EncodeError`].
pub fn encode(request: &ModelRequest, effort: Option<Effort>) -> Result<String, EncodeError> {
    let mut contents = Vec::new();
    let mut names = BTreeMap::new();
    let signs = signs(&request.model);
    let said = updates::inside(request, updates::SYSTEM_UPDATED);
    for (at, message) in said.iter().enumerate() {
        match message.role {
            Role::User => user(message, &names, &mut contents),
            Role::Assistant => {
                let parts = model(message, at + 1, signs, &mut names)?;
                if !parts.is_empty() {
                    contents.push(Content { role: "model", parts });
                }
            }
        }
    }
    if contents.is_empty() {
        return Err(EncodeError::Empty);
    }
    let body = Body {
        system_instruction: match request.system.trim() {
            "" => None,
            text => Some(System { parts: [Part::text(text)] }),
        },
        contents,
        tools: declarations(&request.tools)?,
        tool_config: calls_are_forbidden(request)
            .then_some(ToolConfig { function_calling_config: CallingConfig { mode: "NONE" } }),
        generation_config: Generation {
            max_output_tokens: request.max_tokens,
            thinking_config: effort.map(|effort| Thinking::of(effort, &request.model)),
        },
    };
    serde_json::to_string(&body).map_err(EncodeError::Json)
}

/// Whether calls without a signature are refused: since the third generation.
fn signs(model: &str) -> Signs {
    match model.contains("gemini-1") || model.contains("gemini-2") {
        true => Signs::MayLack,
        false => Signs::Must,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Signs {
    Must,
    MayLack,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<System<'a>>,
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Declarations<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig>,
    generation_config: Generation,
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
struct System<'a> {
    parts: [Part<'a>; 1],
}

#[derive(Serialize)]
struct Content<'a> {
    role: &'static str,
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declarations<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a RawValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Generation {
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<Thinking>,
}

/// The third generation takes a level, those before it a budget.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Thinking {
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
}

impl Thinking {
    fn of(effort: Effort, model: &str) -> Self {
        let (level, budget) = match effort {
            Effort::Low => ("low", 1024),
            Effort::Medium => ("medium", 8192),
            Effort::High => ("high", 24576),
        };
        let (thinking_level, thinking_budget) = match signs(model) {
            Signs::Must => (Some(level), None),
            Signs::MayLack => (None, Some(budget)),
        };
        Self { include_thoughts: true, thinking_level, thinking_budget }
    }
}

/// One part, by the vendor's names.
#[derive(Serialize)]
#[serde(untagged)]
enum Part<'a> {
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
        function_call: Call<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<Cow<'a, str>>,
    },
    #[serde(rename_all = "camelCase")]
    Response { function_response: Response<'a> },
}

#[derive(Serialize)]
struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: Args<'a>,
}

/// The arguments of a call in the history. The vendor takes objects only.
#[derive(Serialize)]
#[serde(untagged)]
enum Args<'a> {
    AsSaid(&'a RawValue),
    Empty {},
    /// What the model said where it was no object, so that it can see its own mistake.
    Invalid {
        invalid_arguments: &'a str,
    },
}

#[derive(Serialize)]
struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: Outcome<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome<'a> {
    Output(&'a str),
    Error(&'a str),
}

impl<'a> Part<'a> {
    fn text(text: &'a str) -> Self {
        Self::Text { text, thought_signature: None }
    }
}

fn declarations(specs: &[ToolSpec]) -> Result<Vec<Declarations<'_>>, EncodeError> {
    if specs.is_empty() {
        return Ok(Vec::new());
    }
    let function_declarations = tools(specs)?
        .into_iter()
        .map(|tool| Declaration {
            name: tool.name,
            description: tool.description,
            parameters_json_schema: tool.parameters,
        })
        .collect();
    Ok(vec![Declarations { function_declarations }])
}

/// The results in a content of their own, right behind the calls; the words in another.
fn user<'a>(
    message: &'a Message,
    names: &BTreeMap<&'a str, &'a str>,
    contents: &mut Vec<Content<'a>>,
) {
    let mut results = Vec::new();
    let mut words = Vec::new();
    for block in &message.blocks {
        match block {
            Block::ToolResult { id, text, is_error } => results.push(Part::Response {
                function_response: Response {
                    id: sent_id(id),
                    name: names.get(id.as_str()).copied().unwrap_or("unknown"),
                    response: match is_error {
                        true => Outcome::Error(text),
                        false => Outcome::Output(text),
                    },
                },
            }),
            Block::Text { text } if !text.trim().is_empty() => words.push(Part::text(text)),
            Block::Text { .. } | Block::Thinking { .. } | Block::ToolUse { .. } => {}
        }
    }
    for parts in [results, words] {
        if !parts.is_empty() {
            contents.push(Content { role: "user", parts });
        }
    }
}

fn model<'a>(
    message: &'a Message,
    number: usize,
    signs: Signs,
    names: &mut BTreeMap<&'a str, &'a str>,
) -> Result<Vec<Part<'a>>, EncodeError> {
    let mut parts = Vec::new();
    let mut signature = None;
    let mut behind = None;
    let mut calls = 0;
    for block in &message.blocks {
        match block {
            Block::Thinking { raw, .. } => {
                let part = object(raw).ok_or(EncodeError::Thinking { message: number })?;
                match beside::read(Api::Gemini, raw) {
                    Some(kept) if kept.place == Place::With => signature = signed(kept.fields),
                    Some(kept) => behind = Some(kept.fields),
                    None if is_signed_thought(part) => parts.push(Part::Raw(part)),
                    // Thoughts in words are for people, and another vendor's for another vendor.
                    None => {}
                }
            }
            Block::Text { text } => {
                if !text.trim().is_empty() {
                    let thought_signature = signature.take();
                    parts.push(Part::Text { text, thought_signature });
                }
                parts.extend(behind.take().map(Part::Raw));
            }
            Block::ToolUse { id, name, input } => {
                names.insert(id, name);
                calls += 1;
                let foreign = (calls == 1 && signs == Signs::Must).then(|| FOREIGN.into());
                parts.push(Part::Call {
                    function_call: Call { id: sent_id(id), name, args: args(input) },
                    thought_signature: signature.take().or(foreign),
                });
            }
            Block::ToolResult { .. } => {}
        }
    }
    Ok(parts)
}

fn sent_id(id: &str) -> Option<&str> {
    (!id.starts_with(MADE_UP)).then_some(id)
}

fn args(input: &str) -> Args<'_> {
    match object(input) {
        Some(raw) => Args::AsSaid(raw),
        None if input.trim().is_empty() => Args::Empty {},
        None => Args::Invalid { invalid_arguments: input },
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Signed<'a> {
    #[serde(default)]
    thought: bool,
    #[serde(borrow)]
    thought_signature: Cow<'a, str>,
}

fn signed(fields: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Signed<'_>>(fields.get()).ok().map(|signed| signed.thought_signature)
}

fn is_signed_thought(part: &RawValue) -> bool {
    serde_json::from_str::<Signed<'_>>(part.get()).is_ok_and(|signed| signed.thought)
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
