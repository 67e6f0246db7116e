//! A server in the background, reached by later calls of its session and by nobody else: real servers,
//! real network namespaces.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Say, Server, call};
use crate::support::internet::{Names, PUBLIC, Site, page, within};
use crate::support::{Desk, needs, run};
use serde_json::{Value, json};
use std::net::TcpStream;

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
