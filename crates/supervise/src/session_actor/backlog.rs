//! The backlog of a client that attaches: its records, read from disk batch by batch, as fast as
//! the client reads. A slow client holds neither memory nor a thread.

use crate::client_actor::feed::{Bytes, Feed, FeedStatus, to_bytes};
use crate::records::decode::ShownEvents;
use journal::JournalReader;
use protocol::client::{NumberedEvent, ToClient};
use protocol::error_chain::chain;
use protocol::ids::SessionId;
use std::ops::RangeInclusive;
use std::path::Path;

/// Records of one batch at most.
const BATCH_RECORDS: usize = 256;
/// A batch of so many bytes is not made longer.
const BATCH_BYTES: usize = 256 << 10;

/// Queues the events of these records for a client.
///
/// # Errors
/// Where they cannot be read.
pub(super) async fn send_backlog(
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
