//! Rewinding: the conversation as a copy, the files by recorded calls, and both; what a kill between
//! the two leaves.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::terminal::{Terminal, Tmux};
use crate::support::{Desk, run, send, until};
use nix::sys::signal::Signal;
use protocol::client::{ClientEvent, SessionRequest, ToClient};
use protocol::ids::SessionId;
use protocol::judgement::PermissionMode;
use serde_json::json;
use std::process::Command;

const SIZE: (u16, u16) = (160, 45);

/// Two turns: a file tool makes `a`; a command changes it and makes `b`. Then more words.
fn server() -> Server {
    let write = json!({"path": "a", "content": "one\n"}).to_string();
    let bash = json!({"command": "echo two > a; echo new > b"}).to_string();
    Server::scripted([
        Answer::says([call("toolu_1", "write", &write)]),
        Answer::text("One."),
        Answer::says([call("toolu_2", "bash", &bash)]),
        Answer::text("Two."),
        Answer::text("Three."),
        Answer::text("Four."),
    ])
}

fn typed(desk: &Desk, server: &Server, mode: &str) -> Command {
    desk.with_server(server, &["new", "first", "--permission-mode", mode])
}

/// A terminal behind the two turns, and its session.
fn two_turns<'a>(tmux: &'a Tmux, command: &Command, desk: &Desk) -> (Terminal<'a>, String) {
    let one = tmux.run("one", command, SIZE);
    let asks = command.get_args().any(|word| word == "ask");
    for (question, words) in [("write a", "One."), ("bash: ", "Two.")] {
        if asks {
            one.shows(question);
            one.shows("1 Allow once");
            one.press(&["Enter"]);
        }
        one.shows(words);
        one.shows("ready");
        if words == "One." {
            one.enters("second");
        }
    }
    assert_eq!((desk.read("a"), desk.read("b")), ("two\n".to_owned(), "new\n".to_owned()));
    let listed = run(desk.agentd(&["ls", "--json"])).out;
    let row: serde_json::Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    (one, row["session_id"].as_str().unwrap().to_owned())
}

/// Opens the picker by Esc Esc and chooses the second prompt, then this scope.
fn rewinds(one: &Terminal<'_>, scope: &str) {
    one.press(&["Escape"]);
    one.shows("Esc again to rewind");
    one.press(&["Escape"]);
    let screen = one.shows("rewind to the moment before");
    for row in ["round: Two.", "second", "round: One.", "first"] {
        assert!(screen.contains(row), "{row}: {screen}");
    }
    one.types("second");
    one.shows("1 of 4");
    one.press(&["Enter"]);
    one.shows("rewind what");
    one.types(scope);
    one.press(&["Enter"]);
}

#[test]
fn both_go_back_and_the_old_session_keeps_everything() {
    let (desk, server) = (Desk::new(), server());
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let (one, old) = two_turns(&tmux, &typed(&desk, &server, "auto"), &desk);
    rewinds(&one, "both");
    let screen = one.shows("rewound: this is session");
    assert!(screen.contains(&old), "the note names the old session: {screen}");
    assert_eq!(desk.read("a"), "one\n", "what the command changed is taken back");
    assert!(!desk.project().join("b").exists(), "what the command made is gone");
    let screen = one.shows("> second");
    assert!(screen.contains("One.") && !screen.contains("Two."), "{screen}");
    one.press(&["Enter"]);
    one.shows("Three.");
    let asked = server.requests()[4].body["messages"].to_string();
    assert!(asked.contains("One.") && !asked.contains("Two."), "{asked}");
    // The old one is whole, and has on record what was taken back.
    let kept = run(desk.agentd(&["show", &old])).out;
    for words in ["second", "Two.", ":rewind files 2", "Taken back: bash (call 2)"] {
        assert!(kept.contains(words), "{words}: {kept}");
    }
    // Its decision and its end.
    assert_eq!(desk.audit().iter().filter(|row| row["tool"] == "undo_restore").count(), 2);
}

#[test]
fn the_conversation_goes_back_alone_and_so_do_the_files() {
    let (desk, server) = (Desk::new(), server());
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let (one, old) = two_turns(&tmux, &typed(&desk, &server, "auto"), &desk);
    rewinds(&one, "conversation");
    one.shows("rewound: this is session");
    assert_eq!((desk.read("a"), desk.read("b")), ("two\n".to_owned(), "new\n".to_owned()));
    one.press(&["C-c"]);
    // Back in the old one: its files alone.
    one.press(&["C-p"]);
    one.shows("2 of 2");
    one.types(&old);
    one.press(&["Enter"]);
    one.shows("Two.");
    one.shows("ready");
    rewinds(&one, "files");
    one.shows("Taken back: bash (call 2)");
    assert_eq!(desk.read("a"), "one\n");
    assert!(!desk.project().join("b").exists());
    let screen = one.screen();
    assert!(screen.contains("Two.") && screen.contains(&old), "the conversation stays: {screen}");
    one.enters("and now?");
    one.shows("Three.");
    let told = server.requests()[4].body["messages"].to_string();
    assert!(told.contains("Taken back: bash (call 2)") && told.contains("Two."), "{told}");
}

#[test]
fn a_copy_goes_back_further_with_the_changes_that_it_shares() {
    let (desk, server) = (Desk::new(), server());
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let (one, _) = two_turns(&tmux, &typed(&desk, &server, "auto"), &desk);
    rewinds(&one, "conversation");
    one.shows("> second");
    // The command that changed the file afterwards is not in the copy, so nothing is overwritten.
    one.press(&["C-c"]);
    one.shows_no_more("> second");
    one.enters(":undo");
    one.shows("Not undone: write (call 1)");
    assert_eq!(desk.read("a"), "two\n");
    desk.write("a", "one\n");
    one.enters(":undo");
    one.shows("Taken back: write (call 1).");
    assert!(!desk.project().join("a").exists());
}

/// In mode `ask` each step of the files is a question, in whose midst the daemon is killed.
#[test]
fn a_kill_between_the_files_and_the_copy_loses_nothing_and_is_said() {
    let (desk, server) = (Desk::new(), server());
    let daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let (one, old) = two_turns(&tmux, &typed(&desk, &server, "ask"), &desk);
    let sessions = || run(desk.agentd(&["ls", "--json"])).out.lines().count();
    one.enters(":rewind");
    one.shows("rewind to the moment before");
    one.types("first");
    one.press(&["Enter"]);
    one.shows("rewind what");
    one.press(&["Enter"]);
    one.shows("undo_restore id 2");
    one.shows("1 Allow once");
    one.press(&["Enter"]);
    // The command is taken back; the file tool's change is asked about.
    one.shows("undo_restore id 1");
    assert_eq!(desk.read("a"), "one\n");
    send(daemon.pid, Signal::SIGKILL);
    std::mem::forget(daemon);
    let screen = one.shows("the conversation stays where it is");
    assert!(screen.contains("The undoing was cut short."), "{screen}");
    assert!(screen.contains("Taken back: bash (call 2)."), "{screen}");
    assert!(screen.contains("Not undone: write (call 1)"), "{screen}");
    assert_eq!((desk.read("a"), sessions()), ("one\n".to_owned(), 1), "no copy was made");
    // Again, to its end: what was taken back is not taken back twice.
    one.shows("ready");
    one.enters(":rewind");
    one.shows("rewind to the moment before");
    one.types("first");
    one.press(&["Enter"]);
    one.shows("rewind what");
    one.press(&["Enter"]);
    one.shows("1 Allow once");
    one.press(&["Enter"]);
    one.shows("rewound: this is session");
    assert!(!desk.project().join("a").exists());
    assert_eq!(sessions(), 2);
    let kept = run(desk.agentd(&["show", &old])).out;
    assert!(kept.contains("Two.") && kept.contains("Taken back: write (call 1)"), "{kept}");
    run(desk.agentd(&["daemon", "stop", "--force"]));
}

#[test]
fn a_command_line_copies_up_to_a_prompt() {
    let (desk, server) = (Desk::new(), server());
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mode = Some(protocol::judgement::PermissionMode::Auto);
    let opening = protocol::client::SessionRequest { mode, ..desk.opening(&server) };
    let session = wire.open(&opening);
    for text in ["first", "second"] {
        wire.prompt(&session, text);
        wire.turn_ends();
    }
    let copied = run(desk.agentd(&["fork", &session.0, "--before", "2"]));
    assert_eq!(copied.code, 0, "{copied:?}");
    let shown = run(desk.agentd(&["show", copied.out.trim()])).out;
    assert!(shown.contains("One.") && !shown.contains("second"), "{shown}");
    for (number, has) in [("3", "it has 2"), ("0", "it has 2")] {
        let refused = run(desk.agentd(&["fork", &session.0, "--before", number]));
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains(has), "{refused:?}");
    }
    let both = run(desk.agentd(&["fork", &session.0, "--before", "2", "--at", "3"]));
    assert_eq!(both.code, 2, "{both:?}");
    // And the files, by a script.
    drop(wire);
    let of = ["--resume", &session.0, "-p", ":rewind files 2", "--permission-mode", "accept-edits"];
    let ran = run(desk.with_server(&server, &of));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("Taken back: bash (call 2)."), "{ran:?}");
    assert_eq!(desk.read("a"), "one\n");
    assert!(!desk.project().join("b").exists());
}

#[test]
fn lines_list_the_places_by_number() {
    let (desk, server) = (Desk::new(), server());
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let mut command = typed(&desk, &server, "auto");
    command.arg("--inline");
    let (one, _) = two_turns(&tmux, &command, &desk);
    one.press(&["Escape"]);
    one.shows("Esc again to rewind");
    one.press(&["Escape"]);
    let screen = one.shows("type :rewind NUMBER");
    let row = screen.lines().find(|line| line.trim_end().ends_with("  second")).unwrap();
    let number = row.split_whitespace().find(|word| word.parse::<u32>().is_ok()).unwrap();
    one.enters(&format!(":rewind {number} both"));
    one.shows("rewound: this is session");
    assert_eq!(desk.read("a"), "one\n");
    one.shows("> second");
}

/// A session in mode `auto`.
fn automatic(desk: &Desk, server: &Server) -> (Wire, SessionId) {
    let mut wire = Wire::to(&desk.door());
    let mode = Some(PermissionMode::Auto);
    let session = wire.open(&SessionRequest { mode, ..desk.opening(server) });
    (wire, session)
}

/// Makes a copy by a command, and returns what it shows.
fn copied(desk: &Desk, server: &Server, session: &SessionId, at: &[&str]) -> (String, String) {
    let ran = run(desk.with_server(server, &[&["fork", &session.0], at].concat()));
    assert_eq!(ran.code, 0, "{ran:?}");
    let copy = ran.out.trim().to_owned();
    (run(desk.agentd(&["show", &copy])).out, copy)
}

#[test]
fn a_copy_made_while_a_command_runs_leaves_it_to_its_session() {
    let desk = Desk::new();
    let running = json!({"command": "echo up; sleep 7156", "background": true}).to_string();
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", &running)]),
        Answer::text("It runs."),
        Answer::text("In the copy."),
    ]);
    let _daemon = desk.daemon();
    let (mut wire, session) = automatic(&desk, &server);
    wire.prompt(&session, "start it");
    wire.turn_ends();
    let (shown, copy) = copied(&desk, &server, &session, &[]);
    assert!(shown.contains(&format!("belongs to session {session}")), "{shown}");
    let resumed = run(desk.with_server(&server, &["--resume", &copy, "-p", "and now?"]));
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let shown = run(desk.agentd(&["show", &copy])).out;
    for wrong in ["agentd ended", "protected", "supervisor"] {
        assert!(!format!("{shown}{}", resumed.err).contains(wrong), "{wrong}: {shown} {resumed:?}");
    }
    let told = server.requests()[2].body["messages"].to_string();
    assert!(told.contains("made while this call ran"), "{told}");
    assert!(!told.contains("agentd ended"), "{told}");
    // The control: it runs on in its session.
    let rows = run(desk.agentd(&["ps"])).out;
    let runs = |row: &str| row.starts_with("agentd-tool ") && row.contains(&session.0[..12]);
    assert!(rows.lines().any(|row| runs(row) && !row.contains("reserve")), "{rows}");
    run(desk.agentd(&["daemon", "stop", "--force"]));
}

#[test]
fn a_copy_up_to_a_round_has_a_turn_that_a_person_ended() {
    let (desk, server) = (Desk::new(), server());
    let _daemon = desk.daemon();
    let (mut wire, session) = automatic(&desk, &server);
    wire.prompt(&session, "first");
    wire.turn_ends();
    // Behind the result of the first call, in the midst of its turn.
    let text = std::fs::read_to_string(
        desk.state().join("sessions").join(&session.0).join("journal.jsonl"),
    );
    let text = text.unwrap();
    let result = text.lines().find(|line| line.contains(r#""kind":"RESULT""#)).unwrap();
    let seq = serde_json::from_str::<serde_json::Value>(result).unwrap()["seq"].to_string();
    let (shown, _) = copied(&desk, &server, &session, &["--at", &seq]);
    assert!(!shown.contains("supervisor"), "{shown}");
    assert!(shown.contains("first") && !shown.contains("One."), "{shown}");
}

#[test]
fn a_rewind_does_not_wait_behind_the_turn_of_another_terminal() {
    let desk = Desk::new();
    let slow = json!({"command": "touch begun; sleep 3; echo new > b"}).to_string();
    let write = json!({"path": "a", "content": "one\n"}).to_string();
    let server = Server::scripted([
        Answer::says([call("toolu_1", "write", &write)]),
        Answer::text("One."),
        Answer::says([call("toolu_2", "bash", &slow)]),
        Answer::text("Two."),
    ]);
    let _daemon = desk.daemon();
    let (mut wire, session) = automatic(&desk, &server);
    wire.prompt(&session, "first");
    wire.turn_ends();
    wire.prompt(&session, "second");
    until("the turn of one terminal runs", || desk.project().join("begun").exists());
    let mut other = Wire::to(&desk.door());
    other.attach(
        &session,
        protocol::client::BacklogFrom::Seq(u64::MAX),
        protocol::client::ClientRights::Full,
    );
    other.prompt(&session, ":rewind files 1");
    let why = other.until("a refusal", |word| match word {
        ToClient::Failed { message, .. } => Some(message.clone()),
        _ => None,
    });
    assert!(why.contains("does not wait behind a turn"), "{why}");
    wire.turn_ends();
    assert_eq!((desk.read("a"), desk.read("b")), ("one\n".to_owned(), "new\n".to_owned()));
    // The control: at rest it is done.
    other.prompt(&session, ":rewind files 2");
    wire.turn_ends();
    assert!(!desk.project().join("b").exists() && desk.project().join("a").exists());
}

#[test]
fn a_rewind_to_the_moment_before_an_undo_brings_its_files_back() {
    let (desk, server) = (Desk::new(), server());
    let _daemon = desk.daemon();
    let (mut wire, session) = automatic(&desk, &server);
    let mut prompts = |text: &str| {
        wire.prompt(&session, text);
        let mut said = String::new();
        wire.event("the end", |event| match event {
            ClientEvent::Answer { blocks, .. } => {
                said = format!("{blocks:?}");
                None
            }
            ClientEvent::TurnEnded { .. } => Some(()),
            _ => None,
        });
        said
    };
    prompts("first");
    prompts("second");
    assert_eq!((desk.read("a").as_str(), desk.project().join("b").exists()), ("two\n", true));
    // An image's name in it is a file to take back, and shows the model nothing.
    desk.write("x.png", "no image");
    let said = prompts(":undo x.png");
    assert!(said.contains("Not undone: x.png"), "{said}");
    prompts(":undo");
    assert_eq!((desk.read("a").as_str(), desk.project().join("b").exists()), ("one\n", false));
    let calls = desk.audit().iter().filter_map(|row| row["call"].as_u64()).max().unwrap();
    // The newest call is the undo: the moment before it.
    let said = prompts(&format!(":rewind files {calls}"));
    assert!(said.contains("Taken back: undo_restore"), "{said}");
    assert_eq!((desk.read("a").as_str(), desk.project().join("b").exists()), ("two\n", true));
    let said = prompts(":rewind files 2");
    assert!(said.contains("Taken back: bash (call 2)"), "{said}");
    assert_eq!((desk.read("a").as_str(), desk.project().join("b").exists()), ("one\n", false));
    assert_eq!(server.requests().len(), 4, "no undo asked the model");
}
