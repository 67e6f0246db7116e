//! The fallback model: the session goes on with it where the server of its model is overloaded or does
//! not answer. The change is durable before the request is sent again, and people are told. If the
//! fallback model fails too, the session goes back.

use super::state::SessionActorState;
use crate::messages::SessionMsg;
use crate::records::encode;
use protocol::client::{ClientEvent, SettingChange};
use protocol::provider::{FromProvider, ProviderFailure};
use ractor::ActorRef;
use setup::session_spec::{ChosenModel, check_price};

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
        {
            self.turn.model.before_fallback = None;
        }
        let FromProvider::Failed { round, kind, message } = message else { return false };
        if !self.turn.router.awaits_answer_to(*round) {
            return false;
        }
        let is_away = matches!(kind, ProviderFailure::Overloaded | ProviderFailure::Unreachable);
        let now = self.spec.model();
        let asked = self.turn.router.asked_model().unwrap_or_default().to_owned();
        if asked != now.model {
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
        if let Some(before) = self.turn.model.before_fallback.take() {
            self.go_back(&now, *before, message).await;
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
        let failed = &now.name;
        let text = format!(
            "{failed} does not answer ({message}); this {} goes on with the fallback model {name}. \
             `:model {failed}` goes back",
            self.model_holder()
        );
        let reason = format!("{failed} does not answer");
        self.turn.model.before_fallback = Some(Box::new(now));
        self.show(&ClientEvent::Notice { text });
        self.use_model(model);
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
        if model.model == self.spec.setup.model && !elsewhere {
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
        check_price(limit, &model.model, model.facts()).map_err(|no| no.message)?;
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
    async fn go_back(&mut self, from: &ChosenModel, before: ChosenModel, message: &str) {
        let name = before.name.clone();
        if self.record_model(&name, "fallback model failed").await {
            let text = format!(
                "the fallback model {} does not answer either ({message}); this {} is back on {name}",
                from.name,
                self.model_holder()
            );
            self.use_model(before);
            self.show(&ClientEvent::Notice { text });
        }
    }

    /// The model of a turn alone ends with the turn, so no record changes that of the session.
    async fn record_model(&mut self, name: &str, by: &str) -> bool {
        if self.turn.model.before_turn.is_some() {
            return true;
        }
        let change = SettingChange::Model(name.to_owned());
        self.record(vec![encode::setting_change(&change, by.to_owned())]).await.is_ok()
    }

    /// The next request uses this model.
    pub(super) fn use_model(&mut self, model: ChosenModel) {
        if self.spec.needs_new_provider(&model) {
            self.replace_provider();
        }
        self.spec.set_model(model);
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
