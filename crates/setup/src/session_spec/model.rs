//! Changes the model of a session: resolves its name by the configuration or the vendor, and
//! applies what depends on it. A session has one key, and only a client can read keys. So a model
//! that needs another key is refused with a remedy, and no key is sent to a server that it was not
//! given for.

use super::servers::SessionServer;
use super::task_bounds::ParentBounds;
use super::{SessionSpec, load, source};
use crate::agents::AgentCatalog;
use crate::open_failure::OpenFailure;
use config::{Dirs, ProviderConfig, ProviderName, aliased_model, is_model_alias};
use journal::TaskHeader;
use protocol::client::{ModelFacts, RequestFailure, SessionRequest};
use protocol::provider::SourceSetup;
use protocol::session::ToSession;
use std::sync::Arc;

/// The source of a session's configuration, to resolve another model.
#[derive(Debug, Clone)]
pub(crate) struct SpecOrigin {
    pub(super) opening: SessionRequest,
    pub(super) dirs: Dirs,
    /// The call that it works for, if it is a sub-agent's session.
    pub(super) task: Option<Box<TaskHeader>>,
    /// The bounds of its parent's present rights, if it is a sub-agent's session.
    pub(super) bounds: Option<Box<ParentBounds>>,
    /// The sub-agents that it may start.
    pub(super) agents: Arc<AgentCatalog>,
    /// Its MCP servers.
    pub(super) servers: Arc<[SessionServer]>,
}

/// A model, with all that a session needs to use it.
#[derive(Debug, Clone)]
pub struct ChosenModel {
    /// The name that chooses it.
    pub name: String,
    /// Its vendor's name.
    pub model: String,
    source: SourceSetup,
    provider: ProviderConfig,
}

impl ChosenModel {
    /// Its known limits and prices.
    pub fn facts(&self) -> ModelFacts {
        self.provider.facts
    }

    /// True for a name of the configuration, or of agentd's own table of models.
    pub fn is_known(&self) -> bool {
        self.provider.knows_model()
    }

    /// For the person, of a name that no list confirms: only the server knows its models.
    pub fn doubt(&self, before: &str) -> Option<String> {
        let (name, vendor) = (&self.model, self.provider.name.vendor().name);
        (!self.is_known()).then(|| {
            format!(
                "the model {name} is unverified: it is neither in agentd's list nor in your configuration. The next \
                 request fails if the provider {vendor} has none of this name; `:model {before}` goes back"
            )
        })
    }
}

impl SessionSpec {
    /// The present model.
    pub fn model(&self) -> ChosenModel {
        let provider = self.config.provider.clone();
        let model = self.setup.model.clone();
        let name = provider.table.clone().unwrap_or_else(|| model.clone());
        ChosenModel { name, model, source: self.source.clone(), provider }
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
        let source = source(&config);
        let provider = config.provider;
        let model = provider.model.clone().unwrap_or_else(|| self.setup.model.clone());
        Ok(ChosenModel { name: name.to_owned(), model, source, provider })
    }

    /// True if this model needs another server or other headers than the present one.
    pub fn needs_new_provider(&self, model: &ChosenModel) -> bool {
        model.source != self.source
    }

    /// Sets the model for later requests.
    pub fn set_model(&mut self, chosen: ChosenModel) {
        let ChosenModel { name, model, source, provider } = chosen;
        // Sub-agents are asked for as this session would be now. The last name counts.
        self.origin.opening.settings.retain(|(key, _)| key != "provider.model");
        self.origin.opening.settings.push(("provider.model".to_owned(), name));
        self.source = source;
        self.setup.model = model;
        self.setup.max_tokens = provider.max_tokens;
        self.setup.facts = provider.facts;
        self.config.provider = provider;
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
