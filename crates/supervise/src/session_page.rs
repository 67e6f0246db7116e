//! A page of a session's events, read from its journal for one client. For client actors, of sessions
//! that are not open or open elsewhere, and for session actors.

use crate::messages::ClientMsg;
use crate::records::decode;
use journal::{JournalEntry, JournalRecord};
use protocol::client::{ClientEvent, NumberedEvent, RequestFailure, ToClient};
use protocol::error_chain::chain;
use protocol::ids::SessionId;
use ractor::ActorRef;
use std::collections::HashMap;
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

/// The events that clients are shown for records. The use of a sub-agent is a record of its own, and part
/// of the event of its call's end.
#[derive(Debug)]
pub(crate) struct ShownEvents {
    session: SessionId,
    /// By the number of the call.
    spent: HashMap<u32, JournalRecord>,
}

impl ShownEvents {
    pub(crate) fn of(session: &SessionId) -> Self {
        Self { session: session.clone(), spent: HashMap::new() }
    }

    /// The event of the next record, if there is one.
    pub(crate) fn next(&mut self, entry: JournalEntry) -> Option<NumberedEvent> {
        if let JournalRecord::Spent { call, .. } = &entry.record {
            self.spent.entry(*call).or_insert_with(|| entry.record.clone());
        }
        let mut event = decode::client_event(&self.session, &entry.record)?;
        decode::add_spent(&mut event, &self.spent);
        Some(NumberedEvent { seq: entry.seq, event })
    }

    /// The events of records that were read from the newest on.
    pub(crate) fn complete(&self, mut events: Vec<NumberedEvent>) -> Vec<NumberedEvent> {
        events.iter_mut().for_each(|it| decode::add_spent(&mut it.event, &self.spent));
        events
    }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::wildcard_enum_match_arm)]
    use super::*;
    use journal::{Outcome, Usage};

    fn entries() -> Vec<JournalEntry> {
        let spent = JournalRecord::Spent {
            call: 1,
            session: "s-1".to_owned(),
            rounds: 2,
            calls: 3,
            usage: Usage::default(),
            cost: Some(7),
        };
        let result = |call| JournalRecord::Result {
            call,
            use_id: "toolu_1".to_owned(),
            outcome: Outcome::Done,
            text: "Done.".to_owned(),
            summary: String::new(),
            is_error: false,
            code: None,
            images: Vec::new(),
            full: None,
            refused: Vec::new(),
            recalled: None,
            audit: None,
        };
        let records = [spent, result(1), result(2)];
        (1..).zip(records).map(|(seq, record)| JournalEntry { seq, time: 0, record }).collect()
    }

    fn costs(events: &[NumberedEvent]) -> Vec<Option<u64>> {
        let cost = |it: &NumberedEvent| match &it.event {
            ClientEvent::CallEnded { spent, .. } => spent.as_ref().and_then(|spent| spent.cost),
            other => panic!("{other:?}"),
        };
        events.iter().map(cost).collect()
    }

    #[test]
    fn the_end_of_a_call_has_the_use_of_its_sub_agent_in_either_order_of_reading() {
        let session = SessionId("s".to_owned());
        let mut shown = ShownEvents::of(&session);
        let forwards: Vec<_> = entries().into_iter().filter_map(|it| shown.next(it)).collect();
        assert_eq!(costs(&forwards), [Some(7), None]);
        let mut shown = ShownEvents::of(&session);
        let backwards = entries().into_iter().rev().filter_map(|it| shown.next(it)).collect();
        assert_eq!(costs(&shown.complete(backwards)), [None, Some(7)]);
    }
}
