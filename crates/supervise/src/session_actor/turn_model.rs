//! The model of a turn whose slash command or skill names one: it is used until the turn ends, and the
//! session's model does not change. The record of the prompt has its name.

use super::state::SessionActorState;
use protocol::client::ClientEvent;
use protocol::provider::ToProvider;
use protocol::session::ToSession;
use setup::chosen_model::ChosenModel;
use setup::session_spec::check_price;
use setup::settings::Settings;

impl SessionActorState {
    /// The model of this name, for a turn.
    ///
    /// # Errors
    /// Why it cannot be used, for the person.
    pub(super) async fn usable_model(&self, name: &str) -> Result<ChosenModel, String> {
        let (spec, named) = (self.spec.clone(), name.to_owned());
        let model = tokio::task::spawn_blocking(move || spec.with_model(&named)).await;
        let model = model.map_err(|error| error.to_string())?.map_err(|no| no.message)?;
        if !model.is_known() && model.model() != self.spec.model().model() {
            return Err(format!(
                "no model of this name is configured. Name it in a table `[models.{name}]` of your \
                 configuration, or write its vendor's name (`agentd help config`)"
            ));
        }
        let limit = self.spec.setup.max_session.cost;
        check_price(limit, model.model(), model.facts()).map_err(|no| no.message)?;
        match self.spec.needs_new_provider(&model) && !self.may_suspend() {
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

    /// Puts the present model into a request. The conversation may have made it with the model of the turn
    /// before, which is over: a summary follows a turn at once.
    pub(super) fn put_present_model(&self, message: &mut ToProvider) {
        let ToProvider::Ask(request) = message else { return };
        let setup = &self.spec.setup;
        if request.model != setup.model {
            request.model.clone_from(&setup.model);
            request.max_tokens = setup.max_tokens;
        }
    }

    /// The thing that the present model is for.
    pub(super) fn model_holder(&self) -> &'static str {
        match self.spec.settings().has_turn_model() {
            true => "turn",
            false => "session",
        }
    }
}
