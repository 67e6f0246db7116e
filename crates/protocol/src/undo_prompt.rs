//! The prompts that take changes back: agentd answers them itself, and asks no model. Used by the supervisor
//! and by clients.

use crate::session::{REWIND_PROMPT, UNDO_PROMPT};

/// True for a prompt that takes changes back.
#[must_use]
pub fn is_undo(prompt: &str) -> bool {
    is_command(prompt, UNDO_PROMPT) || is_rewind(prompt)
}

/// True for a prompt that rewinds the files to a moment that the person has chosen.
#[must_use]
pub fn is_rewind(prompt: &str) -> bool {
    is_command(prompt, REWIND_PROMPT)
}

fn is_command(prompt: &str, command: &str) -> bool {
    let rest = prompt.trim().strip_prefix(command);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}
