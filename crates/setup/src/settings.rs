//! The settings of a session that may change while it is open, in layers: a change replaces a layer, and
//! `effective` says what holds. Pure. Used by the specification of a session.
//!
//! | Layer | Its settings come from |
//! |---|---|
//! | configured | the administrator's file, the other files and the flags, merged by `config` as the session opens |
//! | person | a person's changes, in this run or in an earlier one |
//! | turn | the slash command or skill of the running turn |
//! | fallback | the failure of a model's server: the fallback model, until it has answered |
//!
//! A later row goes before an earlier one.

use crate::chosen_model::ChosenModel;

/// The settings of a session.
#[derive(Debug, Clone)]
pub struct Settings {
    configured: Effective,
    person: Layer,
    turn: Layer,
    fallback: Layer,
}

/// Settings of one origin; those that it does not have are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layer {
    /// The model of later requests.
    pub model: Option<ChosenModel>,
}

/// The layers that change while a session is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerName {
    /// A person's changes.
    Person,
    /// The running turn.
    Turn,
    /// A fallback model that has not answered yet.
    Fallback,
}

/// The settings that hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// The model of later requests.
    pub model: ChosenModel,
}

impl Settings {
    /// Those of files and flags.
    pub fn new(configured: Effective) -> Self {
        let (person, turn, fallback) = (Layer::default(), Layer::default(), Layer::default());
        Self { configured, person, turn, fallback }
    }

    /// One layer.
    pub fn layer(&self, name: LayerName) -> &Layer {
        match name {
            LayerName::Person => &self.person,
            LayerName::Turn => &self.turn,
            LayerName::Fallback => &self.fallback,
        }
    }

    /// Replaces a layer.
    pub fn set(&mut self, name: LayerName, layer: Layer) {
        match name {
            LayerName::Person => self.person = layer,
            LayerName::Turn => self.turn = layer,
            LayerName::Fallback => self.fallback = layer,
        }
    }

    /// Empties a layer.
    pub fn clear(&mut self, name: LayerName) {
        self.set(name, Layer::default());
    }

    /// The settings that hold.
    pub fn effective(&self) -> Effective {
        Effective { model: self.model().clone() }
    }

    /// The model of later requests.
    pub fn model(&self) -> &ChosenModel {
        let chosen = [&self.fallback, &self.turn, &self.person];
        chosen.into_iter().find_map(|it| it.model.as_ref()).unwrap_or(&self.configured.model)
    }

    /// True if the turn has a model of its own.
    pub fn has_turn_model(&self) -> bool {
        self.turn.model.is_some()
    }

    /// True if a fallback model was asked and has not answered yet.
    pub fn has_fallback(&self) -> bool {
        self.fallback.model.is_some()
    }

    /// A person chose this model, also for the rest of the turn.
    pub fn choose_model(&mut self, model: ChosenModel) {
        self.clear(LayerName::Fallback);
        self.set(LayerName::Turn, Layer { model: None });
        self.set(LayerName::Person, Layer { model: Some(model) });
    }

    /// A turn begins that has this model.
    pub fn begin_turn_model(&mut self, model: ChosenModel) {
        self.keep_fallback();
        self.set(LayerName::Turn, Layer { model: Some(model) });
    }

    /// The turn has ended, and with it a fallback model that went on for its model.
    pub fn end_turn_model(&mut self) {
        if self.has_turn_model() {
            self.clear(LayerName::Fallback);
            self.set(LayerName::Turn, Layer { model: None });
        }
    }

    /// The fallback model stays: for the turn if that has a model of its own, else for the session.
    pub fn keep_fallback(&mut self) {
        let Some(model) = self.fallback.model.take() else { return };
        let name = match self.has_turn_model() {
            true => LayerName::Turn,
            false => LayerName::Person,
        };
        self.set(name, Layer { model: Some(model) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::{ProviderConfig, ProviderName};
    use protocol::client::ModelFacts;
    use protocol::provider::{ProviderTimeouts, ReplaySpeed};

    fn model(name: &str) -> ChosenModel {
        let provider = ProviderConfig {
            name: ProviderName::Replay,
            model: Some(name.to_owned()),
            table: None,
            fallback_model: None,
            facts: ModelFacts::default(),
            headers: Vec::new(),
            effort: None,
            base_url: String::new(),
            max_tokens: 1,
            patience: ProviderTimeouts {
                tries: 1,
                max_wait_ms: 1,
                byte_timeout_ms: 1,
                progress_timeout_ms: 1,
                connect_timeout_ms: 1,
            },
            replay_speed: ReplaySpeed::Full,
            key: None,
            local: false,
            proxy: None,
        };
        ChosenModel { chosen_by: None, model: name.to_owned(), provider }
    }

    fn settings() -> Settings {
        Settings::new(Effective { model: model("configured") })
    }

    fn fall_back(settings: &mut Settings) {
        settings.set(LayerName::Fallback, Layer { model: Some(model("fallback")) });
    }

    #[test]
    fn each_layer_goes_before_the_earlier_ones_and_leaves_them_as_they_were() {
        let layers = [
            (LayerName::Person, "person"),
            (LayerName::Turn, "turn"),
            (LayerName::Fallback, "fallback"),
        ];
        let mut settings = settings();
        for (layer, name) in layers {
            settings.set(layer, Layer { model: Some(model(name)) });
            assert_eq!(settings.effective().model, model(name));
        }
        for (layer, before) in
            layers.iter().rev().map(|(layer, _)| *layer).zip(["turn", "person", "configured"])
        {
            settings.clear(layer);
            assert_eq!(settings.effective().model, model(before));
        }
    }

    #[test]
    fn a_turn_gives_back_the_model_before_it_also_where_a_fallback_model_went_on_for_it() {
        for answered in [None, Some(false), Some(true)] {
            let mut settings = settings();
            settings.choose_model(model("person"));
            settings.begin_turn_model(model("turn"));
            if let Some(answered) = answered {
                fall_back(&mut settings);
                if answered {
                    settings.keep_fallback();
                }
            }
            settings.end_turn_model();
            assert_eq!(settings.model(), &model("person"), "{answered:?}");
            assert!(!settings.has_turn_model() && !settings.has_fallback());
        }
    }

    #[test]
    fn a_model_that_a_person_chooses_in_a_turn_holds_at_once_and_after_it() {
        let mut settings = settings();
        settings.begin_turn_model(model("turn"));
        fall_back(&mut settings);
        settings.choose_model(model("person"));
        assert_eq!(settings.model(), &model("person"));
        settings.end_turn_model();
        assert_eq!(settings.model(), &model("person"));
    }

    #[test]
    fn a_fallback_model_stays_once_it_has_answered_and_goes_if_it_fails() {
        let mut settings = settings();
        fall_back(&mut settings);
        settings.clear(LayerName::Fallback);
        assert_eq!(settings.model(), &model("configured"));
        fall_back(&mut settings);
        // The end of a turn without a model of its own is no answer.
        settings.end_turn_model();
        assert!(settings.has_fallback());
        settings.keep_fallback();
        assert_eq!(settings.layer(LayerName::Person).model, Some(model("fallback")));
        assert!(!settings.has_fallback());
    }

    #[test]
    fn the_model_of_a_turn_is_no_fallback_model_that_failed() {
        let mut settings = settings();
        fall_back(&mut settings);
        settings.begin_turn_model(model("turn"));
        assert!(!settings.has_fallback(), "the turn's model may have a fallback model of its own");
        settings.end_turn_model();
        assert_eq!(settings.model(), &model("fallback"), "as the journal says");
    }
}
