//! `agentd audit verify` finds changes of the log from outside of agentd, and names their place.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, run};
use journal::{Audit, AuditRecord, Retention, entries};
use serde_json::json;
use std::fs;

/// A desk with four calls in its log, and the log's lines.
fn four_calls() -> (Desk, Vec<String>) {
    let desk = Desk::new();
    let bash = |n: usize| {
        let input = json!({ "command": format!("echo {n}") }).to_string();
        call(&format!("toolu_{n}"), "bash", &input)
    };
    let server = Server::answering(move |round, _| match round {
        1 => Answer::says([bash(1), bash(2)]),
        2 => Answer::says([bash(3), bash(4)]),
        _ => Answer::text("done"),
    });
    let ran = desk.ask(&server, &["--permission-mode", "auto"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let text = fs::read_to_string(log(&desk)).unwrap();
    let lines: Vec<_> = text.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 8, "a decision and an end of each call");
    let whole = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(whole.code, 0, "{whole:?}");
    assert!(whole.out.starts_with("audit verify: ok (8 records, 4 anchors"), "{}", whole.out);
    (desk, lines)
}

fn log(desk: &Desk) -> std::path::PathBuf {
    desk.state().join("audit/log.jsonl")
}

/// The report about a log of these lines, which is not valid.
#[track_caller]
fn verified(desk: &Desk, lines: &[String]) -> String {
    fs::write(log(desk), lines.join("\n") + "\n").unwrap();
    let ran = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.starts_with("audit verify: NOT as written"), "{}", ran.out);
    ran.out
}

#[test]
fn what_a_file_tool_was_refused_is_listed_as_denied_and_a_plain_failure_is_not() {
    let desk = Desk::new();
    desk.write("notes.md", "x");
    desk.write(".git/HEAD", "ref: refs/heads/main\n");
    let says = |n: usize, tool: &str, input: serde_json::Value| {
        call(&format!("toolu_{n}"), tool, &input.to_string())
    };
    let server = Server::scripted([
        Answer::says([
            says(1, "read", json!({"path": "/etc/shadow"})),
            says(2, "write", json!({"path": ".git/hooks/pre-commit", "content": "x"})),
            says(3, "read", json!({"path": "notes.md"})),
            says(4, "read", json!({"path": "absent.md"})),
        ]),
        Answer::text("done"),
    ]);
    desk.ask(&server, &["--permission-mode", "auto"]);
    let listed = run(desk.agentd(&["audit", "ls", "--denied"])).out;
    for refused in ["/etc/shadow", ".git/hooks/pre-commit"] {
        assert!(listed.contains(refused), "{refused}: {listed}");
    }
    assert!(!listed.contains("notes.md") && !listed.contains("absent.md"), "{listed}");
    let all = run(desk.agentd(&["audit", "ls"])).out;
    assert!(all.contains("notes.md") && all.contains("absent.md"), "{all}");
}

#[test]
fn audit_verify_finds_a_changed_record() {
    let (desk, lines) = four_calls();
    let mut changed = lines.clone();
    changed[3] = changed[3].replacen("\"call\":", "\"call\":1", 1);
    assert_ne!(changed[3], lines[3]);
    let said = verified(&desk, &changed);
    assert!(said.contains("line 4: changed"), "{said}");
}

#[test]
fn audit_verify_finds_a_removed_record() {
    let (desk, lines) = four_calls();
    let said = verified(&desk, &[&lines[..2], &lines[3..]].concat());
    assert!(said.contains("line 3: records 3 to 3 are missing before it"), "{said}");
    let said = verified(&desk, &lines[1..]);
    assert!(said.contains("line 1: records 1 to 1 are missing before it"), "{said}");
}

#[test]
fn audit_verify_finds_an_inserted_record() {
    let (desk, lines) = four_calls();
    // A good record of another log.
    let (_other, others) = four_calls();
    let mut inserted = lines.clone();
    inserted.insert(4, others[4].clone());
    let said = verified(&desk, &inserted);
    assert!(said.contains("line 5: put in"), "{said}");
    // A record of its own a second time.
    let mut doubled = lines.clone();
    doubled.insert(4, lines[2].clone());
    let said = verified(&desk, &doubled);
    assert!(said.contains("line 5"), "{said}");
}

#[test]
fn audit_verify_finds_that_the_tail_was_cut_off() {
    let (desk, lines) = four_calls();
    let session = fs::read_dir(desk.state().join("sessions")).unwrap().next().unwrap().unwrap();
    let session = session.file_name().into_string().unwrap();
    // The rest is a whole chain; the session's journal has later hashes.
    for left in [7, 4, 1] {
        let said = verified(&desk, &lines[..left]);
        let place = format!("line {}: the log was cut: session {session} saw record", left + 1);
        assert!(said.contains(&place), "{said}");
    }
    fs::remove_file(log(&desk)).unwrap();
    let ran = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("the log was cut"), "{}", ran.out);
}

#[test]
fn audit_verify_finds_a_changed_script() {
    let (desk, lines) = four_calls();
    assert!(!desk.state().join("audit/scripts").exists(), "each is in its record");
    let mut changed = lines.clone();
    changed[0] = changed[0].replacen("\"script_text\":\"echo", "\"script_text\":\"rm -", 1);
    assert_ne!(changed[0], lines[0]);
    let said = verified(&desk, &changed);
    assert!(said.contains("line 1: changed"), "{said}");
}

/// A script that is too long for a record is in a file of its own.
#[test]
fn audit_verify_finds_a_changed_long_script() {
    let desk = Desk::new();
    let input = json!({ "command": format!("true {}", "x".repeat(70_000)) }).to_string();
    let server =
        Server::scripted([Answer::says([call("toolu_1", "bash", &input)]), Answer::text("done")]);
    let ran = desk.ask(&server, &["--permission-mode", "auto"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let whole = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(whole.code, 0, "{whole:?}");
    let scripts = fs::read_dir(desk.state().join("audit/scripts")).unwrap();
    let scripts = scripts.map(|entry| entry.unwrap().path());
    let is_script = |path: &std::path::PathBuf| fs::read(path).unwrap().starts_with(b"true");
    let script = scripts.into_iter().find(is_script).expect("the script");
    let text = fs::read_to_string(&script).unwrap();
    fs::write(&script, text.replacen("true", "rm -", 1)).unwrap();
    let ran = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("that it names is gone or changed"), "{}", ran.out);
}

#[test]
fn a_log_of_several_files_is_read_as_one() {
    let (desk, _) = four_calls();
    let audit = desk.state().join("audit");
    // The log was rotated after each record before, and is so again by the next writer.
    let often = Retention { file_bytes: 1, ..Retention::default() };
    let note =
        |text: &str| AuditRecord::Unknown(json!({ "event": text }).as_object().unwrap().clone());
    let put_away = |retention, records: &[AuditRecord]| {
        let mut audit = Audit::open_bounded(&audit, retention).unwrap();
        for record in records {
            audit.append(record).unwrap();
        }
        audit.sync().unwrap();
    };
    put_away(often, &["a", "b", "c"].map(note));
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", r#"{"command":"echo behind"}"#)]),
        Answer::text("done"),
    ]);
    assert_eq!(desk.ask(&server, &["--permission-mode", "auto"]).code, 0);
    let said = |arguments: &[&str]| run(desk.agentd(&[&["audit"], arguments].concat())).out;
    let whole = said(&["verify"]);
    assert!(whole.starts_with("audit verify: ok (13 records, 5 anchors"), "{whole}");
    let all = said(&["ls"]);
    assert_eq!(all.matches(" bash ").count(), 5, "{all}");
    assert!(all.contains("echo 1") && all.contains("echo behind"), "{all}");
    assert_eq!(said(&["export"]).lines().count(), 10);
    let first = all.lines().nth(1).unwrap().split_whitespace().next().unwrap();
    assert!(said(&["show", first]).contains("echo 1"));

    // One in the middle taken away, which holds the record 9.
    let middle = audit.join("log-000000000009.jsonl");
    let kept = fs::read(&middle).unwrap();
    fs::remove_file(&middle).unwrap();
    let ran = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(ran.code, 1, "{ran:?}");
    let fault = "log-000000000010.jsonl, line 1: records 9 to 9 are missing before it";
    assert!(ran.out.contains(fault), "{}", ran.out);
    fs::write(&middle, kept).unwrap();

    // The oldest removed by the bounds as a call ended whose session died before it had that on record:
    // the log says where it begins, and that is confirmed as the next call ends.
    let end = entries(&audit)
        .unwrap()
        .map(|entry| entry.unwrap().record)
        .find(|record| matches!(record, AuditRecord::Ended(_)));
    put_away(Retention { all_bytes: 1, ..often }, &[note("d"), end.unwrap()]);
    let ran = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("which is not confirmed by any session"), "{}", ran.out);
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", r#"{"command":"echo after"}"#)]),
        Answer::text("done"),
    ]);
    assert_eq!(desk.ask(&server, &["--permission-mode", "auto"]).code, 0);
    let ran = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.starts_with("audit verify: ok ("), "{}", ran.out);
    assert!(ran.out.contains("the log begins at record "), "{}", ran.out);
    assert!(ran.out.contains("were removed because it was full"), "{}", ran.out);
    assert!(ran.out.contains("as the log itself records and a session confirms"), "{}", ran.out);
    // Without a session no journal can show it.
    fs::remove_dir_all(desk.state().join("sessions")).unwrap();
    let ran = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("no session is left that could confirm it"), "{}", ran.out);
}

/// A desk with two sessions: a read and a command that is denied, then a command that the kernel
/// refuses something; the names of the two.
fn two_sessions() -> (Desk, [String; 2]) {
    let desk = Desk::new();
    desk.write("seen.txt", "seen\n");
    let input = |command: &str| json!({ "command": command }).to_string();
    let first = Server::scripted([
        Answer::says([call("toolu_1", "read", r#"{"path":"seen.txt"}"#)]),
        Answer::says([call("toolu_2", "bash", &input("echo denied"))]),
        Answer::text("done"),
    ]);
    let one = desk.ask(&first, &["--permission-mode", "dont-ask"]);
    let second = Server::scripted([
        Answer::says([call("toolu_3", "bash", &input("echo x > /etc/agentd-canary; true"))]),
        Answer::says([call("toolu_4", "bash", &input("echo fine"))]),
        Answer::text("done"),
    ]);
    let two = desk.ask(&second, &["--permission-mode", "auto"]);
    let names = [one, two].map(|ran| ran.json()["session_id"].as_str().unwrap().to_owned());
    (desk, names)
}

/// The calls that `audit ls --json` names with these flags, each once.
fn listed(desk: &Desk, flags: &[&str]) -> Vec<String> {
    let ran = run(desk.agentd(&[&["audit", "ls", "--json"], flags].concat()));
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut calls: Vec<String> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| format!("{}.{}", line["session"].as_str().unwrap(), line["call"]))
        .collect();
    calls.dedup();
    calls
}

#[test]
fn each_filter_of_the_list_leaves_out_what_it_says() {
    let (desk, [one, two]) = two_sessions();
    let of = |session: &str, call: u32| format!("{session}.{call}");
    let all = [of(&one, 1), of(&one, 2), of(&two, 1), of(&two, 2)];
    assert_eq!(listed(&desk, &[]), all);
    assert_eq!(listed(&desk, &["--session", &one]), all[..2]);
    assert_eq!(listed(&desk, &["--session", &two[..6]]), all[2..], "the beginning of its name");
    assert_eq!(listed(&desk, &["--tool", "read"]), all[..1]);
    assert_eq!(listed(&desk, &["--tool", "bash"]), all[1..]);
    assert_eq!(listed(&desk, &["--denied"]), all[1..3], "by a rule, and by the kernel");
    assert_eq!(listed(&desk, &["--since", "1h"]), all);
    assert!(listed(&desk, &["--since", "2100-01-01T00:00:00Z"]).is_empty());
    assert_eq!(listed(&desk, &["--denied", "--tool", "bash", "--session", &two]), all[2..3]);
    let table = run(desk.agentd(&["audit", "ls", "--tool", "read"])).out;
    assert!(table.contains(&all[0]) && !table.contains(&all[1]), "{table}");
    let exported = run(desk.agentd(&["audit", "export", "--tool", "read"])).out;
    assert_eq!(exported.lines().count(), 2, "a decision and an end: {exported}");
    let odd = run(desk.agentd(&["audit", "ls", "--since", "soon"]));
    assert!(odd.code == 2 && odd.err.contains("30m, 2h or 7d"), "{odd:?}");
}

#[test]
fn one_call_is_shown_whole_to_programs_too() {
    let (desk, [_, two]) = two_sessions();
    let ran = run(desk.agentd(&["audit", "show", &format!("{}.1", &two[..8]), "--json"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    let records: Vec<serde_json::Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 2, "{}", ran.out);
    assert_eq!(records[0]["event"], "decided");
    assert_eq!(records[1]["event"], "ended");
    let refused = records[1]["refusals"].to_string();
    assert!(refused.contains("agentd-canary"), "{refused}");
    let none = run(desk.agentd(&["audit", "show", &format!("{two}.9"), "--json"]));
    assert!(none.code == 2 && none.out.is_empty(), "{none:?}");
}
