//! Models that a session goes back to: that of a turn whose slash command or skill names another one, and that of
//! a session whose server is overloaded or does not answer. Pure; `M` is a model.

use protocol::provider::ProviderFailure;

/// The models before the present one.
#[derive(Debug)]
pub(super) struct TurnModel<M> {
    /// The session's, if the running turn has another one.
    before_turn: Option<M>,
    /// The model before the fallback model, until that has answered.
    before_fallback: Option<M>,
}

impl<M> Default for TurnModel<M> {
    fn default() -> Self {
        Self::of_turn(None)
    }
}

/// The failure of a request, with the facts of the session that decide about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FailedRequest {
    pub(super) kind: ProviderFailure,
    /// The model that was asked is no longer the session's: a person has chosen another one since.
    pub(super) is_of_other_model: bool,
    /// The session's model can be sent the images of the request.
    pub(super) sees_enough: bool,
    pub(super) has_fallback: bool,
}

/// The work after the failure of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterFailure<M> {
    /// The conversation is told.
    Report,
    /// The session's model is asked.
    AskPresent,
    /// The fallback model failed too: the session goes back to this one, and the conversation is told.
    GoBack(M),
    /// The fallback model is asked.
    FallBack,
}

impl<M> TurnModel<M> {
    /// With the session's model, if the open turn has another one.
    pub(super) fn of_turn(before_turn: Option<M>) -> Self {
        Self { before_turn, before_fallback: None }
    }

    /// The present model is for the running turn alone.
    pub(super) fn is_of_turn(&self) -> bool {
        self.before_turn.is_some()
    }

    /// A turn begins with a model of its own; the session's is this one.
    pub(super) fn turn_begins(&mut self, of_session: M) {
        self.before_turn = Some(of_session);
    }

    /// The turn has ended. Returns the session's model, if it was another one.
    pub(super) fn turn_ends(&mut self) -> Option<M> {
        let model = self.before_turn.take()?;
        self.before_fallback = None;
        Some(model)
    }

    /// The present model answers.
    pub(super) fn answered(&mut self) {
        self.before_fallback = None;
    }

    /// The fallback model is used from now on, in the place of this one.
    pub(super) fn fell_back(&mut self, from: M) {
        self.before_fallback = Some(from);
    }

    pub(super) fn failed(&mut self, failed: FailedRequest) -> AfterFailure<M> {
        let is_away =
            matches!(failed.kind, ProviderFailure::Overloaded | ProviderFailure::Unreachable);
        if failed.is_of_other_model {
            return match is_away && failed.sees_enough {
                true => AfterFailure::AskPresent,
                false => AfterFailure::Report,
            };
        }
        // The conversation makes the request smaller, and asks the fallback model again.
        if failed.kind == ProviderFailure::ContextFull {
            return AfterFailure::Report;
        }
        match self.before_fallback.take() {
            Some(before) => AfterFailure::GoBack(before),
            None if failed.has_fallback && is_away => AfterFailure::FallBack,
            None => AfterFailure::Report,
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
        has_fallback: true,
    };

    #[test]
    fn a_turn_gives_the_model_of_the_session_back_once() {
        let mut model = TurnModel::default();
        assert_eq!(model.turn_ends(), None);
        model.turn_begins("of the session");
        assert!(model.is_of_turn());
        model.fell_back("of the turn");
        assert_eq!(model.turn_ends(), Some("of the session"));
        assert_eq!((model.is_of_turn(), model.turn_ends()), (false, None));
        assert_eq!(model.failed(AWAY), AfterFailure::FallBack, "its fallback is over too");
    }

    #[test]
    fn the_fallback_model_is_asked_once_and_left_if_it_fails_too() {
        let mut model = TurnModel::default();
        assert_eq!(model.failed(AWAY), AfterFailure::FallBack);
        model.fell_back("first");
        let full = FailedRequest { kind: ProviderFailure::ContextFull, ..AWAY };
        assert_eq!(model.failed(full), AfterFailure::Report, "a smaller request follows");
        assert_eq!(model.failed(AWAY), AfterFailure::GoBack("first"));
        model.fell_back("first");
        model.answered();
        assert_eq!(model.failed(AWAY), AfterFailure::FallBack, "it was a new failure");
    }

    #[test]
    fn only_a_model_that_is_away_is_replaced() {
        let mut model = TurnModel::<&str>::default();
        let none = FailedRequest { has_fallback: false, ..AWAY };
        assert_eq!(model.failed(none), AfterFailure::Report);
        let other = FailedRequest { kind: ProviderFailure::ContextFull, ..AWAY };
        assert_eq!(model.failed(other), AfterFailure::Report);
    }

    #[test]
    fn a_model_that_a_person_chose_meanwhile_is_asked_where_it_sees_enough() {
        let mut model = TurnModel::<&str>::default();
        let chosen = FailedRequest { is_of_other_model: true, ..AWAY };
        assert_eq!(model.failed(chosen), AfterFailure::AskPresent);
        assert_eq!(
            model.failed(FailedRequest { sees_enough: false, ..chosen }),
            AfterFailure::Report
        );
        let full = FailedRequest { kind: ProviderFailure::ContextFull, ..chosen };
        assert_eq!(model.failed(full), AfterFailure::Report);
    }
}
