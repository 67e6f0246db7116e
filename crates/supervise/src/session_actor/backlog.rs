//! A long past, told to a client that comes: read from the disk piece by piece, each when few of those
//! before it are unread. A client that does not read holds neither memory nor a thread.

use crate::client_actor::feed::{Bytes, Feed, FeedStatus, to_bytes};
use crate::error_chain::chain;
use crate::records::decode;
use journal::{Entry, Reader};
use protocol::client::{Numbered, ToClient};
use protocol::ids::SessionId;
use std::ops::RangeInclusive;
use std::path::Path;

/// Records of one piece at most.
const BATCH_RECORDS: usize = 256;
/// A piece of so many bytes is not made longer.
const BATCH_BYTES: usize = 256 << 10;

/// What a client is shown of a record, if anything.
pub(super) fn numbered(session: &SessionId, entry: Entry) -> Option<Numbered> {
    let event = decode::client_event(session, &entry.record)?;
    Some(Numbered { seq: entry.seq, event })
}

/// Tells a client what it is shown of these records of the session in this directory.
///
/// # Errors
/// Where they cannot be read.
pub(super) async fn tell(
    directory: &Path,
    session: &SessionId,
    records: RangeInclusive<u64>,
    feed: &Feed,
) -> Result<FeedStatus, String> {
    let (directory, session) = (directory.to_owned(), session.clone());
    let mut past = blocking(move || {
        let reader = journal::read(&directory).map_err(|error| chain(&error))?;
        Ok(BacklogReader { reader, session, records })
    })
    .await?;
    loop {
        let (rest, piece) = blocking(move || {
            let piece = past.piece()?;
            Ok((past, piece))
        })
        .await?;
        let Some(piece) = piece else { return Ok(FeedStatus::Open) };
        if feed.put_backlog(piece).await == FeedStatus::Gone {
            return Ok(FeedStatus::Gone);
        }
        past = rest;
    }
}

/// Records that have yet to be told.
struct BacklogReader {
    reader: Reader,
    session: SessionId,
    records: RangeInclusive<u64>,
}

impl BacklogReader {
    /// The next of them, ready to be written; none at their end.
    fn piece(&mut self) -> Result<Option<Bytes>, String> {
        let (mut words, mut length, mut read) = (Vec::new(), 0, 0);
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
            if let Some(Numbered { seq, event }) = numbered(&self.session, entry) {
                let event = ToClient::Event { session: self.session.clone(), seq, event };
                let word = to_bytes(&[event]).map_err(|error| chain(&error))?;
                length += word.len();
                words.push(word);
            }
        }
        Ok((read > 0).then(|| words.concat().into()))
    }
}

async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|error| Err(error.to_string()))
}
