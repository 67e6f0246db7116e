//! The model asks the person: by options and own words, through deaths, at a terminal, and without a person.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::terminal::Tmux;
use crate::support::{Desk, child_of, run, send};
use nix::sys::signal::Signal;
use protocol::client::{
    BacklogFrom, ClientEvent, ClientRights, FromClient, OtherClients, SessionRequest, SessionStart,
};
use protocol::judgement::{ChosenAnswer, PermissionMode, PersonAnswer as Said, Question};
use protocol::session::OpenTurn;
use serde_json::{Value, json};

fn asks(questions: Value) -> Server {
    let input = json!({ "questions": questions }).to_string();
    let call = Answer::says([call("toolu_1", "AskUserQuestion", &input)]);
    Server::scripted([call, Answer::text("Thank you.")])
}

/// As other agents' models ask.
fn two() -> Value {
    json!([
        {"question": "Which store?", "header": "Store", "multiSelect": false, "options": [
            {"label": "SQLite", "description": "a file"}, {"label": "PostgreSQL", "description": ""}]},
        {"question": "Which checks?", "header": "Checks", "multiSelect": true, "options": [
            {"label": "lint", "description": ""}, {"label": "test", "description": ""}]},
    ])
}

fn chosen(labels: &[&str], words: &str) -> ChosenAnswer {
    let labels = labels.iter().map(|label| (*label).to_owned()).collect();
    ChosenAnswer { labels, words: words.to_owned() }
}

fn answer(wire: &Wire, question: &Question, answer: Said) {
    let (call, digest) = (question.call.clone(), question.digest.clone());
    wire.say(FromClient::Answer { call, digest, answer });
}

fn rejected(wire: &mut Wire) -> String {
    wire.event("a refusal", |event| match event {
        ClientEvent::AnswerRejected { reason, .. } => Some(reason.clone()),
        _ => None,
    })
}

/// The result that the last request sends.
fn result(server: &Server) -> Value {
    let body = server.requests().last().unwrap().body.clone();
    body["messages"].as_array().unwrap().last().unwrap()["content"][0].clone()
}

fn said(server: &Server) -> String {
    result(server)["content"].to_string().replace("\\n", "\n")
}

#[test]
fn the_model_gets_what_was_chosen_and_written_once_for_each_question() {
    // In no mode is there anything to allow.
    for mode in [PermissionMode::Ask, PermissionMode::Plan, PermissionMode::Auto] {
        let (desk, server) = (Desk::new(), asks(two()));
        let _daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let session = wire.open(&SessionRequest { mode: Some(mode), ..desk.opening(&server) });
        wire.prompt(&session, "go");
        let question = wire.question();
        assert_eq!(question.of_model().len(), 2, "{question:?}");
        assert!(question.confinement.contains("type no secret"), "{question:?}");
        for (wrong, why) in [
            (Said::Once, "the model asks for answers"),
            (Said::Mode(PermissionMode::Auto), "the model asks for answers"),
            (Said::Chosen(vec![chosen(&["SQLite"], "")]), "2 answers are asked for, 1 came"),
            (
                Said::Chosen(vec![chosen(&["MySQL"], ""), chosen(&["lint"], "")]),
                "no option `MySQL`",
            ),
        ] {
            answer(&wire, &question, wrong);
            let reason = rejected(&mut wire);
            assert!(reason.contains(why), "{reason}");
        }
        let good =
            Said::Chosen(vec![chosen(&["SQLite"], "in memory"), chosen(&["lint", "test"], "")]);
        answer(&wire, &question, good.clone());
        wire.turn_ends();
        let want =
            "The user answers:\n- Which store?\n  SQLite; in memory\n- Which checks?\n  lint; test";
        assert_eq!(said(&server).trim_matches('"'), want, "{}", mode.name());
        answer(&wire, &question, good);
        assert!(rejected(&mut wire).contains("answered first"));
        let audit = run(desk.agentd(&["audit", "show", &format!("{session}.1")]));
        assert!(audit.out.contains("SQLite; in memory"), "{audit:?}");
    }
}

#[test]
fn a_no_leaves_the_decision_to_the_model_with_the_reason() {
    let (desk, server) = (Desk::new(), asks(two()));
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    let question = wire.question();
    answer(&wire, &question, Said::Deny("you know better".into()));
    wire.turn_ends();
    assert!(said(&server).contains("does not answer this, and says: you know better"));
}

#[test]
fn without_a_person_the_model_is_told_to_choose_and_nothing_counts_as_refused() {
    for flags in [&[][..], &["--permission-mode", "dont-ask"]] {
        let (desk, server) = (Desk::new(), asks(two()));
        let ran = desk.ask(&server, flags);
        assert_eq!((ran.code, ran.result()), (0, "Thank you.".to_owned()), "{ran:?}");
        assert!(said(&server).contains("Nobody is here to answer. Choose"), "{}", said(&server));
        assert_ne!(result(&server)["is_error"], json!(true));
        let whole: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(whole["permission_denials"], json!([]), "{whole}");
    }
    // The control: a rule keeps the model from asking.
    let (desk, server) = (Desk::new(), asks(two()));
    desk.ask(&server, &["--disallowedTools", "ask_user"]);
    assert!(!said(&server).contains("Nobody is here"), "{}", said(&server));
}

#[test]
fn odd_questions_come_back_to_the_model_with_the_reason() {
    let (desk, server) = (Desk::new(), asks(json!([{"question": " ", "options": []}])));
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    wire.turn_ends();
    assert!(said(&server).contains("a question is empty"), "{}", said(&server));
}

/// Kills this while the question stands; it is there again, and is answered once.
fn killed(who: &str) {
    let (desk, server) = (Desk::new(), asks(two()));
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let opening = desk.opening(&server);
    let session = wire.open(&opening);
    wire.prompt(&session, "go");
    let first = wire.question();
    let again = match who {
        "agentd-supervisor" => {
            send(daemon.pid, Signal::SIGKILL);
            std::mem::forget(daemon);
            let next = desk.daemon();
            wire = Wire::to(&desk.door());
            let start =
                SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::GoesOn };
            let (same, seen) = wire.opened(&SessionRequest { start, ..opening.clone() });
            let (from, rights) = (BacklogFrom::Seq(seen), ClientRights::Full);
            let others = OtherClients::Stay;
            wire.say(FromClient::Attach { session: same, from, rights, others });
            let again = wire.question();
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
    let good = || Said::Chosen(vec![chosen(&["SQLite"], ""), chosen(&[], "none")]);
    answer(&wire, &again, good());
    answer(&wire, &again, good());
    wire.turn_ends();
    let last = server.requests().last().unwrap().body.to_string();
    assert_eq!(last.matches("The user answers:").count(), 1, "{who}: {last}");
    run(desk.agentd(&["daemon", "stop"]));
}

#[test]
fn a_question_outlives_the_conversation() {
    killed("agentd-session");
}

#[test]
fn a_question_outlives_the_broker() {
    killed("agentd-broker");
}

#[test]
fn a_question_outlives_the_supervisor() {
    killed("agentd-supervisor");
}

#[test]
fn a_terminal_asks_one_after_the_other_and_takes_words() {
    let (desk, server) = (Desk::new(), asks(two()));
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new", "go"]), (100, 30));
    let screen = one.shows("❯ 1 SQLite: a file");
    for words in ["The model asks you:", "1 of 2: Which store?", "2 PostgreSQL", "3 Do not answer"]
    {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    one.types("in memory, please");
    one.shows("Enter answers with these words");
    std::thread::sleep(std::time::Duration::from_millis(400));
    one.press(&["Enter"]);
    one.shows("2 of 2: Which checks?");
    std::thread::sleep(std::time::Duration::from_millis(400));
    one.press(&["Enter"]);
    one.shows("1 [x] lint");
    one.press(&["Down", "Down"]);
    one.shows("❯ 3 Answer with what is marked or typed");
    one.press(&["Enter"]);
    one.shows("Thank you.");
    let want = "- Which store?\n  in memory, please\n- Which checks?\n  lint";
    assert!(said(&server).contains(want), "{}", said(&server));
}

#[test]
fn a_terminal_of_lines_takes_numbers_and_words() {
    let (desk, server) = (Desk::new(), asks(two()));
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let arguments = ["new", "--screen-reader", "go"];
    let one = tmux.run("one", &desk.with_server(&server, &arguments), (100, 40));
    one.shows("type a number or your own words, then Enter");
    std::thread::sleep(std::time::Duration::from_millis(400));
    one.types("2");
    one.press(&["Enter"]);
    one.shows("2 of 2: Which checks?");
    std::thread::sleep(std::time::Duration::from_millis(400));
    one.types("only the fast ones");
    one.press(&["Enter"]);
    one.shows("Thank you.");
    let want = "- Which store?\n  PostgreSQL\n- Which checks?\n  only the fast ones";
    assert!(said(&server).contains(want), "{}", said(&server));
}
