//! Redacts the server's secrets in the messages about an answer, even a secret that is split
//! between two pieces. For `provider`.

use crate::emit::Emit;
use crate::secrets::{More, SecretContext, Secrets};
use protocol::content::StopReason;
use protocol::provider::{AnswerDelta, FromProvider};
use std::collections::BTreeMap;

/// Filters the messages about an answer on their way to the supervisor.
pub(crate) struct Redactor<'a> {
    secrets: &'a Secrets,
    /// By block: the end of its text so far that may be the beginning of a secret.
    held: BTreeMap<u32, HeldText>,
    emit: Emit<'a>,
}

/// A text that goes on.
struct HeldText {
    /// Makes it a piece again.
    piece: fn(String) -> AnswerDelta,
    text: String,
}

impl<'a> Redactor<'a> {
    pub(crate) fn new(secrets: &'a Secrets, emit: Emit<'a>) -> Self {
        Self { secrets, held: BTreeMap::new(), emit }
    }

    pub(crate) fn emit(&mut self, word: FromProvider) {
        match word {
            FromProvider::Delta { round, index, delta } => self.delta((round, index), delta),
            FromProvider::Retrying { round, attempt, of, wait_ms, reason } => {
                // A retry voids the held text.
                self.held.clear();
                let reason = self.blank(&reason);
                (self.emit)(FromProvider::Retrying { round, attempt, of, wait_ms, reason });
            }
            FromProvider::Ended { round, stop, usage, model } => {
                for index in self.held.keys().copied().collect::<Vec<_>>() {
                    self.release((round, index));
                }
                let (stop, model) = (self.stop(stop), self.blank(&model));
                (self.emit)(FromProvider::Ended { round, stop, usage, model });
            }
            FromProvider::Failed { round, kind, message } => {
                self.held.clear();
                let message = self.blank(&message);
                (self.emit)(FromProvider::Failed { round, kind, message });
            }
            FromProvider::Ready
            | FromProvider::Cancelled { .. }
            | FromProvider::Pong(_)
            | FromProvider::Notice { .. }
            | FromProvider::Log(_) => (self.emit)(word),
        }
    }

    fn delta(&mut self, (round, index): (u32, u32), delta: AnswerDelta) {
        let delta = match delta {
            AnswerDelta::Text(more) => {
                return self.hold_back((round, index), AnswerDelta::Text, more);
            }
            AnswerDelta::Thinking(more) => {
                return self.hold_back((round, index), AnswerDelta::Thinking, more);
            }
            AnswerDelta::ToolInput(more) => {
                return self.hold_back((round, index), AnswerDelta::ToolInput, more);
            }
            // No signature holds for it then; a key in the journal would be worse.
            AnswerDelta::ThinkingDone { raw } => {
                AnswerDelta::ThinkingDone { raw: self.answer(&raw) }
            }
            AnswerDelta::ToolStart { id, name } => {
                AnswerDelta::ToolStart { id: self.answer(&id), name: self.answer(&name) }
            }
            AnswerDelta::BlockDone => AnswerDelta::BlockDone,
        };
        self.release((round, index));
        (self.emit)(FromProvider::Delta { round, index, delta });
    }

    /// Says a piece but for its end where that may be the beginning of a secret.
    fn hold_back(
        &mut self,
        (round, index): (u32, u32),
        piece: fn(String) -> AnswerDelta,
        more: String,
    ) {
        let mut text = self.held.remove(&index).map(|held| held.text).unwrap_or_default();
        text.push_str(&more);
        let (passed, kept) =
            self.secrets.redact_prefix(text.as_bytes(), SecretContext::Answer, More::MayCome);
        let rest = text.split_off(kept);
        if !rest.is_empty() {
            self.held.insert(index, HeldText { piece, text: rest });
        }
        if more.is_empty() || !passed.is_empty() {
            let delta = piece(String::from_utf8_lossy(&passed).into_owned());
            (self.emit)(FromProvider::Delta { round, index, delta });
        }
    }

    /// The block's text ends, so the held text was not a secret.
    fn release(&mut self, (round, index): (u32, u32)) {
        if let Some(held) = self.held.remove(&index) {
            let delta = (held.piece)(self.answer(&held.text));
            (self.emit)(FromProvider::Delta { round, index, delta });
        }
    }

    fn stop(&self, stop: StopReason) -> StopReason {
        match stop {
            StopReason::Refusal { explanation } => {
                StopReason::Refusal { explanation: self.blank(&explanation) }
            }
            StopReason::Other(name) => StopReason::Other(self.blank(&name)),
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::MaxTokens
            | StopReason::StopSequence
            | StopReason::PauseTurn
            | StopReason::ContextFull => stop,
        }
    }

    fn blank(&self, text: &str) -> String {
        self.secrets.redact(text)
    }

    fn answer(&self, text: &str) -> String {
        let (passed, _) =
            self.secrets.redact_prefix(text.as_bytes(), SecretContext::Answer, More::Ended);
        String::from_utf8_lossy(&passed).into_owned()
    }
}
