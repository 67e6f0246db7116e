//! A model that a session can use, with the settings of its server. Pure.

use config::{KeySource, ProviderConfig, ProviderName};
use protocol::client::ModelFacts;
use protocol::did_you_mean::nearest;
use protocol::provider::{Auth, ModelServer, SourceSetup};

/// A model, with all that a session needs to use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenModel {
    /// The name by which it was chosen; `None` if files and flags choose it.
    pub(crate) chosen_by: Option<String>,
    /// Its vendor's name.
    pub(crate) model: String,
    pub(crate) provider: ProviderConfig,
}

impl ChosenModel {
    /// Its vendor's name.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The name that chooses it.
    pub fn name(&self) -> &str {
        self.provider.table.as_deref().unwrap_or(&self.model)
    }

    /// Its known limits and prices.
    pub fn facts(&self) -> ModelFacts {
        self.provider.facts
    }

    /// The server that answers for it.
    pub fn source(&self) -> SourceSetup {
        match self.provider.name {
            ProviderName::Vendor(vendor) => SourceSetup::Server(ModelServer {
                api: vendor.dialect,
                base_url: self.provider.base_url.clone(),
                auth: self.provider.key.as_ref().map_or(Auth::Keyless, KeySource::auth),
                headers: self.provider.headers.clone(),
                effort: self.provider.effort,
            }),
            ProviderName::Replay => SourceSetup::Replay(self.provider.replay_speed),
        }
    }

    /// True for a name of the configuration, or of agentd's own table of models.
    pub fn is_known(&self) -> bool {
        self.provider.knows_model()
    }

    /// For the person, of a name that no list confirms. Lists are older than the vendors' models, so that only
    /// the server knows.
    pub fn doubt(&self, before: &str) -> Option<String> {
        if self.is_known() {
            return None;
        }
        let (name, vendor) = (&self.model, self.provider.name.vendor().name);
        let known = self.provider.models.iter().map(|model| model.name.as_str());
        let meant = match nearest(name, known).first() {
            Some(near) => format!(" Did you mean {near}?"),
            None => String::new(),
        };
        Some(format!(
            "the model {name} is neither in agentd's list of {vendor} nor in the configuration: its price and \
             context size are not known, and the next request tells whether it exists.{meant} `:model {before}` goes \
             back"
        ))
    }
}
