//! A project's instructions for agents: its `AGENTS.md`, or `CLAUDE.md` if it has none.

use prompts::read_text;
use std::path::Path;

/// Longest text in bytes. It goes with every request.
const LONGEST: usize = 64 << 10;
/// The first that is there holds.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// The project's instructions, as part of the text after the system prompt, and the problems of
/// unusable files.
pub(crate) fn of(project: &Path) -> (Option<String>, Vec<String>) {
    let mut troubles = Vec::new();
    for name in NAMES {
        match read_text(&project.join(name), LONGEST) {
            Ok(Some(text)) if !text.trim().is_empty() => {
                let text = text.trim();
                let part = format!(
                    "# Instructions of this project, from its {name}\n\nThey hold where nothing \
                     above says otherwise.\n\n{text}\n"
                );
                return (Some(part), troubles);
            }
            Ok(_) => {}
            Err(why) => troubles.push(format!("{name} of the project is not followed: {why}")),
        }
    }
    (None, troubles)
}
