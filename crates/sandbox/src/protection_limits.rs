//! What the protection of files does not reach, for the record.

use crate::guarantees;
use crate::protected::Baseline;

/// Too many protected paths, and link targets that are not protected.
pub(crate) fn protection_limits(before: Option<&Baseline>) -> Vec<String> {
    let Some(before) = before else { return Vec::new() };
    let crowded = before.is_incomplete().then(|| guarantees::TOO_MANY_PROTECTED.to_owned());
    crowded.into_iter().chain(before.limits().iter().cloned()).collect()
}
