//! The answers that were given here, with the notes that went with them, until their calls have ended. Pure.

use protocol::ids::CallId;

/// Those of a session.
#[derive(Debug, Default)]
pub(super) struct GivenAnswers {
    answers: Vec<GivenAnswer>,
}

#[derive(Debug)]
struct GivenAnswer {
    call: CallId,
    note: String,
    state: AnswerState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerState {
    /// The supervisor has not confirmed it.
    Sent,
    /// The connection was lost meanwhile.
    Unsure,
    /// Its call is decided. The supervisor may still say that another answer was first.
    Decided,
}

impl GivenAnswers {
    pub(super) fn give(&mut self, call: CallId, note: String) {
        self.ended(&call);
        self.answers.push(GivenAnswer { call, note, state: AnswerState::Sent });
    }

    /// True if the call was answered here, and the supervisor has not confirmed it.
    pub(super) fn is_sent(&self, call: &CallId) -> bool {
        self.answers.iter().any(|it| it.call == *call && it.state == AnswerState::Sent)
    }

    /// The call is decided: the note needs no second way to the model. True if it was answered here.
    pub(super) fn decided(&mut self, call: &CallId) -> bool {
        let given = self.answers.iter_mut().find(|it| it.call == *call);
        given.map(|it| it.state = AnswerState::Decided).is_some()
    }

    /// No word about its answer follows.
    pub(super) fn ended(&mut self, call: &CallId) {
        self.answers.retain(|it| it.call != *call);
    }

    /// The answer did not count. Returns its note.
    pub(super) fn rejected(&mut self, call: &CallId) -> Option<String> {
        let at = self.answers.iter().position(|it| it.call == *call)?;
        Some(self.answers.remove(at).note)
    }

    /// The connection is lost: the backlog will tell which calls are decided.
    pub(super) fn lost(&mut self) {
        self.answers.retain(|it| it.state != AnswerState::Decided);
        self.answers.iter_mut().for_each(|it| it.state = AnswerState::Unsure);
    }

    /// Notes that may not have arrived.
    pub(super) fn unsure(&self) -> impl Iterator<Item = &String> {
        self.answers.iter().filter(|it| it.state != AnswerState::Decided).map(|it| &it.note)
    }

    /// The whole backlog was received: these notes did not arrive.
    pub(super) fn take_unsure(&mut self) -> Vec<String> {
        let unsure = |it: &mut GivenAnswer| it.state == AnswerState::Unsure;
        self.answers.extract_if(.., unsure).map(|it| it.note).collect()
    }
}
