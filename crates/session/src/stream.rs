//! The model's answer as it streams in, and its failures: part of [`Session`]. Called by [`Session::step`].

use super::{CallsMayRun, Outputs, Session, SessionPhase};
use crate::answer::{PartialAnswer, RequestedCall, Streamed};
use crate::budget::NoCalls;
use crate::room::RoomMade;
use crate::summary::AfterSummary;
use protocol::content::{ContentBlock, StopReason, Usage};
use protocol::context::CompactionCause;
use protocol::provider::{FromProvider, ProviderFailure};
use protocol::session::{FromSession, SessionEvent, TurnEnd, WorkerDeaths};

impl Session {
    /// A message of the provider.
    pub(super) fn stream(&mut self, word: FromProvider, out: &mut Outputs) {
        let open = self.round;
        let (SessionPhase::Asking(answer) | SessionPhase::Summarizing { answer, .. }) =
            &mut self.phase
        else {
            return;
        };
        let streamed = answer.take_in(word, open);
        if let SessionPhase::Summarizing { .. } = self.phase {
            return self.summary_streamed(streamed, out);
        }
        match streamed {
            Streamed::Open => {}
            Streamed::TooLarge => {
                out.words.push(FromSession::CancelAsk);
                let message = "The answer is larger than 32 MiB and was dropped.".to_owned();
                let kind = ProviderFailure::Rejected;
                self.end_turn(TurnEnd::ProviderFailed { kind, message }, out);
            }
            Streamed::Ended(answer, stop, usage) => self.answered(answer, stop, usage, out),
            Streamed::Failed(kind, message) => self.failed(kind, message, out),
            Streamed::Cancelled(answer) => self.stopped(answer, out),
        }
    }

    /// The request failed for good. A request that was too long is shortened and sent again, once
    /// per answer. So is a long one that was refused for a reason which agentd does not know. If it is still too long, the failure is final.
    pub(super) fn failed(&mut self, kind: ProviderFailure, message: String, out: &mut Outputs) {
        let may_be_full = match kind {
            ProviderFailure::ContextFull => true,
            ProviderFailure::BadRequest => self.history.is_long(),
            ProviderFailure::KeyRefused
            | ProviderFailure::NoKey
            | ProviderFailure::Unreachable
            | ProviderFailure::Rejected
            | ProviderFailure::Overloaded
            | ProviderFailure::RecordingDeparted => false,
        };
        if may_be_full && !self.turn.made_room && self.can_make_room() {
            if kind == ProviderFailure::BadRequest {
                out.notice(Some(format!(
                    "the model's server refused the request, perhaps for its length. It is asked once more without \
                     the oldest messages: {message}"
                )));
            }
            self.turn.made_room = true;
            self.turn.summarized = true;
            let (cause, then) = (CompactionCause::Full, AfterSummary::Ask);
            return match self.begin_compaction(cause, String::new(), then, out) {
                RoomMade::Now => self.ask(out),
                RoomMade::Later => {}
            };
        }
        // Those words were a courtesy: that they do not come is not why the turn ends. A recording that
        // was left is, wherever that shows.
        if self.turn.last_words && kind != ProviderFailure::RecordingDeparted {
            out.warn(&format!(
                "the last words of a turn whose budget is used up did not come: {message}"
            ));
            return self.end_turn(self.used_up(), out);
        }
        self.end_turn(TurnEnd::ProviderFailed { kind, message }, out);
    }

    /// No answer comes, since the process that owed it died too often.
    pub(super) fn provider_died(&mut self, deaths: WorkerDeaths, out: &mut Outputs) {
        match self.phase {
            // As for a request that failed: these words were a courtesy.
            SessionPhase::Asking(_) if self.turn.last_words => self.end_turn(self.used_up(), out),
            SessionPhase::Asking(_) => self.end_turn(TurnEnd::ProcessDied(deaths), out),
            SessionPhase::Summarizing { .. } => self.summary_provider_died(&deaths, out),
            SessionPhase::Replaying
            | SessionPhase::Idle
            | SessionPhase::Calling { .. }
            | SessionPhase::Checking
            | SessionPhase::Joining { .. }
            | SessionPhase::Reading { .. }
            | SessionPhase::CompactHooks(_)
            | SessionPhase::Undoing => {}
        }
    }

    /// The exhausted budget of the turn.
    pub(super) fn used_up(&self) -> TurnEnd {
        match self.history.budget().over() {
            None => self.rounds_used_up(),
            Some((NoCalls { most, of }, _)) => TurnEnd::CallsUsedUp { calls: most, of },
        }
    }

    /// The answer is whole: it is kept, its calls are named, and the turn goes on or ends.
    pub(super) fn answered(
        &mut self,
        answer: PartialAnswer,
        stop: StopReason,
        usage: Usage,
        out: &mut Outputs,
    ) {
        let behind_results = self.history.ends_with_results();
        self.pinned.show_at_end();
        self.turn.made_room = false;
        self.turn.summarized = false;
        let mut taken: Vec<String> = Vec::new();
        let ended = answer.end(&stop, |id| self.history.new_id(id, &mut taken));
        let empty = only_reasoning(&ended.blocks);
        let round = self.round;
        let cost = self.setup.facts.prices.and_then(|prices| prices.cost(usage));
        self.commit(SessionEvent::Answer { round, blocks: ended.blocks, usage, cost }, out);

        let rounds_left = (!self.is_over()).then_some(ended.wanted.as_slice());
        let end = AnswerEnd::new(stop, rounds_left);
        let runs = match end {
            AnswerEnd::Declined { .. } | AnswerEnd::ContextFull => CallsMayRun::Nothing,
            AnswerEnd::RoundsUsedUp => CallsMayRun::NoMoreRounds,
            AnswerEnd::Called | AnswerEnd::Paused | AnswerEnd::Truncated | AnswerEnd::Words => {
                CallsMayRun::WithinBudget
            }
        };
        let batch = self.call_all(&ended.wanted, runs, out);
        match end {
            AnswerEnd::Declined { explanation } => {
                self.end_turn(TurnEnd::Declined { explanation }, out);
            }
            AnswerEnd::ContextFull => {
                self.phase = SessionPhase::Idle;
                self.commit(SessionEvent::TurnEnded { end: TurnEnd::Truncated }, out);
                self.turn.made_room = true;
                self.turn.summarized = true;
                let (cause, then) = (CompactionCause::Full, AfterSummary::Rest);
                match self.begin_compaction(cause, String::new(), then, out) {
                    RoomMade::Now => self.next_turn(out),
                    RoomMade::Later => {}
                }
            }
            AnswerEnd::RoundsUsedUp => self.end_turn(self.rounds_used_up(), out),
            AnswerEnd::Called => {
                self.phase = SessionPhase::Calling { batch, stopping: false };
                self.go_on_calling(out);
            }
            AnswerEnd::Paused => self.ask(out),
            AnswerEnd::Truncated => self.end_turn(TurnEnd::Truncated, out),
            AnswerEnd::Words => {
                // Vendors now and then answer results with nothing; once is worth a second try.
                if empty && behind_results && !self.turn.asked_again {
                    self.turn.asked_again = true;
                    self.pinned.show_inside();
                    self.ask(out);
                } else if self.history.budget().over().is_some() {
                    self.end_turn(self.used_up(), out);
                } else {
                    self.finish_turn(out);
                }
            }
        }
    }

    /// The turn was stopped in the middle of an answer: the words that came are kept, and none of its
    /// calls.
    pub(super) fn stopped(&mut self, answer: PartialAnswer, out: &mut Outputs) {
        let blocks = answer.stopped();
        if !only_reasoning(&blocks) {
            let (round, usage) = (self.round, Usage::default());
            // The vendor counted nothing, so the limit of the cost counts nothing either.
            let cost = Some(0);
            self.commit(SessionEvent::Answer { round, blocks, usage, cost }, out);
        }
        self.end_turn(TurnEnd::Interrupted, out);
    }
}

/// The way on behind an answer.
#[derive(Debug)]
enum AnswerEnd {
    Declined {
        explanation: String,
    },
    ContextFull,
    /// It came in the last round of the turn, or behind it.
    RoundsUsedUp,
    Called,
    Paused,
    Truncated,
    /// The model has nothing more to do.
    Words,
}

impl AnswerEnd {
    /// The calls are those that rounds are left for.
    fn new(stop: StopReason, calls: Option<&[RequestedCall]>) -> Self {
        match stop {
            StopReason::Refusal { explanation } => Self::Declined { explanation },
            StopReason::ContextFull => Self::ContextFull,
            _ if calls.is_none() => Self::RoundsUsedUp,
            _ if calls.is_some_and(|calls| !calls.is_empty()) => Self::Called,
            StopReason::PauseTurn => Self::Paused,
            StopReason::MaxTokens => Self::Truncated,
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::StopSequence
            | StopReason::Other(_) => Self::Words,
        }
    }
}

/// True if these blocks are empty.
fn only_reasoning(blocks: &[ContentBlock]) -> bool {
    blocks.iter().all(|block| matches!(block, ContentBlock::Thinking { .. }))
}
