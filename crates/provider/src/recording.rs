//! A recorded session as a file: made by `--record`, played by the `replay` source, or written by
//! hand.
//!
//! # Format
//!
//! UTF-8 text, one JSON object a line, each with one key; empty lines and lines that begin with
//! `//` are skipped. The first line is `{"agentd_recording":1}`. Then, for each request:
//!
//! - `{"request":{"round":1,"shape":["user: \"hi\""],"api":"gemini","tries":5,"body":{…}}}`: the
//!   request's number, the [`shape`](shape()) of its conversation, the language of its chunks (as
//!   `provider.name` says it; `anthropic` if left out), the tries there were for it, and its body as
//!   sent (for people; not compared, and no header of the request is ever in the file, so neither
//!   is the key).
//!   `{"request":null}` stands for any request: its number is one more than that of the request
//!   before it, and no shape is compared.
//! - `{"chunk":{"ms":12,"text":"event: …"}}`: the server-sent events of one network read, and the
//!   time since the request in milliseconds. `"base64"` replaces `"text"` where the read split a
//!   character. The time counts only in a replay at recorded speed (`provider.replay_speed`). A
//!   chunk without a time is played at once.
//! - or, by hand, `{"say":[{"text":"I look."},{"call":"read","input":{"path":"a.rs"}}]}`: the whole
//!   answer in short. Pieces are `text`, `thinking` (with `signature`) and `call` (with `input`,
//!   `{}` if left out, and `id`, made up if left out); the reason to stop follows from them.
//! - `{"retrying":{"ms":900,"attempt":2,"of":5,"wait_ms":480,"reason":"…"}}`: the attempt broke
//!   here, and the next one's chunks follow. `wait_ms` is for the message; the real wait is in the
//!   chunks' times.
//! - `{"failed":{"ms":900,"kind":"overloaded","message":"…"}}`: the request failed for good.
//! - `{"cancelled":1}`: it was dropped there; a replay that comes here says that it departs.
//!
//! Where one number occurs twice (the provider was restarted and asked again), the last counts.

mod line;
mod recorded;
mod scripted;
mod shape;
mod write;

pub(crate) use recorded::RecordedEvent;
pub use recorded::{Recording, RecordingError};
pub use shape::shape;
pub use write::Recorder;

/// An attempt broke and another follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedRetry {
    pub attempt: u32,
    pub of: u32,
    pub wait_ms: u64,
    pub reason: String,
}
