//! A project's instructions for agents: its `AGENTS.md`, or `CLAUDE.md` if it has none. Below the root of a
//! repository those of the directories above it come first, the root's own at the beginning.

use prompts::{DeniedReads, INSTRUCTION_BYTES, Instructions, directories_around, instructions_of};
use std::path::Path;

/// The project's instructions, as part of the text after the system prompt, and sentences for the person
/// about imports and unusable files. All of them together have at most [`INSTRUCTION_BYTES`].
pub(crate) fn of(
    project: &Path,
    repository: Option<&Path>,
    denied: DeniedReads<'_>,
) -> (Option<String>, Vec<String>) {
    let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    // The project's own have the first right to the room.
    let (own, mut notes) = read(&project, &project, INSTRUCTION_BYTES, denied);
    let mut room = INSTRUCTION_BYTES.saturating_sub(own.as_ref().map_or(0, |own| own.text.len()));
    let mut parts = Vec::new();
    for dir in repository.map_or_else(Vec::new, |root| directories_around(root, &project)) {
        let (found, more) = read(&dir, repository.unwrap_or(&dir), room, denied);
        notes.extend(more);
        let Some(Instructions { name, text, .. }) = found else { continue };
        room = room.saturating_sub(text.len());
        parts.push(format!(
            "# Instructions of the repository that this project is a part of, from {}\n\nThey hold where \
             neither anything above nor those of a directory nearer to the project say otherwise.\n\n\
             {text}\n",
            dir.join(name).display()
        ));
    }
    parts.extend(own.map(|Instructions { name, text, .. }| {
        format!(
            "# Instructions of this project, from its {name}\n\nThey hold where nothing above says \
             otherwise.\n\n{text}\n"
        )
    }));
    ((!parts.is_empty()).then(|| parts.join("\n")), notes)
}

fn read(
    dir: &Path,
    within: &Path,
    room: usize,
    denied: DeniedReads<'_>,
) -> (Option<Instructions>, Vec<String>) {
    let (found, troubles) = instructions_of(dir, within, room, denied);
    let mut notes = found.as_ref().map(Instructions::import_notes).unwrap_or_default();
    let whose = if dir == within { "the project".to_owned() } else { dir.display().to_string() };
    let troubles = troubles.into_iter();
    notes.extend(troubles.map(|(name, why)| format!("{name} of {whose} is not followed: {why}")));
    (found, notes)
}
