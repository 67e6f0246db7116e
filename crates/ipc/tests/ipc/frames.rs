//! Frames of any messages, split anywhere, and frames that are none.

use ipc::{FRAME_CAP, FrameError, HEADER_BYTES, Message, MessageJoiner, descriptor_frame, frames};
use proptest::prelude::*;
use protocol::ids::Generation;

/// Bytes for the wire, and what they say.
fn written(messages: &[Message]) -> Vec<u8> {
    let bytes_of = |message: &Message| match &message.body {
        Some(body) => frames(message.generation, message.correlation, body),
        None => descriptor_frame(message.generation).to_vec(),
    };
    messages.iter().flat_map(bytes_of).collect()
}

/// All messages in these pieces, and how the reading ended.
fn read(pieces: &[&[u8]], cap: usize) -> (Vec<Message>, Option<FrameError>, bool) {
    let mut joiner = MessageJoiner::new(cap);
    let mut got = Vec::new();
    for piece in pieces {
        joiner.push(piece);
        loop {
            match joiner.next_message() {
                Ok(Some(message)) => got.push(message),
                Ok(None) => break,
                Err(error) => return (got, Some(error), true),
            }
        }
    }
    let is_mid_message = joiner.is_mid_message();
    (got, None, is_mid_message)
}

/// Cuts the bytes at these places.
fn split<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

fn message() -> impl Strategy<Value = Message> {
    let body = prop_oneof![
        9 => proptest::collection::vec(any::<u8>(), 0..300),
        // Around the size at which a message becomes several frames.
        1 => (FRAME_CAP - 2..FRAME_CAP * 2 + 2, any::<u8>()).prop_map(|(size, byte)| vec![byte; size]),
    ];
    prop_oneof![
        5 => (any::<u32>(), any::<u64>(), body).prop_map(|(generation, correlation, body)| Message {
            generation: Generation(generation),
            correlation,
            body: Some(body),
        }),
        1 => any::<u32>().prop_map(|generation| Message {
            generation: Generation(generation),
            correlation: 0,
            body: None,
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_messages_split_anywhere_come_back(
        messages in proptest::collection::vec(message(), 0..8),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let bytes = written(&messages);
        let got = read(&split(&bytes, &cuts), 4 << 20);
        prop_assert_eq!(got, (messages, None, false));
    }

    #[test]
    fn a_peer_that_stops_anywhere_is_noticed(
        messages in proptest::collection::vec(message(), 1..4),
        end in any::<prop::sample::Index>(),
    ) {
        let bytes = written(&messages);
        let end = end.index(bytes.len());
        let (got, error, is_mid_message) = read(&[&bytes[..end]], 4 << 20);
        prop_assert_eq!(error, None);
        prop_assert_eq!(&got[..], &messages[..got.len()]);
        prop_assert_eq!(is_mid_message, written(&got).len() != end);
    }

    /// Whatever follows good messages, they are read, and nothing over the cap is.
    #[test]
    fn rubbish_neither_panics_nor_spoils_what_came_before(
        messages in proptest::collection::vec(message(), 0..4),
        rubbish in proptest::collection::vec(any::<u8>(), 0..200),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut bytes = written(&messages);
        bytes.extend(rubbish);
        let (got, error, _) = read(&split(&bytes, &cuts), 4 << 20);
        prop_assert!(got.len() >= messages.len());
        prop_assert_eq!(&got[..messages.len()], &messages[..]);
        prop_assert_eq!((&got, &error), (&read(&[&bytes], 4 << 20).0, &read(&[&bytes], 4 << 20).1));
    }

    #[test]
    fn a_changed_header_is_refused_or_says_another_thing_within_the_cap(
        body in proptest::collection::vec(any::<u8>(), 0..64),
        place in 0..HEADER_BYTES,
        value: u8,
    ) {
        let mut bytes = frames(Generation(1), 2, &body);
        bytes[place] = value;
        let (got, _, _) = read(&[&bytes], 64);
        prop_assert!(got.len() <= 3 && got.iter().all(|m| m.body.as_ref().is_none_or(|b| b.len() <= 64)));
    }

    #[test]
    fn bytes_that_are_no_hello_are_foreign(bytes in proptest::collection::vec(any::<u8>(), ipc::HELLO_BYTES)) {
        let bytes: [u8; ipc::HELLO_BYTES] = bytes.try_into().unwrap();
        prop_assert!(ipc::Hello::from_bytes(&bytes).is_err());
    }
}

#[test]
fn claims_are_refused_before_a_byte_of_the_body_is_there() {
    let mut header = frames(Generation(1), 0, b"");
    for claimed in [FRAME_CAP as u32 + 1, u32::MAX / 2, u32::MAX] {
        header[..4].copy_from_slice(&claimed.to_le_bytes());
        let (got, error, _) = read(&[&header], usize::MAX);
        assert!(got.is_empty());
        assert_eq!(error, Some(FrameError::OverLong { claimed: claimed as usize, cap: FRAME_CAP }));
    }
}

#[test]
fn an_endless_message_of_empty_frames_stays_small() {
    // A peer that never ends a message must not make us keep more than its cap.
    let mut begun = frames(Generation(1), 0, b"x");
    begun[16] = 1;
    let bytes = begun.repeat(100_000);
    let (got, error, _) = read(&bytes.chunks(64 << 10).collect::<Vec<_>>(), 50_000);
    assert!(got.is_empty());
    assert_eq!(error, Some(FrameError::MessageOverLong { cap: 50_000 }));
}
