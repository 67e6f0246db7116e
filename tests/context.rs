//! What the model is sent of a conversation, through the real processes: room that a person makes,
//! files that a person pins, and what the journal keeps of both.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod support;

use nix::sys::signal::Signal;
use protocol::client::{Change, Event, FromClient, Rights, Since, Start, ToClient};
use protocol::ids::SessionId;
use protocol::session::OpenTurn;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;
use support::anthropic::vendor::{VENDORS, Vendor};
use support::anthropic::{Answer, Server, call};
use support::daemon::Wire;
use support::{Desk, run, send};

/// The records of the only session.
fn records(desk: &Desk, session: &SessionId) -> Vec<Value> {
    let journal = desk.state().join("sessions").join(&session.0).join("journal.jsonl");
    let text = fs::read_to_string(journal).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn compact(wire: &Wire, session: &SessionId) {
    wire.say(FromClient::Compact { session: session.clone() });
}

#[test]
fn a_person_makes_room_while_a_turn_runs_and_between_turns_and_the_journal_keeps_everything() {
    let desk = Desk::new();
    let say = |n: usize| json!({ "command": format!("echo call {n}; seq 1 2000") }).to_string();
    let list = json!({"group": "g", "title": "To do", "items": ["look", "mend"]}).to_string();
    let mut answers = vec![Answer::says([call("toolu_0", "checklist_create", &list)])];
    answers.extend((1..5).map(|n| Answer::says([call(&format!("toolu_{n}"), "bash", &say(n))])));
    let slow = Answer::text("half way");
    let words_are_over = slow.body().find("event: content_block_stop").unwrap();
    answers.push(slow.stalled_after(words_are_over, Duration::from_secs(4)));
    answers.extend(["second", "third"].map(Answer::text));
    let server = Server::scripted(answers);
    let _daemon = desk.daemon();
    let (mut wire, mut other) = (Wire::to(&desk.door()), Wire::to(&desk.door()));
    let mut opening = desk.opening(&server);
    opening.mode = Some(protocol::judgement::Mode::Auto);
    let session = wire.open(&opening);
    other.attach(&session, Since::Seq(1), Rights::ReadOnly);

    compact(&wire, &session);
    let reason = other.event("a word on it", |event| match event {
        Event::NotCompacted { reason } => Some(reason.clone()),
        _ => None,
    });
    assert!(reason.contains("short"), "{reason}");

    // While the model speaks: the answer goes on, and the next request is shorter.
    wire.prompt(&session, "the first question, word for word");
    wire.event("the last answer's beginning", |event| {
        matches!(event, Event::TextDelta { .. }).then_some(())
    });
    compact(&wire, &session);
    let compacted = |event: &Event| match event {
        Event::Compacted { dropped } => Some(*dropped),
        Event::TurnEnded { .. } => Some(0),
        _ => None,
    };
    let dropped = other.event("room", compacted);
    assert!(dropped > 0, "before the turn's end");
    wire.turn_ends();
    wire.prompt(&session, "second?");
    wire.turn_ends();
    let seen = server.requests();
    assert!(seen.iter().all(|seen| seen.refused.is_none()), "each request is legal");
    let (before, after) = (&seen[seen.len() - 2].raw, &seen[seen.len() - 1].raw);
    assert!(before.contains("call 1\\n") && before.contains("call 4\\n"));
    assert!(after.contains("left out to make room") && !after.contains("call 1\\n"), "{after}");
    assert!(after.contains("the first question, word for word"), "{after}");
    assert!(after.contains("To do (g): 0 of 2 done"), "the checklist is open: {after}");

    // Between turns; then nothing is left to leave out.
    let before = after.len();
    compact(&wire, &session);
    other.turn_ends();
    other.turn_ends();
    let dropped = other.event("room again", compacted);
    assert!(dropped > 0, "before the next turn");
    wire.prompt(&session, "third?");
    wire.turn_ends();
    let seen = server.requests();
    assert_eq!(seen.last().unwrap().refused, None);
    assert!(seen.last().unwrap().raw.len() < before);

    let kept = records(&desk, &session);
    let results = kept.iter().filter(|record| record["kind"] == "RESULT");
    assert_eq!(results.filter(|result| result["text"].to_string().contains("1999")).count(), 4);
    assert_eq!(kept.iter().filter(|record| record["kind"] == "COMPACTED").count(), 2);
}

/// Who only looks on may not make room.
#[test]
fn room_is_made_by_those_alone_who_may_type() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("a")]);
    let _daemon = desk.daemon();
    let (mut wire, mut other) = (Wire::to(&desk.door()), Wire::to(&desk.door()));
    let session = wire.open(&desk.opening(&server));
    other.attach(&session, Since::Seq(1), Rights::ReadOnly);
    compact(&other, &session);
    other.until("a refusal", |word| matches!(word, ToClient::Failed { .. }).then_some(()));
    compact(&wire, &session);
    wire.event("an answer", |event| matches!(event, Event::NotCompacted { .. }).then_some(()));
}

/// Where the block stands in the last message, and its mark.
fn block(vendor: Vendor, body: &Value) -> Option<(String, &'static str)> {
    let at = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let last = |list: &str| body[list].as_array().unwrap().len() - 1;
    let (text, mark) = match vendor {
        Vendor::Anthropic => {
            let message = last("messages");
            let parts = body["messages"][message]["content"].as_array().unwrap();
            assert!(parts[..parts.len() - 1].iter().all(|part| part["type"] == "tool_result"));
            (
                at(&format!("/messages/{message}/content/{}/text", parts.len() - 1)),
                "[FILES UPDATED]",
            )
        }
        Vendor::Chat => (at(&format!("/messages/{}/content", last("messages"))), "[FILES UPDATED]"),
        Vendor::Responses => (at(&format!("/input/{}/output", last("input"))), "[FILES UPDATED]"),
        Vendor::Gemini => {
            let content = last("contents");
            let parts = body["contents"][content]["parts"].as_array().unwrap().len() - 1;
            let output =
                format!("/contents/{content}/parts/{parts}/functionResponse/response/output");
            (at(&output), "[SYSTEM: FILES UPDATED]")
        }
    };
    let at = text.find(mark)?;
    Some((text[at..].to_owned(), mark))
}

#[test]
fn what_changed_in_a_pinned_file_goes_with_one_request_in_the_form_of_each_vendor() {
    for vendor in VENDORS {
        let desk = Desk::new();
        desk.write("notes.md", "as pinned\n");
        // What they write stands in none of the commands, and could not stand in a digest.
        let write =
            |id: &str, command: &str| call(id, "bash", &json!({ "command": command }).to_string());
        let server = Server::of(
            vendor,
            [
                vendor.says([
                    write("call_1", "echo gamma$((40+1)) > notes.md"),
                    write("call_2", "echo omega$((40+2)) >> notes.md"),
                ]),
                vendor.says([call("call_3", "ls", "{}")]),
                vendor.text("done"),
            ],
        );
        let arguments = ["-p", "go", "--permission-mode", "auto", "--context", "notes.md"];
        let mut command = desk.with_vendor(vendor, &server, &arguments);
        command.args(["--output-format", "stream-json"]);
        let ran = run(command);
        assert_eq!(ran.code, 0, "{vendor:?}: {}", ran.err);
        let seen = server.requests();
        assert_eq!(seen.len(), 3, "{vendor:?}");
        assert!(seen.iter().all(|seen| seen.refused.is_none()), "{vendor:?}: {seen:?}");
        assert!(seen.iter().all(|seen| seen.raw.contains("as pinned")), "{vendor:?}");
        assert!(!seen[0].raw.contains("UPDATED]"), "{vendor:?}");
        let (block, mark) = block(vendor, &seen[1].body).expect("a block behind the results");
        let expected = format!("{mark}\n<file path=\"notes.md\">\ngamma41\nomega42\n</file>");
        assert_eq!(block, expected, "{vendor:?}");
        assert_eq!(seen[1].raw.matches("UPDATED]").count(), 1, "{vendor:?}");
        assert!(
            !seen[2].raw.contains("UPDATED]") && !seen[2].raw.contains("omega42"),
            "{vendor:?}"
        );
        // A script is told of the calls that the model made, and of no others.
        let results = ran.out.lines().filter(|line| line.contains("tool_result\"")).count();
        assert_eq!(results, 3, "{vendor:?}: {}", ran.out);
        // Each look is in the audit log; the journal has its digest.
        let audit = desk.audit();
        let looks = audit.iter().filter(|it| it["event"] == "ended" && it["tool"] == "read");
        assert_eq!(looks.count(), 2, "{vendor:?}: {audit:?}");
        let session = fs::read_dir(desk.state().join("sessions")).unwrap().next().unwrap().unwrap();
        let journal = fs::read_to_string(session.path().join("journal.jsonl")).unwrap();
        assert!(journal.contains("[pinned file: 16 bytes, sha256 "), "{vendor:?}: {journal}");
        assert!(!journal.contains("omega42"), "{vendor:?}: {journal}");
    }
}

/// What cannot be shown is refused as `read` refuses it, said to the model, and the rest goes on.
#[test]
fn a_file_that_may_not_or_cannot_be_shown_is_said_in_its_place() {
    let desk = Desk::new();
    let secret = desk.outside().join("secret.md");
    fs::write(&secret, "of nobody's concern").unwrap();
    desk.write("fine.md", "in plain sight\n");
    desk.write("denied.md", "behind a rule\n");
    desk.write("bytes.bin", "\0\u{1}\0");
    desk.write("big.txt", &"x".repeat(1_600_000));
    let fifo = desk.project().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let link = desk.project().join("link.md");
    std::os::unix::fs::symlink(&secret, link).unwrap();
    let files = ["fine.md", "denied.md", "bytes.bin", "big.txt", "fifo", "link.md", "missing.md"];
    desk.write(
        ".agentd/config.toml",
        &format!("permissions.deny = ['read:denied.md']\n[context]\nfiles = {:?}\n", files),
    );
    let server = Server::scripted([Answer::text("done")]);
    let outside = secret.to_str().unwrap();
    let ran = desk.ask(&server, &["--context", outside]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let seen = server.requests();
    let front = seen[0].body["messages"][0]["content"][0]["text"].as_str().unwrap();
    let said = |file: &str| {
        let from = front.find(&format!("<file path={file:?}>")).expect(file);
        let part = &front[from..];
        part[..part.find("</file>").unwrap()].to_owned()
    };
    assert!(said("fine.md").contains("\nin plain sight\n"), "the control: {front}");
    assert!(said("denied.md").contains("read:denied.md"), "{front}");
    for (file, words) in [
        ("bytes.bin", "binary"),
        ("big.txt", "too_large"),
        ("fifo", "not_a_file"),
        ("link.md", "ACCESS DENIED"),
        (outside, "ACCESS DENIED"),
        ("missing.md", "not_found"),
    ] {
        assert!(said(file).contains("it cannot be shown"), "{file}: {front}");
        assert!(said(file).contains(words), "{file}: {}", said(file));
    }
    assert!(!seen[0].raw.contains("of nobody's concern") && !seen[0].raw.contains("behind a rule"));
    for (file, words) in [("nowhere.md", "No such file"), ("fifo", "not a regular file")] {
        let ran = desk.ask(&server, &["--context", file]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(words), "{}", ran.err);
    }
}

#[test]
fn a_file_that_is_added_while_a_session_runs_stays_pinned_after_a_restart_until_it_is_dropped() {
    let desk = Desk::new();
    desk.write("notes.md", "remember this\n");
    let server = Server::answering(|n, _| Answer::text(&format!("answer {n}")));
    let daemon = desk.daemon();
    let opening = desk.opening(&server);
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&opening);
    let change = |wire: &Wire, change: Change| {
        wire.say(FromClient::Change { session: session.clone(), change });
    };
    let refused = |wire: &mut Wire, words: &str| {
        wire.until("a refusal", |word| match word {
            ToClient::Failed { message, .. } => message.contains(words).then_some(()),
            _ => None,
        });
    };
    let turn = |wire: &mut Wire| {
        wire.prompt(&session, "go");
        wire.turn_ends();
        server.requests().last().unwrap().raw.clone()
    };
    assert!(!turn(&mut wire).contains("remember this"));
    change(&wire, Change::Pin("notes.md".into()));
    change(&wire, Change::Pin("notes.md".into()));
    refused(&mut wire, "pinned already");
    change(&wire, Change::Unpin("other.md".into()));
    refused(&mut wire, "these are: notes.md");
    assert!(turn(&mut wire).contains("remember this"));
    send(daemon.pid, Signal::SIGKILL);
    std::mem::forget(daemon);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let start = Start::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
    wire.open(&protocol::client::Opening { start, ..opening });
    assert!(turn(&mut wire).contains("remember this"), "it is pinned still");
    change(&wire, Change::Unpin("notes.md".into()));
    assert!(!turn(&mut wire).contains("remember this"), "and now no more");
    assert!(server.requests().iter().all(|seen| seen.refused.is_none()));
}
