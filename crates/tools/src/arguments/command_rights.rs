//! What a command can ask for beyond the rights of its session, as fields of its arguments. For the
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

/// What it asks to have signed.
#[derive(Debug, Default, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum SigningChoice {
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

/// What it asks to do with git's settings.
#[derive(Debug, Default, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum GitSettingsChoice {
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
