//! The prompts that take changes back: commands to agentd, not for the model. Pure.

use protocol::session::{REWIND_PROMPT, UNDO_PROMPT};

/// The changes that such a prompt takes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UndoRequest {
    /// All files of the newest turn that changed files.
    Turn,
    /// One file, by the name that the person gave.
    File { path: String, changes: FileChanges },
    /// All files, as they were before this call; none where the words name no call.
    Since(Option<u32>),
}

/// The changes of one file that are taken back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileChanges {
    /// Those of the newest turn that changed it.
    OfTurn,
    OfSession,
}

impl UndoRequest {
    /// The request of a prompt: `:undo`, `:undo FILE`, `:undo all FILE` or `:rewind files CALL`.
    pub(crate) fn of(prompt: &str) -> Option<Self> {
        if let Some(call) = prompt.trim().strip_prefix(REWIND_PROMPT) {
            let is_word = call.is_empty() || call.starts_with(char::is_whitespace);
            return is_word.then(|| Self::Since(call.trim().parse().ok()));
        }
        let rest = prompt.trim().strip_prefix(UNDO_PROMPT)?;
        if rest.is_empty() {
            return Some(Self::Turn);
        }
        let named = rest.strip_prefix(' ').filter(|rest| !rest.contains(char::is_control))?.trim();
        let (path, changes) = match named.strip_prefix("all ") {
            Some(path) => (path.trim(), FileChanges::OfSession),
            None => (named, FileChanges::OfTurn),
        };
        Some(Self::File { path: path.to_owned(), changes })
    }
}
