//! Protected files that a call changed. Those that could not be restored: before each command a person
//! is asked, with their names, until the person lets one run. The names are on disk, so they
//! outlive the session's processes. Those that the runner of a command puts right while it runs: when
//! it looks at them, and what people hear of it.

use super::state::SessionActorState;
use crate::messages::{CallMsg, ProtectedNews};
use crate::records::encode;
use call::tampered_in_words;
use journal::JournalRecord;
use launch::protected_restore;
use protocol::client::ClientEvent;
use protocol::ids::CallId;
use protocol::judgement::Question;
use protocol::tool::ProtectedOrder;

impl SessionActorState {
    /// Adds these files; returns the record of all of them, if any is new.
    pub(super) fn add_tampered(&mut self, left: Vec<String>) -> Option<JournalRecord> {
        let known = self.calls.tampered.len();
        for name in left {
            if !self.calls.tampered.contains(&name) {
                self.calls.tampered.push(name);
            }
        }
        (self.calls.tampered.len() > known).then(|| encode::tampered(self.calls.tampered.clone()))
    }

    /// Commands in the background have their protected files looked at: a person may be about to use them.
    pub(super) fn look_at_protected(&self) {
        for (id, call) in &self.calls.running {
            if self.calls.services.has(id.number) {
                let _ = call.send_message(CallMsg::Protected(ProtectedOrder::Look));
            }
        }
    }

    pub(super) async fn on_protected(&mut self, call: &CallId, news: ProtectedNews) {
        match news {
            ProtectedNews::PutRight { tool, found } => {
                let text = format!(
                    "call {} ({tool}) runs, and meanwhile {}. If that was your own change, put it back after \
                     the call's end",
                    call.number,
                    tampered_in_words(&found).join("; "),
                );
                tracing::info!(%call, "{text}");
                self.show(&ClientEvent::Notice { text });
                if let Some(record) = self.add_tampered(protected_restore::unrestored(&found)) {
                    // A failure closes the session, and nothing runs.
                    let _ = self.record(vec![record]).await;
                }
            }
            ProtectedNews::ChangesGit(git) => {
                let order = ProtectedOrder::OtherCall { call: call.number, git };
                for (_, other) in self.calls.running.iter().filter(|(id, _)| *id != call) {
                    let _ = other.send_message(CallMsg::Protected(order));
                }
            }
        }
    }

    /// A person let this call run: the files that the question named are accepted.
    pub(super) async fn accept_tampered(&mut self, question: &Question) {
        let known = self.calls.tampered.len();
        self.calls.tampered.retain(|name| !question.reason.contains(name));
        if self.calls.tampered.len() < known {
            let names = self.calls.tampered.clone();
            // A failure closes the session, and nothing runs.
            let _ = self.record(vec![encode::tampered(names)]).await;
        }
    }
}
