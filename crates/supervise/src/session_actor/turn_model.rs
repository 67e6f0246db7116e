//! What follows when a request to the model fails: the session may go on with its fallback model. Pure.

use protocol::provider::ProviderFailure;

/// The failure of a request, with the facts of the session that decide about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FailedRequest {
    pub(super) kind: ProviderFailure,
    /// The model that was asked is no longer the session's: a person has chosen another one since.
    pub(super) is_of_other_model: bool,
    /// The session's model can be sent the images of the request.
    pub(super) sees_enough: bool,
    /// The fallback model was asked, and has not answered before.
    pub(super) is_of_fallback: bool,
    pub(super) has_fallback: bool,
}

/// The work after the failure of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterFailure {
    /// The conversation is told.
    Report,
    /// The session's model is asked.
    AskPresent,
    /// The fallback model failed too: the session goes back to the one before, and the conversation is told.
    GoBack,
    /// The fallback model is asked.
    FallBack,
}

impl FailedRequest {
    pub(super) fn then(self) -> AfterFailure {
        let is_away =
            matches!(self.kind, ProviderFailure::Overloaded | ProviderFailure::Unreachable);
        if self.is_of_other_model {
            return match is_away && self.sees_enough {
                true => AfterFailure::AskPresent,
                false => AfterFailure::Report,
            };
        }
        // The conversation makes the request smaller, and asks the fallback model again.
        if self.kind == ProviderFailure::ContextFull {
            return AfterFailure::Report;
        }
        match self.is_of_fallback {
            true => AfterFailure::GoBack,
            false if self.has_fallback && is_away => AfterFailure::FallBack,
            false => AfterFailure::Report,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AWAY: FailedRequest = FailedRequest {
        kind: ProviderFailure::Unreachable,
        is_of_other_model: false,
        sees_enough: true,
        is_of_fallback: false,
        has_fallback: true,
    };

    #[test]
    fn the_fallback_model_is_asked_once_and_left_if_it_fails_too() {
        assert_eq!(AWAY.then(), AfterFailure::FallBack);
        let of_fallback = FailedRequest { is_of_fallback: true, ..AWAY };
        let full = FailedRequest { kind: ProviderFailure::ContextFull, ..of_fallback };
        assert_eq!(full.then(), AfterFailure::Report, "a smaller request follows");
        assert_eq!(of_fallback.then(), AfterFailure::GoBack);
    }

    #[test]
    fn only_a_model_that_is_away_is_replaced() {
        let none = FailedRequest { has_fallback: false, ..AWAY };
        assert_eq!(none.then(), AfterFailure::Report);
        let other = FailedRequest { kind: ProviderFailure::ContextFull, ..AWAY };
        assert_eq!(other.then(), AfterFailure::Report);
    }

    #[test]
    fn a_model_that_a_person_chose_meanwhile_is_asked_where_it_sees_enough() {
        let chosen = FailedRequest { is_of_other_model: true, ..AWAY };
        assert_eq!(chosen.then(), AfterFailure::AskPresent);
        let blind = FailedRequest { sees_enough: false, ..chosen };
        assert_eq!(blind.then(), AfterFailure::Report);
        let full = FailedRequest { kind: ProviderFailure::ContextFull, ..chosen };
        assert_eq!(full.then(), AfterFailure::Report);
    }
}
