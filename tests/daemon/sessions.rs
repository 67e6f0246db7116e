//! Sessions of a daemon as its clients see them: questions, several clients at once, pages, lists,
//! forks, and their state after crashes.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, child_of, run, send};
use nix::sys::signal::Signal;
use protocol::client::{
    BacklogFrom, ClientEvent, ClientRights, FromClient, OtherClients, RequestFailure,
    SessionEnding, SessionRequest, SessionStart, SessionStatus, ToClient,
};
use protocol::ids::SessionId;
use protocol::judgement::{Audience, PersonAnswer as Said, Question};
use protocol::session::OpenTurn;
use serde_json::json;
use std::fs;
use std::time::Duration;

fn bash(id: &str, command: &str) -> Answer {
    Answer::says([call(id, "bash", &json!({ "command": command }).to_string())])
}

fn answer(wire: &Wire, question: &Question, answer: Said) {
    let (call, digest) = (question.call.clone(), question.digest.clone());
    wire.say(FromClient::Answer { call, digest, answer });
}

fn resume(opening: &SessionRequest, session: &SessionId, open_turn: OpenTurn) -> SessionRequest {
    SessionRequest {
        start: SessionStart::Resume { session: session.clone(), open_turn },
        ..opening.clone()
    }
}

fn is_decided(event: &ClientEvent) -> Option<bool> {
    match event {
        ClientEvent::Decided { allowed, .. } => Some(*allowed),
        _ => None,
    }
}

#[test]
fn the_first_answer_counts_and_the_late_one_is_told() {
    let desk = Desk::new();
    let server = Server::scripted([bash("toolu_1", "echo ran >> effects"), Answer::text("done")]);
    let _daemon = desk.daemon();
    let (mut first, mut second) = (Wire::to(&desk.door()), Wire::to(&desk.door()));
    let session = first.open(&desk.opening(&server));
    second.attach(&session, BacklogFrom::Seq(1), ClientRights::Full);
    first.prompt(&session, "go");
    let question = first.question();
    assert_eq!(second.question(), question, "both see the same question");
    assert!(question.deadline > 0);
    // A client that attaches later gets it too.
    let mut third = Wire::to(&desk.door());
    let shown = third.attach(&session, BacklogFrom::Newest(10), ClientRights::ReadOnly);
    assert!(shown.iter().any(|word| matches!(
        word,
        ToClient::Event { event: ClientEvent::Asked { question: asked }, .. } if *asked == question
    )));
    answer(&third, &question, Said::Once);
    third.until("a refusal", |word| {
        matches!(word, ToClient::Failed { kind: RequestFailure::Usage, .. }).then_some(())
    });
    answer(&first, &question, Said::Once);
    assert!(first.event("a decision", is_decided));
    answer(&second, &question, Said::Deny(String::new()));
    let reason = second.event("that it was late", |event| match event {
        ClientEvent::AnswerRejected { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    assert!(reason.contains("answered first"), "{reason}");
    first.turn_ends();
    assert_eq!(desk.read("effects"), "ran\n");
}

#[test]
fn failure_11_a_question_outlives_the_broker_and_the_daemon() {
    let desk = Desk::new();
    let server = Server::scripted([bash("toolu_1", "echo ran >> effects"), Answer::text("done")]);
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let opening = desk.opening(&server);
    let session = wire.open(&opening);
    wire.prompt(&session, "go");
    let question = wire.question();
    send(child_of(daemon.pid, "agentd-broker").unwrap(), Signal::SIGKILL);
    assert_eq!(wire.question(), question, "asked again, the same, with its deadline");
    send(daemon.pid, Signal::SIGKILL);
    while wire.try_hear().is_ok() {}
    std::mem::forget(daemon);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let (same, _) = wire.opened(&resume(&opening, &session, OpenTurn::GoesOn));
    assert_eq!(same, session);
    wire.say(FromClient::Attach {
        session: session.clone(),
        from: BacklogFrom::Seq(1),
        rights: ClientRights::Full,
        others: OtherClients::Stay,
    });
    assert_eq!(wire.question(), question, "asked again by the next daemon");
    answer(&wire, &question, Said::Once);
    wire.turn_ends();
    assert_eq!(desk.read("effects"), "ran\n");
    let journal = desk.state().join("sessions").join(&session.0).join("journal.jsonl");
    let journal = fs::read_to_string(journal).unwrap();
    assert_eq!(journal.matches(r#""kind":"ASKED""#).count(), 1, "kept once: {journal}");
}

#[test]
fn a_question_that_nobody_answers_expires() {
    let desk = Desk::new();
    fs::create_dir_all(desk.home().join(".config/agentd")).unwrap();
    let config = "[daemon]\nquestion_deadline = \"300ms\"\n";
    fs::write(desk.home().join(".config/agentd/config.toml"), config).unwrap();
    let server = Server::scripted([bash("toolu_1", "echo ran >> effects"), Answer::text("I see")]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    let question = wire.question();
    assert!(!wire.event("a decision", is_decided));
    wire.turn_ends();
    let told = server.requests()[1].body["messages"].to_string();
    assert!(told.contains("no one answered in time"), "{told}");
    assert!(!desk.project().join("effects").exists());
    answer(&wire, &question, Said::Once);
    wire.event("a refusal", |event| {
        matches!(event, ClientEvent::AnswerRejected { .. }).then_some(())
    });
    assert_eq!(run(desk.agentd(&["audit", "verify"])).code, 0);
    let audit = desk.audit();
    let decided = audit.iter().find(|entry| entry["event"] == "decided").unwrap();
    assert_eq!(decided["decision"], "expired", "{decided}");
    assert_eq!(decided["basis"]["why"], "nobody answered within 300ms", "{decided}");
    let ended = audit.iter().find(|entry| entry["event"] == "ended").unwrap();
    assert!(ended["outcome"].to_string().contains("denied"), "{ended}");
    assert_eq!(ended["code"], "expired", "{ended}");
    let of_call = format!("{}.1", session.0);
    for (arguments, said) in [
        (
            ["audit", "show", of_call.as_str()].as_slice(),
            "expired: approval is required, and nobody answered within 300ms",
        ),
        (&["audit", "ls", "--denied"], " expired "),
        (&["show", session.0.as_str()], "1 was not answered in time (asked for "),
    ] {
        let shown = run(desk.agentd(arguments));
        assert!(shown.out.contains(said), "{arguments:?}: {shown:?}");
    }
}

#[test]
fn a_run_without_a_person_never_waits() {
    let desk = Desk::new();
    let server = Server::scripted([bash("toolu_1", "echo ran"), Answer::text("I see")]);
    let _daemon = desk.daemon();
    let ran = desk.ask(&server, &["--timeout", "20"]);
    assert_eq!(ran.code, 10, "{ran:?}");
}

/// The numbers of the kept events up to this message; the last of each may come twice.
fn numbers_until(wire: &mut Wire, last: impl Fn(&ToClient) -> bool) -> Vec<u64> {
    let mut numbers = Vec::new();
    wire.until("all of it", |word| {
        match word {
            ToClient::Event {
                event:
                    ClientEvent::Delta { .. }
                    | ClientEvent::Output { .. }
                    | ClientEvent::Model { .. },
                ..
            } => {}
            ToClient::Event { seq, .. } => numbers.push(*seq),
            _ => {}
        }
        last(word).then_some(())
    });
    numbers.dedup();
    numbers
}

#[test]
fn failure_12_and_20_fifty_clients_of_which_one_never_reads_slow_nobody() {
    const TURNS: usize = 3;
    let desk = Desk::new();
    let words: Vec<_> = (0..2000).map(|_| crate::support::anthropic::text("word ")).collect();
    let filler = "x".repeat(300);
    // Words that may be left out, and more events that may not than one client's queue holds.
    let server = Server::answering(move |n, _| match n % 2 {
        0 => Answer::says(words.clone()),
        _ => Answer::says((0..700).map(|k| {
            call(&format!("toolu_{n}_{k}"), "nonsense", &json!({ "x": filler }).to_string())
        })),
    });
    let _daemon = desk.daemon();
    let mut first = Wire::to(&desk.door());
    let session = first.open(&desk.opening(&server));
    let watch = |from| FromClient::Attach {
        session: session.clone(),
        from,
        rights: ClientRights::ReadOnly,
        others: OtherClients::Stay,
    };
    let mut deaf = Wire::to(&desk.door());
    deaf.say(watch(BacklogFrom::Seq(1)));
    let others: Vec<_> = (0..48)
        .map(|_| {
            let mut wire = Wire::to(&desk.door());
            wire.attach(&session, BacklogFrom::Seq(1), ClientRights::ReadOnly);
            std::thread::spawn(move || {
                for _ in 0..TURNS {
                    wire.turn_ends();
                }
            })
        })
        .collect();
    for _ in 0..TURNS {
        first.prompt(&session, "go");
        first.turn_ends();
    }
    for other in others {
        other.join().unwrap();
    }
    // It reads at last: first the events that fitted, then `Behind`, and nothing after that. The
    // skipped events come from disk without a gap.
    let attached = |word: &ToClient| matches!(word, ToClient::Attached { .. });
    let behind = |word: &ToClient| matches!(word, ToClient::Behind { .. });
    let mut heard = numbers_until(&mut deaf, behind);
    assert!(deaf.silent_for(Duration::from_millis(200)), "no event follows `Behind`");
    let last = *heard.last().unwrap();
    deaf.say(watch(BacklogFrom::Seq(last + 1)));
    let missed = numbers_until(&mut deaf, attached);
    assert!(missed.len() > 500, "it missed much: {}", missed.len());
    assert!(missed[0] > last, "received events are not sent again");
    heard.extend(missed);
    let mut fresh = Wire::to(&desk.door());
    fresh.say(watch(BacklogFrom::Seq(1)));
    assert_eq!(heard, numbers_until(&mut fresh, attached));
}

#[test]
fn pages_go_back_to_the_beginning_and_a_detached_client_hears_nothing() {
    let desk = Desk::new();
    let server = Server::answering(|n, _| Answer::text(&format!("answer {n}")));
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    for n in 0..5 {
        wire.prompt(&session, &format!("prompt {n}"));
        wire.turn_ends();
    }
    let mut late = Wire::to(&desk.door());
    let shown = late.attach(&session, BacklogFrom::Newest(2), ClientRights::Full);
    let kept = |word: &&ToClient| {
        !matches!(word, ToClient::Event { event: ClientEvent::Model { .. }, .. })
    };
    let count = shown.iter().filter(kept).count();
    assert_eq!(count, 3, "two events and the word that they were all: {shown:?}");
    let ToClient::Event { seq: mut before, .. } = shown[0] else { panic!("{shown:?}") };
    let mut prompts = Vec::new();
    loop {
        let page = FromClient::Page { session: session.clone(), before, most: 4 };
        late.say(page);
        let events = late.until("a page", |word| match word {
            ToClient::Page { events, .. } => Some(events.clone()),
            _ => None,
        });
        let Some(first) = events.first() else { break };
        before = first.seq;
        prompts.extend(events.into_iter().rev().filter_map(|it| match it.event {
            ClientEvent::Prompt { text, .. } => Some(text),
            _ => None,
        }));
    }
    prompts.reverse();
    let expected: Vec<_> = (0..5).map(|n| format!("prompt {n}")).collect();
    assert_eq!(prompts, expected);
    // For a preview no attachment is needed; a name that is a path is refused.
    let mut stranger = Wire::to(&desk.door());
    let page = |session: &SessionId| FromClient::Page {
        session: session.clone(),
        before: u64::MAX,
        most: 2,
    };
    stranger.say(page(&session));
    let events = stranger.until("a page", |word| match word {
        ToClient::Page { events, .. } => Some(events.clone()),
        _ => None,
    });
    assert!(events.iter().any(|it| matches!(it.event, ClientEvent::Answer { .. })), "{events:?}");
    stranger.say(page(&SessionId("../sessions".to_owned())));
    stranger.until("a refusal", |word| matches!(word, ToClient::Failed { .. }).then_some(()));
    stranger.say(page(&SessionId("0".repeat(12))));
    let events = stranger.until("a page", |word| match word {
        ToClient::Page { events, .. } => Some(events.clone()),
        _ => None,
    });
    assert!(matches!(events[0].event, ClientEvent::Notice { .. }), "{events:?}");
    late.say(FromClient::Detach { session: session.clone() });
    wire.prompt(&session, "alone");
    wire.turn_ends();
    assert!(late.silent_for(Duration::from_millis(300)));
    let taker = Wire::to(&desk.door());
    taker.say(FromClient::Attach {
        session,
        from: BacklogFrom::Newest(1),
        rights: ClientRights::Full,
        others: OtherClients::Detach,
    });
    let reason = wire.until("that another took over", |word| match word {
        ToClient::Detached { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    assert!(reason.contains("took the session over"), "{reason}");
}

fn list(wire: &mut Wire) -> Vec<protocol::client::SessionRow> {
    wire.say(FromClient::List);
    wire.until("the list", |word| match word {
        ToClient::Sessions(rows) => Some(rows.clone()),
        _ => None,
    })
}

fn done(wire: &mut Wire, word: FromClient) -> Result<(), String> {
    wire.say(word);
    wire.until("an answer", |word| match word {
        ToClient::Done => Some(Ok(())),
        ToClient::Failed { message, .. } => Some(Err(message.clone())),
        _ => None,
    })
}

#[test]
fn failure_6_one_damaged_session_hides_no_other_and_can_be_removed() {
    let desk = Desk::new();
    let server = Server::answering(|_, _| Answer::text("hello"));
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let opening = desk.opening(&server);
    let sessions: Vec<_> = (0..3)
        .map(|n| {
            let session = wire.open(&opening);
            wire.prompt(&session, &format!("the words of {n}"));
            wire.turn_ends();
            session
        })
        .collect();
    let [live, damaged, ended] = &sessions[..] else { panic!() };
    for session in [damaged, ended] {
        let (session, ending) = (session.clone(), SessionEnding::Stop);
        assert_eq!(done(&mut wire, FromClient::End { session, ending }), Ok(()));
    }
    let directory = desk.state().join("sessions");
    let journal = directory.join(&damaged.0).join("journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap().replace("the words", "two words");
    fs::write(&journal, text).unwrap();
    let rows = list(&mut wire);
    let state = |id: &SessionId| {
        let row = rows.iter().find(|row| row.session == *id).unwrap();
        (row.title.clone(), row.state.clone())
    };
    assert_eq!(state(live), ("the words of 0".into(), SessionStatus::Idle));
    assert_eq!(state(ended), ("the words of 2".into(), SessionStatus::Ended));
    let (_, SessionStatus::Unreadable(why)) = state(damaged) else { panic!("{rows:?}") };
    assert!(why.contains("damaged"), "{why}");
    let remove = |session: &SessionId| FromClient::Remove { session: session.clone() };
    let refused = done(&mut wire, remove(live)).unwrap_err();
    assert!(refused.contains("is live"), "{refused}");
    assert_eq!(done(&mut wire, remove(damaged)), Ok(()));
    assert_eq!(done(&mut wire, remove(ended)), Ok(()));
    assert!(done(&mut wire, remove(&SessionId("../audit".into()))).is_err());
    assert_eq!(list(&mut wire).len(), 1);
    assert_eq!(run(desk.agentd(&["audit", "verify"])).code, 0);
}

#[test]
fn a_fork_goes_its_own_way() {
    let desk = Desk::new();
    let server = Server::answering(|n, _| Answer::text(&format!("answer {n}")));
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let opening = desk.opening(&server);
    let session = wire.open(&opening);
    wire.prompt(&session, "first");
    wire.turn_ends();
    let start = SessionStart::Fork { of: session.clone(), at: None };
    let fork = wire.open(&SessionRequest { start, ..opening.clone() });
    assert_ne!(fork, session);
    wire.prompt(&fork, "second");
    wire.turn_ends();
    let sent = server.requests()[1].body["messages"].to_string();
    assert!(sent.contains("first") && sent.contains("second"), "{sent}");
    wire.prompt(&session, "third");
    wire.turn_ends();
    let sent = server.requests()[2].body["messages"].to_string();
    assert!(sent.contains("first") && !sent.contains("second"), "{sent}");
    let start = SessionStart::Fork { of: SessionId("0".repeat(12)), at: None };
    wire.say(FromClient::Open(SessionRequest { start, papers: Vec::new(), ..opening }));
    let told = wire.until("a refusal", |word| match word {
        ToClient::Failed { kind, .. } => Some(*kind),
        _ => None,
    });
    assert_eq!(told, RequestFailure::NotFound);
}

#[test]
fn failure_14_a_session_that_is_live_is_joined_and_never_opened_twice() {
    let desk = Desk::new();
    let server = Server::answering(|_, _| Answer::text("hello"));
    let _daemon = desk.daemon();
    let opening = desk.opening(&server);
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&opening);
    wire.prompt(&session, "go");
    wire.turn_ends();
    let ending = SessionEnding::Stop;
    assert_eq!(done(&mut wire, FromClient::End { session: session.clone(), ending }), Ok(()));
    // Many clients resume a session on disk at once: it is opened once, and all are attached.
    let joined: Vec<_> = (0..8)
        .map(|_| {
            let (door, again) = (desk.door(), resume(&opening, &session, OpenTurn::Waits));
            std::thread::spawn(move || Wire::to(&door).opened(&again).0)
        })
        .map(|thread| thread.join().unwrap())
        .collect();
    assert!(joined.iter().all(|id| *id == session), "{joined:?}");
    wire.say(FromClient::Ps);
    let conversations = wire.until("processes", |word| match word {
        ToClient::Processes(rows) => {
            Some(rows.iter().filter(|row| row.worker == "agentd-session").count())
        }
        _ => None,
    });
    assert_eq!(conversations, 1);
    let headless = SessionRequest {
        audience: Audience::NonInteractive,
        ..resume(&opening, &session, OpenTurn::Waits)
    };
    assert_eq!(wire.opened(&headless).0, session, "a script joins it too");
}

#[test]
fn failure_49_a_script_never_waits_for_the_person_of_a_session_it_joins() {
    let desk = Desk::new();
    let answers = |number, _: &_| match number {
        1 => bash("toolu_1", "touch ran").stalled_after(10, Duration::from_secs(1)),
        2 | 4 => Answer::text("so be it"),
        _ => bash("toolu_2", "touch ran"),
    };
    let server = Server::answering(answers);
    let _daemon = desk.daemon();
    let opening = desk.opening(&server);
    let mut person = Wire::to(&desk.door());
    let session = person.open(&opening);
    let headless = SessionRequest {
        audience: Audience::NonInteractive,
        ..resume(&opening, &session, OpenTurn::Waits)
    };
    let mut script = Wire::to(&desk.door());
    script.open_with_key(&headless);
    let refused = script.until("a refusal", |word| match word {
        ToClient::Failed { kind: RequestFailure::Held, message } => Some(message.clone()),
        _ => None,
    });
    assert!(refused.contains("is open in a terminal"), "{refused}");
    // Without other clients the session is non-interactive, and a call that needs approval is
    // refused at once.
    person.say(FromClient::Detach { session: session.clone() });
    let (same, next) = script.opened(&headless);
    assert_eq!(same, session);
    script.attach(&session, BacklogFrom::Seq(next), ClientRights::Full);
    script.prompt(&session, "go");
    // A person who comes meanwhile is asked from the next turn on.
    let (_, next) = person.opened(&resume(&opening, &session, OpenTurn::GoesOn));
    person.attach(&session, BacklogFrom::Seq(next), ClientRights::Full);
    script.event("a refusal", |event| {
        matches!(event, ClientEvent::Decided { allowed: false, .. }).then_some(())
    });
    script.turn_ends();
    assert!(!desk.project().join("ran").exists());
    person.prompt(&session, "and now?");
    assert_eq!(person.question().tool, "bash");
}

#[test]
fn failure_19_and_4_two_projects_never_touch_each_other() {
    let desk = Desk::new();
    let command = "echo $LC_MARK > mark; pwd > here; while [ ! -e go ]; do sleep 0.02; done";
    let server = Server::answering(move |_, body| match body.to_string().contains("tool_result") {
        true => Answer::text("done"),
        false => bash("toolu_1", command),
    });
    let _daemon = desk.daemon();
    let mut wires: Vec<_> = ["one", "two"]
        .iter()
        .map(|name| {
            let project = desk.outside().join(name);
            fs::create_dir(&project).unwrap();
            let mut opening = desk.opening(&server);
            opening.project = protocol::confinement::FilePath::from(&project);
            opening.env.push(("LC_MARK".into(), (*name).into()));
            opening.mode = Some(protocol::judgement::PermissionMode::Auto);
            let mut wire = Wire::to(&desk.door());
            let session = wire.open(&opening);
            wire.prompt(&session, "go");
            (project, wire, session)
        })
        .collect();
    for (project, ..) in &wires {
        crate::support::until("both run", || project.join("here").exists());
    }
    let (_, wire, session) = &mut wires[0];
    wire.say(FromClient::Interrupt { session: session.clone() });
    wire.turn_ends();
    let (project, wire, _) = &mut wires[1];
    fs::write(project.join("go"), "").unwrap();
    let end = wire.event("its end", |event| match event {
        ClientEvent::TurnEnded { end } => Some(end.clone()),
        _ => None,
    });
    assert_eq!(end, protocol::session::TurnEnd::Done, "the other was not interrupted");
    for (project, ..) in &wires {
        let name = project.file_name().unwrap().to_str().unwrap();
        assert_eq!(fs::read_to_string(project.join("mark")).unwrap().trim(), name);
    }
}

fn queue(event: &ClientEvent) -> Option<Vec<String>> {
    match event {
        ClientEvent::Queue { waiting } => {
            Some(waiting.iter().map(|prompt| prompt.text.clone()).collect())
        }
        _ => None,
    }
}

fn prompt(event: &ClientEvent) -> Option<String> {
    match event {
        ClientEvent::Prompt { text, .. } => Some(text.clone()),
        _ => None,
    }
}

#[test]
fn failure_51_prompts_that_wait_are_seen_by_all_and_outlive_the_daemon_in_their_order() {
    let desk = Desk::new();
    let server = Server::answering(|n, body| match body["messages"].to_string().contains("one") {
        false => Answer::text("slow").stalled_after(10, Duration::from_secs(60)),
        true => Answer::text(&format!("answer {n}")),
    });
    let daemon = desk.daemon();
    let opening = desk.opening(&server);
    let (mut first, mut second) = (Wire::to(&desk.door()), Wire::to(&desk.door()));
    let session = first.open(&opening);
    second.attach(&session, BacklogFrom::Seq(1), ClientRights::Full);
    first.prompt(&session, "zero");
    assert_eq!(first.event("the prompt", prompt), "zero");
    for text in ["one", "two", "three"] {
        second.prompt(&session, text);
    }
    first.event("the queue", |event| (queue(event)? == ["one", "two", "three"]).then_some(()));
    send(daemon.pid, Signal::SIGKILL);
    std::mem::forget(daemon);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    wire.open(&resume(&opening, &session, OpenTurn::Waits));
    let mut seen = Vec::new();
    let mut late = Wire::to(&desk.door());
    for _ in 0..3 {
        wire.turn_ends();
    }
    for word in late.attach(&session, BacklogFrom::Seq(1), ClientRights::Full) {
        if let ToClient::Event { event, .. } = word {
            seen.extend(prompt(&event));
        }
    }
    assert_eq!(seen, ["zero", "one", "two", "three"]);
}

#[test]
fn prompts_that_wait_can_be_taken_back() {
    let desk = Desk::new();
    let server =
        Server::answering(|_, _| Answer::text("slow").stalled_after(10, Duration::from_secs(2)));
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    for text in ["zero", "one", "two"] {
        wire.prompt(&session, text);
    }
    wire.event("the queue", |event| (queue(event)? == ["one", "two"]).then_some(()));
    wire.say(FromClient::TakeBack { session: session.clone(), only: None });
    let back = wire.until("what waited", |word| match word {
        ToClient::TakenBack { texts, .. } => Some(texts.clone()),
        _ => None,
    });
    assert_eq!(back, ["one", "two"]);
    wire.turn_ends();
    assert!(wire.silent_for(Duration::from_millis(500)), "no further turn begins");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn settings_that_a_person_changes_hold_for_calls_to_come_and_after_a_restart() {
    use protocol::client::SettingChange;
    use protocol::confinement::{FilePath, Network};
    use protocol::judgement::PermissionMode;
    let desk = Desk::new();
    let added = desk.outside().join("added");
    fs::create_dir(&added).unwrap();
    let command = format!("echo ran > {}/effects", added.display());
    let server = Server::answering(move |_, body| {
        match body["messages"].to_string().contains("tool_result") {
            true => Answer::text("done"),
            false => bash("toolu_1", &command),
        }
    });
    let daemon = desk.daemon();
    let opening = desk.opening(&server);
    let (mut wire, mut other) = (Wire::to(&desk.door()), Wire::to(&desk.door()));
    let session = wire.open(&opening);
    other.attach(&session, BacklogFrom::Seq(1), ClientRights::ReadOnly);
    let changes = [
        SettingChange::Network(Network::On),
        SettingChange::Mode(PermissionMode::Auto),
        SettingChange::Model("another-model".into()),
        SettingChange::AddDirectory(FilePath::from(&added)),
    ];
    for change in &changes {
        let (session, change) = (session.clone(), change.clone());
        wire.say(FromClient::Change { session, change });
    }
    let real = SettingChange::AddDirectory(FilePath::from(&added.canonicalize().unwrap()));
    other.event("the last change", |event| match event {
        ClientEvent::Changed { change, by } if *change == real => {
            assert!(by.contains("terminal"), "{by}");
            Some(())
        }
        _ => None,
    });
    send(daemon.pid, Signal::SIGKILL);
    std::mem::forget(daemon);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    wire.open(&resume(&opening, &session, OpenTurn::Waits));
    wire.prompt(&session, "go");
    wire.turn_ends();
    assert_eq!(
        fs::read_to_string(added.join("effects")).unwrap(),
        "ran\n",
        "no question was asked"
    );
    let requested = &desk.audit()[0]["requested"];
    assert_eq!(requested["network"], "on", "{requested}");
    assert!(server.requests()[0].body["system"].to_string().contains("on"));
    assert_eq!(server.requests()[0].body["model"], "another-model");
    let nowhere = SettingChange::AddDirectory(FilePath::from("/nonexistent"));
    wire.say(FromClient::Change { session, change: nowhere });
    wire.until("a refusal", |word| matches!(word, ToClient::Failed { .. }).then_some(()));
}

/// A run of a script in the daemon; its session.
fn script(desk: &Desk, server: &Server, flags: &[&str]) -> SessionId {
    let ran = desk.ask(server, flags);
    assert_eq!(ran.code, 0, "{}", ran.err);
    SessionId(ran.json()["session_id"].as_str().unwrap().to_owned())
}

#[test]
fn a_script_s_session_ends_with_its_run_unless_somebody_looks_on() {
    let desk = Desk::new();
    let server = Server::answering(|n, _| Answer::text(&format!("answer {n}")));
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let state = |wire: &mut Wire, session: &SessionId| {
        let rows = list(wire);
        rows.into_iter().find(|row| row.session == *session).map(|row| row.state)
    };
    let first = script(&desk, &server, &[]);
    crate::support::until("it has ended", || {
        state(&mut wire, &first) == Some(SessionStatus::Ended)
    });
    let conversations = |daemon: u32| {
        let all = crate::support::processes();
        all.iter().filter(|it| it.parent == daemon && it.name.starts_with("agentd-sessio")).count()
    };
    crate::support::until("no process of it is left", || conversations(daemon.pid) == 0);
    // Repeated without a pause: a client that comes while the session ends opens it again.
    for _ in 0..6 {
        assert_eq!(script(&desk, &server, &["--resume", &first.0]), first);
    }
    assert_eq!(server.requests().len(), 7);
    // Another client is attached when the run ends: the session stays for it.
    let slow = Server::scripted([Answer::text("slow").stalled_after(10, Duration::from_secs(1))]);
    let running = std::thread::scope(|scope| {
        let run = scope.spawn(|| script(&desk, &slow, &[]));
        let mut found = None;
        crate::support::until("it runs", || {
            let rows = list(&mut wire);
            found = rows.into_iter().find(|it| it.state == SessionStatus::Working);
            found.is_some()
        });
        let session = found.unwrap().session;
        wire.attach(&session, BacklogFrom::Seq(1), ClientRights::ReadOnly);
        assert_eq!(run.join().unwrap(), session);
        session
    });
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(state(&mut Wire::to(&desk.door()), &running), Some(SessionStatus::Idle));
    drop(wire);
    let mut wire = Wire::to(&desk.door());
    crate::support::until("they left", || state(&mut wire, &running) == Some(SessionStatus::Ended));
}

#[test]
fn a_script_that_waits_behind_a_turn_takes_only_its_own_prompt_back() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::text("slow").stalled_after(10, Duration::from_secs(4)),
        Answer::text("second"),
    ]);
    let _daemon = desk.daemon();
    let start = |prompt: &str, more: &[&str]| {
        let mut command = desk.with_server(&server, &["-p", prompt, "--output-format", "json"]);
        command.args(more).stdout(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let first = start("first words", &[]);
    let mut wire = Wire::to(&desk.door());
    let mut found = None;
    crate::support::until("it runs", || {
        found = list(&mut wire).into_iter().find(|row| row.state == SessionStatus::Working);
        found.is_some()
    });
    let session = found.unwrap().session;
    wire.attach(&session, BacklogFrom::Seq(1), ClientRights::Full);
    let second = start("second words", &["--resume", &session.0]);
    wire.event("it waits", |event| queue(event).filter(|it| it == &["second words"]));
    wire.prompt(&session, "third words");
    wire.event("both wait", |event| queue(event).filter(|it| it.len() == 2));
    send(second.id(), Signal::SIGINT);
    wire.event("one of them does no more", |event| {
        queue(event).filter(|it| it == &["third words"])
    });
    assert_eq!(second.wait_with_output().unwrap().status.code(), Some(130));
    let first = first.wait_with_output().unwrap();
    assert_eq!(first.status.code(), Some(0), "the other's turn went on: {first:?}");
    wire.turn_ends();
    wire.turn_ends();
    let asked = server.requests()[1].body["messages"].to_string();
    assert!(asked.contains("third words") && !asked.contains("second words"), "{asked}");
}

/// With as few descriptors as login shells give, and no provider kept for who does not speak.
#[test]
fn two_hundred_idle_sessions_are_held_at_once() {
    let desk = Desk::new();
    fs::create_dir_all(desk.home().join(".config/agentd")).unwrap();
    let config = "[daemon]\nidle_provider = \"200ms\"\n";
    fs::write(desk.home().join(".config/agentd/config.toml"), config).unwrap();
    let server = Server::answering(|n, _| Answer::text(&format!("answer {n}")));
    let start = desk.agentd(&["daemon", "start"]);
    let mut few = std::process::Command::new("sh");
    few.args(["-c", "ulimit -Sn 1024; exec \"$@\"", "sh"]).arg(start.get_program());
    few.args(start.get_args()).current_dir(desk.project()).env_clear();
    few.envs(start.get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert!(few.output().unwrap().status.success());
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let opening = desk.opening(&server);
    let sessions: Vec<_> = (0..200).map(|_| wire.open(&opening)).collect();
    let workers = |name: &str| {
        let all = crate::support::processes();
        all.iter().filter(|it| it.parent == daemon.pid && it.name.starts_with(name)).count()
    };
    crate::support::until("all providers rest", || workers("agentd-provide") == 0);
    assert_eq!(workers("agentd-sessio"), 200);
    let rows = list(&mut wire);
    assert_eq!(rows.iter().filter(|row| row.state == SessionStatus::Idle).count(), 200);
    for session in [&sessions[0], &sessions[99], &sessions[199]] {
        wire.prompt(session, "go");
        wire.turn_ends();
    }
    assert_eq!(server.requests().len(), 3);
}
