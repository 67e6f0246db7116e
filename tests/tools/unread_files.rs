//! A file that a rule keeps from being read is shown by no change of it: not by a diff, not as the lines that a
//! write removed, not as the place that is most similar to a text that is not there.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, run};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

const SECRET: &str = "first line\nthe secret is 4711\nlast line\n";

/// The result of one call, with this rule on `read`.
fn told(rule: &str, tool: &str, input: &Value) -> (String, String) {
    let desk = Desk::new();
    desk.write("secret.txt", SECRET);
    symlink("secret.txt", desk.project().join("alias.txt")).unwrap();
    let asked = call("toolu_1", tool, &input.to_string());
    let server = Server::scripted([Answer::says([asked]), Answer::text("done")]);
    let flags = ["-p", "x", "--permission-mode", "auto", "--disallowed-tools", rule];
    let ran = run(desk.with_server(&server, &flags));
    assert_eq!(ran.code, 0, "{ran:?}");
    let messages = server.requests()[1].body["messages"].clone();
    let result = messages.as_array().unwrap().last().unwrap()["content"][0]["content"].to_string();
    (result, desk.read("secret.txt"))
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
            let (shown, after) = told("read:secret.txt", tool, &input);
            assert!(!shown.contains("4711"), "{tool} {input}: {shown}");
            assert!(shown.contains("text is not shown"), "{shown}");
            assert_eq!(after, control, "it does the same to the file: {tool} {input}");
        }
    }
    let input = json!({ "patch": patch });
    let (shown, _) = told("read:other.txt", "apply_patch", &input);
    assert!(shown.contains("4711"), "the positive control: {shown}");
    let (shown, _) = told("read:secret.txt", "apply_patch", &input);
    assert!(!shown.contains("4711"), "{shown}");
}
