//! Changed pinned files: where each vendor's request carries them, and under which mark. Every
//! request has its own text of them; the conversation contains none.

use protocol::content::{ContentBlock, FilesUpdated, Message, MessageRole, ModelRequest};
use std::borrow::Cow;

/// The mark of Anthropic's and OpenAI's interfaces.
pub(crate) const UPDATED: &str = "[FILES UPDATED]";
/// The mark of Gemini's, whose models take unmarked text in a result for the tool's own.
pub(crate) const SYSTEM_UPDATED: &str = "[SYSTEM: FILES UPDATED]";

/// The block, its mark first.
pub(crate) fn block(mark: &str, updated: &FilesUpdated) -> String {
    format!("{mark}\n{}", updated.text.trim_end())
}

/// The messages of the request, with the changed files at the end of the last result; where the last
/// message has none, behind its words. A request that ends with the model's words has no place.
pub(crate) fn inside<'a>(request: &'a ModelRequest, mark: &str) -> Cow<'a, [Message]> {
    let Some(updated) = &request.updated else { return Cow::Borrowed(&request.messages) };
    let mut messages = request.messages.clone();
    if let Some(last) = messages.last_mut().filter(|last| last.role == MessageRole::User) {
        let block = block(mark, updated);
        let results = last.blocks.iter_mut().rev().find_map(|block| match block {
            ContentBlock::ToolResult { text, .. } => Some(text),
            ContentBlock::Text { .. }
            | ContentBlock::Image { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::ToolUse { .. } => None,
        });
        match results {
            Some(text) => *text = format!("{text}\n\n{block}"),
            None => last.blocks.push(ContentBlock::Text { text: block }),
        }
    }
    Cow::Owned(messages)
}
