//! An answer in the words of the wire; used by `ask` and `play`.

use crate::fault::Fault;
use crate::recording::Retry;
use crate::retry::{Decision, decide};
use crate::step::Step;
use protocol::provider::{Failure, FromProvider, Patience};

/// Where the words about an answer go.
pub(crate) type Say<'a> = &'a mut dyn FnMut(FromProvider);

/// Puts steps into the words of the wire.
pub(crate) struct Telling<'a> {
    pub(crate) round: u32,
    pub(crate) attempt: u32,
    pub(crate) of: u32,
    /// Whether anything was streamed that a new beginning would have to strike.
    pub(crate) any: bool,
    pub(crate) say: Say<'a>,
}

impl Telling<'_> {
    /// Says whether the answer is whole.
    pub(crate) fn steps(&mut self, steps: Vec<Step>) -> Result<bool, Fault> {
        let round = self.round;
        for step in steps {
            match step {
                Step::Piece { index, delta } => {
                    self.any = true;
                    (self.say)(FromProvider::Delta { round, index, delta });
                }
                Step::StartedOver if self.any => {
                    self.retrying(Retry {
                        attempt: self.attempt,
                        of: self.of,
                        wait_ms: 0,
                        reason: "the server began its answer again".to_owned(),
                    });
                }
                Step::StartedOver => {}
                Step::Ended(ending) => {
                    (self.say)(FromProvider::Ended {
                        round,
                        stop: ending.stop,
                        usage: ending.usage,
                        model: ending.model,
                    });
                    return Ok(true);
                }
                Step::Failed(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    pub(crate) fn retrying(&mut self, retry: Retry) {
        self.any = false;
        self.attempt = retry.attempt;
        (self.say)(FromProvider::Retrying {
            round: self.round,
            attempt: retry.attempt,
            of: retry.of,
            wait_ms: retry.wait_ms,
            reason: retry.reason,
        });
    }

    /// For people, and the log.
    pub(crate) fn notice(&mut self, text: &str) {
        (self.say)(FromProvider::Notice { text: text.to_owned() });
    }

    pub(crate) fn failed(&mut self, kind: Failure, message: String) {
        (self.say)(FromProvider::Failed { round: self.round, kind, message });
    }

    /// The request has failed and is not tried again.
    pub(crate) fn give_up(&mut self, fault: &Fault, patience: &Patience) {
        if let Decision::GiveUp { kind, words } = decide(fault, u32::MAX, patience, 0.0) {
            self.failed(kind, words);
        }
    }
}
