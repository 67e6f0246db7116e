//! The backlog of a client that attaches. A short one is read at once. A long one is read outside of the session's
//! actor, batch by batch, as fast as the client reads: a slow client holds neither memory nor a thread.

use super::clients::fail;
use crate::client_actor::feed::{Bytes, Feed, FeedStatus, to_bytes};
use crate::messages::{AttachRequest, ClientToSession, SessionMsg};
use crate::records::decode::ShownEvents;
use crate::session_page::MAX_PAGE;
use journal::JournalReader;
use protocol::client::{BacklogFrom, NumberedEvent, OtherClients, RequestFailure, ToClient};
use protocol::error_chain::chain;
use protocol::ids::SessionId;
use ractor::ActorRef;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};

/// Records that are read and sent at once when a client attaches; more are sent by another task.
const INLINE_RECORDS: u64 = 512;
/// Records of one batch at most.
const BATCH_RECORDS: usize = 256;
/// A batch of so many bytes is not made longer.
const BATCH_BYTES: usize = 256 << 10;

/// The records of a session that a client has not seen.
pub(super) struct Backlog {
    pub(super) session: SessionId,
    /// The journal.
    pub(super) directory: PathBuf,
    /// The number of its last record.
    pub(super) last_seq: u64,
}

impl Backlog {
    /// True if the records from this one on are not read at once.
    pub(super) fn is_long(&self, from: u64) -> bool {
        self.last_seq.saturating_sub(from) > INLINE_RECORDS
    }

    /// Reads the events of the records.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub(super) async fn read(self, from: BacklogFrom) -> Result<Vec<NumberedEvent>, String> {
        let Self { session, directory, last_seq } = self;
        match from {
            BacklogFrom::Seq(from) => {
                blocking(move || read_range(&directory, &session, from..last_seq + 1)).await
            }
            BacklogFrom::Newest(most) => {
                let most = usize::try_from(most.min(MAX_PAGE)).unwrap_or(usize::MAX);
                blocking(move || read_newest(&directory, &session, most)).await
            }
        }
    }

    /// Sends the records from this one on to the client, beside the session's actor. The client attaches again
    /// behind them.
    pub(super) fn send_aside(self, from: u64, wants: AttachRequest, actor: ActorRef<SessionMsg>) {
        let AttachRequest { client, name, from: _, others: _, feed } = wants;
        let Self { session, directory, last_seq } = self;
        tokio::spawn(async move {
            match send_backlog(&directory, &session, from..=last_seq, &feed).await {
                Ok(FeedStatus::Open) => {
                    let (from, others) = (BacklogFrom::Seq(last_seq + 1), OtherClients::Stay);
                    let again = AttachRequest { client, name, from, others, feed };
                    let _ = actor.send_message(ClientToSession::Attach(again).into());
                }
                // Its actor reports the end of the connection.
                Ok(FeedStatus::Gone) => {}
                Err(why) => {
                    fail(&client, RequestFailure::Disk, why);
                    let _ = actor.send_message(ClientToSession::Detach(client).into());
                }
            }
        });
    }
}

/// Queues the events of these records for a client.
///
/// # Errors
/// Where they cannot be read.
async fn send_backlog(
    directory: &Path,
    session: &SessionId,
    records: RangeInclusive<u64>,
    feed: &Feed,
) -> Result<FeedStatus, String> {
    let (directory, session) = (directory.to_owned(), session.clone());
    let mut reader = blocking(move || {
        let reader = journal::read(&directory).map_err(|error| chain(&error))?;
        let shown = ShownEvents::of(&session);
        Ok(BacklogReader { reader, session, records, shown })
    })
    .await?;
    loop {
        let (rest, batch) = blocking(move || {
            let batch = reader.next_batch()?;
            Ok((reader, batch))
        })
        .await?;
        let Some(batch) = batch else { return Ok(FeedStatus::Open) };
        if feed.put_backlog(batch).await == FeedStatus::Gone {
            return Ok(FeedStatus::Gone);
        }
        reader = rest;
    }
}

/// Reads the records that are still to be sent.
struct BacklogReader {
    reader: JournalReader,
    session: SessionId,
    shown: ShownEvents,
    records: RangeInclusive<u64>,
}

impl BacklogReader {
    /// The next batch, encoded; none at the end.
    fn next_batch(&mut self) -> Result<Option<Bytes>, String> {
        let (mut messages, mut length, mut read) = (Vec::new(), 0, 0);
        while read < BATCH_RECORDS && length < BATCH_BYTES {
            let Some(entry) = self.reader.next() else { break };
            let entry = entry.map_err(|error| chain(&error))?;
            if entry.seq > *self.records.end() {
                break;
            }
            if entry.seq < *self.records.start() {
                continue;
            }
            read += 1;
            if let Some(NumberedEvent { seq, event }) = self.shown.next(entry) {
                let event = ToClient::Event { session: self.session.clone(), seq, event };
                let message = to_bytes(&[event]).map_err(|error| chain(&error))?;
                length += message.len();
                messages.push(message);
            }
        }
        Ok((read > 0).then(|| messages.concat().into()))
    }
}

async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|error| Err(error.to_string()))
}

fn read_newest(
    directory: &Path,
    session: &SessionId,
    most: usize,
) -> Result<Vec<NumberedEvent>, String> {
    let mut shown = ShownEvents::of(session);
    let events = journal::newest(directory, most, |entry| shown.next(entry));
    events.map(|events| shown.complete(events)).map_err(|error| chain(&error))
}

/// The events of these records, read from the end.
fn read_range(
    directory: &Path,
    session: &SessionId,
    records: Range<u64>,
) -> Result<Vec<NumberedEvent>, String> {
    let mut shown = Vec::new();
    let mut before = records.end;
    while before > records.start.max(1) {
        let most = usize::try_from(before - records.start).unwrap_or(usize::MAX);
        let mut page = journal::page(directory, before, most, Some).map_err(|e| chain(&e))?;
        // A page is shorter where its texts are long.
        let Some(first) = page.first() else { break };
        before = first.seq;
        page.retain(|entry| entry.seq >= records.start);
        shown.push(page);
    }
    let entries = shown.into_iter().rev().flatten();
    let mut shown = ShownEvents::of(session);
    Ok(entries.filter_map(|entry| shown.next(entry)).collect())
}
