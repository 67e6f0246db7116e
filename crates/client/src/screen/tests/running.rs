//! What runs and what waits: the list, what can be done about a row, and the commands for it.

use super::*;
use crate::running::{
    RunningAction, RunningThing, likely_ports, running_actions, running_rows, session_cost,
};
use protocol::client::{SessionCost, SessionStatus};
use protocol::confinement::{Enforced, FilePath, Tier};
use protocol::mcp::{ServerReport, ServerState};

fn proposed(number: u32, tool: &str, input: &str, origin: CallOrigin) -> ClientEvent {
    let (tool, input) = (tool.to_owned(), input.to_owned());
    ClientEvent::Proposed { call: Call { id: call_id(number), origin, tool, input } }
}

fn started(number: u32) -> ClientEvent {
    let enforced = Enforced { tier: Tier::A, ..Enforced::nothing("command") };
    ClientEvent::Started { call: call_id(number), enforced }
}

fn printed(number: u32, text: &str) -> ClientEvent {
    ClientEvent::Output { call: call_id(number), text: text.to_owned(), begun: None }
}

fn row(session: &str, state: SessionStatus, cost: SessionCost) -> SessionRow {
    SessionRow {
        session: SessionId(session.to_owned()),
        name: String::new(),
        title: "Fix it".to_owned(),
        project: FilePath::from(std::path::PathBuf::from("/home/ann/ledger")),
        model: "m".to_owned(),
        state,
        began: 0,
        last: 0,
        turns: Some(1),
        cost,
        clients: 1,
        parent: None,
    }
}

fn child() -> SessionRow {
    let session = format!("{}-2", session());
    let parent = Some(call_id(2));
    SessionRow { parent, ..row(&session, SessionStatus::Working, SessionCost::Unknown) }
}

fn server(state: ServerState) -> ServerReport {
    let (name, place) = ("docs".to_owned(), "npx docs".to_owned());
    ServerReport { name, place, sandbox: None, state, tools: Vec::new(), words: Vec::new() }
}

/// A server in the background, a sub-agent, an MCP server, and a call that asks.
fn busy(rights: ClientRights) -> Screen {
    let mut screen = screen_with(rights);
    let model = || CallOrigin::model("u");
    let text = String::new();
    for it in [
        proposed(1, "bash", r#"{"command":"python3 -m http.server 8765"}"#, model()),
        started(1),
        ClientEvent::InBackground { call: call_id(1), text },
        printed(1, "Serving HTTP on 0.0.0.0 port 8766\n\u{1b}[31mGET\u{202e} / 200\n"),
        proposed(2, "task", r#"{"description":"Find callers","prompt":"…"}"#, model()),
        printed(2, "sub-agent general works in session x\n"),
        proposed(3, "mcp_server", r#"{"name":"docs","start_ms":1}"#, CallOrigin::ServerStart),
        started(3),
        proposed(4, "bash", r#"{"command":"ls"}"#, model()),
    ] {
        screen.update(event(1, it));
    }
    let of_agent = CallId { session: child().session, number: 7 };
    let input = r#"{"path":"run.py"}"#.to_owned();
    let begun = Call { id: of_agent, origin: model(), tool: "read".to_owned(), input };
    let (text, begun) = (String::new(), Some(Box::new(begun)));
    screen.update(event(1, ClientEvent::Output { call: call_id(2), text, begun }));
    screen.update(event(1, question(4, &[])));
    screen.update(ScreenInput::Message(ToClient::Sessions(vec![
        row("ddd", SessionStatus::Ended, SessionCost::AtLeast(20_000)),
        row(&session().0, SessionStatus::Asking(1), SessionCost::Whole(120_000)),
        child(),
        row("bbb", SessionStatus::Working, SessionCost::Unknown),
        row("ccc", SessionStatus::Asking(2), SessionCost::Unknown),
    ])));
    screen
}

#[test]
fn rows_are_grouped_and_what_waits_for_a_person_comes_first_among_sessions() {
    let screen = busy(ClientRights::Full);
    let rows = running_rows(&screen, &[server(ServerState::Starts)], &|_| Some(42));
    let lines: Vec<String> = rows
        .iter()
        .map(|row| format!("{} | {} | {}", row.thing.name(), row.title, row.state))
        .collect();
    let own = session();
    assert_eq!(
        lines,
        [
            "call 1 | python3 -m http.server 8765 | background · 42 s · \u{fffd}[31mGET\u{fffd} / 200"
                .to_owned(),
            "call 4 | ls | asks you · 42 s".to_owned(),
            "agent 2 | Find callers | works · 42 s · 7 calls · read run.py".to_owned(),
            "server docs | npx docs | starts".to_owned(),
            format!("session {own} | Fix it | this one · 1 question waits · $0.12 · m · ledger"),
            "session ccc | Fix it | 2 questions wait · m · ledger".to_owned(),
            "session bbb | Fix it | working · m · ledger".to_owned(),
            "session ddd | Fix it | on disk · at least $0.02 · m · ledger".to_owned(),
        ]
    );
    assert_eq!(session_cost(SessionCost::AtLeast(0)), None);
}

#[test]
fn only_what_is_possible_is_offered() {
    let screen = busy(ClientRights::Full);
    let of = |thing: RunningThing| running_actions(&screen, &thing);
    use RunningAction as Do;
    let all = [Do::Follow(1), Do::Output(1), Do::OpenPort(1), Do::Stop(1)];
    assert_eq!(of(RunningThing::Call(1)), all);
    assert_eq!(of(RunningThing::Call(4)), [], "its question is answered where it is shown");
    assert_eq!(of(RunningThing::Agent(2)), [Do::Join(child().session), Do::Stop(2)]);
    assert_eq!(of(RunningThing::Server("docs".to_owned())), [Do::Servers]);
    assert_eq!(of(RunningThing::Session(session())), [], "one is there already");
    let other = SessionId("bbb".to_owned());
    assert_eq!(of(RunningThing::Session(other.clone())), [Do::Join(other)]);
    assert_eq!(of(RunningThing::Call(9)), [], "it is gone");
    // Who comes later does not know that it began.
    let mut later = screen_with(ClientRights::Full);
    later.update(event(1, proposed(5, "bash", r#"{"command":"make"}"#, CallOrigin::model("u"))));
    let offered = running_actions(&later, &RunningThing::Call(5));
    assert_eq!(offered, [Do::Follow(5), Do::Stop(5)]);
    let watching = busy(ClientRights::ReadOnly);
    let offered = running_actions(&watching, &RunningThing::Call(1));
    assert_eq!(offered, [Do::Follow(1), Do::Output(1)]);
    let call = screen.items().open().iter().find(|call| call.call.id == call_id(1)).unwrap();
    assert_eq!(likely_ports(call), [8765, 8766]);
}

#[test]
fn ctrl_t_answers_no_question_and_keeps_the_line_and_lists_once_all_has_come() {
    for sessions_first in [true, false] {
        let mut screen = busy(ClientRights::Full);
        types(&mut screen, "1");
        let sent = screen.update(ScreenInput::Key(KeyPress::Control('t')));
        let query = SessionQuery::Servers;
        let asks = [FromClient::List, FromClient::Query { session: session(), query }];
        assert_eq!(says(&sent), asks.iter().collect::<Vec<_>>());
        assert_eq!(screen.question().map(|asked| asked.call.number), Some(4));
        assert_eq!(screen.draft(), "1");
        let servers = || {
            let servers = vec![server(ServerState::Ended("it died".to_owned()))];
            ScreenInput::Message(ToClient::Servers { session: session(), servers })
        };
        let sessions = || ScreenInput::Message(ToClient::Sessions(vec![child()]));
        let (first, second) = match sessions_first {
            true => (sessions(), servers()),
            false => (servers(), sessions()),
        };
        assert_eq!(screen.update(first), []);
        let shown = screen.update(second);
        let [ScreenEffect::Show(ScreenItem::Note(text))] = &shown[..] else { panic!("{shown:?}") };
        for words in
            ["call 1: python3", "agent 2: Find callers", "server docs: npx docs: does not run"]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
        // The next servers are those of `:mcp`.
        let shown = screen.update(servers());
        let is_of_mcp = |it: &ScreenEffect| format!("{it:?}").contains("docs: does not run");
        assert!(shown.iter().any(is_of_mcp), "{shown:?}");
    }
}

#[test]
fn a_call_is_stopped_its_output_shown_and_its_port_opened_by_its_number() {
    let mut screen = busy(ClientRights::Full);
    let wish = SessionWish::StopCall { call: 1 };
    let stop = FromClient::Wish { session: session(), wish };
    assert_eq!(command(&mut screen, ":stop 1"), [ScreenEffect::Send(stop)]);
    let [ScreenEffect::OpenText(output)] = &command(&mut screen, ":output 1")[..] else {
        panic!("a text")
    };
    assert!(output.text().contains("\u{fffd}[31mGET\u{fffd} / 200"), "{output:?}");
    let opened = format!("{:?}", command(&mut screen, ":open 1 8765"));
    assert!(opened.contains(&format!("agentd open {} 8765 --call 1", session())), "{opened}");
    for gone in [":output 9", ":open 9 8765"] {
        let said = format!("{:?}", command(&mut screen, gone));
        assert!(said.contains("call 9 does not run"), "{said}");
    }
    let mut watching = busy(ClientRights::ReadOnly);
    assert_eq!(command(&mut watching, ":stop 1"), []);
    assert_eq!(command(&mut watching, ":open 1 8765"), []);
    assert_ne!(command(&mut watching, ":output 1"), [], "the control");
}
