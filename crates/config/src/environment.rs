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
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "TZ",
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

/// Those that say where tool chains are: the policy of commands names each of them.
pub const TOOL_HOMES: [&str; 4] = ["RUSTUP_HOME", "CARGO_HOME", "JAVA_HOME", "GOPATH"];

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
