//! One stream a vendor, split at every byte and ended at every byte: the pieces are the same, and
//! nothing is whole before its terminal event is.
#![allow(clippy::unwrap_used)]

#[path = "../../../tests/support/anthropic.rs"]
mod anthropic;

use anthropic::vendor::{VENDORS, Vendor};
use anthropic::{call, text, thinking};
use protocol::provider::{Api, Delta};
use provider::intake::Intake;
use provider::step::Step;

fn api(vendor: Vendor) -> Api {
    match vendor {
        Vendor::Anthropic => Api::Anthropic,
        Vendor::Responses => Api::Responses,
        Vendor::Chat => Api::Chat,
        Vendor::Gemini => Api::Gemini,
    }
}

fn stream(vendor: Vendor) -> String {
    let said = [
        thinking("hm \"é\"\n", "c2ln+/=="),
        text("I look: \u{1f50d}"),
        call("call_1", "read", r#"{"path":"a é"}"#),
        call("call_2", "ls", "{}"),
    ];
    vendor.says(said).body()
}

/// Neighbouring pieces of one block joined, however they came.
fn joined(steps: Vec<Step>) -> Vec<Step> {
    let mut all: Vec<Step> = Vec::new();
    for step in steps {
        if let (Some(Step::Piece { index: open, delta: before }), Step::Piece { index, delta }) =
            (all.last_mut(), &step)
            && open == index
            && let (Delta::Text(words), Delta::Text(more))
            | (Delta::Thinking(words), Delta::Thinking(more))
            | (Delta::ToolInput(words), Delta::ToolInput(more)) = (before, delta)
        {
            words.push_str(more);
            continue;
        }
        all.push(step);
    }
    all
}

fn is_end(step: &Step) -> bool {
    matches!(step, Step::Ended(_))
}

#[test]
fn split_at_every_byte_it_says_the_same() {
    for vendor in VENDORS {
        let body = stream(vendor).into_bytes();
        let read = |pieces: &[&[u8]]| {
            let mut intake = Intake::new(api(vendor));
            let steps = pieces.iter().flat_map(|piece| intake.read(piece).unwrap().steps);
            joined(steps.collect())
        };
        let whole = read(&[&body]);
        assert!(whole.last().is_some_and(is_end), "{vendor:?}");
        let calls = whole
            .iter()
            .filter(|step| matches!(step, Step::Piece { delta: Delta::ToolStart { .. }, .. }));
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
            let mut intake = Intake::new(api(vendor));
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
