//! A client's feed: the bounded queue of messages that were not written to it yet, as bytes. An event
//! of a session is encoded once for all its clients. Used by the client actor, by sessions, and by the
//! control socket.

use ipc::{ChannelError, FrameError, codec, frames};
use protocol::Link;
use protocol::client::{ClientEvent, ClientLink, ToClient};
use protocol::ids::{Generation, SessionId};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Entries that wait for a slow client.
const CAPACITY: usize = 4096;
/// Backlog entries among them: the backlog is read from disk only as fast as the client reads.
const BACKLOG_CAPACITY: usize = 4;

/// One or more encoded messages, ready to be written.
pub(crate) type Bytes = Arc<[u8]>;

/// Encodes these messages with their frames.
pub(crate) fn to_bytes(messages: &[ToClient]) -> Result<Bytes, ChannelError> {
    let mut bytes = Vec::new();
    for message in messages {
        let body = codec::encode(message)?;
        if body.len() > ClientLink::MESSAGE_CAP {
            return Err(FrameError::MessageOverLong { cap: ClientLink::MESSAGE_CAP }.into());
        }
        bytes.append(&mut frames(Generation(0), 0, &body));
    }
    Ok(bytes.into())
}

/// The sending end of a client's queue.
#[derive(Debug, Clone)]
pub(crate) struct Feed {
    queue: mpsc::Sender<FeedEntry>,
    /// Room for entries of the backlog.
    backlog_room: Arc<Semaphore>,
}

/// Messages that were not written to the client yet.
#[derive(Debug)]
pub(super) struct FeedEntry {
    pub(super) bytes: Bytes,
    /// Descriptors that follow it.
    pub(super) descriptors: Vec<OwnedFd>,
    /// An entry of the backlog holds its room until it is written.
    pub(super) _room: Option<OwnedSemaphorePermit>,
}

impl Feed {
    /// A feed and its receiving end.
    pub(super) fn new() -> (Self, mpsc::Receiver<FeedEntry>) {
        let (queue, entries) = mpsc::channel(CAPACITY);
        (Self { queue, backlog_room: Arc::new(Semaphore::new(BACKLOG_CAPACITY)) }, entries)
    }

    /// Queues these bytes, where there is room.
    pub(crate) fn put(&self, bytes: Bytes) -> FeedResult {
        self.put_with(bytes, Vec::new())
    }

    /// Queues these bytes and the descriptors that follow them, where there is room.
    pub(crate) fn put_with(&self, bytes: Bytes, descriptors: Vec<OwnedFd>) -> FeedResult {
        match self.queue.try_send(FeedEntry { bytes, descriptors, _room: None }) {
            Ok(()) | Err(TrySendError::Closed(_)) => FeedResult::Done,
            Err(TrySendError::Full(_)) => FeedResult::Full,
        }
    }

    /// Queues these bytes once there is room, which the client makes by reading. Drops them if the
    /// client disconnects first.
    pub(crate) async fn put_when_free(&self, bytes: Bytes) {
        let _ = self.queue.send(FeedEntry { bytes, descriptors: Vec::new(), _room: None }).await;
    }

    /// Queues a part of the backlog once fewer than [`BACKLOG_CAPACITY`] parts are unwritten.
    pub(crate) async fn put_backlog(&self, bytes: Bytes) -> FeedStatus {
        let Ok(room) = Arc::clone(&self.backlog_room).acquire_owned().await else {
            return FeedStatus::Gone;
        };
        match self.queue.send(FeedEntry { bytes, descriptors: Vec::new(), _room: Some(room) }).await
        {
            Ok(()) => FeedStatus::Open,
            Err(_) => FeedStatus::Gone,
        }
    }

    fn is_half_full(&self) -> bool {
        self.queue.capacity() < self.queue.max_capacity() / 2
    }
}

/// The client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FeedStatus {
    Open,
    Gone,
}

/// An encoded message for every attached client.
#[derive(Debug)]
pub(crate) struct Broadcast {
    delivery: Delivery,
    bytes: Bytes,
}

/// The treatment of a message for a slow client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    /// It may: its text comes again, whole, with the answer or the result that it belongs to.
    Droppable,
    /// It may not.
    Required,
}

/// The outcome of queueing a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FeedResult {
    /// It is queued, or was dropped on purpose, or the client has disconnected.
    Done,
    /// There was no room.
    Full,
}

impl Broadcast {
    /// An event of a session.
    pub(crate) fn new(
        session: &SessionId,
        seq: u64,
        event: ClientEvent,
    ) -> Result<Self, ChannelError> {
        let delivery = match matches!(event, ClientEvent::Delta { .. } | ClientEvent::Output { .. })
        {
            true => Delivery::Droppable,
            false => Delivery::Required,
        };
        let message = ToClient::Event { session: session.clone(), seq, event };
        Ok(Self { delivery, bytes: to_bytes(std::slice::from_ref(&message))? })
    }

    /// The backlog of a client that attaches, of any length.
    pub(crate) fn backlog(messages: &[ToClient]) -> Result<Self, ChannelError> {
        Ok(Self { delivery: Delivery::Required, bytes: to_bytes(messages)? })
    }

    /// Queues it for a client. A client whose queue is half full gets no droppable messages.
    pub(crate) fn to(&self, feed: &Feed) -> FeedResult {
        if self.delivery == Delivery::Droppable && feed.is_half_full() {
            return FeedResult::Done;
        }
        feed.put(Arc::clone(&self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::client::{AnswerPart, PromptUse};

    #[test]
    fn a_client_that_does_not_read_goes_without_live_words_first_and_then_without_any() {
        let session = SessionId("0123456789ab".to_owned());
        let told = |event| Broadcast::new(&session, 1, event).map_err(|error| error.to_string());
        let live = told(ClientEvent::Delta { part: AnswerPart::Text, text: "piece".to_owned() });
        let kept = told(ClientEvent::Prompt { text: "words".to_owned(), of: PromptUse::Prompt });
        let (Ok(live), Ok(kept)) = (live, kept) else { panic!("both can be said") };
        let (unread, mut untold) = mpsc::channel(4);
        let feed = Feed { queue: unread, backlog_room: Arc::new(Semaphore::new(1)) };
        for _ in 0..8 {
            assert_eq!(live.to(&feed), FeedResult::Done);
        }
        assert_eq!(feed.queue.capacity(), 1, "some went in, and room is left for what is kept");
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
