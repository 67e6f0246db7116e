//! Changes the model of a session: resolves its name by the configuration or the vendor, and
//! applies what depends on it. A session has one key, and only a client can read keys. So a model
//! that needs another key is refused with a remedy, and no key is sent to a server that it was not
//! given for.

use super::servers::SessionServer;
use super::{SessionSpec, load};
use crate::agents::AgentCatalog;
use crate::chosen_model::ChosenModel;
use crate::open_failure::OpenFailure;
use crate::settings::{Effective, LayerName, Settings};
use config::{Dirs, ProviderName, aliased_model, is_model_alias};
use journal::TaskHeader;
use protocol::client::{RequestFailure, SessionRequest};
use protocol::judgement::RuleSet;
use protocol::session::ToSession;
use std::sync::Arc;

/// The source of a session's configuration, to resolve another model.
#[derive(Debug, Clone)]
pub(crate) struct SpecOrigin {
    pub(super) opening: SessionRequest,
    pub(super) dirs: Dirs,
    /// The call that it works for, if it is a sub-agent's session.
    pub(super) task: Option<Box<TaskHeader>>,
    /// The sub-agents that it may start.
    pub(super) agents: Arc<AgentCatalog>,
    /// Its MCP servers.
    pub(super) servers: Arc<[SessionServer]>,
}

impl SessionSpec {
    /// The settings in their layers.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Changes layers. The values that the session's processes get follow.
    pub fn change_settings(&mut self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings);
        let Effective { mode, network, hosts, added, rules, turn_rules: _, model } =
            self.settings.effective();
        (self.rules.mode, self.setup.mode) = (mode, mode);
        self.rules.rules = rules;
        let cage = &mut self.confinement;
        let before = (cage.network, &cage.hosts, &cage.added);
        if before != (network, &hosts, &added) {
            (cage.network, cage.hosts, cage.added) = (network, hosts, added);
            self.rebuild_system_prompt();
        }
        self.setup.model = model.model;
        self.setup.max_tokens = model.provider.max_tokens;
        self.setup.facts = model.provider.facts;
        self.config.provider = model.provider;
    }

    /// The rules by which the broker judges: with those of the turn.
    pub fn broker_rules(&self) -> RuleSet {
        let mut rules = self.rules.clone();
        rules.rules.extend(self.settings.layer(LayerName::Turn).rules.iter().cloned());
        rules
    }

    /// The present model.
    pub fn model(&self) -> &ChosenModel {
        self.settings.model()
    }

    /// The flags with which the session would be opened as it is now. The last name of a model counts.
    pub(super) fn present_flags(&self) -> Vec<(String, String)> {
        let mut flags = self.origin.opening.settings.clone();
        if let Some(name) = &self.model().chosen_by {
            flags.retain(|(key, _)| key != "provider.model");
            flags.push(("provider.model".to_owned(), name.clone()));
        }
        flags
    }

    /// The model of this name. Reads the configuration's files.
    pub fn with_model(&self, name: &str) -> Result<ChosenModel, OpenFailure> {
        let SpecOrigin { mut opening, dirs, .. } = self.origin.clone();
        opening.settings.push(("provider.model".to_owned(), name.to_owned()));
        let project = self.confinement.project.to_path();
        let environment = super::client_environment(&opening);
        let config = load(&opening, &dirs, &project, environment)?;
        let provider = config.provider.name.vendor().name;
        if is_model_alias(name)
            && config.provider.table.as_deref() != Some(name)
            && aliased_model(provider, name).as_ref() != config.provider.model.as_ref()
        {
            return Err(OpenFailure::new(
                RequestFailure::Usage,
                format!(
                    "{name} stands for no model of the provider {provider}. A table `[models.{name}]` gives the word \
                     a model"
                ),
            ));
        }
        let (now, new) = (&self.config.provider, &config.provider);
        let keyless = new.key.is_none() && new.name.vendor().is_keyless(new.local);
        let replayed = matches!(new.name, ProviderName::Replay);
        if !keyless && !replayed && (new.key.is_none() || new.key != now.key) {
            return Err(OpenFailure::new(
                RequestFailure::Usage,
                format!(
                    "{name} needs another key than this session was given, and only the command \
                     that opens a session reads keys. End it with `agentd stop {id}` and open it \
                     again with `agentd attach {id} --model {name}`",
                    id = self.id
                ),
            ));
        }
        let provider = config.provider;
        let model = provider.model.clone().unwrap_or_else(|| self.setup.model.clone());
        Ok(ChosenModel { chosen_by: Some(name.to_owned()), model, provider })
    }

    /// True if this model needs another server or other headers than the present one.
    pub fn needs_new_provider(&self, model: &ChosenModel) -> bool {
        model.source() != self.model().source()
    }

    /// The model as a message to the conversation.
    pub fn model_message(&self) -> ToSession {
        ToSession::Model {
            name: self.setup.model.clone(),
            max_tokens: self.setup.max_tokens,
            facts: self.setup.facts,
        }
    }
}
