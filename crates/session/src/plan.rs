//! A plan that no person could approve is the answer of its turn: it is kept as the model's last
//! words, and the turn ends. Pure.

use protocol::call::{Call, Outcome, ToolResult};
use protocol::judgement::EXIT_PLAN;
use protocol::session::SessionEvent;
use serde_json::{Map, Value};

/// Plans of the running round.
#[derive(Debug, Default)]
pub(crate) struct ShownPlans {
    /// Calls that wait for their result.
    open: Vec<Call>,
    /// The newest plan that was refused without a person.
    refused: Option<String>,
}

impl ShownPlans {
    /// Takes in one thing that happened.
    pub(crate) fn apply(&mut self, happened: &SessionEvent) {
        match happened {
            SessionEvent::Called { call } if call.tool == EXIT_PLAN => self.open.push(call.clone()),
            SessionEvent::Result { call, result, .. } => {
                let Some(at) = self.open.iter().position(|open| open.id == *call) else { return };
                let call = self.open.remove(at);
                if is_refused(result) {
                    self.refused = text_of(&call).filter(|plan| !plan.trim().is_empty());
                }
            }
            SessionEvent::Answer { .. }
            | SessionEvent::Prompt { .. }
            | SessionEvent::TurnEnded { .. } => *self = Self::default(),
            SessionEvent::Called { .. }
            | SessionEvent::BackgroundEnded { .. }
            | SessionEvent::Joined { .. }
            | SessionEvent::Compacted { .. } => {}
        }
    }

    /// The plan with which the turn ends, once its calls have ended.
    pub(crate) fn take_refused(&mut self) -> Option<String> {
        self.refused.take()
    }
}

/// The result of an approved plan.
pub(crate) fn approved() -> ToolResult {
    let text = "The session is not in permission mode `plan` any more: carry the plan out. Each \
                change is judged as usual.";
    ToolResult {
        outcome: Outcome::Done,
        text: text.to_owned(),
        summary: "the session left mode plan".to_owned(),
        is_error: false,
        code: None,
        images: Vec::new(),
    }
}

/// True if a rule, or the absence of a person, refused the call; not if a person did.
fn is_refused(result: &ToolResult) -> bool {
    matches!(result.outcome, Outcome::Refused { .. })
}

fn text_of(call: &Call) -> Option<String> {
    let input: Map<String, Value> = serde_json::from_str(&call.input).ok()?;
    Some(input.get("plan")?.as_str()?.to_owned())
}
