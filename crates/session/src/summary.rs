//! The summary that the model writes in place of the oldest messages: its request, its answer, and the
//! cut that replaces it where it does not come. Part of [`Session`].

use crate::answer::{PartialAnswer, Streamed};
use crate::{Outputs, Session, SessionPhase, images};
use protocol::content::{ContentBlock, Message, MessageRole, StopReason, ToolChoice, Usage};
use protocol::context::{Compaction, SummaryStep};
use protocol::session::{FromSession, SessionEvent, TurnEnd, WorkerDeaths};

/// What the model is asked for.
const REQUEST: &str = "\
[This is not a prompt of the user. Write a summary of this conversation now. It replaces the oldest \
messages, and you go on with it alone: what it leaves out is lost to you. Call no tool. Write plain \
text under these headings:
1. Goal: what the user wants, with every constraint that they named.
2. Decisions: what was decided, and why.
3. State: the files that were read, created or changed, by path, and what matters in each.
4. Results: commands that were run and what they showed; errors, and how they were solved.
5. Next: what is being done right now, and the next step.
The prompts of the user, pinned files and open checklists stay word for word: do not repeat them.]";

/// What follows a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterSummary {
    /// The request of the turn.
    Ask,
    /// The next prompt.
    Rest,
}

impl Session {
    /// Asks the model for the summary that this event describes.
    pub(super) fn ask_for_summary(
        &mut self,
        asked: SessionEvent,
        then: AfterSummary,
        out: &mut Outputs,
    ) {
        let mut text = REQUEST.to_owned();
        if let SessionEvent::Compacted(Compaction::Summary(SummaryStep::Asked { focus, .. })) =
            &asked
            && !focus.trim().is_empty()
        {
            text.push_str(&format!("\n[The user wants this focus: {}]", focus.trim()));
        }
        self.commit(asked, out);
        let mut messages = self.history.messages();
        // The person was told when the image came.
        let _ = images::prepare(&mut messages, &self.setup);
        let block = ContentBlock::Text { text };
        match messages.last_mut() {
            Some(last) if last.role == MessageRole::User => last.blocks.push(block),
            Some(_) | None => {
                messages.push(Message { role: MessageRole::User, blocks: vec![block] });
            }
        }
        let request = self.request(messages, ToolChoice::No);
        out.words.push(FromSession::Ask(request));
        self.phase = SessionPhase::Summarizing { answer: PartialAnswer::default(), then };
    }

    /// The summary came further.
    pub(super) fn summary_streamed(&mut self, streamed: Streamed, out: &mut Outputs) {
        let nothing = (Usage::default(), Some(0));
        match streamed {
            Streamed::Open => {}
            Streamed::TooLarge => {
                out.words.push(FromSession::CancelAsk);
                self.no_summary("it was larger than 32 MiB", nothing, out);
            }
            Streamed::Ended(answer, stop, usage) => self.summary_ended(answer, &stop, usage, out),
            Streamed::Failed(_, message) => self.no_summary(&message, nothing, out),
            Streamed::Cancelled(_) => self.stop_summary(out),
        }
    }

    fn summary_ended(
        &mut self,
        answer: PartialAnswer,
        stop: &StopReason,
        usage: Usage,
        out: &mut Outputs,
    ) {
        let cost = self.setup.facts.prices.and_then(|prices| prices.cost(usage));
        let blocks = answer.end(stop, |id| id).blocks;
        let texts = blocks.iter().filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.trim()),
            ContentBlock::Thinking { .. }
            | ContentBlock::Image { .. }
            | ContentBlock::ToolUse { .. }
            | ContentBlock::ToolResult { .. } => None,
        });
        let mut text = texts.collect::<Vec<_>>().join("\n\n");
        let problem = match stop {
            StopReason::Refusal { .. } => Some("the model declined"),
            StopReason::ContextFull => Some("the context is full"),
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::MaxTokens
            | StopReason::StopSequence
            | StopReason::PauseTurn
            | StopReason::Other(_) => None,
        };
        let problem = problem.or(text.is_empty().then_some("the model answered without a text"));
        if let Some(problem) = problem {
            return self.no_summary(problem, (usage, cost), out);
        }
        if *stop == StopReason::MaxTokens {
            text.push_str("\n[The summary ends here: it reached the limit of an answer.]");
        }
        let summarized =
            Compaction::Summary(SummaryStep::Written { round: self.round, text, usage, cost });
        self.commit(SessionEvent::Compacted(summarized), out);
        self.pinned.lay_down();
        self.go_on_behind_summary(out);
    }

    /// No summary comes: the oldest messages are left out instead.
    pub(super) fn no_summary(
        &mut self,
        why: &str,
        (usage, cost): (Usage, Option<u64>),
        out: &mut Outputs,
    ) {
        let reason = format!("{why}. The oldest messages are left out instead");
        let failed =
            Compaction::Summary(SummaryStep::Failed { round: self.round, reason, usage, cost });
        self.commit(SessionEvent::Compacted(failed), out);
        self.make_room(out);
        self.go_on_behind_summary(out);
    }

    /// The provider's process died too often over the summary.
    pub(super) fn summary_provider_died(&mut self, deaths: &WorkerDeaths, out: &mut Outputs) {
        self.no_summary(&deaths.to_string(), (Usage::default(), Some(0)), out);
    }

    fn go_on_behind_summary(&mut self, out: &mut Outputs) {
        let SessionPhase::Summarizing { then, .. } = self.phase else { return };
        self.phase = SessionPhase::Idle;
        self.turn.summarized = true;
        match then {
            AfterSummary::Ask => self.ask(out),
            AfterSummary::Rest => self.next_turn(out),
        }
    }

    /// A person stops it: nothing is left out.
    pub(super) fn stop_summary(&mut self, out: &mut Outputs) {
        let SessionPhase::Summarizing { then, .. } = self.phase else { return };
        let (round, reason) = (self.round, "you stopped it".to_owned());
        let (usage, cost) = (Usage::default(), Some(0));
        let failed = Compaction::Summary(SummaryStep::Failed { round, reason, usage, cost });
        self.commit(SessionEvent::Compacted(failed), out);
        match then {
            AfterSummary::Ask => self.end_turn(TurnEnd::Interrupted, out),
            AfterSummary::Rest => {
                self.phase = SessionPhase::Idle;
                self.next_turn(out);
            }
        }
    }
}
