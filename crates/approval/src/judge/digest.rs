//! The digest that binds an answer to the call that the user saw.

use crate::judge::widening;
use data_encoding::HEXLOWER;
use protocol::judgement::{ExtraRight, JudgedCall};
use sha2::{Digest, Sha256};

/// 64 hex digits over tool, arguments, real paths, content of their files, confinement, and rights
/// beyond those of the session.
pub(crate) fn digest(case: &JudgedCall) -> String {
    let mut hash = Sha256::new();
    // Each field with its length, so that no text can be moved from one field to the next.
    let mut field = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    field(case.call.tool.as_bytes());
    field(case.call.input.as_bytes());
    for path in case.probe.iter().flat_map(|probe| &probe.paths) {
        field(path.real.as_bytes());
        field(path.digest.as_deref().unwrap_or("none").as_bytes());
    }
    field(case.confinement.as_bytes());
    for right in &case.extra_rights {
        field(widening::describe(right).as_bytes());
        // Beside the words, in which two paths could look the same.
        if let ExtraRight::Directory(dir) = right {
            field(&dir.0);
        }
    }
    for name in &case.tampered {
        field(name.as_bytes());
    }
    HEXLOWER.encode(&hash.finalize())
}
