//! The precondition of a change: the file is still the one that was judged.

use crate::failure::{FailureCode, ToolFailure};
use data_encoding::HEXLOWER;
use protocol::tool::JudgedPath;
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::path::Path;

/// SHA-256 of bytes, in hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

/// SHA-256 of all that a reader gives, in hexadecimal, in constant memory.
pub(crate) fn digest_reader(mut reader: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(HEXLOWER.encode(&hash.finalize())),
            Ok(n) => hash.update(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Compares the file at `real` (its digest, or `None` if there is none) with the judged one.
///
/// # Errors
/// `stale` where they differ, or where another path was judged.
pub(crate) fn check_unchanged(
    judged: &[JudgedPath],
    named: &str,
    real: &Path,
    now: Option<&str>,
) -> Result<(), ToolFailure> {
    if judged.is_empty() {
        return Ok(());
    }
    match judged.iter().find(|judged| Path::new(&judged.real) == real) {
        Some(then) if then.digest.as_deref() == now => Ok(()),
        Some(JudgedPath { digest: None, .. }) => {
            Err(stale(named, "was created by another process"))
        }
        Some(_) if now.is_none() => Err(stale(named, "was removed")),
        Some(_) => Err(stale(
            named,
            "changed on disk since you last read it (possibly by a command of yours)",
        )),
        None => Err(stale(named, "now resolves to another path")),
    }
}

/// The call was judged for something that is no longer so.
pub(crate) fn stale(named: &str, what: &str) -> ToolFailure {
    ToolFailure::new(
        FailureCode::Stale,
        format!("{named:?} {what}; nothing was changed"),
        "Read it again and repeat the call.",
    )
}
