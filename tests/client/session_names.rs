//! Names of sessions: given in a terminal, kept on disk, and accepted wherever an ID is.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::terminal::Tmux;
use crate::support::{Desk, Run, run};
use serde_json::Value;

/// A session in which a file was read; its ID.
fn session(desk: &Desk) -> String {
    desk.write("a.txt", "apple\n");
    let look = call("toolu_1", "read", r#"{"path":"a.txt"}"#);
    let server = Server::scripted([Answer::says([look]), Answer::text("It says `apple`.")]);
    let ran = desk.ask(&server, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.json()["session_id"].as_str().unwrap().to_owned()
}

fn rows(ran: &Run) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn name_of(desk: &Desk, id: &str) -> Value {
    let listed = rows(&run(desk.agentd(&["ls", "--json"])));
    listed.iter().find(|row| row["session_id"] == id).unwrap()["name"].clone()
}

#[test]
fn a_name_is_accepted_where_an_id_is_and_a_copy_has_none() {
    let desk = Desk::new();
    let (first, second) = (session(&desk), session(&desk));
    let server = Server::scripted([]);
    let daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["attach", &first]), (120, 34));
    one.listens();
    one.enters(":name cafe");
    one.shows("cafe could be the beginning of an ID");
    one.enters(":name -x");
    one.shows("does not begin with -");
    assert_eq!(name_of(&desk, &first), "", "a refused name is none");
    one.enters(":name  the  release");
    one.shows("the session is named \"the release\"");
    one.shows("session the release");
    assert_eq!(name_of(&desk, &first), "the release", "of a live session");
    one.press(&["C-\\", "d"]);
    one.shows("agentd attach");
    drop(daemon);

    assert_eq!(name_of(&desk, &first), "the release", "from disk");
    let table = run(desk.agentd(&["ls"])).out;
    assert!(table.contains("the release: do it"), "{table}");
    for arguments in [
        &["show", "the release"][..],
        &["export", " the  release"],
        &["export", "the release", "--format", "html"],
        &["audit", "ls", "--session", "the release"],
        &["audit", "show", "the release.1"],
    ] {
        let ran = run(desk.agentd(arguments));
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
        assert!(ran.out.contains(&first[..8]), "{arguments:?}: {}", ran.out);
        assert!(!ran.out.contains(&second[..8]), "{arguments:?}: {}", ran.out);
    }
    let none = run(desk.agentd(&["show", "the releas"]));
    assert_eq!(none.code, 2, "a part of a name is none: {}", none.out);
    let shown = run(desk.agentd(&["show", &first])).out;
    assert!(shown.contains("name the release (by "), "{shown}");

    // A name is taken away for good, and given again.
    let daemon = desk.daemon();
    let again = tmux.run("again", &desk.with_server(&server, &["attach", &first]), (120, 34));
    again.listens();
    again.enters(":name -");
    again.shows("the session has no name now");
    assert_eq!(name_of(&desk, &first), "", "of a live session");
    assert_eq!(run(desk.agentd(&["show", "the release"])).code, 2, "nothing has this name");
    assert!(run(desk.agentd(&["show", &first])).out.contains("no name (by "));
    again.press(&["C-\\", "d"]);
    again.shows("agentd attach");
    drop(daemon);
    assert_eq!(name_of(&desk, &first), "", "from disk");
    let daemon = desk.daemon();
    let given = tmux.run("given", &desk.with_server(&server, &["attach", &first]), (120, 34));
    given.listens();
    given.enters(":name the release");
    given.shows("session the release");
    given.press(&["C-\\", "d"]);
    given.shows("agentd attach");
    drop(daemon);

    // The copy is found by its ID alone.
    let _daemon = desk.daemon();
    let copied = run(desk.agentd(&["fork", "the release"]));
    assert_eq!(copied.code, 0, "{}", copied.err);
    assert_eq!(name_of(&desk, copied.out.trim()), "");
    assert_eq!(run(desk.agentd(&["show", "the release"])).code, 0, "it is unique");

    // A name that two have says which they are.
    let two = tmux.run("two", &desk.with_server(&server, &["attach", &second]), (120, 34));
    two.listens();
    two.enters(":rename the release");
    two.shows("the session is named \"the release\"");
    let which = run(desk.agentd(&["stop", "the release"]));
    assert_eq!(which.code, 2, "{}", which.err);
    assert!(which.err.contains("2 sessions are named \"the release\""), "{}", which.err);
    assert!(which.err.contains(&first) && which.err.contains(&second), "{}", which.err);
    // A fleet is not asked for it.
    let mut with_fleet = desk.agentd(&["show", "the release"]);
    with_fleet.env("AGENTD_FLEET_URL", "postgres://nobody@127.0.0.1:1/none");
    let which = run(with_fleet);
    assert!(which.err.contains(&first) && which.err.contains(&second), "{}", which.err);
    two.enters(":name another");
    two.shows("session another");
    two.press(&["C-\\", "d"]);
    // A terminal that comes later gets the name with the session.
    let three = tmux.run("three", &desk.with_server(&server, &["attach", "another"]), (120, 34));
    three.listens();
    three.shows("session another");
}
