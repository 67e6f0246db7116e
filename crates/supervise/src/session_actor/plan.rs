//! A plan that a person approved: the session's permission mode changes. The change is durable before
//! the call goes on, so that a crash in between finds a session that has left mode `plan`.

use super::rules;
use super::state::SessionActorState;
use crate::records::encode;
use protocol::client::SettingChange;
use protocol::judgement::PermissionMode;
use protocol::session::ToSession;

impl SessionActorState {
    /// Checks that a plan may be approved with this mode; the error is for the person.
    pub(super) fn may_have_mode(&self, mode: PermissionMode) -> Result<(), String> {
        let checked = self.spec.check_change(&SettingChange::Mode(mode));
        checked.map_err(|failure| failure.message)
    }

    /// Leaves mode `plan` for the mode that the person named.
    pub(super) async fn leave_plan_mode(&mut self, mode: PermissionMode, by: &str) {
        let change = SettingChange::Mode(mode);
        let record = encode::setting_change(&change, by.to_owned());
        if self.record(vec![record]).await.is_ok() {
            self.spec.apply_change(&change);
            self.send_mode();
        }
    }

    /// Sends the mode to those who decide by it: the broker, and the conversation, which offers tools.
    pub(super) fn send_mode(&mut self) {
        self.workers.broker.send(rules(&self.spec));
        self.workers.conversation.send(ToSession::Mode(self.spec.rules.mode));
        self.pass_bounds_on();
    }
}
