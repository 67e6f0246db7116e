//! The wire to `agentd-provider`: requests to a model out, its stream back.
//!
//! Phases: `Configure` once, then at most one request at a time. Between `Ask` and one of `Ended`,
//! `Failed` or `Cancelled`, the worker may stream. `Retrying` voids everything streamed since `Ask`.

use crate::content::{ModelRequest, StopReason, Usage};
use crate::hosts::HostPort;
use crate::log::LogLine;
use crate::{Decode, Encode, Link};
pub use journal::ProviderFailure;

/// The wire's name.
#[derive(Debug)]
pub enum ProviderLink {}

impl Link for ProviderLink {
    type To = ToProvider;
    type From = FromProvider;
    const NAME: &'static str = "provider";
    /// The largest request a vendor takes (Anthropic: 32 MB).
    const MESSAGE_CAP: usize = 32 << 20;
}

/// Where answers come from.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum SourceSetup {
    /// A server.
    Server(ModelServer),
    /// A recorded session, read from the descriptor passed as `Paper::Replay`.
    Replay(ReplaySpeed),
}

/// How quickly a recording answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ReplaySpeed {
    /// Without a wait.
    Full,
    /// As it was when it was recorded.
    Recorded,
}

/// A server, and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ModelServer {
    /// The language it speaks.
    pub api: Api,
    /// For example `https://api.anthropic.com`.
    pub base_url: String,
    /// How the key is sent.
    pub auth: Auth,
    /// Sent with each request beside our own; names and values.
    pub headers: Vec<(String, String)>,
    /// How long the model shall think; its own choice if none is named.
    pub effort: Option<Effort>,
}

/// The vendors' interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions, which many other servers speak too.
    Chat,
    /// Google Gemini.
    Gemini,
}

/// How a key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Auth {
    /// In the vendor's own header: `x-api-key`, `x-goog-api-key`.
    ApiKey,
    /// `Authorization: Bearer`.
    Bearer,
    /// Not at all: a server on this machine that asks for none.
    Keyless,
}

/// How long a model shall think before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Effort {
    /// Hardly.
    Low,
    /// Somewhat.
    Medium,
    /// Long.
    High,
}

/// How long to wait and how often to try. All times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ProviderTimeouts {
    /// Tries for one request, the first included.
    pub tries: u32,
    /// The same while the server is overloaded.
    pub overload_tries: u32,
    /// Longest wait that a server may ask for.
    pub max_wait_ms: u64,
    /// Without a byte for so long, the stream is broken.
    pub byte_timeout_ms: u64,
    /// Without an event other than a ping for so long, the stream is broken.
    pub progress_timeout_ms: u64,
    /// Longest time to connect.
    pub connect_timeout_ms: u64,
}

/// A descriptor sent with the configuration, by its purpose.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum PassedFd {
    /// A sealed memory file that holds the key.
    Key,
    /// The recording to play.
    Replay,
    /// The file to record into.
    Record,
    /// A sealed memory file that holds the key for this host. The supervisor passes it to proxies of
    /// commands, never to the provider.
    Credential(HostPort),
    /// A sealed memory file that holds the value of this variable, for MCP servers that name it.
    ServerVariable(String),
}

impl PassedFd {
    /// True if calls get it, and never the provider.
    #[must_use]
    pub fn is_for_calls(&self) -> bool {
        matches!(self, Self::Credential(_) | Self::ServerVariable(_))
    }
}

/// From the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToProvider {
    /// First and once. The descriptors named in `papers` follow in that order, one after another,
    /// right behind this frame.
    Configure {
        /// Where answers come from.
        source: SourceSetup,
        /// Waits and tries.
        patience: ProviderTimeouts,
        /// The proxy from the caller's environment, if any.
        proxy: Option<String>,
        /// The purpose of each passed descriptor.
        papers: Vec<PassedFd>,
    },
    /// One request; only when none is open.
    Ask(ModelRequest),
    /// Drop the open request; answered by `Cancelled` unless it had just ended.
    Cancel,
    /// Answered by `Pong` with the same number.
    Ping(u64),
}

/// A piece of an answer, as the decoder saw it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum AnswerDelta {
    /// A text block goes on.
    Text(String),
    /// A thinking block goes on; for people only.
    Thinking(String),
    /// A thinking block is whole; the vendor's JSON, to be sent back as it is. A large block comes
    /// as one message of several frames.
    ThinkingDone {
        /// The vendor's block.
        raw: String,
    },
    /// A call begins.
    ToolStart {
        /// The vendor's id.
        id: String,
        /// As the model said it.
        name: String,
    },
    /// The arguments of the call go on.
    ToolInput(String),
    /// A text block or a call is whole. A call without it is unfinished and never runs.
    BlockDone,
}

/// From the worker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromProvider {
    /// The configuration was understood.
    Ready,
    /// A piece of block `index` of the answer to `round`. Blocks may interleave; each index opens
    /// with its first delta and is closed by `BlockDone` or `ThinkingDone`.
    Delta {
        /// The request's number.
        round: u32,
        /// The block's place in the answer.
        index: u32,
        /// The piece.
        delta: AnswerDelta,
    },
    /// The attempt failed; discard its deltas.
    Retrying {
        /// The request's number.
        round: u32,
        /// The try to come, counted from 1.
        attempt: u32,
        /// How many there are.
        of: u32,
        /// Time until it starts, in milliseconds.
        wait_ms: u64,
        /// Why, in plain words.
        reason: String,
    },
    /// The answer is whole: its terminal event was seen.
    Ended {
        /// The request's number.
        round: u32,
        /// Why it ended.
        stop: StopReason,
        /// Tokens.
        usage: Usage,
        /// The model's own name, as the vendor says it.
        model: String,
    },
    /// The request failed for good; discard its deltas.
    Failed {
        /// The request's number.
        round: u32,
        /// The kind of failure.
        kind: ProviderFailure,
        /// The server's words, with its request id where it gave one.
        message: String,
    },
    /// The request was dropped.
    Cancelled {
        /// The request's number.
        round: u32,
    },
    /// From now on the model is asked otherwise than before, which people should know. Legal between
    /// `Ask` and the end of its answer.
    Notice {
        /// The reason, as text.
        text: String,
    },
    /// Alive.
    Pong(u64),
    /// For the log.
    Log(LogLine),
}
