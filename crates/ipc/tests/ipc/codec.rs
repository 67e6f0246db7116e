//! Bytes of a hostile peer: refused, without a panic and without the memory they ask for.

use ipc::codec::{CodecError, decode, encode};
use proptest::prelude::*;
use protocol::Link;
use protocol::broker::BrokerLink;
use protocol::client::{ClientLink, FromClient};
use protocol::content::{ContentBlock, Usage};
use protocol::provider::ProviderLink;
use protocol::session::{FromSession, SessionEvent, SessionLink};
use protocol::tool::ToolLink;
use std::process::Command;

fn answer(blocks: usize, text: &str) -> FromSession {
    let blocks = vec![ContentBlock::Text { text: text.to_owned() }; blocks];
    FromSession::Commit(SessionEvent::Answer {
        round: 1,
        blocks,
        usage: Usage::default(),
        cost: None,
    })
}

/// Reads the bytes as a word of every wire in both directions.
fn read_as_everything(bytes: &[u8]) {
    fn read_as<L: Link>(bytes: &[u8]) {
        let _ = decode::<L::To>(bytes);
        let _ = decode::<L::From>(bytes);
    }
    read_as::<SessionLink>(bytes);
    read_as::<ProviderLink>(bytes);
    read_as::<BrokerLink>(bytes);
    read_as::<ToolLink>(bytes);
    read_as::<ClientLink>(bytes);
}

proptest! {
    #[test]
    fn rubbish_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        read_as_everything(&bytes);
    }

    /// A count of 2^56 and more where some word has a length.
    #[test]
    fn large_counts_never_panic(
        head in proptest::collection::vec(0_u8..16, 0..12),
        count in u64::MAX / 256..,
        tail in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        read_as_everything(&[head, vec![253], count.to_le_bytes().to_vec(), tail].concat());
    }

    #[test]
    fn words_of_any_text_come_back(token: String, build: String) {
        let word = FromClient::Hello { token, build };
        prop_assert_eq!(decode::<FromClient>(&encode(&word).unwrap()).unwrap(), word);
    }

    #[test]
    fn a_word_and_something_behind_it_is_no_word(left in 1_usize..50, text: String) {
        let mut bytes = encode(&answer(1, &text)).unwrap();
        bytes.extend(vec![0; left]);
        let refused = decode::<FromSession>(&bytes);
        prop_assert!(matches!(refused, Err(CodecError::Leftover(n)) if n == left));
    }
}

/// The word that grows most in memory: text blocks with nothing in them.
#[test]
fn the_word_that_grows_most_comes_back() {
    assert!(
        size_of::<ContentBlock>() <= 40 * 2,
        "an empty block is two bytes, its memory 40 times that"
    );
    for bytes in [32 << 10, 1 << 20] {
        let word = answer(bytes / 2 - 8, "");
        let encoded = encode(&word).unwrap();
        assert!(encoded.len() > bytes - 32 && encoded.len() <= bytes);
        assert_eq!(decode::<FromSession>(&encoded).unwrap(), word);
    }
}

#[test]
fn the_largest_honest_words_come_back() {
    for (blocks, text) in [(1, "x".repeat((32 << 20) - 64)), (200_000, "x".repeat(100))] {
        let word = answer(blocks, &text);
        let encoded = encode(&word).unwrap();
        assert!(encoded.len() <= SessionLink::MESSAGE_CAP);
        assert_eq!(decode::<FromSession>(&encoded).unwrap(), word);
    }
}

#[test]
fn what_asks_for_all_memory_is_refused_within_little() {
    let run = Command::new("sh")
        .args(["-c", r#"ulimit -v 600000; exec "$0" "$@""#])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "codec::in_the_child_ask_for_all_memory",
            "--ignored",
            "--test-threads=1",
        ])
        .output()
        .unwrap_or_else(|error| panic!("this test needs `sh` on PATH: {error}"));
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("1 passed"), "{said}");
}

/// Counts of everything there is, in messages of each size that has a limit of its own.
#[test]
#[ignore = "a part of the test above"]
fn in_the_child_ask_for_all_memory() {
    // The limit holds: this much is not to be had.
    assert!(Vec::<u8>::new().try_reserve_exact(700 << 20).is_err());
    // Long messages take their time in a debug build, and differ from short ones in their limit
    // alone.
    for (size, places) in [(9, 0..6), (32 << 10, 0..6), (1 << 20, 2..4), (2 << 20, 2..4)] {
        for at in places {
            for count in [1_u64 << 20, 1 << 32, u64::MAX / 72, u64::MAX] {
                for first in 0..4 {
                    let mut bytes = vec![1; at];
                    if let Some(tag) = bytes.first_mut() {
                        *tag = first;
                    }
                    bytes.push(253);
                    bytes.extend(count.to_le_bytes());
                    bytes.resize(size.max(bytes.len()), 0);
                    read_as_everything(&bytes);
                }
            }
        }
    }
}
