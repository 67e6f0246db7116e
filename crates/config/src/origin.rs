//! Where a value came from.

use std::fmt;

/// One layer of the configuration; a later one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The defaults that `keys` declares.
    BuiltIn,
    /// `/etc/agentd/config.toml`: a low layer for most values, the last word where it tightens.
    Managed,
    /// The user's own file.
    User,
    /// The project's file.
    Project,
    /// The project's file that is not shared.
    Local,
    /// The caller's environment.
    Environment,
    /// The command line.
    Flag,
}

impl Layer {
    /// As shown to people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Managed => "managed",
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Environment => "environment",
            Self::Flag => "flag",
        }
    }
}

/// Where a value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueOrigin {
    /// Which layer.
    pub layer: Layer,
    /// The file, the variable's name, or `built-in` or `flag`.
    pub file: String,
    /// Counted from 1; 0 where there is no file.
    pub line: u32,
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.layer, self.line) {
            (Layer::BuiltIn | Layer::Flag, _) => f.write_str(self.layer.name()),
            (layer, 0) => write!(f, "{} {}", layer.name(), self.file),
            (layer, line) => write!(f, "{} {}:{line}", layer.name(), self.file),
        }
    }
}
