//! A model that a session can use, with the settings of its server. Pure.

use config::{KeySource, ProviderConfig, ProviderName};
use protocol::client::ModelFacts;
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
