//! Which requests of the editor the end of a turn answers. A prompt may begin a turn, join the running one, or wait
//! behind another client's; each request is answered once.

use protocol::client::{ClientEvent, PromptUse, WaitingText};
use protocol::session::TurnEnd;
use serde_json::{Value, json};

/// The prompts that were not answered, in their order.
#[derive(Debug, Default)]
pub(crate) struct OpenPrompts(Vec<OpenPrompt>);

#[derive(Debug)]
struct OpenPrompt {
    request: Value,
    text: String,
    stage: PromptStage,
    wish: PromptWish,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptStage {
    /// It is on its way.
    Sent,
    /// It waits, on disk.
    Queued,
    /// It is in the turn that runs.
    Runs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptWish {
    /// An answer.
    Answer,
    /// The editor has cancelled it.
    Stop,
}

/// How a request ends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AnsweredPrompt {
    pub(crate) request: Value,
    /// The result, or what went wrong.
    pub(crate) result: Result<Value, String>,
}

/// What a cancelled session is to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cancelling {
    /// Prompts that are not in a turn yet.
    pub(crate) take_back: Vec<String>,
    pub(crate) running: RunningTurn,
}

/// The turn that runs, of a cancelled session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum RunningTurn {
    /// It is the editor's, and is interrupted.
    Interrupt,
    /// It is another client's, or none runs.
    #[default]
    Leave,
}

impl OpenPrompts {
    pub(crate) fn add(&mut self, request: Value, text: String) {
        let (stage, wish) = (PromptStage::Sent, PromptWish::Answer);
        self.0.push(OpenPrompt { request, text, stage, wish });
    }

    /// True if an event is the record of a prompt of the editor's, which enters a turn. Says too if that turn is to be
    /// interrupted, since the prompt was cancelled meanwhile.
    pub(crate) fn enter(&mut self, event: &ClientEvent) -> Option<RunningTurn> {
        let ClientEvent::Prompt {
            text,
            of: PromptUse::Prompt | PromptUse::Joined | PromptUse::Command,
        } = event
        else {
            return None;
        };
        let is_it = |open: &&mut OpenPrompt| open.stage != PromptStage::Runs && open.text == *text;
        let open = self.0.iter_mut().find(is_it)?;
        open.stage = PromptStage::Runs;
        Some(match open.wish {
            PromptWish::Answer => RunningTurn::Leave,
            PromptWish::Stop => RunningTurn::Interrupt,
        })
    }

    /// The words of prompts that did not reach the disk, as far as is known.
    pub(crate) fn unsent(&self) -> Vec<String> {
        let sent = self.0.iter().filter(|open| open.stage == PromptStage::Sent);
        sent.map(|open| open.text.clone()).collect()
    }

    /// These prompts wait, on disk.
    pub(crate) fn queued(&mut self, waiting: &[WaitingText]) {
        for one in waiting {
            let is_it =
                |open: &&mut OpenPrompt| open.stage == PromptStage::Sent && open.text == one.text;
            if let Some(open) = self.0.iter_mut().find(is_it) {
                open.stage = PromptStage::Queued;
            }
        }
    }

    /// The request of the first prompt that may have been refused.
    pub(crate) fn refused(&mut self, why: &str) -> Option<AnsweredPrompt> {
        let place = self.0.iter().position(|open| open.stage == PromptStage::Sent)?;
        let request = self.0.remove(place).request;
        Some(AnsweredPrompt { request, result: Err(why.to_owned()) })
    }

    /// The requests that the end of a turn answers.
    pub(crate) fn end(&mut self, end: &TurnEnd) -> Vec<AnsweredPrompt> {
        let result = outcome(end);
        self.take(|open| open.stage == PromptStage::Runs)
            .map(|open| AnsweredPrompt { request: open.request, result: result.clone() })
            .collect()
    }

    /// The requests of prompts that were taken back, here or at a terminal.
    pub(crate) fn taken_back(&mut self, texts: &[String]) -> Vec<AnsweredPrompt> {
        let mut answered = Vec::new();
        for text in texts {
            let is_it = |open: &OpenPrompt| open.stage != PromptStage::Runs && open.text == *text;
            if let Some(place) = self.0.iter().position(is_it) {
                answered.push(cancelled(self.0.remove(place)));
            }
        }
        answered
    }

    /// All requests, since the session does not go on.
    pub(crate) fn fail(&mut self, why: &str) -> Vec<AnsweredPrompt> {
        self.take(|_| true)
            .map(|open| AnsweredPrompt { request: open.request, result: Err(why.to_owned()) })
            .collect()
    }

    /// All requests, since the editor leaves the session.
    pub(crate) fn leave(&mut self) -> Vec<AnsweredPrompt> {
        self.take(|_| true).map(cancelled).collect()
    }

    pub(crate) fn cancel(&mut self) -> Cancelling {
        let mut cancelling = Cancelling::default();
        for open in &mut self.0 {
            open.wish = PromptWish::Stop;
            match open.stage {
                PromptStage::Sent | PromptStage::Queued => {
                    cancelling.take_back.push(open.text.clone())
                }
                PromptStage::Runs => cancelling.running = RunningTurn::Interrupt,
            }
        }
        cancelling
    }

    fn take(&mut self, wanted: impl Fn(&OpenPrompt) -> bool) -> std::vec::IntoIter<OpenPrompt> {
        let (taken, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.0).into_iter().partition(wanted);
        self.0 = kept;
        taken.into_iter()
    }
}

fn cancelled(open: OpenPrompt) -> AnsweredPrompt {
    AnsweredPrompt { request: open.request, result: Ok(stop("cancelled")) }
}

fn stop(reason: &str) -> Value {
    json!({"stopReason": reason})
}

/// The protocol's word for the end of a turn; an error where it has none.
fn outcome(end: &TurnEnd) -> Result<Value, String> {
    match end {
        TurnEnd::Done | TurnEnd::StoppedByHook { .. } => Ok(stop("end_turn")),
        TurnEnd::RoundsUsedUp { .. }
        | TurnEnd::CallsUsedUp { .. }
        | TurnEnd::CostReached { .. } => Ok(stop("max_turn_requests")),
        TurnEnd::Declined { .. } => Ok(stop("refusal")),
        TurnEnd::Truncated => Ok(stop("max_tokens")),
        TurnEnd::Interrupted => Ok(stop("cancelled")),
        TurnEnd::ProviderFailed { kind: _, message } => {
            Err(format!("the model's server failed: {message}"))
        }
        TurnEnd::ProcessDied(deaths) => Err(format!("the turn was ended: {deaths}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: &str, of: PromptUse) -> ClientEvent {
        ClientEvent::Prompt { text: text.to_owned(), of }
    }

    fn ids(answered: &[AnsweredPrompt]) -> Vec<&Value> {
        answered.iter().map(|it| &it.request).collect()
    }

    #[test]
    fn the_end_of_a_turn_answers_what_began_and_joined_it_and_nothing_else() {
        let mut open = OpenPrompts::default();
        for (id, text) in [(1, "a"), (2, "b"), (3, "a")] {
            open.add(id.into(), text.to_owned());
        }
        // Another client's turn ends first.
        assert!(open.enter(&prompt("x", PromptUse::Prompt)).is_none());
        assert!(open.end(&TurnEnd::Done).is_empty());
        assert_eq!(open.enter(&prompt("a", PromptUse::Prompt)), Some(RunningTurn::Leave));
        assert_eq!(open.enter(&prompt("b", PromptUse::Joined)), Some(RunningTurn::Leave));
        let answered = open.end(&TurnEnd::Done);
        assert_eq!(ids(&answered), [&Value::from(1), &Value::from(2)]);
        assert_eq!(answered[0].result, Ok(json!({"stopReason": "end_turn"})));
        open.enter(&prompt("a", PromptUse::Prompt));
        assert_eq!(ids(&open.end(&TurnEnd::Interrupted)), [&Value::from(3)]);
        assert!(open.end(&TurnEnd::Done).is_empty(), "each is answered once");
    }

    #[test]
    fn what_is_cancelled_while_it_begins_is_interrupted() {
        let mut open = OpenPrompts::default();
        open.add(1.into(), "a".to_owned());
        open.enter(&prompt("a", PromptUse::Prompt));
        open.add(2.into(), "b".to_owned());
        open.add(3.into(), "c".to_owned());
        let cancelling = open.cancel();
        assert_eq!(cancelling.running, RunningTurn::Interrupt);
        assert_eq!(cancelling.take_back, ["b", "c"]);
        assert_eq!(ids(&open.taken_back(&["b".to_owned()])), [&Value::from(2)]);
        // This one was faster than the wish.
        assert_eq!(open.enter(&prompt("c", PromptUse::Joined)), Some(RunningTurn::Interrupt));
        let answered = open.end(&TurnEnd::Interrupted);
        assert_eq!(answered[1].result, Ok(json!({"stopReason": "cancelled"})));
        assert!(open.cancel() == Cancelling::default());
    }

    #[test]
    fn a_refused_prompt_is_one_that_is_not_on_disk() {
        let mut open = OpenPrompts::default();
        open.add(1.into(), "a".to_owned());
        open.add(2.into(), "b".to_owned());
        let busy = protocol::client::WhileBusy::Queue;
        open.queued(&[WaitingText { text: "a".to_owned(), busy }]);
        assert_eq!(open.unsent(), ["b"]);
        assert_eq!(open.refused("read-only").map(|it| it.request), Some(2.into()));
        assert!(open.refused("read-only").is_none() && open.unsent().is_empty());
    }

    #[test]
    fn an_end_without_a_word_in_the_protocol_is_an_error() {
        let mut open = OpenPrompts::default();
        open.add(1.into(), "a".to_owned());
        assert!(open.fail("gone")[0].result.is_err());
        open.add(1.into(), "a".to_owned());
        assert!(open.leave()[0].result.is_ok());
    }
}
