//! How fast the pure parts are: `cargo bench -p provider` prints each figure with its target, PASS or
//! MISS, and the baseline measured in the same run. Nothing here asserts.
#![allow(clippy::unwrap_used)]

#[path = "../../../tests/support/anthropic.rs"]
mod server;

use protocol::content::{ContentBlock, Message, MessageRole, ModelRequest};
use protocol::provider::{Api, Auth, ModelServer, ProviderTimeouts, SourceSetup};
use provider::stream::StreamDecoder;
use provider::{Provider, ProviderSetup, anthropic, sse};
use serde::de::IgnoredAny;
use server::vendor::{VENDORS, Vendor};
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

/// One line of the table. Larger is better.
fn row(figure: &str, value: f64, target: f64, baseline: &str) {
    let verdict = if value >= target { "PASS" } else { "MISS" };
    println!("| {figure} | {value:.0} MB/s | >= {target} MB/s | {verdict} | {baseline} |");
}

fn rate(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64()
}

/// The events of a stream read as JSON, and nothing made of them.
fn as_json(stream: &str) {
    for data in stream.lines().filter_map(|line| line.strip_prefix("data: ")) {
        if data != "[DONE]" {
            black_box(serde_json::from_str::<IgnoredAny>(data).unwrap());
        }
    }
}

fn decoding(vendor: Vendor, letters: usize, target: f64) {
    let api = vendor.api();
    // Lines of 64 letters, so that one in 64 is escaped.
    let words = format!("{}\n", "lorem ip ".repeat(7));
    let words: String = words.chars().cycle().take(letters).collect();
    // As much as comes to about 4 MB; what says the answer again at its end stays in proportion.
    let times = 4_000_000 / (letters + 200);
    let text = vendor.repeats(&words, times).body();
    let time = best(9, || {
        let mut decoder = StreamDecoder::new(api);
        for chunk in text.as_bytes().chunks(16 << 10) {
            drop(black_box(decoder.read(chunk).unwrap()));
        }
    });
    let plain = rate(text.len(), best(9, || as_json(&text)));
    let alone = best(9, || {
        let mut decoder = sse::SseDecoder::default();
        for chunk in text.as_bytes().chunks(16 << 10) {
            decoder.push(chunk, &mut |event| drop(black_box(event))).unwrap();
        }
    });
    let alone = rate(text.len(), alone);
    let baseline = format!("read as JSON only {plain:.0}, cut into events only {alone:.0} MB/s");
    let figure = format!("decode {}, {letters} letters an event", vendor.word());
    row(&figure, rate(text.len(), time), target, &baseline);
}

fn main() {
    println!("| Figure | Value | Target | | Baseline of the same run |");
    println!("|---|---|---|---|---|");
    for vendor in VENDORS {
        for (letters, target) in [(10, 40.0), (1024, 200.0), (64 << 10, 200.0)] {
            decoding(vendor, letters, target);
        }
    }
    println!();

    let message = |n: usize| Message {
        role: if n.is_multiple_of(2) { MessageRole::User } else { MessageRole::Assistant },
        blocks: vec![ContentBlock::Text { text: "some \"quoted\" words\n".repeat(100) }],
    };
    let request = ModelRequest {
        round: 1,
        model: "m".into(),
        system: "s".repeat(4000),
        tools: Vec::new(),
        messages: (0..101).map(message).collect(),
        max_tokens: 1,
        updated: None,
        calls: protocol::content::ToolChoice::Yes,
        images: Vec::new(),
        answer_schema: None,
    };
    let length = anthropic::encode(&request, None).unwrap().len();
    let time = best(50, || drop(black_box(anthropic::encode(&request, None).unwrap())));
    println!("request to body: {:.0} MB/s ({length} bytes in {time:.2?})", rate(length, time));

    for url in ["http://localhost", "https://localhost"] {
        let time = best(7, || {
            let mut key = tempfile::tempfile().unwrap();
            key.write_all(b"k").unwrap();
            drop(black_box(Provider::new(ProviderSetup {
                source: SourceSetup::Server(ModelServer {
                    api: Api::Anthropic,
                    base_url: url.into(),
                    auth: Auth::ApiKey,
                    headers: Vec::new(),
                    effort: None,
                }),
                patience: ProviderTimeouts {
                    tries: 5,
                    overload_tries: 5,
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
