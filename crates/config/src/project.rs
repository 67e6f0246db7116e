//! What a project's file may do while the user does not trust it: tighten, not loosen.

use crate::error::ConfigError;
use crate::keys::FromProject;
use crate::models::Model;
use crate::origin::Origin;
use crate::settings::{Entry, Settings};
use std::cmp::Ordering;
use std::fmt;

/// Something that was set aside, or that people should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where it stands.
    pub origin: Origin,
    /// Which key.
    pub key: String,
    /// In plain words, with a way on.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}` {}", self.origin, self.key, self.text)
    }
}

/// Said of what a file loosens that is not trusted.
const IGNORED: &str = "loosens what holds for you and is ignored, since you have not said that you \
                       trust this file as it is now. Read it; then give --trust-project";

/// Whether the user stands behind a project's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It counts like the user's own.
    Trusted,
    /// Its loosening parts are set aside.
    Untrusted,
}

/// Puts a project's entries on top of `settings`, as far as they may stand there.
pub(crate) fn put_project(
    entries: Vec<Entry>,
    standing: Standing,
    settings: &mut Settings,
    warnings: &mut Vec<Warning>,
) -> Result<(), ConfigError> {
    for entry in entries {
        let loosens = match entry.key.project {
            FromProject::Anything => false,
            FromProject::Nothing => !is_empty(&entry),
            FromProject::Tighten(_) => settings.tightness(&entry) == Some(Ordering::Less),
            FromProject::Misplaced(reason) => {
                let Entry { key, place, .. } = entry;
                return Err(ConfigError::Misplaced {
                    place,
                    key: key.name.into(),
                    reason: reason.into(),
                });
            }
        };
        match (loosens, standing) {
            (false, _) | (true, Standing::Trusted) => settings.put(entry),
            (true, Standing::Untrusted) => warnings.push(Warning {
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
    models: Vec<Model>,
    standing: Standing,
    warnings: &mut Vec<Warning>,
) -> Vec<Model> {
    match standing {
        Standing::Trusted => models,
        Standing::Untrusted => {
            warnings.extend(models.iter().filter_map(|model| {
                Some(Warning {
                    origin: model.entries.first()?.origin(),
                    key: format!("models.{}", model.name),
                    text: IGNORED.into(),
                })
            }));
            Vec::new()
        }
    }
}

fn is_empty(entry: &Entry) -> bool {
    matches!(&entry.value, crate::value::Value::List(items) if items.is_empty())
}
