//! Output that a result has no room for: the model reads all of it on, from a file or by further calls.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, run};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// The text of the newest result.
fn newest(request: &Value) -> Option<String> {
    let content = &request["messages"].as_array()?.last()?["content"][0]["content"];
    content.as_str().or_else(|| content[0]["text"].as_str()).map(str::to_owned)
}

/// The results of the calls that `next` makes of the result before, until it makes none.
fn told(
    tier: &str,
    mut next: impl FnMut(&[String]) -> Option<(&'static str, Value)> + Send + 'static,
) -> Vec<String> {
    let desk = Desk::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let results = Arc::clone(&told);
    let server = Server::answering(move |number, request| {
        let mut results = results.lock().unwrap();
        if number > 1 {
            results.extend(newest(request));
        }
        match next(&results) {
            Some((tool, input)) => {
                Answer::says([call(&format!("toolu_{number}"), tool, &input.to_string())])
            }
            None => Answer::text("Done."),
        }
    });
    let flags = ["-p", "go", "--permission-mode", "auto", "--max-turns", "60"];
    let mut command = desk.with_server(&server, &flags);
    command.env("AGENTD_SANDBOX_TIER", tier);
    let ran = run(command);
    assert_eq!(ran.code, 0, "{ran:?}");
    drop(server);
    told.lock().unwrap().clone()
}

/// The numbers among the lines of these results.
fn numbers(results: &[String]) -> BTreeSet<u32> {
    let lines = results.iter().flat_map(|result| result.lines());
    lines.filter_map(|line| line.rsplit('\t').next()?.parse().ok()).collect()
}

#[test]
fn a_command_s_output_is_read_on_in_its_file() {
    for (tier, command) in [
        ("A", "seq 100001 140000"),
        ("A", "seq 100001 140000 >&2; exit 3"),
        ("B", "seq 100001 140000"),
    ] {
        let mut file = String::new();
        let results = told(tier, move |results| {
            let Some(last) = results.last() else {
                return Some(("bash", json!({ "command": command })));
            };
            if results.len() == 1 {
                let told = last.split_once("all of it is in ");
                file = told
                    .and_then(|(_, rest)| rest.split(',').next())
                    .unwrap_or_default()
                    .to_owned();
                return (!file.is_empty()).then(|| ("read", json!({ "path": file })));
            }
            let on = last.rsplit_once("continue with offset = ")?.1.trim_end_matches(']');
            Some(("read", json!({ "path": file, "offset": on.parse::<u32>().unwrap() })))
        });
        let shown = numbers(&results[..1]);
        assert!(shown.len() < 10_000 && shown.contains(&100_001) && shown.contains(&140_000));
        assert_eq!(numbers(&results), (100_001..=140_000).collect(), "{}", results[0].len());
    }
}

#[test]
fn a_short_output_makes_no_file() {
    let ls = ("bash", json!({ "command": "ls /tmp /var/tmp \"$TMPDIR\"" }));
    let mut calls = [("bash", json!({ "command": "seq 100001 103000" })), ls].into_iter();
    let results = told("A", move |_| calls.next());
    assert!(!results[1].contains("agentd-output"), "{}", results[1]);
    assert_eq!(numbers(&results[..1]).len(), 3000);
}

#[test]
fn a_background_command_s_output_is_read_on_by_further_calls() {
    for command in ["seq 100001 120000; sleep 600", "seq 100001 120000; sleep 2"] {
        let results = told("A", move |results| match results.last() {
            None => Some(("bash", json!({ "command": command, "background": true }))),
            Some(_) if results.len() < 30 && !numbers(results).contains(&120_000) => {
                Some(("bash_output", json!({ "call": 1, "wait_ms": 3000 })))
            }
            Some(_) => None,
        });
        let begins = results.iter().map(|text| text.chars().take(300).collect::<String>());
        assert!(results.len() > 4, "{:#?}", begins.collect::<Vec<_>>());
        assert!(results.iter().any(|text| text.contains("the next bash_output goes on")));
        assert_eq!(numbers(&results), (100_001..=120_000).collect());
    }
}
