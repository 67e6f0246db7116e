//! An answer in the making: streamed pieces joined per block, whole only once the stream says so.
//! Called by the conversation while a request is open.

use protocol::content::{Block, StopReason};
use protocol::provider::Delta;
use std::collections::BTreeMap;

/// Most bytes of one answer; stops a stream without end from filling this process.
const MOST_BYTES: usize = 32 << 20;

/// One block as far as it came.
#[derive(Debug)]
enum Piece {
    Text { text: String, whole: bool },
    Thinking { text: String, raw: Option<String> },
    Tool { id: String, name: String, input: String, whole: bool },
}

/// A call of an answer, before it has a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The vendor's id.
    pub use_id: String,
    /// As the model said it.
    pub name: String,
    /// Arguments as streamed, `{}` where none came.
    pub input: String,
    /// Whether its block was closed. What was not never runs.
    pub whole: bool,
}

/// What came so far of the answer to one request.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pieces: BTreeMap<u32, Piece>,
    bytes: usize,
}

/// The stream is larger than any answer may be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// An ended answer, in the order of its blocks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    /// For the history.
    pub blocks: Vec<Block>,
    /// The calls among the blocks.
    pub wanted: Vec<Wanted>,
}

impl Answer {
    /// Joins one piece to its block. A piece that does not fit the block it names is left out.
    pub fn add(&mut self, index: u32, delta: Delta) -> Result<(), TooLarge> {
        self.bytes = self.bytes.saturating_add(size(&delta));
        if self.bytes > MOST_BYTES {
            return Err(TooLarge);
        }
        match delta {
            Delta::Text(more) => {
                let empty = || Piece::Text { text: String::new(), whole: false };
                if let Piece::Text { text, whole: false } =
                    self.pieces.entry(index).or_insert_with(empty)
                {
                    text.push_str(&more);
                }
            }
            Delta::Thinking(more) => {
                let empty = || Piece::Thinking { text: String::new(), raw: None };
                if let Piece::Thinking { text, raw: None } =
                    self.pieces.entry(index).or_insert_with(empty)
                {
                    text.push_str(&more);
                }
            }
            Delta::ThinkingDone { raw: whole } => {
                let empty = || Piece::Thinking { text: String::new(), raw: None };
                if let Piece::Thinking { raw: raw @ None, .. } =
                    self.pieces.entry(index).or_insert_with(empty)
                {
                    *raw = Some(whole);
                }
            }
            Delta::ToolStart { id, name } => {
                self.pieces.entry(index).or_insert(Piece::Tool {
                    id,
                    name,
                    input: String::new(),
                    whole: false,
                });
            }
            Delta::ToolInput(more) => {
                if let Some(Piece::Tool { input, whole: false, .. }) = self.pieces.get_mut(&index) {
                    input.push_str(&more);
                }
            }
            Delta::BlockDone => match self.pieces.get_mut(&index) {
                Some(Piece::Text { whole, .. } | Piece::Tool { whole, .. }) => *whole = true,
                Some(Piece::Thinking { .. }) | None => {}
            },
        }
        Ok(())
    }

    /// What a stop half way leaves of it: its words up to the first that are not whole, and nothing
    /// from the first call on: what is not on disk cannot run after a crash either. Text behind
    /// which something else began is whole, for some servers close nothing before the end.
    pub fn stopped(mut self) -> Vec<Block> {
        if let Some(last) = self.pieces.last_entry()
            && matches!(last.get(), Piece::Text { whole: false, .. })
        {
            last.remove();
        }
        self.pieces = self
            .pieces
            .into_iter()
            .take_while(|(_, piece)| !matches!(piece, Piece::Tool { .. }))
            .collect();
        self.end(&StopReason::EndTurn, |id| id).blocks
    }

    /// The answer as it ended with `stop`. An unfinished call is kept with `{}` as its arguments
    /// where the model shall hear of it, and marked as not whole; unfinished reasoning is dropped,
    /// since a vendor takes it back only whole. `rename` makes a vendor's id unlike all earlier.
    pub fn end(self, stop: &StopReason, mut rename: impl FnMut(String) -> String) -> Ended {
        let keeps_cut_calls = match stop {
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::MaxTokens
            | StopReason::StopSequence
            | StopReason::Other(_) => true,
            StopReason::PauseTurn | StopReason::Refusal { .. } | StopReason::ContextFull => false,
        };
        let mut ended = Ended::default();
        for piece in self.pieces.into_values() {
            match piece {
                // Cut text was seen by people and is legal history.
                Piece::Text { text, .. } => {
                    if !text.trim().is_empty() {
                        ended.blocks.push(Block::Text { text });
                    }
                }
                Piece::Thinking { text, raw } => {
                    if let Some(raw) = raw {
                        ended.blocks.push(Block::Thinking { text, raw });
                    }
                }
                Piece::Tool { id, name, input, whole } => {
                    if !whole && !keeps_cut_calls {
                        continue;
                    }
                    let use_id = rename(id);
                    let input = if input.trim().is_empty() { "{}".to_owned() } else { input };
                    let sent = if whole { input.clone() } else { "{}".to_owned() };
                    ended.blocks.push(Block::ToolUse {
                        id: use_id.clone(),
                        name: name.clone(),
                        input: sent,
                    });
                    ended.wanted.push(Wanted { use_id, name, input, whole });
                }
            }
        }
        ended
    }
}

fn size(delta: &Delta) -> usize {
    // A block's own cost beside its text, so that a stream of empty blocks is bounded too.
    let text = match delta {
        Delta::Text(text) | Delta::Thinking(text) | Delta::ToolInput(text) => text.len(),
        Delta::ThinkingDone { raw } => raw.len(),
        Delta::ToolStart { id, name } => id.len() + name.len(),
        Delta::BlockDone => 0,
    };
    text + 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &str) -> Delta {
        Delta::Text(words.to_owned())
    }

    #[test]
    fn blocks_may_interleave_and_come_out_in_their_order() {
        let mut answer = Answer::default();
        let start = Delta::ToolStart { id: "a".into(), name: "read".into() };
        for (index, delta) in [
            (2, start),
            (0, text("He")),
            (2, Delta::ToolInput("{\"pa".into())),
            (0, text("llo")),
            (0, Delta::BlockDone),
            (0, text(" late")),
            (2, Delta::ToolInput("th\":1}".into())),
            (2, Delta::BlockDone),
            (1, Delta::Thinking("hm".into())),
            (1, Delta::ThinkingDone { raw: "{\"s\":1}".into() }),
        ] {
            assert_eq!(answer.add(index, delta), Ok(()));
        }
        let ended = answer.end(&StopReason::ToolUse, |id| id);
        assert_eq!(
            ended.blocks,
            [
                Block::Text { text: "Hello".into() },
                Block::Thinking { text: "hm".into(), raw: "{\"s\":1}".into() },
                Block::ToolUse {
                    id: "a".into(),
                    name: "read".into(),
                    input: "{\"path\":1}".into()
                },
            ]
        );
        assert!(ended.wanted[0].whole);
    }

    #[test]
    fn a_piece_of_the_wrong_kind_is_left_out() {
        let mut answer = Answer::default();
        for (index, delta) in [
            (0, Delta::ToolInput("{}".into())),
            (1, text("words")),
            (1, Delta::ToolStart { id: "a".into(), name: "bash".into() }),
            (1, Delta::ToolInput("{}".into())),
        ] {
            assert_eq!(answer.add(index, delta), Ok(()));
        }
        let ended = answer.end(&StopReason::EndTurn, |id| id);
        assert_eq!(ended.blocks, [Block::Text { text: "words".into() }]);
        assert!(ended.wanted.is_empty());
    }

    #[test]
    fn an_answer_without_end_is_stopped() {
        let mut answer = Answer::default();
        let large = text(&"x".repeat(MOST_BYTES / 2));
        assert_eq!(answer.add(0, large.clone()), Ok(()));
        assert_eq!(answer.add(0, large), Err(TooLarge));
    }
}
