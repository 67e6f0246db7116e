//! The model's answer as it streams in, and its failures: part of [`Session`]. Called by [`Session::step`].

use super::{CallsMayRun, Outputs, Session, SessionPhase};
use crate::answer::PartialAnswer;
use crate::budget::NoCalls;
use crate::room::RoomMade;
use crate::summary::AfterSummary;
use protocol::content::{ContentBlock, StopReason, Usage};
use protocol::context::CompactionCause;
use protocol::provider::{FromProvider, ProviderFailure};
use protocol::session::{FromSession, SessionEvent, TurnEnd, WorkerDeaths};

impl Session {
    /// A message of the provider. Messages that do not belong to the open request are stale and
    /// ignored.
    pub(super) fn stream(&mut self, word: FromProvider, out: &mut Outputs) {
        if let SessionPhase::Summarizing { .. } = self.phase {
            return self.summary_stream(word, out);
        }
        let SessionPhase::Asking(answer) = &mut self.phase else { return };
        let open = self.round;
        match word {
            FromProvider::Delta { round, index, delta } if round == open => {
                if answer.add(index, delta).is_err() {
                    out.words.push(FromSession::CancelAsk);
                    let message = "The answer is larger than 32 MiB and was dropped.".to_owned();
                    let kind = ProviderFailure::Rejected;
                    self.end_turn(TurnEnd::ProviderFailed { kind, message }, out);
                }
            }
            FromProvider::Retrying { round, .. } if round == open => {
                *answer = PartialAnswer::default()
            }
            FromProvider::Ended { round, stop, usage, model: _ } if round == open => {
                let answer = std::mem::take(answer);
                self.answered(answer, &stop, usage, out);
            }
            FromProvider::Failed { round, kind, message } if round == open => {
                self.failed(kind, message, out);
            }
            FromProvider::Cancelled { round } if round == open => {
                let answer = std::mem::take(answer);
                self.stopped(answer, out);
            }
            FromProvider::Delta { .. }
            | FromProvider::Retrying { .. }
            | FromProvider::Ended { .. }
            | FromProvider::Failed { .. }
            | FromProvider::Cancelled { .. }
            | FromProvider::Ready
            | FromProvider::Notice { .. }
            | FromProvider::Pong(_)
            | FromProvider::Log(_) => {}
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
        stop: &StopReason,
        usage: Usage,
        out: &mut Outputs,
    ) {
        let behind_results = self.history.ends_with_results();
        self.pinned.show_at_end();
        self.turn.made_room = false;
        self.turn.summarized = false;
        let mut taken: Vec<String> = Vec::new();
        let ended = answer.end(stop, |id| self.history.new_id(id, &mut taken));
        let empty = only_reasoning(&ended.blocks);
        let round = self.round;
        let cost = self.setup.facts.prices.and_then(|prices| prices.cost(usage));
        self.commit(SessionEvent::Answer { round, blocks: ended.blocks, usage, cost }, out);

        let runs = match stop {
            StopReason::Refusal { .. } | StopReason::ContextFull => CallsMayRun::Nothing,
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::MaxTokens
            | StopReason::StopSequence
            | StopReason::PauseTurn
            | StopReason::Other(_)
                if self.is_over() =>
            {
                CallsMayRun::NoMoreRounds
            }
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::MaxTokens
            | StopReason::StopSequence
            | StopReason::PauseTurn
            | StopReason::Other(_) => CallsMayRun::WithinBudget,
        };
        let called = !ended.wanted.is_empty();
        let batch = self.call_all(&ended.wanted, runs, out);
        match stop {
            StopReason::Refusal { explanation } => {
                let explanation = explanation.clone();
                self.end_turn(TurnEnd::Declined { explanation }, out);
            }
            StopReason::ContextFull => {
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
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::MaxTokens
            | StopReason::StopSequence
            | StopReason::PauseTurn
            | StopReason::Other(_)
                if self.is_over() =>
            {
                self.end_turn(self.rounds_used_up(), out);
            }
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::MaxTokens
            | StopReason::StopSequence
            | StopReason::PauseTurn
            | StopReason::Other(_)
                if called =>
            {
                self.phase = SessionPhase::Calling { batch, stopping: false };
                self.go_on_calling(out);
            }
            StopReason::PauseTurn => self.ask(out),
            StopReason::MaxTokens => self.end_turn(TurnEnd::Truncated, out),
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::StopSequence
            | StopReason::Other(_) => {
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

/// True if these blocks are empty.
fn only_reasoning(blocks: &[ContentBlock]) -> bool {
    blocks.iter().all(|block| matches!(block, ContentBlock::Thinking { .. }))
}
