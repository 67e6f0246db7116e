//! One line of a recording as types; used by the reader and the writer next door.

use protocol::provider::{Api, ProviderFailure};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The version in the first line.
pub(super) const VERSION: u32 = 1;

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum RecordingLine<'a> {
    AgentdRecording(u32),
    #[serde(borrow)]
    Request(Option<RequestLine<'a>>),
    #[serde(borrow)]
    Chunk(ChunkLine<'a>),
    Say(Vec<ScriptedPiece>),
    #[serde(borrow)]
    Retrying(RetryingLine<'a>),
    Failed(FailedLine),
    Cancelled(u32),
}

/// A request that was recorded.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestLine<'a> {
    pub round: u32,
    pub shape: Vec<String>,
    /// The language of its chunks; Anthropic's if absent.
    #[serde(default, skip_serializing_if = "ApiName::is_anthropic")]
    pub api: ApiName,
    /// Tries there were for it; those of the day if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub body: Option<&'a RawValue>,
}

/// One network read, as `text` or as `base64`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChunkLine<'a> {
    #[serde(default)]
    pub ms: u64,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

/// A piece of a hand-written answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum ScriptedPiece {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    Call {
        call: String,
        #[serde(default)]
        id: Option<String>,
        #[serde(default)]
        input: Option<serde_json::Map<String, serde_json::Value>>,
    },
}

/// An attempt broke and another follows.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RetryingLine<'a> {
    #[serde(default)]
    pub ms: u64,
    pub attempt: u32,
    pub of: u32,
    pub wait_ms: u64,
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
}

/// [`Api`] as the file names it: the dialect, which several vendors may share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ApiName {
    #[default]
    Anthropic,
    #[serde(rename = "openai")]
    Responses,
    #[serde(rename = "openai-chat")]
    Chat,
    Gemini,
}

impl ApiName {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
    fn is_anthropic(&self) -> bool {
        *self == Self::Anthropic
    }
}

impl From<Api> for ApiName {
    fn from(api: Api) -> Self {
        match api {
            Api::Anthropic => Self::Anthropic,
            Api::Responses => Self::Responses,
            Api::Chat => Self::Chat,
            Api::Gemini => Self::Gemini,
        }
    }
}

impl From<ApiName> for Api {
    fn from(name: ApiName) -> Self {
        match name {
            ApiName::Anthropic => Self::Anthropic,
            ApiName::Responses => Self::Responses,
            ApiName::Chat => Self::Chat,
            ApiName::Gemini => Self::Gemini,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FailedLine {
    #[serde(default)]
    pub ms: u64,
    pub kind: FailureName,
    pub message: String,
}

/// [`Failure`] as the file names it: the file lives longer than the wire.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FailureName {
    KeyRefused,
    NoKey,
    Unreachable,
    Rejected,
    Overloaded,
    RecordingDeparted,
    ContextFull,
    BadRequest,
}

impl From<ProviderFailure> for FailureName {
    fn from(kind: ProviderFailure) -> Self {
        match kind {
            ProviderFailure::KeyRefused => Self::KeyRefused,
            ProviderFailure::NoKey => Self::NoKey,
            ProviderFailure::Unreachable => Self::Unreachable,
            ProviderFailure::Rejected => Self::Rejected,
            ProviderFailure::Overloaded => Self::Overloaded,
            ProviderFailure::RecordingDeparted => Self::RecordingDeparted,
            ProviderFailure::ContextFull => Self::ContextFull,
            ProviderFailure::BadRequest => Self::BadRequest,
        }
    }
}

impl From<FailureName> for ProviderFailure {
    fn from(kind: FailureName) -> Self {
        match kind {
            FailureName::KeyRefused => Self::KeyRefused,
            FailureName::NoKey => Self::NoKey,
            FailureName::Unreachable => Self::Unreachable,
            FailureName::Rejected => Self::Rejected,
            FailureName::Overloaded => Self::Overloaded,
            FailureName::RecordingDeparted => Self::RecordingDeparted,
            FailureName::ContextFull => Self::ContextFull,
            FailureName::BadRequest => Self::BadRequest,
        }
    }
}
