//! The digest that binds an answer to exactly what was shown.

use crate::wording;
use protocol::judgement::Case;
use sha2::{Digest, Sha256};

/// 64 hex digits over tool, arguments, real paths and what the files there held, the cage and the
/// rights beyond it.
pub(crate) fn digest(case: &Case) -> String {
    let mut hash = Sha256::new();
    // Each field with its length, so that no text can be moved from one field to the next.
    let mut field = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    field(&case.call.tool);
    field(&case.call.input);
    for path in case.probe.iter().flat_map(|probe| &probe.paths) {
        field(&path.real);
        field(path.digest.as_deref().unwrap_or("none"));
    }
    field(&case.confinement);
    for widening in &case.widens {
        field(&wording::widening(widening));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
