//! The full screen over a line of 2 KB/s: the echo of a key while an answer streams, and the bytes of a turn.
#![allow(clippy::unwrap_used)]

use crate::support::Desk;
use crate::support::anthropic::{Answer, Server};
use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const BYTES_A_SECOND: usize = 2 << 10;
/// The line takes its bytes so often.
const TICK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(120);

/// What the other end of the line has shown so far.
struct Shown {
    terminal: vt100::Parser,
    bytes: usize,
}

/// `agentd` in a pseudo-terminal behind the line.
struct SlowLine {
    child: Child,
    keys: File,
    shown: Arc<Mutex<Shown>>,
}

impl SlowLine {
    fn run(mut command: Command) -> Self {
        let (rows, columns) = (24, 80);
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).unwrap();
        let side = || Stdio::from(pty.slave.try_clone().unwrap());
        command.env("TERM", "xterm-256color").stdin(side()).stdout(side()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let mut line = File::from(pty.master.try_clone().unwrap());
        let terminal = vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 0);
        let shown = Arc::new(Mutex::new(Shown { terminal, bytes: 0 }));
        let other_end = Arc::clone(&shown);
        std::thread::spawn(move || {
            let most = BYTES_A_SECOND * usize::try_from(TICK.as_millis()).unwrap() / 1000;
            let mut bytes = vec![0; most];
            while let Ok(length @ 1..) = line.read(&mut bytes) {
                // The line, not the test, is slow.
                std::thread::sleep(TICK * u32::try_from(length).unwrap() / most as u32);
                let mut shown = other_end.lock().unwrap();
                shown.terminal.process(&bytes[..length]);
                shown.bytes += length;
            }
        });
        Self { child, keys: File::from(pty.master), shown }
    }

    fn screen(&self) -> String {
        self.shown.lock().unwrap().terminal.screen().contents()
    }

    /// Waits until it shows this, and returns how long that took.
    #[track_caller]
    fn shows(&self, words: &str) -> Duration {
        let begun = Instant::now();
        while !self.screen().contains(words) {
            assert!(begun.elapsed() < PATIENCE, "{words:?} is awaited in:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(10));
        }
        begun.elapsed()
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn bytes(&self) -> usize {
        self.shown.lock().unwrap().bytes
    }
}

impl Drop for SlowLine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn row(figure: &str, measured: u128, target: u128) {
    let verdict = if measured <= target { "ok" } else { "MISS" };
    println!("slow line: {figure} {measured}, target {target}: {verdict}");
}

/// Figures, not an assertion: they depend on the machine. What is asserted is that all arrives.
#[test]
#[ignore = "half a minute: .ci/nightly screen"]
fn a_line_of_two_kilobytes_a_second_shows_keys_and_the_answer() {
    let desk = Desk::new();
    let words: Vec<String> = (1..=180).map(|word| format!("word{word}")).collect();
    let answer = words.join(" ") + "\n\nThe end.";
    let pieces = Answer::text(&answer).in_pieces_of(12).paced(Duration::from_millis(60));
    let server = Server::scripted([pieces]);
    let _daemon = desk.daemon();
    let mut one = SlowLine::run(desk.with_server(&server, &["new"]));
    one.shows("ready");
    let before = one.bytes();
    one.types("explain it\r");
    one.shows("word1 ");
    let (mut typed, mut slowest) = (String::new(), Duration::ZERO);
    for key in ["a", "b", "c"] {
        typed.push_str(key);
        one.types(key);
        slowest = slowest.max(one.shows(&format!("> {typed}")));
    }
    one.shows("The end.");
    one.shows("ready");
    row("milliseconds to the echo of a key", slowest.as_millis(), 1000);
    row("bytes of a turn that explains", (one.bytes() - before) as u128, 12 << 10);
}
