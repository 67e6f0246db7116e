//! A person's prompt on its way to the conversation. Used by the router and the session actor.

use protocol::session::{ExpandedPrompt, REWIND_PROMPT, UNDO_PROMPT};

/// A prompt as it was typed, with the text that a slash command stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PersonPrompt {
    pub(crate) text: String,
    pub(crate) expanded: Option<Box<ExpandedPrompt>>,
}

impl PersonPrompt {
    /// True for a prompt that takes changes back: its words name files, and show none to the model.
    pub(crate) fn is_undo(text: &str) -> bool {
        [UNDO_PROMPT, REWIND_PROMPT].iter().any(|command| is_command(text, command))
    }

    /// True for a prompt that rewinds the files to a moment that the person has chosen.
    pub(crate) fn is_rewind(text: &str) -> bool {
        is_command(text, REWIND_PROMPT)
    }
}

fn is_command(text: &str, command: &str) -> bool {
    let rest = text.trim().strip_prefix(command);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

impl From<String> for PersonPrompt {
    fn from(text: String) -> Self {
        Self { text, expanded: None }
    }
}

impl From<&str> for PersonPrompt {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}
