//! A process's environment as a value, so that reading it is a parameter and not an act.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Variables that a command may see: what programs need to work, and no more. Everything else,
/// keys above all, stays outside.
const COMMANDS_SEE: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "CI",
    "RUSTUP_HOME",
    "CARGO_HOME",
    "RUSTUP_TOOLCHAIN",
    "JAVA_HOME",
    "GOPATH",
    "GOROOT",
    "NVM_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
];

/// Variables with the same value in every command, since no person reads its screen or answers it.
///
/// `PAGER` also stands for `MANPAGER`, `SYSTEMD_PAGER`, `GH_PAGER`, `AWS_PAGER` and their like, which a
/// command does not see. `GIT_PAGER` and `GIT_ASKPASS` outdo the person's git configuration; an empty
/// `GIT_ASKPASS` starts no program.
pub const FOR_COMMANDS: [(&str, &str); 7] = [
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// Those that say where tool chains are: the policy of commands names each of them.
pub const TOOL_HOMES: [&str; 4] = ["RUSTUP_HOME", "CARGO_HOME", "JAVA_HOME", "GOPATH"];

/// The name by which policies know the directory with the copies of the person's settings.
pub const SETTINGS_HOME: &str = "AGENTD_SETTINGS";
/// The same of cargo's settings in the person's home, which cargo also finds from a project below it.
/// They are no place of a call's where they hold keys.
pub const CARGO_SETTINGS: &str = "AGENTD_CARGO_CONFIG";

/// Those that say where programs keep keys; that of `KEY_LISTS` names several, as `PATH` does. A command
/// sees none of them, but for cargo's.
const KEY_PLACES: [&str; 16] = [
    "GNUPGHOME",
    "DOCKER_CONFIG",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
    "CARGO_HOME",
    "NPM_CONFIG_USERCONFIG",
    "npm_config_userconfig",
    "GH_CONFIG_DIR",
    "AZURE_CONFIG_DIR",
    "CLOUDSDK_CONFIG",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "PASSWORD_STORE_DIR",
    "PGPASSFILE",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "SSH_AUTH_SOCK",
];
const KEY_LISTS: [&str; 1] = ["KUBECONFIG"];

/// Whether the variable of this name says where keys lie.
#[must_use]
pub fn names_keys(name: &str) -> bool {
    KEY_PLACES.contains(&name) || KEY_LISTS.contains(&name)
}

/// Where keys lie as these variables say, as far as they say it in full.
#[must_use]
pub fn key_places(variables: &[(String, String)]) -> Vec<PathBuf> {
    let named = variables.iter().filter(|(name, _)| names_keys(name));
    let paths = named.flat_map(|(name, value)| match KEY_LISTS.contains(&name.as_str()) {
        true => std::env::split_paths(value).collect(),
        false => vec![PathBuf::from(value)],
    });
    paths.filter(|path| path.is_absolute()).collect()
}

/// Whether a command may see the variable of this name.
#[must_use]
pub fn command_may_see(name: &str) -> bool {
    COMMANDS_SEE.contains(&name) || name.starts_with("LC_")
}

/// Variables and their values. A variable that is empty counts as unset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    /// The environment of this process; variables whose names are no UTF-8 are left out.
    #[must_use]
    pub fn of_process() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .collect()
    }

    /// The value, where it is set and not empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The value as a path, where it is absolute. XDG asks to ignore any other.
    #[must_use]
    pub fn absolute(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }
}

impl<N: Into<String>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(pairs: T) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}
