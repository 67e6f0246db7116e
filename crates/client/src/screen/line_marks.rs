//! The mark at the beginning of a line that makes it no prompt: `!`, a person's own command. Pure.

use protocol::client::{FromClient, SessionWish};
use protocol::ids::SessionId;

/// The message that an entered line is. A space before the mark makes it a prompt, and so does a second line.
pub(super) fn message(session: SessionId, text: String) -> FromClient {
    // Of several lines it was pasted, or is made of several texts that came back into the line.
    match text.strip_prefix('!').filter(|command| !command.contains('\n')) {
        Some(command) => {
            let wish = SessionWish::Run { command: command.to_owned() };
            FromClient::Wish { session, wish }
        }
        None => FromClient::Prompt { session, text, form: None },
    }
}
