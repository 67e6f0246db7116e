//! One stream a vendor, split at every byte, ended at every byte, and spoilt: the pieces are the same
//! however it is split, and nothing is whole before its terminal event is. The same that the fuzz
//! targets hold.

use super::anthropic::vendor::{VENDORS, Vendor};
use super::anthropic::{call, text, thinking};
use super::decoders::joined;
use proptest::prelude::*;
use protocol::provider::AnswerDelta;
use provider::step::AnswerStep;
use provider::stream::StreamDecoder;

fn stream(vendor: Vendor) -> String {
    let said = [
        thinking("hm \"é\"\n", "c2ln+/=="),
        text("I look: \u{1f50d}"),
        call("call_1", "read", r#"{"path":"a é"}"#),
        call("call_2", "ls", "{}"),
    ];
    vendor.says(said).body()
}

fn is_end(step: &AnswerStep) -> bool {
    matches!(step, AnswerStep::Ended(_))
}

#[test]
fn split_at_every_byte_it_says_the_same() {
    for vendor in VENDORS {
        let body = stream(vendor).into_bytes();
        let read = |pieces: &[&[u8]]| {
            let mut intake = StreamDecoder::new(vendor.api());
            let steps = pieces.iter().flat_map(|piece| intake.read(piece).unwrap().steps);
            joined(steps.collect())
        };
        let whole = read(&[&body]);
        assert!(whole.last().is_some_and(is_end), "{vendor:?}");
        let calls = whole.iter().filter(|step| {
            matches!(step, AnswerStep::Piece { delta: AnswerDelta::ToolStart { .. }, .. })
        });
        assert_eq!(calls.count(), 2, "{vendor:?}");
        for cut in 0..=body.len() {
            assert_eq!(read(&[&body[..cut], &body[cut..]]), whole, "{vendor:?} at {cut}");
        }
        assert_eq!(read(&body.chunks(1).collect::<Vec<_>>()), whole, "{vendor:?} byte by byte");
    }
}

/// The first byte behind the event that says how the answer ended.
fn terminal(vendor: Vendor, body: &str) -> usize {
    let from = match vendor {
        Vendor::Anthropic => body.find("data: {\"type\":\"message_stop\"").unwrap(),
        Vendor::Responses => body.rfind("data: {").unwrap(),
        // A body that ends behind the reason is whole on these servers.
        Vendor::Chat => body.find("\"finish_reason\":\"tool_calls\"").unwrap(),
        Vendor::Gemini => body.rfind("data: {").unwrap(),
    };
    from + body[from..].find(['\r', '\n']).unwrap()
}

#[test]
fn ended_at_every_byte_nothing_is_whole_before_its_terminal_event() {
    for vendor in VENDORS {
        let body = stream(vendor);
        let end = terminal(vendor, &body);
        for cut in 0..body.len() {
            let mut intake = StreamDecoder::new(vendor.api());
            let mut steps = intake.read(&body.as_bytes()[..cut]).unwrap().steps;
            if !steps.iter().any(is_end) {
                steps.extend(intake.finish().unwrap_or_default());
            }
            // Chat's answer is followed by a count of tokens, which may be torn in its turn.
            let torn = vendor == Vendor::Chat && cut > end;
            if !torn {
                assert_eq!(steps.iter().any(is_end), cut >= end, "{vendor:?} at {cut} of {end}");
            }
        }
    }
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
            bytes.extend(spoilt(stream(vendor).into_bytes(), spoils.clone()));
            super::decoders::any(vendor.api(), &bytes);
            super::decoders::any(vendor.api(), &noise);
        }
    }
}
