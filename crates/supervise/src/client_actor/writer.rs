//! What clients are told, as bytes. An event of a session is turned into bytes once, however many
//! clients it goes to; what one client has not read goes to its socket in few writes. Used by the
//! client actor, by sessions for what they tell, and by the door.

use super::ClientMsg;
use ipc::{ChannelError, FrameError, codec, frames};
use protocol::Link;
use protocol::client::{ClientLink, Event, ToClient};
use protocol::ids::{Generation, SessionId};
use ractor::ActorRef;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Entries that wait for a client that reads slowly.
const CAPACITY: usize = 4096;
/// Those of them that are pieces of a long past, which are read from the disk while it reads on.
const BACKLOG_CAPACITY: usize = 4;
/// Entries that are taken from the queue at once.
const TAKEN: usize = 32;
/// Bytes that are put together for one write.
const MERGED_BYTES: usize = 16 << 10;

/// Words that belong together, ready to be written.
pub(crate) type Bytes = Arc<[u8]>;

/// These words as they go over the wire.
pub(crate) fn to_bytes(words: &[ToClient]) -> Result<Bytes, ChannelError> {
    let mut bytes = Vec::new();
    for word in words {
        let body = codec::encode(word)?;
        if body.len() > ClientLink::MESSAGE_CAP {
            return Err(FrameError::MessageOverLong { cap: ClientLink::MESSAGE_CAP }.into());
        }
        bytes.append(&mut frames(Generation(0), 0, &body));
    }
    Ok(bytes.into())
}

/// What goes to a client, as fast as it takes it.
#[derive(Debug, Clone)]
pub(crate) struct Feed {
    unread: mpsc::Sender<FeedEntry>,
    /// For pieces of a long past.
    room: Arc<Semaphore>,
}

/// Words that a client has not been told yet.
#[derive(Debug)]
pub(super) struct FeedEntry {
    bytes: Bytes,
    /// The room that a piece of a long past takes until it is written.
    _room: Option<OwnedSemaphorePermit>,
}

impl Feed {
    /// A feed, and what comes out of it.
    pub(super) fn new() -> (Self, mpsc::Receiver<FeedEntry>) {
        let (unread, untold) = mpsc::channel(CAPACITY);
        (Self { unread, room: Arc::new(Semaphore::new(BACKLOG_CAPACITY)) }, untold)
    }

    /// Puts these words in, where there is room.
    pub(crate) fn put(&self, bytes: Bytes) -> FeedResult {
        match self.unread.try_send(FeedEntry { bytes, _room: None }) {
            Ok(()) | Err(TrySendError::Closed(_)) => FeedResult::Done,
            Err(TrySendError::Full(_)) => FeedResult::Full,
        }
    }

    /// The same as soon as there is room, which comes when the client reads; or never, when it is
    /// gone.
    pub(crate) async fn put_when_free(&self, bytes: Bytes) {
        let _ = self.unread.send(FeedEntry { bytes, _room: None }).await;
    }

    /// A piece of a long past, once few of those before it are unread.
    pub(crate) async fn put_backlog(&self, bytes: Bytes) -> FeedStatus {
        let Ok(room) = Arc::clone(&self.room).acquire_owned().await else {
            return FeedStatus::Gone;
        };
        match self.unread.send(FeedEntry { bytes, _room: Some(room) }).await {
            Ok(()) => FeedStatus::Open,
            Err(_) => FeedStatus::Gone,
        }
    }

    fn is_half_full(&self) -> bool {
        self.unread.capacity() < self.unread.max_capacity() / 2
    }
}

/// Whether there is anybody to tell more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FeedStatus {
    Open,
    Gone,
}

/// What is told to all who look on.
#[derive(Debug)]
pub(crate) struct Broadcast {
    lasting: Delivery,
    bytes: Bytes,
}

/// Whether a client may be left without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    /// Its text comes again, whole, with the answer or the result it belongs to.
    Droppable,
    /// It does not.
    Required,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FeedResult {
    /// It is on its way, or was left out, or the client is gone.
    Done,
    /// There was no room.
    Full,
}

impl Broadcast {
    /// An event of a session.
    pub(crate) fn new(session: &SessionId, seq: u64, event: Event) -> Result<Self, ChannelError> {
        let lasting = match matches!(event, Event::TextDelta { .. } | Event::Output { .. }) {
            true => Delivery::Droppable,
            false => Delivery::Required,
        };
        let word = ToClient::Event { session: session.clone(), seq, event };
        Ok(Self { lasting, bytes: to_bytes(std::slice::from_ref(&word))? })
    }

    /// What was before a client came, however much that is.
    pub(crate) fn past(words: &[ToClient]) -> Result<Self, ChannelError> {
        Ok(Self { lasting: Delivery::Required, bytes: to_bytes(words)? })
    }

    /// To a client. One that has half of its room unread goes without what comes again.
    pub(crate) fn to(&self, feed: &Feed) -> FeedResult {
        if self.lasting == Delivery::Droppable && feed.is_half_full() {
            return FeedResult::Done;
        }
        feed.put(Arc::clone(&self.bytes))
    }
}

/// The way to a client.
pub(crate) struct ClientWriter(pub(super) OwnedWriteHalf);

impl ClientWriter {
    pub(crate) async fn say(&mut self, word: &ToClient) -> Result<(), ChannelError> {
        let bytes = to_bytes(std::slice::from_ref(word))?;
        Ok(self.0.write_all(&bytes).await?)
    }
}

/// Tells the client all there is, until it is gone or its actor is.
pub(super) async fn tell(
    mut writer: ClientWriter,
    mut unread: mpsc::Receiver<FeedEntry>,
    actor: ActorRef<ClientMsg>,
) {
    let mut taken = Vec::new();
    while unread.recv_many(&mut taken, TAKEN).await > 0 {
        for piece in merge_writes(&taken) {
            if let Err(error) = writer.0.write_all(&piece).await {
                let _ = actor.send_message(ClientMsg::Gone(error.to_string()));
                return;
            }
        }
        taken.clear();
    }
}

/// The same bytes in as few pieces as their size allows; what is long is not copied.
fn merge_writes(entries: &[FeedEntry]) -> Vec<Bytes> {
    let (mut pieces, mut short) = (Vec::new(), Vec::new());
    for (n, entry) in entries.iter().enumerate() {
        let entry = &entry.bytes;
        let next = entries.get(n + 1).map_or(usize::MAX, |next| next.bytes.len());
        if short.is_empty() && entry.len().saturating_add(next) > MERGED_BYTES {
            pieces.push(Arc::clone(entry));
            continue;
        }
        short.extend_from_slice(entry);
        if short.len().saturating_add(next) > MERGED_BYTES {
            pieces.push(std::mem::take(&mut short).into());
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_together_is_the_same_in_order_and_none_is_over_long() {
        let entry = |(n, length): (usize, usize)| FeedEntry {
            bytes: Bytes::from(vec![n as u8; length]),
            _room: None,
        };
        let lengths = [10, 20, MERGED_BYTES - 40, 30, 1, MERGED_BYTES + 1, 5, 6, MERGED_BYTES];
        let entries: Vec<_> = lengths.into_iter().enumerate().map(entry).collect();
        let pieces = merge_writes(&entries);
        let all: Vec<_> = entries.iter().flat_map(|entry| entry.bytes.to_vec()).collect();
        assert_eq!(pieces.concat(), all);
        let sizes: Vec<_> = pieces.iter().map(|piece| piece.len()).collect();
        assert_eq!(sizes, [MERGED_BYTES - 10, 31, MERGED_BYTES + 1, 11, MERGED_BYTES]);
        assert_eq!(merge_writes(&[]), Vec::<Bytes>::new());
    }

    #[test]
    fn a_client_that_does_not_read_goes_without_live_words_first_and_then_without_any() {
        let session = SessionId("0123456789ab".to_owned());
        let told = |event| Broadcast::new(&session, 1, event).map_err(|error| error.to_string());
        let live = told(Event::TextDelta { text: "piece".to_owned() });
        let kept = told(Event::Prompt { text: "words".to_owned() });
        let (Ok(live), Ok(kept)) = (live, kept) else { panic!("both can be said") };
        let (unread, mut untold) = mpsc::channel(4);
        let feed = Feed { unread, room: Arc::new(Semaphore::new(1)) };
        for _ in 0..8 {
            assert_eq!(live.to(&feed), FeedResult::Done);
        }
        assert_eq!(feed.unread.capacity(), 1, "some went in, and room is left for what is kept");
        assert_eq!((kept.to(&feed), kept.to(&feed)), (FeedResult::Done, FeedResult::Full));
        let first = untold.try_recv().map(|unread| unread.bytes);
        assert_eq!(first.ok(), Some(Arc::clone(&live.bytes)));
        assert_eq!(kept.to(&feed), FeedResult::Done);
        drop(untold);
        assert_eq!(kept.to(&feed), FeedResult::Done, "it is gone");
    }

    #[tokio::test]
    async fn pieces_of_a_long_past_wait_until_those_before_them_are_written() {
        let (feed, mut untold) = Feed::new();
        let piece = || Bytes::from(vec![0; 8]);
        for _ in 0..BACKLOG_CAPACITY {
            assert_eq!(feed.put_backlog(piece()).await, FeedStatus::Open);
        }
        let (again, one_more) = (feed.clone(), piece());
        let waiting = tokio::spawn(async move { again.put_backlog(one_more).await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished() && untold.len() == BACKLOG_CAPACITY);
        assert_eq!(feed.put(piece()), FeedResult::Done, "other words have their room");
        drop(untold.recv().await);
        assert_eq!(waiting.await.ok(), Some(FeedStatus::Open));
        let waiting = tokio::spawn(async move { feed.put_backlog(piece()).await });
        tokio::task::yield_now().await;
        drop(untold);
        assert_eq!(waiting.await.ok(), Some(FeedStatus::Gone));
    }
}
