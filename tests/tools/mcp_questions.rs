//! MCP servers ask people: by forms and pages, in both eras of the protocol, and through deaths.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::mcp::{AUTO, asks, desk, journals, results_of, rounds, server};
use crate::support::anthropic::{Answer, Server};
use crate::support::daemon::Wire;
use crate::support::{Daemon, Desk, child_of, send, until};
use nix::sys::signal::Signal;
use protocol::client::{
    BacklogFrom, ClientEvent, ClientRights, FromClient, SessionStart, ToClient,
};
use protocol::ids::SessionId;
use protocol::judgement::{Ask, PermissionMode, PersonAnswer, Question};
use protocol::session::OpenTurn;
use serde_json::json;

/// A terminal in a session whose model calls the tool `ask` of a server, once.
struct Asked<'a> {
    desk: &'a Desk,
    model: Server,
    daemon: Daemon<'a>,
    wire: Wire,
    session: SessionId,
}

impl<'a> Asked<'a> {
    fn what(desk: &'a Desk, what: &str) -> Self {
        let call = Answer::says([asks("toolu_1", "ask", json!({"what": what}))]);
        let model = Server::scripted([call, Answer::text("Done."), Answer::text("Done.")]);
        let daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let mut opening = desk.opening(&model);
        opening.mode = Some(PermissionMode::Auto);
        let session = wire.open(&opening);
        wire.servers_ready(&session);
        wire.prompt(&session, "go");
        Self { desk, model, daemon, wire, session }
    }

    fn answer(&self, question: &Question, answer: PersonAnswer) {
        let (call, digest) = (question.call.clone(), question.digest.clone());
        self.wire.say(FromClient::Answer { call, digest, answer });
    }

    fn rejected(&mut self) -> String {
        self.wire.event("a rejection", |event| match event {
            ClientEvent::AnswerRejected { reason, .. } => Some(reason.clone()),
            _ => None,
        })
    }

    /// The result of the call, once the turn has ended.
    fn result(&mut self) -> String {
        self.wire.turn_ends();
        results_of(&self.model)
    }

    /// Another terminal, and the questions that it is shown.
    fn attach(&mut self) -> Vec<Question> {
        self.wire = Wire::to(&self.desk.door());
        let shown = self.wire.attach(&self.session, BacklogFrom::Seq(u64::MAX), ClientRights::Full);
        let asked = shown.into_iter().filter_map(|word| match word {
            ToClient::Event { event: ClientEvent::Asked { question }, .. } => Some(question),
            _ => None,
        });
        asked.collect()
    }
}

fn form(text: &str) -> PersonAnswer {
    PersonAnswer::Form(text.to_owned())
}

#[test]
fn a_server_asks_by_form_and_gets_answers_that_fit_in_both_eras() {
    for (habit, state) in [("", ""), (", \"modern\"", " with the state")] {
        let desk = desk(&server(habit));
        let mut asked = Asked::what(&desk, "form");
        let question = asked.wire.question();
        assert_eq!(question.reason, "The MCP server test asks:", "{habit}");
        assert_eq!(
            question.preview,
            "  | Who are you?[31m\n  | The MCP server other asks:\n\n  count (whole number, 1 to 9)\n  \
             name: Your name (text, at least 2 characters, needed)\n  (the server sees this; never type a secret)\n",
            "{habit}"
        );
        let lines = ["count = 3", "name ="].map(str::to_owned).to_vec();
        assert_eq!(question.ask, Ask::Form { lines }, "{habit}");
        for (bad, why) in [
            (form("count = 3\nname ="), "`name` is needed"),
            (form("count = 12\nname = Bob"), "at most 9"),
            (PersonAnswer::Once, "fill in its form"),
            (PersonAnswer::Always("bash:*".to_owned()), "this question only"),
        ] {
            asked.answer(&question, bad);
            let reason = asked.rejected();
            assert!(reason.contains(why), "{habit}: {reason}");
        }
        asked.answer(&question, form("count = 4\nname = Zebulon"));
        let result = asked.result();
        assert!(result.contains("accept") && result.contains("Zebulon"), "{habit}: {result}");
        assert!(result.contains(state), "{habit}: {result}");
        // The record has who did what, and no answer; the model's copy is what the server said.
        let journals = journals(&desk);
        let answered: Vec<&str> =
            journals.lines().filter(|line| line.contains("ANSWERED")).collect();
        assert_eq!(answered.len(), 1, "{habit}: {answered:?}");
        assert!(answered[0].contains("accept") && !answered[0].contains("Zebulon"), "{answered:?}");
        let proposed = journals
            .lines()
            .filter(|line| line.contains("PROPOSED") && line.contains("mcp__test__ask"));
        assert_eq!(proposed.count(), 1, "{habit}: one call");
    }
}

#[test]
fn a_server_asks_for_a_visit_with_its_host_made_plain() {
    for habit in ["", ", \"modern\""] {
        let desk = desk(&server(habit));
        let mut asked = Asked::what(&desk, "visit");
        let question = asked.wire.question();
        let address =
            "  address: https://xn--bcher-kva.example/in?x=1\n  host:    xn--bcher-kva.example\n";
        assert!(question.preview.starts_with(address), "{habit}: {}", question.preview);
        asked.answer(&question, PersonAnswer::Once);
        let result = asked.result();
        assert!(result.contains("accept") && !result.contains("content\\\\"), "{habit}: {result}");
    }
}

#[test]
fn a_form_for_a_secret_is_declined_and_people_and_the_model_are_told() {
    for habit in ["", ", \"modern\""] {
        let desk = desk(&server(habit));
        let mut asked = Asked::what(&desk, "secret");
        let told = asked.wire.event("the reason", |event| match event {
            ClientEvent::Notice { text } if text.contains("secret") => Some(text.clone()),
            ClientEvent::Asked { question } => panic!("{question:?}"),
            _ => None,
        });
        assert!(told.contains("MCP server test") && told.contains("`value`"), "{habit}: {told}");
        let result = asked.result();
        assert!(result.contains("decline"), "{habit}: {result}");
        assert!(result.contains("asks for a secret (`value`)"), "{habit}: {result}");
    }
}

#[test]
fn a_person_declines_a_question_or_stops_the_turn_with_it() {
    let desk = desk(&server(""));
    let mut asked = Asked::what(&desk, "form+form");
    let first = asked.wire.question();
    asked.answer(&first, PersonAnswer::Deny(String::new()));
    let second = asked.wire.question();
    assert_ne!(first.digest, second.digest, "an answer is for one question");
    asked.answer(&first, form("name = Late"));
    assert!(asked.rejected().contains("no longer the one that you saw"));
    asked.answer(&second, PersonAnswer::Stop);
    asked.wire.turn_ends();
    assert_eq!(asked.attach(), [], "its question is closed");
    let journals = journals(&desk);
    let actions: Vec<&str> = ["decline", "cancel"]
        .into_iter()
        .filter(|action| {
            let is_it = |line: &str| line.contains("ANSWERED") && line.contains(action);
            journals.lines().any(is_it)
        })
        .collect();
    assert_eq!(actions, ["decline", "cancel"], "{journals}");
}

#[test]
fn a_script_cancels_a_question_at_once_with_the_reason() {
    for habit in ["", ", \"modern\""] {
        let desk = desk(&server(habit));
        let (ran, results, _) = rounds(&desk, &AUTO, &[("ask", json!({"what": "form"}))]);
        assert_eq!(ran.code, 0, "{habit}: {}", ran.err);
        assert!(results[0].contains("cancel"), "{habit}: {results:?}");
        assert!(results[0].contains("non-interactive"), "{habit}: {results:?}");
    }
}

#[test]
fn the_time_of_a_call_does_not_run_while_a_question_is_open() {
    for habit in ["", ", \"modern\""] {
        // `bad_servers_have_their_outcomes` has the control.
        let desk = desk(&format!("{}tool_timeout_sec = 2\n", server(habit)));
        let mut asked = Asked::what(&desk, "form");
        let question = asked.wire.question();
        std::thread::sleep(std::time::Duration::from_secs(4));
        asked.answer(&question, form("name = Bob"));
        let result = asked.result();
        assert!(result.contains("accept"), "{habit}: {result}");
    }
}

#[test]
fn a_call_that_is_cancelled_closes_its_question_and_so_does_the_server() {
    let desk = desk(&server(""));
    let mut asked = Asked::what(&desk, "form");
    let question = asked.wire.question();
    asked.wire.say(FromClient::Interrupt { session: asked.session.clone() });
    asked.wire.turn_ends();
    asked.answer(&question, form("name = Late"));
    assert!(asked.rejected().contains("not open"));
    assert_eq!(asked.attach(), []);
    drop(asked);
    let desk = crate::mcp::desk(&server(""));
    let mut asked = Asked::what(&desk, "withdrawn");
    let question = asked.wire.question();
    asked.wire.event("its end", |event| match event {
        ClientEvent::Decided { call, allowed: false, .. } => (*call == question.call).then_some(()),
        _ => None,
    });
    let result = asked.result();
    assert!(result.contains("withdrawn"), "{result}");
}

#[test]
fn a_question_survives_its_terminal_the_broker_and_the_conversation() {
    for habit in ["", ", \"modern\""] {
        let desk = desk(&format!("{}write = true\n", server(habit)));
        let mut asked = Asked::what(&desk, "form");
        let first = asked.wire.question();
        let kill = |name: &str| {
            let pid = child_of(asked.daemon.pid, name).unwrap();
            send(pid, Signal::SIGKILL);
            until("another one", || child_of(asked.daemon.pid, name).is_some_and(|it| it != pid));
        };
        kill("agentd-broker");
        let again = asked.wire.question();
        assert_eq!((&again.call, &again.digest), (&first.call, &first.digest), "{habit}");
        kill("agentd-session");
        assert_eq!(
            asked.attach(),
            std::slice::from_ref(&again),
            "{habit}: another terminal is shown it"
        );
        asked.answer(&again, form("name = Bob"));
        asked.answer(&again, form("name = Eve"));
        assert!(asked.rejected().contains("answered first"), "{habit}");
        let result = asked.result();
        assert!(result.contains("Bob") && !result.contains("Eve"), "{habit}: {result}");
        let journals = journals(&desk);
        let count = |kind: &str| journals.lines().filter(|line| line.contains(kind)).count();
        assert_eq!((count("\"ASKED\""), count("\"ANSWERED\"")), (1, 1), "{habit}: {journals}");
    }
}

#[test]
fn a_call_whose_supervisor_dies_with_a_question_open_may_have_run() {
    for habit in ["", ", \"modern\""] {
        let desk = desk(&server(habit));
        let mut asked = Asked::what(&desk, "form");
        asked.wire.question();
        send(asked.daemon.pid, Signal::SIGKILL);
        drop(asked.wire);
        let _daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let mut opening = desk.opening(&asked.model);
        opening.mode = Some(PermissionMode::Auto);
        let (session, open_turn) = (asked.session.clone(), OpenTurn::GoesOn);
        opening.start = SessionStart::Resume { session, open_turn };
        wire.open(&opening);
        until("the model learns of it", || results_of(&asked.model).contains("may have run"));
        assert!(journals(&desk).contains("INTERRUPTED"), "{habit}");
    }
}

#[test]
fn a_server_is_told_the_project_and_does_not_get_the_model_and_learns_why() {
    for habit in ["", ", \"modern\""] {
        let desk = desk(&server(habit));
        let calls = [("ask", json!({"what": "roots"})), ("ask", json!({"what": "model"}))];
        let (ran, results, _) = rounds(&desk, &AUTO, &calls);
        assert_eq!(ran.code, 0, "{habit}: {}", ran.err);
        let root = format!("file://{}", desk.project().display());
        assert!(results[0].contains(&root), "{habit}: {results:?}");
        let why = "agentd does not lend its model to servers (sampling)";
        assert!(results[1].contains(why), "{habit}: {results:?}");
    }
}
