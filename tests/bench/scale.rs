//! A daemon with many sessions: memory, wake-ups, descriptors, and the times to list, to attach, to open one
//! more and to run a call.

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{self, Desk, processes, run, switches, until};
use crate::{median, micros, row};
use protocol::client::{BacklogFrom, ClientRights, SessionRequest};
use protocol::ids::SessionId;
use protocol::judgement::PermissionMode;
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};

/// Idle sessions at which the times are taken.
const IDLE: [usize; 3] = [10, 100, 1000];
const BUSY: usize = 50;
/// For how long wake-ups are counted.
const QUIET: Duration = Duration::from_secs(60);

pub(crate) fn rows() {
    if !support::is_root() {
        println!("| 1,000 idle sessions (PSS) | | <= 1228.8 MiB | run as root | none |");
        return;
    }
    let desk = Desk::new();
    let config = desk.home().join(".config/agentd");
    fs::create_dir_all(&config).unwrap();
    let text = "[daemon]\nidle_provider = \"100ms\"\nidle_reserve = \"100ms\"\n";
    fs::write(config.join("config.toml"), text).unwrap();
    // A prompt that begins so has one call; another one is answered at once.
    let server = Server::answering(|_, body| {
        let last = body["messages"].as_array().and_then(|messages| messages.last());
        match last.is_some_and(|last| last.to_string().contains("run it")) {
            true => {
                Answer::says([call("toolu_1", "bash", &json!({"command": "true"}).to_string())])
            }
            false => Answer::text("here"),
        }
    });
    let daemon = desk.daemon();
    let opening = SessionRequest { mode: Some(PermissionMode::Auto), ..desk.opening(&server) };
    let mut open = Vec::new();
    let mut first = String::new();
    for idle in IDLE {
        let mut last = Vec::new();
        while open.len() < idle {
            let begun = Instant::now();
            open.push(one_more(&desk, &opening));
            last.push(begun.elapsed());
        }
        last.drain(..last.len().saturating_sub(9));
        at_rest(daemon.pid);
        let baseline = if first.is_empty() { "none".to_owned() } else { first.clone() };
        let opened = micros(median(last)) / 1e3;
        row(&format!("{idle} sessions, to open one more"), opened, "ms", f64::INFINITY, &baseline);
        let listed = || {
            let ran = run(desk.agentd(&["ls"]));
            assert_eq!(ran.code, 0, "{}", ran.err);
            ran.took
        };
        let listed = micros(median((0..5).map(|_| listed()).collect())) / 1e3;
        row(&format!("{idle} sessions, to list"), listed, "ms", f64::INFINITY, &baseline);
        let attached = micros(median((0..9).map(|_| attach(&desk, &open[0])).collect())) / 1e3;
        row(&format!("{idle} sessions, to attach"), attached, "ms", f64::INFINITY, &baseline);
        if first.is_empty() {
            first = format!(
                "with {idle}: open {opened:.1} ms, list {listed:.1} ms, attach {attached:.1} ms"
            );
        }
    }
    at_rest(daemon.pid);
    let own = own(daemon.pid);
    let memory = own.iter().map(|pid| support::pss(*pid)).sum::<u64>() as f64 / 1024.0;
    let descriptors = fs::read_dir(format!("/proc/{}/fd", daemon.pid)).unwrap().count();
    let threads: usize = own
        .iter()
        .map(|pid| fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count))
        .sum();
    let baseline = format!(
        "{} processes, {threads} threads; the supervisor has {descriptors} descriptors",
        own.len()
    );
    row("1,000 idle sessions (PSS)", memory, "MiB", 1228.8, &baseline);
    let count = || own.iter().map(|pid| switches(*pid)).sum::<u64>();
    // Threads for blocking work end after ten seconds without any.
    std::thread::sleep(Duration::from_secs(11));
    let before = count();
    std::thread::sleep(QUIET);
    row("1,000 idle sessions, wake-ups in 60 s", (count() - before) as f64, "", 0.0, "none");
    let alone = median((0..5).map(|_| turn(&desk, &open[0])).collect());
    let busy = beside_busy(&desk, &open);
    let baseline = format!("with none at work {:.1} ms", micros(alone) / 1e3);
    let figure = format!("a turn with one bash call while {BUSY} sessions work");
    row(&figure, micros(busy) / 1e3, "ms", f64::INFINITY, &baseline);
}

/// A new session that has had one turn, without a client.
fn one_more(desk: &Desk, opening: &SessionRequest) -> SessionId {
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(opening);
    wire.prompt(&session, "hello");
    wire.turn_ends();
    session
}

fn attach(desk: &Desk, session: &SessionId) -> Duration {
    let mut wire = Wire::to(&desk.door());
    let begun = Instant::now();
    wire.attach(session, BacklogFrom::Newest(200), ClientRights::ReadOnly);
    begun.elapsed()
}

fn turn(desk: &Desk, session: &SessionId) -> Duration {
    let mut wire = Wire::to(&desk.door());
    wire.attach(session, BacklogFrom::Seq(u64::MAX), ClientRights::Full);
    let begun = Instant::now();
    wire.prompt(session, "run it");
    wire.turn_ends();
    begun.elapsed()
}

/// A turn in one session while the others have one after the other.
fn beside_busy(desk: &Desk, open: &[SessionId]) -> Duration {
    let until = Instant::now() + Duration::from_secs(10);
    std::thread::scope(|scope| {
        for session in &open[1..=BUSY] {
            scope.spawn(move || {
                while Instant::now() < until {
                    turn(desk, session);
                }
            });
        }
        std::thread::sleep(Duration::from_secs(2));
        median((0..5).map(|_| turn(desk, &open[0])).collect())
    })
}

/// The daemon and its workers.
fn own(daemon: u32) -> Vec<u32> {
    let all = processes().into_iter();
    all.filter(|it| it.pid == daemon || it.parent == daemon).map(|it| it.pid).collect()
}

fn at_rest(daemon: u32) {
    let rests = ["agentd-provide", "agentd-reserve", "agentd-tool"];
    until("providers and reserves have ended", || {
        let all = processes().into_iter().filter(|it| it.parent == daemon);
        !all.into_iter().any(|it| rests.iter().any(|name| it.name.starts_with(name)))
    });
}
