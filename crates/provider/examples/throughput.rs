//! How fast the pure parts are: `cargo run --release -p provider --example throughput`.
//! The numbers of the day stand in the crate's documentation.
#![allow(clippy::unwrap_used)]

use protocol::content::{Block, Message, ModelRequest, Role};
use protocol::provider::{Api, Auth, Patience, Server, Source};
use provider::intake::Intake;
use provider::{Provider, Setup, anthropic, sse};
use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

/// The best of several runs: the others measure the machine's other work.
fn best(runs: usize, mut run: impl FnMut()) -> Duration {
    let once = |()| {
        let begun = Instant::now();
        run();
        begun.elapsed()
    };
    std::iter::repeat_n((), runs).map(once).min().unwrap()
}

/// An answer of `pieces` text pieces of `letters` letters each.
fn stream(pieces: usize, letters: usize) -> String {
    let mut text = String::from(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\"}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    );
    let words = "lorem ip".repeat(letters.div_ceil(8));
    for _ in 0..pieces {
        text.push_str(&format!("event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{}\"}}}}\n\n", &words[..letters]));
    }
    text.push_str("event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    text
}

fn rate(name: &str, bytes: usize, time: Duration) {
    let mega = bytes as f64 / 1e6;
    println!("{name}: {:.0} MB/s ({mega:.1} MB in {time:.2?})", mega / time.as_secs_f64());
}

fn main() {
    for (pieces, letters) in [(100_000, 8), (2_000, 1_000), (2, 4_000_000)] {
        let text = stream(pieces, letters);
        let chunks = || text.as_bytes().chunks(16 << 10);
        let time = best(7, || {
            let mut decoder = sse::Decoder::default();
            for chunk in chunks() {
                decoder.push(chunk, &mut |event| drop(black_box(event))).unwrap();
            }
        });
        rate(&format!("sse alone, {pieces} x {letters} letters"), text.len(), time);
        let time = best(7, || {
            let mut intake = Intake::new(Api::Anthropic);
            for chunk in chunks() {
                drop(black_box(intake.read(chunk).unwrap()));
            }
        });
        rate(&format!("bytes to steps, {pieces} x {letters} letters"), text.len(), time);
        println!("  {:.0} ns an event", time.as_nanos() as f64 / pieces as f64);
    }

    let message = |n: usize| Message {
        role: if n.is_multiple_of(2) { Role::User } else { Role::Assistant },
        blocks: vec![Block::Text { text: "some \"quoted\" words\n".repeat(100) }],
    };
    let request = ModelRequest {
        round: 1,
        model: "m".into(),
        system: "s".repeat(4000),
        tools: Vec::new(),
        messages: (0..101).map(message).collect(),
        max_tokens: 1,
    };
    let length = anthropic::encode(&request, None).unwrap().len();
    let time = best(50, || drop(black_box(anthropic::encode(&request, None).unwrap())));
    rate("request to body", length, time);

    for url in ["http://localhost", "https://localhost"] {
        let time = best(7, || {
            let mut key = tempfile::tempfile().unwrap();
            key.write_all(b"k").unwrap();
            drop(black_box(Provider::new(Setup {
                source: Source::Server(Server {
                    api: Api::Anthropic,
                    base_url: url.into(),
                    auth: Auth::ApiKey,
                    headers: Vec::new(),
                    effort: None,
                }),
                patience: Patience {
                    tries: 5,
                    max_wait_ms: 60_000,
                    byte_timeout_ms: 60_000,
                    progress_timeout_ms: 300_000,
                    connect_timeout_ms: 10_000,
                },
                proxy: None,
                key: Some(key),
                replay: None,
                record: None,
            })));
        });
        println!("a provider for {url}: {time:.2?}");
    }
}
