//! Access to the daemon: its user's own programs, each over the connection that it opened itself. A
//! connection that a tool call can get is refused.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::{PEER, Wire, bytes_of, greeting};
use crate::support::{Desk, needs, place, precede, run, until};
use protocol::client::{
    BacklogFrom, ClientEvent, ClientRights, FromClient, OtherClients, SessionRequest, ToClient,
    WhileBusy,
};
use protocol::judgement::PermissionMode;
use serde_json::json;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn bash(command: &str) -> Answer {
    Answer::says([call("toolu_1", "bash", &json!({ "command": command }).to_string())])
}

/// How many bytes a peer with the right greeting gets from this control socket.
fn answered(mut peer: Command) -> usize {
    let ended = peer.output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    said.trim().parse().unwrap_or_else(|error| panic!("{error}: {said:?} {:?}", ended.stderr))
}

fn log(desk: &Desk) -> String {
    fs::read_to_string(desk.state().join("log/supervisor.log")).unwrap()
}

/// A program that greets the daemon properly, and the words it is started with.
fn peer(desk: &Desk) -> Vec<String> {
    needs("python3");
    let (script, greeting_file) = (desk.write("peer.py", PEER), desk.project().join("greeting"));
    fs::write(&greeting_file, greeting(&desk.door())).unwrap();
    let hello = ipc::HELLO_BYTES.to_string();
    let (script, file) = (script.display().to_string(), greeting_file.display().to_string());
    let socket = desk.door().join("socket").display().to_string();
    ["python3".to_owned(), script, socket, file, hello].to_vec()
}

fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

#[test]
fn a_tool_call_does_not_reach_the_socket_and_its_user_does() {
    let desk = Desk::new();
    let _daemon = desk.daemon();
    let peer = peer(&desk);
    assert!(answered(command(&peer)) > ipc::HELLO_BYTES, "its user comes in");
    let server = Server::scripted([
        bash(&format!(
            "{} > answered 2> why; cat {}",
            peer.join(" "),
            desk.door().join("token").display()
        )),
        Answer::text("done"),
    ]);
    let ran = desk.ask(&server, &["--permission-mode", "auto"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(desk.read("answered").trim(), "0", "{}", desk.read("why"));
    assert_ne!(desk.read("why"), "", "the cage said why");
    let token = fs::read_to_string(desk.door().join("token")).unwrap();
    let told = server.requests()[1].body["messages"].to_string();
    assert!(!told.contains(&token), "the token stays unread: {told}");
}

/// No cage separates this program from the socket, and it has the token. The daemon itself refuses
/// it, because of its parent processes.
#[test]
fn failure_33_what_runs_in_a_calls_place_is_turned_away_by_the_daemon_itself() {
    let desk = Desk::new();
    let place = place(&desk);
    let (marks, words) = (desk.outside().join("answered"), desk.outside().join("words"));
    let script =
        format!("sh {} >> {} 2>&1\nexec \"$real\" \"$@\"", words.display(), marks.display());
    precede(&place, "agentd-tool", &script);
    let agentd = |arguments: &[&str]| {
        let own = desk.agentd(arguments);
        let mut command = Command::new(place.join("agentd"));
        command.args(arguments).current_dir(desk.project()).env_clear();
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    };
    assert!(agentd(&["daemon", "start"]).output().unwrap().status.success());
    let peer = peer(&desk);
    fs::write(&words, peer.join(" ")).unwrap();
    let server = Server::scripted([bash("echo ran >> effects"), Answer::text("done")]);
    let mut wire = Wire::to(&desk.door());
    let session =
        wire.open(&SessionRequest { mode: Some(PermissionMode::Auto), ..desk.opening(&server) });
    wire.prompt(&session, "go");
    wire.turn_ends();
    drop(wire);
    let marks = fs::read_to_string(&marks).unwrap();
    // How its connection broke, a reset or a broken pipe, depends on how far it had come.
    let unanswered = |line: &str| line == "0" || line.starts_with("[Errno");
    assert!(marks.lines().any(|line| line == "0") && marks.lines().all(unanswered), "{marks}");
    assert!(log(&desk).contains("was started by this supervisor"), "{}", log(&desk));
    assert_eq!(desk.read("effects"), "ran\n", "the call itself ran");
    assert!(answered(command(&peer)) > ipc::HELLO_BYTES, "its user comes in");
    assert!(agentd(&["daemon", "stop"]).output().unwrap().status.success());
}

/// A helper outside of the cage passes its own greeted connection to a call. A message that the
/// call sends over it is dropped and ends the connection.
#[test]
fn a_connection_that_gets_into_a_tool_call_says_nothing_there() {
    needs("python3");
    let desk = Desk::new();
    let script = "import socket\n\
        way = socket.socket(socket.AF_UNIX)\n\
        way.connect('hand.over')\n\
        _, got, _, _ = socket.recv_fds(way, 1, 1)\n\
        leaked = socket.socket(fileno=got[0])\n\
        leaked.settimeout(20)\n\
        leaked.sendall(open('word', 'rb').read())\n\
        while leaked.recv(65536):\n    pass\n\
        print('the end')\n";
    desk.write("leak.py", script);
    let server = Server::scripted([
        bash("python3 leak.py > end 2>&1"),
        Answer::text("first turn"),
        Answer::text("second turn"),
    ]);
    let _daemon = desk.daemon();
    let hand_over = UnixListener::bind(desk.project().join("hand.over")).unwrap();
    let (mut own, mut lent) = (Wire::to(&desk.door()), Wire::to(&desk.door()));
    let session =
        own.open(&SessionRequest { mode: Some(PermissionMode::Auto), ..desk.opening(&server) });
    lent.attach(&session, BacklogFrom::Seq(1), ClientRights::Full);
    let says = |text: &str| FromClient::Prompt {
        session: session.clone(),
        text: text.into(),
        form: None,
        busy: WhileBusy::Queue,
    };
    fs::write(desk.project().join("word"), bytes_of(&says("said by the call"))).unwrap();
    own.prompt(&session, "go");
    let (way, _) = hand_over.accept().unwrap();
    lent.lend(&way);
    own.turn_ends();
    assert_eq!(desk.read("end"), "the end\n", "the connection was ended");
    while lent.try_hear().is_ok() {}
    assert!(log(&desk).contains("another process wrote over"), "{}", log(&desk));
    // The same bytes from the process that opened its connection are handled.
    own.say(says("said by its user"));
    own.turn_ends();
    let asked = server.requests().last().unwrap().body["messages"].to_string();
    assert!(asked.contains("said by its user") && !asked.contains("said by the call"), "{asked}");
}

/// A connection whose opener has ended is refused to the processes that inherited it.
#[test]
fn a_connection_ends_with_the_process_that_opened_it() {
    needs("python3");
    let desk = Desk::new();
    let daemon = desk.daemon();
    let words = [("greeting", greeting(&desk.door())), ("ping", bytes_of(&FromClient::Ping(7)))];
    for (name, bytes) in words {
        fs::write(desk.project().join(name), bytes).unwrap();
    }
    // The opener leaves its connection to its child and ends; the child waits for the connection's
    // end.
    let script = "import os, socket, sys\n\
        own = socket.socket(socket.AF_UNIX)\n\
        own.connect(sys.argv[1])\n\
        own.sendall(open('greeting', 'rb').read())\n\
        own.sendall(open('ping', 'rb').read())\n\
        own.recv(65536)\n\
        if os.fork(): os._exit(0)\n\
        own.settimeout(20)\n\
        while own.recv(65536):\n    pass\n\
        print('the end')\n";
    desk.write("left.py", script);
    let mut left = Command::new("python3");
    left.current_dir(desk.project()).arg("left.py").arg(desk.door().join("socket"));
    let ended = left.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "the end\n", "{ended:?}");
    assert_eq!(Wire::to(&desk.door()).pid, daemon.pid, "the daemon still runs");
}

/// Open descriptors of the process that starts agentd, for example a connection to the daemon, are
/// closed before a call runs.
#[test]
fn a_connection_open_in_the_starter_is_not_in_its_calls() {
    needs("python3");
    let desk = Desk::new();
    let _daemon = desk.daemon();
    fs::write(desk.project().join("greeting"), greeting(&desk.door())).unwrap();
    let script = "import os, socket, sys\n\
        own = socket.socket(socket.AF_UNIX)\n\
        own.connect(sys.argv[1])\n\
        own.sendall(open('greeting', 'rb').read())\n\
        os.dup2(own.fileno(), 77, inheritable=True)\n\
        os.execvp(sys.argv[2], sys.argv[2:])\n";
    let script = desk.write("leak.py", script);
    let seen = "for fd in /proc/self/fd/*; do echo \"${fd##*/}\"; done > seen";
    let server = Server::scripted([bash(seen), Answer::text("done")]);
    // A supervisor of its own, as a child of the process that leaks.
    let elsewhere = desk.outside().join("own");
    fs::create_dir(&elsewhere).unwrap();
    let inner = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    let leaking = |words: &[&std::ffi::OsStr]| {
        let mut command = Command::new("python3");
        command.arg(&script).arg(desk.door().join("socket")).args(words);
        command.current_dir(desk.project()).env_clear();
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("XDG_RUNTIME_DIR", &elsewhere);
        command
    };
    let has_it = |seen: &Path| fs::read_to_string(seen).unwrap().lines().any(|line| line == "77");
    let plain = leaking(&["sh".as_ref(), "-c".as_ref(), seen.as_ref()]).output().unwrap();
    assert!(plain.status.success() && has_it(&desk.project().join("seen")), "{plain:?}");
    let mut words = vec![inner.get_program()];
    words.extend(inner.get_args());
    let ran = run(leaking(&words));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(!has_it(&desk.project().join("seen")), "{}", desk.read("seen"));
}

/// A prompt is handled also if its connection is closed right after it.
#[test]
fn last_words_of_a_client_that_ends_count() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("heard")]);
    let _daemon = desk.daemon();
    let mut own = Wire::to(&desk.door());
    let session = own.open(&desk.opening(&server));
    let mut other = Wire::to(&desk.door());
    other.attach(&session, BacklogFrom::Seq(1), ClientRights::Full);
    other.prompt(&session, "last words");
    drop(other);
    own.event("the prompt", |event| {
        matches!(event, ClientEvent::Prompt { text, .. } if text == "last words").then_some(())
    });
    own.turn_ends();
}

/// They have the token, so their messages reach the daemon's own readers.
#[test]
fn fifty_clients_that_talk_garbage_are_shown_out_and_disturb_nobody() {
    let desk = Desk::new();
    let server = Server::scripted([
        bash("touch begun; while [ ! -e enough ]; do sleep 0.1; done"),
        Answer::text("done"),
    ]);
    let daemon = desk.daemon();
    let mut own = Wire::to(&desk.door());
    let session =
        own.open(&SessionRequest { mode: Some(PermissionMode::Auto), ..desk.opening(&server) });
    own.prompt(&session, "go");
    until("the call runs", || desk.project().join("begun").exists());
    let watch = FromClient::Attach {
        session: session.clone(),
        from: BacklogFrom::Seq(1),
        rights: ClientRights::ReadOnly,
        others: OtherClients::Stay,
    };
    let open_without_its_key = bytes_of(&FromClient::Open(desk.opening(&server)));
    let typed_by_a_watcher = [
        bytes_of(&watch),
        bytes_of(&FromClient::Prompt {
            session: session.clone(),
            text: "not mine".into(),
            form: None,
            busy: WhileBusy::Queue,
        }),
    ];
    let whole = bytes_of(&watch);
    let garbage: [Vec<u8>; 5] = [
        vec![0xff; 4096],
        // A message of an unknown kind in a valid frame.
        ipc::frames(protocol::ids::Generation(0), 0, &[0xfa; 64]),
        // A truncated message.
        whole[..whole.len() - 1].to_vec(),
        // A message in place of a descriptor.
        [open_without_its_key, bytes_of(&FromClient::Status)].concat(),
        [typed_by_a_watcher.concat(), vec![0xff; 64]].concat(),
    ];
    let crowd: Vec<_> = (0..50)
        .map(|n| {
            let mut socket = UnixStream::connect(desk.door().join("socket")).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            socket.write_all(&greeting(&desk.door())).unwrap();
            let _ = socket.write_all(&garbage[n % garbage.len()]);
            let _ = socket.shutdown(Shutdown::Write);
            socket
        })
        .collect();
    for (n, mut socket) in crowd.into_iter().enumerate() {
        let mut answer = Vec::new();
        let end = socket.read_to_end(&mut answer);
        let shown_out = end.is_ok() || end.is_err_and(|it| it.kind() == ErrorKind::ConnectionReset);
        assert!(shown_out, "client {n} is still there");
        assert!(answer.len() > ipc::HELLO_BYTES, "client {n} was greeted");
    }
    fs::write(desk.project().join("enough"), "").unwrap();
    own.turn_ends();
    let asked = server.requests().last().unwrap().body["messages"].to_string();
    assert!(!asked.contains("not mine"), "{asked}");
    until("its clients are counted down", || {
        own.say(FromClient::Status);
        own.until("a status", |word| {
            let ToClient::Status(status) = word else { return None };
            Some((status.clients, status.pid))
        }) == (1, daemon.pid)
    });
}

/// A client that sends requests without reading is dropped. When it reads again its connection
/// ends, and no ping is answered behind the discarded answers.
#[test]
fn a_client_that_asks_without_reading_is_let_go_of() {
    let desk = Desk::new();
    let daemon = desk.daemon();
    let mut socket = UnixStream::connect(desk.door().join("socket")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
    socket.write_all(&greeting(&desk.door())).unwrap();
    let questions = bytes_of(&FromClient::Status).repeat(20_000);
    let taken = socket.write_all(&questions);
    assert!(taken.is_err(), "the daemon drops it long before its last request");
    let mut answers = Vec::new();
    let end = socket.read_to_end(&mut answers);
    assert!(end.is_ok() || end.is_err_and(|it| it.kind() == ErrorKind::ConnectionReset));
    assert!(answers.len() > ipc::HELLO_BYTES);
    assert_eq!(Wire::to(&desk.door()).pid, daemon.pid, "and others come in");
}
