//! How a terminal that attaches goes on with a session.

use protocol::client::{ClientRights, SessionStart};
use protocol::ids::SessionId;
use protocol::session::OpenTurn;

/// An interrupted turn continues when a user attaches, but not for a read-only client.
pub(crate) fn resumed(session: SessionId, rights: ClientRights) -> SessionStart {
    let open_turn = match rights {
        ClientRights::Full => OpenTurn::GoesOn,
        ClientRights::ReadOnly => OpenTurn::Waits,
    };
    SessionStart::Resume { session, open_turn }
}
