//! Settings of an untrusted project's file: they may tighten restrictions, not loosen them.

use crate::error::ConfigError;
use crate::models::NamedModel;
use crate::schema::UntrustedMay;
use crate::settings::{LayeredSettings, SettingEntry};
use crate::warning::ConfigWarning;
use std::cmp::Ordering;

/// The warning about a loosening setting in an untrusted file.
const IGNORED: &str = "loosens what holds for you and is ignored, since you have not said that you \
                       trust this file as it is now. Read it; then run `agentd init --trust`, or give \
                       --trust-project for one run";

/// The user's trust in a project's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileTrust {
    /// It counts like the user's own.
    Trusted,
    /// Its loosening parts are set aside.
    Untrusted,
}

/// Applies a project's entries to `settings`, as far as its trust permits.
pub(crate) fn put_project(
    entries: Vec<SettingEntry>,
    file_trust: FileTrust,
    settings: &mut LayeredSettings,
    warnings: &mut Vec<ConfigWarning>,
) -> Result<(), ConfigError> {
    for entry in entries {
        let loosens = match entry.key.project {
            UntrustedMay::Anything => false,
            UntrustedMay::Nothing => !is_empty(&entry),
            UntrustedMay::Tighten(_) => settings.tightness(&entry) == Some(Ordering::Less),
            UntrustedMay::Misplaced(reason) => {
                let SettingEntry { key, place, .. } = entry;
                return Err(ConfigError::Misplaced {
                    place,
                    key: key.name.into(),
                    reason: reason.into(),
                });
            }
        };
        match (loosens, file_trust) {
            (false, _) | (true, FileTrust::Trusted) => settings.put(entry),
            (true, FileTrust::Untrusted) => warnings.push(ConfigWarning {
                origin: entry.origin(),
                key: entry.key.name.into(),
                text: IGNORED.into(),
            }),
        }
    }
    Ok(())
}

/// The models of a project's file, which would be sent a key: only a trusted one's count.
pub(crate) fn models(
    models: Vec<NamedModel>,
    file_trust: FileTrust,
    warnings: &mut Vec<ConfigWarning>,
) -> Vec<NamedModel> {
    match file_trust {
        FileTrust::Trusted => models,
        FileTrust::Untrusted => {
            warnings.extend(models.iter().filter_map(|model| {
                Some(ConfigWarning {
                    origin: model.entries.first()?.origin(),
                    key: format!("models.{}", model.name),
                    text: IGNORED.into(),
                })
            }));
            Vec::new()
        }
    }
}

fn is_empty(entry: &SettingEntry) -> bool {
    entry.value.items().is_some_and(<[_]>::is_empty)
}
