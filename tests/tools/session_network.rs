//! A server in the background, reached by later calls of its session and by nobody else: real servers,
//! real network namespaces.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Say, Server, call};
use crate::support::daemon::Wire;
use crate::support::internet::{Names, PUBLIC, Site, page, within};
use crate::support::{Desk, needs, run};
use protocol::client::{
    BacklogFrom, ClientEvent, ClientRights, FromClient, OtherClients, RequestFailure,
    SessionEnding, SessionRequest, SessionWish, SettingChange, ToClient,
};
use protocol::ids::SessionId;
use protocol::judgement::PermissionMode;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Stdio};

const SERVE: &str = "python3 -u -m http.server 8123 --bind 127.0.0.1";
const GET: &str = "curl -sS --max-time 5 http://127.0.0.1:8123/page.txt";

fn bash(id: &str, command: &str) -> Say {
    call(id, "bash", &json!({ "command": command }).to_string())
}

fn background(id: &str, command: &str) -> Say {
    call(id, "bash", &json!({ "command": command, "background": true }).to_string())
}

fn fetch(id: &str, url: &str) -> Say {
    call(id, "web_fetch", &json!({ "url": url }).to_string())
}

/// A call that waits until a server at this address answers.
fn answers(id: &str, address: &str) -> Say {
    let patient = "curl -sS --retry 20 --retry-connrefused --retry-delay 1";
    bash(id, &format!("{patient} http://{address}/page.txt"))
}

fn stop(id: &str, number: u32) -> Say {
    call(id, "bash_stop", &json!({ "call": number }).to_string())
}

/// The calls, one a round; returns their results.
fn told(desk: &Desk, flags: &[&str], calls: Vec<Say>) -> Vec<String> {
    needs("curl");
    let count = calls.len();
    let answers = calls.into_iter().map(|said| Answer::says([said]));
    let server = Server::scripted(answers.chain([Answer::text("Done.")]).collect::<Vec<_>>());
    let ran =
        run(desk
            .with_server(&server, &[&["-p", "go", "--permission-mode", "auto"], flags].concat()));
    assert!(ran.out.contains("Done."), "{} {}", ran.out, ran.err);
    let requests = server.requests();
    let results = (1..=count).map(|at| {
        let message = requests[at].body["messages"].as_array().unwrap().last().unwrap().clone();
        let content = &message["content"][0]["content"];
        content.as_str().or_else(|| content[0]["text"].as_str()).unwrap().to_owned()
    });
    results.collect()
}

/// The network of a call's process, as recorded.
fn network(desk: &Desk, number: u64) -> Value {
    desk.ended(number)["enforced"]["network"].clone()
}

#[test]
fn a_server_is_reached_by_later_calls_and_by_web_fetch_until_it_ends() {
    let desk = Desk::new();
    desk.write("page.txt", "from the server\n");
    let told = told(
        &desk,
        &[],
        vec![
            background("toolu_1", SERVE),
            answers("toolu_2", "127.0.0.1:8123"),
            bash("toolu_3", GET),
            fetch("toolu_4", "http://localhost:8123/page.txt"),
            fetch("toolu_5", "http://127.0.0.1:8123/page.txt"),
            // A second server finds the port taken, as on one machine. The call waits for its end.
            bash("toolu_6", &format!("timeout 20 {SERVE}")),
            background("toolu_7", "python3 -u -m http.server 8124 --bind ::1"),
            answers("toolu_8", "[::1]:8124"),
            stop("toolu_9", 1),
            bash("toolu_10", GET),
            bash("toolu_11", "curl -sS --max-time 5 http://[::1]:8124/page.txt"),
            stop("toolu_12", 7),
            fetch("toolu_13", "http://localhost:8123/page.txt"),
        ],
    );
    for reached in [2, 3, 4, 10] {
        assert!(told[reached].contains("from the server"), "{reached}: {}", told[reached]);
    }
    assert!(told[5].contains("Address already in use"), "{}", told[5]);
    assert!(told[9].contains("exit code: 7"), "the server has ended: {}", told[9]);
    assert!(told[12].contains("it requests rights"), "a host like any other: {}", told[12]);
    assert_eq!(network(&desk, 1), "off (own namespace)");
    for joined in [2, 3, 4, 5, 7, 8, 11] {
        let words = "off (namespace of call 1, shared in this session)";
        assert_eq!(network(&desk, joined), words, "call {joined}");
    }
}

#[test]
fn another_session_and_the_machine_s_user_do_not_reach_it() {
    let desk = Desk::new();
    desk.write("page.txt", "from the server\n");
    let outside = Desk::new();
    let server = Server::scripted([
        Answer::says([background("toolu_1", SERVE)]),
        Answer::says([answers("toolu_2", "127.0.0.1:8123")]),
        Answer::says([bash("toolu_3", &format!("{GET} > got; touch up; sleep 5"))]),
        Answer::text("Done."),
    ]);
    let told_first = std::thread::scope(|scope| {
        let first = scope.spawn(|| desk.ask(&server, &["--permission-mode", "auto"]));
        crate::support::until("the server answers", || desk.project().join("up").exists());
        let refused = TcpStream::connect(("127.0.0.1", 8123));
        assert!(refused.is_err(), "the machine's user does not reach it");
        let calls = vec![
            bash("toolu_1", GET),
            fetch("toolu_2", "http://localhost:8123/page.txt"),
            background("toolu_3", "sleep 60"),
            bash("toolu_4", GET),
            fetch("toolu_5", "http://localhost:8123/page.txt"),
        ];
        let other = told(&outside, &[], calls);
        for text in &other {
            assert!(!text.contains("from the server"), "{text}");
        }
        assert_eq!(network(&outside, 1), "off (own namespace)");
        assert_eq!(network(&outside, 4), "off (namespace of call 3, shared in this session)");
        first.join().unwrap()
    });
    assert_eq!(told_first.code, 0, "{}", told_first.err);
    assert_eq!(desk.read("got"), "from the server\n", "the control");
}

#[test]
fn a_call_with_another_network_does_not_join_and_one_with_the_same_list_does() {
    within("a_call_with_another_network_does_not_join_and_one_with_the_same_list_does", || {
        let _names = Names::serve(|name, _| match name {
            "allowed.test" | "more.test" => vec![PUBLIC],
            _ => Vec::new(),
        });
        let _site = Site::serve(PUBLIC, 80, |_| page("from outside\n"));
        let desk = Desk::new();
        desk.write("page.txt", "from the server\n");
        let config = desk.home().join(".config/agentd/config.toml");
        std::fs::create_dir_all(config.parent().unwrap()).unwrap();
        std::fs::write(config, "[permissions]\nallow = [\"host:more.test\", \"bash:*\"]\n")
            .unwrap();
        let more = json!({ "command": format!("{GET}; curl -sS http://more.test/"),
            "hosts": ["more.test"] });
        let plain = "python3 -c 'import socket; s = socket.create_connection((\"allowed.test\", 80)); \
                     s.sendall(b\"GET / HTTP/1.0\\r\\nHost: allowed.test\\r\\n\\r\\n\"); \
                     print(s.makefile().read())'";
        let told = told(
            &desk,
            &["--allow-host", "allowed.test"],
            vec![
                background("toolu_1", SERVE),
                answers("toolu_2", "127.0.0.1:8123"),
                bash("toolu_3", &format!("{GET}; curl -sS http://allowed.test/")),
                // Without the variables of the proxy, by the addresses of the call's own proxy.
                bash("toolu_4", plain),
                call("toolu_5", "bash", &more.to_string()),
            ],
        );
        assert!(told[2].contains("from the server\nfrom outside"), "{}", told[2]);
        assert!(told[3].contains("from outside"), "{}", told[3]);
        assert!(told[4].contains("from outside"), "{}", told[4]);
        assert!(!told[4].contains("from the server"), "it has a host more: {}", told[4]);
        let joined = "allow-list (namespace of call 1, shared in this session, through our proxy)";
        assert_eq!(network(&desk, 3), joined);
        assert_eq!(network(&desk, 5), "allow-list (own namespace, through our proxy)");
        // Each call's connections stand in its own record.
        let hosts = |number| desk.ended(number)["connections"].to_string();
        assert!(hosts(3).contains("allowed.test") && hosts(4).contains("allowed.test"));
        assert!(!hosts(1).contains("allowed.test"), "{}", hosts(1));
    });
}

/// Where an ordinary user runs it, a process needs the rights of the network's owner for a web port.
#[test]
fn each_call_has_addresses_of_its_own_for_the_hosts_of_its_list() {
    let desk = Desk::new();
    let connect = "grep allowed.test /etc/hosts; python3 -c 'import socket; \
                   socket.create_connection((\"allowed.test\", 443)); print(\"connected\")'";
    let told = told(
        &desk,
        &["--allow-host", "allowed.test"],
        vec![background("toolu_1", "sleep 60"), bash("toolu_2", connect), bash("toolu_3", connect)],
    );
    for text in &told[1..] {
        assert!(text.contains("127.80.1.1\tallowed.test\nconnected"), "{text}");
    }
    let joined = "allow-list (namespace of call 1, shared in this session, through our proxy)";
    assert_eq!(network(&desk, 2), joined);
}

#[test]
fn a_command_with_rights_beyond_the_session_shares_its_network_with_none() {
    let desk = Desk::new();
    desk.write("page.txt", "from the server\n");
    let config = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(config, "[permissions]\nallow = [\"git-admin:*\", \"bash:*\"]\n").unwrap();
    let input = json!({ "command": SERVE, "background": true, "git_settings": "write" });
    let told = told(
        &desk,
        &[],
        vec![
            call("toolu_1", "bash", &input.to_string()),
            bash("toolu_2", GET),
            fetch("toolu_3", "http://localhost:8123/page.txt"),
        ],
    );
    assert!(told[0].contains("runs in the background"), "{}", told[0]);
    assert!(told[1].contains("exit code: 7"), "{}", told[1]);
    assert!(told[2].contains("it requests rights"), "{}", told[2]);
    assert_eq!(network(&desk, 2), "off (own namespace)");
}

#[test]
#[ignore = "installs vite from the npm registry: `.ci/nightly vite`"]
fn a_dev_server_of_vite_is_reached_by_later_calls_and_by_web_fetch_until_it_ends() {
    needs("npm");
    let desk = Desk::new();
    desk.write("index.html", "<!doctype html><title>of vite</title><p>from vite</p>\n");
    desk.write("package.json", "{\"type\": \"module\"}\n");
    // The person has it installed, outside of any call.
    let mut npm = std::process::Command::new("npm");
    let installed = npm.args(["install", "--no-audit", "--no-fund", "vite@8.3.8"]);
    let installed = installed.current_dir(desk.project()).output().unwrap();
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    let get = "curl -sS --max-time 5 http://localhost:5173/";
    let told = told(
        &desk,
        &[],
        vec![
            background("toolu_1", "npx vite --host localhost --port 5173 --strictPort"),
            bash("toolu_2", &format!("{get} --retry 20 --retry-connrefused --retry-delay 1")),
            // A module of the server itself, which it transforms.
            bash("toolu_3", "curl -sS --max-time 5 http://localhost:5173/@vite/client"),
            fetch("toolu_4", "http://localhost:5173/"),
            stop("toolu_5", 1),
            bash("toolu_6", get),
        ],
    );
    assert!(told[1].contains("from vite") && told[1].contains("/@vite/client"), "{}", told[1]);
    assert!(told[2].contains("HMRContext"), "{}", told[2]);
    assert!(told[3].contains("from vite"), "{}", told[3]);
    assert!(told[5].contains("exit code: 7"), "{}", told[5]);
    for joined in [2, 3, 4] {
        let words = "off (namespace of call 1, shared in this session)";
        assert_eq!(network(&desk, joined), words, "call {joined}");
    }
}

/// A daemon's session whose turn has ended, with these calls.
fn after(desk: &Desk, calls: Vec<Say>) -> (Wire, SessionId) {
    let answers = calls.into_iter().map(|said| Answer::says([said]));
    let server = Server::scripted(answers.chain([Answer::text("Done.")]).collect::<Vec<_>>());
    let mut wire = Wire::to(&desk.door());
    let mode = Some(PermissionMode::Auto);
    let session = wire.open(&SessionRequest { mode, ..desk.opening(&server) });
    wire.prompt(&session, "go");
    wire.turn_ends();
    (wire, session)
}

/// `agentd open` with the lines of its standard error, and the first of them.
fn open_port_in_words(
    desk: &Desk,
    session: &SessionId,
    more: &[&str],
) -> (Child, BufReader<ChildStderr>, String) {
    let mut command = desk.agentd(&[&["open", &session.0, "8123"], more].concat());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    lines.read_line(&mut first).unwrap();
    (child, lines, first)
}

/// The same, with the port that the first line names.
fn open_port(
    desk: &Desk,
    session: &SessionId,
    more: &[&str],
) -> (Child, BufReader<ChildStderr>, u16) {
    let (child, lines, first) = open_port_in_words(desk, session, more);
    let port = first.split_once("127.0.0.1:").and_then(|(_, rest)| rest.split(' ').next());
    (child, lines, port.unwrap_or_else(|| panic!("{first}")).parse().unwrap())
}

fn get(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /page.txt HTTP/1.0\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

#[test]
fn a_person_opens_a_port_of_a_server_to_this_machine_and_it_is_on_record() {
    let desk = Desk::new();
    desk.write("page.txt", "from the server\n");
    let daemon = desk.daemon();
    let (wire, session) =
        after(&desk, vec![background("toolu_1", SERVE), answers("toolu_2", "127.0.0.1:8123")]);

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = taken.local_addr().unwrap().port().to_string();
    let refused = run(desk.agentd(&["open", &session.0, "8123", "--as", &busy]));
    assert!(refused.err.contains("--as 0") && !refused.err.contains("http://"), "{}", refused.err);

    let (mut child, mut lines, port) = open_port(&desk, &session, &["--as", "0"]);
    for _ in 0..3 {
        let page = get(port);
        assert!(page.starts_with("HTTP/1.0 200") && page.contains("from the server"), "{page}");
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    assert!(status.contains("Seccomp:\t2") && status.contains("NoNewPrivs:\t1"), "{status}");
    let opened: Vec<_> =
        desk.audit().into_iter().filter(|entry| entry["event"] == "port_opened").collect();
    assert_eq!(opened.len(), 1, "{opened:?}");
    assert!(opened[0]["port"] == 8123 && opened[0]["call"] == 1, "{opened:?}");
    let shown = run(desk.agentd(&["audit", "show", &format!("{}.1", session.0)]));
    assert!(shown.out.contains("port 8123 to this machine, by "), "{}", shown.out);
    let verified = run(desk.agentd(&["audit", "verify"]));
    assert!(verified.out.contains("audit verify: ok"), "{}", verified.out);

    // Whoever only watches opens none.
    let mut watcher = Wire::to(&desk.door());
    let (rights, others) = (ClientRights::ReadOnly, OtherClients::Stay);
    let from = BacklogFrom::Newest(0);
    watcher.say(FromClient::Attach { session: session.clone(), from, rights, others });
    watcher.say(FromClient::Wish {
        session: session.clone(),
        wish: SessionWish::OpenPort { port: 8123, call: None },
    });
    let failed = watcher.until("the refusal", |word| match word {
        ToClient::Failed { kind, message } => Some((*kind, message.clone())),
        ToClient::NetworkOpened { .. } => panic!("it was opened"),
        _ => None,
    });
    assert!(failed.0 == RequestFailure::Usage && failed.1.contains("read-only"), "{failed:?}");

    // The server has ended, and then its daemon.
    wire.say(FromClient::End { session: session.clone(), ending: SessionEnding::Stop });
    drop(daemon);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert!(!child.wait().unwrap().success() && rest.contains("of call 1 of session"), "{rest}");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "nobody listens");
}

#[test]
fn a_session_without_a_command_in_the_background_has_no_port_to_open() {
    let desk = Desk::new();
    let _daemon = desk.daemon();
    let (_wire, session) = after(&desk, Vec::new());
    let refused = run(desk.agentd(&["open", &session.0, "8123", "--as", "0"]));
    assert!(refused.err.contains("no command of session"), "{}", refused.err);
    let refused = run(desk.agentd(&["open", &session.0, "0"]));
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(!desk.audit().iter().any(|entry| entry["event"] == "port_opened"));
}

/// A session with a server in the background as its call 1, and the answers to its next prompts.
fn serving(desk: &Desk, next: Vec<Answer>) -> (Wire, SessionId, Server) {
    desk.write("page.txt", "from the server\n");
    let first = [
        Answer::says([background("toolu_1", SERVE)]),
        Answer::says([answers("toolu_2", "127.0.0.1:8123")]),
        Answer::text("It serves."),
    ];
    let server = Server::scripted(first.into_iter().chain(next).collect::<Vec<_>>());
    let mut wire = Wire::to(&desk.door());
    let mode = Some(PermissionMode::Auto);
    let session = wire.open(&SessionRequest { mode, ..desk.opening(&server) });
    wire.prompt(&session, "go");
    wire.turn_ends();
    (wire, session, server)
}

#[test]
fn an_opened_port_ends_with_the_commands_of_its_network_and_the_next_is_of_the_new_one() {
    let desk = Desk::new();
    let _daemon = desk.daemon();
    let next = vec![
        Answer::says([stop("toolu_3", 1)]),
        Answer::text("Stopped."),
        Answer::says([background("toolu_4", SERVE)]),
        Answer::says([answers("toolu_5", "127.0.0.1:8123")]),
        Answer::text("It serves again."),
    ];
    let (mut wire, session, _server) = serving(&desk, next);
    let (mut child, mut lines, first) = open_port_in_words(&desk, &session, &["--as", "0"]);
    assert!(first.contains(&format!("is port 8123 of call 1 of session {session};")), "{first}");
    assert!(child.try_wait().unwrap().is_none(), "the control");
    wire.prompt(&session, "stop it");
    wire.turn_ends();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert!(!child.wait().unwrap().success(), "{rest}");
    assert!(rest.contains("the commands in the network of call 1 of session"), "{rest}");
    assert!(rest.contains(&format!("`agentd open {session} 8123`")), "{rest}");

    wire.prompt(&session, "once more");
    wire.turn_ends();
    let (mut child, _lines, first) = open_port_in_words(&desk, &session, &["--as", "0"]);
    assert!(first.contains("is port 8123 of call 4 of session"), "{first}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_opened_port_counts_as_no_terminal() {
    let desk = Desk::new();
    let _daemon = desk.daemon();
    let (wire, session, server) = serving(&desk, vec![Answer::text("said the script")]);
    let (mut child, mut lines, port) = open_port(&desk, &session, &["--as", "0"]);
    assert!(get(port).contains("from the server"));
    let script = || run(desk.with_server(&server, &["-p", "more", "-c"]));
    let refused = script();
    assert!(refused.err.contains("is open in a terminal"), "the control: {}", refused.err);
    drop(wire);
    crate::support::until("the terminal has left", || {
        run(desk.agentd(&["ls", "--json"])).out.contains("\"clients\":0")
    });
    let ran = script();
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("said the script"), "{}{}", ran.out, ran.err);
    // The session ends with the run that it is now for, and the port with it.
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert!(!child.wait().unwrap().success() && rest.contains("have ended"), "{rest}");
}

#[test]
fn no_network_is_handed_out_without_its_record() {
    let desk = Desk::new();
    let _daemon = desk.daemon();
    let (_wire, session, _server) = serving(&desk, Vec::new());
    let (mut child, _lines, _) = open_port_in_words(&desk, &session, &["--as", "0"]);
    assert!(child.try_wait().unwrap().is_none(), "the control");
    child.kill().unwrap();
    child.wait().unwrap();
    for entry in std::fs::read_dir(desk.state().join("audit")).unwrap().flatten() {
        if entry.path().is_file() {
            std::fs::write(entry.path(), "").unwrap();
        }
    }
    let refused = run(desk.agentd(&["open", &session.0, "8123", "--as", "0"]));
    assert_ne!(refused.code, 0, "{}", refused.err);
    assert!(refused.err.contains("port 8123 stays closed"), "{}", refused.err);
    assert!(!refused.err.contains("http://"), "{}", refused.err);
}

#[test]
fn of_several_networks_the_newest_is_opened_unless_a_call_is_named() {
    let desk = Desk::new();
    let _daemon = desk.daemon();
    let next = vec![
        Answer::says([background(
            "toolu_3",
            "mkdir -p other; echo the other > other/page.txt; cd other; python3 -u -m http.server 8123 --bind 127.0.0.1",
        )]),
        Answer::says([answers("toolu_4", "127.0.0.1:8123")]),
        Answer::text("Both serve."),
    ];
    let (mut wire, session, _server) = serving(&desk, next);
    let change = SettingChange::Host("allowed.test".parse().unwrap());
    wire.say(FromClient::Change { session: session.clone(), change: change.clone() });
    wire.event("the change", |event| match event {
        ClientEvent::Changed { change: told, .. } => (*told == change).then_some(()),
        _ => None,
    });
    wire.prompt(&session, "one more");
    wire.turn_ends();
    let opened = |flags: &[&str], call: &str, other: &str, page: &str| {
        let (mut child, _lines, first) =
            open_port_in_words(&desk, &session, &[&["--as", "0"], flags].concat());
        assert!(first.contains(&format!("port 8123 of call {call} of session")), "{first}");
        assert!(first.contains(&format!("call {other} has another network")), "{first}");
        let port = first.split_once("127.0.0.1:").unwrap().1.split(' ').next().unwrap();
        let got = get(port.parse().unwrap());
        assert!(got.contains(page), "{got}");
        child.kill().unwrap();
        child.wait().unwrap();
    };
    opened(&[], "3", "1", "the other");
    opened(&["--call", "1"], "1", "3", "from the server");
    let refused = run(desk.agentd(&["open", &session.0, "8123", "--as", "0", "--call", "2"]));
    assert!(refused.err.contains("These have one: 3, 1"), "{}", refused.err);
}
