//! The server of the tests by itself, one for each interface, for `tests/sdk/check.py`: it prints where
//! they are and ends with its input. Each answers request 1 with reasoning, words and a call, 2 with
//! words, 3 with an answer cut inside a call, 4 with a refusal, 5 with status 429.
#![allow(clippy::unwrap_used)]

#[path = "../../../tests/support/anthropic.rs"]
mod anthropic;

use anthropic::vendor::{Stop, VENDORS, Vendor};
use anthropic::{Server, call, half_a_call, text, thinking};
use std::io::Read;

fn main() {
    let input = r#"{"path":"a b"}"#;
    let answers = |vendor: Vendor| {
        [
            vendor.says([
                thinking("Hm.", "c2ln"),
                text("I look: é"),
                call("call_1", "read", input),
            ]),
            vendor.text("done"),
            vendor.says([text("I look."), half_a_call("call_1", "read", input)]),
            vendor.stopped([text("No.")], Stop::Refused),
            vendor.status(429, "Slow down"),
        ]
    };
    let servers: Vec<(Vendor, Server)> =
        VENDORS.iter().map(|vendor| (*vendor, Server::of(*vendor, answers(*vendor)))).collect();
    let urls: Vec<String> = servers
        .iter()
        .map(|(vendor, server)| format!("{:?}: {:?}", vendor.word(), vendor.base_url(server)))
        .collect();
    println!("{{{}}}", urls.join(", "));
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
