//! A file that a rule keeps from being read is shown by no change of it: not by a diff, not as the lines that a
//! write removed, not as the place that is most similar to a text that is not there; and by no search around it.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, run};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

const SECRET: &str = "first line\nthe secret is 4711\nlast line\n";

/// The result of one call, with this rule on `read`.
fn told(rule: &str, tool: &str, input: &Value) -> (String, String) {
    told_last(rule, &[(tool, input.clone())])
}

/// The result of the last of these calls, and the secret file.
fn told_last(rule: &str, calls: &[(&str, Value)]) -> (String, String) {
    let (result, desk) = told_last_of(rule, calls);
    let secret = desk.read("secret.txt");
    (result, secret)
}

/// The result of the last of these calls, and where they ran.
fn told_last_of(rule: &str, calls: &[(&str, Value)]) -> (String, Desk) {
    let desk = Desk::new();
    desk.write("secret.txt", SECRET);
    desk.write("src/lib.rs", "fn secret() -> u32 { 4711 }\n");
    symlink("secret.txt", desk.project().join("alias.txt")).unwrap();
    let asked = calls.iter().enumerate().map(|(at, (tool, input))| {
        Answer::says([call(&format!("toolu_{at}"), tool, &input.to_string())])
    });
    let server = Server::scripted(asked.chain([Answer::text("done")]));
    let flags = ["-p", "x", "--permission-mode", "auto", "--disallowed-tools", rule];
    let ran = run(desk.with_server(&server, &flags));
    assert_eq!(ran.code, 0, "{ran:?}");
    let messages = server.requests()[calls.len()].body["messages"].clone();
    let result = messages.as_array().unwrap().last().unwrap()["content"][0]["content"].to_string();
    (result, desk)
}

#[test]
fn no_change_of_a_file_shows_what_a_rule_keeps_from_being_read() {
    let patch =
        "*** Begin Patch\n*** Update File: secret.txt\n@@\n-first line\n+new line\n*** End Patch\n";
    for path in ["secret.txt", "alias.txt"] {
        let rows = [
            ("edit", json!({"path": path, "old_string": "first line", "new_string": "new line"})),
            (
                "edit",
                json!({"path": path, "old_string": "the secret is 4712\nlast", "new_string": "x"}),
            ),
            ("write", json!({"path": path, "content": "all new\n"})),
        ];
        for (tool, input) in rows {
            let (shown, control) = told("read:other.txt", tool, &input);
            assert!(shown.contains("4711"), "the positive control, {tool} {input}: {shown}");
            // By the file's own name, and by the name of the link that the call gives.
            for rule in ["read:secret.txt", &format!("read:{path}")] {
                let (shown, after) = told(rule, tool, &input);
                assert!(!shown.contains("4711"), "{rule} {tool} {input}: {shown}");
                assert!(shown.contains("text is not shown"), "{shown}");
                assert_eq!(after, control, "it does the same to the file: {tool} {input}");
            }
        }
    }
    let input = json!({ "patch": patch });
    let (shown, _) = told("read:other.txt", "apply_patch", &input);
    assert!(shown.contains("4711"), "the positive control: {shown}");
    let (shown, _) = told("read:secret.txt", "apply_patch", &input);
    assert!(!shown.contains("4711"), "{shown}");
}

/// The text of each file of a deleted directory is in the result, and so is not that of an unread one.
#[test]
fn no_deletion_of_its_directory_shows_it() {
    let calls = [
        ("bash", json!({ "command": "mkdir kept && cp secret.txt src/lib.rs kept/" })),
        ("delete", json!({ "paths": ["kept"], "recursive": true })),
    ];
    let (shown, _) = told_last("read:other.txt", &calls);
    assert!(shown.contains("the secret is 4711"), "the positive control: {shown}");
    let (shown, _) = told_last("read:kept/secret.txt", &calls);
    assert!(!shown.contains("the secret is 4711"), "{shown}");
    assert!(shown.contains("kept/secret.txt: content not shown"), "{shown}");
    assert!(shown.contains("fn secret()"), "the others are shown: {shown}");
}

#[test]
fn no_patch_moves_it_to_a_name_by_which_it_may_be_read() {
    let patch =
        "*** Begin Patch\n*** Update File: secret.txt\n*** Move to: public.txt\n*** End Patch\n";
    let calls = [
        ("apply_patch", json!({ "patch": patch })),
        ("bash", json!({ "command": "ls public.txt secret.txt; cat public.txt" })),
    ];
    let (shown, _) = told_last_of("read:other.txt", &calls);
    assert!(shown.contains("4711"), "the positive control: {shown}");
    let (shown, _) = told_last_of("read:secret.txt", &calls);
    assert!(!shown.contains("4711") && shown.contains("secret.txt"), "{shown}");
    // To a name that may not be read either.
    let (shown, _) = told_last_of("read:*.txt", &calls);
    assert!(shown.contains("4711"), "commands are not bound by it: {shown}");
}

#[test]
fn no_search_of_a_directory_and_no_undo_shows_it() {
    let scan = json!({ "patterns": ["fn $NAME() -> u32 { $BODY }"] });
    let undone = ("undo_restore", json!({ "id": 1 }));
    let write = ("write", json!({ "path": "secret.txt", "content": "all new\n" }));
    let rows = [
        ("read:secret.txt", vec![("grep", json!({ "pattern": "the secret" }))]),
        ("read:secret.txt", vec![("grep", json!({ "pattern": "THE SECRET" }))]),
        ("read:src/*", vec![("scan", scan)]),
        ("read:secret.txt", vec![write, undone]),
    ];
    for (rule, calls) in rows {
        let (control, _) = told_last("read:other.txt", &calls);
        let found = ["4711", "with case_insensitive"].iter().any(|found| control.contains(found));
        assert!(found, "the positive control, {calls:?}: {control}");
        let (shown, _) = told_last(rule, &calls);
        assert!(!shown.contains("4711") && !shown.contains("with case_insensitive"), "{shown}");
        assert!(shown.contains("denies reading it"), "{shown}");
    }
}
