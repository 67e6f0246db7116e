//! Summaries by the model and tools that it loads, through the real processes: deaths while a summary is
//! written, failures, edits by a person, and a small context whose tools are searched.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::vendor::{VENDORS, Vendor};
use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, child_of, run, send};
use nix::sys::signal::Signal;
use protocol::client::{
    ClientEvent, FromClient, SessionQuery, SessionRequest, SessionStart, SessionWish, ToClient,
};
use protocol::context::{Compaction, NumberedSummary, SummaryStep};
use protocol::ids::SessionId;
use protocol::session::OpenTurn;
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};

const ASKS: &str = "Write a summary of this conversation";

fn compact(wire: &Wire, session: &SessionId, focus: &str) {
    let wish = SessionWish::Compact { focus: focus.to_owned() };
    wire.say(FromClient::Wish { session: session.clone(), wish });
}

/// The steps of summaries in the journal of the only session.
fn steps(desk: &Desk) -> Vec<String> {
    let session = fs::read_dir(desk.state().join("sessions")).unwrap().next().unwrap().unwrap();
    let text = fs::read_to_string(session.path().join("journal.jsonl")).unwrap();
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let step = |record: Value| match record["kind"].as_str() {
        Some("SUMMARY") => record["step"].as_str().map(str::to_owned),
        Some("COMPACTED") => Some("cut".to_owned()),
        _ => None,
    };
    records.filter_map(step).collect()
}

fn step<T>(wire: &mut Wire, what: &str, wanted: impl Fn(&Compaction) -> Option<T>) -> T {
    wire.event(what, |event| match event {
        ClientEvent::Compacted(step) => wanted(step),
        _ => None,
    })
}

fn written(wire: &mut Wire) -> String {
    step(wire, "a summary", |step| match step {
        Compaction::Summary(SummaryStep::Written { text, .. }) => Some(text.clone()),
        _ => None,
    })
}

fn waits_for_requests(server: &Server, count: usize) {
    let until = Instant::now() + Duration::from_secs(20);
    while server.requests().len() < count {
        assert!(Instant::now() < until, "{} requests", server.requests().len());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_death_while_the_summary_streams_loses_nothing_and_asks_once_more() {
    for victim in ["agentd-session", "agentd-provider", "agentd-supervisor"] {
        let desk = Desk::new();
        let slow = Answer::text("GOAL: half of it and no more");
        let half = slow.body().find("half of it").unwrap();
        let server = Server::scripted([
            Answer::text("the first answer"),
            slow.stalled_after(half, Duration::from_secs(20)),
            Answer::text("GOAL: all of it"),
            Answer::text("the second answer"),
        ]);
        let daemon = desk.daemon();
        let opening = desk.opening(&server);
        let mut wire = Wire::to(&desk.door());
        let session = wire.open(&opening);
        wire.prompt(&session, "the first question, word for word");
        wire.turn_ends();
        compact(&wire, &session, "what is open");
        waits_for_requests(&server, 2);
        let (_after, mut wire) = match victim {
            "agentd-supervisor" => {
                send(daemon.pid, Signal::SIGKILL);
                std::mem::forget(daemon);
                let after = desk.daemon();
                let mut wire = Wire::to(&desk.door());
                let start =
                    SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
                wire.open(&SessionRequest { start, ..opening });
                (after, wire)
            }
            worker => {
                send(child_of(daemon.pid, worker).unwrap(), Signal::SIGKILL);
                (daemon, wire)
            }
        };
        assert_eq!(written(&mut wire), "GOAL: all of it", "{victim}");
        wire.prompt(&session, "the second question");
        wire.turn_ends();
        let seen = server.requests();
        assert!(seen.iter().all(|seen| seen.refused.is_none()), "{victim}: {seen:?}");
        assert_eq!(seen.len(), 4, "{victim}");
        let asked: Vec<_> = seen.iter().filter(|seen| seen.raw.contains(ASKS)).collect();
        assert_eq!(asked.len(), 2, "{victim}: once, and once more");
        assert_eq!(asked[0].body["messages"], asked[1].body["messages"], "{victim}");
        assert!(asked[0].raw.contains("this focus: what is open"), "{victim}");
        let last = &seen[3].raw;
        for kept in ["GOAL: all of it", "the first question, word for word", "the second question"]
        {
            assert_eq!(last.matches(kept).count(), 1, "{victim}: {kept}: {last}");
        }
        // The provider's death repeats the request and not the record of it.
        let expected: &[&str] = match victim {
            "agentd-provider" => &["asked", "written"],
            _ => &["asked", "asked", "written"],
        };
        assert_eq!(steps(&desk), expected, "{victim}");
    }
}

#[test]
fn a_summary_that_fails_is_replaced_by_a_cut_that_people_see() {
    let desk = Desk::new();
    let list = call("toolu_1", "bash", &json!({ "command": "seq 1 4000" }).to_string());
    let server = Server::scripted([
        Answer::says([list]),
        Answer::text("a long list"),
        Answer::status(400, "invalid_request_error", "not today"),
        Answer::text("the next answer"),
    ]);
    let _daemon = desk.daemon();
    let mut opening = desk.opening(&server);
    opening.mode = Some(protocol::judgement::PermissionMode::Auto);
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&opening);
    wire.prompt(&session, "list");
    wire.turn_ends();
    compact(&wire, &session, "");
    let reason = step(&mut wire, "a failure", |step| match step {
        Compaction::Summary(SummaryStep::Failed { reason, .. }) => Some(reason.clone()),
        _ => None,
    });
    assert!(reason.contains("not today") && reason.contains("left out instead"), "{reason}");
    step(&mut wire, "a cut", |step| matches!(step, Compaction::Cut { .. }).then_some(()));
    wire.prompt(&session, "go on");
    wire.turn_ends();
    assert_eq!(steps(&desk), ["asked", "failed", "cut"]);
    let seen = server.requests();
    assert!(seen[3].refused.is_none() && seen[3].raw.contains("left out to make room"));
    let shown = run(desk.agentd(&["show", &session.0])).out;
    assert!(
        shown.contains("the model wrote no summary: ") && shown.contains("not today"),
        "{shown}"
    );
}

#[test]
fn a_person_reads_and_edits_the_summary_and_the_journal_keeps_the_edit() {
    let desk = Desk::new();
    let answers = ["the first answer", "GOAL: the model's words", "second", "third"];
    let server = Server::scripted(answers.map(Answer::text));
    let daemon = desk.daemon();
    let opening = desk.opening(&server);
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&opening);
    wire.prompt(&session, "question");
    wire.turn_ends();
    compact(&wire, &session, "");
    written(&mut wire);
    let query = SessionQuery::Context;
    wire.say(FromClient::Query { session: session.clone(), query });
    let summary = wire.until("a report", |word| match word {
        ToClient::Context { report, .. } => report.clone().unwrap().summary,
        _ => None,
    });
    assert_eq!(summary.text, "GOAL: the model's words");
    let edit = |number, text: &str| {
        let wish = SessionWish::EditSummary(NumberedSummary { number, text: text.to_owned() });
        FromClient::Wish { session: session.clone(), wish }
    };
    wire.say(edit(summary.number, "GOAL: my words"));
    step(&mut wire, "an edit", |step| match step {
        Compaction::Summary(SummaryStep::Edited { text }) => {
            (text == "GOAL: my words").then_some(())
        }
        _ => None,
    });
    wire.say(edit(summary.number, "GOAL: older words"));
    wire.event("a refusal", |event| match event {
        ClientEvent::Notice { text } => text.contains("replaced it meanwhile").then_some(()),
        _ => None,
    });
    // After the death of everything it is there still.
    send(daemon.pid, Signal::SIGKILL);
    std::mem::forget(daemon);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
    wire.open(&SessionRequest { start, ..opening });
    wire.prompt(&session, "and now");
    wire.turn_ends();
    let last = server.requests().last().unwrap().raw.clone();
    assert!(last.contains("GOAL: my words") && !last.contains("model's words"), "{last}");
    assert_eq!(steps(&desk), ["asked", "written", "edited"]);
}

/// The names of the tools in a request, in their order.
fn tools(vendor: Vendor, body: &Value) -> Vec<String> {
    let list = match vendor {
        Vendor::Gemini => &body["tools"][0]["functionDeclarations"],
        Vendor::Anthropic | Vendor::Chat | Vendor::Responses => &body["tools"],
    };
    let name = |tool: &Value| match vendor {
        Vendor::Chat => tool["function"]["name"].as_str().unwrap().to_owned(),
        Vendor::Anthropic | Vendor::Responses | Vendor::Gemini => {
            tool["name"].as_str().unwrap().to_owned()
        }
    };
    list.as_array().unwrap().iter().map(name).collect()
}

#[test]
fn requests_list_few_tools_and_the_model_loads_others_by_a_search() {
    for vendor in VENDORS {
        let desk = Desk::new();
        let config = desk.home().join(".config/agentd/config.toml");
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        let model = "[models.small]\nmodel = 'test-model'\ncontext = 30000\nmax_tokens = 500\n\
                     [models.large]\nmodel = 'test-model'\ncontext = 1000000\n";
        fs::write(&config, model).unwrap();
        let server = Server::of(
            vendor,
            [
                vendor.says([call("call_1", "tool_search", "{\"query\": \"undo_list\"}")]),
                vendor.says([call(
                    "call_2",
                    "checklist_create",
                    &json!({
                        "group": "g", "title": "To do", "items": ["look"],
                    })
                    .to_string(),
                )]),
                vendor.text("done"),
                vendor.text("again"),
                vendor.text("all"),
            ],
        );
        let ask = |flags: &[&str]| {
            let arguments = [&["-p", "go", "--permission-mode", "auto"][..], flags].concat();
            let ran = run(desk.with_vendor(vendor, &server, &arguments));
            assert_eq!(ran.code, 0, "{vendor:?}: {}", ran.err);
        };
        ask(&["--model", "small"]);
        let seen = server.requests();
        assert!(seen.iter().all(|seen| seen.refused.is_none()), "{vendor:?}: {seen:?}");
        let lists: Vec<_> = seen.iter().map(|seen| tools(vendor, &seen.body)).collect();
        let has = |list: &[String], name: &str| list.iter().any(|tool| tool == name);
        for core in ["read", "edit", "bash", "tool_search"] {
            assert!(has(&lists[0], core), "{vendor:?}: {core}: {lists:?}");
        }
        for other in ["undo_list", "checklist_create", "git_log"] {
            assert!(!has(&lists[0], other), "{vendor:?}: {other}: {lists:?}");
        }
        assert!(seen[0].raw.contains("undo_list"), "the search names what it finds");
        // The list grows at its end by the search. A call of another tool ran, and needs no place there.
        let grown = |list: &[String], more: &[&str]| {
            let more = more.iter().map(|name| (*name).to_owned());
            list.iter().cloned().chain(more).collect::<Vec<_>>()
        };
        assert_eq!(lists[1], grown(&lists[0], &["undo_list"]), "{vendor:?}");
        assert_eq!(lists[2], lists[1], "{vendor:?}");
        assert!(seen[2].raw.contains("To do (g): 0 of 1 done"), "{vendor:?}: {}", seen[2].raw);
        // A process that replays the journal offers the same.
        ask(&["-c", "--model", "small"]);
        let again = &server.requests()[3].body;
        assert_eq!(tools(vendor, again), lists[2], "{vendor:?}");
        // A new session begins with few of them in a large context too.
        ask(&["--model", "large"]);
        let fresh = &server.requests()[4].body;
        assert_eq!(tools(vendor, fresh), lists[0], "{vendor:?}");
    }
}
