//! The settings of a session that may change while it is open, in layers: a change replaces a layer, and
//! `effective` says what holds. Pure. Used by the specification of a session.
//!
//! | Layer | Its settings come from |
//! |---|---|
//! | configured | the administrator's file, the other files and the flags, merged by `config` as the session opens; for a sub-agent, inside the rights of its first record |
//! | person | a person's changes, in this run or in an earlier one |
//! | turn | the slash command or skill of the running turn |
//! | fallback | the failure of a model's server: the fallback model, until it has answered |
//! | parent | the rights that the parent of a sub-agent has now, which bound all of the above |
//!
//! A later row goes before an earlier one.

use crate::chosen_model::ChosenModel;
use crate::task_bounds::{TaskBounds, is_inherited};
use protocol::client::SettingChange;
use protocol::confinement::{FilePath, Network};
use protocol::hosts::HostRule;
use protocol::judgement::{PermissionMode, Rule};

/// The settings of a session.
#[derive(Debug, Clone)]
pub struct Settings {
    configured: Effective,
    person: Layer,
    turn: Layer,
    fallback: Layer,
    parent: Option<TaskBounds>,
}

/// Settings of one origin; those that it does not have are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layer {
    /// What happens to calls that match no rule.
    pub mode: Option<PermissionMode>,
    /// The network of commands.
    pub network: Option<Network>,
    /// More hosts for the allow-list.
    pub hosts: Vec<HostRule>,
    /// More directories for calls.
    pub added: Vec<FilePath>,
    /// More rules. Those of a turn end with it.
    pub rules: Vec<Rule>,
    /// The model of later requests.
    pub model: Option<ChosenModel>,
}

/// The layers that change while a session is open, without the parent's.
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
    /// What happens to calls that match no rule.
    pub mode: PermissionMode,
    /// The network of commands.
    pub network: Network,
    /// The allow-list of hosts.
    pub hosts: Vec<HostRule>,
    /// Directories that calls are given besides the project.
    pub added: Vec<FilePath>,
    /// The rules, without those of the turn.
    pub rules: Vec<Rule>,
    /// Rules of the turn: the broker alone judges by them.
    pub turn_rules: Vec<Rule>,
    /// The model of later requests.
    pub model: ChosenModel,
}

impl Effective {
    /// The settings of this layer hold where it has some.
    fn put(&mut self, layer: &Layer) {
        self.mode = layer.mode.unwrap_or(self.mode);
        self.network = layer.network.unwrap_or(self.network);
        add_new(&mut self.hosts, &layer.hosts);
        add_new(&mut self.added, &layer.added);
        if let Some(model) = &layer.model {
            self.model.clone_from(model);
        }
    }

    /// The rights that bound sub-agents.
    pub fn task_bounds(&self) -> TaskBounds {
        TaskBounds {
            mode: self.mode,
            network: self.network,
            hosts: self.hosts.clone(),
            added: self.added.clone(),
            rules: self.rules.iter().filter(|rule| is_inherited(rule)).cloned().collect(),
        }
    }

    /// A sub-agent has no right that its parent does not have.
    fn narrow(&mut self, parent: &TaskBounds) {
        let TaskBounds { mode, network, hosts, added, rules } = self.task_bounds().within(parent);
        (self.mode, self.network, self.hosts, self.added) = (mode, network, hosts, added);
        add_new(&mut self.rules, &rules);
    }
}

impl Settings {
    /// Those of files and flags.
    pub fn new(configured: Effective) -> Self {
        let (person, turn, fallback) = (Layer::default(), Layer::default(), Layer::default());
        Self { configured, person, turn, fallback, parent: None }
    }

    /// The settings that hold.
    pub fn effective(&self) -> Effective {
        let mut now = self.configured.clone();
        [&self.person, &self.turn, &self.fallback].into_iter().for_each(|layer| now.put(layer));
        now.rules.extend(self.person.rules.iter().cloned());
        now.turn_rules.clone_from(&self.turn.rules);
        if let Some(parent) = &self.parent {
            now.narrow(parent);
        }
        now
    }

    /// The model of later requests.
    pub fn model(&self) -> &ChosenModel {
        let chosen = [&self.fallback, &self.turn, &self.person];
        chosen.into_iter().find_map(|it| it.model.as_ref()).unwrap_or(&self.configured.model)
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

    /// The rights that the parent has now, if they bound the session.
    pub fn parent(&self) -> Option<&TaskBounds> {
        self.parent.as_ref()
    }

    /// Replaces the parent's layer.
    pub fn set_parent(&mut self, parent: TaskBounds) {
        self.parent = Some(parent);
    }

    /// A person's change of rights. `choose_model` takes a model; other changes have no layer.
    pub fn change(&mut self, change: &SettingChange) {
        let mut person = self.person.clone();
        match change {
            SettingChange::Mode(mode) => person.mode = Some(*mode),
            SettingChange::Network(network) => person.network = Some(*network),
            SettingChange::Host(host) => {
                add_new(&mut person.hosts, std::slice::from_ref(host));
                person.network = Some(Network::Listed);
            }
            SettingChange::AddDirectory(dir) => {
                add_new(&mut person.added, std::slice::from_ref(dir));
            }
            SettingChange::Model(_)
            | SettingChange::Pin(_)
            | SettingChange::Unpin(_)
            | SettingChange::AppendedSystem(_)
            | SettingChange::CostLimit(_)
            | SettingChange::Flag(..)
            | SettingChange::Name(_) => {}
        }
        self.set(LayerName::Person, person);
    }

    /// A person gave these rules for the session.
    pub fn remember(&mut self, rules: impl IntoIterator<Item = Rule>) {
        let rules = self.person.rules.iter().cloned().chain(rules).collect();
        self.set(LayerName::Person, Layer { rules, ..self.person.clone() });
    }

    /// The running turn has these rules.
    pub fn set_turn_rules(&mut self, rules: Vec<Rule>) {
        self.set(LayerName::Turn, Layer { rules, ..self.turn.clone() });
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
        self.set_model(LayerName::Turn, None);
        self.set_model(LayerName::Person, Some(model));
    }

    /// A turn begins that has this model.
    pub fn begin_turn_model(&mut self, model: ChosenModel) {
        self.keep_fallback();
        self.set_model(LayerName::Turn, Some(model));
    }

    /// The turn has ended, and with it a fallback model that went on for its model.
    pub fn end_turn_model(&mut self) {
        if self.has_turn_model() {
            self.clear(LayerName::Fallback);
            self.set_model(LayerName::Turn, None);
        }
    }

    /// The server of the model fails: this one is asked.
    pub fn fall_back(&mut self, model: ChosenModel) {
        self.set_model(LayerName::Fallback, Some(model));
    }

    /// The fallback model stays: for the turn if that has a model of its own, else for the session.
    pub fn keep_fallback(&mut self) {
        let model = self.fallback.model.clone();
        self.clear(LayerName::Fallback);
        match (model, self.has_turn_model()) {
            (None, _) => {}
            (model, true) => self.set_model(LayerName::Turn, model),
            (model, false) => self.set_model(LayerName::Person, model),
        }
    }

    fn set_model(&mut self, name: LayerName, model: Option<ChosenModel>) {
        self.set(name, Layer { model, ..self.layer(name).clone() });
    }
}

/// Adds those that are not there yet.
fn add_new<T: Clone + PartialEq>(all: &mut Vec<T>, more: &[T]) {
    for one in more {
        if !all.contains(one) {
            all.push(one.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use config::{ProviderConfig, ProviderName};
    use protocol::client::ModelFacts;
    use protocol::judgement::RuleEffect;
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
                overload_tries: 1,
                max_wait_ms: 1,
                byte_timeout_ms: 1,
                progress_timeout_ms: 1,
                connect_timeout_ms: 1,
            },
            replay_speed: ReplaySpeed::Full,
            key: None,
            local: false,
            models: Vec::new(),
            proxy: None,
        };
        ChosenModel { chosen_by: None, model: name.to_owned(), provider }
    }

    fn settings() -> Settings {
        Settings::new(Effective {
            mode: PermissionMode::Ask,
            network: Network::Off,
            hosts: vec![host("configured.org")],
            added: Vec::new(),
            rules: vec![rule(RuleEffect::Ask, "configured")],
            turn_rules: Vec::new(),
            model: model("configured"),
        })
    }

    fn host(name: &str) -> HostRule {
        name.parse().unwrap()
    }

    fn rule(effect: RuleEffect, text: &str) -> Rule {
        Rule { effect, text: text.to_owned(), file: "flag".to_owned(), line: 0 }
    }

    fn bounds(mode: PermissionMode, network: Network) -> TaskBounds {
        let hosts = vec![host("person.org")];
        TaskBounds { mode, network, hosts, added: Vec::new(), rules: Vec::new() }
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
            settings.set(layer, Layer { model: Some(model(name)), ..Layer::default() });
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
                settings.fall_back(model("fallback"));
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
        settings.fall_back(model("fallback"));
        settings.choose_model(model("person"));
        assert_eq!(settings.model(), &model("person"));
        settings.end_turn_model();
        assert_eq!(settings.model(), &model("person"));
    }

    #[test]
    fn a_fallback_model_stays_once_it_has_answered_and_goes_if_it_fails() {
        let mut settings = settings();
        settings.fall_back(model("fallback"));
        settings.clear(LayerName::Fallback);
        assert_eq!(settings.model(), &model("configured"));
        settings.fall_back(model("fallback"));
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
        settings.fall_back(model("fallback"));
        settings.begin_turn_model(model("turn"));
        assert!(!settings.has_fallback(), "the turn's model may have a fallback model of its own");
        settings.end_turn_model();
        assert_eq!(settings.model(), &model("fallback"), "as the journal says");
    }

    #[test]
    fn the_later_of_two_layers_holds_and_lists_are_joined() {
        let mut settings = settings();
        for (at, layer) in [LayerName::Person, LayerName::Turn].into_iter().enumerate() {
            let mode = [PermissionMode::AcceptEdits, PermissionMode::Plan][at];
            let network = [Network::On, Network::Listed][at];
            let name = ["person.org", "turn.org"][at];
            let (hosts, added) = (vec![host(name)], vec![FilePath::from(name)]);
            let rules = vec![rule(RuleEffect::Allow, name)];
            let values = Layer {
                mode: Some(mode),
                network: Some(network),
                hosts,
                added,
                rules,
                model: None,
            };
            settings.set(layer, values);
        }
        let now = settings.effective();
        assert_eq!((now.mode, now.network), (PermissionMode::Plan, Network::Listed));
        assert_eq!(now.hosts, ["configured.org", "person.org", "turn.org"].map(host));
        assert_eq!(now.added, ["person.org", "turn.org"].map(FilePath::from));
        let texts = |rules: &[Rule]| rules.iter().map(|it| it.text.clone()).collect::<Vec<_>>();
        assert_eq!(texts(&now.rules), ["configured", "person.org"]);
        assert_eq!(texts(&now.turn_rules), ["turn.org"], "the broker alone judges by them");
        settings.clear(LayerName::Turn);
        let now = settings.effective();
        assert_eq!((now.mode, now.network), (PermissionMode::AcceptEdits, Network::On));
        assert_eq!((now.hosts.len(), now.added.len(), now.turn_rules.len()), (2, 1, 0));
        settings.clear(LayerName::Person);
        assert_eq!(settings.effective(), self::settings().effective());
    }

    #[test]
    fn a_persons_changes_hold_in_their_order_and_outlast_a_turn() {
        let mut settings = settings();
        settings.set_turn_rules(vec![rule(RuleEffect::Allow, "turn")]);
        settings.begin_turn_model(model("turn"));
        for change in [
            SettingChange::Mode(PermissionMode::Plan),
            SettingChange::Host(host("person.org")),
            SettingChange::Host(host("person.org")),
            SettingChange::Network(Network::Off),
            SettingChange::Mode(PermissionMode::Auto),
            SettingChange::AddDirectory(FilePath::from("/more")),
        ] {
            settings.change(&change);
        }
        settings.remember([rule(RuleEffect::Allow, "remembered")]);
        settings.set_turn_rules(Vec::new());
        settings.end_turn_model();
        let now = settings.effective();
        assert_eq!((now.mode, now.network), (PermissionMode::Auto, Network::Off));
        assert_eq!(now.hosts, ["configured.org", "person.org"].map(host));
        assert_eq!(now.added, [FilePath::from("/more")]);
        assert_eq!((now.rules.len(), now.turn_rules.len()), (2, 0));
        assert_eq!(now.model, model("configured"));
    }

    #[test]
    fn a_parent_bounds_every_layer_and_gives_back_what_it_took() {
        let mut settings = settings();
        settings.change(&SettingChange::Mode(PermissionMode::Auto));
        settings.change(&SettingChange::Host(host("person.org")));
        let own = settings.effective();
        let denied = rule(RuleEffect::Deny, "denied");
        let narrow = bounds(PermissionMode::Plan, Network::Off);
        settings.set_parent(TaskBounds { rules: vec![denied.clone()], ..narrow });
        let now = settings.effective();
        assert_eq!((now.mode, now.network), (PermissionMode::Plan, Network::Off));
        assert_eq!(now.hosts, [host("person.org")]);
        assert_eq!(now.rules.last(), Some(&denied));
        // The person's change meanwhile holds once the parent allows it.
        settings.change(&SettingChange::Mode(PermissionMode::AcceptEdits));
        assert_eq!(settings.effective().mode, PermissionMode::Plan);
        let hosts = own.hosts.clone();
        settings.set_parent(TaskBounds { hosts, ..bounds(PermissionMode::Auto, Network::On) });
        assert_eq!(settings.effective(), Effective { mode: PermissionMode::AcceptEdits, ..own });
    }
}
