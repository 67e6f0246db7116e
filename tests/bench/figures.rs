//! How fast the path is: `cargo bench` prints each figure with its target, PASS or MISS, and the
//! baseline measured in the same run. Nothing here asserts; a shared machine has bad days.
//! `cargo bench --bench figures -- doors` (or `calls`, `recovery`, `provider`, `tools`, `jobs`, `scale`, `terminal`, `servers`, `fleet`, `fleet-load`, `fleet-workers`) prints those alone.
#![allow(clippy::unwrap_used)]

mod doors;
mod fleet;
mod fleet_load;
mod fleet_stand_ins;
mod fleet_workers;
#[path = "../fleet/host.rs"]
#[allow(dead_code)]
mod host;
#[path = "../fleet/host_clock.rs"]
mod host_clock;
mod jobs;
#[path = "../fleet/network.rs"]
#[allow(dead_code)]
mod network;
#[path = "../fleet/postgres.rs"]
#[allow(dead_code)]
mod postgres;
mod provider;
mod recovery;
mod scale;
mod servers;
#[path = "../support/mod.rs"]
mod support;
mod terminal;
mod tools;

use serde_json::json;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::anthropic::{Answer, Server, call};
use support::{Desk, processes, run};

fn main() {
    if std::env::args().next().is_some_and(|own| own.ends_with("/agentd")) {
        return fleet_stand_ins::session();
    }
    println!("| Figure | Value | Target | | Baseline of the same run |");
    println!("|---|---|---|---|---|");
    let wanted: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let parts: [(&str, fn()); 12] = [
        ("calls", calls),
        ("recovery", recovery::rows),
        ("doors", doors::rows),
        ("provider", provider::rows),
        ("tools", tools::rows),
        ("jobs", jobs::rows),
        ("scale", scale::rows),
        ("terminal", terminal::rows),
        ("servers", servers::rows),
        ("fleet", fleet::rows),
        ("fleet-load", fleet_load::rows),
        ("fleet-workers", fleet_workers::rows),
    ];
    for (name, rows) in parts {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            rows();
        }
    }
}

fn calls() {
    frames();
    spawning();
    let spawn = bare_spawn();
    for (tier, limit) in [("B", 5.0), ("A", 6.0)] {
        whole_call(tier, limit, spawn);
    }
    thirty_calls();
    one_shot();
    version();
}

/// One line of the table. Smaller is better.
fn row(figure: &str, value: f64, unit: &str, target: f64, baseline: &str) {
    let verdict = if value <= target { "PASS" } else { "MISS" };
    match target.is_finite() {
        true => println!(
            "| {figure} | {value:.2} {unit} | <= {target} {unit} | {verdict} | {baseline} |"
        ),
        false => println!("| {figure} | {value:.2} {unit} | none | | {baseline} |"),
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// A word there and back, against the same bytes there and back.
fn frames() {
    const ROUNDS: usize = 20_000;
    let echo = |mut socket: UnixStream| {
        let mut bytes = [0; 64];
        while let Ok(length) = socket.read(&mut bytes) {
            if length == 0 || socket.write_all(&bytes[..length]).is_err() {
                return;
            }
        }
    };
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let echoing = std::thread::spawn(move || echo(theirs));
    let mut bytes = [7; 32];
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        ours.write_all(&bytes).unwrap();
        ours.read_exact(&mut bytes).unwrap();
    }
    let raw = begun.elapsed() / ROUNDS as u32;
    drop(ours);
    echoing.join().unwrap();

    let (ours, theirs) = UnixStream::pair().unwrap();
    // One side sends and the other receives, with the protocol's own types.
    let echoing = std::thread::spawn(move || {
        let (mut rx, tx) = bench_ends(theirs);
        while let Ok(word) = rx.recv() {
            if tx.send(&word).is_err() {
                return;
            }
        }
    });
    let (mut rx, tx) = bench_ends(ours);
    let word =
        protocol::session::ToSession::Prompt { text: "0123456789abcdef".into(), expanded: None };
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        tx.send(&word).unwrap();
        rx.recv().unwrap();
    }
    let framed = begun.elapsed() / ROUNDS as u32;
    drop((rx, tx));
    let _ = echoing.join();
    let baseline = format!("raw socket pair {:.1} us", micros(raw));
    row("frame round trip", micros(framed) / micros(raw), "x", 5.0, &baseline);
}

/// A wire on which both sides say the same words, so that one can echo the other.
enum Echo {}

impl protocol::Link for Echo {
    type To = protocol::session::ToSession;
    type From = protocol::session::ToSession;
    const NAME: &'static str = "echo";
    const MESSAGE_CAP: usize = 1 << 20;
}

type EchoEnds = ipc::Ends<protocol::session::ToSession, protocol::session::ToSession>;

fn bench_ends(socket: UnixStream) -> EchoEnds {
    ipc::connect::<Echo>(socket).unwrap()
}

/// Starting a worker as the supervisor does, from a small process and from one with 1 GiB.
fn spawning() {
    let several = || (0..300).map(|_| spawn_as_supervisor()).skip(50).collect();
    let small = median(several());
    let mut ballast = vec![0_u8; 1 << 30];
    ballast.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    let large = median(several());
    assert_eq!(ballast.iter().step_by(1 << 20).map(|&byte| usize::from(byte)).sum::<usize>(), 1024);
    let baseline = format!("small parent {:.0} us", micros(small));
    row("spawn with a 1 GiB parent", micros(large) / micros(small), "x", 1.5, &baseline);
}

fn spawn_as_supervisor() -> Duration {
    let begun = Instant::now();
    let (_ours, theirs) = UnixStream::pair().unwrap();
    let mut child = Command::new("/bin/true")
        .env_clear()
        .process_group(0)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let took = begun.elapsed();
    child.wait().unwrap();
    took
}

/// `sh -c true` as a plain child: the cost of a call of `bash true` without an agent.
fn bare_spawn() -> Duration {
    let once = || {
        let begun = Instant::now();
        let ran = Command::new("sh").args(["-c", "true"]).stdin(Stdio::null()).output().unwrap();
        assert!(ran.status.success());
        begun.elapsed()
    };
    median((0..200).map(|_| once()).collect())
}

/// Rounds of one turn, less than the 25 that end it.
const ROUNDS: usize = 22;
/// Sessions whose rounds are taken together.
const SESSIONS: usize = 5;

/// How long the model of these figures thinks before it answers.
#[derive(Clone, Copy)]
enum Thinks {
    /// Long enough that the runner in reserve rests.
    UntilItRests,
    /// Not at all: the runner in reserve is still building its cage.
    NotAtAll,
    /// Not at all, and there is no reserve.
    WithoutReserve,
}

/// Some times as long as a cage needs.
const THINKING: Duration = Duration::from_millis(40);

/// Times from the end of an answer to the first byte of the next request, with this call in each
/// answer.
fn answer_to_request(
    tier: &str,
    (tool, input): (&'static str, &str),
    thinks: Thinks,
) -> Vec<Duration> {
    let desk = Desk::new();
    if let Thinks::WithoutReserve = thinks {
        let config = desk.home().join(".config/agentd");
        std::fs::create_dir_all(&config).unwrap();
        std::fs::write(config.join("config.toml"), "[daemon]\nidle_reserve = \"0s\"\n").unwrap();
    }
    let input = input.to_owned();
    let server = Server::answering(move |round, _| {
        if let Thinks::UntilItRests = thinks {
            std::thread::sleep(THINKING);
        }
        match round {
            n if n <= ROUNDS => Answer::says([call(&format!("toolu_{n}"), tool, &input)]),
            _ => Answer::text("done"),
        }
    });
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    command.env("AGENTD_SANDBOX_TIER", tier);
    let ran = run(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let seen = server.requests();
    seen.windows(2)
        .map(|pair| pair[1].first_byte.saturating_duration_since(pair[0].answered.unwrap()))
        .collect()
}

fn whole_call(tier: &str, limit: f64, spawn: Duration) {
    let in_sessions = |call: (&'static str, &str), thinks: Thinks| {
        median((0..SESSIONS).flat_map(|_| answer_to_request(tier, call, thinks)).collect())
    };
    let bash = ("bash", r#"{"command":"true"}"#);
    let with_call = in_sessions(bash, Thinks::UntilItRests);
    let without = in_sessions(("no_such_tool", "{}"), Thinks::UntilItRests);
    let call = with_call.saturating_sub(without);
    let baseline = format!("plain `sh -c true` {:.2} ms", micros(spawn) / 1e3);
    let figure = format!("whole call of `bash true`, tier {tier}");
    row(&figure, micros(call) / micros(spawn), "x", limit, &baseline);
    let baseline = format!("of it without the call {:.2} ms", micros(without) / 1e3);
    for (figure, took, limit) in [
        ("reserve ready", with_call, 3.0),
        ("reserve not ready", in_sessions(bash, Thinks::NotAtAll), f64::INFINITY),
        ("without a reserve", in_sessions(bash, Thinks::WithoutReserve), 4.5),
    ] {
        let figure = format!("answer with one bash call to next request, tier {tier}, {figure}");
        row(&figure, micros(took) / 1e3, "ms", limit, &baseline);
    }
}

/// Processor time of all processes of a one-shot with thirty bash calls, one in each answer.
fn thirty_calls() {
    const CALLS: usize = 30;
    let run_of = |calls: usize| {
        let desk = Desk::new();
        let server = Server::answering(move |round, _| match round {
            n if n <= calls => {
                let input = json!({"command": "true"}).to_string();
                Answer::says([call(&format!("toolu_{n}"), "bash", &input)])
            }
            _ => Answer::text("done"),
        });
        let arguments = ["-p", "x", "--permission-mode", "auto", "--max-turns", "100"];
        let before = provider::of_children();
        let ran = run(desk.with_server(&server, &arguments));
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert_eq!(server.requests().len(), calls + 1);
        provider::of_children() - before
    };
    let of = |calls: usize| median((0..5).map(|_| run_of(calls)).collect());
    let baseline = format!("a run without a call {:.0} ms", micros(of(0)) / 1e3);
    let figure = "processor time of a run of 30 bash calls, all processes";
    row(figure, micros(of(CALLS)) / 1e3, "ms", 240.0, &baseline);
}

/// A one-shot with one bash call: wall time from nothing, and the memory of all its processes.
fn one_shot() {
    let memory = Arc::new(Mutex::new(0_u64));
    let mut times = Vec::new();
    for _ in 0..11 {
        let desk = Desk::new();
        let (own, largest) = (std::process::id(), Arc::clone(&memory));
        let server = Server::answering(move |round, _| match round {
            1 => {
                let input = json!({"command": "true"}).to_string();
                Answer::says([call("toolu_1", "bash", &input)])
            }
            _ => {
                let mut largest = largest.lock().unwrap();
                *largest = (*largest).max(resident_of_agentd(own));
                Answer::text("done")
            }
        });
        let arguments = ["-p", "x", "--permission-mode", "auto"];
        let ran = run(desk.with_server(&server, &arguments));
        assert_eq!(ran.code, 0, "{}", ran.err);
        times.push(ran.took);
    }
    let plain = format!("plain `sh -c true` {:.2} ms", micros(bare_spawn()) / 1e3);
    row("one-shot with one bash call, wall", micros(median(times)) / 1e3, "ms", 30.0, &plain);
    // Only root may read how much memory the workers use.
    if support::is_root() {
        let mebibytes = *memory.lock().unwrap() as f64 / 1024.0;
        row("one-shot, memory of all processes (PSS)", mebibytes, "MiB", 60.0, "none");
    } else {
        println!("| one-shot, memory of all processes (PSS) | | <= 60 MiB | run as root | none |");
    }
}

/// PSS in KiB of agentd's processes in the session that this process started.
fn resident_of_agentd(own: u32) -> u64 {
    let all = processes();
    let sessions: Vec<_> =
        all.iter().filter(|process| process.parent == own).map(|process| process.session).collect();
    all.iter()
        .filter(|process| sessions.contains(&process.session) && process.pid != own)
        .filter(|process| process.name.starts_with("agentd"))
        .map(|process| support::pss(process.pid))
        .sum()
}

fn version() {
    let once = || {
        let begun = Instant::now();
        let ran = Command::new(env!("CARGO_BIN_EXE_agentd")).arg("--version").output().unwrap();
        assert!(ran.status.success());
        begun.elapsed()
    };
    let times = (0..50).map(|_| once()).collect();
    let plain = {
        let once = || {
            let begun = Instant::now();
            assert!(Command::new("/bin/true").output().unwrap().status.success());
            begun.elapsed()
        };
        median((0..50).map(|_| once()).collect())
    };
    let baseline = format!("/bin/true {:.2} ms", micros(plain) / 1e3);
    row("agentd --version", micros(median(times)) / 1e3, "ms", 5.0, &baseline);
}
