//! Protected files that a call changed and that could not be restored. Before each command a person
//! is asked, with their names, until the person lets one run. The names are on disk, so they
//! outlive the session's processes.

use super::state::SessionActorState;
use journal::JournalRecord;
use protocol::judgement::Question;

impl SessionActorState {
    /// Adds these files; returns the record of all of them, if any is new.
    pub(super) fn add_tampered(&mut self, left: Vec<String>) -> Option<JournalRecord> {
        let known = self.calls.tampered.len();
        for name in left {
            if !self.calls.tampered.contains(&name) {
                self.calls.tampered.push(name);
            }
        }
        (self.calls.tampered.len() > known)
            .then(|| JournalRecord::Tampered { names: self.calls.tampered.clone() })
    }

    /// A person let this call run: the files that the question named are accepted.
    pub(super) async fn accept_tampered(&mut self, question: &Question) {
        let known = self.calls.tampered.len();
        self.calls.tampered.retain(|name| !question.reason.contains(name));
        if self.calls.tampered.len() < known {
            let names = self.calls.tampered.clone();
            // A failure closes the session, and nothing runs.
            let _ = self.record(vec![JournalRecord::Tampered { names }]).await;
        }
    }
}
