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

/// Entries that are taken from the queue at once.
const TAKEN: usize = 32;
/// Bytes that are put together for one write.
const TOGETHER: usize = 16 << 10;

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
pub(crate) type Feed = mpsc::Sender<Bytes>;

/// What is told to all who look on.
#[derive(Debug)]
pub(crate) struct Told {
    lasting: Lasting,
    bytes: Bytes,
}

/// Whether a client may be left without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lasting {
    /// Its text comes again, whole, with the answer or the result it belongs to.
    Live,
    /// It does not.
    Kept,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fed {
    /// It is on its way, or was left out, or the client is gone.
    Done,
    /// There was no room.
    Full,
}

impl Told {
    /// An event of a session.
    pub(crate) fn new(session: &SessionId, seq: u64, event: Event) -> Result<Self, ChannelError> {
        let lasting = match matches!(event, Event::TextDelta { .. } | Event::Output { .. }) {
            true => Lasting::Live,
            false => Lasting::Kept,
        };
        let word = ToClient::Event { session: session.clone(), seq, event };
        Ok(Self { lasting, bytes: to_bytes(std::slice::from_ref(&word))? })
    }

    /// What was before a client came, however much that is.
    pub(crate) fn past(words: &[ToClient]) -> Result<Self, ChannelError> {
        Ok(Self { lasting: Lasting::Kept, bytes: to_bytes(words)? })
    }

    /// To a client. One that has half of its room unread goes without what comes again.
    pub(crate) fn to(&self, feed: &Feed) -> Fed {
        if self.lasting == Lasting::Live && feed.capacity() < feed.max_capacity() / 2 {
            return Fed::Done;
        }
        match feed.try_send(Arc::clone(&self.bytes)) {
            Ok(()) | Err(TrySendError::Closed(_)) => Fed::Done,
            Err(TrySendError::Full(_)) => Fed::Full,
        }
    }
}

/// The way to a client.
pub(crate) struct Mouth(pub(super) OwnedWriteHalf);

impl Mouth {
    pub(crate) async fn say(&mut self, word: &ToClient) -> Result<(), ChannelError> {
        let bytes = to_bytes(std::slice::from_ref(word))?;
        Ok(self.0.write_all(&bytes).await?)
    }
}

/// Tells the client all there is, until it is gone or its actor is.
pub(super) async fn tell(
    mut mouth: Mouth,
    mut unread: mpsc::Receiver<Bytes>,
    actor: ActorRef<ClientMsg>,
) {
    let mut taken = Vec::new();
    while unread.recv_many(&mut taken, TAKEN).await > 0 {
        for piece in put_together(&taken) {
            if let Err(error) = mouth.0.write_all(&piece).await {
                let _ = actor.send_message(ClientMsg::Gone(error.to_string()));
                return;
            }
        }
        taken.clear();
    }
}

/// The same bytes in as few pieces as their size allows; what is long is not copied.
fn put_together(entries: &[Bytes]) -> Vec<Bytes> {
    let (mut pieces, mut short) = (Vec::new(), Vec::new());
    for (n, entry) in entries.iter().enumerate() {
        let next = entries.get(n + 1).map_or(usize::MAX, |next| next.len());
        if short.is_empty() && entry.len().saturating_add(next) > TOGETHER {
            pieces.push(Arc::clone(entry));
            continue;
        }
        short.extend_from_slice(entry);
        if short.len().saturating_add(next) > TOGETHER {
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
        let entry = |(n, length): (usize, usize)| Bytes::from(vec![n as u8; length]);
        let lengths = [10, 20, TOGETHER - 40, 30, 1, TOGETHER + 1, 5, 6, TOGETHER];
        let entries: Vec<_> = lengths.into_iter().enumerate().map(entry).collect();
        let pieces = put_together(&entries);
        assert_eq!(pieces.concat(), entries.concat());
        let sizes: Vec<_> = pieces.iter().map(|piece| piece.len()).collect();
        assert_eq!(sizes, [TOGETHER - 10, 31, TOGETHER + 1, 11, TOGETHER]);
        assert_eq!(put_together(&[]), Vec::<Bytes>::new());
    }

    #[test]
    fn a_client_that_does_not_read_goes_without_live_words_first_and_then_without_any() {
        let session = SessionId("0123456789ab".to_owned());
        let told = |event| Told::new(&session, 1, event).map_err(|error| error.to_string());
        let live = told(Event::TextDelta { text: "piece".to_owned() });
        let kept = told(Event::Prompt { text: "words".to_owned() });
        let (Ok(live), Ok(kept)) = (live, kept) else { panic!("both can be said") };
        let (feed, mut unread) = mpsc::channel(4);
        for _ in 0..8 {
            assert_eq!(live.to(&feed), Fed::Done);
        }
        assert_eq!(feed.capacity(), 1, "some went in, and room is left for what is kept");
        assert_eq!((kept.to(&feed), kept.to(&feed)), (Fed::Done, Fed::Full));
        assert_eq!(unread.try_recv().ok(), Some(Arc::clone(&live.bytes)));
        assert_eq!(kept.to(&feed), Fed::Done);
        drop(unread);
        assert_eq!(kept.to(&feed), Fed::Done, "it is gone");
    }
}
