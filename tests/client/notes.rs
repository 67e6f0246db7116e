//! `#TEXT`, end to end: the line in the instructions of the next session, and memories that later sessions find.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::terminal::Tmux;
use crate::support::{Desk, run};
use std::fs;
use std::os::unix::fs::PermissionsExt;

const WIDE: (u16, u16) = (120, 34);

#[test]
fn a_note_is_in_the_instructions_of_the_next_session_and_comes_back_from_a_read_only_file() {
    let desk = Desk::new();
    let agents = desk.project().join("AGENTS.md");
    fs::write(&agents, "Use tabs.").unwrap();
    fs::set_permissions(&agents, fs::Permissions::from_mode(0o444)).unwrap();
    let server = Server::answering(|_, _| Answer::text("I see."));
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new"]), WIDE);
    one.shows("ready");
    one.enters("# always use cents");
    one.shows("▸ append to AGENTS.md");
    one.press(&["Escape"]);
    one.shows_no_more("append to");
    one.press(&["Enter"]);
    one.shows("▸ append to AGENTS.md");
    one.press(&["Enter"]);
    let refused = one.shows("AGENTS.md: it is read-only");
    assert!(refused.contains("> #always use cents"), "{refused}");
    assert_eq!(fs::read_to_string(&agents).unwrap(), "Use tabs.");
    fs::set_permissions(&agents, fs::Permissions::from_mode(0o644)).unwrap();
    one.press(&["Enter"]);
    one.shows("▸ append to AGENTS.md");
    one.press(&["Enter"]);
    let done = one.shows("appended to AGENTS.md:2");
    assert!(!done.contains("> #always"), "{done}");
    assert_eq!(fs::read_to_string(&agents).unwrap(), "Use tabs.\nalways use cents\n");
    assert!(server.requests().is_empty(), "no model is asked");
    let ran = run(desk.with_server(&server, &["-p", "# is this a prompt"]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "I see.\n"), "{}", ran.err);
    let body = server.requests()[0].body.clone();
    assert!(body["system"].to_string().contains("Use tabs.\\nalways use cents"), "{body}");
    assert!(body["messages"].to_string().contains("# is this a prompt"), "{body}");
    // The last row is the prompt that it would have been.
    one.enters("# send me");
    one.shows("send as a prompt");
    one.press(&["Down", "Down", "Down", "Enter"]);
    one.shows("I see.");
    let body = server.requests()[1].body["messages"].to_string();
    assert!(body.contains("# send me"), "{body}");
}

#[test]
fn what_a_person_has_remembered_is_listed_and_found_by_a_later_session() {
    let desk = Desk::new();
    let search = r#"{"query":"cents"}"#;
    let server = Server::scripted([
        Answer::says([call("toolu_1", "memory_search", search)]),
        Answer::text("I see."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new"]), WIDE);
    one.shows("ready");
    one.enters("#always use cents");
    one.shows("remember for this project");
    one.press(&["Down", "Enter"]);
    one.shows("remembered as p1 (project)");
    one.enters("#cents in all projects");
    one.shows("remember for all projects");
    one.press(&["Down", "Down", "Enter"]);
    one.shows("remembered as u1 (user)");
    let long = "x".repeat(4_001);
    one.pastes(&format!(":note all {long}"));
    one.press(&["Enter"]);
    one.shows("the most is 4000");
    one.press(&["C-c"]);
    let listed = run(desk.agentd(&["memory", "ls"])).out;
    for (id, text) in [("p1 ", "always use cents"), ("u1 ", "cents in all projects")] {
        let row = listed.lines().find(|line| line.starts_with(id)).unwrap();
        assert!(row.contains(text), "{listed}");
    }
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert!(server.requests().is_empty(), "no model is asked");
    let ran = run(desk.with_server(&server, &["-p", "Go."]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let found = server.requests()[1].body["messages"].to_string();
    assert!(found.contains("p1 (project): always use cents"), "{found}");
    assert!(found.contains("u1 (user), saved 20"), "{found}");
}

#[test]
fn a_terminal_of_lines_is_told_the_command_of_each_way() {
    let desk = Desk::new();
    let server = Server::answering(|_, _| Answer::text("I see."));
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new", "--screen-reader"]), WIDE);
    one.shows("agentd audit ls");
    one.enters("#always use cents");
    one.shows(":note project always use cents");
    one.enters(":note agents always use cents");
    one.shows("appended to AGENTS.md:1");
    let agents = fs::read_to_string(desk.project().join("AGENTS.md")).unwrap();
    assert_eq!(agents, "always use cents\n");
    assert!(server.requests().is_empty(), "no model is asked");
}
