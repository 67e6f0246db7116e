//! Warnings of a configuration.

use crate::origin::ValueOrigin;
use std::fmt;

/// An ignored setting, or another note for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigWarning {
    /// Where it stands.
    pub origin: ValueOrigin,
    /// Which key.
    pub key: String,
    /// The problem and a remedy.
    pub text: String,
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}` {}", self.origin, self.key, self.text)
    }
}
