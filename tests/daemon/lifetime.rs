//! The daemon: how it starts, who may come in, and how it ends, with the real executables.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server};
use crate::support::daemon::Wire;
use crate::support::{Desk, is_root, processes, run};
use ipc::Hello;
use nix::sys::signal::Signal;
use protocol::client::{
    ClientLink, FromClient, OnUnfinished, SessionRequest, SessionStart, ToClient, WhileBusy,
};
use protocol::session::OpenTurn;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

fn status(desk: &Desk) -> Value {
    let ran = run(desk.agentd(&["daemon", "status", "--json"]));
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

#[test]
fn twenty_starters_at_once_give_one_daemon() {
    let desk = Desk::new();
    let starters: Vec<_> = (0..20)
        .map(|_| {
            let mut command = desk.agentd(&["daemon", "start"]);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let said: Vec<_> = starters
        .into_iter()
        .map(|starter| {
            let ended = starter.wait_with_output().unwrap();
            let err = String::from_utf8(ended.stderr).unwrap();
            assert_eq!(ended.status.code(), Some(0), "{err}");
            err
        })
        .collect();
    assert!(said.iter().all(|line| line == &said[0]), "all found one: {said:?}");
    let daemon = desk.daemon();
    assert!(said[0].contains(&daemon.pid.to_string()), "{said:?}");
    let mode = |name: &str| fs::metadata(desk.door().join(name)).unwrap().permissions().mode();
    assert_eq!((mode("") & 0o777, mode("socket") & 0o777), (0o700, 0o600));
    assert_eq!(mode("token") & 0o777, 0o600);
}

#[test]
fn a_daemon_outlives_its_starter_and_holds_nothing_of_it() {
    let desk = Desk::new();
    let daemon = desk.daemon();
    let found = processes().into_iter().find(|it| it.pid == daemon.pid).unwrap();
    assert_eq!(found.session, daemon.pid, "it has a session of its own and no terminal");
    let proc = format!("/proc/{}", daemon.pid);
    if let Ok(cwd) = fs::read_link(format!("{proc}/cwd")) {
        assert_eq!(cwd, std::path::Path::new("/"));
    }
    let status = status(&desk);
    assert_eq!((status["running"].clone(), status["sessions"].clone()), (true.into(), 0.into()));
}

#[test]
fn a_stale_socket_and_a_stale_lock_are_no_obstacle() {
    let desk = Desk::new();
    fs::create_dir(desk.door()).unwrap();
    fs::set_permissions(desk.door(), fs::Permissions::from_mode(0o700)).unwrap();
    drop(UnixListener::bind(desk.door().join("socket")).unwrap());
    fs::write(desk.door().join("token"), "of another life").unwrap();
    fs::write(desk.door().join("lock"), "1\n").unwrap();
    assert_eq!(run(desk.agentd(&["daemon", "status"])).code, 15, "no daemon answers");
    let daemon = desk.daemon();
    assert_eq!(status(&desk)["pid"], daemon.pid);
}

#[test]
fn a_killed_daemon_is_followed_by_another() {
    let desk = Desk::new();
    let first = desk.daemon();
    let pid = nix::unistd::Pid::from_raw(i32::try_from(first.pid).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    let second = desk.daemon();
    assert_ne!(first.pid, second.pid);
    std::mem::forget(first);
}

/// No daemon and a daemon that does not answer have different messages.
#[test]
fn a_stopped_daemon_is_said_to_give_no_answer_and_hides_no_other() {
    let desk = Desk::new();
    let ran = run(desk.agentd(&["ps"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("no supervisor is running"), "{ran:?}");
    let server = Server::answering(|n, _| match n {
        1 => Answer::text("slowly").stalled_after(1, Duration::from_secs(60)),
        _ => Answer::text("Early."),
    });
    let mut private = desk.with_server(&server, &["-p", "x"]);
    let mut private = private.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    crate::support::until("the private one asks", || server.requests().len() == 1);
    let own = crate::support::child_of(private.id(), "agentd-supervisor").unwrap();
    let own = crate::support::child_of(own, "agentd-provider").unwrap().to_string();
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    wire.turn_ends();
    crate::support::send(daemon.pid, Signal::SIGSTOP);
    let stop = ["stop", session.0.as_str()];
    let asked = [&["ps"][..], &["ls"], &stop, &["attach", "-r", &session.0]];
    let asked = asked.map(|arguments| {
        let mut command = desk.agentd(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        std::thread::spawn(move || run(command))
    });
    let [ps, ls, stopped, watched] = asked.map(|asked| asked.join().unwrap());
    crate::support::send(daemon.pid, Signal::SIGCONT);
    crate::support::send(private.id(), Signal::SIGTERM);
    private.wait().unwrap();
    assert_eq!(ps.code, 15, "{ps:?}");
    assert!(
        ps.err.contains("does not answer") && !ps.err.contains("no supervisor is running"),
        "{ps:?}"
    );
    assert!(ps.out.contains(&own), "the other's are shown: {ps:?}");
    assert!(ls.err.contains("does not answer"), "{ls:?}");
    assert!(ls.out.contains(&session.0) && ls.out.contains("working"), "{ls:?}");
    // Unknown facts are left out.
    for unknown in [stopped, watched] {
        assert_eq!(unknown.code, 15, "{unknown:?}");
        assert!(unknown.err.contains("it is unknown if session"), "{unknown:?}");
        assert!(unknown.err.contains("kill -CONT"), "{unknown:?}");
    }
    let ran = run(desk.agentd(&stop));
    assert!(ran.code == 0 && ran.err.contains("has ended"), "the positive control: {ran:?}");
}

#[test]
fn failure_3_a_daemon_of_another_build_is_named_and_left_alone() {
    let desk = Desk::new();
    fs::create_dir(desk.door()).unwrap();
    fs::set_permissions(desk.door(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(desk.door().join("token"), "x").unwrap();
    let listener = UnixListener::bind(desk.door().join("socket")).unwrap();
    let other = Hello { pid: std::process::id(), build: "9.9.9-other".into() };
    let fake = std::thread::spawn(move || {
        for _ in 0..4 {
            let (mut peer, _) = listener.accept().unwrap();
            let mut hello = [0; ipc::HELLO_BYTES];
            let _ = peer.read_exact(&mut hello);
            let _ = peer.write_all(&other.to_bytes());
        }
        listener
    });
    let commands =
        [&["daemon", "start"][..], &["daemon", "stop"], &["daemon", "status"], &["-p", "x"]];
    let server = Server::scripted([]);
    for arguments in commands {
        let ran = run(desk.with_server(&server, arguments));
        assert_eq!(ran.code, 15, "{ran:?}");
        assert!(ran.err.contains("9.9.9-other") && ran.err.contains(protocol::BUILD_ID), "{ran:?}");
        assert!(ran.err.contains("restart --force"), "{ran:?}");
    }
    drop(fake.join().unwrap());
    assert!(desk.door().join("socket").exists(), "its socket was left alone");
}

#[test]
fn failure_15_a_socket_path_that_is_too_long_is_named() {
    let desk = Desk::new();
    let long = desk.outside().join("x".repeat(100));
    fs::create_dir(&long).unwrap();
    let mut command = desk.agentd(&["daemon", "start"]);
    command.env("XDG_RUNTIME_DIR", &long);
    let ran = run(command);
    assert_eq!(ran.code, 16, "{ran:?}");
    assert!(ran.err.contains(&long.display().to_string()), "{ran:?}");
    assert!(ran.err.contains("XDG_RUNTIME_DIR"), "{ran:?}");
}

#[test]
fn without_a_run_time_directory_the_state_directory_holds_a_private_one() {
    let desk = Desk::new();
    let with = |arguments: &[&str]| {
        let mut command = desk.agentd(arguments);
        command.env_remove("XDG_RUNTIME_DIR");
        command
    };
    let started = with(&["daemon", "start"]).output().unwrap();
    assert!(started.status.success(), "{started:?}");
    let door = desk.state().join("run");
    assert_eq!(fs::metadata(&door).unwrap().permissions().mode() & 0o777, 0o700);
    drop(Wire::to(&door));
    assert_eq!(run(with(&["daemon", "stop"])).code, 0);
    assert!(!door.join("socket").exists(), "an ended daemon leaves no socket");
}

#[test]
fn a_run_time_directory_of_another_log_in_is_not_used() {
    let desk = Desk::new();
    let other = tempfile::tempdir().unwrap();
    // What belongs to root is another user's to all others.
    let other = match is_root() {
        true => {
            std::os::unix::fs::chown(other.path(), Some(12345), None).unwrap();
            other.path()
        }
        false => Path::new("/usr"),
    };
    let with = |arguments: &[&str]| {
        let mut command = desk.agentd(arguments);
        command.env("XDG_RUNTIME_DIR", other);
        run(command)
    };
    let started = with(&["daemon", "start"]);
    assert_eq!(started.code, 0, "{started:?}");
    drop(Wire::to(&desk.state().join("run")));
    let doctor = with(&["doctor"]).out;
    let said = format!("XDG_RUNTIME_DIR, {}, is not yours", other.display());
    assert!(doctor.contains(&said), "{doctor}");
    assert_eq!(with(&["daemon", "stop"]).code, 0);
    assert!(!other.join("agentd").exists());

    // One that others can enter is named with a way on.
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(desk.state().join("run"), open).unwrap();
    let failed = with(&["daemon", "start"]);
    assert_eq!(failed.code, 16, "{failed:?}");
    assert_eq!(failed.err.matches("must belong to you alone").count(), 1, "{failed:?}");
    assert!(failed.err.contains("set XDG_RUNTIME_DIR to a directory of your own"), "{failed:?}");
}

#[test]
fn one_shot_runs_use_the_daemon_that_is_there() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("by the daemon"), Answer::text("by its own")]);
    let daemon = desk.daemon();
    let ran = desk.ask(&server, &[]);
    assert_eq!((ran.code, ran.result()), (0, "by the daemon".into()), "{}", ran.err);
    let log = fs::read_to_string(desk.state().join("log/supervisor.log")).unwrap();
    assert_eq!(log.matches("agentd-broker").count(), 1, "one supervisor: {log}");
    drop(daemon);
    let ran = desk.ask(&server, &[]);
    assert_eq!((ran.code, ran.result()), (0, "by its own".into()), "{}", ran.err);
}

#[test]
fn garbage_at_the_daemon_s_socket_disturbs_nobody() {
    let desk = Desk::new();
    let daemon = desk.daemon();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4096], b""] {
        let mut socket = UnixStream::connect(desk.door().join("socket")).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let _ = socket.write_all(bytes);
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
    }
    assert_eq!(status(&desk)["pid"], daemon.pid);
}

#[test]
fn a_wrong_token_lets_nobody_in_and_says_so() {
    let desk = Desk::new();
    let daemon = desk.daemon();
    let file = desk.door().join("token");
    let right = fs::read(&file).unwrap();
    for wrong in ["0".repeat(64), String::new(), "0".repeat(1 << 20)] {
        let socket = UnixStream::connect(desk.door().join("socket")).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (mut words, say) = ipc::connect::<ClientLink>(socket).unwrap();
        let build = protocol::BUILD_ID.to_owned();
        let _ = say.send(&FromClient::Hello { token: wrong.clone(), build });
        // Its messages before a welcome are dropped.
        let _ = say.send(&FromClient::Shutdown { unfinished: OnUnfinished::Interrupt });
        let answer = words.recv().unwrap();
        let ToClient::Refused { reason, .. } = &answer else { panic!("{answer:?}") };
        assert!(reason.contains("token"), "{reason}");
        assert!(words.recv().is_err(), "and nothing more");
    }
    fs::write(&file, "0".repeat(64)).unwrap();
    for arguments in [&["daemon", "status"][..], &["daemon", "stop", "--force"]] {
        let ran = run(desk.agentd(arguments));
        assert_eq!(ran.code, 15, "{ran:?}");
        assert!(ran.err.contains("token"), "{ran:?}");
    }
    fs::write(file, right).unwrap();
    assert_eq!(status(&desk)["pid"], daemon.pid, "with the right one it is there as before");
}

#[test]
fn a_stop_names_what_runs_and_leaves_it_alone() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::text("slow").stalled_after(10, Duration::from_secs(6)),
        Answer::text("next"),
    ]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    wire.event("the prompt", |event| {
        matches!(event, protocol::client::ClientEvent::Prompt { .. }).then_some(())
    });
    let mut other = Wire::to(&desk.door());
    let idle = other.open(&desk.opening(&server));
    let ran = run(desk.agentd(&["daemon", "stop"]));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains(&session.0) && ran.err.contains("--force"), "{ran:?}");
    assert!(!ran.err.contains(&idle.0), "nothing runs there: {ran:?}");
    // The one in which nothing ran takes prompts as before.
    other.prompt(&idle, "next");
    other.turn_ends();
    wire.turn_ends();
    let ran = run(desk.agentd(&["daemon", "stop"]));
    assert!(ran.code == 0 && ran.err.contains("has ended"), "{ran:?}");
    assert!(!desk.door().join("socket").exists());
    assert_eq!(run(desk.agentd(&["daemon", "stop"])).code, 0, "there is none to stop");
}

/// At any moment, the turn ends before the daemon does, or has not begun.
#[test]
fn a_prompt_and_a_stop_at_the_same_moment_interrupt_no_turn() {
    let desk = Desk::new();
    let server = Server::answering(|_, _| {
        Answer::text("slow").stalled_after(10, Duration::from_millis(150))
    });
    let (mut stopped, mut refused) = (0, 0);
    for moment in 0..12 {
        let daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let session = wire.open(&desk.opening(&server));
        let stop = desk.agentd(&["daemon", "stop"]).stderr(Stdio::piped()).spawn().unwrap();
        // The command itself may take its time to start.
        std::thread::sleep(Duration::from_millis(moment * moment * 6));
        let prompt = FromClient::Prompt {
            session: session.clone(),
            text: "go".into(),
            form: None,
            busy: WhileBusy::Queue,
        };
        let said = wire.try_say(prompt);
        let ended = stop.wait_with_output().unwrap();
        let journal = || {
            let place = desk.state().join("sessions").join(&session.0).join("journal.jsonl");
            fs::read_to_string(place).unwrap()
        };
        if ended.status.success() {
            stopped += 1;
            let kept = journal();
            assert_eq!(
                kept.matches("\"PROMPT\"").count(),
                kept.matches("\"done\"").count(),
                "{kept}"
            );
        } else {
            refused += 1;
            said.unwrap();
            wire.turn_ends();
            assert!(journal().contains("\"done\""), "{}", journal());
        }
        drop(daemon);
    }
    assert!(stopped > 0, "{stopped} stopped, {refused} refused");
}

#[test]
fn a_daemon_that_nobody_uses_ends_by_itself_and_one_at_work_does_not() {
    let desk = Desk::new();
    fs::create_dir_all(desk.home().join(".config/agentd")).unwrap();
    let config = "[daemon]\nidle_exit = \"500ms\"\n";
    fs::write(desk.home().join(".config/agentd/config.toml"), config).unwrap();
    let server = Server::scripted([Answer::text("slow").stalled_after(10, Duration::from_secs(2))]);
    let started = run_detached(&desk, &["daemon", "start"]);
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    wire.event("the prompt", |event| {
        matches!(event, protocol::client::ClientEvent::Prompt { .. }).then_some(())
    });
    drop(wire);
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(Wire::to(&desk.door()).pid, started, "it works, and stays");
    crate::support::until("it ends", || !desk.door().join("socket").exists());
    let journal = desk.state().join("sessions").join(&session.0).join("journal.jsonl");
    let journal = fs::read_to_string(journal).unwrap();
    assert!(journal.contains("TURN_ENDED"), "{journal}");
}

/// Runs it, and says which daemon there is then.
fn run_detached(desk: &Desk, arguments: &[&str]) -> u32 {
    let ran = desk.agentd(arguments).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    Wire::to(&desk.door()).pid
}

/// Has the user's configuration say this.
fn configure(desk: &Desk, config: &str) {
    fs::create_dir_all(desk.home().join(".config/agentd")).unwrap();
    fs::write(desk.home().join(".config/agentd/config.toml"), config).unwrap();
}

fn providers(daemon: u32) -> usize {
    let all = processes();
    all.iter().filter(|it| it.parent == daemon && it.name.starts_with("agentd-provide")).count()
}

#[test]
fn a_provider_that_nobody_asks_ends_and_the_next_prompt_starts_another() {
    let desk = Desk::new();
    configure(&desk, "[daemon]\nidle_provider = \"200ms\"\n");
    let slow = Answer::text("slow").stalled_after(10, Duration::from_millis(800));
    let server = Server::scripted([slow, Answer::text("second")]);
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    // A session with an open question stays, however long it takes.
    wire.turn_ends();
    assert_eq!(server.requests().len(), 1, "it was asked once");
    crate::support::until("the provider has ended", || providers(daemon.pid) == 0);
    let rows = run(desk.agentd(&["ps", "--json"]));
    let row = rows.out.lines().find(|line| line.contains("agentd-provider")).unwrap_or_default();
    assert!(
        row.contains("suspended until it is needed") && row.contains("\"restarts\":0"),
        "{row}"
    );
    wire.prompt(&session, "again");
    wire.turn_ends();
    assert_eq!(server.requests().len(), 2);
    crate::support::until("the second has ended too", || providers(daemon.pid) == 0);
}

#[test]
fn a_newer_key_is_used_from_the_next_request_on() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("one"), Answer::text("two")]);
    let _daemon = desk.daemon();
    let opening = desk.opening(&server);
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&opening);
    wire.prompt(&session, "go");
    wire.turn_ends();
    let mut other = Wire::to(&desk.door());
    let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
    other.open_with(&SessionRequest { start, ..opening }, "sk-newer");
    other.until("that it is open", |word| matches!(word, ToClient::Opened { .. }).then_some(()));
    wire.prompt(&session, "again");
    wire.turn_ends();
    let requests = server.requests();
    let keys: Vec<_> = requests
        .iter()
        .flat_map(|request| request.headers.iter())
        .filter(|(name, _)| name == "x-api-key")
        .map(|(_, key)| key.as_str())
        .collect();
    assert_eq!(keys, [crate::support::KEY, "sk-newer"]);
}

#[test]
fn certificates_and_the_persons_file_are_those_of_the_client_not_of_the_daemon() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("one")]);
    let other = desk.outside().join("other");
    fs::create_dir_all(other.join("agentd")).unwrap();
    fs::write(other.join("agentd/config.toml"), "[provider]\nmodel = \"of-the-client\"\n").unwrap();
    let daemon = desk.daemon();
    let mut opening = desk.opening(&server);
    opening.env.push(("SSL_CERT_FILE".into(), "/of/the/client.pem".into()));
    opening.env.push(("XDG_CONFIG_HOME".into(), other.display().to_string()));
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&opening);
    wire.prompt(&session, "go");
    wire.turn_ends();
    assert_eq!(server.requests()[0].body["model"], "of-the-client");
    let provider = crate::support::child_of(daemon.pid, "agentd-provider").unwrap();
    match fs::read_to_string(format!("/proc/{provider}/environ")) {
        Ok(environ) => assert!(environ.contains("SSL_CERT_FILE=/of/the/client.pem"), "{environ}"),
        // Only root may inspect it.
        Err(error) => assert!(!crate::support::is_root(), "{error}"),
    }
}
