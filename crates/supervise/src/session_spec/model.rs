//! Changes the model of a session: resolves its name by the configuration or the vendor, and
//! applies what depends on it. A session has one key, and only a client can read keys. So a model
//! that needs another key is refused with a remedy, and no key is sent to a server that it was not
//! given for.

use super::task_bounds::ParentBounds;
use super::{SessionSpec, load, source};
use crate::agents::AgentCatalog;
use crate::open_failure::OpenFailure;
use config::{Config, Dirs, ProviderName};
use journal::TaskHeader;
use protocol::client::{RequestFailure, SessionRequest};
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
}

impl SessionSpec {
    /// The configuration with this model. Reads the configuration's files.
    pub(crate) fn with_model(&self, name: &str) -> Result<Config, OpenFailure> {
        let SpecOrigin { mut opening, dirs, .. } = self.origin.clone();
        opening.settings.push(("provider.model".to_owned(), name.to_owned()));
        let project = self.confinement.project.to_path();
        let environment = super::client_environment(&opening);
        let config = load(&opening, &dirs, &project, environment)?;
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
        Ok(config)
    }

    /// True if this model needs another server or other headers than the present one.
    pub(crate) fn needs_new_provider(&self, config: &Config) -> bool {
        source(config) != self.source
    }

    /// Sets the model of this name for later requests.
    pub(crate) fn set_model(&mut self, config: Config, name: &str) {
        // Sub-agents are asked for as this session would be now.
        self.origin.opening.settings.push(("provider.model".to_owned(), name.to_owned()));
        self.source = source(&config);
        if let Some(model) = &config.provider.model {
            self.setup.model.clone_from(model);
        }
        self.setup.max_tokens = config.provider.max_tokens;
        self.setup.facts = config.provider.facts;
        self.config.provider = config.provider;
    }

    /// The model as a message to the conversation.
    pub(crate) fn model_message(&self) -> ToSession {
        ToSession::Model {
            name: self.setup.model.clone(),
            max_tokens: self.setup.max_tokens,
            facts: self.setup.facts,
        }
    }
}
