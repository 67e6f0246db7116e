//! Known failures of a daemon that many clients share, each by its number. More are in
//! `tests/daemon/lifetime.rs` and `tests/daemon/sessions.rs`; the table is in `tests/crash/failures.rs`.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::terminal::Tmux;
use crate::support::{Desk, processes, run, send, until};
use nix::sys::signal::Signal;
use protocol::client::{
    BacklogFrom, ClientEvent, ClientRights, FromClient, RequestFailure, ToClient,
};
use protocol::ids::SessionId;
use serde_json::json;
use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

/// An answer with one call of bash.
fn bash(id: &str, command: &str) -> Answer {
    Answer::says([call(id, "bash", &json!({ "command": command }).to_string())])
}

/// Waits for the daemon that took the place of the one with this number.
fn successor(desk: &Desk, lost: u32) -> u32 {
    let mut found = lost;
    until("another daemon", || {
        found = Wire::try_to(&desk.door()).map_or(lost, |wire| wire.pid);
        found != lost
    });
    found
}

/// A script at the daemon, whose one prompt waits for an answer of the model.
fn script(desk: &Desk, server: &Server) -> Child {
    let child = desk.with_server(server, &["-p", "x"]).spawn().unwrap();
    until("the model is asked", || server.requests().len() == 1);
    child
}

/// The machine sleeps: the daemon, its workers, and the client that pings the daemon.
#[test]
fn failure_05_sleep_and_wake_end_a_daemon_and_its_questions() {
    let desk = Desk::new();
    let slow = Answer::text("slowly").stalled_after(100, Duration::from_secs(8));
    let server = Server::answering(move |n, _| match n {
        1 => bash("toolu_1", "echo x >> effects"),
        _ => slow.clone(),
    });
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let asking = wire.open(&desk.opening(&server));
    wire.prompt(&asking, "go");
    let question = wire.question();
    let mut client = desk.with_server(&server, &["-p", "x"]).spawn().unwrap();
    until("the model is asked", || server.requests().len() == 2);
    // The client pings the daemon after two seconds without a message.
    std::thread::sleep(Duration::from_millis(2100));
    let of_ours = |it: &crate::support::Process| {
        it.pid == daemon.pid || it.parent == daemon.pid || it.pid == client.id()
    };
    let before: Vec<u32> = processes().into_iter().filter(of_ours).map(|it| it.pid).collect();
    assert!(before.len() >= 7, "a daemon, a broker, two of each session, a client: {before:?}");
    before.iter().for_each(|pid| send(*pid, Signal::SIGSTOP));
    // Longer than two intervals of pings: every pong is overdue when the processes continue.
    std::thread::sleep(Duration::from_millis(4500));
    before.iter().for_each(|pid| send(*pid, Signal::SIGCONT));
    assert!(client.wait().unwrap().success());
    assert_eq!(Wire::to(&desk.door()).pid, daemon.pid, "it was not taken for dead");
    assert_eq!(server.requests().len(), 2, "no request was repeated");
    let alive: Vec<u32> = processes().into_iter().map(|it| it.pid).collect();
    assert!(alive.contains(&wire_worker(&mut wire, &asking)), "the workers live on");
    let (call, digest) = (question.call, question.digest);
    let answer = protocol::judgement::PersonAnswer::Once;
    wire.say(FromClient::Answer { call, digest, answer });
    wire.turn_ends();
    assert_eq!(desk.read("effects"), "x\n", "the question stayed open");
}

fn wire_worker(wire: &mut Wire, session: &SessionId) -> u32 {
    wire.say(FromClient::Ps);
    wire.until("processes", |word| match word {
        ToClient::Processes(rows) => {
            let row = rows.iter().find(|row| row.session.as_ref() == Some(session)).unwrap();
            assert_eq!(row.restarts, 0, "{rows:?}");
            Some(row.pid)
        }
        _ => None,
    })
}

/// A daemon that runs for a moment in every second and a half, as on a machine short of memory.
#[test]
fn failure_13_a_busy_daemon_is_taken_for_dead_and_replaced() {
    let desk = Desk::new();
    let slow = |seconds| Answer::text("slowly").stalled_after(100, Duration::from_secs(seconds));
    let server = Server::answering(move |n, _| slow(if n == 1 { 15 } else { 1 }));
    let daemon = desk.daemon();
    let mut client = script(&desk, &server);
    let begun = Instant::now();
    // A client kills a daemon that was silent and stopped for twelve seconds: two pings, four checks.
    while begun.elapsed() < Duration::from_secs(14) {
        send(daemon.pid, Signal::SIGSTOP);
        std::thread::sleep(Duration::from_millis(1500));
        send(daemon.pid, Signal::SIGCONT);
        // Enough to answer a ping.
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(client.wait().unwrap().success());
    assert_eq!(Wire::to(&desk.door()).pid, daemon.pid, "it was not killed");
    assert_eq!(server.requests().len(), 1);

    // The positive control: a daemon that stays stopped is replaced.
    let mut client = desk.with_server(&server, &["-p", "y"]).spawn().unwrap();
    until("the model is asked again", || server.requests().len() == 2);
    send(daemon.pid, Signal::SIGSTOP);
    assert!(client.wait().unwrap().success());
    assert_ne!(Wire::to(&desk.door()).pid, daemon.pid);
}

/// The daemon is stopped until its client doubts it, and woken again.
#[test]
fn failure_13_a_daemon_that_pauses_is_taken_for_dead_and_replaced() {
    let desk = Desk::new();
    let server = Server::answering(|_, _| {
        Answer::text("slowly").stalled_after(100, Duration::from_secs(12))
    });
    let daemon = desk.daemon();
    let mut client = script(&desk, &server);
    send(daemon.pid, Signal::SIGSTOP);
    // After six seconds the client checks the daemon; after twelve it would kill it.
    std::thread::sleep(Duration::from_secs(8));
    send(daemon.pid, Signal::SIGCONT);
    assert!(client.wait().unwrap().success());
    assert_eq!(Wire::to(&desk.door()).pid, daemon.pid, "it was not killed");
    assert_eq!(server.requests().len(), 1);
}

/// A session keeps the settings that it was opened with when its files change. A half-written file
/// opens no session; the error names the file.
#[test]
fn failure_16_configuration_is_read_again_half_way() {
    let desk = Desk::new();
    fs::create_dir_all(desk.home().join(".config/agentd")).unwrap();
    let file = desk.home().join(".config/agentd/config.toml");
    let limit = |chars: u32| {
        let text = format!("[permissions]\nmode = \"auto\"\n[tools]\nmax_result_chars = {chars}\n");
        fs::write(&file, text).unwrap();
    };
    limit(2000);
    let server = Server::answering(|n, _| match n % 2 {
        1 => bash(&format!("toolu_{n}"), "head -c 9000 /dev/zero | tr '\\0' 'x'"),
        _ => Answer::text("done"),
    });
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let opening = protocol::client::SessionRequest { mode: None, ..desk.opening(&server) };
    let result_of = |wire: &mut Wire, session: &SessionId| {
        wire.prompt(session, "go");
        wire.turn_ends();
        let requests = server.requests();
        let told = requests.last().unwrap().body["messages"].as_array().unwrap().last().unwrap();
        assert!(told.to_string().contains("tool_result"), "{told}");
        told.to_string().matches('x').count()
    };
    let old = wire.open(&opening);
    let first = result_of(&mut wire, &old);
    assert!((1000..2500).contains(&first), "{first}");

    limit(8000);
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 20]).unwrap();
    let worker = wire_worker(&mut wire, &old);
    send(worker, Signal::SIGKILL);
    assert_eq!(result_of(&mut wire, &old), first, "it keeps the settings that it was opened with");
    wire.open_with_key(&opening);
    wire.until("a refusal", |word| match word {
        ToClient::Failed { kind: RequestFailure::Configuration, message } => {
            assert!(message.contains(file.to_str().unwrap()), "{message}");
            Some(())
        }
        ToClient::Opened { .. } => panic!("opened with half a file"),
        _ => None,
    });

    limit(8000);
    assert_eq!(result_of(&mut wire, &old), first);
    let new = wire.open(&opening);
    let more = result_of(&mut wire, &new);
    assert!(more > 7000, "the positive control: a new session has the new limit, {more}");
}

/// A person at a terminal and a script in the middle of a turn: neither has to start a daemon.
#[test]
fn failure_21_the_daemon_dies_and_nothing_starts_it_again() {
    let desk = Desk::new();
    let server = Server::answering(|n, _| match n {
        1 => Answer::text("Here I am."),
        2 => Answer::text("half").stalled_after(100, Duration::from_secs(30)),
        3 => Answer::text("whole"),
        _ => Answer::text("And again."),
    });
    let first = desk.daemon();
    let tmux = Tmux::new(&desk);
    let person = desk.with_server(&server, &["new", "hello"]);
    let person = tmux.run("one", &person, (90, 30));
    person.shows("Here I am.");
    let mut script = desk.with_server(&server, &["-p", "x", "--output-format", "json"]);
    let script = script.stdout(std::process::Stdio::piped()).spawn().unwrap();
    until("the model is asked", || server.requests().len() == 2);
    send(first.pid, Signal::SIGKILL);
    let second = successor(&desk, first.pid);
    let ended = script.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stdout).contains("whole"), "{ended:?}");
    person.shows("the connection is lost");
    person.listens();
    person.enters("are you there?");
    person.shows("And again.");
    assert_eq!(Wire::to(&desk.door()).pid, second, "one for both");
    assert_eq!(server.requests().len(), 4, "and nothing was asked twice");

    // Without an attached client no process starts it. The next client does.
    person.press(&["C-\\"]);
    person.shows("d detaches");
    person.press(&["d"]);
    assert_eq!(person.ends(), 3);
    send(second, Signal::SIGKILL);
    until("it is gone", || !processes().iter().any(|it| it.pid == second));
    assert_eq!(run(desk.agentd(&["daemon", "status"])).code, 15, "no daemon answers");
    let back = tmux.run("two", &desk.with_server(&server, &["attach"]), (90, 30));
    back.shows("And again.");
    assert_ne!(successor(&desk, second), first.pid);
}

/// A person stops a turn and leaves. The turn's commands end; the daemon and its other sessions
/// continue.
#[test]
fn failure_22_a_cancelled_turn_of_a_daemon_goes_on_writing() {
    let desk = Desk::new();
    let ticking = |name: &str| {
        let script = format!(
            "trap '' TERM INT\n\
             setsid sh -c 'trap \"\" TERM; while :; do echo x >> {name}; sleep 0.01; done' &\n\
             sleep 300"
        );
        bash("toolu_1", &script)
    };
    let (one, other) = (ticking("one"), ticking("other"));
    let server = Server::answering(move |n, _| match n {
        1 => one.clone(),
        2 => other.clone(),
        _ => Answer::text("never asked"),
    });
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mode = Some(protocol::judgement::PermissionMode::Auto);
    let opening = protocol::client::SessionRequest { mode, ..desk.opening(&server) };
    let stopped = wire.open(&opening);
    wire.prompt(&stopped, "go");
    let length = |name: &str| fs::metadata(desk.project().join(name)).map_or(0, |it| it.len());
    until("it writes", || length("one") > 0);
    let mut second = Wire::to(&desk.door());
    let untouched = second.open(&opening);
    second.prompt(&untouched, "go");
    until("the other writes", || length("other") > 0);

    wire.say(FromClient::Interrupt { session: stopped.clone() });
    wire.event("the turn's end", |event| {
        matches!(event, ClientEvent::TurnEnded { .. }).then_some(())
    });
    let (before, other) = (length("one"), length("other"));
    drop(wire);
    until("the other command still writes: the positive control", || length("other") > other + 20);
    assert_eq!(length("one"), before, "it writes on after its turn has ended");
    assert_eq!(server.requests().len(), 2, "the model was not asked again");

    // Nor does it when a client attaches to the session again.
    let mut again = Wire::to(&desk.door());
    again.attach(&stopped, BacklogFrom::Seq(1), ClientRights::Full);
    assert!(again.silent_for(Duration::from_millis(300)));
    assert_eq!(length("one"), before);
    assert_eq!(server.requests().len(), 2);
}
