//! A page of a session's events, read from its journal for one client. For client actors, of sessions
//! that are not open or open elsewhere, and for session actors.

use crate::error_chain::chain;
use crate::messages::ClientMsg;
use crate::records::decode;
use journal::JournalEntry;
use protocol::client::{NumberedEvent, RequestFailure, ToClient};
use protocol::ids::SessionId;
use ractor::ActorRef;
use std::path::PathBuf;

/// Most records of a page.
pub(crate) const MAX_PAGE: u32 = 2000;

/// The newest events with a number below `before`.
#[derive(Debug, Clone)]
pub(crate) struct PageRequest {
    pub(crate) session: SessionId,
    pub(crate) before: u64,
    pub(crate) most: u32,
}

/// The event that clients are shown for a record, if any.
pub(crate) fn numbered(session: &SessionId, entry: JournalEntry) -> Option<NumberedEvent> {
    let event = decode::client_event(session, &entry.record)?;
    Some(NumberedEvent { seq: entry.seq, event })
}

/// Reads a page from the session's directory and sends it, or says that it cannot be read.
pub(crate) fn send_page(directory: PathBuf, page: PageRequest, client: ActorRef<ClientMsg>) {
    tokio::task::spawn_blocking(move || {
        let PageRequest { session, before, most } = page;
        let most = usize::try_from(most.min(MAX_PAGE)).unwrap_or(usize::MAX);
        let page = journal::page(&directory, before, most, |entry| numbered(&session, entry));
        let message = match page {
            Ok(events) => ToClient::Page { session, events },
            Err(error) => ToClient::Failed { kind: RequestFailure::Disk, message: chain(&error) },
        };
        let _ = client.send_message(ClientMsg::Send(message));
    });
}
