//! A non-interactive run: the outcome of a call by mode, rule and tool, the result for the model,
//! and the end of the run.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call, text, thinking};
use crate::support::{Desk, needs, run};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Outcome of a call and of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// It ran; the run ends with 0.
    Ran,
    /// A rule forbids it; the model knows which, and the run ends with 0.
    ByRule,
    /// The mode refuses; the run ends with 0.
    ByMode,
    /// The call needs approval; the run ends with 10.
    NobodyToAsk,
    /// There is no run: the rule is wrong, and the run ends with 16.
    NoRun,
}

use Outcome::{ByMode, ByRule, NoRun, NobodyToAsk, Ran};

/// The effect of a call that ran.
#[derive(Debug, Clone, Copy)]
enum Trace {
    None,
    /// This is there.
    Made(&'static str),
    /// This, which was there, is not.
    Gone(&'static str),
}

/// The call of each column: tool, arguments, the rule's pattern, its effect.
const TOOLS: [(&str, &str, &str, Trace); 5] = [
    ("ls", "{}", "ls", Trace::None),
    ("write", r#"{"path":"made","content":"x"}"#, "write:made", Trace::Made("made")),
    ("bash", r#"{"command":"touch made"}"#, "bash:touch *", Trace::Made("made")),
    // The same with a right that the session lacks.
    ("bash", r#"{"command":"touch made","network":"on"}"#, "bash:touch *", Trace::Made("made")),
    // A directory that goes with all that is in it, which is no edit.
    ("delete", r#"{"paths":["old"],"recursive":true}"#, "delete:old", Trace::Gone("old")),
];

/// Mode, the list of the rule, and an outcome for each of [`TOOLS`].
const TABLE: [(&str, &str, [Outcome; 5]); 24] = [
    ("ask", "", [Ran, NobodyToAsk, NobodyToAsk, NobodyToAsk, NobodyToAsk]),
    ("ask", "allow", [Ran, Ran, Ran, NobodyToAsk, Ran]),
    ("ask", "ask", [NoRun, NobodyToAsk, NobodyToAsk, NobodyToAsk, NobodyToAsk]),
    ("ask", "deny", [ByRule, ByRule, ByRule, ByRule, ByRule]),
    ("accept-edits", "", [Ran, Ran, NobodyToAsk, NobodyToAsk, NobodyToAsk]),
    ("accept-edits", "allow", [Ran, Ran, Ran, NobodyToAsk, Ran]),
    ("accept-edits", "ask", [NoRun, NobodyToAsk, NobodyToAsk, NobodyToAsk, NobodyToAsk]),
    ("accept-edits", "deny", [ByRule, ByRule, ByRule, ByRule, ByRule]),
    // The project is the sandbox's to bound and undo's to cover, with the directory that goes.
    ("sandboxed", "", [Ran, Ran, Ran, NobodyToAsk, Ran]),
    ("sandboxed", "allow", [Ran, Ran, Ran, NobodyToAsk, Ran]),
    ("sandboxed", "ask", [NoRun, NobodyToAsk, NobodyToAsk, NobodyToAsk, NobodyToAsk]),
    ("sandboxed", "deny", [ByRule, ByRule, ByRule, ByRule, ByRule]),
    ("auto", "", [Ran, Ran, Ran, NobodyToAsk, Ran]),
    ("auto", "allow", [Ran, Ran, Ran, NobodyToAsk, Ran]),
    ("auto", "ask", [NoRun, NobodyToAsk, NobodyToAsk, NobodyToAsk, NobodyToAsk]),
    ("auto", "deny", [ByRule, ByRule, ByRule, ByRule, ByRule]),
    ("dont-ask", "", [Ran, ByMode, ByMode, ByMode, ByMode]),
    ("dont-ask", "allow", [Ran, Ran, Ran, ByMode, Ran]),
    ("dont-ask", "ask", [NoRun, ByMode, ByMode, ByMode, ByMode]),
    ("dont-ask", "deny", [ByRule, ByRule, ByRule, ByRule, ByRule]),
    ("plan", "", [Ran, ByMode, ByMode, ByMode, ByMode]),
    // This mode allows no change, whatever the rules allow.
    ("plan", "allow", [Ran, ByMode, ByMode, ByMode, ByMode]),
    ("plan", "ask", [NoRun, ByMode, ByMode, ByMode, ByMode]),
    ("plan", "deny", [ByRule, ByRule, ByRule, ByRule, ByRule]),
];

#[test]
fn each_mode_and_rule_has_one_outcome_for_each_tool() {
    for (mode, list, outcomes) in TABLE {
        for (tool, wanted) in TOOLS.iter().zip(outcomes) {
            let cell = format!("mode {mode}, rule in {list:?}, {} {}", tool.0, tool.1);
            one(&cell, mode, list, *tool, wanted);
        }
    }
}

#[track_caller]
fn one(
    cell: &str,
    mode: &str,
    list: &str,
    (tool, input, rule, trace): (&str, &str, &str, Trace),
    wanted: Outcome,
) {
    let desk = Desk::new();
    fs::create_dir(desk.project().join("old")).unwrap();
    fs::write(desk.project().join("old/file"), "x").unwrap();
    if !list.is_empty() {
        let file = desk.home().join(".config/agentd/config.toml");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("[permissions]\n{list} = [{rule:?}]\n")).unwrap();
    }
    let server =
        Server::scripted([Answer::says([call("toolu_1", tool, input)]), Answer::text("done")]);
    let ran = desk.ask(&server, &["--permission-mode", mode]);
    let code = match wanted {
        Ran | ByRule | ByMode => 0,
        NobodyToAsk => 10,
        NoRun => 16,
    };
    assert_eq!(ran.code, code, "{cell}: {ran:?}");
    let there = |name: &str| desk.project().join(name).exists();
    match trace {
        Trace::None => {}
        Trace::Made(name) => assert_eq!(there(name), wanted == Ran, "{cell}: {ran:?}"),
        Trace::Gone(name) => assert_eq!(there(name), wanted != Ran, "{cell}: {ran:?}"),
    }
    if wanted == NoRun {
        assert!(ran.err.contains("config.toml:2"), "{cell}: {}", ran.err);
        assert!(ran.err.contains("move the rule to permissions.deny"), "{cell}: {}", ran.err);
        return;
    }
    assert_eq!(ran.result(), "done", "{cell}: the run continues");
    let result = result(&server.requests()[1].body);
    assert_eq!(result["is_error"] == true, wanted != Ran, "{cell}: {result}");
    let told = result["content"].to_string();
    let widens = input.contains("network");
    let asks_for = match mode {
        "sandboxed" => "it would have the whole network",
        _ => "network for this one call",
    };
    let words: &[&str] = match wanted {
        Ran => &[],
        ByRule => &["forbids it", "config.toml:2"],
        ByMode if mode == "plan" => &["`plan`", "nothing may be changed"],
        ByMode if widens => {
            &["`dont-ask`", "network for this one call", "network:touch made", "--net on"]
        }
        ByMode if list == "ask" => &["`dont-ask`", "config.toml:2", "removing that rule"],
        ByMode => &["`dont-ask`", "permissions.allow", "--allowed-tools"],
        NobodyToAsk if widens => &["non-interactive", asks_for, "network:touch made", "--net on"],
        // A question that a rule asks is not allowed by another rule.
        NobodyToAsk if list == "ask" => &["non-interactive", "config.toml:2", "removing that rule"],
        NobodyToAsk => &["non-interactive", "permissions.allow", "--allowed-tools"],
        NoRun => unreachable!(),
    };
    for word in words {
        assert!(told.contains(word), "{cell}: {word:?} is not in {told}");
    }
    if list == "ask" && !widens {
        assert!(!told.contains("--allowed-tools"), "{cell}: no rule could allow it: {told}");
    }
}

/// The result of the call that the model got.
fn result(body: &Value) -> Value {
    body["messages"].as_array().unwrap().last().unwrap()["content"][0].clone()
}

#[test]
fn what_the_model_is_told_would_allow_it_does() {
    let desk = Desk::new();
    let input = json!({"command": "touch made"}).to_string();
    let script = || {
        Server::scripted([Answer::says([call("toolu_1", "bash", &input)]), Answer::text("done")])
    };
    let server = script();
    assert_eq!(desk.ask(&server, &[]).code, 10);
    let told = result(&server.requests()[1].body)["content"].to_string();
    let rule = told.split("--allowed-tools '").nth(1).unwrap().split('\'').next().unwrap();
    assert!(!desk.project().join("made").exists());
    let ran = run(desk.with_server(&script(), &["-p", "do it", "--allowed-tools", rule]));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(desk.project().join("made").exists());
}

/// The output of a small script that reads a run's stream in the shape that common readers expect.
fn read_by_a_script(stream: &str) -> (Option<i32>, String, String) {
    needs("python3");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stream_json/read.py");
    let mut child = Command::new("python3")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may have stopped reading at a broken line.
    let _ = child.stdin.take().unwrap().write_all(stream.as_bytes());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let words = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), words(stdout), words(stderr))
}

const STREAM: [&str; 4] = ["-p", "do it", "--output-format", "stream-json"];

#[test]
fn a_script_that_knows_the_common_shape_reads_the_stream() {
    let desk = Desk::new();
    desk.write("a.txt", "apple\n");
    let server = Server::scripted([
        Answer::says([
            thinking("Hm.", "c2ln"),
            text("I look."),
            call("toolu_1", "read", r#"{"path":"a.txt"}"#),
            call("toolu_2", "read", r#"{"path":"none.txt"}"#),
        ]),
        Answer::text("It says `apple`."),
    ]);
    let ran = run(desk.with_server(&server, &STREAM));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let (code, told, err) = read_by_a_script(&ran.out);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{}", ran.out);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].starts_with("session ") && lines[0].ends_with(" tools"), "{told}");
    assert_eq!(
        lines[1..5],
        [
            "thinks Hm. (signed: True)",
            "says I look.",
            r#"calls read {"path": "a.txt"} as toolu_1"#,
            r#"calls read {"path": "none.txt"} as toolu_2"#,
        ]
    );
    assert!(told.contains("toolu_1 came back: 1\tapple\n"), "{told}");
    assert!(told.contains("toolu_2 failed: Error [not_found]"), "{told}");
    assert!(told.contains("\nsays It says `apple`.\ncost 0.00"), "{told}");
    assert_eq!(*lines.last().unwrap(), "success after 2 turns: It says `apple`.");
}

#[test]
fn the_script_tells_a_failed_run_and_complains_of_a_broken_stream() {
    let desk = Desk::new();
    let look = Answer::says([call("toolu_1", "ls", "{}")]);
    let server = Server::scripted([look, Answer::text("So far.")]);
    let ran = run(desk.with_server(&server, &[&STREAM[..], &["--max-turns", "1"]].concat()));
    assert_eq!(ran.code, 12, "{}", ran.err);
    let (code, told, err) = read_by_a_script(&ran.out);
    assert_eq!(code, Some(1), "{told}{err}");
    assert!(told.contains("error_max_turns after 2 turns"), "{told}");
    // A run that never had a session has its result too.
    let ran = run(desk.agentd(&STREAM));
    assert_eq!(ran.code, 13, "{}", ran.err);
    let (code, told, err) = read_by_a_script(&ran.out);
    assert_eq!(code, Some(1), "{told}{err}");
    assert!(told.contains("error_during_execution after 0 turns"), "{told}");
    // Other input is not taken for such a stream.
    let server = Server::scripted([Answer::text("fine")]);
    let good = run(desk.with_server(&server, &STREAM)).out;
    let lines: Vec<&str> = good.lines().collect();
    assert_eq!(read_by_a_script(&good).0, Some(0));
    let cut = format!("{}\n{}\n", lines[0], &lines[1][..20]);
    let unfinished = lines[..2].join("\n");
    let foreign = good.replace("\"duration_api_ms\"", "\"duration\"");
    for (stream, complaint) in [
        (cut.as_str(), "line 2: JSONDecodeError"),
        (unfinished.as_str(), "ended without a result"),
        (foreign.as_str(), "line 3: KeyError: 'duration_api_ms'"),
    ] {
        let (code, _, err) = read_by_a_script(stream);
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains(complaint), "{complaint}: {err}");
    }
}
