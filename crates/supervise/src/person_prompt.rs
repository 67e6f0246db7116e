//! A person's prompt on its way to the conversation. Used by the router and the session actor.

use protocol::session::ExpandedPrompt;

/// A prompt as it was typed, with the text that a slash command stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PersonPrompt {
    pub(crate) text: String,
    pub(crate) expanded: Option<Box<ExpandedPrompt>>,
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
