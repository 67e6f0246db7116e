//! Protected names that a call left otherwise than they were, since they could not be put right: a
//! person is asked before the next command, with their names, until they let one run knowing that.
//! What is to be asked about is on disk, so that it outlives the session's processes.

use super::state::SessionActorState;
use journal::Record;
use protocol::judgement::Question;

impl SessionActorState {
    /// What is to be kept of these besides those that are known, if that is anything.
    pub(super) fn add_tampered(&mut self, left: Vec<String>) -> Option<Record> {
        let known = self.calls.tampered.len();
        for name in left {
            if !self.calls.tampered.contains(&name) {
                self.calls.tampered.push(name);
            }
        }
        (self.calls.tampered.len() > known)
            .then(|| Record::Tampered { names: self.calls.tampered.clone() })
    }

    /// A person let this run: what they were told by the question is accepted.
    pub(super) async fn accept_tampered(&mut self, question: &Question) {
        let known = self.calls.tampered.len();
        self.calls.tampered.retain(|name| !question.reason.contains(name));
        if self.calls.tampered.len() < known {
            let names = self.calls.tampered.clone();
            // A failure closes the session, and nothing runs.
            let _ = self.record(vec![Record::Tampered { names }]).await;
        }
    }
}
