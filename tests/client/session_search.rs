//! `agentd ls --search`: which sessions have some words, where, and which could not be read.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server};
use crate::support::{Desk, Run, run};
use serde_json::{Value, json};
use std::fs;

/// A session of one prompt and its answer; its ID.
fn session(desk: &Desk, prompt: &str, answer: &str, flags: &[&str]) -> String {
    let server = Server::scripted([Answer::text(answer)]);
    let mut arguments = vec!["-p", prompt, "--output-format", "json"];
    arguments.extend(flags);
    let ran = run(desk.with_server(&server, &arguments));
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.json()["session_id"].as_str().unwrap().to_owned()
}

fn found(ran: &Run) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn words_are_found_in_prompts_and_answers_newest_session_first() {
    let desk = Desk::new();
    let first = session(&desk, "Fix the ROUNDING\nof cents", "It rounds to cents now.", &[]);
    let second = session(&desk, "unrelated", "nothing", &[]);
    session(&desk, "go on", "The rounding is tested.\nAnd \"quoted\".", &["--resume", &first]);
    let third = session(&desk, "why the rounding of shares?", "Because.", &[]);

    let rows = found(&run(desk.agentd(&["ls", "--search", "the  rounding", "--json"])));
    let ids: Vec<_> = rows.iter().map(|row| row["session_id"].as_str().unwrap()).collect();
    assert_eq!(ids, [third.as_str(), first.as_str()]);
    let matches = json!([
        {"in": "prompt", "prompt": 1, "text": "Fix the ROUNDING"},
        {"in": "answer", "prompt": 2, "text": "The rounding is tested."},
    ]);
    assert_eq!(rows[1]["matches"], matches);
    let words = run(desk.agentd(&["ls", "--search", "rounding"]));
    for line in ["  prompt 1: why the rounding", "  answer to prompt 2: The rounding is tested."] {
        assert!(words.out.contains(line), "{line}: {}", words.out);
    }
    assert!(!words.out.contains(&second), "{}", words.out);
    let quoted = run(desk.agentd(&["ls", "--search", "\"quoted\""]));
    assert!(quoted.out.contains(&first), "as people wrote it, not as JSON: {}", quoted.out);
    let none = run(desk.agentd(&["ls", "--search", "nowhere to be found"]));
    assert_eq!((none.code, none.out.as_str()), (0, ""));
    assert!(none.err.contains("no session has \"nowhere to be found\""), "{}", none.err);
    assert_eq!(run(desk.agentd(&["ls", "--search", " "])).code, 2);

    // A damaged session is named, with what was found before the damage.
    let journal = desk.state().join("sessions").join(&first).join("journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.replacen("is tested", "is tasted", 1)).unwrap();
    let damaged = run(desk.agentd(&["ls", "--search", "rounding"]));
    assert!(damaged.err.contains(&format!("session {first} is searched only in part")));
    assert!(damaged.out.contains("prompt 1: Fix the ROUNDING"), "{}", damaged.out);
    assert!(damaged.out.contains(&third), "{}", damaged.out);
}

#[test]
fn many_matches_of_a_session_are_counted() {
    let desk = Desk::new();
    let id = session(&desk, "apple 1", "apple 2", &[]);
    session(&desk, "apple 3", "apple 4", &["--resume", &id]);
    let words = run(desk.agentd(&["ls", "--search", "APPLE"])).out;
    assert!(words.contains("prompt 2: apple 3\n  and 1 more"), "{words}");
    assert!(!words.contains("apple 4"), "{words}");
}
