//! Deaths around MCP servers: of the conversation, of the supervisor, of `agentd-mcp`, of the server.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::deaths::run_known;
use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::dice::Dice;
use crate::support::{Daemon, Desk, child_of, needs, processes, runs, send, until};
use nix::sys::signal::Signal;
use protocol::client::SessionStart;
use protocol::ids::SessionId;
use protocol::judgement::PermissionMode;
use protocol::session::OpenTurn;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A project with a server that may write, whose processes have this word.
fn desk(word: &str) -> Desk {
    needs("python3");
    let desk = Desk::new().with_endless_restarts();
    desk.write("server.py", include_str!("../data/mcp_server.py"));
    let file = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let lines =
        format!("[mcp.test]\ncommand = [\"python3\", \"server.py\", \"{word}\"]\nwrite = true\n");
    std::fs::write(file, lines).unwrap();
    desk
}

/// The model calls `append` with the number in each prompt, then says that it is done.
fn model() -> Server {
    Server::answering(|_, body| {
        let messages = body["messages"].as_array().unwrap();
        let last = messages.last().unwrap()["content"].to_string();
        match last.rsplit_once("append ") {
            Some((_, rest)) if !last.contains("tool_result") => {
                let line: String = rest.chars().take_while(char::is_ascii_digit).collect();
                let input = json!({"line": line, "seconds": 0.2}).to_string();
                Answer::says([call(&format!("toolu_{line}"), "mcp__test__append", &input)])
            }
            _ => Answer::text("Done."),
        }
    })
}

fn session(desk: &Desk, server: &Server, start: SessionStart) -> (Wire, SessionId) {
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(server);
    opening.mode = Some(PermissionMode::Auto);
    opening.start = start;
    let session = wire.open(&opening);
    wire.servers_ready(&session);
    (wire, session)
}

/// Each new supervisor starts the server anew, ends the call of the last one, and lets the server go to the
/// background when it is ready. None of that is progress.
#[test]
fn a_supervisor_that_dies_behind_its_server_each_time_is_given_up() {
    const STARTS: usize = 3;
    let desk = desk("given-up");
    let agentd: Arc<OnceLock<u32>> = Arc::default();
    let known = Arc::clone(&agentd);
    let server = Server::answering(move |number, _| {
        if number > STARTS + 2 {
            return Answer::text("some supervisors too many");
        }
        send(child_of(*known.wait(), "agentd-supervisor").unwrap(), Signal::SIGKILL);
        Answer::text("never heard").stalled_after(1, Duration::from_secs(20))
    });
    let ran = run_known(desk.with_server(&server, &["-p", "do it"]), &agentd);
    assert_eq!(ran.code, 15, "{ran:?}");
    assert_eq!(server.requests().len(), STARTS, "{ran:?}");
    until("the server has ended", || !runs("given-up"));
}

fn resumed(session: &SessionId) -> SessionStart {
    SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::GoesOn }
}

/// How often each line was written.
fn written(desk: &Desk) -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(desk.project().join("lines.txt")).unwrap_or_default();
    let mut lines = BTreeMap::new();
    text.lines().for_each(|line| *lines.entry(line.to_owned()).or_default() += 1);
    lines
}

/// The results of calls, by the vendor's ids.
fn results(desk: &Desk, session: &SessionId) -> Vec<(String, Value)> {
    let place = desk.state().join("sessions").join(&session.0).join("journal.jsonl");
    let text = std::fs::read_to_string(place).unwrap();
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ends = records.filter(|record| {
        ["RESULT", "INTERRUPTED"].contains(&record["kind"].as_str().unwrap_or(""))
    });
    ends.filter_map(|record| Some((record["use_id"].as_str()?.to_owned(), record.clone())))
        .collect()
}

/// The process of a server's program, as the host numbers it.
fn program(word: &str) -> Option<u32> {
    let has = |pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(word)
    };
    processes()
        .into_iter()
        .find(|it| it.name.starts_with("python3") && has(it.pid))
        .map(|it| it.pid)
}

#[test]
fn the_conversation_dies_and_its_server_goes_on_with_the_call() {
    let (desk, server) = (desk("lives-on"), model());
    let daemon = desk.daemon();
    let (mut wire, session) = session(&desk, &server, SessionStart::New);
    until("the server", || program("lives-on").is_some());
    std::thread::sleep(Duration::from_millis(500));
    wire.prompt(&session, "append 1");
    until("the call", || written(&desk).contains_key("1"));
    let before = program("lives-on");
    send(child_of(daemon.pid, "agentd-session").unwrap(), Signal::SIGKILL);
    wire.turn_ends();
    wire.prompt(&session, "append 2");
    wire.turn_ends();
    assert_eq!(program("lives-on"), before, "the same process");
    assert_eq!(written(&desk), BTreeMap::from([("1".to_owned(), 1), ("2".to_owned(), 1)]));
    let last = server.requests().last().unwrap().body["messages"].to_string();
    assert_eq!(last.matches("appended").count(), 2, "{last}");
}

#[test]
fn agentd_mcp_dies_and_the_call_may_have_run_once() {
    let (desk, server) = (desk("dies-with"), model());
    let daemon = desk.daemon();
    let (mut wire, session) = session(&desk, &server, SessionStart::New);
    until("the server", || program("dies-with").is_some());
    std::thread::sleep(Duration::from_millis(500));
    wire.prompt(&session, "append 1");
    until("the call", || written(&desk).contains_key("1"));
    send(child_of(daemon.pid, "agentd-mcp").unwrap(), Signal::SIGKILL);
    wire.turn_ends();
    let last = server.requests().last().unwrap().body["messages"].to_string();
    assert!(last.contains("may have run"), "{last}");
    assert_eq!(written(&desk), BTreeMap::from([("1".to_owned(), 1)]));
    until("another server", || program("dies-with").is_some());
}

#[test]
fn the_supervisor_dies_and_nothing_of_the_server_is_left() {
    let (desk, server) = (desk("ends-with"), model());
    let daemon = desk.daemon();
    let (wire, session) = session(&desk, &server, SessionStart::New);
    until("the server", || program("ends-with").is_some());
    std::thread::sleep(Duration::from_millis(500));
    wire.prompt(&session, "append 1");
    until("the call", || written(&desk).contains_key("1"));
    send(daemon.pid, Signal::SIGKILL);
    until("its end", || !runs("ends-with"));
    drop((wire, daemon));
    let _daemon = desk.daemon();
    let (mut wire, session) = self::session(&desk, &server, resumed(&session));
    until("another server", || program("ends-with").is_some());
    wire.prompt(&session, "what became of it?");
    wire.turn_ends();
    let last = server.requests().last().unwrap().body["messages"].to_string();
    assert!(last.contains("may have run"), "{last}");
    assert_eq!(written(&desk), BTreeMap::from([("1".to_owned(), 1)]), "nothing is repeated");
}

#[test]
fn ten_kills_around_a_server() {
    soak(10);
}

#[test]
#[ignore = "takes a quarter of an hour"]
fn by_the_thousand_around_a_server() {
    soak(1000);
}

/// Waits for a start after the shorter pauses. False if the server waits longer, or for the next conversation
/// because it ended five times without a call in between.
fn starts_soon(word: &str) -> bool {
    for _ in 0..70 {
        if program(word).is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    false
}

/// One call after another, each with a death of one process at some moment of its turn.
fn soak(kills: usize) {
    const WORD: &str = "soaked-server";
    let mut dice = Dice::seeded("SOAK_SEED");
    let (desk, server) = (desk(WORD), model());
    let mut daemon: Daemon<'_> = desk.daemon();
    let (mut wire, mut session) = session(&desk, &server, SessionStart::New);
    let mut killed: BTreeMap<&str, usize> = BTreeMap::new();
    for number in 0..kills {
        let with_server = starts_soon(WORD);
        wire.prompt(&session, &format!("append {number}"));
        std::thread::sleep(Duration::from_millis(dice.below(400) as u64));
        let victims = ["agentd-session", "agentd-supervisor", "agentd-mcp", "server"];
        let victim = victims[dice.below(if with_server { 4 } else { 2 })];
        let pid = match victim {
            "server" => program(WORD),
            "agentd-supervisor" => Some(daemon.pid),
            worker => child_of(daemon.pid, worker),
        };
        let Some(pid) = pid else { continue };
        send(pid, Signal::SIGKILL);
        *killed.entry(victim).or_default() += 1;
        if victim == "agentd-supervisor" {
            until("the end of everything", || !runs(WORD));
            drop((wire, daemon));
            daemon = desk.daemon();
            (wire, session) = self::session(&desk, &server, resumed(&session));
            wire.prompt(&session, "go on");
        }
        wire.turn_ends();
    }
    let results = results(&desk, &session);
    let (lines, mut lost, mut repeated) = (written(&desk), 0, 0);
    for number in 0..kills {
        let times = lines.get(&number.to_string()).copied().unwrap_or(0);
        repeated += usize::from(times > 1);
        let id = format!("toolu_{number}");
        let said = results.iter().filter(|(known, _)| *known == id).map(|(_, end)| end.to_string());
        let said: Vec<String> = said.collect();
        let is_done = said.iter().any(|end| end.contains("appended"));
        lost += usize::from(is_done && times == 0);
        if said.len() > 1 {
            repeated += 1;
        }
    }
    drop((wire, daemon));
    until("the end of all processes", || !runs(WORD));
    assert!(!lines.is_empty(), "no call ran: {dice}");
    println!("killed {killed:?}, calls {}, written {}", results.len(), lines.len());
    println!(
        "kills {}, lost {lost}, repeated {repeated}, left running 0",
        killed.values().sum::<usize>()
    );
    assert_eq!((lost, repeated), (0, 0), "{dice}");
}
