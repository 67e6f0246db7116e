//! Long results of old calls: they are the first to go where room is needed. Pure, over messages alone.
//! The beginning of each stays, with a sentence that names the call and how to read the rest again.

use protocol::content::{ContentBlock, Message};

/// The newest rounds of calls, whose results stay whole: the model works with them.
const NEW_ROUNDS: usize = 3;
/// A result with more characters is long.
const LONG: usize = 1000;
/// Characters of its beginning that stay, by which the model knows it.
const BEGINNING: usize = 200;

/// How the model reads a cut result again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadAgain {
    /// By the tool `history_search`, without running anything.
    Search,
    /// By calling again: that tool is not offered.
    Call,
}

/// A result that was cut.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CutResult {
    /// The number of its call.
    pub call: u32,
    /// The whole text.
    pub text: String,
}

/// The number of messages from the front whose results are old, if there are any.
pub(crate) fn old(messages: &[Message]) -> usize {
    let with_results = messages.iter().enumerate().filter(|(_, message)| {
        message.blocks.iter().any(|block| matches!(block, ContentBlock::ToolResult { .. }))
    });
    with_results.rev().nth(NEW_ROUNDS - 1).map_or(0, |(at, _)| at)
}

/// Cuts the long results of the first `old` messages. `number_of` gives the number of a call by the
/// vendor's id. Returns what was cut.
pub(crate) fn shorten(
    messages: &mut [Message],
    old: usize,
    again: ReadAgain,
    number_of: impl Fn(&str) -> Option<u32>,
) -> Vec<CutResult> {
    let mut cut = Vec::new();
    let mut tools: Vec<(String, String)> = Vec::new();
    for block in messages.iter_mut().take(old).flat_map(|message| &mut message.blocks) {
        match block {
            ContentBlock::ToolUse { id, name, .. } => tools.push((id.clone(), name.clone())),
            ContentBlock::ToolResult { id, text, .. } => {
                let Some((end, _)) = text.char_indices().nth(BEGINNING) else { continue };
                let Some(number) = number_of(id).filter(|_| text.chars().count() > LONG) else {
                    continue;
                };
                let tool = tools.iter().find(|(of, _)| of == id).map_or("", |(_, name)| name);
                let rest = text[end..].chars().count();
                let way = match again {
                    ReadAgain::Search => {
                        format!("history_search with {{\"call\": {number}}} shows all of it again")
                    }
                    ReadAgain::Call => format!("call {tool} again where you need it"),
                };
                let short = format!(
                    "{}\n[{rest} more characters of this result of call {number} ({tool}) are left \
                     out to make room; {way}.]",
                    &text[..end]
                );
                cut.push(CutResult { call: number, text: std::mem::replace(text, short) });
            }
            ContentBlock::Text { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::Image { .. } => {}
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::content::MessageRole;

    fn round(number: usize, length: usize) -> [Message; 2] {
        let id = format!("use_{number}");
        let call =
            ContentBlock::ToolUse { id: id.clone(), name: "bash".into(), input: "{}".into() };
        let text = format!("{number} {}", "é".repeat(length));
        let result = ContentBlock::ToolResult { id, text, is_error: false, images: Vec::new() };
        [
            Message { role: MessageRole::Assistant, blocks: vec![call] },
            Message { role: MessageRole::User, blocks: vec![result] },
        ]
    }

    fn text(message: &Message) -> &str {
        match &message.blocks[0] {
            ContentBlock::ToolResult { text, .. } => text,
            ContentBlock::Text { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::Image { .. }
            | ContentBlock::ToolUse { .. } => "",
        }
    }

    fn number(id: &str) -> Option<u32> {
        id.strip_prefix("use_").and_then(|number| number.parse().ok())
    }

    #[test]
    fn long_results_of_old_rounds_are_cut_and_say_how_to_read_them_again() {
        let lengths = [5000, 500, 3000, 4000, 6000];
        let mut messages: Vec<_> =
            (1..).zip(lengths).flat_map(|(at, length)| round(at, length)).collect();
        let whole = messages.clone();
        // The newest three rounds are not old.
        let old = old(&messages);
        assert_eq!(old, 5);
        let cut = shorten(&mut messages, old, ReadAgain::Search, number);
        assert_eq!(cut, [CutResult { call: 1, text: text(&whole[1]).to_owned() }]);
        let short = text(&messages[1]);
        assert!(short.starts_with("1 éé") && short.chars().count() < 400, "{short}");
        for words in ["4802 more characters", "call 1 (bash)", "history_search with {\"call\": 1}"]
        {
            assert!(short.contains(words), "{words}: {short}");
        }
        assert_eq!(messages[2..], whole[2..]);
        assert_eq!(shorten(&mut messages, old, ReadAgain::Search, number), [], "once");
        let mut messages = whole;
        shorten(&mut messages, old, ReadAgain::Call, number);
        assert!(text(&messages[1]).contains("call bash again"), "{}", text(&messages[1]));
    }

    #[test]
    fn few_rounds_have_no_old_results() {
        let messages: Vec<_> = (1..=2).flat_map(|at| round(at, 5000)).collect();
        assert_eq!(old(&messages), 0);
    }
}
