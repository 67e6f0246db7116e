//! The proxy of an allow-list when its command ends, and when the proxy dies or is stopped. Sent
//! bytes arrive, nothing hangs, and the record names its gaps.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::attempt::{attempt, python};
use crate::support::daemon::Wire;
use crate::support::internet::{Names, PUBLIC, Site, page, within};
use crate::support::{Desk, child_of, needs, run, send};
use nix::sys::signal::Signal;
use protocol::client::{
    ClientEvent, FromClient, ProjectTrust, SessionRequest, SessionStart, SettingChange,
};
use protocol::judgement::PermissionMode;
use protocol::session::OpenTurn;
use serde_json::json;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

fn addresses(name: &str, _: usize) -> Vec<Ipv4Addr> {
    match name {
        "allowed.test" | "also.test" => vec![PUBLIC],
        _ => Vec::new(),
    }
}

/// True if a process with this ID runs.
fn lives(pid: u32) -> bool {
    crate::support::processes().iter().any(|process| process.pid == pid)
}

#[test]
fn what_a_command_sends_before_its_end_arrives() {
    within("what_a_command_sends_before_its_end_arrives", || {
        let _names = Names::serve(addresses);
        let tunnel = TcpListener::bind((PUBLIC, 443)).unwrap();
        let got = std::thread::spawn(move || {
            let (mut stream, _) = tunnel.accept().unwrap();
            // Slow: when it begins to read, the sender has ended.
            std::thread::sleep(Duration::from_millis(500));
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            bytes.len()
        });
        let plain = Site::serve(PUBLIC, 80, |_| page("nobody reads this\n"));
        let program = python(
            "import os, socket\n\
             host, port = os.environ['http_proxy'][7:].split(':')\n\
             asked = socket.create_connection((host, int(port)), 60)\n\
             tunnel = socket.create_connection((host, int(port)), 60)\n\
             tunnel.sendall(b'CONNECT allowed.test:443 HTTP/1.1\\r\\n\\r\\n')\n\
             print(tunnel.recv(1000)[:12])\n\
             tunnel.sendall(b'x' * 6000000)\n\
             asked.sendall(b'GET http://allowed.test/last HTTP/1.1\\r\\nhost: allowed.test\\r\\n\\r\\n')\n\
             os._exit(0)",
        );
        let tried =
            attempt(&Desk::new(), "A", &["--allow-host", "allowed.test"], move |_| program.clone());
        assert_eq!(got.join().unwrap(), 6_000_000, "{}", tried.explain());
        let heads = plain.heads();
        assert!(heads.first().is_some_and(|head| head.starts_with("GET /last ")), "{heads:?}");
        let tunnel = tried.ended["connections"][0].clone();
        assert_eq!(tunnel["sent"], 6_000_000, "{tunnel:#}");
    });
}

/// Nothing of the call has happened yet.
#[test]
fn a_proxy_that_dies_before_its_command_runs_is_started_again_once() {
    within("a_proxy_that_dies_before_its_command_runs_is_started_again_once", || {
        needs("curl");
        let _names = Names::serve(addresses);
        let _site = Site::serve(PUBLIC, 80, |_| page("allowed page\n"));
        let desk = Desk::new();
        let place = crate::support::place(&desk);
        let begun = desk.outside().join("begun");
        let script = format!(
            "echo x >> '{0}'; [ $(wc -l < '{0}') -gt 1 ] || kill -9 $$; exec \"$real\" \"$@\"",
            begun.display()
        );
        crate::support::precede(&place, "agentd-web", &script);
        let command = "echo x >> ran; curl -sS http://allowed.test/";
        let input = json!({ "command": command }).to_string();
        let server = Server::scripted([
            Answer::says([call("toolu_1", "bash", &input)]),
            Answer::text("done"),
        ]);
        let flags = ["-p", "do it", "--permission-mode", "auto", "--allow-host", "allowed.test"];
        // The same surroundings, executables of their own.
        let usual = desk.with_server(&server, &[]);
        let mut command = std::process::Command::new("setsid");
        command.arg(place.join("agentd")).args(flags).env_clear().current_dir(desk.project());
        command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran = run(command);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let told = server.requests()[1].body["messages"].to_string();
        assert!(told.contains("allowed page"), "{told}");
        assert!(!told.contains("proxy"), "silently: {told}");
        assert_eq!(desk.read("ran"), "x\n", "once");
        assert_eq!(std::fs::read_to_string(begun).unwrap(), "x\nx\n");
    });
}

#[test]
fn a_proxy_that_is_stopped_holds_a_call_up_for_seconds_and_the_record_says_so() {
    within("a_proxy_that_is_stopped_holds_a_call_up_for_seconds_and_the_record_says_so", || {
        needs("curl");
        let _names = Names::serve(addresses);
        let _site = Site::serve(PUBLIC, 80, |_| page("before\n"));
        let desk = Desk::new();
        let project = desk.project();
        let begun = Instant::now();
        let tried = attempt(&desk, "A", &["--allow-host", "allowed.test"], move |live| {
            let (supervisor, project) = (live.supervisor, project.clone());
            std::thread::spawn(move || {
                crate::support::until("the first answer", || project.join("reached").exists());
                send(child_of(supervisor, "agentd-web").unwrap(), Signal::SIGSTOP);
                std::fs::write(project.join("stopped"), "").unwrap();
            });
            "curl -sS http://allowed.test/ && touch reached; until test -e stopped; do sleep 0.05; done; \
             curl -s -m 1 http://allowed.test/ || echo goes on"
                .to_owned()
        });
        assert!(tried.words.contains("before\ngoes on"), "{}", tried.explain());
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        let cut = tried.ended["connections_cut"].as_str().unwrap();
        assert!(
            cut.contains("was ended by the supervisor before it had reported everything"),
            "{cut}"
        );
        assert!(tried.words.contains(cut), "{}", tried.words);
    });
}

/// The list of processes has the proxy; it belongs to the session's hold, and its log dies with the
/// supervisor, which the record says.
#[test]
fn the_supervisor_dies_beside_a_proxy_that_is_stopped() {
    within("the_supervisor_dies_beside_a_proxy_that_is_stopped", || {
        let _names = Names::serve(addresses);
        let _site = Site::serve(PUBLIC, 80, |_| page("page\n"));
        let desk = Desk::new();
        desk.write(".agentd/config.toml", "[net]\nallow = [\"also.test\"]\n");
        let wait = json!({ "command": "curl -s http://allowed.test/ > begun; sleep 60" });
        let server = Server::scripted([
            Answer::says([call("toolu_1", "bash", &wait.to_string())]),
            Answer::text("done"),
        ]);
        let daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let trust = ProjectTrust::ThisRun;
        let opening =
            SessionRequest { mode: Some(PermissionMode::Auto), trust, ..desk.opening(&server) };
        let session = wire.open(&opening);
        let change = SettingChange::Host("allowed.test".parse().unwrap());
        wire.say(FromClient::Change { session: session.clone(), change: change.clone() });
        let mut told = Vec::new();
        wire.event("the change", |event| match event {
            ClientEvent::Changed { change: one, .. } => {
                told.push(one.clone());
                (*one == change).then_some(())
            }
            _ => None,
        });
        wire.prompt(&session, "go");
        crate::support::until("the command runs", || desk.project().join("begun").exists());
        let proxy = child_of(daemon.pid, "agentd-web").unwrap();
        let listed = run(desk.agentd(&["ps"]));
        let row = listed.out.lines().find(|line| line.contains("agentd-web")).unwrap_or_default();
        assert!(row.contains(&proxy.to_string()), "{}", listed.out);
        send(proxy, Signal::SIGSTOP);
        send(daemon.pid, Signal::SIGKILL);
        std::mem::forget(daemon);
        let _daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
        wire.open(&SessionRequest { start, mode: Some(PermissionMode::Auto), ..opening });
        assert!(!lives(proxy), "the session continued before the proxy of its call had ended");
        let audit = desk.audit();
        let ended = audit.iter().find(|record| record["event"] == "ended").unwrap();
        let cut = ended["connections_cut"].as_str().unwrap();
        assert!(cut.contains("lost with the supervisor"), "{cut}");
        let all: Vec<SettingChange> = ["also.test", "allowed.test"]
            .map(|host| SettingChange::Host(host.parse().unwrap()))
            .into();
        assert_eq!(told, all, "each host that is open now is named");
    });
}
