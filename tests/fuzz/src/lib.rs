//! Properties for any bytes that a peer may send. Called by the fuzz targets, and by the test in
//! `crates/ipc/tests/ipc/replay.rs` with the inputs that they found.

use ipc::codec::{Decode, Encode, decode, encode};
use ipc::{FrameError, HEADER_BYTES, Message, MessageJoiner};
use protocol::Link;
use std::fmt::Debug;

/// Bytes as a message of the session wire.
pub fn session(data: &[u8]) {
    both_ways::<protocol::session::SessionLink>(data);
}

/// Bytes as a message of the provider wire.
pub fn provider(data: &[u8]) {
    both_ways::<protocol::provider::ProviderLink>(data);
}

/// Bytes as a message of the broker wire.
pub fn broker(data: &[u8]) {
    both_ways::<protocol::broker::BrokerLink>(data);
}

/// Bytes as a message of the store wire.
pub fn store(data: &[u8]) {
    both_ways::<protocol::store::StoreLink>(data);
}

/// Bytes as a message of the tool wire.
pub fn tool(data: &[u8]) {
    both_ways::<protocol::tool::ToolLink>(data);
}

/// Bytes as a message of the client wire.
pub fn client(data: &[u8]) {
    both_ways::<protocol::client::ClientLink>(data);
}

/// Bytes as frames. The first byte decides how they are split.
///
/// Messages and errors are the same however the bytes are split; no message is over the cap; a
/// message written and read again is itself.
pub fn frames(data: &[u8]) {
    let Some((piece, bytes)) = data.split_first() else { return };
    let cap = 300;
    let whole = read(bytes, bytes.len().max(1), cap);
    assert_eq!(read(bytes, usize::from(*piece).max(1), cap), whole);
    for message in whole.0 {
        let Some(body) = &message.body else { continue };
        assert!(body.len() <= cap);
        let again = ipc::frames(message.generation, message.correlation, body);
        assert_eq!(read(&again, HEADER_BYTES + 1, cap).0, [message]);
    }
}

fn read(bytes: &[u8], piece: usize, cap: usize) -> (Vec<Message>, Option<FrameError>) {
    let mut joiner = MessageJoiner::new(cap);
    let mut messages = Vec::new();
    for piece in bytes.chunks(piece) {
        joiner.push(piece);
        loop {
            match joiner.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, None)
}

fn both_ways<L: Link>(data: &[u8])
where
    L::To: Encode + PartialEq + Debug,
    L::From: Encode + PartialEq + Debug,
{
    is_refused_or_comes_back::<L::To>(data);
    is_refused_or_comes_back::<L::From>(data);
}

/// The bytes may encode a message differently than agentd does, so messages are compared, not bytes.
fn is_refused_or_comes_back<W: Encode + Decode<()> + PartialEq + Debug>(data: &[u8]) {
    let Ok(word) = decode::<W>(data) else { return };
    let bytes = encode(&word).expect("a word that was read can be written");
    assert!(bytes.len() <= data.len(), "no spelling is shorter than ours");
    assert_eq!(decode::<W>(&bytes).expect("a word that was written can be read"), word);
}
