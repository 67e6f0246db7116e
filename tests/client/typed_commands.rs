//! `!COMMAND`, end to end: the person's own call, its place in the conversation, and the model's next request.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::terminal::Tmux;
use crate::support::{Desk, run, until};
use std::fs;

const WIDE: (u16, u16) = (120, 34);

#[test]
fn the_output_of_a_typed_command_is_in_the_next_request_and_undo_takes_it_back() {
    let desk = Desk::new();
    fs::create_dir_all(desk.home().join(".config/agentd")).unwrap();
    let config = "[permissions]\ndeny = [\"bash:touch *\"]\nask = [\"bash:printf *\"]\n";
    fs::write(desk.home().join(".config/agentd/config.toml"), config).unwrap();
    let server = Server::answering(|_, _| Answer::text("I see."));
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new"]), WIDE);
    one.shows("ready");
    let two = tmux.run("two", &desk.with_server(&server, &["attach"]), WIDE);
    two.shows("ready");
    one.enters("!");
    one.shows("write a command behind `!`");
    one.press(&["C-u"]);
    // A rule asks about it, and a person has typed it.
    one.enters("!printf 'a\\033[31mb\\n' | tee made; exit 3");
    for terminal in [&one, &two] {
        let screen = terminal.shows("!printf");
        assert!(!screen.contains("Allow once"), "{screen}");
        terminal.shows("exit 3");
    }
    one.shows("ready");
    assert!(exists(&desk, "made"));
    one.enters("!touch refused");
    one.shows("⊘ !touch refused");
    one.shows("ready");
    assert!(!exists(&desk, "refused"), "a rule denies it");
    assert!(server.requests().is_empty(), "no turn asks the model");
    one.enters("what was that");
    one.shows("I see.");
    let body = server.requests()[0].body["messages"].clone();
    assert_eq!(body.as_array().unwrap().len(), 1, "{body}");
    let words = body.to_string();
    for part in ["The user ran this command", "$ printf ", "exit code: 3", "$ touch refused"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(words.find("exit code: 3") < words.find("what was that"), "{words}");
    assert!(!words.contains("\\u001b") && !words.contains("tool_result"), "{words}");
    let audit = desk.audit();
    let decided = audit.iter().find(|record| record["event"] == "decided").unwrap();
    assert_eq!(decided["basis"]["by"], "typed", "{decided}");
    let who = decided["basis"]["who"].as_str().unwrap();
    assert!(who.starts_with("terminal ") && who.contains("pts/"), "{who}");
    let call = format!("{}.1", decided["session"].as_str().unwrap());
    let shown = run(desk.agentd(&["audit", "show", &call]));
    assert!(shown.out.contains(&format!("as typed by the person at {who}")), "{}", shown.out);
    // The texts of a session have it, too.
    let session = decided["session"].as_str().unwrap();
    for command in ["show", "export"] {
        let ran = run(desk.agentd(&[command, session]));
        assert!(ran.out.contains("!printf"), "{command}: {} {}", ran.out, ran.err);
    }
    // The history of the project has it, and a pasted text of two lines is a prompt.
    let three = tmux.run("three", &desk.with_server(&server, &["new"]), WIDE);
    three.shows("ready");
    three.press(&["Up", "Up"]);
    three.shows("! !touch refused");
    three.press(&["C-u"]);
    three.pastes("!touch pasted\nsecond\n");
    three.shows("> !touch pasted");
    three.press(&["Enter"]);
    three.shows("I see.");
    assert!(!exists(&desk, "pasted"));
    three.close();
    one.shows("ready");
    one.enters(":undo");
    one.shows("Allow once");
    one.press(&["Enter"]);
    one.shows("Taken back");
    assert!(!exists(&desk, "made"));
}

fn exists(desk: &Desk, name: &str) -> bool {
    desk.project().join(name).exists()
}

#[test]
fn a_typed_command_waits_for_the_turn_and_escape_stops_it() {
    let desk = Desk::new();
    let waits = r#"{"command":"until test -e go; do sleep 0.1; done"}"#;
    let server =
        Server::scripted([Answer::says([call("toolu_1", "bash", waits)]), Answer::text("Here.")]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let agentd = ["new", "--permission-mode", "auto", "wait for it"];
    let one = tmux.run("one", &desk.with_server(&server, &agentd), WIDE);
    one.shows("until test");
    one.enters("!echo mine > mine; sleep 7341");
    one.shows("queued");
    assert!(!exists(&desk, "mine"));
    desk.write("go", "");
    one.shows("Here.");
    until("it runs", || exists(&desk, "mine"));
    one.press(&["Escape"]);
    one.shows("✗ !echo mine");
    one.shows("ready");
    until("it has ended", || !crate::support::runs("sleep 7341"));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_prompt_of_a_script_is_no_command() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("No.")]);
    let ran = run(desk.with_server(&server, &["-p", "!touch made"]));
    assert_eq!(ran.out, "No.\n", "{}", ran.err);
    let words = server.requests()[0].body["messages"].to_string();
    assert!(words.contains("\"!touch made\""), "{words}");
    assert!(!exists(&desk, "made"));
}
