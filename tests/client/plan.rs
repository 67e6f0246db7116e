//! Plans: a person approves one with a mode or gives a reason, whatever dies while the question
//! stands; without a person the plan is the answer.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Say, Server, call};
use crate::support::daemon::Wire;
use crate::support::terminal::Tmux;
use crate::support::{Desk, child_of, run, send};
use nix::sys::signal::Signal;
use protocol::client::{
    BacklogFrom, ClientEvent, ClientRights, FromClient, OtherClients, SessionRequest, SessionStart,
    SettingChange,
};
use protocol::ids::SessionId;
use protocol::judgement::{PermissionMode, PersonAnswer as Said, Question};
use protocol::session::OpenTurn;
use serde_json::{Value, json};

const PLAN: &str = "1. Write `made`.\n2. Look at it.";

fn plan(id: &str) -> Answer {
    Answer::says([call(id, "ExitPlanMode", &json!({ "plan": PLAN }).to_string())])
}

fn edit(id: &str) -> Say {
    call(id, "write", &json!({"path": "made", "content": "x\n"}).to_string())
}

/// An edit too early, a plan, the same edit, and last words.
fn server() -> Server {
    Server::scripted([
        Answer::says([edit("toolu_1")]),
        plan("toolu_2"),
        Answer::says([edit("toolu_3")]),
        Answer::text("Done."),
    ])
}

fn planning(desk: &Desk, server: &Server) -> SessionRequest {
    SessionRequest { mode: Some(PermissionMode::Plan), ..desk.opening(server) }
}

fn answer(wire: &Wire, question: &Question, answer: Said) {
    let (call, digest) = (question.call.clone(), question.digest.clone());
    wire.say(FromClient::Answer { call, digest, answer });
}

/// The names of the tools that a request offers.
fn offered(server: &Server, request: usize) -> Vec<String> {
    let tools = server.requests()[request].body["tools"].clone();
    let names =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
    names.collect()
}

/// The newest result that a request sends.
fn result(server: &Server, request: usize) -> String {
    let body = &server.requests()[request].body;
    body["messages"].as_array().unwrap().last().unwrap()["content"][0]["content"].to_string()
}

/// Waits for the first two answers, of which the edit was refused, and returns the question.
#[track_caller]
fn asked(desk: &Desk, wire: &mut Wire, server: &Server) -> Question {
    let question = wire.question();
    assert!(question.is_plan(), "{question:?}");
    assert_eq!(question.preview, PLAN);
    assert!(result(server, 1).contains("nothing may be changed"), "{}", result(server, 1));
    assert!(!desk.project().join("made").exists(), "nothing changes in mode plan");
    question
}

#[test]
fn a_yes_names_a_mode_in_which_the_refused_edit_then_runs() {
    let (desk, server) = (Desk::new(), server());
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&planning(&desk, &server));
    wire.prompt(&session, "go");
    let question = asked(&desk, &mut wire, &server);
    for (wrong, why) in [
        (Said::Once, "ask, accept-edits, sandboxed, auto, dont-ask"),
        (Said::Mode(PermissionMode::Plan), "answer no instead"),
    ] {
        answer(&wire, &question, wrong);
        let reason = wire.event("a refusal", |event| match event {
            ClientEvent::AnswerRejected { reason, .. } => Some(reason.clone()),
            _ => None,
        });
        assert!(reason.contains(why), "{reason}");
    }
    answer(&wire, &question, Said::Mode(PermissionMode::AcceptEdits));
    let changed = wire.event("the change of the mode", |event| match event {
        ClientEvent::Changed { change: SettingChange::Mode(mode), by } => Some((*mode, by.clone())),
        _ => None,
    });
    assert_eq!(changed.0, PermissionMode::AcceptEdits);
    assert!(!changed.1.is_empty(), "a person changed it");
    wire.turn_ends();
    assert_eq!(desk.read("made"), "x\n");
    assert!(result(&server, 2).contains("carry the plan out"), "{}", result(&server, 2));
    let plan = "exit_plan".to_owned();
    let offers = [0, 1, 2, 3].map(|request| offered(&server, request).contains(&plan));
    assert_eq!(offers, [true, true, false, false], "offered in mode plan only");
    // Another terminal hears of the mode, and the audit log names the person.
    let seen = wire.attach(&session, BacklogFrom::Seq(1), ClientRights::ReadOnly);
    assert!(format!("{seen:?}").contains("Mode(AcceptEdits)"), "{seen:?}");
    let audit = run(desk.agentd(&["audit", "show", &format!("{session}.2")]));
    assert!(audit.out.contains(&changed.1), "{audit:?}");
}

#[test]
fn a_no_gives_the_model_its_reason_and_the_mode_stays() {
    let desk = Desk::new();
    let server = Server::scripted([
        plan("toolu_1"),
        Answer::says([edit("toolu_2")]),
        Answer::text("I plan on."),
    ]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&planning(&desk, &server));
    wire.prompt(&session, "go");
    let question = wire.question();
    answer(&wire, &question, Said::Deny("call it `named`".into()));
    wire.turn_ends();
    let told = result(&server, 1);
    assert!(told.contains("did not approve the plan: call it `named`"), "{told}");
    assert!(told.contains("stays in permission mode `plan`"), "{told}");
    assert!(result(&server, 2).contains("nothing may be changed"), "{}", result(&server, 2));
    assert!(!desk.project().join("made").exists());
    assert!(offered(&server, 2).contains(&"exit_plan".to_owned()));
}

#[test]
fn mode_ask_asks_about_the_edit_and_no_other_call_takes_a_mode() {
    let (desk, server) = (Desk::new(), server());
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&planning(&desk, &server));
    wire.prompt(&session, "go");
    let question = wire.question();
    answer(&wire, &question, Said::Mode(PermissionMode::Ask));
    let edit = wire.question();
    assert_eq!(edit.tool, "write", "mode ask asks about the edit");
    answer(&wire, &edit, Said::Mode(PermissionMode::Auto));
    let reason = wire.event("a refusal", |event| match event {
        ClientEvent::AnswerRejected { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    assert!(reason.contains("does not offer mode auto"), "{reason}");
    answer(&wire, &edit, Said::Once);
    wire.turn_ends();
    assert_eq!(desk.read("made"), "x\n");
}

#[test]
fn without_a_person_the_plan_is_the_answer_and_nothing_switches() {
    let (desk, server) = (Desk::new(), Server::scripted([plan("toolu_1"), Answer::text("Never.")]));
    let ran = desk.ask(&server, &["--permission-mode", "plan"]);
    assert_eq!((ran.code, ran.result()), (0, PLAN.to_owned()), "{ran:?}");
    assert_eq!(server.requests().len(), 1, "the turn ends with the plan");
    let text = run(desk.with_server(
        &Server::scripted([plan("toolu_1")]),
        &["-p", "plan it", "--permission-mode", "plan"],
    ));
    assert_eq!((text.code, text.out), (0, format!("{PLAN}\n")), "{}", text.err);
    // The plan can be carried out by a run in another mode.
    let later = Server::scripted([Answer::says([edit("toolu_2")]), Answer::text("Done.")]);
    let flags = ["-c", "--permission-mode", "accept-edits"];
    let ran = desk.ask(&later, &flags);
    assert_eq!((ran.code, desk.read("made")), (0, "x\n".to_owned()), "{ran:?}");
    let said = later.requests()[0].body["messages"].to_string();
    assert!(said.contains("Write `made`"), "{said}");
}

/// Kills this while the question stands; the question is there again and is answered once.
fn killed(who: &str) {
    let (desk, server) = (Desk::new(), server());
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let opening = planning(&desk, &server);
    let session = wire.open(&opening);
    wire.prompt(&session, "go");
    let first = asked(&desk, &mut wire, &server);
    let again = match who {
        "agentd-supervisor" => {
            send(daemon.pid, Signal::SIGKILL);
            std::mem::forget(daemon);
            let next = desk.daemon();
            wire = Wire::to(&desk.door());
            let seen = resumed(&mut wire, &opening, &session);
            let again = wire.question();
            assert_eq!(seen, session);
            std::mem::forget(next);
            again
        }
        "agentd-broker" => {
            send(child_of(daemon.pid, who).unwrap(), Signal::SIGKILL);
            wire.question()
        }
        _ => {
            send(child_of(daemon.pid, who).unwrap(), Signal::SIGKILL);
            // The question is the supervisor's; it stands without the conversation.
            first.clone()
        }
    };
    assert_eq!((&again.call, &again.digest), (&first.call, &first.digest), "{who}");
    answer(&wire, &again, Said::Mode(PermissionMode::AcceptEdits));
    answer(&wire, &again, Said::Mode(PermissionMode::Auto));
    wire.turn_ends();
    assert_eq!(desk.read("made"), "x\n", "{who}");
    let seen = format!("{:?}", wire.attach(&session, BacklogFrom::Seq(1), ClientRights::Full));
    assert!(seen.contains("Mode(AcceptEdits)") && !seen.contains("Mode(Auto)"), "{who}: {seen}");
    let last: Value = server.requests().last().unwrap().body.clone();
    assert_eq!(last.to_string().matches("carry the plan out").count(), 1, "{who}");
    run(desk.agentd(&["daemon", "stop"]));
}

fn resumed(wire: &mut Wire, opening: &SessionRequest, session: &SessionId) -> SessionId {
    let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::GoesOn };
    let (same, next) = wire.opened(&SessionRequest { start, ..opening.clone() });
    let (from, rights, others) = (BacklogFrom::Seq(next), ClientRights::Full, OtherClients::Stay);
    wire.say(FromClient::Attach { session: same.clone(), from, rights, others });
    same
}

#[test]
fn a_plan_outlives_the_conversation_that_showed_it() {
    killed("agentd-session");
}

#[test]
fn a_plan_outlives_the_broker_that_asks() {
    killed("agentd-broker");
}

#[test]
fn a_plan_outlives_the_supervisor() {
    killed("agentd-supervisor");
}

#[test]
fn a_terminal_shows_the_plan_with_its_keys_and_the_status_the_mode() {
    let desk = Desk::new();
    let server = Server::scripted([
        plan("toolu_1"),
        plan("toolu_2"),
        Answer::says([edit("toolu_3")]),
        Answer::text("Made."),
    ]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let arguments = ["new", "--permission-mode", "plan", "plan it"];
    let one = tmux.run("one", &desk.with_server(&server, &arguments), (100, 30));
    let screen = one.shows("1 Approve, then mode ask");
    for words in [
        "do you approve this plan?",
        "Write made.",
        "2 Approve, then mode accept-edits",
        "mode plan",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    std::thread::sleep(std::time::Duration::from_millis(400));
    one.press(&["Down", "Down", "Down"]);
    one.types("shorter");
    one.shows("Enter has the model plan on, for this reason");
    one.press(&["Enter"]);
    one.shows("“shorter”");
    one.shows("❯ 1 Approve, then mode ask");
    one.press(&["Down"]);
    one.shows("❯ 2 Approve");
    std::thread::sleep(std::time::Duration::from_millis(400));
    one.press(&["Enter"]);
    let screen = one.shows("Made.");
    assert!(screen.contains("mode accept-edits"), "{screen}");
    assert_eq!(desk.read("made"), "x\n");
    assert!(result(&server, 1).contains("shorter"), "{}", result(&server, 1));
}

#[test]
fn another_terminal_that_changes_the_mode_settles_the_plan() {
    let (desk, server) = (Desk::new(), server());
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&planning(&desk, &server));
    wire.prompt(&session, "go");
    let question = asked(&desk, &mut wire, &server);
    let mut other = Wire::to(&desk.door());
    other.attach(&session, BacklogFrom::Seq(1), ClientRights::Full);
    let mode = SettingChange::Mode(PermissionMode::AcceptEdits);
    other.say(FromClient::Change { session: session.clone(), change: mode });
    wire.event("the end of the question", |event| match event {
        ClientEvent::Decided { call, allowed: true, .. } if *call == question.call => Some(()),
        _ => None,
    });
    wire.turn_ends();
    assert_eq!(desk.read("made"), "x\n", "the turn went on in the new mode");
    answer(&wire, &question, Said::Deny("too late".into()));
    let reason = wire.event("a refusal", |event| match event {
        ClientEvent::AnswerRejected { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    assert!(reason.contains("new rules settled it"), "{reason}");
}
