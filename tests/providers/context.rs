//! The model's context, through the real processes: compaction by a person, pinned files, and the
//! journal's records of both.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::vendor::{VENDORS, Vendor};
use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, child_of, run, send};
use nix::sys::signal::Signal;
use protocol::client::{
    AnswerPart, BacklogFrom, ClientEvent, ClientRights, FromClient, SessionQuery, SessionStart,
    SessionWish, SettingChange, ToClient,
};
use protocol::context::{Compaction, ContextKind, ContextReport};
use protocol::ids::SessionId;
use protocol::session::OpenTurn;
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The records of the only session.
fn records(desk: &Desk, session: &SessionId) -> Vec<Value> {
    let journal = desk.state().join("sessions").join(&session.0).join("journal.jsonl");
    let text = fs::read_to_string(journal).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn compact(wire: &Wire, session: &SessionId) {
    wire.say(FromClient::Wish {
        session: session.clone(),
        wish: SessionWish::Compact { focus: String::new() },
    });
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
    opening.mode = Some(protocol::judgement::PermissionMode::Auto);
    opening.settings.push(("context.compaction".to_owned(), "cut".to_owned()));
    let session = wire.open(&opening);
    other.attach(&session, BacklogFrom::Seq(1), ClientRights::ReadOnly);

    compact(&wire, &session);
    let reason = other.event("a word on it", |event| match event {
        ClientEvent::Notice { text } => Some(text.clone()),
        _ => None,
    });
    assert!(reason.contains("short"), "{reason}");

    // During an answer: the answer continues, and the next request is shorter.
    wire.prompt(&session, "the first question, word for word");
    wire.event("the last answer's beginning", |event| {
        matches!(event, ClientEvent::Delta { part: AnswerPart::Text, .. }).then_some(())
    });
    compact(&wire, &session);
    let compacted = |event: &ClientEvent| match event {
        ClientEvent::Compacted(Compaction::Cut { dropped, .. }) => Some(*dropped),
        ClientEvent::TurnEnded { .. } => Some(0),
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

#[test]
fn the_parts_of_the_context_are_shown_by_the_providers_count_and_by_estimates() {
    let desk = Desk::new();
    let list = call("toolu_1", "bash", &json!({ "command": "seq 1 4000" }).to_string());
    let server = Server::scripted([Answer::says([list]), Answer::text("a long list")]);
    let _daemon = desk.daemon();
    let (mut wire, mut other) = (Wire::to(&desk.door()), Wire::to(&desk.door()));
    let mut opening = desk.opening(&server);
    opening.mode = Some(protocol::judgement::PermissionMode::Auto);
    let session = wire.open(&opening);
    // A client that only watches may ask.
    other.attach(&session, BacklogFrom::Seq(1), ClientRights::ReadOnly);
    let mut ask = || {
        let query = SessionQuery::Context;
        other.say(FromClient::Query { session: session.clone(), query });
        other.until("a report", |word| match word {
            ToClient::Context { report, .. } => Some(report.clone().unwrap()),
            _ => None,
        })
    };
    let before = ask();
    assert!(before.counted.is_none() && !before.model.is_empty(), "{before:?}");
    wire.prompt(&session, "list them");
    wire.turn_ends();
    let after = ask();
    let tokens = |report: &ContextReport, kind: ContextKind| {
        report.parts.iter().find(|part| part.kind == kind).unwrap().tokens
    };
    let grew = |kind| tokens(&after, kind) > tokens(&before, kind);
    for kind in [ContextKind::Prompts, ContextKind::Answers, ContextKind::Results] {
        assert!(grew(kind) && tokens(&before, kind) == 0, "{kind:?}: {before:?} {after:?}");
    }
    assert!(after.counted.is_some(), "the provider counted: {after:?}");
    let parts: u64 = after.parts.iter().map(|part| part.tokens).sum();
    assert!(after.used() - parts < 8, "the parts come to the whole: {after:?}");

    let shown = run(desk.agentd(&["context", &session.0]));
    assert_eq!(shown.code, 0, "{}", shown.err);
    for words in ["R results of calls", "T tool schemas", ". free", "The provider counted"] {
        assert!(shown.out.contains(words), "{words}: {}", shown.out);
    }
    let object = run(desk.agentd(&["context", &session.0, "--json"])).out;
    let object: Value = serde_json::from_str(&object).unwrap();
    assert_eq!(object["used"], after.used());
    assert_eq!(object["parts"].as_array().unwrap().len(), ContextKind::ALL.len());
    let unknown = run(desk.agentd(&["context", "none"]));
    assert!(unknown.code != 0 && unknown.err.contains("agentd attach"), "{}", unknown.err);
}

/// A read-only client may not compact the context.
#[test]
fn room_is_made_by_those_alone_who_may_type() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("a")]);
    let _daemon = desk.daemon();
    let (mut wire, mut other) = (Wire::to(&desk.door()), Wire::to(&desk.door()));
    let session = wire.open(&desk.opening(&server));
    other.attach(&session, BacklogFrom::Seq(1), ClientRights::ReadOnly);
    compact(&other, &session);
    other.until("a refusal", |word| matches!(word, ToClient::Failed { .. }).then_some(()));
    compact(&wire, &session);
    wire.event("an answer", |event| matches!(event, ClientEvent::Notice { .. }).then_some(()));
}

/// The block's place in the last message, and its mark.
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
fn each_request_carries_a_changed_pinned_file_once_in_the_form_of_each_vendor() {
    for vendor in VENDORS {
        let desk = Desk::new();
        desk.write("notes.md", "as pinned\n");
        // Their output is in none of the commands, and could not be in a digest.
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
        assert_eq!(seen[0].raw.matches("as pinned").count(), 1, "{vendor:?}");
        assert!(!seen[0].raw.contains("UPDATED]"), "{vendor:?}");
        // The second round changes nothing, and its request carries the same.
        for seen in &seen[1..] {
            let (block, mark) = block(vendor, &seen.body).expect("a block behind the results");
            let expected = format!("{mark}\n<file path=\"notes.md\">\ngamma41\nomega42\n</file>");
            assert_eq!(block, expected, "{vendor:?}");
            assert_eq!(seen.raw.matches("UPDATED]").count(), 1, "{vendor:?}");
            assert_eq!(seen.raw.matches("omega42").count(), 1, "{vendor:?}");
            assert!(!seen.raw.contains("as pinned"), "{vendor:?}: {}", seen.raw);
        }
        // A script's output has the calls of the model and no others.
        let results = ran.out.lines().filter(|line| line.contains("tool_result\"")).count();
        assert_eq!(results, 3, "{vendor:?}: {}", ran.out);
        // Each read is in the audit log; the journal has its digest. A file that was changed right
        // before its stamp was taken is read once more.
        let audit = desk.audit();
        let reads = audit.iter().filter(|it| it["event"] == "ended" && it["tool"] == "read");
        assert!((2..=3).contains(&reads.count()), "{vendor:?}: {audit:?}");
        let session = fs::read_dir(desk.state().join("sessions")).unwrap().next().unwrap().unwrap();
        let journal = fs::read_to_string(session.path().join("journal.jsonl")).unwrap();
        assert!(journal.contains("[pinned file: 16 bytes, sha256 "), "{vendor:?}: {journal}");
        assert!(!journal.contains("omega42"), "{vendor:?}: {journal}");
    }
}

/// The text of the pinned files in a request to Anthropic's interface: at the front and at the end.
fn pinned(body: &Value) -> String {
    let messages = body["messages"].as_array().unwrap();
    let last = messages.last().unwrap()["content"].as_array().unwrap();
    format!("{}\n{}", messages[0]["content"][0]["text"], last.last().unwrap()["text"])
}

#[test]
fn an_edit_by_a_person_while_the_model_only_looks_is_in_the_next_request() {
    let desk = Desk::new();
    for (file, text) in [("a.md", "alpha one\n"), ("b.md", "beta one\n")] {
        desk.write(file, text);
    }
    let (a, b) = (desk.project().join("a.md"), desk.project().join("b.md"));
    let server = Server::answering(move |request, _| {
        let look = |id: &str| Answer::says([call(id, "ls", &json!({"path": "."}).to_string())]);
        match request {
            1 => {
                fs::write(&b, "beta two\n").unwrap();
                look("toolu_1")
            }
            // As an editor saves: another file by the same name, and of the same size.
            2 => {
                let new = a.with_extension("new");
                fs::write(&new, "alpha two\n").unwrap();
                fs::rename(new, &a).unwrap();
                look("toolu_2")
            }
            3 => {
                fs::write(&b, "beta tri\n").unwrap();
                look("toolu_3")
            }
            4 => look("toolu_4"),
            5 => {
                fs::remove_file(&b).unwrap();
                look("toolu_5")
            }
            _ => Answer::text("done"),
        }
    });
    let ran = desk.ask(&server, &["--context", "a.md", "--context", "b.md"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let seen = server.requests();
    let texts = ["alpha one", "alpha two", "beta one", "beta two", "beta tri", "not_found"];
    let expected = [
        ["alpha one", "beta one"],
        ["alpha one", "beta two"],
        ["alpha two", "beta two"],
        ["alpha two", "beta tri"],
        ["alpha two", "beta tri"],
        ["alpha two", "not_found"],
    ];
    assert_eq!(seen.len(), expected.len());
    for (seen, expected) in seen.iter().zip(expected) {
        assert_eq!(seen.refused, None);
        for text in texts {
            let times = usize::from(expected.contains(&text));
            assert_eq!(seen.raw.matches(text).count(), times, "{text}: {}", pinned(&seen.body));
        }
    }
}

/// After the death of any process the repeated request has the same content at the same place.
#[test]
fn a_death_leaves_the_pinned_files_of_a_request_as_they_were() {
    for victim in ["agentd-session", "agentd-provider", "agentd-store", "agentd-supervisor"] {
        let desk = Desk::new();
        desk.write("a.md", "alpha one\n");
        desk.write("b.md", "beta one\n");
        let agentd: Arc<OnceLock<u32>> = Arc::default();
        let known = Arc::clone(&agentd);
        let server = Server::answering(move |request, _| match request {
            1 => {
                let command = json!({"command": "echo beta $((1+1)) > b.md"}).to_string();
                Answer::says([call("toolu_1", "bash", &command)])
            }
            2 => {
                let supervisor = child_of(*known.wait(), "agentd-supervisor").unwrap();
                let pid = match victim {
                    "agentd-supervisor" => supervisor,
                    worker => child_of(supervisor, worker).unwrap(),
                };
                send(pid, Signal::SIGKILL);
                Answer::text("too late").stalled_after(0, Duration::from_secs(1))
            }
            _ => Answer::text("done"),
        });
        let flags = ["--context", "a.md", "--context", "b.md", "--permission-mode", "auto"];
        let mut command = desk.with_server(&server, &[&["-p", "go"][..], &flags].concat());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        agentd.set(child.id()).unwrap();
        let ended = child.wait_with_output().unwrap();
        let seen = server.requests();
        let err = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{victim}: {err}");
        let (second, last) = (&seen[1].body["messages"], &seen.last().unwrap().body["messages"]);
        assert_eq!(second, last, "{victim}: {err}");
        assert!(seen.len() > 2 || victim == "agentd-store", "{victim}");
        let carried = pinned(&seen[1].body);
        assert!(carried.contains("alpha one") && carried.contains("beta 2"), "{carried}");
        assert!(!seen[1].raw.contains("beta one"), "{carried}");
    }
}

/// A file pinned by a flag belongs to the session: it is there when a person resumes the session.
#[test]
fn files_that_a_flag_pinned_stay_pinned_when_the_session_goes_on() {
    let desk = Desk::new();
    desk.write("a.md", "alpha one\n");
    desk.write("b.md", "beta one\n");
    let server = Server::answering(|n, _| Answer::text(&format!("answer {n}")));
    let ask = |flags: &[&str]| {
        let ran = desk.ask(&server, flags);
        assert_eq!(ran.code, 0, "{flags:?}: {}", ran.err);
        let raw = server.requests().last().unwrap().raw.clone();
        ["alpha one", "beta one", "alpha two"].map(|text| raw.matches(text).count())
    };
    assert_eq!(ask(&["--context", "a.md"]), [1, 0, 0]);
    assert_eq!(ask(&["-c"]), [1, 0, 0]);
    assert_eq!(ask(&["-c", "--context", "b.md"]), [1, 1, 0]);
    desk.write("a.md", "alpha two\n");
    assert_eq!(ask(&["-c", "--fork"]), [0, 1, 1], "a copy of the session has them too");
    assert_eq!(ask(&["-c", "--context", "a.md"]), [0, 1, 1]);
    assert_eq!(ask(&[]), [0, 0, 0], "another session: the control");
    let seen = server.requests();
    assert!(seen.iter().all(|seen| seen.refused.is_none()));
}

/// An unreadable file is refused as `read` refuses it and reported to the model; the turn
/// continues.
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
    let change = |wire: &Wire, change: SettingChange| {
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
    change(&wire, SettingChange::Pin("notes.md".into()));
    change(&wire, SettingChange::Pin("notes.md".into()));
    refused(&mut wire, "pinned already");
    change(&wire, SettingChange::Unpin("other.md".into()));
    refused(&mut wire, "these are: notes.md");
    assert!(turn(&mut wire).contains("remember this"));
    send(daemon.pid, Signal::SIGKILL);
    std::mem::forget(daemon);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
    wire.open(&protocol::client::SessionRequest { start, ..opening });
    assert!(turn(&mut wire).contains("remember this"), "it is pinned still");
    change(&wire, SettingChange::Unpin("notes.md".into()));
    assert!(!turn(&mut wire).contains("remember this"), "and now no more");
    assert!(server.requests().iter().all(|seen| seen.refused.is_none()));
}
