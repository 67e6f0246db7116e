//! Commands of one answer are asked about at once, each runs at its turn, and an answer counts for what was asked alone.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Say, Server, call};
use crate::support::daemon::Wire;
use crate::support::terminal::Tmux;
use crate::support::{Desk, child_of, run, send, until};
use nix::sys::signal::Signal;
use protocol::client::{
    BacklogFrom, ClientEvent, ClientRights, FromClient, OtherClients, SessionRequest, SessionStart,
    SettingChange,
};
use protocol::confinement::Network;
use protocol::ids::SessionId;
use protocol::judgement::{PersonAnswer as Said, Question};
use protocol::session::OpenTurn;
use serde_json::json;

/// Runs until the test lets it end.
const FIRST: &str = "echo x > began; while [ ! -e go ]; do sleep 0.05; done";
const SECOND: &str = "echo x > made";

fn bash(id: &str, command: &str) -> Say {
    call(id, "bash", &json!({ "command": command }).to_string())
}

fn two() -> Server {
    let both = Answer::says([bash("toolu_1", FIRST), bash("toolu_2", SECOND)]);
    Server::scripted([both, Answer::text("Done.")])
}

fn answer(wire: &Wire, question: &Question, answer: Said) {
    let (call, digest) = (question.call.clone(), question.digest.clone());
    wire.say(FromClient::Answer { call, digest, answer });
}

/// The results that the last request sends.
fn results(server: &Server) -> String {
    let body = server.requests().last().unwrap().body.clone();
    body["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
}

fn made(desk: &Desk) -> bool {
    desk.project().join("made").exists()
}

/// Both questions of the answer, the first one of them unanswered.
fn both(desk: &Desk, server: &Server) -> (Wire, SessionId, Question, Question) {
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(server));
    wire.prompt(&session, "go");
    let (first, second) = (wire.question(), wire.question());
    assert_eq!((first.call.number, second.call.number), (1, 2));
    assert!(second.deadline > 0 && second.preview.contains(SECOND), "{second:?}");
    (wire, session, first, second)
}

/// Lets the first command run and end.
fn first_runs(desk: &Desk, wire: &Wire, first: &Question) {
    answer(wire, first, Said::Once);
    until("it runs", || desk.project().join("began").exists());
    assert!(!made(desk), "each call runs at its turn");
    desk.write("go", "");
}

/// The second call has a verdict by a person.
fn decided(wire: &mut Wire, wanted: bool) {
    wire.event("the decision about the second call", |event| match event {
        ClientEvent::Decided { call, allowed, .. } if call.number == 2 => {
            assert_eq!(*allowed, wanted);
            Some(())
        }
        _ => None,
    });
}

/// Waits for the end of the turn, in which nobody is asked any more.
fn ends_unasked(wire: &mut Wire) {
    wire.event("the end of the turn", |event| match event {
        ClientEvent::Asked { question } => panic!("asked again: {question:?}"),
        ClientEvent::TurnEnded { .. } => Some(()),
        _ => None,
    });
}

#[test]
fn both_are_asked_about_at_once_and_the_second_runs_at_its_turn_unasked() {
    let (desk, server) = (Desk::new(), two());
    let _daemon = desk.daemon();
    let (mut wire, session, first, second) = both(&desk, &server);
    answer(&wire, &second, Said::Once.noted("quickly"));
    decided(&mut wire, true);
    assert!(!made(&desk) && !desk.project().join("began").exists(), "nothing runs by it");
    first_runs(&desk, &wire, &first);
    ends_unasked(&mut wire);
    assert!(made(&desk));
    assert!(results(&server).contains("says: quickly"), "{}", results(&server));
    let audit = run(desk.agentd(&["audit", "show", &format!("{session}.2")]));
    assert!(audit.out.contains("quickly"), "{audit:?}");
}

#[test]
fn one_that_is_unanswered_when_its_turn_comes_stays_the_same_question() {
    let (desk, server) = (Desk::new(), two());
    let _daemon = desk.daemon();
    let (mut wire, _, first, second) = both(&desk, &server);
    first_runs(&desk, &wire, &first);
    let again = wire.question();
    assert_eq!((&again.call, &again.digest), (&second.call, &second.digest));
    answer(&wire, &second, Said::Once);
    ends_unasked(&mut wire);
    assert!(made(&desk));
}

#[test]
fn a_no_is_kept_and_a_stop_ends_the_turn() {
    let (desk, server) = (Desk::new(), two());
    let _daemon = desk.daemon();
    let (mut wire, session, first, second) = both(&desk, &server);
    answer(&wire, &second, Said::Deny("not now".into()));
    decided(&mut wire, false);
    first_runs(&desk, &wire, &first);
    ends_unasked(&mut wire);
    assert!(!made(&desk) && results(&server).contains("refused this call: not now"));
    // In another turn.
    let (desk, server) = (Desk::new(), two());
    let _daemon = desk.daemon();
    let (mut wire, _, _, second) = both(&desk, &server);
    answer(&wire, &second, Said::Stop);
    wire.turn_ends();
    assert!(!made(&desk) && !desk.project().join("began").exists());
    drop(session);
}

#[test]
fn what_it_may_do_has_changed_so_it_is_asked_about_again() {
    let (desk, server) = (Desk::new(), two());
    let _daemon = desk.daemon();
    let (mut wire, session, first, second) = both(&desk, &server);
    answer(&wire, &second, Said::Once);
    decided(&mut wire, true);
    let change = SettingChange::Network(Network::On);
    wire.say(FromClient::Change { session, change });
    first_runs(&desk, &wire, &first);
    let again = wire.question();
    assert_ne!(again.digest, second.digest);
    assert!(again.reason.contains("you answered before"), "{}", again.reason);
    assert!(!made(&desk));
    answer(&wire, &again, Said::Once);
    ends_unasked(&mut wire);
    assert!(made(&desk));
}

#[test]
fn a_rule_of_the_first_answer_settles_the_second_question() {
    let desk = Desk::new();
    let commands = [bash("toolu_1", "touch one"), bash("toolu_2", "touch two")];
    let server = Server::scripted([Answer::says(commands), Answer::text("Done.")]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    let (first, _) = (wire.question(), wire.question());
    answer(&wire, &first, Said::Session("bash:touch *".into()));
    decided(&mut wire, true);
    ends_unasked(&mut wire);
    assert!(desk.project().join("one").exists() && desk.project().join("two").exists());
}

#[test]
fn a_no_holds_though_the_rule_of_another_answer_would_allow_it() {
    let desk = Desk::new();
    let commands = [bash("toolu_1", "touch one"), bash("toolu_2", "touch two")];
    let server = Server::scripted([Answer::says(commands), Answer::text("Done.")]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    let (first, second) = (wire.question(), wire.question());
    answer(&wire, &second, Said::Deny("not this".into()));
    decided(&mut wire, false);
    answer(&wire, &first, Said::Session("bash:touch *".into()));
    ends_unasked(&mut wire);
    assert!(desk.project().join("one").exists() && !desk.project().join("two").exists());
}

#[test]
fn an_edit_is_asked_about_at_its_turn_with_its_file_as_it_is_then() {
    let desk = Desk::new();
    let edit = call("toolu_2", "write", &json!({"path": "made", "content": "x\n"}).to_string());
    let server = Server::scripted([
        Answer::says([bash("toolu_1", "echo before > made"), edit]),
        Answer::text("Done."),
    ]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    let first = wire.question();
    answer(&wire, &first, Said::Once);
    let second = wire.question();
    assert!(second.preview.contains("-before"), "{second:?}");
}

/// Kills this after the second question was answered, before the first.
fn killed(who: &str) {
    let (desk, server) = (Desk::new(), two());
    let daemon = desk.daemon();
    let (mut wire, _, first, second) = both(&desk, &server);
    answer(&wire, &second, Said::Once);
    decided(&mut wire, true);
    send(child_of(daemon.pid, who).unwrap(), Signal::SIGKILL);
    if who == "agentd-broker" {
        // It asks the open question again, and the other one, to which it has forgotten the answer.
        let again = [wire.question(), wire.question()];
        let again = again.iter().find(|it| it.call.number == 2).unwrap();
        assert_eq!((&again.call, &again.digest), (&second.call, &second.digest));
        answer(&wire, again, Said::Once);
        decided(&mut wire, true);
    }
    first_runs(&desk, &wire, &first);
    ends_unasked(&mut wire);
    assert!(made(&desk), "{who}");
    assert_eq!(desk.audit().iter().filter(|it| it["event"] == "ended").count(), 2, "{who}");
}

#[test]
fn an_answer_outlives_the_conversation() {
    killed("agentd-session");
}

#[test]
fn an_answer_that_died_with_the_broker_is_asked_for_again() {
    killed("agentd-broker");
}

#[test]
fn an_answer_is_gone_with_the_supervisor_and_both_are_asked_again() {
    let (desk, server) = (Desk::new(), two());
    let daemon = desk.daemon();
    let (mut wire, session, _, second) = both(&desk, &server);
    answer(&wire, &second, Said::Once);
    decided(&mut wire, true);
    send(daemon.pid, Signal::SIGKILL);
    std::mem::forget(daemon);
    let next = desk.daemon();
    wire = Wire::to(&desk.door());
    let start = SessionStart::Resume { session, open_turn: OpenTurn::GoesOn };
    let (same, seen) = wire.opened(&SessionRequest { start, ..desk.opening(&server) });
    let (from, rights, others) = (BacklogFrom::Seq(seen), ClientRights::Full, OtherClients::Stay);
    wire.say(FromClient::Attach { session: same, from, rights, others });
    let again = [wire.question(), wire.question()];
    assert!(!made(&desk) && !desk.project().join("began").exists(), "nothing runs by it");
    let of = |number| again.iter().find(|it| it.call.number == number).unwrap();
    answer(&wire, of(2), Said::Once);
    decided(&mut wire, true);
    first_runs(&desk, &wire, of(1));
    ends_unasked(&mut wire);
    assert!(made(&desk));
    std::mem::forget(next);
    run(desk.agentd(&["daemon", "stop"]));
}

#[test]
fn an_open_question_outlives_the_broker() {
    let (desk, server) = (Desk::new(), two());
    let daemon = desk.daemon();
    let (mut wire, _, _, second) = both(&desk, &server);
    send(child_of(daemon.pid, "agentd-broker").unwrap(), Signal::SIGKILL);
    let asked = [wire.question(), wire.question()];
    let first = asked.iter().find(|it| it.call.number == 1).unwrap();
    answer(&wire, &second, Said::Once);
    decided(&mut wire, true);
    first_runs(&desk, &wire, first);
    ends_unasked(&mut wire);
    assert!(made(&desk));
}

#[test]
fn a_terminal_shows_both_and_tab_goes_to_the_second() {
    let (desk, server) = (Desk::new(), two());
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new", "go"]), (100, 30));
    one.shows("question 1 of 2; Tab goes to the next");
    one.press(&["Tab"]);
    one.shows("question 2 of 2");
    std::thread::sleep(std::time::Duration::from_millis(400));
    one.press(&["Enter"]);
    one.shows_no_more("question 2 of 2");
    std::thread::sleep(std::time::Duration::from_millis(400));
    one.press(&["Enter"]);
    until("it runs", || desk.project().join("began").exists());
    desk.write("go", "");
    one.shows("Done.");
    assert!(made(&desk));
}
