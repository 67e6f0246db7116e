//! The fallback model: the session goes on with it where the server of its model is overloaded or does
//! not answer. The change is durable before the request is sent again, and people are told. If the
//! fallback model fails too, the session goes back.

use super::state::SessionActorState;
use crate::messages::SessionMsg;
use crate::records::encode;
use protocol::client::{ClientEvent, SettingChange};
use protocol::provider::{FromProvider, ProviderFailure};
use ractor::ActorRef;
use setup::chosen_model::ChosenModel;
use setup::session_spec::check_price;
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
        let is_away = matches!(kind, ProviderFailure::Overloaded | ProviderFailure::Unreachable);
        let now = self.spec.model().clone();
        let asked = self.turn.router.asked_model().unwrap_or_default().to_owned();
        if asked != now.model() {
            // A person has chosen another model since the request was sent.
            return is_away && self.sees_enough(&now) && {
                self.ask_again(myself, format!("{asked} does not answer")).await;
                true
            };
        }
        // The conversation makes it smaller, and asks the fallback model again.
        if *kind == ProviderFailure::ContextFull {
            return false;
        }
        if self.spec.settings().has_fallback() {
            self.go_back(message).await;
            return false;
        }
        let Some(name) = self.spec.config.provider.fallback_model.clone() else { return false };
        if !is_away {
            return false;
        }
        let model = match self.fallback(&name, *kind).await {
            Ok(Some(model)) => model,
            // It is the model that failed.
            Ok(None) => return false,
            Err(why) => {
                let text = format!("the fallback model {name} cannot be used: {why}");
                self.show(&ClientEvent::Notice { text });
                return false;
            }
        };
        if !self.record_model(&name, "fallback model").await {
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
        self.change_model(|it| it.fall_back(model));
        self.ask_again(myself, reason).await;
        true
    }

    /// The fallback model; none if the session uses it already.
    async fn fallback(
        &self,
        name: &str,
        failure: ProviderFailure,
    ) -> Result<Option<ChosenModel>, String> {
        let (spec, named) = (self.spec.clone(), name.to_owned());
        let model = tokio::task::spawn_blocking(move || spec.with_model(&named)).await;
        let model = model.map_err(|error| error.to_string())?.map_err(|no| no.message)?;
        let elsewhere = self.spec.needs_new_provider(&model);
        if model.model() == self.spec.model().model() && !elsewhere {
            return Ok(None);
        }
        if failure == ProviderFailure::Unreachable && !elsewhere {
            return Err("it is on the same server, which does not answer".to_owned());
        }
        if !self.sees_enough(&model) {
            return Err(format!(
                "the request shows images, and agentd does not know that {name} sees them"
            ));
        }
        let limit = self.spec.setup.max_session.cost;
        check_price(limit, model.model(), model.facts()).map_err(|no| no.message)?;
        match elsewhere && !self.may_suspend() {
            true => Err("the session uses a recording, and it is on another server".to_owned()),
            false => Ok(Some(model)),
        }
    }

    /// True if the model can be sent the images of the open request.
    fn sees_enough(&self, model: &ChosenModel) -> bool {
        model.facts().vision == Some(true) || !self.turn.router.asks_with_images()
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
            self.replace_provider();
        }
        self.send_conversation(self.spec.model_message());
        self.show(&self.model_event());
    }

    /// Sends the open request to the session's model.
    async fn ask_again(&mut self, myself: &ActorRef<SessionMsg>, reason: String) {
        let setup = &self.spec.setup;
        let (model, limits) = (setup.model.clone(), (setup.max_tokens, setup.facts));
        let steps = self.turn.router.ask_another(model, limits, reason);
        self.carry_out(myself, steps).await;
    }
}
