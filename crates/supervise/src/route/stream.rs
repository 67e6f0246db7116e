//! The model's stream as people see it. Pure; used by the router.

use super::RouteStep;
use protocol::client::{AnswerPart, ClientEvent};
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
    let text = format!("{reason}; retrying {attempt}/{of} in {:.1} s", wait_ms as f64 / 1000.0);
    let message = FromProvider::Retrying { round, attempt, of, wait_ms, reason };
    vec![
        RouteStep::ToSession(ToSession::Stream(message)),
        RouteStep::Show(ClientEvent::Struck { reason: text }),
    ]
}

/// The part of a delta that people see.
pub(super) fn shown(delta: &AnswerDelta) -> Option<ClientEvent> {
    match delta {
        AnswerDelta::Text(text) => {
            Some(ClientEvent::Delta { part: AnswerPart::Text, text: text.clone() })
        }
        AnswerDelta::Thinking(text) => {
            Some(ClientEvent::Delta { part: AnswerPart::Thinking, text: text.clone() })
        }
        AnswerDelta::ThinkingDone { .. }
        | AnswerDelta::ToolStart { .. }
        | AnswerDelta::ToolInput(_)
        | AnswerDelta::BlockDone => None,
    }
}
