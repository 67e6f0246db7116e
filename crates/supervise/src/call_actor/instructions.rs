//! Gives the model the instructions of nested directories with the result of the first call that reads
//! or edits a file there. The result's record has them, so nothing is read again when the session is
//! replayed. Pure but for the shared list of those given. Used by the end of a call.

use call::{CallConclusion, Cut, FileVersions};
use protocol::call::Call;

/// Puts those that the model has not had below the result, and returns problems for the person.
pub(super) fn give(
    conclusion: &mut CallConclusion,
    call: &Call,
    versions: &FileVersions,
) -> Vec<String> {
    let Some(report) = conclusion.report.as_mut().filter(|_| conclusion.cut == Cut::No) else {
        return Vec::new();
    };
    // The model does not read the result of a call that the conversation makes for itself.
    if !call.origin.is_model() {
        return Vec::new();
    }
    for file in &report.seen {
        versions.tell(&file.path);
    }
    let mut troubles = Vec::new();
    for found in std::mem::take(&mut report.instructions) {
        if !versions.tell(&found.file.path) {
            continue;
        }
        troubles.extend(found.troubles);
        if found.text.is_empty() {
            continue;
        }
        for text in std::iter::once(&mut conclusion.result.text).chain(report.full.as_mut()) {
            text.push_str(&format!("\n\n{}", found.text));
        }
        report.seen.push(found.file);
    }
    troubles
}
