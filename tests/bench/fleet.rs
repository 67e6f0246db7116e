//! Costs of a fleet: for the START of a call, for an attach from another host, in memory, and for a batch.

use crate::fleet_load::claims_row;
use crate::host::{Host, repository, runs_its_prompt};
use crate::postgres::Postgres;
use crate::support::anthropic::{Answer, Seen, Server, call};
use crate::support::{Desk, Run, pss, run, until};
use crate::terminal::Pty;
use crate::{median, micros, row};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Sessions of each kind, one after another.
const SESSIONS: usize = 3;
/// Calls of a session.
const CALLS: usize = 50;
/// Longer than a snapshot of the workspace takes.
const THINKING: Duration = Duration::from_millis(300);
/// Attaches of each kind.
const ATTACHES: usize = 7;
/// Tasks of the batch, on three hosts of two slots.
const TASKS: usize = 200;
const HOSTS: usize = 3;
const SLOTS: usize = 2;

pub(crate) fn rows() {
    starts();
    claims_row();
    attach_and_memory();
    batch();
}

/// A model that has a command write the time into a file in each answer, after so long.
fn changes_files(thinks: Duration) -> Server {
    Server::answering(move |round, _| {
        std::thread::sleep(thinks);
        match round {
            n if n <= CALLS => {
                let input = json!({"command": "echo $EPOCHREALTIME >> made"}).to_string();
                Answer::says([call(&format!("toolu_{n}"), "bash", &input)])
            }
            _ => Answer::text("done"),
        }
    })
}

const FLAGS: [&str; 3] = ["--permission-mode=auto", "--max-turns", "100"];

/// From an answer with a call, the medians.
#[derive(Clone, Copy)]
struct Call {
    /// To its command's first act.
    begins: Duration,
    /// To the next request.
    asks: Duration,
}

/// The calls of a session with a seat or without.
fn calls_of_session(seat: Option<&Postgres>, thinks: Duration) -> Call {
    let model = changes_files(thinks);
    let made = match seat {
        Some(postgres) => {
            let host = Host::new(postgres);
            let repo = repository(&host.desk);
            host.ok(&[&["submit", "--repo", &repo, "--prompt", "x"][..], &FLAGS].concat());
            let ran = host.work(&model, &[]);
            assert_eq!(ran.code, 0, "{}", ran.err);
            let task = postgres.sql("select max(id) from agentd.task");
            host.ok(&["tasks", "diff", &task])
        }
        None => {
            let desk = Desk::new();
            // A worker's runs have a daemon too.
            let _daemon = desk.daemon();
            let clone = cloned(&repository(&desk), &desk, "clone");
            let place = ["-p", "x", "--project-dir", &clone];
            let ran = run(desk.with_server(&model, &[&place[..], &FLAGS].concat()));
            assert_eq!(ran.code, 0, "{}", ran.err);
            std::fs::read_to_string(Path::new(&clone).join("made")).unwrap()
        }
    };
    let (now, now_of_day) = (Instant::now(), SystemTime::now());
    let began = made.lines().filter_map(|line| line.trim_start_matches('+').parse::<f64>().ok());
    let began = began.map(|at| {
        let ago = now_of_day.duration_since(UNIX_EPOCH).unwrap().as_secs_f64() - at;
        now - Duration::from_secs_f64(ago)
    });
    let began: Vec<Instant> = began.collect();
    assert_eq!(began.len(), CALLS, "{made}");
    let seen = model.requests();
    assert_eq!(seen.len(), CALLS + 1);
    let from_answer =
        |seen: &Seen, to: Instant| to.saturating_duration_since(seen.answered.unwrap());
    let begins = seen.iter().zip(&began).map(|(seen, began)| from_answer(seen, *began));
    let asks = seen.windows(2).map(|pair| from_answer(&pair[0], pair[1].first_byte));
    Call { begins: median(begins.collect()), asks: median(asks.collect()) }
}

fn starts() {
    let postgres = Postgres::with_fleet(30);
    let of = |thinks| {
        let pair = |_| (calls_of_session(None, thinks), calls_of_session(Some(&postgres), thinks));
        let (local, seated): (Vec<_>, Vec<_>) = (0..SESSIONS).map(pair).unzip();
        let ms = |calls: &[Call], of: fn(&Call) -> Duration| {
            micros(median(calls.iter().map(of).collect())) / 1e3
        };
        [&local, &seated].map(|calls| [ms(calls, |it| it.begins), ms(calls, |it| it.asks)])
    };
    let [[local, local_asks], [seated, seated_asks]] = of(THINKING);
    let baseline = format!("answer to command {seated:.2} ms, without a fleet {local:.2} ms");
    let figure = "START of a call in the database: its command begins later, p50";
    row(figure, seated - local, "ms", 1.0, &baseline);
    let asks = |local: f64, seated: f64, when: &str| {
        let baseline = format!("answer to request {seated:.2} ms, without a fleet {local:.2} ms");
        let figure = format!("the next request is later, {when}, p50");
        row(&figure, seated - local, "ms", f64::INFINITY, &baseline);
    };
    asks(local_asks, seated_asks, "where the model thinks for 0.3 s");
    let [[_, local], [_, seated]] = of(Duration::ZERO);
    asks(local, seated, "where the call waits for the snapshot of the last one");
}

fn attach_and_memory() {
    let postgres = Postgres::with_fleet(30);
    let (worker_host, other) = (Host::new(&postgres), Host::new(&postgres));
    let repo = repository(&worker_host.desk);
    let model = runs_its_prompt();
    let ask = ["submit", "--repo", &repo, "--prompt", "run: echo the-words > made", "--ask"];
    other.ok(&[&ask[..], &["--permission-mode", "ask"]].concat());
    let worker = worker_host.start(&model, &[]);
    until("it asks", || other.ok(&["ls"]).contains("asking"));
    let session = other.task(1)["session"].as_str().unwrap().to_owned();
    let attached = |host: &Host, id: &str| {
        let one = || {
            let begun = Instant::now();
            let terminal = Pty::run(host.command(&["attach", id]));
            let at = terminal.shows("the-words");
            at - begun
        };
        median((0..ATTACHES).map(|_| one()).collect())
    };
    let (own, far) = (attached(&worker_host, &session), attached(&other, "1"));
    let baseline = format!("at its own host {:.1} ms", micros(own) / 1e3);
    row(
        "attach to a session of another host, to its first words",
        micros(far) / 1e3,
        "ms",
        150.0,
        &baseline,
    );
    match pss(worker.id()) {
        0 => println!("| worker (PSS) | | <= 10 MiB | run as root | none |"),
        kib => row("worker with one task (PSS)", kib as f64 / 1024.0, "MiB", 10.0, "none"),
    }
    other.ok(&["tasks", "cancel", "1"]);
    until("it is over", || other.task(1)["state"] == "cancelled");
    worker_host.end(worker);
}

/// A batch on three hosts, against the same runs of `agentd -p` in clones, beside three daemons.
fn batch() {
    let postgres = Postgres::with_fleet(30);
    let hosts: Vec<Host> = (0..HOSTS).map(|_| Host::new(&postgres)).collect();
    let repo = repository(&hosts[0].desk);
    let model = runs_its_prompt();
    let desks: Vec<Desk> = (0..HOSTS).map(|_| Desk::new()).collect();
    let plain = Instant::now();
    // A worker starts its daemon too, and ends its sessions.
    let daemons: Vec<_> = desks.iter().map(Desk::daemon).collect();
    std::thread::scope(|scope| {
        for lane in 0..HOSTS * SLOTS {
            let (repo, model, desk) = (&repo, &model, &desks[lane % HOSTS]);
            scope.spawn(move || {
                for number in (lane..TASKS).step_by(HOSTS * SLOTS) {
                    let clone = cloned(repo, desk, &format!("clone{number}"));
                    let words =
                        ["-p", "run: true", "--project-dir", &clone, "--permission-mode=auto"];
                    let ran = run(desk.with_server(model, &words));
                    assert_eq!(ran.code, 0, "{}", ran.err);
                }
            });
        }
    });
    drop(daemons);
    let plain = plain.elapsed();
    let (count, slots) = (TASKS.to_string(), SLOTS.to_string());
    let submit = ["submit", "--repo", &repo, "--prompt", "run: true", "--array", &count];
    hosts[0].ok(&[&submit[..], &["--permission-mode=auto"]].concat());
    let begun = Instant::now();
    let ran: Vec<Run> = std::thread::scope(|scope| {
        let (model, slots) = (&model, slots.as_str());
        let work = |host| scope.spawn(move || Host::work(host, model, &["--slots", slots]));
        let works: Vec<_> = hosts.iter().map(work).collect();
        works.into_iter().map(|work| work.join().unwrap()).collect()
    });
    let took = begun.elapsed();
    assert!(ran.iter().all(|ran| ran.code == 0));
    assert_eq!(postgres.sql("select count(*) from agentd.task where state = 'done'"), count);
    let baseline = format!(
        "`agentd -p` in clones, six at once at three daemons, {:.1} s; the fleet {:.1} s",
        plain.as_secs_f64(),
        took.as_secs_f64()
    );
    let figure = format!("batch of {TASKS} tasks on {HOSTS} hosts of {SLOTS} slots");
    row(&figure, took.as_secs_f64() / plain.as_secs_f64(), "x", 1.3, &baseline);
}

fn cloned(repo: &str, desk: &Desk, name: &str) -> String {
    let place = desk.outside().join(name);
    let mut git = Command::new("git");
    let done = git.args(["clone", "--quiet", repo]).arg(&place).status().unwrap();
    assert!(done.success());
    place.to_str().unwrap().to_owned()
}
