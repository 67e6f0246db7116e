//! A supervisor finds state that it did not leave so: broken sessions, deserted sockets, process
//! IDs that belong to other processes. Each gets its own message, and none affects the other
//! sessions.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::wire::Supervisor;
use crate::support::{Desk, child_of, run, send, until};
use nix::sys::signal::Signal;
use protocol::client::{ClientEvent, SessionStart};
use protocol::ids::SessionId;
use protocol::session::{OpenTurn, TurnEnd};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

fn done() -> ClientEvent {
    ClientEvent::TurnEnded { end: TurnEnd::Done }
}

fn resume(session: &SessionId) -> SessionStart {
    SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits }
}

#[test]
fn failure_06_one_corrupt_record_stops_the_recovery_of_all_sessions() {
    let desk = Desk::new();
    let server = Server::answering(|_, _| Answer::text("here"));
    let long = "long ".repeat(200_000);
    let session = |prompt: &str| {
        let ran = run(desk.with_server(&server, &["-p", prompt, "--output-format", "json"]));
        assert_eq!(ran.code, 0, "{ran:?}");
        SessionId(ran.json()["session_id"].as_str().unwrap().to_owned())
    };
    let ids: [SessionId; 4] = std::array::from_fn(|_| session("x"));
    let [well, damaged, blocked, gone] = &ids;
    let newer = &SessionId("0123456789ab".to_owned());
    let header = journal::SessionHeader {
        format: journal::FORMAT + 1,
        id: newer.0.clone(),
        project: desk.project().into(),
        model: "m".to_owned(),
        agentd: "9.8.7".to_owned(),
        parent: None,
        task: None,
        fleet_task: None,
    };
    drop(journal::Journal::create(&desk.state().join("sessions"), header).unwrap());
    let prompt = desk.write("long", &long);
    let mut command = desk.with_server(&server, &["-p", "", "--output-format", "json"]);
    command.stdin(fs::File::open(prompt).unwrap());
    let ran = run(command);
    let blobless = &SessionId(ran.json()["session_id"].as_str().unwrap().to_owned());

    let directory = |id: &SessionId| desk.state().join("sessions").join(&id.0);
    let journal = |id: &SessionId| directory(id).join("journal.jsonl");
    let change = |id: &SessionId, from: &str, to: &str| {
        let text = fs::read_to_string(journal(id)).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(journal(id), text.replacen(from, to, 1)).unwrap();
    };
    change(damaged, "here", "hear");
    fs::remove_file(journal(blocked)).unwrap();
    fs::create_dir(journal(blocked)).unwrap();
    fs::remove_file(journal(gone)).unwrap();
    let blobs = fs::read_dir(directory(blobless).join("blobs")).unwrap().flatten();
    assert!(blobs.map(|blob| fs::remove_file(blob.path()).unwrap()).count() > 0);

    let told = run(desk.with_server(&server, &["-p", "on", "--resume", &damaged.0]));
    assert!(told.err.contains("fork") && !told.err.contains("bug in agentd"), "{told:?}");
    let supervisor = Supervisor::start(&desk);
    for (id, words) in [
        (damaged, &["journal.jsonl", "checksum", "fork"][..]),
        (newer, &["9.8.7"]),
        (blocked, &["journal.jsonl"]),
        (gone, &[&gone.0]),
        (blobless, &["blob"]),
    ] {
        let mut terminal = supervisor.terminal();
        let why = terminal.try_open(&desk, &server, resume(id)).unwrap_err();
        for word in words {
            assert!(why.contains(word), "{word:?} is not in {why:?}");
        }
    }
    let mut terminal = supervisor.terminal();
    terminal.open(&desk, &server, resume(well));
    terminal.turn_ends();
    terminal.prompt(well, "still there?");
    assert_eq!(terminal.turn_ends(), done());
}

/// A crash while a session is created leaves an empty directory. No list shows it, and no command
/// reports it.
#[test]
fn a_session_whose_making_was_cut_short_is_not_there() {
    let desk = Desk::new();
    let server = Server::answering(|_, _| Answer::text("here"));
    let ran = desk.ask(&server, &[]);
    let id = ran.json()["session_id"].as_str().unwrap().to_owned();
    let sessions = desk.state().join("sessions");
    fs::create_dir(sessions.join("aaaaaaaaaaaa")).unwrap();
    fs::create_dir(sessions.join("bbbbbbbbbbbb")).unwrap();
    fs::write(sessions.join("bbbbbbbbbbbb/journal.jsonl"), r#"{"seq":1,"ti"#).unwrap();
    // The positive control: a session that lost its journal.
    fs::create_dir_all(sessions.join("cccccccccccc/blobs")).unwrap();
    let names = |listed: &crate::support::Run| {
        let lines = listed.out.lines().map(|line| serde_json::from_str(line).unwrap());
        let mut names: Vec<_> = lines
            .map(|row: serde_json::Value| row["session_id"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    let mut expected = vec![id.clone(), "cccccccccccc".to_owned()];
    expected.sort();
    let listed = run(desk.agentd(&["ls", "--json"]));
    assert_eq!(names(&listed), expected, "{listed:?}");
    let _daemon = desk.daemon();
    let listed = run(desk.agentd(&["ls", "--json"]));
    assert_eq!(names(&listed), expected, "by the daemon: {listed:?}");
    let ran = desk.ask(&server, &["-c"]);
    assert_eq!(ran.json()["session_id"], id.as_str(), "the newest session with a record: {ran:?}");
    let verified = run(desk.agentd(&["audit", "verify"]));
    assert!(!format!("{verified:?}").contains("aaaaaaaaaaaa"), "{verified:?}");
    assert!(!format!("{verified:?}").contains("bbbbbbbbbbbb"), "{verified:?}");
}

/// A supervisor that dies after the end of a call is in the audit log and before its result is in
/// the journal. Its successor dies at the same place.
#[test]
fn a_call_that_ended_in_one_log_only_ends_once_in_each() {
    let desk = Desk::new();
    let server = Server::answering(|n, _| match n {
        1 => Answer::says([call("toolu_1", "bash", r#"{"command":"echo x >> effects"}"#)]),
        _ => Answer::text("done"),
    });
    let ran = desk.ask(&server, &["--permission-mode", "auto"]);
    let id = ran.json()["session_id"].as_str().unwrap().to_owned();
    let journal = desk.state().join("sessions").join(&id).join("journal.jsonl");
    let cut_before = |kind: &str| {
        let text = fs::read_to_string(&journal).unwrap();
        let mark = format!(r#""kind":"{kind}""#);
        let end = text.find(&mark).unwrap_or_else(|| panic!("no {kind} in {text}"));
        let end = text[..end].rfind('\n').unwrap() + 1;
        fs::write(&journal, &text[..end]).unwrap();
    };
    for lost in ["RESULT", "INTERRUPTED"] {
        cut_before(lost);
        let ran = desk.ask(&server, &["--resume", &id]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let audit = desk.audit();
        let ends = audit.iter().filter(|record| record["event"] == "ended" && record["call"] == 1);
        assert_eq!(ends.count(), 1, "{audit:#?}");
        let verified = run(desk.agentd(&["audit", "verify"]));
        assert_eq!(verified.code, 0, "{verified:?}");
        let kept = fs::read_to_string(&journal).unwrap();
        assert_eq!(kept.matches(r#""kind":"INTERRUPTED""#).count(), 1, "{kept}");
    }
    assert_eq!(desk.read("effects"), "x\n");
}

/// The process ID of a former runner belongs to another process, in a session whose lock is held.
/// The other process is left alone, and the message names a way on.
#[test]
fn a_process_number_that_belongs_to_somebody_else_is_left_alone() {
    let desk = Desk::new();
    let server = Server::answering(|_, _| Answer::text("here"));
    let ran = desk.ask(&server, &[]);
    let id = SessionId(ran.json()["session_id"].as_str().unwrap().to_owned());
    let directory = desk.state().join("sessions").join(&id.0);
    let mut somebody = Command::new("sleep").arg("60").spawn().unwrap();
    fs::write(directory.join("runners"), format!("{} 1\n1 1\nx\n", somebody.id())).unwrap();
    let held = fs::File::create(directory.join("held")).unwrap();
    held.lock().unwrap();
    let supervisor = Supervisor::start(&desk);
    let mut terminal = supervisor.terminal();
    let why = terminal.try_open(&desk, &server, resume(&id)).unwrap_err();
    assert!(why.contains("has not ended yet") && why.contains("try again"), "{why}");
    assert_eq!(somebody.try_wait().unwrap(), None, "it was none of ours");
    drop(held);
    terminal.open(&desk, &server, resume(&id));
    somebody.kill().unwrap();
    somebody.wait().unwrap();
}

/// The runner ends by one signal only, and is found by its entry in the list of runners.
#[test]
fn a_runner_of_a_dead_supervisor_is_ended_before_its_session_goes_on() {
    let desk = Desk::new();
    let server = Server::answering(|n, _| match n {
        1 => {
            let command = "while :; do echo x >> ticks; sleep 0.01; done";
            Answer::says([call("toolu_1", "bash", &json!({ "command": command }).to_string())])
        }
        _ => Answer::text("on"),
    });
    let first = Supervisor::start(&desk);
    let mut terminal = first.terminal();
    let session = terminal.open(&desk, &server, SessionStart::New);
    terminal.prompt(&session, "x");
    until("the command runs", || desk.project().join("ticks").exists());
    let runner = child_of(first.pid(), "agentd-tool").unwrap();
    send(runner, Signal::SIGSTOP);
    send(first.pid(), Signal::SIGKILL);
    let alive = || {
        fs::read_to_string(format!("/proc/{runner}/stat")).is_ok_and(|stat| {
            stat.rsplit_once(')')
                .is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
        })
    };
    let second = Supervisor::start(&desk);
    let mut terminal = second.terminal();
    terminal.open(&desk, &server, resume(&session));
    assert!(!alive(), "the session continued before its orphan had ended");
    let ticks = desk.read("ticks").len();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(desk.read("ticks").len(), ticks);
    terminal.prompt(&session, "go on");
    while terminal.turn_ends() != done() {}
}

#[test]
fn a_deserted_socket_and_other_things_at_the_door_are_in_nobody_s_way() {
    let desk = Desk::new();
    let doors = desk.run_dir().join("agentd");
    fs::create_dir(&doors).unwrap();
    fs::set_permissions(&doors, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["run-1", "run-2"] {
        fs::create_dir(doors.join(name)).unwrap();
    }
    drop(std::os::unix::net::UnixListener::bind(doors.join("run-1/socket")).unwrap());
    fs::write(doors.join("run-2/socket"), "no socket").unwrap();
    fs::write(doors.join("run-3"), "no directory").unwrap();
    let server = Server::answering(|_, _| Answer::text("here"));
    let ran = desk.ask(&server, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!doors.join("run-1").exists(), "a deserted door is removed");
    assert!(doors.join("run-3").exists(), "a directory without a socket is left alone");
    let listed = run(desk.agentd(&["ps"]));
    assert_eq!(listed.code, 0, "{listed:?}");
}

/// As a user whom file modes stop; they do not stop root.
#[test]
fn a_session_without_permission_is_named_and_the_others_go_on() {
    let desk = Desk::new();
    let server = Server::answering(|_, _| Answer::text("here"));
    let ids: [String; 2] = std::array::from_fn(|_| {
        desk.ask(&server, &[]).json()["session_id"].as_str().unwrap().to_owned()
    });
    let shut = desk.state().join("sessions").join(&ids[0]);
    let mode = |mode| fs::set_permissions(&shut, fs::Permissions::from_mode(mode)).unwrap();
    let resumed = |id: &str| {
        let mut command = desk.with_server(&server, &["-p", "x", "--resume", id]);
        if crate::support::is_root() {
            crate::support::needs("setpriv");
            // Without the right to pass over modes, root is a user as any other.
            let like = command;
            command = Command::new("setpriv");
            command.args(["--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]);
            command.arg(like.get_program()).args(like.get_args());
            command.env_clear().current_dir(desk.project()).stdin(Stdio::null());
            command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        }
        run(command)
    };
    mode(0o000);
    let refused = resumed(&ids[0]);
    let other = resumed(&ids[1]);
    mode(0o700);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(refused.err.contains(&ids[0]) && refused.err.contains("chmod"), "{refused:?}");
    assert_eq!(other.code, 0, "{other:?}");
    assert_eq!(resumed(&ids[0]).code, 0, "the positive control");
}

/// A foreign project may have such a file. Commands for sessions do not read it.
#[test]
fn a_faulty_project_file_keeps_no_session_from_being_seen_and_ended() {
    for fault in ["[permisions]\n", "\u{0}", "fifo"] {
        let desk = Desk::new();
        let server = Server::answering(|_, _| Answer::text("here"));
        let _daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let opening = desk.opening(&server);
        let (stopped, killed) = (wire.open(&opening), wire.open(&opening));
        let file = desk.write(".agentd/config.toml", fault);
        if fault == "fifo" {
            fs::remove_file(&file).unwrap();
            nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        let told = |words: &[&str], code: i32| {
            let ran = run(desk.agentd(words));
            assert_eq!(ran.code, code, "{words:?}: {ran:?}");
            ran.out + &ran.err
        };
        let listed = told(&["ls"], 0);
        assert!(listed.contains(&stopped.0) && listed.contains(&killed.0), "{listed}");
        for words in [&["ps"][..], &["audit"], &["logs"], &["daemon", "status"]] {
            told(words, 0);
        }
        told(&["show", &stopped.0], 0);
        told(&["stop", &stopped.0], 0);
        told(&["kill", &killed.0], 0);
        // The whole report of doctor, and the exit code of a run here.
        let page = told(&["doctor"], 16);
        for words in ["ok      state", "daemon", "MISSING configuration", "config.toml"] {
            assert!(page.contains(words), "{words}: {page}");
        }
        let refused = told(&["-p", "x"], 16);
        assert!(refused.contains("config.toml"), "the positive control: {refused}");
    }
}
