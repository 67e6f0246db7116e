//! What a command can ask for beyond the rights of its session, as fields of its arguments. For the
//! tools `bash` and `run`.

use protocol::confinement::GitSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What it asks to do with git's settings.
#[derive(Debug, Default, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum WantedSettings {
    #[default]
    Keep,
    Write,
}

impl From<WantedSettings> for GitSettings {
    fn from(wanted: WantedSettings) -> Self {
        match wanted {
            WantedSettings::Keep => Self::Kept,
            WantedSettings::Write => Self::Writable,
        }
    }
}
