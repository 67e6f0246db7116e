//! The room that the messages take, and how it is made smaller. Part of [`History`].

use super::{History, TurnMark};
use crate::compact::{self, Compaction, KeptPrompts, MovedIndex, size};
use crate::limits::{BYTES_A_TOKEN, HistoryLimits};
use protocol::content::{ContentBlock, MessageRole, Usage};
use protocol::session::SessionEvent;

impl History {
    /// True if the next request would come too close to the model's limit. `beside` is the size, in
    /// bytes, of its parts outside the messages.
    pub fn is_nearly_full(&self, beside: usize) -> bool {
        let HistoryLimits { context, answer_tokens, .. } = self.limits;
        // Half of the context is always available to requests, however long answers may be.
        let most = |context: usize| {
            context.saturating_sub(answer_tokens).min(context / 5 * 4).max(context / 2)
        };
        context.is_some_and(|context| self.tokens(beside) > most(context))
    }

    /// The removal that makes room: down to two fifths of the context, or to half of the current
    /// size if that is less or the context is unknown. None if it would gain nothing.
    pub fn compacted(&mut self, beside: usize) -> Option<SessionEvent> {
        let now = self.messages.iter().map(size).sum::<usize>();
        let context = self.limits.context.map_or(usize::MAX, |context| {
            (context / 5 * 2).saturating_mul(BYTES_A_TOKEN).saturating_sub(beside)
        });
        let plan = compact::plan(&self.messages, context.min(now / 2), self.limits.result_chars)?;
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Some(SessionEvent::Compacted {
            dropped: narrow(plan.dropped),
            result_chars: narrow(plan.result_chars),
        })
    }

    /// Tokens of the next request, as far as one can tell: counted by the vendor up to its newest
    /// answer, estimated behind that.
    pub(crate) fn tokens(&self, beside: usize) -> usize {
        let bytes = self.messages.iter().map(size).sum::<usize>() + beside;
        match self.counted {
            // Some servers count wrongly; fewer than this there cannot be.
            Some(tokens) => (tokens + self.uncounted / BYTES_A_TOKEN).max(bytes / 10),
            None => bytes / BYTES_A_TOKEN,
        }
    }

    pub(super) fn count(&mut self, usage: Usage) {
        let Usage { input, output, cache_read, cache_write } = usage;
        let Some(input) = input.or(cache_read) else { return };
        let cached = cache_read.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
        let all = input.saturating_add(cached).saturating_add(output.unwrap_or(0));
        self.counted = usize::try_from(all).ok();
        self.uncounted = 0;
    }

    /// Applies the removal; the running turn's prompt stays unchanged.
    pub(super) fn compact(&mut self, compaction: Compaction) {
        // An answer whose calls still run stays, for their results to follow it.
        let most = self.messages.len().saturating_sub(usize::from(!self.open.is_empty()));
        let compaction = Compaction { dropped: compaction.dropped.min(most), ..compaction };
        let at = compact::border(&self.messages, compaction.dropped);
        // The prompt is the next block behind the mark, or the first of the next message.
        let asked = self.turn.map(|mark| {
            let goes_on = self.messages.get(mark.message).map(|message| message.blocks.len());
            match goes_on.is_some_and(|blocks| mark.block < blocks) {
                true => (mark.message, mark.block),
                false => (mark.message + 1, 0),
            }
        });
        let lost = asked.filter(|(message, _)| at > 0 && *message < at);
        let prompt = lost.and_then(|(message, block)| {
            let message =
                self.messages.get(message).filter(|found| found.role == MessageRole::User)?;
            message
                .blocks
                .get(block)
                .filter(|block| matches!(block, ContentBlock::Text { .. }))
                .cloned()
        });
        let kept = KeptPrompts { asked: prompt, checklists: self.own.open_checklists() };
        let moved = compact::apply(&mut self.messages, compaction, kept);
        self.turn = self.turn.zip(asked).map(|(_, (message, block))| match moved(message) {
            // Behind the head, before the prompt.
            MovedIndex::Gone => TurnMark { message: 0, block: 1 },
            MovedIndex::To { message, blocks } => TurnMark { message, block: block + blocks },
        });
        self.counted = None;
    }

    /// Tokens up to and with the newest answer, where the provider counted them.
    pub(crate) fn counted(&self) -> Option<usize> {
        self.counted
    }
}
