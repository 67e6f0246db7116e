//! Costs of a model's answer from the network to a script: processor time of all processes, and
//! memory of the stream.

use crate::support::anthropic::vendor::Vendor;
use crate::support::anthropic::{Answer, Server};
use crate::support::{Desk, is_root, processes, pss, run, run_within};
use crate::{median, micros, row};
use nix::sys::resource::{UsageWho, getrusage};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Letters of the long answers.
const LETTERS: usize = 2 << 20;

pub(crate) fn rows() {
    let short = median((0..5).map(|_| processor(Vendor::Anthropic.text("done"))).collect());
    let baseline = format!("an answer of one word {:.0} ms", micros(short) / 1e3);
    // As models send it: some words an event.
    let usual = || Vendor::Anthropic.repeats("let it be so, 'n' then \n", LETTERS / 24);
    let took = median((0..5).map(|_| processor(usual())).collect());
    let figure = "processor time of a run with 2 MiB of words, 24 letters an event";
    row(figure, micros(took) / 1e3, "ms", 80.0, &baseline);
    let tiny = || Vendor::Anthropic.repeats(&"lorem ip".repeat(128), LETTERS / 1024);
    let took = median((0..3).map(|_| processor(tiny().in_writes_of(1))).collect());
    let figure = "processor time of a run with 2 MiB in network pieces of one byte";
    row(figure, micros(took) / 1e3, "ms", 500.0, &baseline);
    // Each byte a chunk of HTTP besides, which is unpacked one by one.
    let took = median((0..3).map(|_| processor(tiny().in_pieces_of(1))).collect());
    let figure = "processor time of a run with 2 MiB in chunks of one byte";
    row(figure, micros(took) / 1e3, "ms", f64::INFINITY, &baseline);
    memory();
}

/// Processor time of all processes of a one-shot with this answer.
fn processor(answer: Answer) -> Duration {
    let desk = Desk::new();
    let length = answer.len();
    let server = Server::scripted([answer]);
    let before = of_children();
    // One write for each byte keeps the server busy for long.
    let ran = run_within(desk.with_server(&server, &["-p", "x"]), Duration::from_secs(300));
    let took = of_children() - before;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(length < LETTERS || ran.out.len() >= LETTERS / 25 * 24, "{} letters", ran.out.len());
    took
}

/// Processor time of all children that ended. It includes the workers, since each process waits for
/// its own children.
pub(crate) fn of_children() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let time = |time: nix::sys::time::TimeVal| {
        Duration::new(time.tv_sec().unsigned_abs(), 0)
            + Duration::from_micros(time.tv_usec().unsigned_abs())
    };
    time(usage.user_time()) + time(usage.system_time())
}

/// The most that the provider's process holds while large events come in.
fn memory() {
    const FIGURE: &str = "provider, memory (PSS) with events of 64 KiB";
    if !is_root() {
        println!("| {FIGURE} | | <= 12 MB | run as root | none |");
        return;
    }
    let most = |answer: Answer| {
        let desk = Desk::new();
        let server = Server::scripted([answer]);
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let own = std::process::id();
        let watch = std::thread::spawn(move || {
            let mut most = 0;
            while !seen.load(Ordering::Relaxed) {
                most = most.max(provider_of(own).map_or(0, pss));
                std::thread::sleep(Duration::from_millis(5));
            }
            most
        });
        let ran = run(desk.with_server(&server, &["-p", "x"]));
        over.store(true, Ordering::Relaxed);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let most = watch.join().unwrap();
        assert!(most > 0, "the provider was never seen");
        most as f64 * 1024.0 / 1e6
    };
    let pace = Duration::from_millis(10);
    let words = "lorem ip".repeat(8 << 10);
    let large = most(Vendor::Anthropic.repeats(&words, 64).in_pieces_of(words.len()).paced(pace));
    let small = most(Vendor::Anthropic.repeats("lorem ip", 64).in_pieces_of(1024).paced(pace));
    row(FIGURE, large, "MB", 12.0, &format!("with events of 8 letters {small:.2} MB"));
}

/// The provider's process in a session that this process started.
fn provider_of(own: u32) -> Option<u32> {
    let all = processes();
    let sessions: Vec<_> =
        all.iter().filter(|process| process.parent == own).map(|process| process.session).collect();
    all.iter()
        .find(|process| process.name == "agentd-provider" && sessions.contains(&process.session))
        .map(|process| process.pid)
}
