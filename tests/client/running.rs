//! The table of what runs and what waits, in a person's terminal: a command in the background is found, followed and
//! stopped, and another one goes on.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Say, Server, call};
use crate::support::terminal::Tmux;
use crate::support::{Desk, run, runs, until};
use serde_json::{Value, json};

fn background(id: &str, command: &str) -> Say {
    call(id, "bash", &json!({ "command": command, "background": true }).to_string())
}

#[test]
fn a_command_in_the_background_is_listed_followed_and_stopped_and_another_goes_on() {
    let desk = Desk::new();
    let ticks = "i=0; while :; do i=$((i+1)); echo tick $i; sleep 0.2; done; sleep 7151";
    let server = Server::scripted([
        Answer::says([background("toolu_1", ticks), background("toolu_2", "sleep 7152")]),
        Answer::text("Both run."),
        Answer::text("I see."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let new = desk.with_server(&server, &["new", "--permission-mode", "auto"]);
    let one = tmux.run("one", &new, (120, 34));
    one.listens();
    one.enters("serve");
    one.shows("Both run.");
    assert!(runs("sleep 7152") && runs("7151"));

    one.press(&["C-t"]);
    one.shows("runs and waits");
    // Names have the columns of a session's.
    let row = format!("{:20}  i=0", "call 1");
    one.shows(&row);
    let listed = one.shows("sleep 7152");
    assert!(listed.contains("background"), "{listed}");
    one.shows("this one");
    one.types("call 1");
    one.press(&["Enter"]);
    one.shows("▸ follow its output");
    one.press(&["Enter"]);
    // It comes while the person looks.
    one.shows("tick 3");
    one.shows("tick 30");
    one.press(&["q"]);

    one.press(&["C-t"]);
    one.types("call 1");
    one.press(&["Enter"]);
    one.shows("▸ follow its output");
    one.types("stop");
    one.press(&["Enter"]);
    let asks = one.shows("Esc lets it run");
    assert!(runs("7151") && asks.contains("stop call 1"), "one Enter ends nothing: {asks}");
    one.press(&["Enter"]);
    one.shows("asks to stop call 1");
    until("no process of it is left", || !runs("7151"));
    assert!(runs("sleep 7152"), "the control: another one runs");
    one.press(&["C-t"]);
    one.shows("runs and waits");
    one.shows_no_more(&row);
    one.shows("sleep 7152");
    one.press(&["Escape"]);

    // The number of waiting questions and the cost are in the list of the command line too.
    let rows = run(desk.agentd(&["ls", "--json"])).out;
    let row: Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    assert_eq!((&row["state"], &row["questions"]), (&json!("background"), &json!(0)), "{row}");
    assert!(row.get("cost_usd").is_some(), "{row}");
    assert!(run(desk.agentd(&["ls"])).out.contains("COST"));
}

#[test]
fn a_terminal_of_lines_has_the_same_list_and_stops_by_number() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([background("toolu_1", "sleep 7153"), background("toolu_2", "sleep 7154")]),
        Answer::text("Both run."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let arguments = ["new", "serve", "--permission-mode", "auto", "--screen-reader"];
    let one = tmux.run("one", &desk.with_server(&server, &arguments), (120, 34));
    one.shows("Both run.");
    one.enters(":running");
    one.shows("call 1: sleep 7153: background");
    one.shows(":stop CALL ends it");
    one.enters(":stop 1");
    one.shows("asks to stop call 1");
    until("no process of it is left", || !runs("sleep 7153"));
    assert!(runs("sleep 7154"), "the control");
}
