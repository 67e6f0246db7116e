//! Calls as other agents' models write them, and arguments that leave one reading only.

use serde_json::{Value, json};
use std::path::Path;
use tool_specs::{interpret, interpret_at};

/// Name and arguments as written, and the real tool with the real arguments.
fn rows() -> Vec<(&'static str, Value, &'static str, Value)> {
    vec![
        // Claude Code.
        (
            "Bash",
            json!({"command": "ls", "description": "List", "timeout": 60000}),
            "bash",
            json!({"command": "ls", "timeout_ms": 60000}),
        ),
        (
            "Read",
            json!({"file_path": "a", "offset": 3, "limit": 4}),
            "read",
            json!({"path": "a", "offset": 3, "limit": 4}),
        ),
        (
            "Write",
            json!({"file_path": "a", "content": "x"}),
            "write",
            json!({"path": "a", "content": "x"}),
        ),
        (
            "Edit",
            json!({"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": false}),
            "edit",
            json!({"path": "a", "old_string": "x", "new_string": "y", "replace_all": false}),
        ),
        (
            "MultiEdit",
            json!({"file_path": "a", "edits": [
                {"old_string": "x", "new_string": "y"},
                {"old_string": "v", "new_string": "w", "replace_all": true},
            ]}),
            "multi_edit",
            json!({"path": "a", "edits": [
                {"find": "x", "replace": "y"},
                {"find": "v", "replace": "w", "replace_all": true},
            ]}),
        ),
        ("Glob", json!({"pattern": "*.rs", "path": null}), "glob", json!({"pattern": "*.rs"})),
        (
            "Grep",
            json!({
                "pattern": "x", "path": "src", "glob": "*.rs", "output_mode": "content", "-n": true,
                "-i": true, "-A": 2, "-B": 3, "head_limit": 20,
            }),
            "grep",
            json!({
                "pattern": "x", "path": "src", "include": "*.rs", "case_insensitive": true,
                "context": 3,
            }),
        ),
        (
            "Grep",
            json!({"pattern": "x", "type": "py"}),
            "grep",
            json!({"pattern": "x", "include": "*.{py,pyi}"}),
        ),
        ("LS", json!({"path": "src", "ignore": []}), "ls", json!({"path": "src"})),
        (
            "WebFetch",
            json!({"url": "https://docs.rs/x", "prompt": "What is it?"}),
            "web_fetch",
            json!({"url": "https://docs.rs/x"}),
        ),
        (
            "WebSearch",
            json!({"query": "crabs", "allowed_domains": []}),
            "web_search",
            json!({"query": "crabs"}),
        ),
        (
            "TodoWrite",
            json!({"todos": [
                {"content": "Look", "status": "completed", "activeForm": "Looking"},
                {"content": "Change", "status": "in_progress", "activeForm": "Changing"},
            ]}),
            "checklist_create",
            json!({
                "group": "todo", "title": "To do", "items": ["Look", "Change"],
                "statuses": ["done", "in_progress"],
            }),
        ),
        // Codex.
        (
            "shell",
            json!({"command": ["bash", "-lc", "ls | wc -l"], "workdir": "/p", "timeout_ms": 1000}),
            "bash",
            json!({"command": "ls | wc -l", "timeout_ms": 1000}),
        ),
        (
            "shell",
            json!({"command": ["rg", "-n", "a b"], "justification": "To see."}),
            "run",
            json!({"argv": ["rg", "-n", "a b"]}),
        ),
        (
            "local_shell",
            json!({"action": {
                "type": "exec", "command": ["/bin/bash", "-lc", "ls"], "working_directory": null,
                "timeout_ms": 5000,
            }}),
            "bash",
            json!({"command": "ls", "timeout_ms": 5000}),
        ),
        (
            "exec_command",
            json!({"cmd": "ls", "workdir": "/p/sub", "yield_time_ms": 1000}),
            "bash",
            json!({"command": "cd /p/sub || exit\nls"}),
        ),
        (
            "shell",
            json!({"command": ["cargo", "test"], "workdir": "a b"}),
            "bash",
            json!({"command": "cd 'a b' && cargo test"}),
        ),
        (
            "apply_patch",
            json!({"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}),
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}),
        ),
        (
            "shell",
            json!({"command": ["apply_patch", "*** Begin Patch\n*** Delete File: a\n*** End Patch"]}),
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}),
        ),
        (
            "shell",
            json!({"command": [
                "bash", "-lc",
                "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF\n",
            ]}),
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}),
        ),
        (
            "update_plan",
            json!({"plan": [{"step": "Look", "status": "pending"}], "explanation": "First."}),
            "checklist_create",
            json!({"group": "todo", "title": "To do", "items": ["Look"], "statuses": ["pending"]}),
        ),
        // Others.
        (
            "edit",
            json!({"filePath": "a", "oldString": "x", "newString": "y", "replaceAll": true}),
            "edit",
            json!({"path": "a", "old_string": "x", "new_string": "y", "replace_all": true}),
        ),
        (
            "run_shell_command",
            json!({"command": "ls", "directory": "sub", "is_background": false}),
            "bash",
            json!({"command": "cd sub || exit\nls", "background": false}),
        ),
        (
            "Bash",
            json!({"command": "serve", "run_in_background": true}),
            "bash",
            json!({"command": "serve", "background": true}),
        ),
        (
            "Task",
            json!({"description": "a part", "prompt": "Do it.", "run_in_background": true}),
            "task",
            json!({"description": "a part", "prompt": "Do it.", "background": true}),
        ),
        (
            "replace",
            json!({"file_path": "a", "old_string": "x", "new_string": "y", "instruction": "Do."}),
            "edit",
            json!({"path": "a", "old_string": "x", "new_string": "y"}),
        ),
        (
            "str_replace_based_edit_tool",
            json!({"command": "view", "path": "a", "view_range": [11, 20]}),
            "read",
            json!({"path": "a", "offset": 11, "limit": 10}),
        ),
        (
            "str_replace_editor",
            json!({"command": "create", "path": "a", "file_text": "x"}),
            "write",
            json!({"path": "a", "content": "x"}),
        ),
        (
            "read_file",
            json!({"target_file": "a", "start_line_one_indexed": 5,
                   "end_line_one_indexed_inclusive": 9, "should_read_entire_file": false}),
            "read",
            json!({"path": "a", "offset": 5, "limit": 5, "raw": true}),
        ),
        ("delete_file", json!({"target_file": "a"}), "delete", json!({"paths": ["a"]})),
        ("functions.Read", json!({"file_path": "a"}), "read", json!({"path": "a"})),
        (
            "rewrite",
            json!({"path": "a.rs", "edits": [
                {"replace": {"pattern": "f()", "replacement": "g()", "withinSymbol": "main"}},
            ]}),
            "rewrite",
            json!({"path": "a.rs", "edits": [
                {"replace": {"pattern": "f()", "replacement": "g()", "within_symbol": "main"}},
            ]}),
        ),
        (
            "git_commit",
            json!({"message": "One line\n\nAnd more."}),
            "git_commit",
            json!({"subject": "One line", "body": "And more."}),
        ),
    ]
}

#[test]
fn a_call_of_another_agent_is_a_call_of_ours() {
    for (said, input, tool, wanted) in rows() {
        let call = interpret_at(said, &input.to_string(), Path::new("/p"))
            .unwrap_or_else(|invalid| panic!("{said} {input}: {invalid}"));
        let given: Value = serde_json::from_str(&call.input).unwrap();
        assert_eq!((call.spec.name, &given), (tool, &wanted), "{said} {input}");
        // Every later reader reads it as the first one did, and has nothing more to say.
        let again = interpret(call.spec.name, &call.input).unwrap();
        assert_eq!((again.spec.name, &again.input, &again.note), (tool, &call.input, &None));
        assert_eq!((again.paths, again.command), (call.paths, call.command));
    }
}

#[test]
fn a_value_with_one_reading_is_taken_and_that_is_said() {
    for (tool, input, wanted, note) in [
        (
            "read",
            json!({"path": "a", "offset": 2.0}),
            json!({"path": "a", "offset": 2}),
            "offset was read as 2 (given: 2.0)",
        ),
        (
            "read",
            json!({"path": "a", "offset": "2"}),
            json!({"path": "a", "offset": 2}),
            "offset was read as 2 (given: \"2\")",
        ),
        (
            "read",
            json!({"path": "a", "raw": "True"}),
            json!({"path": "a", "raw": true}),
            "raw was read as true",
        ),
        ("read", json!({"path": "a", "offset": 0}), json!({"path": "a"}), "offset 0 was read as 1"),
        (
            "run",
            json!({"argv": "[\"ls\", \"-l\"]"}),
            json!({"argv": ["ls", "-l"]}),
            "argv was read as",
        ),
        (
            "multi_edit",
            json!({"path": "a", "edits": "[{\"find\": \"x\", \"replace\": \"y\"}]"}),
            json!({"path": "a", "edits": [{"find": "x", "replace": "y"}]}),
            "edits was read as",
        ),
        (
            "multi_edit",
            json!({"path": "a", "edits": [{"start_line": "1", "end_line": 2.0, "find": null, "replace": ""}]}),
            json!({"path": "a", "edits": [{"start_line": 1, "end_line": 2, "replace": ""}]}),
            "edits[0].end_line was read as 2 (given: 2.0); edits[0].start_line was read as 1",
        ),
        (
            "bash",
            json!({"command": "ls", "timeout": 30}),
            json!({"command": "ls", "timeout_ms": 30_000}),
            "timeout 30 was read as 30 seconds",
        ),
        (
            "run",
            json!({"argv": ["ls"], "run_in_background": true}),
            json!({"argv": ["ls"]}),
            "Only bash runs commands in the background",
        ),
        (
            "bash",
            json!({"command": "ls", "network": "OFF"}),
            json!({"command": "ls", "network": "off"}),
            "network was read as",
        ),
        (
            "grep",
            json!({"pattern": "a", "multiline": true}),
            json!({"pattern": "a"}),
            "line by line",
        ),
    ] {
        let call =
            interpret(tool, &input.to_string()).unwrap_or_else(|why| panic!("{input}: {why}"));
        let given: Value = serde_json::from_str(&call.input).unwrap();
        assert_eq!(given, wanted, "{tool} {input}");
        let said = call.note.unwrap_or_default();
        assert!(said.contains(note), "{tool} {input}: {said}");
    }
    // Unneeded notes are omitted.
    for (tool, input) in [
        ("read", json!({"path": "a", "offset": 2, "limit": null})),
        ("Read", json!({"file_path": "a"})),
        ("bash", json!({"command": "ls", "description": "List", "run_in_background": false})),
    ] {
        assert_eq!(interpret(tool, &input.to_string()).unwrap().note, None, "{tool} {input}");
    }
}

#[test]
fn arguments_encoded_twice_are_read() {
    let twice = Value::String(json!({"path": "a"}).to_string()).to_string();
    assert_eq!(interpret("read", &twice).unwrap().input, r#"{"path":"a"}"#);
    let patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch\n";
    assert_eq!(interpret("apply_patch", patch).unwrap().paths, ["a"]);
}

/// Ambiguous arguments are refused, not guessed.
#[test]
fn what_is_in_doubt_is_an_error_that_names_the_field() {
    for (tool, input, words) in [
        ("read", json!({"path": "a", "offset": 1.5}), "\"offset\""),
        ("read", json!({"path": "a", "file_path": "b"}), "path and file_path are both given"),
        ("run", json!({"argv": "rm -rf x"}), "\"argv\""),
        ("read", json!({"path": 7}), "\"path\""),
        ("read", json!({"path": ["a"]}), "\"path\""),
        ("git_log", json!({"limit": 51}), "\"limit\""),
        ("delete", json!({"paths": "a b"}), "\"paths\""),
        ("write", json!({"path": "a", "content": {"a": 1}}), "\"content\""),
        ("bash", json!({"command": "ls", "timeout_ms": -5}), "\"timeout_ms\""),
        ("bash", json!({"command": "ls", "sudo": true}), "unknown field \"sudo\""),
        ("edit", json!({"path": "a", "old_string": "x"}), "\"new_string\" is missing"),
        (
            "edit",
            json!({"path": "a", "old_string": "x", "new_string": null}),
            "\"new_string\" is missing",
        ),
        (
            "str_replace_editor",
            json!({"command": "insert", "path": "a"}),
            "unknown field \"command\"",
        ),
    ] {
        let why = interpret(tool, &input.to_string()).unwrap_err().to_string();
        assert!(why.contains(words), "{tool} {input}: {why}");
    }
    // A here-document that a shell would change is the shell's.
    let call = interpret("bash", &json!({"command": "apply_patch <<EOF\n*** Begin Patch\n*** Delete File: $a\n*** End Patch\nEOF"}).to_string());
    assert_eq!(call.unwrap().spec.name, "bash");
    let more =
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF\nrm -rf x\n";
    assert_eq!(interpret("bash", &json!({"command": more}).to_string()).unwrap().spec.name, "bash");
}
