//! The model's stream as people see it. Pure; used by the router.

use super::RouteStep;
use protocol::client::{AnswerPart, ClientEvent, NextTry};
use protocol::provider::{AnswerDelta, FromProvider};
use protocol::session::ToSession;

/// An answer that is void, for the conversation and for people.
pub(super) fn strike(
    round: u32,
    attempt: u32,
    of: u32,
    wait_ms: u64,
    reason: String,
) -> Vec<RouteStep> {
    let next = Some(NextTry { attempt, of, wait_ms });
    let shown = ClientEvent::Struck { reason: reason.clone(), next };
    let message = FromProvider::Retrying { round, attempt, of, wait_ms, reason };
    vec![RouteStep::ToSession(ToSession::Stream(message)), RouteStep::Show(shown)]
}

/// The part of a delta that people see.
pub(super) fn shown(delta: &AnswerDelta) -> Option<ClientEvent> {
    let (part, text) = match delta {
        AnswerDelta::Text(text) => (AnswerPart::Text, text),
        AnswerDelta::Thinking(text) => (AnswerPart::Thinking, text),
        AnswerDelta::ToolStart { id: _, name } => (AnswerPart::Tool, name),
        AnswerDelta::ToolInput(text) => (AnswerPart::Arguments, text),
        AnswerDelta::ThinkingDone { .. } | AnswerDelta::BlockDone => return None,
    };
    Some(ClientEvent::Delta { part, text: text.clone() })
}
