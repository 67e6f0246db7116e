//! An allow-list of hosts, end to end: real cages and real names in a small internet of the test's own,
//! in which public and private addresses are just addresses.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::attempt::{Attempt, attempt, python};
use crate::support::daemon::Wire;
use crate::support::internet::{
    METADATA, Names, OTHER, PRIVATE, PUBLIC, Site, leads_to, page, within,
};
use crate::support::{Desk, child_of, needs, run, send};
use nix::sys::signal::Signal;
use protocol::client::{ClientEvent, FromClient, SessionRequest, SessionStart, SettingChange};
use protocol::hosts::HostRule;
use protocol::judgement::{ExtraRight, PermissionMode, PersonAnswer as Said};
use protocol::session::OpenTurn;
use serde_json::json;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::time::Duration;

/// The addresses of the names in this internet.
fn addresses(name: &str, asked_before: usize) -> Vec<Ipv4Addr> {
    match name {
        "allowed.test" | "cdn.allowed.test" => vec![PUBLIC],
        "other.test" => vec![OTHER],
        // As a domain with a wildcard that the machine searches.
        "nowhere.test.lan.test" => vec![OTHER],
        "private.test" => vec![PRIVATE],
        "metadata.test" => vec![METADATA],
        "mixed.test" => vec![PUBLIC, PRIVATE],
        // The second look-up of this name gives another address than the first, which was judged.
        "rebinding.test" if asked_before == 0 => vec![PUBLIC],
        "rebinding.test" => vec![PRIVATE],
        _ => Vec::new(),
    }
}

/// A script as a call of a session that allows these hosts.
fn allowing(desk: &Desk, hosts: &[&str], script: &str) -> Attempt {
    needs("curl");
    let flags: Vec<&str> = hosts.iter().flat_map(|host| ["--allow-host", host]).collect();
    let script = script.to_owned();
    attempt(desk, "A", &flags, move |_| script.clone())
}

/// The lines of `audit show` with the decisions about connections.
fn decided(tried: &Attempt) -> Vec<String> {
    let lines = tried.shown.lines().skip_while(|line| !line.starts_with("network "));
    let first = lines.clone().take(1).map(|line| line["network".len()..].trim().to_owned());
    let more = lines.skip(1).take_while(|line| line.starts_with(' '));
    first.chain(more.map(|line| line.trim().to_owned())).collect()
}

#[test]
fn allowed_hosts_are_reached_and_no_others() {
    within("allowed_hosts_are_reached_and_no_others", || {
        let names = Names::serve(addresses);
        let plain = Site::serve(PUBLIC, 80, |_| page("plain page\n"));
        let tunnel = Site::serve(PUBLIC, 443, |_| page("page in a tunnel\n"));
        let other = Site::serve(OTHER, 80, |_| page("never\n"));
        let desk = Desk::new();
        let tried = allowing(
            &desk,
            &["allowed.test", "*.allowed.test"],
            "curl -sS http://allowed.test/path?x=1; curl -sS http://cdn.allowed.test/; \
             curl -sS --proxytunnel http://allowed.test:443/inside; \
             curl -s -o /dev/null -w 'other %{http_code}\\n' http://other.test/; \
             curl -sS --proxytunnel https://other.test/",
        );
        assert!(
            tried.words.contains("plain page\nplain page\npage in a tunnel\nother 403"),
            "{}",
            tried.explain()
        );
        assert_eq!(other.heads(), Vec::<String>::new(), "no byte arrives: {}", tried.explain());
        assert_eq!(names.asked("other.test"), 0, "not even the name: {}", tried.explain());
        let head = &plain.heads()[0];
        assert!(head.starts_with("GET /path?x=1 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("host: allowed.test\r\n"), "{head}");
        assert!(!head.to_lowercase().contains("proxy"), "{head}");
        assert!(tunnel.heads()[0].starts_with("GET /inside "), "{:?}", tunnel.heads());
        let lines = decided(&tried);
        assert_eq!(lines.len(), 5, "{}", tried.explain());
        assert!(
            lines[0].starts_with("allowed.test:80: allowed, at 93.184.216.34:80, "),
            "{lines:?}"
        );
        assert!(lines[1].starts_with("cdn.allowed.test:80: allowed, at 93.184.216.34:80, "));
        assert!(lines[2].starts_with("allowed.test:443: allowed, at 93.184.216.34:443, "));
        assert_eq!(lines[3], "other.test:80: refused: it is not on the allow-list");
        assert_eq!(lines[4], "other.test:443: refused: it is not on the allow-list");
        let words = &tried.words;
        assert!(words.contains("[the network proxy: other.test:80 was refused"), "{words}");
        assert!(words.contains(":net allow HOST"), "the way on: {words}");
        let exit = words.trim_end().lines().last().unwrap();
        assert!(exit.starts_with("exit code:"), "the exit code stays the last line: {words}");
        assert_eq!(
            tried.ended["enforced"]["network"],
            "allow-list (own namespace, through our proxy)"
        );
    });
}

#[test]
fn tls_asks_for_the_host_that_was_judged_and_for_no_other() {
    within("tls_asks_for_the_host_that_was_judged_and_for_no_other", || {
        let _names = Names::serve(addresses);
        let _site = Site::serve(PUBLIC, 443, |_| page("no TLS here\n"));
        let desk = Desk::new();
        let tried = allowing(
            &desk,
            &["allowed.test"],
            "curl -sSk -m 3 --connect-to other.test:443:allowed.test:443 https://other.test/; \
             curl -sSk -m 3 https://allowed.test/; true",
        );
        let lines = decided(&tried);
        let refused = "allowed.test:443: refused: its TLS connection asks for another host, \
                       other.test";
        assert!(lines.iter().any(|line| line == refused), "{}", tried.explain());
        let words = &tried.words;
        assert!(words.contains("asks for another host, other.test"), "{words}");
        // Of two connections one hello went on its way.
        let made = lines.iter().find(|line| line.starts_with("allowed.test:443: allowed")).unwrap();
        assert!(made.contains("2 times") && !made.contains(" 0 bytes sent"), "{made}");
        assert_eq!(lines.len(), 2, "{lines:?}");
    });
}

/// A listed host is reached by its listed name only. A denied host is not reached, however wide the
/// list.
#[test]
fn a_list_leads_to_no_host_that_it_does_not_name_nor_to_one_that_a_rule_denies() {
    within("a_list_leads_to_no_host_that_it_does_not_name_nor_to_one_that_a_rule_denies", || {
        needs("curl");
        let names = Names::serve(addresses);
        let allowed = std::net::TcpListener::bind((PUBLIC, 80)).unwrap();
        let body = std::thread::spawn(move || whole_request(&allowed.accept().unwrap().0));
        let other = Site::serve(OTHER, 80, |_| page("never\n"));
        let desk = Desk::new();
        desk.write(".agentd/config.toml", "[permissions]\ndeny = [\"host:other.test\"]\n");
        let flags = ["--allow-host", "nowhere.test", "--allow-host", "*.test"];
        let tried = attempt(&desk, "A", &flags, |_| {
            "curl -s -o /dev/null -w 'nowhere %{http_code}\\n' http://nowhere.test/; \
                 curl -s -w 'other %{http_code}\\n' http://OTHER.test/; \
                 curl -s -X GET -H 'transfer-encoding: chunked' -d body http://allowed.test/"
                .to_owned()
        });
        let words = &tried.words;
        assert!(words.contains("nowhere 502\n"), "{}", tried.explain());
        let found = [names.asked("nowhere.test"), names.asked("nowhere.test.lan.test")];
        assert_eq!(found, [1, 0], "{}", tried.explain());
        let denied = "agentd: other.test:80 was refused: a rule denies it.\nother 403\n";
        assert!(words.contains(denied), "{}", tried.explain());
        assert_eq!(other.heads(), Vec::<String>::new(), "{}", tried.explain());
        assert!(words.contains("allowed page"), "the positive control: {}", tried.explain());
        let got = body.join().unwrap();
        assert!(got.contains("\r\n\r\n4\r\nbody\r\n0\r\n"), "the body goes with it: {got}");
        let lines = decided(&tried);
        assert!(lines.contains(&"other.test:80: refused: a rule denies it".into()), "{lines:?}");
    });
}

/// One request with its body in pieces, after which it is answered.
fn whole_request(mut stream: &std::net::TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let (mut got, mut more) = (Vec::new(), [0; 4096]);
    while !got.ends_with(b"\r\n0\r\n\r\n") {
        match stream.read(&mut more) {
            Ok(read) if read > 0 => got.extend(&more[..read]),
            _ => break,
        }
    }
    stream.write_all(page("allowed page\n").as_bytes()).unwrap();
    String::from_utf8_lossy(&got).into_owned()
}

/// A tunnel counts as a connection as long as it is open.
#[test]
fn a_proxy_carries_so_many_at_once_and_the_next_waits() {
    within("a_proxy_carries_so_many_at_once_and_the_next_waits", || {
        let _names = Names::serve(addresses);
        let site = std::net::TcpListener::bind((PUBLIC, 443)).unwrap();
        std::thread::spawn(move || {
            for stream in site.incoming().flatten() {
                // Open until the other side has closed it.
                std::thread::spawn(move || std::io::copy(&mut &stream, &mut std::io::sink()));
            }
        });
        let program = python(
            "import os, socket\n\
             host, port = os.environ['http_proxy'][7:].split(':')\n\
             def tunnel():\n    \
                 one = socket.create_connection((host, int(port)), 60)\n    \
                 one.sendall(b'CONNECT allowed.test:443 HTTP/1.1\\r\\n\\r\\n')\n    \
                 return one\n\
             def line(one):\n    \
                 got = b''\n    \
                 while b'\\n' not in got: got += one.recv(1000) or b'closed\\n'\n    \
                 return got\n\
             tunnels = [tunnel() for _ in range(256)]\n\
             print('open:', sum(b' 200 ' in line(one) for one in tunnels))\n\
             more = tunnel()\n\
             more.settimeout(2)\n\
             try: print('served', more.recv(1000))\n\
             except TimeoutError: print('the next waits')\n\
             tunnels.pop().close()\n\
             more.settimeout(60)\n\
             print('then:', more.recv(1000)[:12])",
        );
        let tried = allowing(&Desk::new(), &["allowed.test"], &program);
        let words = &tried.words;
        assert!(
            words.contains("open: 256\nthe next waits\nthen: b'HTTP/1.1 200'"),
            "{}",
            tried.explain()
        );
    });
}

#[test]
fn a_name_that_leads_to_a_private_address_leads_nowhere() {
    within("a_name_that_leads_to_a_private_address_leads_nowhere", || {
        let names = Names::serve(addresses);
        let public = Site::serve(PUBLIC, 80, |head| match head.starts_with("GET /away") {
            true => leads_to("http://private.test/secret"),
            false => page("public page\n"),
        });
        let private = Site::serve(PRIVATE, 80, |_| page("secret\n"));
        let metadata = Site::serve(METADATA, 80, |_| page("credentials\n"));
        let desk = Desk::new();
        let hosts =
            ["private.test", "metadata.test", "mixed.test", "rebinding.test", "allowed.test"];
        let tried = allowing(
            &desk,
            &hosts,
            "for host in private metadata mixed; do curl -s -w '%{http_code}\\n' -o /dev/null \
             http://$host.test/; done; \
             curl -sS http://rebinding.test/; curl -s -o /dev/null -w 'again %{http_code}\\n' http://rebinding.test/; \
             curl -sL -o /dev/null -w 'led to %{http_code}\\n' http://allowed.test/away",
        );
        let words = &tried.words;
        assert!(words.contains("403\n403\n403\npublic page\nagain 403\nled to 403"), "{words}");
        assert_eq!(private.heads(), Vec::<String>::new(), "{}", tried.explain());
        assert_eq!(metadata.heads(), Vec::<String>::new(), "{}", tried.explain());
        assert_eq!(names.asked("rebinding.test"), 2, "a request looks up once");
        assert_eq!(public.heads().len(), 2, "the positive control");
        let lines = decided(&tried);
        for line in [
            "private.test:80: refused: it resolves to 10.0.0.7, a private network, 2 times",
            "metadata.test:80: refused: it resolves to 169.254.169.254, a link-local address, \
             where clouds publish credentials",
            "mixed.test:80: refused: it resolves to 10.0.0.7, a private network",
            "rebinding.test:80: refused: it resolves to 10.0.0.7, a private network",
        ] {
            assert!(lines.iter().any(|found| found == line), "{line}: {}", tried.explain());
        }
    });
}

#[test]
fn ports_addresses_and_the_proxy_itself_are_no_way_around() {
    within("ports_addresses_and_the_proxy_itself_are_no_way_around", || {
        let _names = Names::serve(addresses);
        let ssh = Site::serve(PUBLIC, 22, |_| page("never\n"));
        let odd = Site::serve(PUBLIC, 8443, |_| page("odd port\n"));
        let desk = Desk::new();
        let tried = allowing(
            &desk,
            &["allowed.test", "*.allowed.test:8443"],
            "curl -s --proxytunnel -w '%{http_connect}\\n' http://allowed.test:22/; \
             curl -s --proxytunnel -w '%{http_connect}\\n' http://93.184.216.34/; \
             curl -s --proxytunnel -w '%{http_connect}\\n' --noproxy '' http://127.1/; \
             curl -s --proxytunnel -w '%{http_connect}\\n' --noproxy '' $http_proxy/; \
             curl -s -w '%{http_code}\\n' --noproxy '*' -o /dev/null $http_proxy/etc/passwd; \
             curl -sS --proxytunnel http://cdn.allowed.test:8443/",
        );
        let words = &tried.words;
        assert!(words.contains("403\n403\n403\n403\n400\nodd port"), "{}", tried.explain());
        assert_eq!(ssh.heads(), Vec::<String>::new());
        assert_eq!(odd.heads().len(), 1, "the positive control");
        let lines = decided(&tried);
        assert!(lines[0].starts_with("allowed.test:22: refused: it is not on"), "{lines:?}");
        assert!(lines[1].starts_with("93.184.216.34:80: refused: IP addresses"), "{lines:?}");
        assert!(lines[2].starts_with("127.0.0.1:80: refused: IP addresses"), "{lines:?}");
        assert!(lines[3].contains("refused: IP addresses"), "the proxy itself: {lines:?}");
    });
}

/// A program without support for a proxy gets there by the name that the list has, on the ports that it has.
#[test]
fn a_program_that_takes_no_proxy_reaches_a_listed_host_by_its_name() {
    within("a_program_that_takes_no_proxy_reaches_a_listed_host_by_its_name", || {
        needs("node");
        let _names = Names::serve(addresses);
        let plain = Site::serve(PUBLIC, 80, |_| page("plain page\n"));
        let far = Site::serve(PUBLIC, 8081, |_| page("page at a port\n"));
        let other = Site::serve(OTHER, 80, |_| page("never\n"));
        let desk = Desk::new();
        desk.write(".agentd/config.toml", "[permissions]\ndeny = [\"host:other.test\"]\n");
        let program = python(
            "import socket\n\
             def ask(host, port):\n\
             \x20   try:\n\
             \x20       one = socket.create_connection((host, port), 5)\n\
             \x20       one.sendall(b'GET /direct HTTP/1.0\\r\\n\\r\\n')\n\
             \x20       print(host, port, one.makefile('rb').read()[-20:])\n\
             \x20   except OSError as error: print(host, port, 'no:', error)\n\
             for host, port in [('allowed.test', 80), ('allowed.test', 8081), ('allowed.test', 8082),\n\
             \x20   ('cdn.allowed.test', 80), ('other.test', 80), ('private.test', 80)]: \
             ask(host, port)",
        );
        let hosts =
            ["allowed.test", "allowed.test:8081", "*.allowed.test", "other.test", "private.test"];
        let script = format!(
            "env -u http_proxy -u HTTP_PROXY -u NODE_USE_ENV_PROXY node -e \
             \"fetch('http://allowed.test/node').then(answer => \
             answer.text()).then(console.log)\"; \
             cp /etc/hosts hosts; echo x >> /etc/hosts; {program}"
        );
        let tried = allowing(&desk, &hosts, &script);
        let words = &tried.words;
        for line in [
            "allowed.test 80 b'",
            "allowed.test 8081 b'",
            "allowed.test 8082 no: [Errno 111]",
            "cdn.allowed.test 80 no:",
        ] {
            assert!(words.contains(line), "{line}: {}", tried.explain());
        }
        assert!(!words.contains("never"), "{}", tried.explain());
        assert!(words.contains("page at a port"), "{}", tried.explain());
        assert!(words.contains("hosts: Read-only file system"), "{}", tried.explain());
        let heads = plain.heads();
        assert!(heads.iter().any(|head| head.starts_with("GET /direct ")), "{heads:?}");
        assert!(heads.iter().any(|head| head.starts_with("GET /node ")), "{}", tried.explain());
        assert_eq!((far.heads().len(), other.heads().len()), (1, 0));
        let lines = decided(&tried);
        for line in [
            "allowed.test:80: allowed, at 93.184.216.34:80, ",
            "allowed.test:8081: allowed, at ",
            "other.test:80: refused: a rule denies it",
            "private.test:80: refused: it resolves to ",
        ] {
            assert!(lines.iter().any(|found| found.starts_with(line)), "{line}: {lines:?}");
        }
        let hosts = std::fs::read_to_string(desk.project().join("hosts")).unwrap();
        assert!(hosts.starts_with("127.80.0.1\tallowed.test\n"), "{hosts}");
        assert!(hosts.contains("localhost"), "the machine's own names stay: {hosts}");
    });
}

/// As systemd-resolved is: the nearest name server lies on loopback, which in a cage is another one.
#[test]
fn a_name_that_the_machines_own_resolver_is_asked_for_is_told() {
    within("a_name_that_the_machines_own_resolver_is_asked_for_is_told", || {
        let _names = Names::serve(addresses);
        let desk = Desk::new();
        let words = |flags: &[&str], script: &str| {
            let script = script.to_owned();
            attempt(&desk, "A", flags, move |_| script.clone()).words
        };
        let (off, on) = (["--net", "off"], ["--net", "on"]);
        let listed = ["--allow-host", "allowed.test"];
        let lookup = "connect 127.0.0.1:53 of the host";
        let (closed, past) = ("the network is off", "Without the proxy, a host is reachable");
        for (flags, way) in [(off, closed), (listed, past)] {
            let told = words(&flags, "curl -sS --noproxy '*' http://other.test/");
            assert!(told.contains("Could not resolve host"), "{flags:?}: {told}");
            assert!(told.contains(lookup) && told.contains(way), "{flags:?}: {told}");
            let told = words(&flags, "getent hosts other.test");
            assert!(told.contains(lookup) && told.contains(way), "{flags:?}: {told}");
            let told = words(&flags, "curl -sS --noproxy '*' http://other.test/; true");
            assert!(told.contains(lookup) && !told.contains(way), "{flags:?}: {told}");
            // As npm checks for a newer version of itself.
            let told = words(&flags, "getent hosts other.test; true");
            assert!(!told.contains("refused") && !told.contains(way), "{flags:?}: {told}");
        }
        let told = words(&on, "getent hosts allowed.test && curl -sS http://none.test/");
        assert!(told.contains("Could not resolve host"), "{told}");
        assert!(!told.contains(lookup) && !told.contains(closed), "the control: {told}");
        let told = words(&listed, "getent ahosts allowed.test && exit 3");
        assert!(!told.contains(lookup) && !told.contains(past), "the control: {told}");
    });
}

#[test]
fn around_the_proxy_there_is_nothing() {
    within("around_the_proxy_there_is_nothing", || {
        let _names = Names::serve(addresses);
        let public = Site::serve(PUBLIC, 80, |_| page("never\n"));
        let desk = Desk::new();
        let program = python(
            "import socket, threading, urllib.request, os\n\
             try: socket.create_connection(('93.184.216.34', 80), 2); print('REACHED')\n\
             except OSError as error: print('direct:', error.errno)\n\
             try: print(socket.getaddrinfo('cdn.allowed.test', 80))\n\
             except OSError as error: print('no names')\n\
             own = socket.create_server(('127.0.0.1', 0))\n\
             def serve():\n    one, _ = own.accept(); one.recv(1000); one.sendall(b'HTTP/1.0 200 OK\\r\\n\\r\\nown server')\n\
             threading.Thread(target=serve).start()\n\
             print(urllib.request.urlopen('http://127.0.0.1:%d/' % own.getsockname()[1]).read())\n\
             kinds = [os.readlink('/proc/self/fd/%s' % fd) for fd in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/%s' % fd)]\n\
             print('inherited sockets:', sum('socket' in kind for kind in kinds) - 1)",
        );
        let tried = allowing(&desk, &["allowed.test"], &program);
        let words = &tried.words;
        assert!(words.contains("direct: 101"), "ENETUNREACH: {}", tried.explain());
        assert!(words.contains("no names"), "{words}");
        assert!(words.contains("own server"), "loopback works: {words}");
        assert!(words.contains("inherited sockets: 0"), "{words}");
        assert_eq!(public.heads(), Vec::<String>::new());
        assert!(tried.shows("connect"), "{}", tried.explain());
        assert!(tried.shown.contains("93.184.216.34:80"), "{}", tried.explain());
    });
}

/// A person adds hosts to the list, for a session or for one call; the session keeps them.
#[test]
fn a_person_opens_hosts_one_by_one() {
    within("a_person_opens_hosts_one_by_one", || {
        let _names = Names::serve(addresses);
        let _allowed = Site::serve(PUBLIC, 80, |_| page("allowed page\n"));
        let _other = Site::serve(OTHER, 80, |_| page("other page\n"));
        let desk = Desk::new();
        let fetch = |id: &str, more: serde_json::Value| {
            let script = "curl -s http://allowed.test/; curl -s http://other.test/";
            let mut input = json!({ "command": script });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            call(id, "bash", &input.to_string())
        };
        let server = Server::scripted([
            Answer::says([fetch("toolu_1", json!({}))]),
            Answer::text("done"),
            Answer::says([fetch("toolu_2", json!({ "hosts": ["other.test"] }))]),
            Answer::says([fetch("toolu_3", json!({}))]),
            Answer::text("done"),
        ]);
        let daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let opening = SessionRequest { mode: Some(PermissionMode::Auto), ..desk.opening(&server) };
        let session = wire.open(&opening);
        let change = SettingChange::Host("allowed.test".parse().unwrap());
        wire.say(FromClient::Change { session: session.clone(), change: change.clone() });
        wire.event("the change", |event| match event {
            ClientEvent::Changed { change: told, .. } => (*told == change).then_some(()),
            _ => None,
        });
        wire.prompt(&session, "go");
        wire.turn_ends();
        let told = |request: usize| server.requests()[request].body["messages"].to_string();
        assert!(told(1).contains("allowed page"), "{}", told(1));
        assert!(!told(1).contains("other page"), "{}", told(1));
        assert!(server.requests()[0].body["system"].to_string().contains("only allowed.test"));
        // The session's options are on disk.
        send(daemon.pid, Signal::SIGKILL);
        std::mem::forget(daemon);
        let _daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
        wire.open(&SessionRequest { start, mode: Some(PermissionMode::Auto), ..opening });
        wire.prompt(&session, "go");
        let question = wire.question();
        let other: HostRule = "other.test".parse().unwrap();
        assert_eq!(question.widens, [ExtraRight::Hosts(vec![other])]);
        assert!(question.confinement.contains("only allowed.test, other.test"), "{question:?}");
        wire.say(FromClient::Answer {
            call: question.call.clone(),
            digest: question.digest.clone(),
            answer: Said::Once,
        });
        wire.turn_ends();
        let result = |request: usize| {
            let request = &server.requests()[request].body["messages"];
            request.as_array().unwrap().last().unwrap().to_string()
        };
        assert!(result(3).contains("allowed page\\nother page"), "{}", result(3));
        assert!(!result(4).contains("other page"), "for that call alone: {}", result(4));
        let audit = desk.audit();
        let decided: Vec<_> = audit.iter().filter(|one| one["event"] == "decided").collect();
        assert_eq!(decided[1]["requested"]["network"], "allow");
        assert_eq!(decided[1]["requested"]["hosts"], json!(["allowed.test", "other.test"]));
        assert_eq!(decided[2]["requested"]["hosts"], json!(["allowed.test"]));
    });
}

/// A proxy that dies ends the network access, not the command. The record names the loss.
#[test]
fn the_proxy_dies_and_the_command_goes_on_without_network() {
    within("the_proxy_dies_and_the_command_goes_on_without_network", || {
        let _names = Names::serve(addresses);
        let public = Site::serve(PUBLIC, 80, |_| page("before\n"));
        let desk = Desk::new();
        let project = desk.project();
        let tried = attempt(&desk, "A", &["--allow-host", "allowed.test"], move |live| {
            let (supervisor, project) = (live.supervisor, project.clone());
            std::thread::spawn(move || {
                crate::support::until("the first answer", || project.join("reached").exists());
                send(child_of(supervisor, "agentd-web").unwrap(), Signal::SIGKILL);
                std::fs::write(project.join("killed"), "").unwrap();
            });
            "curl -sS http://allowed.test/ && touch reached; until test -e killed; do sleep 0.05; \
             done; \
             sleep 0.3; curl -s http://allowed.test/ || echo goes on"
                .to_owned()
        });
        assert!(tried.words.contains("before\ngoes on"), "{}", tried.explain());
        assert_eq!(public.heads().len(), 1);
        assert!(
            tried.words.contains("was ended by signal 9 while the command ran"),
            "{}",
            tried.words
        );
        let lines = decided(&tried);
        assert!(lines[0].starts_with("allowed.test:80: allowed, at 93.184.216.34:80"), "{lines:?}");
        assert!(lines[1].contains("was ended by signal 9"), "{lines:?}");
    });
}

#[test]
fn without_a_proxy_nothing_is_run() {
    let desk = Desk::new();
    let place = crate::support::place(&desk);
    crate::support::replace(&place, "agentd-web", "exit 3");
    let input = json!({ "command": "touch made" }).to_string();
    let server =
        Server::scripted([Answer::says([call("toolu_1", "bash", &input)]), Answer::text("done")]);
    let flags = ["-p", "do it", "--permission-mode", "auto", "--allow-host", "allowed.test"];
    // The same surroundings, executables of their own.
    let usual = desk.with_server(&server, &flags);
    let mut command = std::process::Command::new("setsid");
    command.arg(place.join("agentd")).args(flags).env_clear().current_dir(desk.project());
    command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = run(command);
    assert_eq!(ran.code, 11, "{}", ran.err);
    assert!(!desk.project().join("made").exists());
    let told = server.requests()[1].body["messages"].to_string();
    assert!(
        told.contains("its sandbox could not be made (network: the proxy of its allow-list"),
        "{told}"
    );
}

/// Where a command could go around the list, it gets no network.
#[test]
fn without_namespaces_a_list_is_refused_and_says_why() {
    let desk = Desk::new();
    let input = json!({ "command": "touch made" }).to_string();
    let server = Server::answering(move |_, _| Answer::says([call("toolu_1", "bash", &input)]));
    let mut command = desk.with_server(&server, &["-p", "do it", "--allow-host", "allowed.test"]);
    command.env("AGENTD_SANDBOX_TIER", "B");
    let ran = run(command);
    assert_eq!(ran.code, 11, "{}", ran.err);
    assert!(ran.err.contains("needs a network namespace (tier A)"), "{}", ran.err);
    assert!(server.requests().is_empty(), "nothing was asked");
    // A call that asks for hosts gets this reason. No person is asked for a right that cannot be
    // given.
    let input = json!({ "command": "touch made", "hosts": ["allowed.test"] }).to_string();
    let server =
        Server::scripted([Answer::says([call("toolu_1", "bash", &input)]), Answer::text("done")]);
    let mut command = desk.with_server(&server, &["-p", "do it", "--permission-mode", "auto"]);
    command.env("AGENTD_SANDBOX_TIER", "B");
    let ran = run(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told = server.requests()[1].body["messages"].to_string();
    assert!(told.contains("no_allow_list"), "{told}");
    assert!(!desk.project().join("made").exists());
}

/// A client: its program, the host that it alone asks for, and how.
type Client = (&'static str, &'static str, &'static str);

const CLIENTS: [Client; 5] = [
    ("curl", "curl.test:80", "curl -sS http://curl.test/"),
    ("git", "git.test:80", "git ls-remote http://git.test/x.git"),
    ("pip", "pip.test:80", "pip download -i http://pip.test/ --trusted-host pip.test nothing"),
    ("npm", "npm.test:80", "npm view nothing --registry http://npm.test/ --fetch-retries 0"),
    (
        "python3",
        "python.test:80",
        "python3 -c 'import urllib.request as u; u.urlopen(\"http://python.test/\").read()'",
    ),
];

/// Of tool chains that are large.
const LARGE_CLIENTS: [Client; 3] = [
    (
        "go",
        "go.test:443",
        "cd $TMPDIR && GOPROXY=https://go.test GONOSUMDB=* go install x.test/y@latest",
    ),
    ("mvn", "repo.maven.apache.org:443", "mvn -q -B -Dmaven.repo.local=$TMPDIR/m2 help:help"),
    (
        "java",
        "java.test:80",
        "echo 'class A { public static void main(String[] a) throws Exception { \
         new java.net.URL(\"http://java.test/\").openStream().read(); } }' > $TMPDIR/A.java; \
         java $TMPDIR/A.java",
    ),
];

/// The proxy's record says who came.
fn all_come_by_the_proxy(clients: &[Client]) {
    let _names = Names::serve(|name: &str, _| match name.ends_with(".lan.test") {
        true => Vec::new(),
        false => vec![PUBLIC],
    });
    let _site = Site::serve(PUBLIC, 80, |_| page("page\n"));
    let desk = Desk::new();
    // In the command's network nothing is there.
    for (name, text) in [(".gitconfig", "[http]\n\tproxy = "), (".npmrc", "proxy = ")] {
        let text = format!("{text}http://10.0.0.9:3128\n");
        std::fs::write(desk.home().join(name), text).unwrap();
    }
    let quoted = |script: &str| format!("'{}'", script.replace('\'', "'\\''"));
    let scripts = clients.iter().map(|(program, _, script)| {
        needs(program);
        format!("(timeout 60 sh -c {} 2>&1 | tail -n 3)", quoted(script))
    });
    let script: Vec<String> = scripts.collect();
    let tried = allowing(&desk, &["*.test", "repo.maven.apache.org"], &script.join("; "));
    let lines = decided(&tried);
    for (program, host, _) in clients {
        let begin = format!("{host}: allowed");
        let came = lines.iter().any(|line| line.starts_with(&begin));
        assert!(came, "{program} did not come by the proxy: {}", tried.explain());
    }
    assert!(!tried.words.contains(TAKES_NO_PROXY), "{}", tried.words);
}

const TAKES_NO_PROXY: &str = "this program did not use it";

#[test]
fn every_client_finds_the_proxy() {
    within("every_client_finds_the_proxy", || {
        needs("git");
        needs("pip");
        needs("npm");
        all_come_by_the_proxy(&CLIENTS);
    });
}

#[test]
#[ignore = "needs Go, Java and Maven"]
fn clients_of_large_tool_chains_find_the_proxy() {
    within("clients_of_large_tool_chains_find_the_proxy", || all_come_by_the_proxy(&LARGE_CLIENTS));
}

#[test]
fn a_client_that_takes_no_proxy_is_told_so() {
    within("a_client_that_takes_no_proxy_is_told_so", || {
        let direct = python(
            "import socket\n\
             try: socket.create_connection(('93.184.216.34', 80), 5)\n\
             except OSError as error: raise SystemExit(str(error))",
        );
        let tried = allowing(&Desk::new(), &["allowed.test"], &direct);
        assert!(tried.words.contains(TAKES_NO_PROXY), "{}", tried.explain());
        assert!(!tried.words.contains("the network is off"), "{}", tried.explain());
        let off = attempt(&Desk::new(), "A", &[], move |_| direct.clone());
        assert!(off.words.contains("the network is off"), "{}", off.explain());
    });
}
