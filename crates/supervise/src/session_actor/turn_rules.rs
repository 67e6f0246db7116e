//! The rules by which the broker judges: the session's, and those of a slash command, which allow until
//! the turn ends. Used by the session actor.

use protocol::broker::ToBroker;
use protocol::judgement::Rule;
use protocol::session::SessionEvent;
use setup::session_spec::SessionSpec;

/// The rules of the turn that this event begins or ends.
pub(super) fn turn_rules(happened: &SessionEvent) -> Option<Vec<Rule>> {
    match happened {
        SessionEvent::Prompt { expanded, .. } => {
            Some(expanded.as_ref().map(|expanded| expanded.allow.clone()).unwrap_or_default())
        }
        SessionEvent::TurnEnded { .. } => Some(Vec::new()),
        SessionEvent::Answer { .. }
        | SessionEvent::Called { .. }
        | SessionEvent::Result { .. }
        | SessionEvent::BackgroundEnded { .. }
        | SessionEvent::Joined { .. }
        | SessionEvent::Compacted { .. } => None,
    }
}

/// The session's rules, and those that allow until the turn ends.
pub(super) fn rules(spec: &SessionSpec) -> ToBroker {
    ToBroker::Rules { session: spec.id().clone(), rules: spec.broker_rules() }
}
