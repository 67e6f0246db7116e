//! The shape of a conversation: it must match for a recorded answer to be replayed. No IO.

use protocol::content::{ContentBlock, Message, MessageRole};
use std::fmt::Write;

/// Longest text that a shape contains in full, in characters. A longer one is replaced by its
/// beginning, its length and a digest.
const LONGEST: usize = 120;

/// One line for each message: who speaks, the kinds of its blocks in order, and of
///
/// - a prompt, its last text, which the user wrote (the texts before it may contain dates and
///   directories);
/// - results of tools, the ids they answer and nothing else: their text may hold times, and text
///   beside them is ours and changes from day to day;
/// - calls, the id, the tool's name and its arguments.
///
/// System text, tools and the model's name are left out: they change with the version.
#[must_use]
pub fn shape(messages: &[Message]) -> Vec<String> {
    messages.iter().map(line).collect()
}

fn line(message: &Message) -> String {
    let results: Vec<&str> = message
        .blocks
        .iter()
        .filter_map(|block| match block {
            ContentBlock::ToolResult { id, .. } => Some(id.as_str()),
            ContentBlock::Text { .. }
            | ContentBlock::Image { .. }
            | ContentBlock::Thinking { .. }
            | ContentBlock::ToolUse { .. } => None,
        })
        .collect();
    match message.role {
        MessageRole::User if results.is_empty() => format!("user: {}", last_text(&message.blocks)),
        MessageRole::User => format!("user: results of {}", results.join(", ")),
        MessageRole::Assistant => {
            let blocks: Vec<String> = message.blocks.iter().map(kind).collect();
            format!("assistant: {}", blocks.join(", "))
        }
    }
}

fn last_text(blocks: &[ContentBlock]) -> String {
    blocks
        .iter()
        .rev()
        .find_map(|block| match block {
            ContentBlock::Text { text } => Some(quoted(text)),
            ContentBlock::Thinking { .. }
            | ContentBlock::Image { .. }
            | ContentBlock::ToolUse { .. }
            | ContentBlock::ToolResult { .. } => None,
        })
        .unwrap_or_default()
}

fn kind(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text { .. } => "text".to_owned(),
        ContentBlock::Thinking { .. } => "thinking".to_owned(),
        ContentBlock::ToolUse { id, name, input } => {
            format!("call {id} of {name} with {}", quoted(input))
        }
        ContentBlock::ToolResult { id, .. } => format!("result of {id}"),
        ContentBlock::Image { image } => format!("image {}", image.digest),
    }
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => format!("{text:?}"),
        Some((cut, _)) => format!(
            "{:?} and so on, {} bytes, digest {:016x}",
            &text[..cut],
            text.len(),
            digest(text.as_bytes())
        ),
    }
}

/// FNV-1a: tells texts apart that differ by accident, which is all that is asked, and stays the
/// same in every build.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Where two shapes part, in words; nothing if they are the same.
pub(super) fn departure(recorded: &[String], now: &[String]) -> Option<String> {
    let mut words = String::new();
    for (at, pair) in recorded.iter().zip(now).enumerate() {
        if pair.0 != pair.1 {
            let (then, now) = pair;
            let _infallible =
                write!(words, "message {} was <{then}> when recorded and is <{now}> now", at + 1);
            return Some(words);
        }
    }
    (recorded.len() != now.len()).then(|| {
        format!(
            "the conversation had {} messages when recorded and has {} now",
            recorded.len(),
            now.len()
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn message(role: MessageRole, blocks: &[ContentBlock]) -> Message {
        Message { role, blocks: blocks.to_vec() }
    }

    fn text(text: &str) -> ContentBlock {
        ContentBlock::Text { text: text.into() }
    }

    fn result(text: &str) -> ContentBlock {
        ContentBlock::ToolResult {
            id: "t1".into(),
            text: text.into(),
            is_error: false,
            images: vec![],
        }
    }

    fn conversation(day: &str, prompt: &str, path: &str) -> Vec<Message> {
        vec![
            message(MessageRole::User, &[text(day), text(prompt)]),
            message(
                MessageRole::Assistant,
                &[
                    text("words"),
                    ContentBlock::ToolUse {
                        id: "t1".into(),
                        name: "read".into(),
                        input: format!("{{\"path\":\"{path}\"}}"),
                    },
                ],
            ),
            message(MessageRole::User, &[result(day), text(day)]),
        ]
    }

    #[test]
    fn what_may_differ_and_what_may_not() {
        let then = shape(&conversation("monday", "fix it", "a"));
        assert_eq!(
            then,
            [
                r#"user: "fix it""#,
                r#"assistant: text, call t1 of read with "{\"path\":\"a\"}""#,
                "user: results of t1",
            ]
        );
        let now = |prompt, path| shape(&conversation("tuesday", prompt, path));
        assert_eq!(departure(&then, &now("fix it", "a")), None);
        assert_eq!(
            departure(&then, &now("break it", "a")).unwrap(),
            r#"message 1 was <user: "fix it"> when recorded and is <user: "break it"> now"#
        );
        assert!(departure(&then, &now("fix it", "b")).unwrap().starts_with("message 2"));
        assert_eq!(
            departure(&then, &then[..1]).unwrap(),
            "the conversation had 3 messages when recorded and has 1 now"
        );
    }

    #[test]
    fn long_texts_differ_at_their_end_too() {
        let long = "é".repeat(LONGEST);
        let of = |text: &str| {
            shape(&[message(MessageRole::User, &[ContentBlock::Text { text: text.into() }])])
        };
        assert_eq!(of(&long), [format!("user: {long:?}")]);
        assert_ne!(of(&format!("{long}a")), of(&format!("{long}b")));
        assert!(of(&format!("{long}a"))[0].len() < 400);
    }
}
