//! The room that the messages take, and how it is made smaller. Part of [`History`].

use super::{History, TurnMark};
use crate::compact::{self, CutPlan, Kept, KeptPrompts, MovedIndex, size};
use crate::limits::HistoryLimits;
use crate::old_results;
use crate::token_size::BYTES_A_TOKEN;
use protocol::content::{ContentBlock, Message, MessageRole, Usage};
use protocol::context::{Compaction, CompactionCause, NumberedSummary, SummaryStep, room_limit};
use protocol::session::SessionEvent;

/// Most bytes of earlier prompts that stay word for word where the context is unknown.
const PROMPT_BYTES: usize = 60_000;

/// The least bytes of a conversation that may be too long for a server: the smallest contexts have 2048 tokens.
const LONG: usize = 2048 * BYTES_A_TOKEN;

/// The summary of messages that are no longer sent.
#[derive(Debug, Default)]
pub(super) struct SummaryState {
    /// The model was asked for one and has not answered.
    asked: Option<AskedSummary>,
    newest: Option<NumberedSummary>,
    number: u32,
}

/// The vendor's count of the conversation, and what came behind it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct VendorCount {
    /// Tokens of the conversation up to and with the newest answer, where the vendor said them.
    counted: Option<usize>,
    /// Bytes of messages added since the last count.
    pub(super) uncounted: usize,
    /// Bytes of the newest request beside its messages, until it is answered.
    asked_beside: Option<usize>,
    /// The same of the request that was counted.
    counted_beside: Option<usize>,
}

/// A request of a summary.
#[derive(Debug)]
struct AskedSummary {
    dropped: usize,
    prompt_bytes: usize,
    /// A person asked for it, with this focus.
    by_person: Option<String>,
}

impl SummaryState {
    fn set(&mut self, text: &str) {
        self.number = self.number.saturating_add(1);
        self.newest = Some(NumberedSummary { number: self.number, text: text.to_owned() });
    }

    /// A summary that was asked for in a turn is not wanted behind it.
    pub(super) fn turn_ended(&mut self) {
        self.asked = None;
    }
}

impl History {
    /// True if the next request would come too close to the model's limit. `beside` is the size, in
    /// bytes, of its parts outside the messages.
    pub fn is_nearly_full(&self, beside: usize) -> bool {
        let HistoryLimits { context, answer_tokens, .. } = self.limits;
        let wide = |tokens: usize| u64::try_from(tokens).unwrap_or(u64::MAX);
        let most = |context: usize| room_limit(wide(context), wide(answer_tokens));
        context.is_some_and(|context| wide(self.tokens(beside)) > most(context))
    }

    /// True if its length alone may be why a server refuses it.
    pub fn is_long(&self) -> bool {
        self.messages.iter().map(size).sum::<usize>() > LONG
    }

    /// Cuts long results of old calls, if that alone makes enough room: down to three fifths of the
    /// context.
    pub fn results_cut(&self, beside: usize) -> Option<SessionEvent> {
        let most = self.limits.context? / 5 * 3;
        let (messages, old) = self.with_short_results();
        let bytes = messages.iter().map(size).sum::<usize>() + beside;
        let result_chars = self.limits.result_chars;
        (old > 0 && bytes / BYTES_A_TOKEN <= most)
            .then(|| cut(CutPlan { dropped: 0, result_chars, old }))
    }

    /// The removal that makes room: down to two fifths of the context, or to half of the current
    /// size if that is less or the context is unknown. None if it would gain nothing.
    pub fn compacted(&self, beside: usize) -> Option<SessionEvent> {
        let now = self.messages.iter().map(size).sum::<usize>();
        let (messages, old) = self.with_short_results();
        let keep = self.share_of_context(2, 5, beside).min(now / 2);
        let result_chars = self.limits.result_chars;
        match compact::plan(&messages, keep, result_chars) {
            Some(plan) => Some(cut(CutPlan { old, ..plan })),
            None if old > 0 => Some(cut(CutPlan { dropped: 0, result_chars, old })),
            None => None,
        }
    }

    /// The request of a summary: it replaces the oldest messages, so that those which stay take three
    /// tenths of the context, or half of the current size. None if no message would go.
    pub fn summary_asked(
        &self,
        beside: usize,
        (cause, focus): (CompactionCause, String),
    ) -> Option<SessionEvent> {
        let now = self.messages.iter().map(size).sum::<usize>();
        let keep = self.share_of_context(3, 10, beside).min(now / 2);
        let plan = compact::plan(&self.messages, keep, usize::MAX / 4)?;
        let prompt_bytes = self.share_of_context(1, 10, 0).min(PROMPT_BYTES);
        let asked = Compaction::Summary(SummaryStep::Asked {
            dropped: narrow(plan.dropped),
            prompt_bytes: narrow(prompt_bytes),
            focus,
            cause,
        });
        (plan.dropped > 0).then_some(SessionEvent::Compacted(asked))
    }

    /// The focus of a summary that a person asked for and that has not come.
    pub fn wanted_summary(&mut self) -> Option<String> {
        self.summary.asked.as_mut().and_then(|asked| asked.by_person.take())
    }

    /// The newest summary.
    pub fn summary(&self) -> Option<&NumberedSummary> {
        self.summary.newest.as_ref()
    }

    /// Bytes of a part of the context, less those beside the messages.
    fn share_of_context(&self, part: usize, of: usize, beside: usize) -> usize {
        self.limits.context.map_or(usize::MAX, |context| {
            (context / of * part).saturating_mul(BYTES_A_TOKEN).saturating_sub(beside)
        })
    }

    /// The messages with long results of old calls cut, and how many messages are old; 0 where that
    /// changes nothing.
    fn with_short_results(&self) -> (Vec<Message>, usize) {
        let mut messages = self.messages.clone();
        let old = old_results::old(&messages);
        let cut = old_results::shorten(&mut messages, old, self.limits.again, |id| self.number(id));
        let old = if cut.is_empty() { 0 } else { old };
        (messages, old)
    }

    /// The number of a call by the vendor's id.
    fn number(&self, use_id: &str) -> Option<u32> {
        self.use_ids.get(use_id).copied().filter(|number| *number > 0)
    }

    /// Tokens of the next request, as far as one can tell: counted by the vendor up to its newest
    /// answer, estimated behind that.
    pub(crate) fn tokens(&self, beside: usize) -> usize {
        let bytes = self.messages.iter().map(size).sum::<usize>() + beside;
        let VendorCount { counted, uncounted, counted_beside, .. } = self.vendor_count;
        match counted {
            // Some servers count wrongly; fewer than this there cannot be.
            Some(tokens) => {
                let grown = beside.saturating_sub(counted_beside.unwrap_or(beside));
                (tokens + (uncounted + grown) / BYTES_A_TOKEN).max(bytes / 10)
            }
            None => bytes / BYTES_A_TOKEN,
        }
    }

    pub(super) fn count(&mut self, usage: Usage) {
        let Usage { input, output, cache_read, cache_write } = usage;
        let Some(input) = input.or(cache_read) else { return };
        let cached = cache_read.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
        let all = input.saturating_add(cached).saturating_add(output.unwrap_or(0));
        self.vendor_count = VendorCount {
            counted: usize::try_from(all).ok(),
            counted_beside: self.vendor_count.asked_beside,
            ..VendorCount::default()
        };
    }

    /// A request goes out, with so many bytes beside its messages.
    pub(crate) fn asked(&mut self, beside: usize) {
        self.vendor_count.asked_beside = Some(beside);
    }

    /// Another model is asked.
    pub(crate) fn forget_count(&mut self) {
        self.vendor_count.counted = None;
    }

    /// Tokens up to and with the newest answer, where the provider counted them.
    pub(crate) fn counted(&self) -> Option<usize> {
        self.vendor_count.counted
    }

    /// Takes in a step of making it smaller.
    pub(super) fn compact(&mut self, step: &Compaction) {
        let wide = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        match step {
            Compaction::Cut { dropped, result_chars, old } => {
                let (dropped, result_chars) = (wide(*dropped), wide(*result_chars));
                let (old, again) = (wide(*old), self.limits.again);
                let numbers = &self.use_ids;
                let number = |id: &str| numbers.get(id).copied().filter(|number| *number > 0);
                let cut = old_results::shorten(&mut self.messages, old, again, number);
                cut.into_iter().for_each(|cut| self.own.keep_result(cut.call, cut.text));
                self.drop_messages(CutPlan { dropped, result_chars, old }, Kept::Shortened);
            }
            Compaction::Summary(SummaryStep::Asked { dropped, prompt_bytes, focus, cause }) => {
                let by_person = (*cause == CompactionCause::Person).then(|| focus.clone());
                let (dropped, prompt_bytes) = (wide(*dropped), wide(*prompt_bytes));
                self.summary.asked = Some(AskedSummary { dropped, prompt_bytes, by_person });
            }
            Compaction::Summary(SummaryStep::Written { round, text, cost, .. }) => {
                self.summary_answered(*round, *cost);
                let Some(asked) = self.summary.asked.take() else { return };
                let AskedSummary { dropped, prompt_bytes, .. } = asked;
                self.summary.set(text);
                let plan = CutPlan { dropped, result_chars: usize::MAX / 4, old: 0 };
                self.drop_messages(plan, Kept::WordForWord(prompt_bytes));
            }
            Compaction::Summary(SummaryStep::Failed { round, cost, .. }) => {
                self.summary_answered(*round, *cost);
                self.summary.asked = None;
            }
            Compaction::Summary(SummaryStep::Edited { text }) => {
                let Some(before) = self.summary.newest.take() else { return };
                self.summary.set(text);
                compact::edit_summary(&mut self.messages, &before.text, text);
                self.vendor_count.counted = None;
            }
        }
    }

    /// Its request counts like any other.
    fn summary_answered(&mut self, round: u32, cost: Option<u64>) {
        self.last_round = self.last_round.max(round);
        self.budget.cost(cost);
        self.budget.answered();
    }

    /// Applies the removal; the running turn's prompt stays unchanged.
    fn drop_messages(&mut self, plan: CutPlan, prompts: Kept) {
        // An answer whose calls still run stays, for their results to follow it.
        let most = self.messages.len().saturating_sub(usize::from(!self.open.is_empty()));
        let plan = CutPlan { dropped: plan.dropped.min(most), ..plan };
        let at = compact::border(&self.messages, plan.dropped);
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
        let kept = KeptPrompts {
            asked: prompt,
            prompts,
            summary: self.summary.newest.as_ref().map(|newest| newest.text.clone()),
            checklists: self.own.open_checklists(),
            background: self.background.values().cloned().collect(),
        };
        let moved = compact::apply(&mut self.messages, plan, kept);
        self.turn = self.turn.zip(asked).map(|(turn, (message, block))| match moved(message) {
            // Behind the head, before the prompt.
            MovedIndex::Gone { head } => TurnMark { message: 0, block: head, ..turn },
            MovedIndex::To { message, blocks } => {
                TurnMark { message, block: block + blocks, ..turn }
            }
        });
        self.vendor_count.counted = None;
    }
}

fn narrow(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn cut(plan: CutPlan) -> SessionEvent {
    SessionEvent::Compacted(Compaction::Cut {
        dropped: narrow(plan.dropped),
        result_chars: narrow(plan.result_chars),
        old: narrow(plan.old),
    })
}
