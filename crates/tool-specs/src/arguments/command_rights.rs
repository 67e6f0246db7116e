//! The rights that a command can request beyond those of its session, as argument fields. For the
//! tools `bash` and `run`.

use protocol::confinement::GitSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Signatures of the commits and tags of a call.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum GitSigning {
    /// None.
    #[default]
    Off,
    /// By the person's ssh agent, as git's settings of the person say.
    ByAgent,
}

/// The requested signatures.
#[derive(Debug, Default, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[allow(missing_docs, reason = "a model would get the documentation with every request")]
pub enum SigningChoice {
    #[default]
    Off,
    On,
}

impl From<SigningChoice> for GitSigning {
    fn from(wanted: SigningChoice) -> Self {
        match wanted {
            SigningChoice::Off => Self::Off,
            SigningChoice::On => Self::ByAgent,
        }
    }
}

/// The requested access to git's settings.
#[derive(Debug, Default, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[allow(missing_docs, reason = "a model would get the documentation with every request")]
pub enum GitSettingsChoice {
    #[default]
    Keep,
    Write,
}

impl From<GitSettingsChoice> for GitSettings {
    fn from(wanted: GitSettingsChoice) -> Self {
        match wanted {
            GitSettingsChoice::Keep => Self::Kept,
            GitSettingsChoice::Write => Self::Writable,
        }
    }
}
