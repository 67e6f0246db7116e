//! Bodies of requests, for each interface, as one JSON object: with images, with a list of tools that
//! grew by a search, and with a schema for the answer. `tests/sdk/check.py` has the vendors' own
//! libraries read them.
#![allow(clippy::unwrap_used)]

#[path = "../tests/provider/support/image_request.rs"]
mod image_request;
#[path = "../tests/provider/support/sdk_requests.rs"]
mod sdk_requests;

use image_request::{all, request};
use provider::{anthropic, chat, gemini, responses};

fn main() {
    let requests = [
        ("images", request(all())),
        ("a deferred tool list", sdk_requests::deferred()),
        ("a schema for the answer", sdk_requests::with_schema()),
    ];
    let row = |name: &str, encode: &dyn Fn(&protocol::content::ModelRequest) -> String| {
        let bodies = requests.iter().map(|(of, request)| format!("{of:?}: {}", encode(request)));
        format!("{name:?}: {{{}}}", bodies.collect::<Vec<_>>().join(", "))
    };
    let rows = [
        row("anthropic", &|request| anthropic::encode(request, None).unwrap()),
        row("openai", &|request| responses::encode(request, None).unwrap()),
        row("openai-chat", &|request| chat::encode(request, None, "http://localhost").unwrap()),
        row("gemini", &|request| gemini::encode(request, None).unwrap()),
    ];
    println!("{{{}}}", rows.join(", "));
}
