//! Making room: which part of a conversation is no longer sent once it nears the model's limit.
//!
//! Pure, over messages alone. A cut is made only before a message without results, so that every
//! call keeps its result. A summary at the front replaces the removed messages. The journal keeps
//! all of them.

use crate::limits::BYTES_A_TOKEN;
use crate::truncate::cut;
use protocol::content::{ContentBlock, ImageRef, Message, MessageRole};

/// Most characters of an earlier prompt in the head.
const PROMPT_CHARS: usize = 400;
/// Maximum number of prompts in the summary; the newest are kept.
const PROMPTS: usize = 30;
/// Most characters of the model's last words in the head.
const WORDS_CHARS: usize = 2000;
/// Minimum length of a shortened result; its beginning identifies it.
const RESULT_CHARS: usize = 400;

/// How the head begins, by which a later one knows it.
const LEFT_OUT: &str = "[The beginning of this conversation is left out to make room, tool calls and \
                        their results with it. Look at files again where you need what was in them.]";
/// Text before the model's last words.
const LAST_WORDS: &str = "Your last words there:";
/// Text before the checklists with unfinished steps.
const CHECKLISTS: &str = "Your checklists that are not done, as they are now:";

/// The removal: this many messages from the front, and the excess length of each result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compaction {
    /// Messages.
    pub dropped: usize,
    /// Most characters of one result.
    pub result_chars: usize,
}

/// Bytes of a message as it is sent, roughly.
pub(crate) fn size(message: &Message) -> usize {
    message.blocks.iter().map(block_size).sum::<usize>() + 16
}

/// The same of a block.
pub(crate) fn block_size(block: &ContentBlock) -> usize {
    16 + match block {
        ContentBlock::Text { text } => text.len(),
        ContentBlock::Thinking { text: _, raw } => raw.len(),
        ContentBlock::ToolUse { id, name, input } => id.len() + name.len() + input.len(),
        ContentBlock::ToolResult { id, text, is_error: _, images } => {
            id.len() + text.len() + images.iter().map(image_size).sum::<usize>()
        }
        ContentBlock::Image { image } => image_size(image),
    }
}

/// The bytes of text that cost as many tokens.
pub(crate) fn image_size(image: &ImageRef) -> usize {
    usize::try_from(image.tokens()).unwrap_or(usize::MAX).saturating_mul(BYTES_A_TOKEN)
}

/// How to bring the messages down to about `keep` bytes; none where nothing would be gained.
pub(crate) fn plan(messages: &[Message], keep: usize, result_chars: usize) -> Option<Compaction> {
    let borders = (0..messages.len()).filter(|at| !has_results(&messages[*at]));
    let mut dropped = 0;
    for border in borders {
        dropped = border;
        if messages[border..].iter().map(size).sum::<usize>() <= keep {
            break;
        }
    }
    let kept = &messages[dropped..];
    let mut result_chars = result_chars;
    if kept.iter().map(size).sum::<usize>() > keep {
        let results = kept.iter().flat_map(|message| &message.blocks).filter(|b| is_result(b));
        result_chars = result_chars.min((keep / results.count().max(1)).max(RESULT_CHARS));
    }
    let shortens = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult { text, .. } if text.chars().count() > 2 * result_chars);
    let gains = dropped > 0 || kept.iter().flat_map(|message| &message.blocks).any(shortens);
    gains.then_some(Compaction { dropped, result_chars })
}

/// The parts of the removed messages that the summary keeps.
#[derive(Debug, Default)]
pub(crate) struct KeptPrompts {
    /// The running turn's prompt, word for word, where the cut takes it away.
    pub asked: Option<ContentBlock>,
    /// Checklists that are open.
    pub checklists: Option<String>,
}

/// Where an index moved that pointed into the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MovedIndex {
    /// Its message is this one now, behind so many blocks of the head.
    To {
        /// The message's index.
        message: usize,
        /// Blocks put before its own.
        blocks: usize,
    },
    /// Its message is left out.
    Gone,
}

/// Removes these parts. Returns the new positions of messages.
pub(crate) fn apply(
    messages: &mut Vec<Message>,
    compaction: Compaction,
    kept: KeptPrompts,
) -> impl Fn(usize) -> MovedIndex + use<> {
    for block in messages.iter_mut().flat_map(|message| &mut message.blocks) {
        if let ContentBlock::ToolResult { text, .. } = block {
            *text = cut(std::mem::take(text), compaction.result_chars);
        }
    }
    let dropped = border(messages, compaction.dropped);
    let mut joined = 0;
    let mut before = 0;
    if dropped > 0 {
        let gone: Vec<Message> = messages.drain(..dropped).collect();
        let mut head = vec![ContentBlock::Text { text: head(&gone, kept.checklists) }];
        head.extend(kept.asked);
        match messages.first_mut() {
            Some(first) if first.role == MessageRole::User => {
                joined = head.len();
                first.blocks.splice(0..0, head);
            }
            Some(_) | None => {
                before = 1;
                messages.insert(0, Message { role: MessageRole::User, blocks: head });
            }
        }
    }
    move |at| match at.checked_sub(dropped) {
        None => MovedIndex::Gone,
        Some(0) => MovedIndex::To { message: before, blocks: joined },
        Some(rest) => MovedIndex::To { message: rest + before, blocks: 0 },
    }
}

/// The first place from there on where the messages may be cut.
pub(crate) fn border(messages: &[Message], at: usize) -> usize {
    let behind = messages.iter().skip(at).take_while(|message| has_results(message)).count();
    (at + behind).min(messages.len())
}

fn has_results(message: &Message) -> bool {
    message.blocks.iter().any(is_result)
}

fn is_result(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::ToolResult { .. })
}

/// The text in place of the removed messages.
fn head(gone: &[Message], checklists: Option<String>) -> String {
    let texts = |role: MessageRole| {
        let said = gone.iter().filter(move |message| message.role == role);
        said.flat_map(|message| &message.blocks).filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.as_str()),
            ContentBlock::Thinking { .. }
            | ContentBlock::Image { .. }
            | ContentBlock::ToolUse { .. }
            | ContentBlock::ToolResult { .. } => None,
        })
    };
    let mut prompts: Vec<String> = Vec::new();
    for text in texts(MessageRole::User) {
        match text.strip_prefix(LEFT_OUT) {
            // An earlier summary: its content goes into the new one.
            Some(told) => {
                let ends =
                    |line: &&str| line.starts_with(LAST_WORDS) || line.starts_with(CHECKLISTS);
                let lines = told.lines().take_while(|line| !ends(line));
                prompts.extend(lines.filter_map(|line| line.strip_prefix("- ")).map(str::to_owned));
            }
            None => prompts.push(short(&one_line(text), PROMPT_CHARS)),
        }
    }
    prompts.dedup();
    let mut head = LEFT_OUT.to_owned();
    if !prompts.is_empty() {
        head.push_str("\n\nWhat was asked there, oldest first:");
    }
    for prompt in &prompts[prompts.len().saturating_sub(PROMPTS)..] {
        head.push_str("\n- ");
        head.push_str(prompt);
    }
    if let Some(last) = texts(MessageRole::Assistant).next_back() {
        head.push_str(&format!("\n\n{LAST_WORDS}\n"));
        head.push_str(&short(last, WORDS_CHARS));
    }
    if let Some(checklists) = checklists {
        head.push_str(&format!("\n\n{CHECKLISTS}\n{checklists}"));
    }
    head
}

/// True for the text in place of removed messages.
pub(crate) fn is_head(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text { text } if text.starts_with(LEFT_OUT))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The beginning of a text, with a mark where it is not all.
fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{} …", &text[..end]),
    }
}
