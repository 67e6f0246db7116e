//! Protected files while a command runs: what its runner puts right, and what the supervisor tells it.

use super::state::CallState;
use crate::messages::{CallMsg, CallToSession, ProtectedNews};
use call::{CallInput, tampered_in_words};
use launch::runner::Runner;
use protocol::call::TamperedFile;
use protocol::confinement::GitSettings;
use protocol::tool::{ProtectedOrder, ToCall};
use ractor::ActorRef;

impl CallState {
    /// Passes an order on to the runner of a command.
    pub(super) fn tell_of_protected(&self, order: ProtectedOrder) -> Option<CallInput> {
        if self.runner.as_ref().is_some_and(Runner::is_running) {
            self.tell_runner(ToCall::Protected(order));
        }
        None
    }

    /// The runner has put files right. The next read of the output tells the model, too.
    pub(super) fn on_put_right(&mut self, myself: &ActorRef<CallMsg>, found: Vec<TamperedFile>) {
        let lines = tampered_in_words(&found);
        let lines: String =
            lines.into_iter().map(|line| format!("[protected file: {line}]\n")).collect();
        self.on_printed(myself, &lines);
        let tool = self.args.facts.call.tool.clone();
        self.tell_session(ProtectedNews::PutRight { tool, found });
    }

    /// Tells the session when the call begins and ends to change git's settings, if it has that right.
    pub(super) fn changes_git(&self, git: GitSettings) {
        if self.args.confinement.git == GitSettings::Writable {
            self.tell_session(ProtectedNews::ChangesGit(git));
        }
    }

    fn tell_session(&self, news: ProtectedNews) {
        let call = self.args.facts.call.id.clone();
        let _ = self.args.session.send_message(CallToSession::Protected { call, news }.into());
    }
}
