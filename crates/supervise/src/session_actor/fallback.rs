//! A request that failed. Where the server of the session's model is overloaded or does not answer, the session goes
//! on with its fallback model. The session actor puts that on disk before it sends the request again, and tells
//! people.

use super::models::{
    ELSEWHERE, Recording, before_fallback, check_cost, find, is_reached, sees_enough,
};
use super::new_setting::NewSetting;
use crate::route::Router;
use protocol::provider::{FromProvider, ProviderFailure};
use setup::chosen_model::ChosenModel;
use setup::session_spec::SessionSpec;
use setup::settings::Settings;

/// What follows from a message of the provider, beside its own way.
#[derive(Default)]
pub(super) struct AfterMessage {
    /// For the person: the fallback model cannot be used.
    pub(super) notice: Option<String>,
    /// The session has another model from now on, with the words for the record.
    pub(super) change: Option<(NewSetting, &'static str)>,
    /// The request is sent again to the model that the session has then, for this reason. The conversation does not
    /// hear of the failure.
    pub(super) again: Option<String>,
}

/// The request that failed.
struct Failure<'a> {
    kind: ProviderFailure,
    message: &'a str,
    /// The model that was asked.
    asked: &'a str,
    /// It shows images.
    with_images: bool,
}

/// Looks for the failure of a request. A fallback model that answers stays.
pub(super) async fn after_message(
    spec: &mut SessionSpec,
    router: &Router,
    message: &FromProvider,
    recording: Recording,
) -> AfterMessage {
    if let FromProvider::Ended { round, .. } = message
        && router.awaits_answer_to(*round)
        && spec.settings().has_fallback()
    {
        spec.change_settings(Settings::keep_fallback);
    }
    let FromProvider::Failed { round, kind, message } = message else {
        return AfterMessage::default();
    };
    if !router.awaits_answer_to(*round) {
        return AfterMessage::default();
    }
    let failure = Failure {
        kind: *kind,
        message,
        asked: router.asked_model().unwrap_or_default(),
        with_images: router.asks_with_images(),
    };
    after_failure(spec, failure, recording).await
}

async fn after_failure(
    spec: &SessionSpec,
    failure: Failure<'_>,
    recording: Recording,
) -> AfterMessage {
    let now = spec.model();
    let name = spec.config().provider.fallback_model.clone();
    let failed = FailedRequest {
        kind: failure.kind,
        is_of_other_model: failure.asked != now.model(),
        sees_enough: sees_enough(now, failure.with_images),
        is_of_fallback: spec.settings().has_fallback(),
        has_fallback: name.is_some(),
    };
    let (message, holder, failed_name) = (failure.message, model_holder(spec), now.name());
    match (failed.next(), name) {
        (NextModel::Present, _) => {
            let again = Some(format!("{} does not answer", failure.asked));
            AfterMessage { again, ..AfterMessage::default() }
        }
        (NextModel::BeforeFallback, _) => {
            let before = before_fallback(spec);
            let text = format!(
                "the fallback model {failed_name} does not answer either ({message}); this {holder} is back on {}",
                before.model().name(),
            );
            let change = Some((NewSetting::NoFallback(text), "fallback model failed"));
            AfterMessage { change, ..AfterMessage::default() }
        }
        (NextModel::Fallback, Some(name)) => {
            match usable_fallback(spec, &name, &failure, recording).await {
                Ok(Some(model)) => {
                    let text = format!(
                        "{failed_name} does not answer ({message}); this {holder} goes on with the fallback model {name}. \
                         `:model {failed_name}` goes back"
                    );
                    let new = NewSetting::Fallback(name, model, text);
                    let again = Some(format!("{failed_name} does not answer"));
                    AfterMessage { notice: None, change: Some((new, "fallback model")), again }
                }
                // It is the model that failed.
                Ok(None) => AfterMessage::default(),
                Err(why) => {
                    let text = format!("the fallback model {name} cannot be used: {why}");
                    AfterMessage { notice: Some(text), ..AfterMessage::default() }
                }
            }
        }
        (NextModel::Fallback | NextModel::None, _) => AfterMessage::default(),
    }
}

/// The thing that the present model is for.
fn model_holder(spec: &SessionSpec) -> &'static str {
    match spec.settings().has_turn_model() {
        true => "turn",
        false => "session",
    }
}

/// The fallback model; none if the session uses it already.
async fn usable_fallback(
    spec: &SessionSpec,
    name: &str,
    failure: &Failure<'_>,
    recording: Recording,
) -> Result<Option<ChosenModel>, String> {
    let model = find(spec, name).await.map_err(|no| no.message)?;
    let elsewhere = spec.needs_new_provider(&model);
    if model.model() == spec.model().model() && !elsewhere {
        return Ok(None);
    }
    if failure.kind == ProviderFailure::Unreachable && !elsewhere {
        return Err("it is on the same server, which does not answer".to_owned());
    }
    if !sees_enough(&model, failure.with_images) {
        return Err(format!(
            "the request shows images, and agentd does not know that {name} sees them"
        ));
    }
    check_cost(spec, &model).map_err(|no| no.message)?;
    match is_reached(spec, &model, recording) {
        true => Ok(Some(model)),
        false => Err(ELSEWHERE.to_owned()),
    }
}

/// The failure of a request, with the facts of the session that decide about it.
#[derive(Debug, Clone, Copy)]
struct FailedRequest {
    kind: ProviderFailure,
    /// The model that was asked is no longer the session's: a person has chosen another one since.
    is_of_other_model: bool,
    /// The session's model can be sent the images of the request.
    sees_enough: bool,
    /// The fallback model was asked, and has not answered before.
    is_of_fallback: bool,
    has_fallback: bool,
}

/// The model that a failed request goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextModel {
    None,
    /// The session's, which is another one now.
    Present,
    /// The session goes back to it; the request does not go there.
    BeforeFallback,
    Fallback,
}

impl FailedRequest {
    fn next(self) -> NextModel {
        let is_away =
            matches!(self.kind, ProviderFailure::Overloaded | ProviderFailure::Unreachable);
        if self.is_of_other_model {
            return match is_away && self.sees_enough {
                true => NextModel::Present,
                false => NextModel::None,
            };
        }
        // The conversation makes the request smaller, and asks the fallback model again.
        if self.kind == ProviderFailure::ContextFull {
            return NextModel::None;
        }
        match self.is_of_fallback {
            true => NextModel::BeforeFallback,
            false if self.has_fallback && is_away => NextModel::Fallback,
            false => NextModel::None,
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
        assert_eq!(AWAY.next(), NextModel::Fallback);
        let of_fallback = FailedRequest { is_of_fallback: true, ..AWAY };
        let full = FailedRequest { kind: ProviderFailure::ContextFull, ..of_fallback };
        assert_eq!(full.next(), NextModel::None, "a smaller request follows");
        assert_eq!(of_fallback.next(), NextModel::BeforeFallback);
    }

    #[test]
    fn only_a_model_that_is_away_is_replaced() {
        let alone = FailedRequest { has_fallback: false, ..AWAY };
        assert_eq!(alone.next(), NextModel::None);
        let other = FailedRequest { kind: ProviderFailure::ContextFull, ..AWAY };
        assert_eq!(other.next(), NextModel::None);
    }

    #[test]
    fn a_model_that_a_person_chose_meanwhile_is_asked_where_it_sees_enough() {
        let chosen = FailedRequest { is_of_other_model: true, ..AWAY };
        assert_eq!(chosen.next(), NextModel::Present);
        let blind = FailedRequest { sees_enough: false, ..chosen };
        assert_eq!(blind.next(), NextModel::None);
        let full = FailedRequest { kind: ProviderFailure::ContextFull, ..chosen };
        assert_eq!(full.next(), NextModel::None);
    }
}
