//! Good streams that are spoilt, and bytes that never were one: nothing breaks, and how the bytes are
//! split makes no difference. The same that the fuzz targets hold, without a nightly compiler.
#![allow(clippy::unwrap_used)]

#[path = "../../../tests/support/anthropic.rs"]
mod anthropic;
#[path = "../../../tests/fuzz/src/decoders.rs"]
mod decoders;

use anthropic::vendor::{VENDORS, Vendor};
use anthropic::{call, text, thinking};
use proptest::prelude::*;
use protocol::provider::Api;

fn api(vendor: Vendor) -> Api {
    match vendor {
        Vendor::Anthropic => Api::Anthropic,
        Vendor::Responses => Api::Responses,
        Vendor::Chat => Api::Chat,
        Vendor::Gemini => Api::Gemini,
    }
}

fn good(vendor: Vendor) -> Vec<u8> {
    let said = [thinking("hm é", "c2ln"), text("I look"), call("c", "read", r#"{"path":"a"}"#)];
    vendor.says(said).body().into_bytes()
}

/// What is done to a stream at a place of it.
#[derive(Debug, Clone)]
enum Spoil {
    Set(usize, u8),
    Cut(usize, usize),
    Again(usize, usize),
}

fn spoil() -> impl Strategy<Value = Spoil> {
    let byte = prop_oneof![any::<u8>(), proptest::sample::select(&b"\r\n{}[]\",:0 d"[..])];
    prop_oneof![
        (any::<usize>(), byte).prop_map(|(at, byte)| Spoil::Set(at, byte)),
        (any::<usize>(), 1_usize..40).prop_map(|(at, length)| Spoil::Cut(at, length)),
        (any::<usize>(), 1_usize..200).prop_map(|(at, length)| Spoil::Again(at, length)),
    ]
}

fn spoilt(mut bytes: Vec<u8>, spoils: Vec<Spoil>) -> Vec<u8> {
    for spoil in spoils {
        let place = |at: usize| at % bytes.len().max(1);
        match spoil {
            Spoil::Set(at, byte) => {
                let at = place(at);
                bytes[at] = byte;
            }
            Spoil::Cut(at, length) => {
                let at = place(at);
                let end = (at + length).min(bytes.len() - 1).max(at);
                bytes.drain(at..end);
            }
            Spoil::Again(at, length) => {
                let at = place(at);
                let again = bytes[at..(at + length).min(bytes.len())].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_spoilt_stream_breaks_nothing_and_says_the_same_however_it_is_split(
        piece in 1_u8..,
        spoils in proptest::collection::vec(spoil(), 0..6),
        noise in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        for vendor in VENDORS {
            let mut bytes = vec![piece];
            bytes.extend(spoilt(good(vendor), spoils.clone()));
            decoders::any(api(vendor), &bytes);
            decoders::any(api(vendor), &noise);
        }
    }
}
