//! What a command makes that stays, or that takes long, is put right while it runs, and people and the
//! model hear of it.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, needs, until};
use protocol::client::{ClientEvent, FromClient, SessionWish};
use protocol::ids::SessionId;
use protocol::judgement::PermissionMode;
use serde_json::json;
use std::fs;
use std::process::Command;

const TIERS: [&str; 2] = ["a", "b"];
const NAMES: [&str; 4] = [".envrc", ".mcp.json", ".vscode/tasks.json", ".claude/settings.json"];
/// Makes these names, a repository that runs a program, and a plain file.
const MAKE: &str = "git init -q src/data; git -C src/data config core.fsmonitor \"$PWD/run\"; \
     echo x > .envrc; echo {} > .mcp.json; mkdir -p .vscode .claude; echo {} > .vscode/tasks.json; \
     echo {} > .claude/settings.json; echo x > plain; echo begun";

/// A desk of this tier, with more lines of the person's configuration.
fn desk(tier: &str, more: &str) -> Desk {
    needs("git");
    let desk = Desk::new();
    let file = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, format!("[sandbox]\ntier = \"{tier}\"\n{more}")).unwrap();
    desk
}

fn session(desk: &Desk, server: &Server) -> (Wire, SessionId) {
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(server);
    opening.mode = Some(PermissionMode::Auto);
    let session = wire.open(&opening);
    (wire, session)
}

/// Waits until a notice names this path, and no call has ended before.
fn notice(wire: &mut Wire, path: &str) -> String {
    let path = format!("{path} is new, and was moved to");
    wire.event("the notice", |event| match event {
        ClientEvent::Notice { text } if text.contains(&path) => Some(text.clone()),
        ClientEvent::CallEnded { result, .. } => panic!("it ended before: {}", result.text),
        _ => None,
    })
}

/// No name is left, and the plain file is.
fn is_right(desk: &Desk) -> bool {
    let config = fs::read_to_string(desk.project().join("src/data/.git/config"));
    !NAMES.iter().any(|name| desk.project().join(name).exists())
        && !config.is_ok_and(|text| text.contains("fsmonitor"))
        && desk.project().join("plain").exists()
}

fn bash(command: &str, background: bool) -> Answer {
    let input = json!({ "command": command, "background": background });
    Answer::says([call("toolu_1", "bash", &input.to_string())])
}

#[test]
fn a_command_in_the_background() {
    for tier in TIERS {
        let desk = desk(tier, "");
        let script = format!(
            "{MAKE}; while ! test -e again; do sleep 0.1; done; echo x > .envrc; sleep 600"
        );
        let stop = |id, tool| Answer::says([call(id, tool, r#"{"call": 1}"#)]);
        let server = Server::scripted([
            bash(&script, true),
            Answer::text("It runs."),
            stop("toolu_2", "bash_output"),
            stop("toolu_3", "bash_stop"),
            Answer::text("Over."),
            Answer::text("I see."),
        ]);
        let _daemon = desk.daemon();
        let (mut wire, session) = session(&desk, &server);
        wire.prompt(&session, "serve");
        let said = notice(&mut wire, ".envrc");
        assert!(said.starts_with("call 1 (bash) runs, and meanwhile "), "{said}");
        until("all is put right", || is_right(&desk));
        // Once more, with no turn.
        desk.write("again", "");
        notice(&mut wire, ".envrc");
        until("it is moved aside again", || is_right(&desk));
        wire.prompt(&session, "and now?");
        wire.event("its end", |event| {
            matches!(event, ClientEvent::CallEnded { call, .. } if call.number == 1).then_some(())
        });
        let messages = server.requests().last().unwrap().body["messages"].to_string();
        assert!(messages.contains("[protected file: .envrc is new"), "{messages}");
        let record = desk.ended(1);
        assert_eq!(record["enforced"]["tier"], tier.to_uppercase(), "{record:#}");
        let tampered = record["tampered"].to_string();
        for name in [".envrc", ".mcp.json", ".vscode/tasks.json", ".claude", "src/data/.git/config"]
        {
            assert!(tampered.contains(&format!("{name} is new")), "{name}: {tampered}");
        }
        assert_eq!(tampered.matches(".envrc is new").count(), 2, "{tampered}");
    }
}

#[test]
fn a_command_that_a_person_sends_to_the_background() {
    for tier in TIERS {
        let desk = desk(tier, "");
        let server =
            Server::scripted([bash(&format!("{MAKE}; sleep 600"), false), Answer::text("On.")]);
        let _daemon = desk.daemon();
        let (mut wire, session) = session(&desk, &server);
        wire.prompt(&session, "work");
        wire.event("its output", |event| {
            matches!(event, ClientEvent::Output { text, .. } if text.contains("begun"))
                .then_some(())
        });
        wire.say(FromClient::Wish { session: session.clone(), wish: SessionWish::Background });
        notice(&mut wire, ".envrc");
        until("all is put right", || is_right(&desk));
    }
}

#[test]
fn a_command_that_the_conversation_waits_for() {
    for tier in TIERS {
        let desk = desk(tier, "");
        let server =
            Server::scripted([bash(&format!("{MAKE}; sleep 600"), false), Answer::text("On.")]);
        let _daemon = desk.daemon();
        let (mut wire, session) = session(&desk, &server);
        wire.prompt(&session, "work");
        notice(&mut wire, ".envrc");
        until("all is put right", || is_right(&desk));
    }
}

#[test]
fn an_mcp_server_that_writes() {
    for tier in TIERS {
        let lines = "[mcp.test]\ncommand = [\"python3\", \"server.py\"]\nwrite = true\n";
        needs("python3");
        let desk = desk(tier, lines);
        desk.write("server.py", include_str!("../data/mcp_server.py"));
        let write = |id, path| {
            let input = json!({ "path": path }).to_string();
            Answer::says([call(id, "mcp__test__write", &input)])
        };
        let server = Server::scripted([
            write("toolu_1", "plain"),
            write("toolu_2", ".envrc"),
            Answer::text("Written."),
        ]);
        let _daemon = desk.daemon();
        let (mut wire, session) = session(&desk, &server);
        wire.servers_ready(&session);
        wire.prompt(&session, "write");
        let said = wire.event("the notice", |event| match event {
            ClientEvent::Notice { text } if text.contains(".envrc is new") => Some(text.clone()),
            _ => None,
        });
        assert!(said.contains("(mcp_writer) runs, and meanwhile"), "{said}");
        until("it is moved aside", || is_right(&desk));
    }
}

/// In tier B the command in the background has the settings' earlier state, and would put it back.
#[test]
fn a_call_that_may_change_git_s_settings_keeps_its_change() {
    let desk = desk("b", "[permissions]\nallow = [\"git-admin:*\"]\n");
    let git = Command::new("git").args(["init", "-q"]).current_dir(desk.project()).status();
    assert!(git.unwrap().success());
    let change =
        json!({ "command": "git config core.pager less; sleep 1", "git_settings": "write" });
    let server = Server::scripted([
        bash("sleep 600", true),
        Answer::says([call("toolu_2", "bash", &change.to_string())]),
        Answer::text("Set."),
    ]);
    let _daemon = desk.daemon();
    let (mut wire, session) = session(&desk, &server);
    wire.prompt(&session, "set it");
    wire.turn_ends();
    // Longer than from one comparison to the next.
    std::thread::sleep(std::time::Duration::from_secs(5));
    let config = fs::read_to_string(desk.project().join(".git/config")).unwrap();
    assert!(config.contains("pager = less"), "{config} {:#}", desk.ended(2));
}
