//! The mark at the beginning of a line that makes it no prompt: `!`, a person's own command. Pure.

use protocol::client::{FromClient, SessionWish};
use protocol::ids::SessionId;

/// The message that an entered line is. A space before the mark makes it a prompt.
pub(super) fn message(session: SessionId, text: String) -> FromClient {
    match text.strip_prefix('!') {
        Some(command) => {
            let wish = SessionWish::Run { command: command.to_owned() };
            FromClient::Wish { session, wish }
        }
        None => FromClient::Prompt { session, text, form: None },
    }
}
