//! Assembles a streamed answer: pieces are joined per block, and the answer is complete only at the
//! stream's terminal event. Called by the conversation while a request is open.

use protocol::content::{ContentBlock, StopReason, Usage};
use protocol::provider::{AnswerDelta, FromProvider, ProviderFailure};
use std::collections::BTreeMap;

/// Most bytes of one answer; stops a stream without end from filling this process.
const MOST_BYTES: usize = 32 << 20;

/// One block as far as it came.
#[derive(Debug)]
enum BlockInProgress {
    Text { text: String, whole: bool },
    Thinking { text: String, raw: Option<String> },
    Tool { id: String, name: String, input: String, whole: bool },
}

/// A call of an answer, before it has a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestedCall {
    /// The vendor's id.
    pub use_id: String,
    /// As the model said it.
    pub name: String,
    /// Arguments as streamed, `{}` where none came.
    pub input: String,
    /// True if its block was closed. A call whose block was not closed never runs.
    pub whole: bool,
}

/// The answer to one request, as streamed so far.
#[derive(Debug, Default)]
pub(crate) struct PartialAnswer {
    pieces: BTreeMap<u32, BlockInProgress>,
    bytes: usize,
}

/// The stream is larger than any answer may be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// The effect of a message of the provider on the open answer.
#[derive(Debug)]
pub(crate) enum Streamed {
    /// More comes.
    Open,
    TooLarge,
    Ended(PartialAnswer, StopReason, Usage),
    Failed(ProviderFailure, String),
    /// The words that came before.
    Cancelled(PartialAnswer),
}

/// An ended answer, in the order of its blocks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CompleteAnswer {
    /// For the history.
    pub blocks: Vec<ContentBlock>,
    /// The calls among the blocks.
    pub wanted: Vec<RequestedCall>,
}

impl PartialAnswer {
    /// Takes in a message of the provider. Messages of another request than the open one are stale and ignored.
    pub fn take_in(&mut self, word: FromProvider, open: u32) -> Streamed {
        match word {
            FromProvider::Delta { round, index, delta } if round == open => {
                match self.add(index, delta) {
                    Ok(()) => Streamed::Open,
                    Err(TooLarge) => Streamed::TooLarge,
                }
            }
            FromProvider::Retrying { round, .. } if round == open => {
                *self = Self::default();
                Streamed::Open
            }
            FromProvider::Ended { round, stop, usage, model: _ } if round == open => {
                Streamed::Ended(std::mem::take(self), stop, usage)
            }
            FromProvider::Failed { round, kind, message } if round == open => {
                Streamed::Failed(kind, message)
            }
            FromProvider::Cancelled { round } if round == open => {
                Streamed::Cancelled(std::mem::take(self))
            }
            FromProvider::Delta { .. }
            | FromProvider::Retrying { .. }
            | FromProvider::Ended { .. }
            | FromProvider::Failed { .. }
            | FromProvider::Cancelled { .. }
            | FromProvider::Ready
            | FromProvider::Notice { .. }
            | FromProvider::Pong(_)
            | FromProvider::Log(_) => Streamed::Open,
        }
    }

    /// Joins one piece to its block. A piece that does not fit the block it names is left out.
    fn add(&mut self, index: u32, delta: AnswerDelta) -> Result<(), TooLarge> {
        self.bytes = self.bytes.saturating_add(size(&delta));
        if self.bytes > MOST_BYTES {
            return Err(TooLarge);
        }
        match delta {
            AnswerDelta::Text(more) => {
                let empty = || BlockInProgress::Text { text: String::new(), whole: false };
                if let BlockInProgress::Text { text, whole: false } =
                    self.pieces.entry(index).or_insert_with(empty)
                {
                    text.push_str(&more);
                }
            }
            AnswerDelta::Thinking(more) => {
                let empty = || BlockInProgress::Thinking { text: String::new(), raw: None };
                if let BlockInProgress::Thinking { text, raw: None } =
                    self.pieces.entry(index).or_insert_with(empty)
                {
                    text.push_str(&more);
                }
            }
            AnswerDelta::ThinkingDone { raw: whole } => {
                let empty = || BlockInProgress::Thinking { text: String::new(), raw: None };
                if let BlockInProgress::Thinking { raw: raw @ None, .. } =
                    self.pieces.entry(index).or_insert_with(empty)
                {
                    *raw = Some(whole);
                }
            }
            AnswerDelta::ToolStart { id, name } => {
                self.pieces.entry(index).or_insert(BlockInProgress::Tool {
                    id,
                    name,
                    input: String::new(),
                    whole: false,
                });
            }
            AnswerDelta::ToolInput(more) => {
                if let Some(BlockInProgress::Tool { input, whole: false, .. }) =
                    self.pieces.get_mut(&index)
                {
                    input.push_str(&more);
                }
            }
            AnswerDelta::BlockDone => match self.pieces.get_mut(&index) {
                Some(BlockInProgress::Text { whole, .. } | BlockInProgress::Tool { whole, .. }) => {
                    *whole = true
                }
                Some(BlockInProgress::Thinking { .. }) | None => {}
            },
        }
        Ok(())
    }

    /// The part of an interrupted answer that is kept: what came before its first call. A call that
    /// is not on disk could not be restored after a crash.
    pub fn stopped(mut self) -> Vec<ContentBlock> {
        self.pieces = self
            .pieces
            .into_iter()
            .take_while(|(_, piece)| !matches!(piece, BlockInProgress::Tool { .. }))
            .collect();
        self.end(&StopReason::EndTurn, |id| id).blocks
    }

    /// The answer, ended with `stop`. An incomplete call is kept with `{}` as its arguments and
    /// marked incomplete if the model must learn of it. Incomplete reasoning is dropped, since a
    /// vendor accepts it back only whole. `rename` makes a vendor's ID distinct from all earlier
    /// ones.
    pub fn end(
        self,
        stop: &StopReason,
        mut rename: impl FnMut(String) -> String,
    ) -> CompleteAnswer {
        let keeps_cut_calls = match stop {
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::MaxTokens
            | StopReason::StopSequence
            | StopReason::Other(_) => true,
            StopReason::PauseTurn | StopReason::Refusal { .. } | StopReason::ContextFull => false,
        };
        let mut ended = CompleteAnswer::default();
        for piece in self.pieces.into_values() {
            match piece {
                // Cut text was seen by people and is legal history.
                BlockInProgress::Text { text, .. } => {
                    if !text.trim().is_empty() {
                        ended.blocks.push(ContentBlock::Text { text });
                    }
                }
                BlockInProgress::Thinking { text, raw } => {
                    if let Some(raw) = raw {
                        ended.blocks.push(ContentBlock::Thinking { text, raw });
                    }
                }
                BlockInProgress::Tool { id, name, input, whole } => {
                    if !whole && !keeps_cut_calls {
                        continue;
                    }
                    let use_id = rename(id);
                    let input = if input.trim().is_empty() { "{}".to_owned() } else { input };
                    let sent = if whole { input.clone() } else { "{}".to_owned() };
                    ended.blocks.push(ContentBlock::ToolUse {
                        id: use_id.clone(),
                        name: name.clone(),
                        input: sent,
                    });
                    ended.wanted.push(RequestedCall { use_id, name, input, whole });
                }
            }
        }
        ended
    }
}

fn size(delta: &AnswerDelta) -> usize {
    // A block's own cost beside its text, so that a stream of empty blocks is bounded too.
    let text = match delta {
        AnswerDelta::Text(text) | AnswerDelta::Thinking(text) | AnswerDelta::ToolInput(text) => {
            text.len()
        }
        AnswerDelta::ThinkingDone { raw } => raw.len(),
        AnswerDelta::ToolStart { id, name } => id.len() + name.len(),
        AnswerDelta::BlockDone => 0,
    };
    text + 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &str) -> AnswerDelta {
        AnswerDelta::Text(words.to_owned())
    }

    #[test]
    fn blocks_may_interleave_and_come_out_in_their_order() {
        let mut answer = PartialAnswer::default();
        let start = AnswerDelta::ToolStart { id: "a".into(), name: "read".into() };
        for (index, delta) in [
            (2, start),
            (0, text("He")),
            (2, AnswerDelta::ToolInput("{\"pa".into())),
            (0, text("llo")),
            (0, AnswerDelta::BlockDone),
            (0, text(" late")),
            (2, AnswerDelta::ToolInput("th\":1}".into())),
            (2, AnswerDelta::BlockDone),
            (1, AnswerDelta::Thinking("hm".into())),
            (1, AnswerDelta::ThinkingDone { raw: "{\"s\":1}".into() }),
        ] {
            assert_eq!(answer.add(index, delta), Ok(()));
        }
        let ended = answer.end(&StopReason::ToolUse, |id| id);
        assert_eq!(
            ended.blocks,
            [
                ContentBlock::Text { text: "Hello".into() },
                ContentBlock::Thinking { text: "hm".into(), raw: "{\"s\":1}".into() },
                ContentBlock::ToolUse {
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
        let mut answer = PartialAnswer::default();
        for (index, delta) in [
            (0, AnswerDelta::ToolInput("{}".into())),
            (1, text("words")),
            (1, AnswerDelta::ToolStart { id: "a".into(), name: "bash".into() }),
            (1, AnswerDelta::ToolInput("{}".into())),
        ] {
            assert_eq!(answer.add(index, delta), Ok(()));
        }
        let ended = answer.end(&StopReason::EndTurn, |id| id);
        assert_eq!(ended.blocks, [ContentBlock::Text { text: "words".into() }]);
        assert!(ended.wanted.is_empty());
    }

    #[test]
    fn a_stop_keeps_the_words_that_came_and_nothing_from_the_first_call_on() {
        let call = AnswerDelta::ToolStart { id: "a".into(), name: "bash".into() };
        let cut = ContentBlock::Text { text: "I lo".into() };
        for behind in [vec![], vec![(1, call), (2, text("later"))]] {
            let mut answer = PartialAnswer::default();
            for (index, delta) in std::iter::once((0, text("I lo"))).chain(behind) {
                assert_eq!(answer.add(index, delta), Ok(()));
            }
            assert_eq!(answer.stopped(), std::slice::from_ref(&cut));
        }
    }

    #[test]
    fn an_answer_without_end_is_stopped() {
        let mut answer = PartialAnswer::default();
        let large = text(&"x".repeat(MOST_BYTES / 2));
        assert_eq!(answer.add(0, large.clone()), Ok(()));
        assert_eq!(answer.add(0, large), Err(TooLarge));
    }
}
