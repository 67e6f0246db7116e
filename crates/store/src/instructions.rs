//! A project's instructions for agents: its `AGENTS.md`, or `CLAUDE.md` if it has none.

use prompts::{INSTRUCTION_BYTES, Instructions, instructions_of};
use std::path::Path;

/// The project's instructions, as part of the text after the system prompt, and the problems of
/// unusable files.
pub(crate) fn of(project: &Path) -> (Option<String>, Vec<String>) {
    // The person chose this directory and its links.
    let (found, troubles) = instructions_of(project, Path::new("/"), INSTRUCTION_BYTES);
    let troubles = troubles
        .into_iter()
        .map(|(name, why)| format!("{name} of the project is not followed: {why}"))
        .collect();
    let part = found.map(|Instructions { name, text }| {
        format!(
            "# Instructions of this project, from its {name}\n\nThey hold where nothing above says \
             otherwise.\n\n{text}\n"
        )
    });
    (part, troubles)
}
