//! Changes of the model that no person asks for now. The session goes on with the fallback model where the server
//! of its model is overloaded or does not answer. The change is durable before the request is sent again, and
//! people are told. A turn whose slash command or skill names a model uses that until it ends: the record of the
//! prompt has its name. The layers of the settings have the model that the session goes back to.

use super::state::SessionActorState;
use super::turn_model::{AfterFailure, FailedRequest};
use crate::messages::SessionMsg;
use crate::records::encode;
use protocol::client::{ClientEvent, SettingChange};
use protocol::provider::{FromProvider, ProviderFailure, ToProvider};
use protocol::session::ToSession;
use ractor::ActorRef;
use setup::chosen_model::ChosenModel;
use setup::session_spec::{SessionSpec, check_price};
use setup::settings::{LayerName, Settings};

impl SessionActorState {
    /// Sends a request that failed for want of its model to another model; false if there is none, or
    /// if it cannot be used.
    pub(super) async fn fall_back(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        message: &FromProvider,
    ) -> bool {
        if let FromProvider::Ended { round, .. } = message
            && self.turn.router.awaits_answer_to(*round)
            && self.spec.settings().has_fallback()
        {
            self.spec.change_settings(Settings::keep_fallback);
        }
        let FromProvider::Failed { round, kind, message } = message else { return false };
        if !self.turn.router.awaits_answer_to(*round) {
            return false;
        }
        let (now, images) = (self.spec.model().clone(), self.turn.router.asks_with_images());
        let asked = self.turn.router.asked_model().unwrap_or_default().to_owned();
        let fallback = self.spec.config.provider.fallback_model.clone();
        let failed = FailedRequest {
            kind: *kind,
            is_of_other_model: asked != now.model(),
            sees_enough: sees_enough(&now, images),
            is_of_fallback: self.spec.settings().has_fallback(),
            has_fallback: fallback.is_some(),
        };
        match (failed.then(), fallback) {
            (AfterFailure::AskPresent, _) => {
                self.ask_again(myself, format!("{asked} does not answer")).await;
                true
            }
            (AfterFailure::GoBack, _) => {
                self.go_back(message).await;
                false
            }
            (AfterFailure::FallBack, Some(name)) => {
                self.use_fallback(myself, now, &name, (*kind, message)).await
            }
            (AfterFailure::FallBack | AfterFailure::Report, _) => false,
        }
    }

    async fn use_fallback(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        now: ChosenModel,
        name: &str,
        (kind, message): (ProviderFailure, &str),
    ) -> bool {
        let images = self.turn.router.asks_with_images();
        let model = match fallback(&self.spec, name, kind, images).await {
            Ok(Some(model)) => self.is_reached(model).map(Some),
            other => other,
        };
        let model = match model {
            Ok(Some(model)) => model,
            // It is the model that failed.
            Ok(None) => return false,
            Err(why) => {
                let text = format!("the fallback model {name} cannot be used: {why}");
                self.show(&ClientEvent::Notice { text });
                return false;
            }
        };
        if !self.record_model(name, "fallback model").await {
            return false;
        }
        let failed = now.name();
        let text = format!(
            "{failed} does not answer ({message}); this {} goes on with the fallback model {name}. \
             `:model {failed}` goes back",
            self.model_holder()
        );
        let reason = format!("{failed} does not answer");
        self.show(&ClientEvent::Notice { text });
        self.change_model(|settings| settings.fall_back(model));
        self.ask_again(myself, reason).await;
        true
    }

    /// The fallback model does not answer either.
    async fn go_back(&mut self, message: &str) {
        let mut before = self.spec.settings().clone();
        before.clear(LayerName::Fallback);
        let (name, failed) = (before.model().name(), self.spec.model().name().to_owned());
        if self.record_model(name, "fallback model failed").await {
            let text = format!(
                "the fallback model {failed} does not answer either ({message}); this {} is back on {name}",
                self.model_holder()
            );
            self.change_model(|settings| settings.clear(LayerName::Fallback));
            self.show(&ClientEvent::Notice { text });
        }
    }

    /// The model of a turn alone ends with the turn, so no record changes that of the session.
    async fn record_model(&mut self, name: &str, by: &str) -> bool {
        if self.spec.settings().has_turn_model() {
            return true;
        }
        let change = SettingChange::Model(name.to_owned());
        self.record(vec![encode::setting_change(&change, by.to_owned())]).await.is_ok()
    }

    /// The next request uses the model that holds after this change.
    pub(super) fn change_model(&mut self, change: impl FnOnce(&mut Settings)) {
        let before = self.spec.model().source();
        self.spec.change_settings(change);
        if before != self.spec.model().source() {
            self.workers.provider.outdate();
        }
        self.workers.conversation.send(self.spec.model_message());
        self.show(&self.model_event());
    }

    /// Sends the open request to the session's model.
    async fn ask_again(&mut self, myself: &ActorRef<SessionMsg>, reason: String) {
        let setup = &self.spec.setup;
        let (model, limits) = (setup.model.clone(), (setup.max_tokens, setup.facts));
        let steps = self.turn.router.ask_another(model, limits, reason);
        self.carry_out(myself, steps).await;
    }

    /// The model of this name, for a turn.
    ///
    /// # Errors
    /// Why it cannot be used, for the person.
    pub(super) async fn usable_model(&self, name: &str) -> Result<ChosenModel, String> {
        usable(&self.spec, name).await.and_then(|model| self.is_reached(model))
    }

    fn is_reached(&self, model: ChosenModel) -> Result<ChosenModel, String> {
        match self.spec.needs_new_provider(&model) && !self.workers.provider.may_suspend() {
            true => Err("the session uses a recording, and it is on another server".to_owned()),
            false => Ok(model),
        }
    }

    /// A prompt is about to go to the conversation: its model comes first.
    pub(super) async fn begin_turn_model(&mut self, message: &ToSession) {
        let ToSession::Prompt { expanded: Some(prompt), .. } = message else { return };
        let Some(name) = &prompt.model else { return };
        if self.spec.settings().has_turn_model() {
            // It is sent again, to another process.
            return;
        }
        match self.usable_model(name).await {
            Ok(model) => self.change_model(|settings| settings.begin_turn_model(model)),
            Err(why) => {
                let now = &self.spec.setup.model;
                let text = format!("the model {name} of this turn cannot be used, {now} is: {why}");
                self.show(&ClientEvent::Notice { text });
            }
        }
    }

    /// The turn has ended: the session's model is used again.
    pub(super) fn end_turn_model(&mut self) {
        if self.spec.settings().has_turn_model() {
            self.change_model(Settings::end_turn_model);
        }
    }

    /// The thing that the present model is for.
    fn model_holder(&self) -> &'static str {
        match self.spec.settings().has_turn_model() {
            true => "turn",
            false => "session",
        }
    }
}

/// The fallback model; none if the session uses it already.
async fn fallback(
    spec: &SessionSpec,
    name: &str,
    failure: ProviderFailure,
    with_images: bool,
) -> Result<Option<ChosenModel>, String> {
    let (own, named) = (spec.clone(), name.to_owned());
    let model = tokio::task::spawn_blocking(move || own.with_model(&named)).await;
    let model = model.map_err(|error| error.to_string())?.map_err(|no| no.message)?;
    let elsewhere = spec.needs_new_provider(&model);
    if model.model() == spec.model().model() && !elsewhere {
        return Ok(None);
    }
    if failure == ProviderFailure::Unreachable && !elsewhere {
        return Err("it is on the same server, which does not answer".to_owned());
    }
    if !sees_enough(&model, with_images) {
        return Err(format!(
            "the request shows images, and agentd does not know that {name} sees them"
        ));
    }
    let limit = spec.setup.max_session.cost;
    check_price(limit, model.model(), model.facts()).map_err(|no| no.message)?;
    Ok(Some(model))
}

/// The model of this name, for a turn.
async fn usable(spec: &SessionSpec, name: &str) -> Result<ChosenModel, String> {
    let (own, named) = (spec.clone(), name.to_owned());
    let model = tokio::task::spawn_blocking(move || own.with_model(&named)).await;
    let model = model.map_err(|error| error.to_string())?.map_err(|no| no.message)?;
    if !model.is_known() && model.model() != spec.model().model() {
        return Err(format!(
            "no model of this name is configured. Name it in a table `[models.{name}]` of your \
             configuration, or write its vendor's name (`agentd help config`)"
        ));
    }
    let limit = spec.setup.max_session.cost;
    check_price(limit, model.model(), model.facts()).map_err(|no| no.message)?;
    Ok(model)
}

/// True if the model can be sent a request with images, or one without them.
fn sees_enough(model: &ChosenModel, with_images: bool) -> bool {
    model.facts().vision == Some(true) || !with_images
}

/// Puts the present model into a request. The conversation may have made it with the model of the turn
/// before, which is over: a summary follows a turn at once.
pub(super) fn put_present_model(spec: &SessionSpec, message: &mut ToProvider) {
    let ToProvider::Ask(request) = message else { return };
    let setup = &spec.setup;
    if request.model != setup.model {
        request.model.clone_from(&setup.model);
        request.max_tokens = setup.max_tokens;
    }
}
