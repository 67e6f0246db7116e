//! The history of the input line: that of the session's project, and the prompts that go there.

use super::AttachedTerminal;
use crate::screen_items::ScreenItem;
use protocol::client::{ClientRights, FromClient, SessionWish};

impl AttachedTerminal<'_> {
    /// Another session was opened: the prompts of its project.
    pub(super) fn read_history(&mut self) {
        // Who only watches has nothing to send.
        if self.screen.options().rights == ClientRights::ReadOnly {
            return;
        }
        let prompts = self.screen.session().map(|session| self.services.history(session));
        self.screen.set_history(prompts.unwrap_or_default());
    }

    /// Adds a prompt or a command that was sent. Colon commands that the session carries out are none.
    pub(super) fn add_to_history(&mut self, sent: &FromClient) {
        let (session, text) = if let FromClient::Prompt { session, text, .. } = sent {
            (session, text.clone())
        } else if let FromClient::Wish { session, wish: SessionWish::Run { command } } = sent {
            (session, format!("!{command}"))
        } else {
            return;
        };
        if text.starts_with(':') {
            return;
        }
        if let Err(why) = self.services.add_to_history(session, &text) {
            self.view.show(ScreenItem::Error(why));
        }
    }
}
