//! What fills the model's context: the next request in parts, for a person. Pure. Used by `room`.

use crate::compact::{block_size, image_size, is_head};
use protocol::content::{ContentBlock, Message, MessageRole};
use protocol::context::{ContextKind, ContextPart, ContextReport};

/// The size of a request, and the tokens that are known of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestSize<'a> {
    /// Its messages without pinned files.
    pub messages: &'a [Message],
    /// Number and bytes of its parts beside them.
    pub beside: [(ContextKind, usize, usize); 3],
    /// Tokens up to and with the newest answer, where the provider counted them.
    pub counted: Option<usize>,
    /// Tokens of the whole, as far as one can tell.
    pub tokens: usize,
}

/// The request in parts, each in proportion to its bytes, so that they come to the whole.
pub(crate) fn parts(request: RequestSize<'_>) -> Vec<ContextPart> {
    let mut measures: Vec<_> = request.beside.to_vec();
    for message in request.messages {
        measures.extend(message.blocks.iter().flat_map(|block| measure(message.role, block)));
    }
    let whole: usize = measures.iter().map(|(_, _, bytes)| bytes).sum();
    let part = |kind: ContextKind| {
        let of_it = measures.iter().filter(|(of, _, _)| *of == kind);
        let (count, bytes) = of_it.fold((0, 0), |(count, bytes), (_, n, b)| (count + n, bytes + b));
        let tokens = bytes as u128 * request.tokens as u128 / whole.max(1) as u128;
        ContextPart {
            kind,
            count: u32::try_from(count).unwrap_or(u32::MAX),
            tokens: u64::try_from(tokens).unwrap_or(u64::MAX),
        }
    };
    ContextKind::ALL.map(part).to_vec()
}

/// The report of this request, for a model with that name, context and answers of so many tokens.
pub(crate) fn report(
    request: RequestSize<'_>,
    (model, window, answer): (&str, Option<u64>, u32),
) -> ContextReport {
    let wide = |tokens: usize| u64::try_from(tokens).unwrap_or(u64::MAX);
    let counted = request.counted.map(|tokens| wide(tokens.min(request.tokens)));
    ContextReport {
        model: model.to_owned(),
        window,
        parts: parts(request),
        counted,
        estimated: wide(request.tokens).saturating_sub(counted.unwrap_or(0)),
        answer: answer.into(),
        summary: None,
        unread: Vec::new(),
    }
}

/// The kinds of a block, each with its number and bytes.
fn measure(role: MessageRole, block: &ContentBlock) -> Vec<(ContextKind, usize, usize)> {
    let bytes = block_size(block);
    match (role, block) {
        (MessageRole::Assistant, _) => vec![(ContextKind::Answers, 1, bytes)],
        (MessageRole::User, ContentBlock::Image { .. }) => vec![(ContextKind::Images, 1, bytes)],
        (MessageRole::User, ContentBlock::ToolResult { images, .. }) => {
            let shown: usize = images.iter().map(image_size).sum();
            vec![
                (ContextKind::Results, 1, bytes - shown),
                (ContextKind::Images, images.len(), shown),
            ]
        }
        (MessageRole::User, block) if is_head(block) => vec![(ContextKind::Summary, 1, bytes)],
        (
            MessageRole::User,
            ContentBlock::Text { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::ToolUse { .. },
        ) => vec![(ContextKind::Prompts, 1, bytes)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(role: MessageRole, length: usize) -> Message {
        Message { role, blocks: vec![ContentBlock::Text { text: "x".repeat(length) }] }
    }

    #[test]
    fn the_parts_come_to_the_whole_and_the_count_of_the_provider_is_part_of_it() {
        let result = ContentBlock::ToolResult {
            id: "a".into(),
            text: "y".repeat(983),
            is_error: false,
            images: Vec::new(),
        };
        let messages = [
            text(MessageRole::User, 84),
            text(MessageRole::Assistant, 184),
            Message { role: MessageRole::User, blocks: vec![result] },
        ];
        let beside = [
            (ContextKind::System, 1, 300),
            (ContextKind::Tools, 9, 400),
            (ContextKind::Pinned, 0, 0),
        ];
        let request = RequestSize { messages: &messages, beside, counted: Some(500), tokens: 1000 };
        let report = report(request, ("m", Some(2000), 100));
        assert_eq!((report.counted, report.estimated, report.used()), (Some(500), 500, 1000));
        let found: Vec<_> =
            report.parts.iter().map(|part| (part.kind, part.count, part.tokens)).collect();
        assert_eq!(
            found,
            [
                (ContextKind::System, 1, 150),
                (ContextKind::Tools, 9, 200),
                (ContextKind::Pinned, 0, 0),
                (ContextKind::Summary, 0, 0),
                (ContextKind::Prompts, 1, 50),
                (ContextKind::Answers, 1, 100),
                (ContextKind::Results, 1, 500),
                (ContextKind::Images, 0, 0),
            ]
        );
        // Without a count, all of it is an estimate.
        let report = super::report(RequestSize { counted: None, ..request }, ("m", None, 100));
        assert_eq!((report.counted, report.estimated), (None, 1000));
    }
}
