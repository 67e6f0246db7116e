//! Files that calls leave in their session's temporary directory, however deep or wide, delay
//! neither the next opening of the session nor the next start. They are removed in the end, in both
//! cages.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::wire::Supervisor;
use crate::support::{Desk, Run, needs, run, run_within, send, until};
use nix::sys::signal::Signal;
use protocol::client::{ClientEvent, SessionStart};
use protocol::ids::SessionId;
use protocol::session::{OpenTurn, TurnEnd};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const TIERS: [&str; 2] = ["A", "B"];

/// Nested folders, deeper than a path is long and than a recursive walk comes, the last without
/// rights; names that are not text; a FIFO; circular links.
const TREE: &str = r#"
import os
os.chdir(os.environ["TMPDIR"])
os.mkfifo("fifo")
os.symlink("circle", "circle")
os.mkdir(b"\xff\n\x1b[2J")
os.mkdir("many")
for number in range(2000):
    open("many/%d" % number, "w").close()
os.makedirs("d/shut")
open("d/shut/file", "w").close()
os.chmod("d/shut", 0)
# From the inside out: Landlock walks up all of a path at each step.
for level in range(15000):
    os.mkdir("n", 0o700)
    os.rename("d", "n/d")
    os.rename("n", "d")
"#;

fn bash(id: &str, command: &str) -> crate::support::anthropic::Say {
    call(id, "bash", &json!({ "command": command }).to_string())
}

/// A desk of that tier whose model has its first call leave the tree, and go on as `then` says.
fn desk(tier: &str, then: &'static str) -> (Desk, Server) {
    needs("python3");
    let desk = Desk::new();
    fs::create_dir_all(desk.home().join(".config/agentd")).unwrap();
    let config = format!("[sandbox]\ntier = \"{}\"\n", tier.to_lowercase());
    fs::write(desk.home().join(".config/agentd/config.toml"), config).unwrap();
    desk.write("tree.py", TREE);
    let server = Server::answering(move |n, _| match n {
        1 => Answer::says([bash("toolu_1", &format!("python3 tree.py && touch begun{then}"))]),
        _ => Answer::text("done"),
    });
    (desk, server)
}

/// The run that leaves the tree.
fn leave(desk: &Desk, server: &Server) -> Run {
    let arguments = ["-p", "x", "--output-format", "json", "--permission-mode", "auto"];
    run_within(desk.with_server(server, &arguments), Duration::from_secs(180))
}

/// The names in `/tmp` of a session.
fn of(session: &str) -> Vec<String> {
    let names = fs::read_dir("/tmp").unwrap().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("agentd-") && name.contains(session)).collect()
}

fn in_the_end(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// How many threads of a process remove.
fn removers(pid: u32) -> usize {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let names = tasks.map(|task| fs::read_to_string(task.path().join("comm")).unwrap_or_default());
    names.filter(|name| name.trim() == "remover").count()
}

#[test]
fn after_a_run_in_order_the_next_ones_begin_and_the_tree_is_gone_in_the_end() {
    for tier in TIERS {
        let (desk, server) = desk(tier, "");
        let ran = leave(&desk, &server);
        assert_eq!((ran.code, ran.result().as_str()), (0, "done"), "{tier}: {ran:?}");
        assert!(desk.project().join("begun").exists(), "the tree was made");
        assert_eq!(desk.ended(1)["enforced"]["tier"], tier, "{:#?}", desk.ended(1));
        let session = ran.json()["session_id"].as_str().unwrap().to_owned();
        assert!(Path::new("/tmp").join(format!("agentd-{session}/tmp/d/d")).exists());
        let again = desk.ask(&server, &["--resume", &session]);
        assert_eq!((again.code, again.result().as_str()), (0, "done"), "{tier}: {again:?}");
        let removed = run(desk.agentd(&["rm", &session]));
        assert_eq!(removed.code, 0, "{tier}: {removed:?}");
        // Each start removes the leftovers of the last one.
        let daemon = desk.daemon();
        in_the_end("nothing is left", || of(&session).is_empty());
        assert_eq!(removers(daemon.pid), 1);
    }
}

#[test]
fn after_a_killed_supervisor_the_session_goes_on_and_the_tree_is_gone_in_the_end() {
    for tier in TIERS {
        let (desk, server) = desk(tier, "; sleep 300");
        let supervisor = Supervisor::start(&desk);
        let mut terminal = supervisor.terminal();
        let session: SessionId = terminal.open(&desk, &server, SessionStart::New);
        terminal.prompt(&session, "x");
        in_the_end("the tree is made", || desk.project().join("begun").exists());
        send(supervisor.pid(), Signal::SIGKILL);
        supervisor.ended();
        let temp = Path::new("/tmp").join(format!("agentd-{session}/tmp"));
        assert!(temp.join("d/d/d").exists(), "the positive control: the tree is left behind");

        let next = Supervisor::start(&desk);
        let mut terminal = next.terminal();
        let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
        terminal.open(&desk, &server, start);
        terminal.turn_ends();
        terminal.prompt(&session, "go on");
        assert_eq!(terminal.turn_ends(), ClientEvent::TurnEnded { end: TurnEnd::Done });
        assert!(temp.join("d/d/d").exists(), "the next opening finds the files");
        assert_eq!(removers(next.pid()), 1);
        assert!(next.end().success());
        assert_eq!(of(&session.0), [format!("agentd-{session}")]);
        let removed = run(desk.agentd(&["rm", &session.0]));
        assert_eq!(removed.code, 0, "{tier}: {removed:?}");
        let _daemon = desk.daemon();
        in_the_end("nothing is left", || of(&session.0).is_empty());
    }
}

#[test]
fn while_a_tree_is_removed_the_daemon_answers() {
    let (desk, server) = desk("A", "");
    let daemon = desk.daemon();
    let ran = leave(&desk, &server);
    assert_eq!((ran.code, ran.result().as_str()), (0, "done"), "{ran:?}");
    let session = ran.json()["session_id"].as_str().unwrap().to_owned();
    let mut answered = 0;
    let mut wire = crate::support::daemon::Wire::to(&desk.door());
    let temp = Path::new("/tmp").join(format!("agentd-{session}"));
    assert!(temp.join("tmp/d/d").exists(), "the positive control: the tree is left behind");
    // A moment after its run the session is still open.
    until("it is removed", || run(desk.agentd(&["rm", &session])).code == 0);
    assert!(!temp.exists(), "its directory is put aside");
    while !of(&session).is_empty() {
        wire.say(protocol::client::FromClient::Ps);
        wire.until("the processes", |word| {
            matches!(word, protocol::client::ToClient::Processes(_)).then_some(())
        });
        answered += u32::from(!of(&session).is_empty());
    }
    assert!(answered > 0, "it answered only when all was removed");
    for command in [&["ls"][..], &["ps"]] {
        let ran = run(desk.agentd(command));
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    assert_eq!(removers(daemon.pid), 1);
}
