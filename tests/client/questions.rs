//! Answers: how long each applies, and that it is bound to the question that the person saw.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Say, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, child_of, run, send};
use nix::sys::signal::Signal;
use protocol::client::{
    BacklogFrom, ClientEvent, ClientRights, FromClient, OtherClients, SessionRequest, SessionStart,
};
use protocol::ids::SessionId;
use protocol::judgement::{ExtraRight, PermissionMode, PersonAnswer as Said, Question, Rule};
use protocol::session::OpenTurn;
use serde_json::json;
use std::fs;
use std::path::PathBuf;

/// A command of the session's question, and the rule that covers its like.
const TOUCH: &str = "touch one";
const RULE: &str = "bash:touch *";

fn bash(id: &str, command: &str) -> Say {
    call(id, "bash", &json!({ "command": command }).to_string())
}

/// A model that asks for these commands, one an answer, and ends its turn after each.
fn commands(commands: &[&str]) -> Server {
    let answers = commands.iter().enumerate().flat_map(|(at, command)| {
        [Answer::says([bash(&format!("toolu_{at}"), command)]), Answer::text("done")]
    });
    Server::scripted(answers.collect::<Vec<_>>())
}

fn answer(wire: &Wire, question: &Question, answer: Said) {
    let (call, digest) = (question.call.clone(), question.digest.clone());
    wire.say(FromClient::Answer { call, digest, answer });
}

#[track_caller]
fn learned(wire: &mut Wire) -> (Rule, Option<String>) {
    wire.event("what was learned", |event| match event {
        ClientEvent::Learned { rule, unwritten, .. } => Some((rule.clone(), unwritten.clone())),
        _ => None,
    })
}

#[track_caller]
fn rejected(wire: &mut Wire) -> String {
    wire.event("a refusal", |event| match event {
        ClientEvent::AnswerRejected { reason, .. } => Some(reason.clone()),
        _ => None,
    })
}

/// The basis on which the next call is decided, without a question.
#[track_caller]
fn decided(wire: &mut Wire) -> String {
    wire.event("a decision without a question", |event| match event {
        ClientEvent::Decided { basis, allowed: true, .. } => Some(basis.clone()),
        ClientEvent::Asked { question } => panic!("asked: {question:?}"),
        _ => None,
    })
}

fn user_file(desk: &Desk) -> PathBuf {
    desk.home().join(".config/agentd/config.toml")
}

fn journal(desk: &Desk, session: &SessionId) -> String {
    let place = desk.state().join("sessions").join(&session.0).join("journal.jsonl");
    fs::read_to_string(place).unwrap()
}

fn resumed(wire: &mut Wire, opening: &SessionRequest, session: &SessionId) {
    let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::GoesOn };
    let (same, next) = wire.opened(&SessionRequest { start, ..opening.clone() });
    assert_eq!(same, *session);
    let (from, rights, others) = (BacklogFrom::Seq(next), ClientRights::Full, OtherClients::Stay);
    wire.say(FromClient::Attach { session: same, from, rights, others });
}

#[test]
fn an_answer_for_all_projects_is_a_rule_in_the_persons_file_before_the_call_runs() {
    let desk = Desk::new();
    let file = user_file(&desk);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "# mine\n[permissions]\nallow = [\n    \"bash:rg *\", # look\n]\n").unwrap();
    let server = commands(&[TOUCH, "touch two", "touch three"]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let opening = desk.opening(&server);
    let session = wire.open(&opening);
    wire.prompt(&session, "go");
    let question = wire.question();
    // Only a rule that allows this call, and not each one.
    for rule in ["bash:*", "bash:touch", "write:**"] {
        answer(&wire, &question, Said::Everywhere(rule.into()));
        let why = rejected(&mut wire);
        assert!(why.contains("not kept"), "{why}");
    }
    assert!(!fs::read_to_string(&file).unwrap().contains("touch"));
    answer(&wire, &question, Said::Everywhere(RULE.into()));
    let (rule, unwritten) = learned(&mut wire);
    assert_eq!((rule.text.as_str(), rule.line, unwritten), (RULE, 5, None));
    let kept =
        "# mine\n[permissions]\nallow = [\n    \"bash:rg *\", # look\n    \"bash:touch *\",\n]\n";
    assert_eq!(fs::read_to_string(&file).unwrap(), kept);
    wire.turn_ends();
    // The next one of this session passes by it, and so does one of a session that begins now.
    wire.prompt(&session, "go on");
    let basis = decided(&mut wire);
    assert!(basis.contains(RULE) && basis.contains("config.toml:5"), "{basis}");
    wire.turn_ends();
    let fresh = wire.open(&opening);
    wire.prompt(&fresh, "go");
    assert!(decided(&mut wire).contains("config.toml:5"));
    wire.turn_ends();
    for name in ["one", "two", "three"] {
        assert!(desk.project().join(name).exists(), "{name}");
    }
    let records = journal(&desk, &session);
    let at = |kind: &str| records.find(&format!("\"kind\":\"{kind}\"")).unwrap();
    assert!(at("LEARNED") < at("APPROVED"), "on disk before the decision: {records}");
}

/// The user's file for one project, beside the user's own.
fn project_files(desk: &Desk) -> Vec<PathBuf> {
    let beside = fs::read_dir(user_file(desk).parent().unwrap()).into_iter().flatten();
    let paths = beside.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.to_string_lossy().contains("/project-")).collect()
}

#[test]
fn an_answer_for_good_holds_in_its_project_alone_by_its_real_path() {
    let desk = Desk::new();
    let server = commands(&[TOUCH, "touch two", "touch three"]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let opening = desk.opening(&server);
    let session = wire.open(&opening);
    wire.prompt(&session, "go");
    let question = wire.question();
    answer(&wire, &question, Said::Always(RULE.into()));
    let (rule, unwritten) = learned(&mut wire);
    assert_eq!((rule.text.as_str(), unwritten), (RULE, None));
    wire.turn_ends();
    let files = project_files(&desk);
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(rule.file, files[0].display().to_string());
    let text = fs::read_to_string(&files[0]).unwrap();
    let project = desk.project().canonicalize().unwrap();
    assert!(text.contains(project.to_str().unwrap()) && text.contains(RULE), "{text}");
    assert!(!user_file(&desk).exists(), "no other project is concerned");
    // A session of the same project that begins now; by a link it is the same project.
    let fresh = wire.open(&opening);
    wire.prompt(&fresh, "go");
    assert!(decided(&mut wire).contains("project-"));
    wire.turn_ends();
    let link = desk.outside().join("link");
    std::os::unix::fs::symlink(&project, &link).unwrap();
    let elsewhere = desk.outside().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    for (dir, holds) in [(&link, true), (&elsewhere, false)] {
        let dir = dir.to_str().unwrap();
        let listed = run(desk.agentd(&["rules", "ls", "-C", dir])).out;
        assert_eq!(listed.contains(RULE), holds, "{dir}: {listed}");
        let checked = run(desk.agentd(&["rules", "check", "bash:touch x", "-C", dir])).out;
        assert_eq!(checked.starts_with("allow"), holds, "{dir}: {checked}");
    }
    // In another project the same call is a question.
    let project = protocol::confinement::FilePath::from(&elsewhere);
    let other = wire.open(&SessionRequest { project, ..opening.clone() });
    wire.prompt(&other, "go");
    let question = wire.question();
    assert!(question.rules().contains(&RULE.to_owned()), "{question:?}");
}

#[test]
fn an_answer_for_the_session_outlives_the_broker_and_the_daemon_and_holds_nowhere_else() {
    let desk = Desk::new();
    let server = commands(&[TOUCH, "touch two", "touch three", "touch four"]);
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let opening = desk.opening(&server);
    let session = wire.open(&opening);
    wire.prompt(&session, "go");
    let question = wire.question();
    answer(&wire, &question, Said::Session(RULE.into()));
    let (rule, _) = learned(&mut wire);
    assert_eq!((rule.text.as_str(), rule.file.as_str()), (RULE, "this session"));
    wire.turn_ends();
    send(child_of(daemon.pid, "agentd-broker").unwrap(), Signal::SIGKILL);
    wire.prompt(&session, "go on");
    assert!(decided(&mut wire).contains("this session"));
    wire.turn_ends();
    send(daemon.pid, Signal::SIGKILL);
    while wire.try_hear().is_ok() {}
    std::mem::forget(daemon);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    resumed(&mut wire, &opening, &session);
    wire.prompt(&session, "go on");
    assert!(decided(&mut wire).contains("this session"));
    wire.turn_ends();
    assert!(!user_file(&desk).exists(), "nothing is kept for good");
    // A fork is another session.
    let start = SessionStart::Fork { of: session, at: None };
    let copy = wire.open(&SessionRequest { start, ..opening });
    wire.prompt(&copy, "go on");
    let question = wire.question();
    answer(&wire, &question, Said::Deny(String::new()));
    wire.turn_ends();
    assert!(desk.project().join("three").exists() && !desk.project().join("four").exists());
}

#[test]
fn a_rule_that_cannot_be_written_holds_for_the_session_and_the_person_is_told() {
    let desk = Desk::new();
    let server = commands(&[TOUCH, "touch two"]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    // Broken after the session was opened, so that it opens and nothing can be added to it.
    let file = user_file(&desk);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "[permissions\n").unwrap();
    wire.prompt(&session, "go");
    let question = wire.question();
    answer(&wire, &question, Said::Everywhere(RULE.into()));
    let (rule, unwritten) = learned(&mut wire);
    let why = unwritten.unwrap();
    assert!(why.contains("config.toml:1"), "{why}");
    assert_eq!(rule.file, "this session");
    wire.turn_ends();
    assert_eq!(fs::read_to_string(&file).unwrap(), "[permissions\n", "left as it was");
    wire.prompt(&session, "go on");
    assert!(decided(&mut wire).contains("this session"));
    wire.turn_ends();
    assert!(desk.project().join("two").exists());
}

#[test]
fn an_answer_counts_for_what_was_seen_and_for_nothing_else() {
    let desk = Desk::new();
    let server = commands(&[TOUCH, "touch two"]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    let first = wire.question();
    let changed = Question {
        digest: first.digest.replace(|c: char| c.is_ascii_digit(), "a"),
        ..first.clone()
    };
    answer(&wire, &changed, Said::Once);
    assert!(rejected(&mut wire).contains("no longer about the call that you saw"));
    answer(&wire, &first, Said::Once);
    wire.turn_ends();
    assert!(desk.project().join("one").exists(), "the positive control");
    wire.prompt(&session, "go on");
    let second = wire.question();
    // The approval of the first, played again: for itself, and under the name of the second.
    answer(&wire, &first, Said::Once);
    assert!(rejected(&mut wire).contains("answered first"));
    answer(&wire, &Question { call: second.call.clone(), ..first }, Said::Once);
    assert!(rejected(&mut wire).contains("no longer about the call that you saw"));
    answer(&wire, &second, Said::Deny(String::new()));
    wire.turn_ends();
    assert!(!desk.project().join("two").exists());
}

#[test]
fn a_file_that_changed_after_the_question_is_not_written_over() {
    let desk = Desk::new();
    desk.write("a.txt", "first\n");
    let write = |id: &str| {
        call(id, "edit", r#"{"path":"a.txt","old_string":"first","new_string":"second"}"#)
    };
    let server = Server::scripted([
        Answer::says([write("toolu_1")]),
        Answer::says([write("toolu_2")]),
        Answer::text("done"),
    ]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    let question = wire.question();
    assert!(question.preview.contains("+second"), "{}", question.preview);
    desk.write("a.txt", "first\nand more\n");
    answer(&wire, &question, Said::Once);
    let ended = |event: &ClientEvent| match event {
        ClientEvent::CallEnded { result, .. } => Some(result.code.clone()),
        _ => None,
    };
    assert_eq!(wire.event("its end", ended).as_deref(), Some("stale"));
    assert_eq!(desk.read("a.txt"), "first\nand more\n");
    // The question comes again, with the file's present content.
    let question = wire.question();
    answer(&wire, &question, Said::Once);
    assert_eq!(wire.event("its end", ended), None);
    wire.turn_ends();
    assert_eq!(desk.read("a.txt"), "second\nand more\n");
}

#[test]
fn every_script_that_was_proposed_is_kept_whatever_became_of_it() {
    let desk = Desk::new();
    let file = user_file(&desk);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "[permissions]\ndeny = [\"bash:touch forbidden\"]\n").unwrap();
    let scripts = ["touch yes", "touch forbidden", "touch no", "touch stop", "touch left"];
    let answers = scripts.iter().enumerate().flat_map(|(at, script)| {
        let asked = Answer::says([bash(&format!("toolu_{at}"), script)]);
        // The last two turns end with their call.
        std::iter::once(asked).chain((at < 3).then(|| Answer::text("done")))
    });
    let server = Server::scripted(answers.collect::<Vec<_>>());
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    for script in scripts {
        wire.prompt(&session, "go");
        if script != "touch forbidden" {
            let question = wire.question();
            match script {
                "touch yes" => answer(&wire, &question, Said::Once),
                "touch no" => answer(&wire, &question, Said::Deny("not now".into())),
                "touch stop" => answer(&wire, &question, Said::Stop),
                _ => wire.say(FromClient::Interrupt { session: session.clone() }),
            }
        }
        wire.turn_ends();
        let ran = desk.project().join(script.split_once(' ').unwrap().1).exists();
        assert_eq!(ran, script == "touch yes", "{script}");
    }
    for (number, script, decision) in [
        (1, "touch yes", "allowed by a person"),
        (2, "touch forbidden", "denied by the rule bash:touch forbidden"),
        (3, "touch no", "denied by a person"),
        (4, "touch stop", "denied by a person"),
        (5, "touch left", "it ended before it was decided"),
    ] {
        let shown = run(desk.agentd(&["audit", "show", &format!("{}.{number}", session.0)]));
        assert_eq!(shown.code, 0, "{script}: {shown:?}");
        let kept = shown.out.lines().any(|line| {
            line.trim_start().strip_prefix("script").is_some_and(|rest| rest.trim() == script)
        });
        assert!(kept && shown.out.contains(decision), "{script}: {}", shown.out);
    }
    assert_eq!(run(desk.agentd(&["audit", "verify"])).code, 0);
}

#[test]
fn what_was_denied_stays_denied_when_its_file_is_broken() {
    let desk = Desk::new();
    let file = user_file(&desk);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let rules = "[permissions]\ndeny = [\"bash:touch no*\"]\nallow = [\"bash:touch *\"]\n";
    fs::write(&file, rules).unwrap();
    let server = commands(&["touch no1", "touch yes1", "touch no2", "touch yes2"]);
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    // One invalid rule, and a file that is not TOML.
    for (broken, place) in [
        (rules.replace("touch *", "touch ;"), "config.toml:3"),
        ("[permissions\n".to_owned(), "config.toml:1"),
    ] {
        fs::write(&file, broken).unwrap();
        for _ in 0..2 {
            wire.prompt(&session, "go");
            wire.turn_ends();
        }
        send(child_of(daemon.pid, "agentd-broker").unwrap(), Signal::SIGKILL);
        let ran = desk.ask(&server, &["--permission-mode", "auto"]);
        assert_eq!(ran.code, 16, "no new session without its denials: {ran:?}");
        assert!(ran.err.contains(place), "{}", ran.err);
    }
    for (name, ran) in [("no1", false), ("yes1", true), ("no2", false), ("yes2", true)] {
        assert_eq!(desk.project().join(name).exists(), ran, "{name}");
    }
}

#[test]
fn changing_git_s_settings_is_asked_for_one_call_whatever_the_mode_says() {
    let desk = Desk::new();
    crate::support::needs("git");
    let mut git = std::process::Command::new("git");
    assert!(git.args(["init", "-q"]).current_dir(desk.project()).status().unwrap().success());
    let before = desk.read(".git/config");
    let command = "git config core.pager /nowhere";
    let wanting = json!({ "command": command, "git_settings": "write" }).to_string();
    let server = Server::scripted([
        Answer::says([bash("toolu_0", command)]),
        Answer::says([call("toolu_1", "bash", &wanting)]),
        Answer::text("done"),
    ]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let opening = SessionRequest { mode: Some(PermissionMode::Auto), ..desk.opening(&server) };
    let session = wire.open(&opening);
    wire.prompt(&session, "go");
    // The first is not asked about, and leaves the settings as they are.
    let question = wire.question();
    assert_eq!(question.widens, [ExtraRight::GitAdmin]);
    assert_eq!(desk.read(".git/config"), before, "without the grant");
    let told = server.requests()[1].body["messages"].to_string();
    assert!(
        told.contains("git_settings"),
        "its refusal names the argument that would allow it: {told}"
    );
    answer(&wire, &question, Said::Once);
    wire.turn_ends();
    assert!(desk.read(".git/config").contains("/nowhere"));
    let shown = desk.ended(2);
    assert_eq!(shown["tampered"], serde_json::Value::Null, "{shown}");
}

/// It was not decided, and no process is left that could have recorded a decision.
#[test]
fn the_script_of_a_call_that_was_lost_undecided_with_its_supervisor_is_kept() {
    let desk = Desk::new();
    let server = commands(&[TOUCH]);
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let opening = desk.opening(&server);
    let session = wire.open(&opening);
    wire.prompt(&session, "go");
    wire.question();
    send(daemon.pid, Signal::SIGKILL);
    while wire.try_hear().is_ok() {}
    std::mem::forget(daemon);
    assert_eq!(desk.audit().len(), 0, "the supervisor died before it was decided");
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    // Its turn does not go on, so that the call has no other end.
    let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
    wire.opened(&SessionRequest { start, ..opening });
    let shown = run(desk.agentd(&["audit", "show", &format!("{}.1", session.0)]));
    for words in [TOUCH, "denied", "lost with the supervisor before it was decided"] {
        assert!(shown.out.contains(words), "{words}: {}", shown.out);
    }
    let records = desk.audit();
    assert_eq!(records.len(), 2, "{records:?}");
    assert_eq!((&records[0]["turn"], &records[0]["round"]), (&json!(1), &json!(1)));
    assert!(records[0]["script"].is_string(), "{records:?}");
    let verified = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(verified.code, 0, "{}", verified.out);
}
