//! A project's instructions for agents: its `AGENTS.md`, or `CLAUDE.md` if it has none.

use prompts::{DeniedReads, INSTRUCTION_BYTES, Instructions, instructions_of};
use std::path::Path;

/// The project's instructions, as part of the text after the system prompt, and sentences for the person
/// about imports and unusable files.
pub(crate) fn of(project: &Path, denied: DeniedReads<'_>) -> (Option<String>, Vec<String>) {
    let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    let (found, troubles) = instructions_of(&project, &project, INSTRUCTION_BYTES, denied);
    let mut notes = found.as_ref().map(Instructions::import_notes).unwrap_or_default();
    let troubles = troubles.into_iter();
    notes.extend(
        troubles.map(|(name, why)| format!("{name} of the project is not followed: {why}")),
    );
    let part = found.map(|Instructions { name, text, .. }| {
        format!(
            "# Instructions of this project, from its {name}\n\nThey hold where nothing above says \
             otherwise.\n\n{text}\n"
        )
    });
    (part, notes)
}
