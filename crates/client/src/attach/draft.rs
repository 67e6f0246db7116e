//! The unsent text of the input line: saved while it is typed, shown again on the next visit.

use super::AttachedTerminal;
use crate::screen::ScreenInput;
use crate::screen_items::ScreenItem;
use protocol::client::ClientRights;
use protocol::ids::SessionId;
use std::time::{Duration, Instant};

/// How long a draft may be unsaved.
const DRAFT_PAUSE: Duration = Duration::from_millis(500);

/// The draft on disk, and the one in the input line.
#[derive(Default)]
pub(super) struct DraftState {
    /// The session whose draft was read.
    session: Option<SessionId>,
    saved: String,
    /// Since when the line differs from it.
    changed: Option<Instant>,
}

impl AttachedTerminal<'_> {
    /// Shows the draft of a session that was opened, and saves a changed one from time to time.
    pub(super) fn follow_draft(&mut self) {
        let Some(session) = self.screen.session() else { return };
        // Who only watches has nothing to send.
        if self.screen.options().rights == ClientRights::ReadOnly {
            return;
        }
        if self.draft.session.as_ref() != Some(session) {
            let session = session.clone();
            let saved = self.services.draft(&session).unwrap_or_default();
            if !saved.is_empty() {
                let _ = self.screen.update(ScreenInput::Draft(saved.clone()));
            }
            self.draft = DraftState { session: Some(session), saved, changed: None };
        }
        if self.screen.unsent() == self.draft.saved {
            self.draft.changed = None;
            return;
        }
        let since = *self.draft.changed.get_or_insert_with(Instant::now);
        // A prompt that was sent must not come back as a draft.
        if self.screen.draft().is_empty() || since.elapsed() >= DRAFT_PAUSE {
            self.save_draft();
        }
    }

    /// The time until the changed draft is saved.
    pub(super) fn until_draft(&self) -> Option<Duration> {
        self.draft.changed.map(|since| DRAFT_PAUSE.saturating_sub(since.elapsed()))
    }

    pub(super) fn save_draft(&mut self) {
        let Some(session) = self.draft.session.clone() else { return };
        let text = self.screen.unsent();
        if text == self.draft.saved {
            return;
        }
        let text = text.into_owned();
        self.draft.changed = None;
        if let Err(why) = self.services.save_draft(&session, &text) {
            self.view.show(ScreenItem::Error(why));
        }
        self.draft.saved = text;
    }
}
