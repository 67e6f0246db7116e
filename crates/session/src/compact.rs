//! Making room: which part of a conversation is no longer sent once it nears the model's limit.
//!
//! Pure, over messages alone. A cut is made only before a message without results, so that every
//! call keeps its result. A summary at the front replaces the removed messages. The journal keeps
//! all of them.

use crate::token_size::BYTES_A_TOKEN;
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
/// Text before the list of shortened prompts.
const ASKED: &str = "What was asked there, oldest first:";
/// Text before a summary that the model wrote.
const SUMMARY: &str = "Your summary of it:";
/// Text before the calls in the background.
const BACKGROUND: &str = "Calls that run in the background now:";
/// Text at the end of the head where prompts follow it word for word, and behind them.
const PROMPTS_BEGIN: &str = "[Earlier prompts of the user follow word for word, oldest first. The \
                             summary says which of them are done.]";
const PROMPTS_END: &str = "[The earlier prompts end here.]";
/// Text before the model's last words.
const LAST_WORDS: &str = "Your last words there:";
/// Text before the checklists with unfinished steps.
const CHECKLISTS: &str = "Your checklists that are not done, as they are now:";

/// The removal: this many messages from the front, and the excess length of each result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CutPlan {
    /// Messages.
    pub dropped: usize,
    /// Most characters of one result.
    pub result_chars: usize,
    /// Long results of so many of the first messages are cut to their beginning.
    pub old: usize,
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
pub(crate) fn plan(messages: &[Message], keep: usize, result_chars: usize) -> Option<CutPlan> {
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
    gains.then_some(CutPlan { dropped, result_chars, old: 0 })
}

/// The parts of the removed messages that the summary keeps.
#[derive(Debug, Default)]
pub(crate) struct KeptPrompts {
    /// The running turn's prompt, word for word, where the cut takes it away.
    pub asked: Option<ContentBlock>,
    /// What stays of the other prompts.
    pub prompts: Kept,
    /// The model's summary.
    pub summary: Option<String>,
    /// Checklists that are open.
    pub checklists: Option<String>,
    /// Calls that run in the background, a line each.
    pub background: Vec<String>,
}

/// What stays of earlier prompts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The beginning of each of the newest.
    #[default]
    Shortened,
    /// All of them, up to so many bytes together; the beginning of each older one.
    WordForWord(usize),
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
    Gone {
        /// Blocks of the head before the running turn's prompt.
        head: usize,
    },
}

/// Removes these parts. Returns the new positions of messages.
pub(crate) fn apply(
    messages: &mut Vec<Message>,
    plan: CutPlan,
    kept: KeptPrompts,
) -> impl Fn(usize) -> MovedIndex + use<> {
    for block in messages.iter_mut().flat_map(|message| &mut message.blocks) {
        if let ContentBlock::ToolResult { text, .. } = block {
            *text = cut(std::mem::take(text), plan.result_chars);
        }
    }
    let dropped = border(messages, plan.dropped);
    let mut joined = 0;
    let mut before = 0;
    let mut blocks = 0;
    if dropped > 0 {
        let gone: Vec<Message> = messages.drain(..dropped).collect();
        let asked = kept.asked.clone();
        let mut head = head(&gone, kept);
        blocks = head.len();
        head.extend(asked);
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
        None => MovedIndex::Gone { head: blocks },
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

/// The blocks in place of the removed messages.
fn head(gone: &[Message], kept: KeptPrompts) -> Vec<ContentBlock> {
    let prompts = prompts(gone, kept.asked.as_ref());
    let mut head = LEFT_OUT.to_owned();
    let mut blocks = Vec::new();
    match kept.prompts {
        Kept::Shortened => {
            let newest = &prompts[prompts.len().saturating_sub(PROMPTS)..];
            if !newest.is_empty() {
                head.push_str(&format!("\n\n{ASKED}"));
            }
            for prompt in newest {
                head.push_str("\n- ");
                head.push_str(&short(&one_line(prompt), PROMPT_CHARS));
            }
        }
        Kept::WordForWord(bytes) => blocks = word_for_word(prompts, bytes),
    }
    if let Some(summary) = kept.summary {
        head.push_str(&format!("\n\n{SUMMARY}\n{summary}"));
    }
    if kept.prompts == Kept::Shortened
        && let Some(last) = texts(gone, MessageRole::Assistant).next_back()
    {
        head.push_str(&format!("\n\n{LAST_WORDS}\n"));
        head.push_str(&short(last, WORDS_CHARS));
    }
    if let Some(checklists) = kept.checklists {
        head.push_str(&format!("\n\n{CHECKLISTS}\n{checklists}"));
    }
    if !kept.background.is_empty() {
        head.push_str(&format!("\n\n{BACKGROUND}\n{}", kept.background.join("\n")));
    }
    if !blocks.is_empty() {
        head.push_str(&format!("\n\n{PROMPTS_BEGIN}"));
        blocks.push(ContentBlock::Text { text: PROMPTS_END.to_owned() });
    }
    blocks.insert(0, ContentBlock::Text { text: head });
    blocks
}

/// The texts that a role said.
fn texts(messages: &[Message], role: MessageRole) -> impl DoubleEndedIterator<Item = &str> {
    let said = messages.iter().filter(move |message| message.role == role);
    said.flat_map(|message| &message.blocks).filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        ContentBlock::Thinking { .. }
        | ContentBlock::Image { .. }
        | ContentBlock::ToolUse { .. }
        | ContentBlock::ToolResult { .. } => None,
    })
}

/// The prompts of these messages but for the running turn's, oldest first.
fn prompts(gone: &[Message], asked: Option<&ContentBlock>) -> Vec<String> {
    let mut prompts: Vec<String> = Vec::new();
    for text in texts(gone, MessageRole::User) {
        match text.strip_prefix(LEFT_OUT) {
            // An earlier head: its shortened prompts go into the new one.
            Some(told) => {
                let ends = |line: &&str| {
                    [SUMMARY, LAST_WORDS, CHECKLISTS, BACKGROUND, PROMPTS_BEGIN]
                        .iter()
                        .any(|mark| line.starts_with(mark))
                };
                let lines = told.lines().take_while(|line| !ends(line));
                prompts.extend(lines.filter_map(|line| line.strip_prefix("- ")).map(str::to_owned));
            }
            None if text == PROMPTS_END => {}
            None => prompts.push(text.to_owned()),
        }
    }
    prompts.dedup();
    if let Some(ContentBlock::Text { text }) = asked
        && let Some(at) = prompts.iter().rposition(|prompt| prompt == text)
    {
        prompts.remove(at);
    }
    prompts
}

/// The prompts as blocks: the newest whole, within these bytes, the older ones shortened.
fn word_for_word(prompts: Vec<String>, bytes: usize) -> Vec<ContentBlock> {
    let mut left = bytes;
    let mut blocks: Vec<ContentBlock> = Vec::new();
    for prompt in prompts.into_iter().rev() {
        let fits = left.checked_sub(prompt.len());
        left = fits.unwrap_or(0);
        let text = match fits {
            Some(_) => prompt,
            None => short(&prompt, PROMPT_CHARS),
        };
        blocks.push(ContentBlock::Text { text });
    }
    blocks.reverse();
    blocks
}

/// Replaces the text of the summary in the head.
pub(crate) fn edit_summary(messages: &mut [Message], before: &str, after: &str) {
    let first = messages.first_mut().and_then(|message| message.blocks.first_mut());
    let Some(ContentBlock::Text { text }) = first else { return };
    let mark = format!("\n\n{SUMMARY}\n");
    let Some((beginning, rest)) = text.split_once(&mark) else { return };
    if let Some(rest) = rest.strip_prefix(before) {
        *text = format!("{beginning}{mark}{after}{rest}");
    }
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
