//! The texts of an answer of the model.

use protocol::content::ContentBlock;

/// The texts of an answer, in their order.
pub(crate) fn text_blocks(blocks: &[ContentBlock]) -> Vec<&str> {
    let texts = blocks.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        ContentBlock::Thinking { .. }
        | ContentBlock::Image { .. }
        | ContentBlock::ToolUse { .. }
        | ContentBlock::ToolResult { .. } => None,
    });
    texts.collect()
}
