//! Configuration: text to meaning, once, at start, with the origin of each value.
//!
//! [`Config::load`] reads the layers that [`Sources`] names, lowest first: built-in, managed, the
//! user's file, the project's file, the project's local file, environment, flags; then what the
//! managed file tightens holds over all of them. Reading those files is the only input of a
//! configuration; a process's own environment comes in through [`Environment::of_process`]. [`Keys`]
//! and [`granted`] look at the person's home, too: where keys lie, and where programs.
//!
//! Who calls it: the supervisor for each session it opens, and the command line for `config`,
//! `init` and `doctor`. [`allow`] writes one rule into the user's file, for the supervisor. No key (secret) ever enters a value of this crate.

mod address;
mod config;
mod credentials;
mod dirs;
mod duration;
mod environment;
mod error;
mod hook;
mod init;
mod key_places;
mod keys;
mod known;
mod learn;
mod load;
mod models;
mod nearest;
mod origin;
mod own;
mod path_dirs;
mod project;
mod proxy;
mod settings;
mod text;
mod trust;
mod value;
mod variables;
mod vendors;

pub use address::{is_sign_in, names_token};
pub use config::{
    Budget, Config, ContextConfig, DaemonConfig, Permissions, ProviderConfig, Row, SandboxConfig,
    ToolsConfig,
};
pub use credentials::{Credential, CredentialKey};
pub use dirs::{Dirs, DirsError, SOCKET_PATH_CAP};
pub use environment::{
    CARGO_SETTINGS, CERTIFICATES, Environment, FOR_COMMANDS, GRADLE_SETTINGS, MAVEN_SETTINGS,
    SETTINGS_HOME, TOOL_HOMES, command_may_see, gives_key, holds_key, is_added, key_places,
    names_keys, sounds_secret,
};
pub use error::{ConfigError, Place};
pub use hook::{Configured, HookConfig};
pub use init::{InitError, init_project, init_text};
pub use key_places::{Keys, every_path};
pub use learn::{LearnError, allow};
pub use load::{MANAGED_FILE, PROJECT_FILE, PROJECT_LOCAL_FILE, Sources, Trust};
pub use origin::{Layer, Origin};
pub use own::{KeyFile, user_file_is_own};
pub use path_dirs::{Ground, granted, refused};
pub use project::Warning;
pub use trust::{TrustError, TrustStore};
pub use vendors::{KeySource, KeyVariable, ProviderName, Vendor};
