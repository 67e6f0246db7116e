//! Sessions of each shape, of the build of 29 November 2026 (commit 96d82687): with calls in the background, of
//! MCP servers, of hooks and of sub-agents, with questions, parts of prompts, pinned files and undos, a call cut
//! short, and one of a fleet's task. This build prints of them what that one did, byte for byte, apart from the five words
//! for the end of a call (`✓ done`, `✗ failed`, …), which came later: what is kept was printed anew for them.
//!
//! `tests/data/older_state/shapes.tar.gz` was written in a checkout of that commit by
//! `cargo test --test daemon write_each_shape -- --ignored`, and `task.tar.gz` by
//! `cargo test --test fleet write_the_state_of_a_task -- --ignored`.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Say, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, recorded, send, until};
use nix::sys::signal::Signal;
use protocol::client::{ClientEvent, FromClient, SettingChange};
use protocol::judgement::{PermissionMode, PersonAnswer};
use serde_json::{Value, json};
use std::fs;

fn says(id: &str, tool: &str, input: Value) -> Say {
    call(id, tool, &input.to_string())
}

/// The configuration of the person: a server, a hook at two events, a formatter and a verifier.
fn configured() -> Desk {
    let desk = Desk::new();
    let dir = desk.home().join(".config/agentd");
    fs::create_dir_all(&dir).unwrap();
    let config = "[permissions]\nask = [\"bash:touch *\"]\n\
                  [mcp.test]\ncommand = [\"python3\", \"server.py\"]\n\
                  [format]\ncommands = [\"*.txt: sed -i s/two/three/\"]\n\
                  [verify]\ncommands = [\"*.txt: echo looked; exit 3\"]\n";
    fs::write(dir.join("config.toml"), config).unwrap();
    fs::create_dir_all(desk.home().join(".claude")).unwrap();
    desk.write("server.py", include_str!("../data/mcp_server.py"));
    let hook = |command: &str| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let hooks = json!({"hooks": {
        "PreToolUse": hook("echo '{\"systemMessage\": \"it looked\"}'"),
        "Stop": hook("true"),
    }});
    desk.write(".claude/settings.json", &hooks.to_string());
    desk.write(
        ".claude/commands/status.md",
        "---\nallowed-tools: Bash(echo *)\n---\n!`echo at-$1`\n",
    );
    desk.write("a.txt", "one\n");
    desk.write("notes.md", "pinned words\n");
    desk
}

#[test]
#[ignore = "writes the fixture; see the file's head"]
fn write_each_shape() {
    let desk = configured();
    let edit = json!({"path": "a.txt", "old_string": "one", "new_string": "two"});
    let task = json!({"description": "a part", "prompt": "LOOK", "subagent_type": ""});
    let behind =
        json!({"command": "until test -e go; do sleep 0.1; done; echo over", "background": true});
    let bash = |id: &str, command: &str| says(id, "bash", json!({"command": command}));
    let main = [
        Answer::says([
            says("toolu_1", "mcp__test__echo", json!({"text": "hello"})),
            says("toolu_2", "read", json!({"path": "a.txt"})),
        ]),
        Answer::says([bash("toolu_3", "touch one")]),
        Answer::says([bash("toolu_4", "touch two")]),
        Answer::says([says("toolu_5", "edit", edit)]),
        Answer::says([says("toolu_6", "bash", behind)]),
        Answer::says([says("toolu_7", "Task", task)]),
        Answer::says([says("toolu_8", "bash_output", json!({"call": 99}))]),
        Answer::text("Done."),
        Answer::says([bash("toolu_9", "echo x > begun; sleep 300")]),
    ];
    let answers = |body: &Value| {
        let messages = body["messages"].as_array().unwrap();
        messages.iter().filter(|message| message["role"] == "assistant").count()
    };
    let server = Server::answering(move |_, body| {
        if body["messages"][0]["content"].to_string().contains("LOOK") {
            let read = says("toolu_1", "read", json!({"path": "notes.md"}));
            return [Answer::says([read]), Answer::text("Found.")][answers(body)].clone();
        }
        // Answers to `:undo` are not the model's.
        let texts = body["messages"].to_string();
        let undos = texts.matches("Taken back: ").count();
        main[answers(body) - undos].clone()
    });
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(&server);
    opening.mode = Some(PermissionMode::Auto);
    opening.trust = protocol::client::ProjectTrust::ThisRun;
    let session = wire.open(&opening);
    let pin = SettingChange::Pin("notes.md".into());
    wire.say(FromClient::Change { session: session.clone(), change: pin });
    wire.servers_ready(&session);
    wire.prompt(&session, "/status 7");
    for answer in [PersonAnswer::Once, PersonAnswer::Deny("Not that one.".into())] {
        let question = wire.question();
        let (call, digest) = (question.call, question.digest);
        wire.say(FromClient::Answer { call, digest, answer });
    }
    wire.turn_ends();
    desk.write("go", "");
    wire.event("the end of the command in the background", |event| match event {
        ClientEvent::CallEnded { result, .. } => result.text.contains("over").then_some(()),
        _ => None,
    });
    wire.prompt(&session, ":undo");
    wire.turn_ends();
    wire.prompt(&session, "Go on.");
    until("the last call runs", || desk.project().join("begun").exists());
    send(daemon.pid, Signal::SIGKILL);
    until("all of it has ended", || {
        let door = desk.door();
        std::os::unix::net::UnixStream::connect(door).is_err()
    });
    recorded::write(&desk, "shapes");
}

#[test]
fn each_shape_is_printed_as_before() {
    recorded::is_printed_as_before("shapes");
}

#[test]
fn a_task_of_a_fleet_is_printed_as_before() {
    recorded::is_printed_as_before("task");
}
