//! A client that asks for a session which is open: may it join, who can be asked from then on, and the message that it
//! gets. Pure.

use protocol::client::{RequestFailure, SessionRequest, ToClient};
use protocol::confinement::Tier;
use protocol::judgement::Audience;
use setup::open_failure::OpenFailure;
use setup::session_spec::{SessionSpec, describe_confinement};

/// The use of a session that a client wants to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionUse {
    /// No turn is open, no prompt waits, and no client is attached.
    Unused,
    /// Clients are attached.
    Watched,
    /// A turn is open, or a prompt waits.
    Works,
}

/// The moment from which the people of a new client can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AudienceFrom {
    /// They are the same.
    Already,
    Now,
    NextTurn,
}

/// Checks that a client may join, and finds out from when on its people can be asked.
///
/// # Errors
/// For the client.
pub(super) fn check_join(
    spec: &SessionSpec,
    opening: &SessionRequest,
    present: SessionUse,
) -> Result<AudienceFrom, OpenFailure> {
    spec.check_join(opening)?;
    spec.check_joined_limit(opening)?;
    audience_from(opening.audience, spec.rules().audience, present).ok_or_else(|| {
        let message = format!(
            "session {id} is open in a terminal: a script in it would wait for that \
             person's answers. Detach the terminal first, or work in a copy: \
             `agentd fork {id}`",
            id = spec.id()
        );
        OpenFailure::new(RequestFailure::Held, message)
    })
}

/// None where a script would join a person.
fn audience_from(joins: Audience, before: Audience, present: SessionUse) -> Option<AudienceFrom> {
    match (joins, before, present) {
        (Audience::NonInteractive, Audience::Person, SessionUse::Watched | SessionUse::Works) => {
            None
        }
        (Audience::Person, Audience::NonInteractive, SessionUse::Works) => {
            Some(AudienceFrom::NextTurn)
        }
        (joins, before, _) if joins != before => Some(AudienceFrom::Now),
        (Audience::NonInteractive | Audience::Person, _, _) => Some(AudienceFrom::Already),
    }
}

/// Describes the session to the client that opened it.
pub(super) fn opened_message(
    spec: &SessionSpec,
    (tier, last_seq): (Tier, u64),
    opening: &SessionRequest,
) -> ToClient {
    ToClient::Opened {
        session: spec.id().clone(),
        name: spec.name().to_owned(),
        model: spec.setup().model.clone(),
        facts: spec.config().provider.facts,
        tools: spec.setup().offered().map(|tool| tool.spec.name.clone()).collect(),
        mode: spec.rules().mode,
        network: spec.confinement().network,
        hosts: spec.confinement().hosts.clone(),
        sandbox: format!("{}; {}", tier.in_words(), describe_confinement(spec.confinement())),
        last_seq,
        warnings: spec
            .config()
            .warnings
            .iter()
            .map(ToString::to_string)
            .chain(spec.notes().iter().cloned())
            .chain(spec.mode_note())
            .chain(spec.ignored_flags(opening))
            .collect(),
        temp: spec.confinement().temp.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_joins_a_person_only_where_nothing_is_in_use() {
        let of = |present| audience_from(Audience::NonInteractive, Audience::Person, present);
        assert_eq!(of(SessionUse::Unused), Some(AudienceFrom::Now));
        assert_eq!(of(SessionUse::Watched), None);
        assert_eq!(of(SessionUse::Works), None);
    }

    #[test]
    fn a_person_who_joins_a_script_is_asked_once_its_turn_is_over() {
        let of = |present| audience_from(Audience::Person, Audience::NonInteractive, present);
        assert_eq!(of(SessionUse::Watched), Some(AudienceFrom::Now));
        assert_eq!(of(SessionUse::Works), Some(AudienceFrom::NextTurn));
        let alike = audience_from(Audience::Person, Audience::Person, SessionUse::Works);
        assert_eq!(alike, Some(AudienceFrom::Already));
    }
}
