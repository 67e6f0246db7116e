//! The table of what runs and what waits, and the steps behind its rows.

use super::kept::{key, started};
use super::*;
use protocol::client::{SessionCost, SessionRow, SessionStatus};
use protocol::mcp::{ServerReport, ServerState};

fn printed(number: u32, text: &str) -> ClientEvent {
    let call = CallId { session: session(), number };
    ClientEvent::Output { call, text: text.to_owned(), begun: None }
}

/// A server in the background, a sub-agent, an MCP server and two other sessions; the table is open.
pub(super) fn listed(mut desk: Desk) -> Desk {
    let command = r#"{"command":"python3 -m http.server 8765"}"#;
    desk.event(ClientEvent::Proposed { call: call(7, "bash", command) });
    desk.event(started(7, "command"));
    let id = |number| CallId { session: session(), number };
    desk.event(ClientEvent::InBackground { call: id(7), text: String::new() });
    desk.event(printed(7, "GET / 200\n"));
    let task = r#"{"description":"Find the callers of total","prompt":"…"}"#;
    desk.event(ClientEvent::Proposed { call: call(8, "task", task) });
    desk.event(printed(8, "sub-agent general works in session 0123456789ab-8\n"));
    let mut begun = call(2, "read", r#"{"path":"tests/run.py"}"#);
    begun.id.session = SessionId("0123456789ab-8".to_owned());
    let (text, begun) = (String::new(), Some(Box::new(begun)));
    desk.event(ClientEvent::Output { call: id(8), text, begun });
    key(&mut desk, KeyPress::Control('t'));
    let row = |id: &str, name: &str, state, cost| SessionRow {
        session: SessionId(id.to_owned()),
        name: name.to_owned(),
        title: "Fix the failing test".to_owned(),
        project: protocol::confinement::FilePath::from(PathBuf::from("/home/ann/ledger")),
        model: "model-1".to_owned(),
        state,
        began: 0,
        last: 0,
        turns: Some(2),
        cost,
        clients: 1,
        parent: None,
    };
    let two =
        row("c0ffee000001", "the release", SessionStatus::Asking(2), SessionCost::Whole(1_230_000));
    let own = row("0123456789ab", "", SessionStatus::Working, SessionCost::Whole(120_000));
    desk.message(ToClient::Sessions(vec![own, two]));
    let report = ServerReport {
        name: "docs".to_owned(),
        place: "npx docs".to_owned(),
        sandbox: None,
        state: ServerState::Ready { after_ms: 300 },
        tools: Vec::new(),
        words: Vec::new(),
    };
    desk.message(ToClient::Servers { session: session(), servers: vec![report] });
    desk
}

fn table() -> Desk {
    let mut desk = listed(Desk::new(140, 24));
    // The rows fit the frame before.
    desk.paint();
    desk
}

fn enter() -> ScreenInput {
    ScreenInput::Key(KeyPress::Enter)
}

/// The commands that Enter gives.
fn given(desk: &mut Desk) -> Vec<String> {
    let inputs = desk.view.take(enter(), &desk.screen);
    inputs.into_iter().map(|input| format!("{input:?}")).collect()
}

#[test]
fn the_table_has_all_groups_follows_them_and_is_searched() {
    let mut desk = table();
    let shown = desk.shown();
    for (row, state) in [
        ("▸ call 7                python3 -m http.server 8765  ", "background · 0 s · GET / 200"),
        (
            "  agent 8               Find the callers of total    ",
            "works · 0 s · 2 calls · read tests",
        ),
        ("  server docs           npx docs                     ", "ready · 0 tools"),
        ("  session c0ffee000001  the release                  ", "2 questions wait · $1.23"),
    ] {
        assert!(shown.contains(&format!("{row}{state}")), "{row}{state}: {shown}");
    }
    // What comes while it is open is in it.
    desk.event(printed(7, "GET /a 404\n"));
    assert!(desk.shown().contains("GET /a 404"));
    desk.event(ended(7, ""));
    assert!(!desk.shown().contains("call 7  "), "{}", desk.shown());
    desk.types("rel");
    assert!(desk.shown().contains("▸ session c0ffee000001"), "{}", desk.shown());
    assert_eq!(desk.screen.draft(), "", "letters search and write nothing");
    key(&mut desk, KeyPress::Enter);
    assert!(desk.shown().contains("▸ join this session"));
    let joined = given(&mut desk);
    assert_eq!(joined, [r#"SwitchTo(SessionId("c0ffee000001"))"#]);
}

#[test]
fn an_end_takes_two_enters_behind_the_row_and_a_port_is_chosen_or_typed() {
    let mut desk = table();
    key(&mut desk, KeyPress::Enter);
    let shown = desk.shown();
    assert!(shown.contains("do with call 7: python3 -m http.server 8765"), "{shown}");
    desk.types("stop");
    assert_eq!(given(&mut desk), [""; 0], "the first Enter stops nothing");
    let shown = desk.shown();
    assert!(shown.contains("stop call 7") && shown.contains("Esc lets it run"), "{shown}");
    assert_eq!(given(&mut desk), [r#"Command(":stop 7")"#]);

    let mut desk = table();
    key(&mut desk, KeyPress::Enter);
    desk.types("port");
    key(&mut desk, KeyPress::Enter);
    assert!(desk.shown().contains("▸ 8765"), "{}", desk.shown());
    // A typed port is none of those that are like it.
    desk.types("876");
    assert!(desk.shown().contains("Enter opens port 876;"), "{}", desk.shown());
    assert_eq!(given(&mut desk), [r#"Command(":open 7 876")"#]);
    let mut desk = table();
    key(&mut desk, KeyPress::Enter);
    desk.types("port");
    key(&mut desk, KeyPress::Enter);
    desk.types("x");
    assert_eq!(given(&mut desk), [""; 0], "that is no port");
    key(&mut desk, KeyPress::Erase(Distance::Character, Direction::Start));
    assert_eq!(given(&mut desk), [r#"Command(":open 7 8765")"#]);
}

#[test]
fn a_followed_output_goes_on_while_its_end_is_in_view_and_names_the_end() {
    let mut desk = table();
    key(&mut desk, KeyPress::Enter);
    key(&mut desk, KeyPress::Enter);
    let print = |desk: &mut Desk, lines: std::ops::Range<u32>| {
        let text: String = lines.map(|line| format!("line {line}\n")).collect();
        desk.event(printed(7, &text));
    };
    print(&mut desk, 1..100);
    let shown = desk.shown();
    assert!(shown.contains("line 99") && !shown.contains("line 1\n"), "{shown}");
    // Who reads above it stays there.
    for _ in 0..3 {
        key(&mut desk, KeyPress::Up);
    }
    print(&mut desk, 100..110);
    assert!(!desk.shown().contains("line 109"), "{}", desk.shown());
    desk.types("G");
    print(&mut desk, 110..112);
    assert!(desk.shown().contains("line 111"), "{}", desk.shown());
    desk.event(ended(7, ""));
    let shown = desk.shown();
    assert!(shown.contains("has ended") && shown.contains("line 111"), "{shown}");
}

#[test]
fn over_a_question_the_table_takes_the_keys_and_answers_nothing() {
    let mut desk = Desk::new(140, 24);
    desk.event(ClientEvent::Proposed { call: call(9, "bash", r#"{"command":"cargo publish"}"#) });
    desk.event(question(9));
    desk.paint();
    let mut desk = listed(desk);
    assert!(
        desk.shown().contains("call 9                cargo publish                asks you"),
        "{}",
        desk.shown()
    );
    desk.types("cargo");
    assert_eq!(given(&mut desk), [""; 0], "nothing can be done with it here");
    assert!(desk.screen.question().is_some());
    assert!(desk.shown().contains("1 Allow once"), "{}", desk.shown());
}
