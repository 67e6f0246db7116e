//! The body of a request with images, for each interface, as one JSON object: `tests/sdk/check.py` has the
//! vendors' own libraries read them.
#![allow(clippy::unwrap_used)]

#[path = "../tests/support/image_request.rs"]
mod image_request;

use image_request::{all, request};
use provider::{anthropic, chat, gemini, responses};

fn main() {
    let request = request(all());
    let bodies = [
        ("anthropic", anthropic::encode(&request, None).unwrap()),
        ("openai", responses::encode(&request, None).unwrap()),
        ("openai-chat", chat::encode(&request, None, "http://localhost").unwrap()),
        ("gemini", gemini::encode(&request, None).unwrap()),
    ];
    let rows: Vec<String> = bodies.iter().map(|(name, body)| format!("{name:?}: {body}")).collect();
    println!("{{{}}}", rows.join(", "));
}
