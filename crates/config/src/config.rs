//! The typed configuration, as the rest of agentd uses it.

use crate::credentials::CredentialConfig;
use crate::edit_hooks::HookConfig;
use crate::error::ConfigError;
use crate::event_hooks::EventHookConfig;
use crate::managed::ManagedLimits;
use crate::mcp::McpServerConfig;
use crate::origin::ValueOrigin;
use crate::ownership::{self, KeyFile};
use crate::plugin::Plugin;
use crate::vendors::{KeySource, ProviderName};
use crate::warning::ConfigWarning;
use protocol::client::ModelFacts;
use protocol::confinement::{Level, Limits, Network, Tier};
use protocol::context::CompactionKind;
use protocol::hosts::HostRule;
use protocol::judgement::{Audience, PermissionMode, Rule, RuleExample, RuleSet};
use protocol::provider::{Effort, ProviderTimeouts, ReplaySpeed};
use protocol::web::WebSettings;
use std::path::{Path, PathBuf};

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

/// How calls are confined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxConfig {
    /// The reaction to a policy row that the kernel cannot enforce.
    pub level: Level,
    /// No stronger cage than this is tried.
    pub highest_tier: Tier,
    /// Bounds of one call.
    pub limits: Limits,
    /// Variables that commands see beside the usual ones, some as beginnings: `MYAPP_*`.
    pub env: Vec<String>,
}

/// Bounds of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolsConfig {
    /// Most characters of one result that the model is sent.
    pub max_result_chars: u32,
    /// The same for a `read`.
    pub max_read_chars: u32,
    /// Longest time for a command that names none, in milliseconds.
    pub timeout_ms: u64,
    /// A command that runs this many milliseconds goes on in the background. Zero means never.
    pub background_after_ms: u64,
    /// Directories granted beside the project, absolute; links not resolved yet.
    pub add_dirs: Vec<PathBuf>,
}

/// Content that a conversation starts with, in addition to the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextConfig {
    /// Files that are pinned to it, relative to the project or absolute.
    pub files: Vec<String>,
    /// How it is made smaller.
    pub compaction: CompactionKind,
}

/// Bounds of a turn and of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetConfig {
    /// Most requests to the model.
    pub rounds: u32,
    /// Most calls.
    pub calls: u32,
    /// Most calls of all turns of a session together.
    pub session_calls: Option<u32>,
    /// Bounds of sub-agents.
    pub agents: AgentLimits,
}

/// Bounds of sub-agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// Levels below a person's session; 0 means that there are none.
    pub depth: u32,
    /// Most of one session that run at the same time.
    pub at_once: u32,
}

/// Settings of the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UiConfig {
    /// The key that begins a command to the terminal's program, such as `Ctrl-\`.
    pub leader: String,
    /// The view of an attached terminal that can show both.
    pub view: UiView,
    /// Lines with a word before each part, for those who hear the screen.
    pub accessible: bool,
    /// Does the full-screen view use the mouse?
    pub mouse: bool,
    /// Colours of code in the full-screen view: `ansi` or the name of a theme.
    pub theme: String,
    /// How the full-screen view calls a person who looks elsewhere.
    pub notify: UiNotify,
}

/// A way to call the person at a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UiNotify {
    /// The terminal's bell.
    Bell,
    /// A desktop notification by OSC 9.
    Osc9,
    /// A desktop notification by OSC 777.
    Osc777,
    /// None.
    Off,
}

/// A view of an attached session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UiView {
    /// Lines that scroll away.
    Inline,
    /// The whole terminal.
    Full,
}

/// Waits and restarts of the supervisor. All times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaemonConfig {
    /// How long a question waits for an answer.
    pub question_deadline_ms: u64,
    /// How long an unused daemon keeps running.
    pub idle_exit_ms: u64,
    /// How long a session's idle provider keeps running.
    pub idle_provider_ms: u64,
    /// How long the runner of the next command is kept, from the last request; 0 means that none is.
    pub idle_reserve_ms: u64,
    /// Longest time from a worker's start to its Hello.
    pub hello_ms: u64,
    /// Longest time from a ping to its pong.
    pub ping_ms: u64,
    /// From TERM to KILL.
    pub shutdown_ms: u64,
    /// So many crashes without progress within the window, and a slot has failed.
    pub restart_crashes: u32,
    /// The window of `restart_crashes`.
    pub restart_crash_window_ms: u64,
    /// More restarts of any kind within the window, and a slot has failed.
    pub restart_total: u32,
    /// The window of `restart_total`.
    pub restart_window_ms: u64,
    /// Delay before the second restart; doubles with each after it.
    pub restart_delay_ms: u64,
    /// Longest delay.
    pub restart_delay_cap_ms: u64,
    /// So many crashes of a conversation while its journal is replayed, and its session is set
    /// apart.
    pub replay_crashes: u32,
    /// The window of `replay_crashes`.
    pub replay_crash_window_ms: u64,
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
