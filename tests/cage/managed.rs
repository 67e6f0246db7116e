//! Limits of the administrator's file: no command, flag, recorded setting or answer loosens them.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::internet::{PUBLIC, Site, page, with_managed, within};
use crate::support::{Desk, needs, run, send};
use nix::sys::signal::Signal;
use protocol::client::{
    ClientEvent, FromClient, RequestFailure, SessionRequest, SessionStart, SessionWish,
    SettingChange, ToClient,
};
use protocol::confinement::Network;
use protocol::ids::SessionId;
use protocol::judgement::{PermissionMode, PersonAnswer as Said, Question};
use protocol::session::OpenTurn;
use serde_json::json;

const MANAGED: &str = "[permissions]\nmode = \"ask\"\n[net]\nmode = \"off\"\n";
const NETWORK_LINE: &str = "/etc/agentd/config.toml:4";
const MODE_LINE: &str = "/etc/agentd/config.toml:2";

fn fetch(id: &str, more: serde_json::Value) -> Answer {
    let mut input = json!({ "command": format!("curl -s -m 5 http://{PUBLIC}/; true") });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Answer::says([call(id, "bash", &input.to_string())])
}

/// Changes a setting; the error, if the change is refused.
fn change(wire: &mut Wire, session: &SessionId, change: SettingChange) -> Result<(), String> {
    wire.say(FromClient::Change { session: session.clone(), change: change.clone() });
    wire.until("the change or its refusal", |word| match word {
        ToClient::Failed { kind, message } => {
            assert_eq!(*kind, RequestFailure::Configuration, "{message}");
            Some(Err(message.clone()))
        }
        ToClient::Event { event: ClientEvent::Changed { change: made, .. }, .. }
            if *made == change =>
        {
            Some(Ok(()))
        }
        _ => None,
    })
}

/// Opens a session; its warnings.
fn notes_of_opening(wire: &mut Wire, opening: &SessionRequest) -> Vec<String> {
    wire.open_with_key(opening);
    wire.until("the session", |word| match word {
        ToClient::Opened { warnings, .. } => Some(warnings.clone()),
        ToClient::Failed { message, .. } => panic!("{message}"),
        _ => None,
    })
}

fn fails_to_open(wire: &mut Wire, opening: &SessionRequest) -> String {
    wire.open_with_key(opening);
    wire.until("a refusal", |word| match word {
        ToClient::Failed { message, .. } => Some(message.clone()),
        ToClient::Opened { network, .. } => panic!("it was opened with network {network:?}"),
        _ => None,
    })
}

#[test]
fn no_command_flag_or_answer_loosens_what_the_administrator_set() {
    within("no_command_flag_or_answer_loosens_what_the_administrator_set", || {
        needs("curl");
        let site = Site::serve(PUBLIC, 80, |_| page("a page\n"));
        let desk = Desk::new();
        let on = || json!({ "network": "on" });
        let server = Server::scripted([
            fetch("toolu_1", json!({})),
            Answer::text("done"),
            fetch("toolu_2", on()),
            Answer::text("done"),
            fetch("toolu_3", json!({})),
            fetch("toolu_4", on()),
            fetch("toolu_5", json!({ "hosts": ["example.org"] })),
            Answer::text("done"),
        ]);
        let opening = desk.opening(&server);
        let network_on = SettingChange::Network(Network::On);
        let host = SettingChange::Host("example.org".parse().unwrap());
        let auto = SettingChange::Mode(PermissionMode::Auto);

        // The positive control: without the administrator's file all of this works.
        let daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let session = wire.open(&opening);
        change(&mut wire, &session, host.clone()).unwrap();
        change(&mut wire, &session, network_on.clone()).unwrap();
        change(&mut wire, &session, auto.clone()).unwrap();
        wire.prompt(&session, "go");
        wire.turn_ends();
        assert_eq!(site.heads().len(), 1, "the network was on");
        change(&mut wire, &session, SettingChange::Network(Network::Off)).unwrap();
        wire.prompt(&session, "go");
        let question = wire.question();
        wire.say(FromClient::Answer {
            call: question.call,
            digest: question.digest,
            answer: Said::Once,
        });
        wire.turn_ends();
        assert_eq!(site.heads().len(), 2, "an answer opened the network");
        change(&mut wire, &session, network_on.clone()).unwrap();
        send(daemon.pid, Signal::SIGKILL);
        std::mem::forget(daemon);

        with_managed(MANAGED);
        let _daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let flags = [
            SessionRequest { network: Some(Network::On), ..opening.clone() },
            SessionRequest { network: Some(Network::Listed), ..opening.clone() },
        ];
        for flag in flags {
            let refused = fails_to_open(&mut wire, &flag);
            assert!(refused.contains(NETWORK_LINE), "{refused}");
        }
        let flag = SessionRequest { mode: Some(PermissionMode::Auto), ..opening.clone() };
        let refused = fails_to_open(&mut wire, &flag);
        assert!(refused.contains(MODE_LINE), "{refused}");

        let host_checked = run(desk.agentd(&["rules", "check", "host:example.org"]));
        let said = "deny: `net.mode` cannot be \"allow\"";
        assert!(
            host_checked.out.contains(said) && host_checked.out.contains(NETWORK_LINE),
            "{host_checked:?}"
        );

        // A resumed session loses what it had.
        let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
        let resumed = SessionRequest { start, ..opening };
        wire.open_with_key(&resumed);
        let (mode, network, warnings) = wire.until("the session", |word| match word {
            ToClient::Opened { mode, network, warnings, .. } => {
                Some((*mode, *network, warnings.join("\n")))
            }
            ToClient::Failed { message, .. } => panic!("{message}"),
            _ => None,
        });
        assert_eq!((mode, network), (PermissionMode::Ask, Network::Off), "{warnings}");
        assert!(warnings.contains(NETWORK_LINE) && warnings.contains(MODE_LINE), "{warnings}");
        let joined = SessionRequest {
            network: Some(Network::On),
            mode: Some(PermissionMode::Auto),
            ..resumed.clone()
        };
        let ignored = notes_of_opening(&mut wire, &joined);
        for (flag, line) in [("--net on", NETWORK_LINE), ("--permission-mode auto", MODE_LINE)] {
            let note = ignored.iter().find(|note| note.starts_with(flag)).unwrap();
            assert!(note.contains(line) && !note.contains("changes that"), "{note}");
        }
        let session = wire.open(&resumed);
        for (setting, line) in [(network_on, NETWORK_LINE), (host, NETWORK_LINE), (auto, MODE_LINE)]
        {
            let refused = change(&mut wire, &session, setting).unwrap_err();
            assert!(refused.contains("your administrator set it to"), "{refused}");
            assert!(refused.contains(line), "{refused}");
        }
        change(&mut wire, &session, SettingChange::Mode(PermissionMode::Plan)).unwrap();
        change(&mut wire, &session, SettingChange::Mode(PermissionMode::Ask)).unwrap();

        wire.prompt(&session, "go");
        let question = wire.question();
        assert_eq!(question.widens, [], "only the first call asks, for no right");
        wire.say(FromClient::Answer {
            call: question.call,
            digest: question.digest,
            answer: Said::Once,
        });
        wire.turn_ends();
        assert_eq!(site.heads().len(), 2, "no call reached the network");
        let last = server.requests().last().unwrap().body["messages"].to_string();
        assert_eq!(last.matches(NETWORK_LINE).count(), 2, "{last}");
    });
}

#[test]
fn a_rule_of_the_administrator_denies_what_a_person_types() {
    within("a_rule_of_the_administrator_denies_what_a_person_types", || {
        let desk = Desk::new();
        with_managed("[permissions]\ndeny = [\"bash:touch *\"]\nask = [\"bash:cp *\"]\n");
        desk.write("from", "");
        let server = Server::scripted([Answer::text("I see.")]);
        let _daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let session = wire.open(&desk.opening(&server));
        for (command, made) in
            [("touch made", false), ("t=touch; $t made", true), ("cp from made", true)]
        {
            let _ = std::fs::remove_file(desk.project().join("made"));
            let wish = SessionWish::Run { command: command.to_owned() };
            wire.say(FromClient::Wish { session: session.clone(), wish });
            if command.starts_with("t=") {
                // The rule perhaps denies it: the person decides as about any call.
                let Question { call, digest, reason, .. } = wire.question();
                assert!(reason.contains("/etc/agentd/config.toml"), "{reason}");
                assert!(!desk.project().join("made").exists(), "{command}");
                wire.say(FromClient::Answer { call, digest, answer: Said::Once });
            }
            wire.turn_ends();
            assert_eq!(desk.project().join("made").exists(), made, "{command}");
        }
        wire.prompt(&session, "go");
        wire.model_text("I see.");
        let words = server.requests()[0].body["messages"].to_string();
        assert!(words.contains("/etc/agentd/config.toml"), "the sentence names the rule: {words}");
    });
}

#[test]
fn where_the_administrator_lists_hosts_a_call_is_sent_to_the_list() {
    within("where_the_administrator_lists_hosts_a_call_is_sent_to_the_list", || {
        let desk = Desk::new();
        let server = Server::scripted([
            fetch("toolu_1", json!({ "network": "on" })),
            fetch("toolu_2", json!({ "hosts": ["example.org"] })),
            Answer::text("done"),
        ]);
        with_managed("[net]\nmode = \"allow\"\nallow = [\"crates.io\"]\n");
        let _daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let opening = desk.opening(&server);
        let session = wire.open(&opening);
        wire.prompt(&session, "go");
        let question = wire.question();
        assert_eq!(question.widens.len(), 1, "a person may grant a host: {question:?}");
        wire.say(FromClient::Answer {
            call: question.call,
            digest: question.digest,
            answer: Said::Once,
        });
        wire.turn_ends();
        let told = server.requests()[1].body["messages"].to_string();
        assert!(told.contains("/etc/agentd/config.toml:2"), "{told}");
        assert!(told.contains("Request the hosts with `hosts`"), "{told}");
    });
}
