//! Every tool once, end to end: from the model's words through verdict, cage and record back to
//! the model, with the audit log to show for it.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::internet::{Site, page};
use crate::support::{Desk, needs, run};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;

// A round for each tool, which are more than a turn has by itself.
const AUTO: [&str; 4] = ["--permission-mode", "auto", "--max-turns", "60"];

/// Tool, arguments, a part of its result, and how it ends.
fn script(port: u16) -> Vec<(&'static str, Value, &'static str, &'static str)> {
    vec![
        (
            "web_search",
            json!({"query": "crabs"}),
            "1. On crabs\n   https://example.org/crabs\n",
            "done",
        ),
        (
            "web_fetch",
            json!({"url": format!("http://localhost:{port}/crabs")}),
            "\n\nCrabs walk sideways.",
            "done",
        ),
        (
            "checklist_create",
            json!({"group": "all", "title": "Every tool", "items": ["look", "change"]}),
            "Every tool (all): 0 of 2 done\n[ ] 1. look\n[ ] 2. change\n",
            "done",
        ),
        ("write", json!({"path": "a", "content": "one\ntwo\n"}), "created a: 8 bytes", "done"),
        (
            "edit",
            json!({"path": "a", "old_string": "two", "new_string": "2"}),
            "edited a: line 2",
            "done",
        ),
        (
            "multi_edit",
            json!({"path": "a", "edits": [
                {"find": "one", "replace": "1"}, {"start_line": 2, "end_line": 2, "replace": "II"},
            ]}),
            "edited a: 2 places",
            "done",
        ),
        ("undo_list", json!({}), "6 multi_edit", "done"),
        ("write", json!({"path": "b", "content": "x"}), "created b", "done"),
        ("undo_restore", json!({"id": 8}), "removed b", "done"),
        ("read", json!({"path": "a"}), "1\t1\n2\tII\n", "done"),
        ("ls", json!({}), "f 5 a", "done"),
        ("glob", json!({"pattern": "a*"}), "a", "done"),
        ("grep", json!({"pattern": "I+"}), "a:2:II", "done"),
        ("write", json!({"path": "b.rs", "content": "fn b() { go(1) }\n"}), "created b.rs", "done"),
        ("summary", json!({"path": "b.rs"}), "b.rs: Rust, 1 lines, 17 bytes\n1\tfn b()", "done"),
        ("scan", json!({"patterns": ["go($A)"]}), "b.rs:1:[b] go(1)\n    $A = 1\n", "done"),
        (
            "rewrite",
            json!({"path": "b.rs", "edits": [
                {"replace": {"pattern": "go($A)", "replacement": "stay($A)"}},
            ]}),
            "rewrote b.rs: 1 place\nin b\n--- a/b.rs\n+++ b/b.rs",
            "done",
        ),
        (
            "bash",
            json!({"command": "echo by a shell"}),
            "by a shell\n--- agentd ---\nexit code: 0",
            "exited",
        ),
        (
            "run",
            json!({"argv": ["echo", "$HOME"]}),
            "$HOME\n--- agentd ---\nexit code: 0",
            "exited",
        ),
        ("git_status", json!({}), "?? a\n?? b.rs\n", "exited"),
        ("git_add", json!({"all": true}), "add 'a'", "exited"),
        ("git_diff", json!({"staged": true}), "+II\n", "exited"),
        ("git_commit", json!({"subject": "All of it"}), "All of it", "exited"),
        ("git_log", json!({}), "A Person: All of it", "exited"),
        ("git_show", json!({"ref": "HEAD:a"}), "1\nII\n", "exited"),
        ("delete", json!({"paths": ["a"]}), "deleted a\n--- a/a", "done"),
        (
            "checklist_update",
            json!({"group": "all", "item": "change", "status": "done"}),
            "Every tool (all): 1 of 2 done",
            "done",
        ),
        (
            "memory_add",
            json!({"text": "The project is built with make.", "scope": "project"}),
            "remembered as p1 (project)",
            "done",
        ),
        (
            "memory_search",
            json!({"query": "how is it building"}),
            "p1 (project): The project is built with make.",
            "done",
        ),
        ("memory_remove", json!({"id": "p1"}), "forgot p1: The project", "done"),
        ("skill_list", json!({}), "greet (project): Says hello.", "done"),
        (
            "skill_activate",
            json!({"name": "greet", "arguments": "Ann"}),
            "Say hello to Ann.",
            "done",
        ),
        ("tool_search", json!({"query": "git_log"}), "<tool name=\"git_log\"/>", "done"),
        (
            "ask_user",
            json!({"questions": [{"question": "Which?"}]}),
            "Nobody is here to answer.",
            "done",
        ),
        ("history_search", json!({"keyword": "USE EVERY"}), "1. person: Use every tool", "done"),
        (
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Add File: c\n+c\n*** End Patch"}),
            "created c\n--- /dev/null\n+++ b/c",
            "done",
        ),
        (
            "bash",
            json!({"command": "cat", "background": true}),
            "runs in the background",
            "interrupted",
        ),
        ("bash_input", json!({"call": 37, "text": "hello\n"}), "was given the text", "done"),
        ("bash_output", json!({"call": 37, "wait_ms": 20_000}), "hello\n", "done"),
        ("bash_stop", json!({"call": 37}), "has ended", "done"),
        // The last: its sub-agent makes a request of its own.
        (
            "task",
            json!({"description": "a part", "prompt": "Answer."}),
            "The part.\n[sub-agent general, session",
            "done",
        ),
    ]
}

#[test]
fn every_tool_goes_the_whole_way() {
    needs("git");
    let desk = Desk::new();
    for words in [
        &["init", "--quiet"][..],
        &["config", "user.name", "A Person"],
        &["config", "user.email", "person@example.org"],
    ] {
        let git = Command::new("git").args(words).current_dir(desk.project()).status().unwrap();
        assert!(git.success());
    }
    let greet = "---\nname: greet\ndescription: Says hello.\n---\nSay hello to $ARGUMENTS.\n";
    desk.write(".agents/skills/greet/SKILL.md", greet);
    // On this machine, which is reached only with the person's permission.
    let port = TcpListener::bind("localhost:0").unwrap().local_addr().unwrap().port();
    let _web = Site::serve(Ipv4Addr::LOCALHOST, port, |head| match head {
        head if head.starts_with("GET /search?q=crabs ") => page(
            "<!doctype html><div class=result><a class=result__a \
             href='//duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.org%2Fcrabs'>On crabs</a></div>",
        ),
        _ => page("Crabs walk sideways."),
    });
    let config = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let settings = format!(
        "[web]\nsearch_url = \"http://localhost:{port}/search\"\nprivate_networks = \"allow\"\n\
         [permissions]\nallow = [\"web_search\", \"web_fetch:localhost:{port}/crabs\"]\n"
    );
    std::fs::write(config, settings).unwrap();
    let answers = script(port).into_iter().zip(1..).map(|((tool, input, ..), number)| {
        Answer::says([call(&format!("toolu_{number}"), tool, &input.to_string())])
    });
    let server =
        Server::scripted(answers.chain([Answer::text("The part."), Answer::text("All used.")]));
    let ran = run(desk.with_server(&server, &[&["-p", "Use every tool."], &AUTO[..]].concat()));
    assert_eq!((ran.code, ran.out.as_str()), (0, "All used.\n"), "{}", ran.err);

    let requests = server.requests();
    let offered = requests[0].body["tools"].as_array().unwrap();
    let search = offered.iter().find(|tool| tool["name"] == "tool_search").unwrap();
    let (_, found) = search["description"].as_str().unwrap().split_once("It finds: ").unwrap();
    let offered = offered.iter().map(|tool| tool["name"].as_str().unwrap());
    let offered: Vec<&str> = offered.chain(found.trim_end_matches('.').split(", ")).collect();
    for (at, (tool, _, words, how)) in script(port).into_iter().enumerate() {
        let messages =
            requests[at + 1 + usize::from(tool == "task")].body["messages"].as_array().unwrap();
        let result = messages.last().unwrap()["content"][0].to_string();
        let wanted = serde_json::to_string(words).unwrap();
        assert!(result.contains(wanted.trim_matches('"')), "{tool}: {result}");
        // Those that a search finds run without it too.
        assert!(offered.contains(&tool), "{tool} is neither listed nor found");
        let ended = desk.ended(at as u64 + 1);
        assert_eq!(ended["outcome"]["how"], how, "{tool}: {ended:#}");
        // A call without a process has no cage, and its record does not claim one.
        let own = [
            "ask_user",
            "checklist",
            "history",
            "memory",
            "skill",
            "undo_list",
            "bash_",
            "task",
            "tool_search",
        ]
        .iter()
        .any(|own| tool.starts_with(own));
        assert_eq!(ended["enforced"].is_null(), own, "{tool}: {ended:#}");
    }
    for tool in offered {
        assert!(script(port).iter().any(|row| row.0 == tool), "{tool} is not tried here");
    }
    let verified = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(verified.code, 0, "{}", verified.err);
}

/// Calls that the conversation answers itself are judged like all others.
#[test]
fn a_rule_denies_a_checklist_too() {
    let desk = Desk::new();
    let input = json!({"group": "g", "title": "t", "items": ["a"]}).to_string();
    let update = json!({"group": "g", "item": "a", "status": "done"}).to_string();
    let server = Server::scripted([
        Answer::says([call("toolu_1", "checklist_create", &input)]),
        Answer::says([call("toolu_2", "checklist_update", &update)]),
        Answer::text("So be it."),
    ]);
    let denied = "[permissions]\ndeny = [\"checklist_create\"]\n";
    desk.write(".agentd/config.toml", denied);
    let ran = run(desk.with_server(&server, &["-p", "Go."]));
    assert_eq!(desk.ended(1)["outcome"]["how"], "refused", "{}", ran.err);
    let requests = server.requests();
    let last = requests[2].body["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(last.contains("there is no checklist"), "a denied list is none: {last}");
}

/// Rules match the real tool, path and command, in any name and spelling of the model.
#[test]
fn no_name_and_no_spelling_gets_past_a_rule() {
    let patch = |body: &str| format!("*** Begin Patch\n{body}*** End Patch\n");
    let heredoc = format!("apply_patch <<'EOF'\n{}EOF\n", patch("*** Delete File: secret\n"));
    let moved = patch("*** Update File: plain\n*** Move to: secret2\n");
    let rows = [
        ("Read", json!({"file_path": "./secret", "offset": "1"}), "read"),
        ("str_replace_editor", json!({"command": "view", "path": "secret"}), "read"),
        ("Write", json!({"filePath": "secret", "content": "b"}), "write"),
        (
            "MultiEdit",
            json!({"file_path": "secret", "edits": "[{\"old_string\":\"a\",\"new_string\":\"b\"}]"}),
            "multi_edit",
        ),
        ("delete_file", json!({"target_file": "secret"}), "delete"),
        ("apply_patch", json!({"input": patch("*** Delete File: secret\n")}), "apply_patch"),
        (
            "apply_patch",
            json!({"input": patch("*** Update File: ./secret\n@@\n-a\n+b\n")}),
            "apply_patch",
        ),
        ("patch", json!({"patchText": patch("*** Add File: secret2\n+b\n")}), "apply_patch"),
        ("shell", json!({"command": ["apply_patch", moved]}), "apply_patch"),
        ("shell", json!({"command": ["bash", "-lc", heredoc]}), "apply_patch"),
        ("shell", json!({"command": ["rm", "secret"], "workdir": "/"}), "bash"),
        (
            "local_shell",
            json!({"action": {"type": "exec", "command": ["/bin/rm", "secret"]}}),
            "run",
        ),
        ("Bash", json!({"command": ["sh", "-c", "rm secret"]}), "bash"),
        ("exec_command", json!({"cmd": "rm secret", "workdir": "."}), "bash"),
        ("run", json!({"program": "rm", "args": "[\"secret\"]"}), "run"),
    ];
    let desk = Desk::new();
    desk.write("secret", "a\n");
    desk.write("plain", "a\n");
    let deny = r#"["read:secret", "edit:secret*", "write:secret*", "delete:secret*", "bash:rm *"]"#;
    desk.write(".agentd/config.toml", &format!("[permissions]\ndeny = {deny}\n"));
    let answers = rows.iter().zip(1..).map(|((tool, input, _), number)| {
        Answer::says([call(&format!("toolu_{number}"), tool, &input.to_string())])
    });
    // The control: the same call on a path that no rule names.
    let control = json!({"input": patch("*** Update File: plain\n@@\n-a\n+b\n")}).to_string();
    let control = Answer::says([call("toolu_0", "apply_patch", &control)]);
    let server = Server::scripted(answers.chain([control, Answer::text("All tried.")]));
    let ran = run(desk.with_server(&server, &[&["-p", "Try."], &AUTO[..]].concat()));
    assert_eq!((ran.code, ran.out.as_str()), (0, "All tried.\n"), "{}", ran.err);
    for ((said, input, real), number) in rows.iter().zip(1..) {
        let ended = desk.ended(number);
        assert_eq!(ended["outcome"]["how"], "refused", "{said} {input}: {ended:#}");
        assert_eq!(ended["tool"], *real, "{said} {input}");
    }
    assert_eq!((desk.read("secret").as_str(), desk.read("plain").as_str()), ("a\n", "b\n"));
}

/// An invalid call is on record, too, with a way on for the model.
#[test]
fn what_is_no_call_is_in_the_audit_log() {
    let desk = Desk::new();
    let rows = [
        ("launch", "{}", "unknown_tool"),
        ("verify", "{}", "unknown_tool"),
        ("Read", "{\"path\":", "invalid_arguments"),
        ("read", "{\"pth\": 7.5}", "invalid_arguments"),
        ("bash", "{\"command\": \"ls\", \"directory\": \"/nowhere\"}", "invalid_arguments"),
    ];
    let answers = rows.iter().zip(1..).map(|((tool, input, _), number)| {
        Answer::says([call(&format!("toolu_{number}"), tool, input)])
    });
    let server = Server::scripted(answers.chain([Answer::text("None was one.")]));
    let ran = run(desk.with_server(&server, &[&["-p", "Try."], &AUTO[..]].concat()));
    assert_eq!((ran.code, ran.out.as_str()), (0, "None was one.\n"), "{}", ran.err);
    let requests = server.requests();
    for ((tool, _, code), at) in rows.iter().zip(1..) {
        let ended = desk.ended(at as u64);
        assert_eq!((&ended["code"], &ended["outcome"]["how"]), (&json!(code), &json!("invalid")));
        let messages = requests[at].body["messages"].as_array().unwrap();
        let result = messages.last().unwrap()["content"][0]["content"].to_string();
        let head = format!("Error [{code}] {}: ", tool.to_lowercase());
        assert!(result.contains(&head) && result.contains("Hint: "), "{tool}: {result}");
        let decided = desk
            .audit()
            .into_iter()
            .find(|record| record["event"] == "decided" && record["call"] == at);
        let decided = decided.unwrap_or_else(|| panic!("{tool} was not decided"));
        assert_eq!(decided["decision"], "denied", "{decided:#}");
    }
    let verified = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(verified.code, 0, "{}", verified.err);
}

/// A value with one reading is taken, and the model reads how.
#[test]
fn how_arguments_were_read_stands_in_the_result() {
    let desk = Desk::new();
    desk.write("a", "one\ntwo\n");
    let input = json!({"file_path": "a", "offset": "2", "limit": 1.0}).to_string();
    let server =
        Server::scripted([Answer::says([call("toolu_1", "Read", &input)]), Answer::text("Read.")]);
    let ran = run(desk.with_server(&server, &["-p", "Read."]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Read.\n"), "{}", ran.err);
    let requests = server.requests();
    let messages = requests[1].body["messages"].as_array().unwrap();
    let result = messages.last().unwrap()["content"][0]["content"].to_string();
    assert!(result.contains("offset was read as 2 (given: \\\"2\\\")"), "{result}");
    assert!(result.contains("limit was read as 1 (given: 1.0)"), "{result}");
    assert!(result.contains("2\\ttwo"), "{result}");
}

/// A program in its place records its input. The real program is not needed for this test.
#[test]
fn powershell_is_offered_where_it_is_installed_and_is_given_the_script() {
    let desk = Desk::new();
    println!("pwsh is a stub here, which records its arguments");
    desk.write("bin/pwsh", "");
    let stub = "printf '%s\\n' \"$PWD\" \"$@\" > given; echo out; echo err >&2; exit 3";
    std::fs::remove_file(desk.project().join("bin/pwsh")).unwrap();
    crate::support::write_program(&desk.project().join("bin/pwsh"), stub);
    let script = json!({"script": "Get-ChildItem | Select 'a b'"});
    let asks = |number: usize| {
        Answer::says([call(&format!("toolu_{number}"), "run_powershell", &script.to_string())])
    };
    let server =
        Server::scripted([asks(1), Answer::text("Ran."), asks(2), Answer::text("Not there.")]);
    let with_path = |path: String| {
        let mut command = desk.with_server(&server, &[&["-p", "List."], &AUTO[..]].concat());
        command.env("PATH", path);
        run(command)
    };
    let bin = desk.project().join("bin");
    let ran = with_path(format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Ran.\n"), "{}", ran.err);
    let project = desk.project().canonicalize().unwrap();
    let given = format!(
        "{}\n-NoProfile\n-NonInteractive\n-Command\nGet-ChildItem | Select 'a b'\n",
        project.display()
    );
    assert_eq!(desk.read("given"), given);
    // Installed, where no command can start it.
    let outside = desk.home().join(".gnupg/bin");
    std::fs::create_dir_all(&outside).unwrap();
    crate::support::write_program(&outside.join("pwsh"), stub);
    let ran = with_path(format!("{}:/bin", outside.display()));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Not there.\n"), "{}", ran.err);

    let requests = server.requests();
    let offers = |at: usize| {
        // The search names it.
        requests[at].body["tools"].to_string().contains(" powershell,")
    };
    let result = |at: usize| {
        let messages = requests[at].body["messages"].as_array().unwrap();
        messages.last().unwrap()["content"][0].to_string()
    };
    let system = |at: usize| requests[at].body["system"].to_string();
    assert!(system(0).contains("here-string") && !system(2).contains("here-string"));
    assert!(system(2).contains("no inline"), "{}", system(2));
    assert!(offers(0) && !offers(2), "offered where it is installed, and nowhere else");
    assert!(result(1).contains("out\\n--- stderr ---\\nerr\\n"), "{}", result(1));
    assert!(result(1).contains("exit code: 3"), "{}", result(1));
    assert!(result(3).contains("Error [unknown_tool] powershell: "), "{}", result(3));
}
