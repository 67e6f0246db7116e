//! The user's trust in a project's files.

use crate::origin::{Layer, ValueOrigin};
use crate::project::FileTrust;
use crate::sources::Trust;
use crate::warning::ConfigWarning;
use std::path::Path;

/// The user's trust in a project's file with this content.
pub(crate) fn project_trust(
    trust: &Trust,
    path: &Path,
    content: &[u8],
    warnings: &mut Vec<ConfigWarning>,
) -> FileTrust {
    match trust {
        Trust::Trusted => FileTrust::Trusted,
        Trust::AsRecorded(_) if content.is_empty() => FileTrust::Untrusted,
        Trust::AsRecorded(store) => match store.holds(path, content) {
            Ok(true) => FileTrust::Trusted,
            Ok(false) => FileTrust::Untrusted,
            Err(error) => {
                let place = path.display().to_string();
                let origin = ValueOrigin { layer: Layer::Project, file: place, line: 0 };
                warnings.push(ConfigWarning {
                    origin,
                    key: "trust".into(),
                    text: format!("is not known: {error}"),
                });
                FileTrust::Untrusted
            }
        },
    }
}
