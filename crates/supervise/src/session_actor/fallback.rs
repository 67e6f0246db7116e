//! The fallback model: the session goes on with it where the server of its model is overloaded or does
//! not answer. The change is durable before the request is sent again, and people are told.

use super::state::SessionActorState;
use crate::messages::SessionMsg;
use crate::records::encode;
use crate::session_spec::check_price;
use config::Config;
use protocol::client::{ClientEvent, SettingChange};
use protocol::provider::{FromProvider, ProviderFailure};
use ractor::ActorRef;

impl SessionActorState {
    /// Sends a request that failed for want of its model to the fallback model; false if there is
    /// none, or if it cannot be used.
    pub(super) async fn fall_back(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        message: &FromProvider,
    ) -> bool {
        let FromProvider::Failed { round, kind, message } = message else { return false };
        let is_away = matches!(kind, ProviderFailure::Overloaded | ProviderFailure::Unreachable);
        let Some(name) = self.spec.config.provider.fallback_model.clone() else { return false };
        if !is_away || !self.turn.router.awaits_answer_to(*round) {
            return false;
        }
        let config = match self.fallback(&name).await {
            Ok(Some(config)) => config,
            // It is the model that failed.
            Ok(None) => return false,
            Err(why) => {
                let text = format!("the fallback model {name} cannot be used: {why}");
                self.show(&ClientEvent::Notice { text });
                return false;
            }
        };
        let change = SettingChange::Model(name.clone());
        let record = encode::setting_change(&change, "fallback model".to_owned());
        if self.record(vec![record]).await.is_err() {
            return false;
        }
        let failed = self.spec.setup.model.clone();
        let text = format!(
            "{failed} does not answer ({message}); this session goes on with the fallback model \
             {name}. `:model {failed}` goes back"
        );
        if self.spec.needs_new_provider(&config) {
            self.replace_provider();
        }
        self.spec.set_model(*config, &name);
        self.send_conversation(self.spec.model_message());
        self.show(&ClientEvent::Notice { text });
        self.show(&self.model_event());
        let (model, max_tokens) = (self.spec.setup.model.clone(), self.spec.setup.max_tokens);
        let reason = format!("{failed} does not answer");
        let steps = self.turn.router.ask_another(model, max_tokens, reason);
        self.carry_out(myself, steps).await;
        true
    }

    /// The configuration with the fallback model; none if the session uses it already.
    async fn fallback(&self, name: &str) -> Result<Option<Box<Config>>, String> {
        let (spec, named) = (self.spec.clone(), name.to_owned());
        let config = tokio::task::spawn_blocking(move || spec.with_model(&named)).await;
        let config = config.map_err(|error| error.to_string())?.map_err(|no| no.message)?;
        let model = config.provider.model.as_deref().unwrap_or(name);
        let elsewhere = self.spec.needs_new_provider(&config);
        if model == self.spec.setup.model && !elsewhere {
            return Ok(None);
        }
        let limit = self.spec.setup.max_session.cost;
        check_price(limit, model, config.provider.facts).map_err(|no| no.message)?;
        match elsewhere && !self.may_suspend() {
            true => Err("the session uses a recording, and it is on another server".to_owned()),
            false => Ok(Some(Box::new(config))),
        }
    }
}
