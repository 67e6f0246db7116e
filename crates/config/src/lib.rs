//! Configuration: text to meaning, once, at start, with the origin of each value.
//!
//! [`Config::load`] reads the layers that [`Sources`] names, lowest first: built-in, managed, the
//! user's file, the project's file, the project's local file, environment, flags. Then the managed
//! file's tighter values override all of them. It reads only those files; a process's own
//! environment is passed in, from [`Environment::of_process`]. [`CredentialPaths`] and
//! [`granted_path_dirs`] also inspect the user's home, for keys and for programs.
//!
//! Who calls it: the supervisor for each session it opens, and the command line for `config`,
//! `init` and `doctor`. [`append_allow_rule`] writes one rule into the user's file, for the supervisor, and
//! [`add_servers`] and [`remove_server`] edit it for `agentd mcp`. No key (secret) ever enters a value of this crate;
//! [`secrets`] knows them from other words, for all crates.

mod append_rule;
mod claude_file;
mod claude_rules;
mod config;
mod credential_paths;
mod credentials;
mod dirs;
mod duration;
mod edit_file;
mod edit_hooks;
mod edit_provider;
mod edit_servers;
mod environment;
mod error;
mod event_hooks;
mod file_text;
mod from_settings;
mod hook_form;
mod hook_text;
mod import_servers;
mod init;
mod keys;
mod load;
mod load_hooks;
mod load_servers;
mod managed;
mod mcp;
mod model_catalog;
mod models;
mod origin;
mod ownership;
mod path_dirs;
mod plugin;
mod plugin_servers;
mod project;
mod project_trust;
mod proxy;
mod schema;
pub mod secrets;
mod section;
mod server_package;
mod settings;
mod source_text;
mod sources;
mod text;
mod trust;
mod value;
mod variables;
mod vendors;
mod warning;

pub use append_rule::{AppendRuleError, append_allow_rule};
pub use claude_file::ClaudeFile;
pub use claude_rules::with_real_path;
pub use config::{Config, ConfigRow, Permissions, ProviderConfig};
pub use credential_paths::{
    CredentialPaths, credential_paths, every_path, key_paths_in, names_credential_path,
};
pub use credentials::{CredentialConfig, CredentialKey};
pub use dirs::{
    Dirs, DirsError, SOCKET_PATH_CAP, is_own_runtime, project_dir_name, store_dirs,
    temporary_fallback,
};
pub use duration::written as written_duration;
pub use edit_file::FileAccessError;
pub use edit_hooks::{ConfiguredHook, HookConfig};
pub use edit_provider::{EditProviderError, ProviderChoice, set_provider};
pub use edit_servers::{
    EditServersError, NewServer, add_servers, install_server, remove_server, server_in, server_line,
};
pub use environment::{
    CARGO_SETTINGS, CERTIFICATES, Environment, FOR_COMMANDS, GRADLE_SETTINGS, MAVEN_SETTINGS,
    PLUGIN_FOLDERS, SETTINGS_HOME, SKILL_FOLDERS, TOOL_HOMES, command_may_see, is_added,
};
pub use error::{ConfigError, SourceLine};
pub use event_hooks::{ConfiguredEventHook, EventHookConfig};
pub use file_text::read_file;
pub use import_servers::{FoundServer, claude_servers, codex_servers, writes_secret};
pub use init::{InitError, init_project, init_text, trust_claude_files, trusted_files};
pub use keys::{
    AgentLimits, BudgetConfig, ContextConfig, DaemonConfig, SandboxConfig, ToolsConfig, UiBusy,
    UiConfig, UiKeys, UiNotify, UiView, table as keys_table,
};
pub use load::{MANAGED_FILE, PROJECT_FILE, PROJECT_LOCAL_FILE};
pub use managed::ManagedLimits;
pub use mcp::{
    HANDED_SERVERS, McpServerConfig, ProjectAccess, ServerPlace, expand, is_name as is_server_name,
    server_host, variables_in,
};
pub use model_catalog::{aliased_model, facts as model_facts, is_model_alias};
pub use origin::{Layer, ValueOrigin};
pub use ownership::{KeyFile, user_file_is_own};
pub use path_dirs::{PathPolicy, granted_path_dirs, refused_path_dirs};
pub use plugin::{Plugin, PluginFolder};
pub use server_package::{PackageSource, ServerPackage};
pub use sources::ClaudeRuleSpelling;
pub use sources::{Sources, Trust};
pub use trust::{TrustError, TrustStore};
pub use vendors::{
    KEY_VARIABLES, KeySource, KeyVariable, NeedsKey, ProviderName, VENDORS, Vendor,
    names_server_or_model,
};
pub use warning::ConfigWarning;
