//! The typed configuration, as the rest of agentd uses it.

use crate::credentials::CredentialConfig;
use crate::edit_hooks::HookConfig;
use crate::error::ConfigError;
use crate::event_hooks::EventHookConfig;
use crate::keys::{
    BudgetConfig, ContextConfig, DaemonConfig, SandboxConfig, ToolsConfig, UiConfig,
};
use crate::managed::ManagedLimits;
use crate::mcp::McpServerConfig;
use crate::origin::ValueOrigin;
use crate::ownership::{self, KeyFile};
use crate::plugin::Plugin;
use crate::vendors::{KeySource, ProviderName};
use crate::warning::ConfigWarning;
use protocol::client::{KnownModel, ModelFacts};
use protocol::confinement::Network;
use protocol::hosts::HostRule;
use protocol::judgement::{Audience, PermissionMode, Rule, RuleExample, RuleSet};
use protocol::provider::{Effort, ProviderTimeouts, ReplaySpeed};
use protocol::web::WebSettings;
use std::path::Path;

/// The configuration of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where answers come from.
    pub provider: ProviderConfig,
    /// Permission mode and rules.
    pub permissions: Permissions,
    /// How calls are confined.
    pub sandbox: SandboxConfig,
    /// Network of commands.
    pub network: Network,
    /// Hosts that commands may reach where the network is an allow-list.
    pub hosts: Vec<HostRule>,
    /// Hosts for which the proxy of an allow-list has a key.
    pub credentials: Vec<CredentialConfig>,
    /// Bounds of tools.
    pub tools: ToolsConfig,
    /// Commands to run after edits.
    pub verify: HookConfig,
    /// Formatters for edited files; they run before the verifiers.
    pub format: HookConfig,
    /// Trusted folders with skills, sub-agents, slash commands and hooks.
    pub plugins: Vec<Plugin>,
    /// Commands to run at events of a session.
    pub hooks: EventHookConfig,
    /// Servers of the Model Context Protocol.
    pub servers: Vec<McpServerConfig>,
    /// Pinned files.
    pub context: ContextConfig,
    /// Bounds of a turn and of a session.
    pub budget: BudgetConfig,
    /// Tools of the web.
    pub web: WebSettings,
    /// Settings of the terminal.
    pub ui: UiConfig,
    /// Waits and restarts of the supervisor.
    pub daemon: DaemonConfig,
    /// Files that hold keys, of all models and hosts.
    pub key_files: Vec<KeyFile>,
    /// The administrator's limits, for settings that change while a session runs.
    pub managed: ManagedLimits,
    /// True if the person trusts every file of the project's configuration as it is now.
    pub project_is_trusted: bool,
    /// Ignored settings and other notes for the user; for standard error and the log.
    pub warnings: Vec<ConfigWarning>,
    /// Each value with its origin, in the order of the keys; a list has a row for each element.
    pub rows: Vec<ConfigRow>,
}

/// One line of `agentd config show --origin`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigRow {
    /// Dotted.
    pub key: &'static str,
    /// As it would be written in a file.
    pub value: String,
    /// Where it came from.
    pub origin: ValueOrigin,
}

/// Where answers come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderConfig {
    /// Which vendor's interface, or a recording.
    pub name: ProviderName,
    /// The vendor's name of the model; `None` if no layer names one and the vendor has no default.
    pub model: Option<String>,
    /// The name of its table `[models.NAME]`, if it was chosen by one.
    pub table: Option<String>,
    /// The model with which a session goes on if the server of its own does not answer.
    pub fallback_model: Option<String>,
    /// Context size and prices of the model.
    pub facts: ModelFacts,
    /// Sent with each request.
    pub headers: Vec<(String, String)>,
    /// How long the model should think, if configured.
    pub effort: Option<Effort>,
    /// Without a slash at its end.
    pub base_url: String,
    /// Most tokens of one answer.
    pub max_tokens: u32,
    /// Waits and tries.
    pub patience: ProviderTimeouts,
    /// How quickly a recording answers.
    pub replay_speed: ReplaySpeed,
    /// Where the key comes from, where one is set. It stays where it is.
    pub key: Option<KeySource>,
    /// True if the base URL is on this machine.
    pub local: bool,
    /// Models to choose from: those of tables, then those that agentd knows of this vendor's server.
    pub models: Vec<KnownModel>,
    /// From `HTTPS_PROXY` and its kin, unless `NO_PROXY` exempts this base URL. It may hold a password.
    pub proxy: Option<String>,
}

impl ProviderConfig {
    /// True for a model of a table `[models.NAME]` or of agentd's own table.
    #[must_use]
    pub fn knows_model(&self) -> bool {
        let ModelFacts { context, prices, vision, images: _, json_schema: _ } = self.facts;
        self.table.is_some() || context.is_some() || prices.is_some() || vision.is_some()
    }
}

/// Permission mode and rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    /// Decides about calls that match no rule.
    pub mode: PermissionMode,
    /// In the order of their layers; not parsed yet, see `approval::Rules::new`.
    pub rules: Vec<Rule>,
    /// Examples given with the rules; not tried yet, see `approval::try_examples`.
    pub examples: Vec<RuleExample>,
}

impl Config {
    /// The rules as the broker wants them.
    #[must_use]
    pub fn rule_set(&self, project: &Path, audience: Audience) -> RuleSet {
        RuleSet {
            rules: self.permissions.rules.clone(),
            mode: self.permissions.mode,
            audience,
            project: project.to_string_lossy().into_owned(),
        }
    }

    /// Checks that no call could read a key file, by its path or by the target of a link.
    ///
    /// # Errors
    /// A key file is in one of these directories, which calls may read.
    pub fn key_files_are_apart<P: AsRef<Path>>(
        &self,
        readable: impl IntoIterator<Item = P>,
    ) -> Result<(), ConfigError> {
        ownership::key_files_are_apart(&self.key_files, readable)
    }
}
