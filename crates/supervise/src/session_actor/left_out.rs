//! Places that calls are not granted, since keys lie there or a command could have led the way to them: read
//! again for each call, and shown once.

use super::state::SessionActorState;
use protocol::client::ClientEvent;

impl SessionActorState {
    /// Reads the directories that calls of other projects write. A call starts only if they can be read.
    pub(super) fn reread_written_dirs(&mut self) {
        match self.resources.written.all() {
            Ok(dirs) => self.spec.confinement.written_elsewhere = dirs,
            Err(error) => tracing::warn!(%error, "the list of written directories"),
        }
    }

    /// Shows the places that a call was not granted, unless they were shown before.
    pub(super) fn show_left_out(&mut self, left_out: &[String]) {
        for text in left_out {
            if self.calls.left_out.insert(text.clone()) {
                self.show(&ClientEvent::Notice { text: text.clone() });
            }
        }
    }
}
