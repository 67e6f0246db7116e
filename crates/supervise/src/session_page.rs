//! A page of a session's events, read from its journal for one client. For client actors, of sessions
//! that are not open or open elsewhere, and for session actors.

use crate::messages::ClientMsg;
use crate::records::decode::ShownEvents;
use protocol::client::{ClientEvent, NumberedEvent, RequestFailure, ToClient};
use protocol::error_chain::chain;
use protocol::ids::SessionId;
use ractor::ActorRef;
use std::path::{Path, PathBuf};

/// Most records of a page.
pub(crate) const MAX_PAGE: u32 = 2000;

/// The newest events with a number below `before`.
#[derive(Debug, Clone)]
pub(crate) struct PageRequest {
    pub(crate) session: SessionId,
    pub(crate) before: u64,
    pub(crate) most: u32,
}

/// Reads a page from the session's directory and sends it, or says that it cannot be read.
pub(crate) fn send_page(directory: PathBuf, page: PageRequest, client: ActorRef<ClientMsg>) {
    tokio::task::spawn_blocking(move || {
        let message = match read(&directory, &page) {
            Ok(events) => ToClient::Page { session: page.session, events },
            Err(message) => ToClient::Failed { kind: RequestFailure::Disk, message },
        };
        let _ = client.send_message(ClientMsg::Send(message));
    });
}

/// The same for a client that is not attached. It may be opening another session meanwhile, which a
/// failure would seem to be about: the page says why there is none.
pub(crate) fn send_preview(directory: PathBuf, page: PageRequest, client: ActorRef<ClientMsg>) {
    tokio::task::spawn_blocking(move || {
        let events = read(&directory, &page).unwrap_or_else(|why| {
            vec![NumberedEvent { seq: u64::MAX, event: ClientEvent::Notice { text: why } }]
        });
        let message = ToClient::Page { session: page.session, events };
        let _ = client.send_message(ClientMsg::Send(message));
    });
}

fn read(directory: &Path, page: &PageRequest) -> Result<Vec<NumberedEvent>, String> {
    let most = usize::try_from(page.most.min(MAX_PAGE)).unwrap_or(usize::MAX);
    let mut shown = ShownEvents::of(&page.session);
    let events = journal::page(directory, page.before, most, |entry| shown.next(entry));
    events.map(|events| shown.complete(events)).map_err(|error| chain(&error))
}
