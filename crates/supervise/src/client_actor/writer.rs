//! The task that writes a client's feed to its socket, in few writes.

use super::connection::ClientWriter;
use super::feed::{Bytes, FeedEntry};
use crate::messages::ClientMsg;
use ractor::ActorRef;
use std::io;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

/// Entries that are taken from the queue at once.
const TAKEN: usize = 32;
/// Short entries are merged up to so many bytes for one write.
const MERGED_BYTES: usize = 16 << 10;

/// Writes all entries of the feed, until the connection or the client's actor ends.
pub(super) async fn write_feed(
    mut writer: ClientWriter,
    mut queue: mpsc::Receiver<FeedEntry>,
    actor: ActorRef<ClientMsg>,
) {
    let mut taken = Vec::new();
    while queue.recv_many(&mut taken, TAKEN).await > 0 {
        if let Err(error) = write_entries(&mut writer, &taken).await {
            let _ = actor.send_message(ClientMsg::Gone(error.to_string()));
            return;
        }
        taken.clear();
    }
}

async fn write_entries(writer: &mut ClientWriter, entries: &[FeedEntry]) -> io::Result<()> {
    for entries in entries.split_inclusive(|entry| !entry.descriptors.is_empty()) {
        for write in merge_writes(entries) {
            writer.0.write_all(&write).await?;
        }
        for descriptor in entries.iter().flat_map(|entry| &entry.descriptors) {
            writer.hand(descriptor).await?;
        }
    }
    Ok(())
}

/// The same bytes in as few writes as [`MERGED_BYTES`] allows. Long entries are not copied.
fn merge_writes(entries: &[FeedEntry]) -> Vec<Bytes> {
    let (mut writes, mut short) = (Vec::new(), Vec::new());
    for (n, entry) in entries.iter().enumerate() {
        let entry = &entry.bytes;
        let next = entries.get(n + 1).map_or(usize::MAX, |next| next.bytes.len());
        if short.is_empty() && entry.len().saturating_add(next) > MERGED_BYTES {
            writes.push(Arc::clone(entry));
            continue;
        }
        short.extend_from_slice(entry);
        if short.len().saturating_add(next) > MERGED_BYTES {
            writes.push(std::mem::take(&mut short).into());
        }
    }
    writes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_together_is_the_same_in_order_and_none_is_over_long() {
        let entry = |(n, length): (usize, usize)| FeedEntry {
            bytes: Bytes::from(vec![n as u8; length]),
            descriptors: Vec::new(),
            _room: None,
        };
        let lengths = [10, 20, MERGED_BYTES - 40, 30, 1, MERGED_BYTES + 1, 5, 6, MERGED_BYTES];
        let entries: Vec<_> = lengths.into_iter().enumerate().map(entry).collect();
        let writes = merge_writes(&entries);
        let all: Vec<_> = entries.iter().flat_map(|entry| entry.bytes.to_vec()).collect();
        assert_eq!(writes.concat(), all);
        let sizes: Vec<_> = writes.iter().map(|write| write.len()).collect();
        assert_eq!(sizes, [MERGED_BYTES - 10, 31, MERGED_BYTES + 1, 11, MERGED_BYTES]);
        assert_eq!(merge_writes(&[]), Vec::<Bytes>::new());
    }
}
