//! A person's words for a turn that runs: they join it behind the results of the round, or are the next prompt. Once,
//! in order, through deaths.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::terminal::Tmux;
use crate::support::{Daemon, Desk, child_of, run, send, until};
use nix::sys::signal::Signal;
use protocol::client::{
    BacklogFrom, ClientEvent, ClientRights, FromClient, ProjectTrust, PromptUse, SessionStart,
    WaitingText, WhileBusy,
};
use protocol::ids::SessionId;
use protocol::judgement::{PermissionMode, PersonAnswer};
use protocol::session::{OpenTurn, TurnEnd};
use serde_json::Value;
use std::time::Duration;

const SIZE: (u16, u16) = (90, 30);

/// A call that ends when the project has the file `go`.
const WAITS: &str =
    r#"{"command":"touch begun; until test -e go; do sleep 0.05; done; echo went"}"#;

/// A hook that refuses some prompts.
const JUDGE: &str = r#"{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command",
    "command": "if grep -q three; then echo no threes >&2; exit 2; fi"}]}]}}"#;

fn waiting_call() -> Answer {
    Answer::says([call("toolu_1", "bash", WAITS)])
}

/// A turn with one call that waits, then the answers `One.` and `Two.`
fn server() -> Server {
    Server::scripted([waiting_call(), Answer::text("One."), Answer::text("Two.")])
}

/// The blocks of the last message of a request, as text.
fn last_blocks(server: &Server, request: usize) -> Vec<String> {
    let requests = server.requests();
    let messages = requests[request].body["messages"].as_array().unwrap();
    let blocks = messages.last().unwrap()["content"].as_array().unwrap();
    let text = |block: &Value| match block["type"].as_str().unwrap() {
        "text" => block["text"].as_str().unwrap().to_owned(),
        kind => kind.to_owned(),
    };
    blocks.iter().map(text).collect()
}

/// A daemon whose session is in the call.
struct Rig<'a> {
    desk: &'a Desk,
    server: Server,
    daemon: Daemon<'a>,
    wire: Wire,
    session: SessionId,
}

fn in_the_call(desk: &Desk, server: Server) -> Rig<'_> {
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(&server);
    opening.mode = Some(PermissionMode::Auto);
    opening.trust = ProjectTrust::ThisRun;
    let session = wire.open(&opening);
    wire.prompt(&session, "go");
    until("the call runs", || desk.project().join("begun").exists());
    Rig { desk, server, daemon, wire, session }
}

impl Rig<'_> {
    fn steer(&mut self, text: &str) {
        steer(&self.wire, &self.session, text);
        let all = waits(&mut self.wire, text);
        assert_eq!(all.last().unwrap().busy, WhileBusy::Steer);
    }

    /// Lets the call end; how the turn ended.
    fn goes(&mut self) -> TurnEnd {
        self.desk.write("go", "");
        turn_end(&mut self.wire)
    }
}

fn steer(wire: &Wire, session: &SessionId, text: &str) {
    let (session, text, busy) = (session.clone(), text.to_owned(), WhileBusy::Steer);
    wire.say(FromClient::Prompt { session, text, form: None, busy });
}

/// The prompts that wait, once this one is the last of them.
fn waits(wire: &mut Wire, text: &str) -> Vec<WaitingText> {
    wire.event("it waits", |event| match event {
        ClientEvent::Queue { waiting } => {
            waiting.last().is_some_and(|it| it.text == text).then(|| waiting.clone())
        }
        _ => None,
    })
}

fn turn_end(wire: &mut Wire) -> TurnEnd {
    wire.event("the turn's end", |event| match event {
        ClientEvent::TurnEnded { end } => Some(end.clone()),
        _ => None,
    })
}

#[test]
fn enter_joins_the_turn_tab_waits_and_nothing_is_interrupted() {
    let desk = Desk::new();
    let server = server();
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let agentd = ["new", "--permission-mode", "auto", "go"];
    let one = tmux.run("one", &desk.with_server(&server, &agentd), SIZE);
    until("the call runs", || desk.project().join("begun").exists());
    one.types("later");
    one.press(&["Tab"]);
    one.shows("queued: later");
    one.enters("only three");
    let screen = one.shows("joins the turn: only three");
    let place = |text: &str| screen.find(text).unwrap();
    assert!(place("joins the turn: only three") < place("queued: later"), "{screen}");
    one.enters("and fast");
    one.shows("joins the turn: and fast");
    assert_eq!(server.requests().len(), 1, "the call runs");
    desk.write("go", "");
    one.shows("joined the turn");
    one.shows("Two.");
    assert_eq!(last_blocks(&server, 1), ["tool_result", "only three", "and fast"]);
    assert_eq!(last_blocks(&server, 2), ["later"]);
    assert_eq!(server.requests().len(), 3);
    one.shows_no_more("queued:");
    let id = desk.state().join("sessions").read_dir().unwrap().next().unwrap().unwrap();
    let id = id.file_name().into_string().unwrap();
    let shown = run(desk.agentd(&["show", &id])).out;
    assert!(shown.contains("> only three  ("), "{shown}");
    assert!(shown.contains("joined the turn)"), "{shown}");
    let found = run(desk.agentd(&["ls", "--search", "only three"])).out;
    assert!(found.contains("prompt 1"), "{found}");
    let page = run(desk.agentd(&["export", &id])).out;
    assert_eq!(page.matches("only three").count(), 1, "{page}");
}

#[test]
fn what_joins_the_turn_can_be_taken_back_and_the_configuration_can_turn_the_keys_round() {
    let desk = Desk::new();
    let server = server();
    std::fs::create_dir_all(desk.home().join(".config/agentd")).unwrap();
    std::fs::write(desk.home().join(".config/agentd/config.toml"), "[ui]\nbusy = \"queue\"\n")
        .unwrap();
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let agentd = ["new", "--permission-mode", "auto", "go"];
    let one = tmux.run("one", &desk.with_server(&server, &agentd), SIZE);
    until("the call runs", || desk.project().join("begun").exists());
    one.enters("later");
    one.shows("queued: later");
    one.types("only three");
    one.press(&["Tab"]);
    one.shows("joins the turn: only three");
    one.press(&["Up"]);
    let screen = one.shows_no_more("joins the turn:");
    assert!(screen.contains("only three") && screen.contains("later"), "{screen}");
    one.press(&["C-u", "C-u", "C-u"]);
    desk.write("go", "");
    one.shows("One.");
    assert_eq!(last_blocks(&server, 1), ["tool_result"]);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn words_that_come_while_the_last_answer_is_written_are_the_next_prompt() {
    let desk = Desk::new();
    let slow = Answer::text("one. two. three.").in_pieces_of(60).paced(Duration::from_millis(200));
    let server = Server::scripted([slow, Answer::text("Second.")]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    wire.event("it speaks", |event| matches!(event, ClientEvent::Delta { .. }).then_some(()));
    steer(&wire, &session, "only three");
    assert_eq!(waits(&mut wire, "only three")[0].busy, WhileBusy::Steer);
    assert_eq!(turn_end(&mut wire), TurnEnd::Done);
    let of = wire.event("the words", |event| match event {
        ClientEvent::Prompt { text, of } if text == "only three" => Some(*of),
        _ => None,
    });
    assert_eq!(of, PromptUse::Prompt);
    assert_eq!(turn_end(&mut wire), TurnEnd::Done);
    assert_eq!(last_blocks(&server, 1), ["only three"]);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn words_of_two_terminals_join_in_the_order_in_which_they_came() {
    let desk = Desk::new();
    let mut rig = in_the_call(&desk, server());
    let mut other = Wire::to(&desk.door());
    other.attach(&rig.session, BacklogFrom::Newest(9), ClientRights::Full);
    rig.steer("first");
    steer(&other, &rig.session, "second");
    let all = waits(&mut rig.wire, "second");
    assert_eq!(all.len(), 2);
    assert_eq!(rig.goes(), TurnEnd::Done);
    assert_eq!(last_blocks(&rig.server, 1), ["tool_result", "first", "second"]);
    assert_eq!(rig.server.requests().len(), 2);
}

#[test]
fn a_question_stays_open_beside_words_that_wait() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", r#"{"command":"echo asked > made"}"#)]),
        Answer::text("One."),
    ]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    let question = wire.question();
    steer(&wire, &session, "only three");
    waits(&mut wire, "only three");
    assert_eq!(server.requests().len(), 1);
    let (call, digest) = (question.call, question.digest);
    wire.say(FromClient::Answer { call, digest, answer: PersonAnswer::Once });
    wire.turn_ends();
    assert_eq!(last_blocks(&server, 1), ["tool_result", "only three"]);
    assert_eq!(desk.read("made"), "asked\n");
}

#[test]
fn a_command_an_undo_and_words_that_a_hook_judges_are_turns_of_their_own() {
    let desk = Desk::new();
    let mut rig = in_the_call(&desk, server());
    desk.write(".claude/commands/more.md", "Do more.");
    for text in ["/more", ":undo"] {
        steer(&rig.wire, &rig.session, text);
        let all = waits(&mut rig.wire, text);
        assert_eq!(all.last().unwrap().busy, WhileBusy::Queue, "{text}");
    }
    rig.goes();
    assert_eq!(last_blocks(&rig.server, 1), ["tool_result"]);

    let desk = Desk::new();
    desk.write(".claude/settings.json", JUDGE);
    let mut rig = in_the_call(&desk, server());
    steer(&rig.wire, &rig.session, "only three");
    assert_eq!(waits(&mut rig.wire, "only three")[0].busy, WhileBusy::Queue);
    rig.goes();
    let end = turn_end(&mut rig.wire);
    assert!(matches!(end, TurnEnd::StoppedByHook { .. }), "{end:?}");
    let sent: String = rig.server.requests().iter().map(|seen| seen.body.to_string()).collect();
    assert!(!sent.contains("only three"), "the model never gets it");
}

#[test]
fn beside_a_question_tab_lets_a_prompt_wait_and_enter_joins() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", r#"{"command":"echo asked > made"}"#)]),
        Answer::text("One."),
        Answer::text("Two."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new", "go"]), SIZE);
    one.shows("1 Allow once");
    one.types("later");
    one.press(&["Tab"]);
    one.shows("queued: later");
    one.types("only three");
    std::thread::sleep(Duration::from_millis(400));
    one.press(&["Enter"]);
    one.shows("joins the turn: only three");
    one.press(&["Down", "Up"]);
    one.shows("❯ 1 Allow once");
    std::thread::sleep(Duration::from_millis(400));
    one.press(&["Enter"]);
    one.shows("Two.");
    assert_eq!(last_blocks(&server, 1), ["tool_result", "only three"]);
    assert_eq!(last_blocks(&server, 2), ["later"]);
}

#[test]
fn a_hook_that_came_while_agentd_was_away_judges_words_that_wait() {
    let desk = Desk::new();
    let mut rig = in_the_call(&desk, server());
    rig.steer("one");
    rig.steer("only three");
    send(rig.daemon.pid, Signal::SIGKILL);
    desk.write(".claude/settings.json", JUDGE);
    let _next = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(&rig.server);
    opening.mode = Some(PermissionMode::Auto);
    opening.trust = ProjectTrust::ThisRun;
    let (session, open_turn) = (rig.session.clone(), OpenTurn::GoesOn);
    opening.start = SessionStart::Resume { session, open_turn };
    wire.open(&opening);
    assert_eq!(turn_end(&mut wire), TurnEnd::Done);
    assert_eq!(turn_end(&mut wire), TurnEnd::Done, "one passes");
    let end = turn_end(&mut wire);
    assert!(matches!(end, TurnEnd::StoppedByHook { .. }), "{end:?}");
    let sent: String = rig.server.requests().iter().map(|seen| seen.body.to_string()).collect();
    assert!(!sent.contains("only three") && sent.contains("\"one\""), "{sent}");
}

#[test]
fn a_stopped_turn_takes_no_words_and_they_are_the_next_prompt() {
    let desk = Desk::new();
    let mut rig = in_the_call(&desk, server());
    rig.steer("only three");
    rig.wire.say(FromClient::Interrupt { session: rig.session.clone() });
    assert_eq!(turn_end(&mut rig.wire), TurnEnd::Interrupted);
    assert_eq!(turn_end(&mut rig.wire), TurnEnd::Done);
    let blocks = last_blocks(&rig.server, 1);
    assert_eq!(blocks.last().unwrap(), "only three", "{blocks:?}");
    assert_eq!(rig.server.requests().len(), 2);
}

/// Kills a process while words wait; they come once.
fn killed(who: &str) {
    let desk = Desk::new();
    let server = Server::scripted([waiting_call(), Answer::text("One."), Answer::text("Two.")]);
    let mut rig = in_the_call(&desk, server);
    rig.steer("only three");
    let mut next = None;
    if who == "agentd-supervisor" {
        send(rig.daemon.pid, Signal::SIGKILL);
        next = Some(desk.daemon());
        rig.wire = Wire::to(&desk.door());
        let mut opening = desk.opening(&rig.server);
        opening.mode = Some(PermissionMode::Auto);
        let (session, open_turn) = (rig.session.clone(), OpenTurn::GoesOn);
        opening.start = SessionStart::Resume { session, open_turn };
        rig.wire.open(&opening);
    } else {
        send(child_of(rig.daemon.pid, who).unwrap(), Signal::SIGKILL);
    }
    rig.goes();
    let requests = rig.server.requests();
    let last = requests.last().unwrap().body["messages"].to_string();
    assert_eq!(last.matches("only three").count(), 1, "{who}: {last}");
    assert_eq!(last_blocks(&rig.server, 1), ["tool_result", "only three"], "{who}");
    assert_eq!(requests.len(), 2, "{who}");
    drop(next);
}

#[test]
fn words_that_wait_outlive_the_conversation() {
    killed("agentd-session");
}

#[test]
fn words_that_wait_outlive_the_supervisor() {
    killed("agentd-supervisor");
}
