//! Turns the steps of an answer into messages to the supervisor; for `request` and `replay`.

use crate::fault::AttemptFault;
use crate::recording::RecordedRetry;
use crate::retry::{RetryDecision, TriesMade, decide};
use crate::step::AnswerStep;
use protocol::provider::{FromProvider, ProviderFailure, ProviderTimeouts};
use std::time::Duration;

/// Where the words about an answer go.
pub(crate) type Emit<'a> = &'a mut dyn FnMut(FromProvider);

/// Turns steps into messages to the supervisor.
pub(crate) struct Emitter<'a> {
    pub(crate) round: u32,
    pub(crate) attempt: u32,
    pub(crate) of: u32,
    /// True if a retry would have to void output that was already streamed.
    pub(crate) any: bool,
    pub(crate) emit: Emit<'a>,
}

impl Emitter<'_> {
    /// Emits the steps. Returns true if the answer is complete.
    pub(crate) fn steps(&mut self, steps: Vec<AnswerStep>) -> Result<bool, AttemptFault> {
        let round = self.round;
        for step in steps {
            match step {
                AnswerStep::Piece { index, delta } => {
                    self.any = true;
                    (self.emit)(FromProvider::Delta { round, index, delta });
                }
                AnswerStep::StartedOver if self.any => {
                    self.retrying(RecordedRetry {
                        attempt: self.attempt,
                        of: self.of,
                        wait_ms: 0,
                        reason: "the server began its answer again".to_owned(),
                    });
                }
                AnswerStep::StartedOver => {}
                AnswerStep::Ended(ending) => {
                    (self.emit)(FromProvider::Ended {
                        round,
                        stop: ending.stop,
                        usage: ending.usage,
                        model: ending.model,
                    });
                    return Ok(true);
                }
                AnswerStep::Failed(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    pub(crate) fn retrying(&mut self, retry: RecordedRetry) {
        self.any = false;
        (self.attempt, self.of) = (retry.attempt, retry.of);
        (self.emit)(FromProvider::Retrying {
            round: self.round,
            attempt: retry.attempt,
            of: retry.of,
            wait_ms: retry.wait_ms,
            reason: retry.reason,
        });
    }

    /// For people, and the log.
    pub(crate) fn notice(&mut self, text: &str) {
        (self.emit)(FromProvider::Notice { text: text.to_owned() });
    }

    pub(crate) fn failed(&mut self, kind: ProviderFailure, message: String) {
        (self.emit)(FromProvider::Failed { round: self.round, kind, message });
    }

    /// The request has failed and is not tried again.
    pub(crate) fn give_up(&mut self, fault: &AttemptFault, patience: &ProviderTimeouts) {
        let made = (TriesMade::default().and(fault), Duration::ZERO);
        let patience = ProviderTimeouts { tries: 1, overload_tries: 1, ..*patience };
        if let RetryDecision::GiveUp { kind, words } = decide(fault, made, &patience, 0.0) {
            self.failed(kind, words);
        }
    }
}
