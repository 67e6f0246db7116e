//! The Agent Client Protocol, version 1, from the agent's side: an editor drives sessions of agentd by JSON-RPC lines.
//! <https://agentclientprotocol.com/protocol/v1/overview>
//!
//! All of it is pure; `agentd acp` reads and writes. `frame` reads and makes lines of JSON-RPC, `params` the
//! parameters of requests. A [`SessionView`] is one session as an editor sees it: it takes what happens there and
//! what the editor asks, and says what the editor and the session get. Of its parts, `updates` shows events, `prompts` knows which
//! request a turn's end answers, `questions` which question an answer belongs to, and `settings` the choices of the
//! session. Types are our own: those of the protocol's crate would change how every program of agentd writes JSON.

mod frame;
mod params;
mod prompts;
mod questions;
mod session_view;
mod settings;
mod updates;

pub use frame::{Incoming, RpcError, error_line, notification_line, request_line, result_line};
pub use params::{
    CancelParams, CloseParams, ConfigParams, HandedServers, InitializeParams, ListParams,
    LoadParams, ModeParams, NewParams, PromptParams, Reply, read,
};
pub use session_view::{EditorOutput, OpenedAs, SessionView};
