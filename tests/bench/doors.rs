//! Costs of an idle daemon, and of many terminals on one session.

use crate::support::anthropic::{Answer, Server, text};
use crate::support::daemon::Wire;
use crate::support::{self, Desk, processes, until};
use crate::{median, micros, row};
use protocol::client::{BacklogFrom, ClientEvent, ClientRights, ToClient};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) fn rows() {
    memory();
    fifty_clients();
}

/// Sessions beside the first whose memory is taken together.
const MORE: usize = 20;

/// The daemon and its workers, with providers at rest.
fn memory() {
    if !support::is_root() {
        println!("| daemon with one idle session (PSS) | | <= 10 MiB | run as root | none |");
        println!("| each further idle session (PSS) | | <= 1 MiB | run as root | none |");
        return;
    }
    let desk = Desk::new();
    fs::create_dir_all(desk.home().join(".config/agentd")).unwrap();
    let config = "[daemon]\nidle_provider = \"100ms\"\nidle_reserve = \"100ms\"\n";
    fs::write(desk.home().join(".config/agentd/config.toml"), config).unwrap();
    let server = Server::answering(|_, _| Answer::text("here"));
    let daemon = desk.daemon();
    let opening = desk.opening(&server);
    let one_more = || {
        let mut wire = Wire::to(&desk.door());
        let session = wire.open(&opening);
        wire.prompt(&session, "hello");
        wire.turn_ends();
    };
    let own = || {
        let all = processes();
        all.into_iter().filter(|it| it.pid == daemon.pid || it.parent == daemon.pid)
    };
    let at_rest = || {
        let ended = ["agentd-provide", "agentd-reserve", "agentd-tool"];
        until("providers and reserves have ended", || {
            !own().any(|it| ended.iter().any(|name| it.name.starts_with(name)))
        });
        own().map(|it| support::pss(it.pid)).sum::<u64>() as f64 / 1024.0
    };
    one_more();
    let one = at_rest();
    (0..MORE).for_each(|_| one_more());
    let many = at_rest();
    row("daemon with one idle session (PSS)", one, "MiB", 10.0, "none");
    let each = (many - one) / MORE as f64;
    row("each further idle session (PSS)", each, "MiB", 1.0, "none");
}

/// Pieces of one streamed answer.
const PIECES: usize = 3000;

/// A streamed turn with this many terminals on it: its time, the daemon's processor time, and the
/// events that each terminal was sent.
fn turn_with(clients: usize) -> (Duration, Duration, Vec<Vec<u8>>) {
    let desk = Desk::new();
    let pieces = (0..PIECES).map(|n| text(&format!("piece {n} of an answer that is streamed ")));
    let pieces: Vec<_> = pieces.collect();
    let server = Server::answering(move |_, _| Answer::says(pieces.clone()).in_pieces_of(4096));
    let daemon = desk.daemon();
    let mut first = Wire::to(&desk.door());
    let session = first.open(&desk.opening(&server));
    let others: Vec<_> = (1..clients)
        .map(|_| {
            let mut wire = Wire::to(&desk.door());
            wire.attach(&session, BacklogFrom::Seq(1), ClientRights::ReadOnly);
            std::thread::spawn(move || wire.turn_ends())
        })
        .collect();
    let (begun, before) = (Instant::now(), processor_time(daemon.pid));
    first.prompt(&session, "go");
    let mut frames = Vec::new();
    first.until("the turn's end", |word| {
        frames.push(ipc::frames(
            protocol::ids::Generation(0),
            0,
            &ipc::codec::encode(word).unwrap(),
        ));
        matches!(word, ToClient::Event { event: ClientEvent::TurnEnded { .. }, .. }).then_some(())
    });
    others.into_iter().for_each(|other| other.join().unwrap());
    (begun.elapsed(), processor_time(daemon.pid) - before, frames)
}

/// Processor time that the threads of a process had.
fn processor_time(pid: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    tasks.map(|task| ran(&task.path())).sum()
}

/// Processor time of one thread, to the last tick of the scheduler.
fn ran(task: &Path) -> Duration {
    let stat = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    let nanos = stat.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// The cost of writing these frames to so many sockets that are read.
fn bare_writes(frames: &[Vec<u8>], clients: usize) -> Duration {
    let (mut writers, mut readers) = (Vec::new(), Vec::new());
    for _ in 0..clients {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        writers.push(ours);
        readers.push(std::thread::spawn(move || {
            let mut bytes = vec![0; 64 << 10];
            while theirs.read(&mut bytes).is_ok_and(|length| length > 0) {}
        }));
    }
    let own = || ran("/proc/thread-self".as_ref());
    let before = own();
    for frame in frames {
        writers.iter_mut().for_each(|writer| writer.write_all(frame).unwrap());
    }
    let took = own() - before;
    drop(writers);
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    took
}

fn fifty_clients() {
    const CLIENTS: usize = 50;
    let runs = |clients: usize| (0..5).map(|_| turn_with(clients)).collect::<Vec<_>>();
    let (one, fifty) = (runs(1), runs(CLIENTS));
    let time = |runs: &[(Duration, Duration, Vec<Vec<u8>>)]| {
        (median(runs.iter().map(|it| it.0).collect()), median(runs.iter().map(|it| it.1).collect()))
    };
    let ((alone, alone_cpu), (together, together_cpu)) = (time(&one), time(&fifty));
    let frames = &fifty[0].2;
    let bare = median((0..5).map(|_| bare_writes(frames, CLIENTS)).collect());
    let more = together_cpu.saturating_sub(alone_cpu);
    let baseline = format!(
        "{} frames written to {CLIENTS} sockets {:.1} ms; a turn with one client {:.1} ms",
        frames.len(),
        micros(bare) / 1e3,
        micros(alone_cpu) / 1e3
    );
    let ratio = micros(more) / micros(bare);
    row("processor time that 50 clients add to a turn", ratio, "x", 3.0, &baseline);
    let baseline = format!("with one client {:.1} ms", micros(alone) / 1e3);
    let slower = micros(together) / micros(alone);
    row("a turn that 50 clients read, to the last one's end", slower, "x", 3.0, &baseline);
}
