//! The terminal of a person: how soon a key is on the screen, costs of a frame while an answer streams, the
//! first paint of a long session, memory, and rest. `agentd` runs in a real pseudo-terminal of 200 x 50.

use crate::support::anthropic::{Answer, Server, text};
use crate::support::daemon::Wire;
use crate::support::{self, Daemon, Desk, switches};
use crate::{median, micros, row};
use journal::{ContentBlock, Journal, JournalRecord, SessionHeader, TurnEnd, Usage};
use nix::pty::{Winsize, openpty};
use protocol::client::{
    BacklogFrom, ClientRights, FromClient, OtherClients, SessionRequest, SessionStart, ToClient,
};
use protocol::ids::SessionId;
use protocol::session::OpenTurn;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// Ends each frame of the full-screen view: the end of synchronised output.
const FRAME_END: &[u8] = b"\x1b[?2026l";
/// The newest words of a long session.
const LAST: &str = "the-newest-words";
/// Keys whose frames are timed.
const KEYS: usize = 400;
/// For how long wake-ups are counted.
const QUIET: Duration = Duration::from_secs(60);
/// The streamed answer: 2 MiB in pieces, 200 of them a second.
const PIECES: usize = 2048;
const PIECE: usize = 1024;

pub(crate) fn rows() {
    for (events, limit) in [(10_000, 100.0), (100_000, 150.0)] {
        first_paint("--inline", events, limit);
    }
    first_paint("--full-screen", 100_000, 60.0);
    keys();
    stream();
    rest();
}

/// `agentd` in a pseudo-terminal; another thread notes when it wrote what.
pub(crate) struct Pty {
    child: Child,
    keys: File,
    written: Receiver<(Instant, Vec<u8>)>,
}

impl Pty {
    pub(crate) fn run(mut command: Command) -> Self {
        let size = Winsize { ws_row: 50, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).unwrap();
        let side = || Stdio::from(pty.slave.try_clone().unwrap());
        command.env("TERM", "xterm-256color").stdin(side()).stdout(side()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let mut screen = File::from(pty.master.try_clone().unwrap());
        let (sender, written) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 64 << 10];
            while let Ok(length) = screen.read(&mut bytes) {
                if length == 0 || sender.send((Instant::now(), bytes[..length].to_vec())).is_err() {
                    return;
                }
            }
        });
        Self { child, keys: File::from(pty.master), written }
    }

    /// Reads until `end` is at the end of what came, and returns all of it and when that was.
    fn until(&self, end: impl Fn(&[u8]) -> bool) -> (Instant, Vec<u8>) {
        let mut seen = Vec::new();
        loop {
            let wait = Duration::from_secs(60);
            let (at, bytes) = self.written.recv_timeout(wait).expect("the terminal is written");
            seen.extend_from_slice(&bytes);
            if end(&seen) {
                return (at, seen);
            }
        }
    }

    pub(crate) fn shows(&self, words: &str) -> Instant {
        self.until(|seen| String::from_utf8_lossy(seen).contains(words)).0
    }

    /// All that comes until nothing has come for so long.
    fn drain(&self, quiet: Duration) -> usize {
        std::iter::from_fn(|| self.written.recv_timeout(quiet).ok()).map(|(_, it)| it.len()).sum()
    }

    /// Types, and returns the time until the answer is there, and its bytes.
    fn answer(&mut self, key: &[u8], end: &[u8]) -> (Duration, usize) {
        let begun = Instant::now();
        self.keys.write_all(key).unwrap();
        let (at, seen) = self.until(|seen| seen.ends_with(end));
        (at - begun, seen.len())
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A session with so many records on disk, which ends with [`LAST`].
fn long_session(desk: &Desk, records: usize) -> SessionId {
    let session = SessionId("0123456789ab".to_owned());
    let sessions = desk.state().join("sessions");
    fs::create_dir_all(&sessions).unwrap();
    let header = SessionHeader {
        format: journal::FORMAT,
        id: session.0.clone(),
        project: desk.project().into(),
        model: "m".to_owned(),
        agentd: "0".to_owned(),
        parent: None,
        task: None,
        fleet_task: None,
    };
    let turn = |text: String| {
        let blocks = vec![ContentBlock::Text { text: text.clone() }];
        [
            JournalRecord::Prompt { text, expanded: None },
            JournalRecord::Answer { round: 1, blocks, usage: Usage::default(), cost: None },
            JournalRecord::TurnEnded { end: TurnEnd::Done },
        ]
    };
    let turns = records / 3;
    let words = |n: usize| match n == turns {
        true => LAST.to_owned(),
        false => format!("{n} {}", "word ".repeat(20)),
    };
    let mut journal = Journal::create(&sessions, header).unwrap();
    journal.append_all(&(1..=turns).flat_map(|n| turn(words(n))).collect::<Vec<_>>()).unwrap();
    session
}

/// A long session, live in a daemon.
struct Long<'a> {
    desk: &'a Desk,
    server: Server,
    session: SessionId,
    wire: Wire,
    _daemon: Daemon<'a>,
}

impl<'a> Long<'a> {
    fn of(desk: &'a Desk, events: usize) -> Self {
        let session = long_session(desk, events);
        let server = Server::answering(|_, _| Answer::text("here"));
        let daemon = desk.daemon();
        let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
        let mut wire = Wire::to(&desk.door());
        wire.open(&SessionRequest { start, ..desk.opening(&server) });
        Self { desk, server, session, wire, _daemon: daemon }
    }

    fn attach(&self, view: &str) -> Pty {
        Pty::run(self.desk.with_server(&self.server, &["attach", &self.session.0, view]))
    }

    /// The daemon's part of an attachment.
    fn short(&mut self) -> Duration {
        let begun = Instant::now();
        self.wire.say(FromClient::Attach {
            session: self.session.clone(),
            from: BacklogFrom::Newest(200),
            rights: ClientRights::ReadOnly,
            others: OtherClients::Stay,
        });
        self.wire.until("Attached", |word| matches!(word, ToClient::Attached { .. }).then_some(()));
        begun.elapsed()
    }
}

/// From the start of `agentd attach` to the newest text of a live session on its terminal.
fn first_paint(view: &str, events: usize, limit: f64) {
    let desk = Desk::new();
    let mut long = Long::of(&desk, events);
    let painted = || {
        let begun = Instant::now();
        long.attach(view).shows(LAST) - begun
    };
    let times = (0..11).map(|_| painted()).collect();
    let short = median((0..11).map(|_| long.short()).collect());
    let figure = format!("attach {view} to a session with {events} events, to its first paint");
    let baseline = format!("of it the daemon's part {:.2} ms", micros(short) / 1e3);
    row(&figure, micros(median(times)) / 1e3, "ms", limit, &baseline);
}

/// A key to its frame in a terminal that shows 10,000 events, all loaded; the terminal at rest.
fn keys() {
    let desk = Desk::new();
    let long = Long::of(&desk, 10_000);
    let mut pty = long.attach("--full-screen");
    pty.shows(LAST);
    pty.drain(Duration::from_millis(300));
    // Each loads a page of 100.
    for _ in 0..100 {
        pty.keys.write_all(b":earlier\r").unwrap();
        pty.drain(Duration::from_millis(60));
    }
    pty.drain(Duration::from_millis(500));
    // The first key also takes the hint of the last command away, and all rows move.
    for key in [b"x", b"\x7f"] {
        pty.answer(key, FRAME_END);
        pty.drain(Duration::from_millis(100));
    }
    let (mut times, mut bytes) = (Vec::new(), 0);
    for key in 0..KEYS {
        let key: &[u8] = if key.is_multiple_of(2) { b"x" } else { b"\x7f" };
        let (time, length) = pty.answer(key, FRAME_END);
        times.push(time);
        bytes = bytes.max(length);
        // The next frame may be painted at once.
        std::thread::sleep(Duration::from_millis(25));
    }
    let mut plain = Command::new("sh");
    plain.args(["-c", "stty raw -echo; echo ready; exec cat"]);
    let mut plain = Pty::run(plain);
    plain.shows("ready");
    let bare = (0..KEYS).map(|_| plain.answer(b"x", b"x").0).collect();
    let baseline = format!("`cat` in a raw terminal {:.2} ms", micros(high(bare, 99)) / 1e3);
    let took = micros(high(times, 99)) / 1e3;
    row("key to frame, 10,000 events loaded, p99", took, "ms", 8.0, &baseline);
    row("bytes written for one changed character, most", bytes as f64, "", 200.0, "none");
    let memory = |pty: &Pty| support::pss(pty.child.id()) as f64 / 1024.0;
    row("client with 10,000 events loaded (PSS)", memory(&pty), "MiB", f64::INFINITY, "none");
}

/// The duration that so many in a hundred do not exceed.
fn high(mut times: Vec<Duration>, percent: usize) -> Duration {
    times.sort();
    times[times.len() * percent / 100]
}

/// Processor time that all threads of a process had.
fn processor_time(pid: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let nanos = tasks.filter_map(|task| {
        let stat = fs::read_to_string(task.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

/// Processor time of the client for each frame, messages included, while an answer of 2 MiB streams.
fn stream() {
    let desk = Desk::new();
    let piece = |n: usize| {
        let line = format!("- **piece {n}** of an answer with `code` and words that wrap ");
        let mut block = line.repeat(PIECE / line.len());
        block.push_str(if n.is_multiple_of(16) {
            "\n\n```rust\nlet a = 1;\n```\n\n"
        } else {
            "\n"
        });
        text(&block)
    };
    let answer = Answer::says((0..PIECES).map(piece).collect::<Vec<_>>());
    // A piece is one event of the stream, with its begin and end.
    let bytes = answer.body().len() / PIECES;
    let answer = answer.in_pieces_of(bytes).paced(Duration::from_millis(5));
    let server = Server::answering(move |_, _| answer.clone());
    let _daemon = desk.daemon();
    let mut pty = Pty::run(desk.with_server(&server, &["new", "--full-screen"]));
    pty.shows("ready");
    pty.drain(Duration::from_millis(300));
    let pid = pty.child.id();
    pty.keys.write_all(b"go\r").unwrap();
    let begun = Instant::now();
    let (mut frames, mut last) = (Vec::new(), processor_time(pid));
    // The status row says so when the turn has ended.
    let mut screen = Vec::new();
    while let Ok((at, bytes)) = pty.written.recv_timeout(Duration::from_secs(2)) {
        screen.extend_from_slice(&bytes);
        if screen.ends_with(FRAME_END) {
            screen.clear();
            let now = processor_time(pid);
            frames.push((at - begun, now - last));
            last = now;
        }
    }
    let took = frames.last().unwrap().0;
    // The second half: the answer is long then.
    let late: Vec<_> = frames.iter().filter(|(at, _)| *at > took / 2).map(|it| it.1).collect();
    let early: Vec<_> = frames.iter().filter(|(at, _)| *at <= took / 2).map(|it| it.1).collect();
    let rate = frames.len() as f64 / took.as_secs_f64();
    let baseline = format!(
        "first half {:.2} ms, median of both {:.2} ms; {} frames in {:.1} s",
        micros(high(early, 95)) / 1e3,
        micros(median(frames.iter().map(|it| it.1).collect())) / 1e3,
        frames.len(),
        took.as_secs_f64()
    );
    let figure = "processor time of a frame while 2 MiB stream, 200 x 50, second half, p95";
    row(figure, micros(high(late, 95)) / 1e3, "ms", 4.0, &baseline);
    row("frames a second meanwhile", rate, "", 60.0, "none");
}

/// A terminal in which nothing changes.
fn rest() {
    let desk = Desk::new();
    let long = Long::of(&desk, 100_000);
    let pty = long.attach("--full-screen");
    pty.shows(LAST);
    pty.drain(Duration::from_secs(2));
    let pid = pty.child.id();
    let memory = support::pss(pid) as f64 / 1024.0;
    row("client of a session with 100,000 events (PSS)", memory, "MiB", 40.0, "none");
    let before = switches(pid);
    std::thread::sleep(QUIET);
    row("client at rest, wake-ups in 60 s", (switches(pid) - before) as f64, "", 0.0, "none");
    let written = pty.drain(Duration::ZERO);
    row("client at rest, bytes written in 60 s", written as f64, "", 0.0, "none");
}
