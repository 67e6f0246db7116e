//! Tools of rare use, which a session loads when the model looks for them: the size of the list at the start, each
//! tool found by a model's words, and the same list after a fork, a death and a compaction.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, run, send, write_program};
use nix::sys::signal::Signal;
use protocol::client::{FromClient, SessionRequest, SessionStart, SessionWish};
use protocol::ids::SessionId;
use protocol::judgement::PermissionMode;
use protocol::session::OpenTurn;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Most tokens at the start of a session: tools and system prompt.
const MOST: u64 = 3_500;

/// Tokens of the tool that shows a plan.
const PLAN: u64 = 250;

/// Words with which a model may look for each tool that is not listed from the start.
const PHRASES: &[(&str, [&str; 3])] = &[
    (
        "history_search",
        ["what did the user say before", "search earlier messages", "a tool result that was cut"],
    ),
    (
        "ask_user",
        ["ask the user a question", "let the person choose between options", "AskUserQuestion"],
    ),
    ("web_fetch", ["open a url", "read a web page", "fetch documentation from a website"]),
    (
        "summary",
        ["outline of a source file", "list the functions and classes of a file", "file structure"],
    ),
    (
        "scan",
        ["structural code search", "find all calls of a function by syntax", "ast-grep pattern"],
    ),
    ("git_log", ["recent commits", "git history of a file", "who changed this file last"]),
    ("git_show", ["show a commit", "file content at an older revision", "git show HEAD~1"]),
    (
        "web_search",
        ["search the internet", "google for an error message", "find documentation online"],
    ),
    (
        "memory_search",
        ["recall what the user told me before", "search memories", "known preferences of the user"],
    ),
    (
        "memory_add",
        [
            "remember this for later sessions",
            "save a note about the project",
            "store a user preference",
        ],
    ),
    ("memory_remove", ["forget something", "delete a memory", "remove an outdated note"]),
    ("skill_list", ["which skills are available", "list skills", "available workflows"]),
    ("skill_activate", ["load a skill", "run a skill", "follow the instructions of a skill"]),
    ("checklist_create", ["todo list", "track the steps of my plan", "create a task list"]),
    ("checklist_update", ["mark a step as done", "update the todo list", "check off a task"]),
    (
        "undo_list",
        [
            "what changes can be undone",
            "list my edits of this session",
            "changes that I can revert",
        ],
    ),
    (
        "undo_restore",
        ["undo my last change", "revert a file to its earlier content", "roll back an edit"],
    ),
    (
        "multi_edit",
        [
            "several edits in one file",
            "make multiple replacements at once",
            "replace a range of lines",
        ],
    ),
    ("apply_patch", ["apply a unified diff", "patch several files", "move or rename a file"]),
    ("rewrite", ["refactor code by pattern", "codemod", "replace all matches of a syntax pattern"]),
    ("delete", ["delete a file", "remove a directory", "rm files"]),
    (
        "bash_input",
        [
            "send input to a running process",
            "write to stdin",
            "answer a prompt of a background command",
        ],
    ),
    (
        "bash_stop",
        ["kill a background process", "stop the dev server", "terminate a running command"],
    ),
    ("run", ["run a program without a shell", "execute argv", "start a binary with arguments"]),
    ("powershell", ["powershell", "run a pwsh script", "windows cmdlet"]),
    ("git_add", ["stage files", "git add", "add changes to the index"]),
    ("git_commit", ["commit the staged changes", "git commit", "create a commit with a message"]),
];

/// The names of the tools in a request, in their order.
fn listed(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// The names of those that the search says it finds.
fn found_by(body: &Value) -> BTreeSet<&str> {
    let mut tools = body["tools"].as_array().unwrap().iter();
    let search = tools.find(|tool| tool["name"] == "tool_search").unwrap();
    let (_, names) = search["description"].as_str().unwrap().split_once("It finds: ").unwrap();
    names.trim_end_matches('.').split(", ").collect()
}

fn search(id: &str, query: &str) -> crate::support::anthropic::Say {
    call(id, "tool_search", &json!({ "query": query }).to_string())
}

#[test]
fn a_session_of_an_empty_project_begins_with_few_tokens() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("a")]);
    let _daemon = desk.daemon();
    for (mode, count, most) in
        [(PermissionMode::Ask, 12, MOST), (PermissionMode::Plan, 13, MOST + PLAN)]
    {
        let opening = SessionRequest { mode: Some(mode), ..desk.opening(&server) };
        let session = Wire::to(&desk.door()).open(&opening);
        let shown = run(desk.agentd(&["context", &session.0, "--json"]));
        let report: Value = serde_json::from_str(&shown.out).unwrap();
        let parts = report["parts"].as_array().unwrap();
        let tools = parts.iter().find(|part| part["kind"] == "tools").unwrap();
        assert_eq!(tools["count"], count);
        println!(
            "{mode:?}: {} tokens, of them tools: {}",
            report["used"], tools["estimated_tokens"]
        );
        assert!(report["used"].as_u64().unwrap() <= most, "more than {most}: {report}");
    }
}

/// The results of these searches, and the tools that requests list behind them.
fn searched(desk: &Desk, queries: &[&str]) -> (Vec<String>, Vec<String>) {
    let asks = queries.iter().enumerate().map(|(at, query)| search(&format!("t{at}"), query));
    let server = Server::scripted([Answer::says(asks), Answer::text("done")]);
    let ran = run(desk.with_server(&server, &["-p", "Look."]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let requests = server.requests();
    let results =
        requests[1].body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let texts = results
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["content"].as_str().unwrap().to_owned());
    let start = listed(&requests[0].body).len();
    (texts.collect(), listed(&requests[1].body).split_off(start))
}

#[test]
fn a_query_names_tools_as_a_call_does_and_all_of_them_are_loaded() {
    for (query, wanted) in [
        ("WebFetch", vec!["web_fetch"]),
        ("select:TodoWrite,MultiEdit", vec!["checklist_create", "multi_edit"]),
        ("KillShell", vec!["bash_stop"]),
        ("git log, git show", vec!["git_log", "git_show"]),
        ("stop and send input", vec!["bash_input", "bash_stop"]),
        ("remember or forget", vec!["memory_add", "memory_remove"]),
        (
            "git_add git_commit git_log git_show undo_list undo_restore",
            vec!["git_add", "git_commit", "git_log", "git_show", "undo_list", "undo_restore"],
        ),
    ] {
        assert_eq!(searched(&Desk::new(), &[query]).1, wanted, "{query}");
    }
}

#[test]
fn a_query_for_what_no_tool_does_loads_none() {
    let long = "word ".repeat(100);
    let rows = [
        ("lint", "No tool matches"),
        ("copy a file", "No tool matches"),
        ("create directory", "In your list already: write."),
        ("read an image", "In your list already: read."),
        ("edit a file", "In your list already: edit."),
        (
            long.as_str(),
            "Error [invalid_arguments] tool_search: query has more than 400 characters",
        ),
    ];
    let (results, loaded) = searched(&Desk::new(), &rows.map(|(query, _)| query));
    for ((query, words), result) in rows.iter().zip(results) {
        assert!(result.contains(words), "{query}: {result}");
    }
    assert!(loaded.is_empty(), "{loaded:?}");
    let (_, loaded) = searched(&Desk::new(), &["note for later", "diff between commits"]);
    assert_eq!(loaded, ["memory_add", "git_show"]);
}

#[test]
fn a_result_that_names_tools_lists_them() {
    let desk = Desk::new();
    let background = json!({"command": "sleep 60", "background": true}).to_string();
    let server = Server::scripted([
        Answer::says([call("t1", "memory_remove", "{\"id\":\"p99\"}")]),
        Answer::says([call("t2", "bash", &background)]),
        Answer::says([call("t3", "scan", "{\"patterns\": 7, \"no\": 1}")]),
        Answer::says([call("t4", "git_log", "{}")]),
        Answer::text("done"),
    ]);
    let ran = run(desk.with_server(&server, &["-p", "Go.", "--permission-mode", "auto"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lists: Vec<_> = server.requests().iter().map(|seen| listed(&seen.body)).collect();
    let start = lists[0].len();
    let loaded: Vec<_> = lists.iter().map(|list| list[start..].to_vec()).collect();
    let all = ["memory_search", "bash_input", "bash_stop", "scan"];
    for (list, count) in loaded.iter().zip([0, 1, 3, 4, 4]) {
        assert_eq!(list, &all[..count], "{loaded:?}");
    }
}

#[test]
fn a_session_with_skills_lists_the_tool_that_loads_them() {
    let desk = Desk::new();
    desk.write(".agents/skills/greet/SKILL.md", "---\ndescription: Greets.\n---\nSay hello.");
    let server = Server::scripted([Answer::text("done")]);
    let ran = run(desk.with_server(&server, &["-p", "Go."]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let body = &server.requests()[0].body;
    assert!(body["system"].to_string().contains("load it with skill_activate before"));
    assert!(listed(body).contains(&"skill_activate".to_owned()));
    let finds = found_by(body);
    assert!(!finds.contains("skill_activate") && finds.contains("skill_list"), "{finds:?}");
}

#[test]
fn each_tool_that_is_not_listed_is_found_by_the_words_of_a_model() {
    let desk = Desk::new();
    // Found in PATH, it counts as installed.
    let bin = desk.project().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    write_program(&bin.join("pwsh"), "exit 0");
    let ask = |round: usize| {
        let calls =
            PHRASES.iter().map(|(tool, words)| search(&format!("{tool}_{round}"), words[round]));
        Answer::says(calls)
    };
    let server = Server::scripted((0..3).map(ask).chain([Answer::text("done")]));
    let mut command = desk.with_server(&server, &["-p", "Look for tools."]);
    command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
    let ran = run(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let requests = server.requests();
    let start = listed(&requests[0].body);
    let tried: BTreeSet<&str> = PHRASES.iter().map(|(tool, _)| *tool).collect();
    assert_eq!(found_by(&requests[0].body), tried);
    let mut missed = Vec::new();
    for round in 0..3 {
        let results =
            requests[round + 1].body["messages"].as_array().unwrap().last().unwrap().clone();
        for (result, (tool, words)) in results["content"].as_array().unwrap().iter().zip(PHRASES) {
            assert!(!start.contains(&(*tool).to_owned()), "{tool} is listed from the start");
            let text = result["content"].to_string();
            if !text.contains(&format!("<tool name=\\\"{tool}\\\"/>")) {
                missed.push(format!("{tool} by {:?}: {text}", words[round]));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
    assert_eq!(listed(&requests[3].body).len(), start.len() + PHRASES.len());
}

#[test]
fn the_list_stays_after_a_fork_a_death_and_a_compaction() {
    let desk = Desk::new();
    let first =
        [Answer::says([search("t1", "git_log")]), Answer::says([call("t2", "todo_write", "{}")])];
    let more = (0..4).map(|n| Answer::text(&format!("answer {n}")));
    let server = Server::scripted(first.into_iter().chain(more));
    let daemon = desk.daemon();
    let mut opening = desk.opening(&server);
    opening.settings.push(("context.compaction".to_owned(), "cut".to_owned()));
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&opening);
    let go = |wire: &mut Wire, session: &SessionId| {
        wire.prompt(session, "go");
        wire.turn_ends();
        listed(&server.requests().last().unwrap().body)
    };
    let list = go(&mut wire, &session);
    let start = listed(&server.requests()[0].body);
    // The second was called by another agent's name and with no arguments: now the model sees them.
    assert_eq!(list, [start, ["git_log", "checklist_create"].map(str::to_owned).to_vec()].concat());
    let start = SessionStart::Fork { of: session.clone(), at: None };
    let fork = wire.open(&SessionRequest { start, ..opening.clone() });
    assert_eq!(go(&mut wire, &fork), list);
    send(daemon.pid, Signal::SIGKILL);
    std::mem::forget(daemon);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
    wire.open(&SessionRequest { start, ..opening });
    assert_eq!(go(&mut wire, &session), list);
    let wish = SessionWish::Compact { focus: String::new() };
    wire.say(FromClient::Wish { session: session.clone(), wish });
    assert_eq!(go(&mut wire, &session), list);
    let last = server.requests().last().unwrap().raw.clone();
    assert!(last.contains("left out to make room") && !last.contains("<tool name="), "{last}");
}

/// A tool that is denied as a whole is of no use to a model. A model that knows its name learns the rule.
#[test]
fn a_tool_that_a_rule_denies_is_not_found() {
    let desk = Desk::new();
    let deny = r#"[permissions]
deny = [" undo_list", "web_fetch:*", "memory_add:user", "powershell", "run:rm *", "git_log:--all", "write"]"#;
    desk.write(".agentd/config.toml", deny);
    let asked = ["undo_list", "git_log"].map(|name| search(name, name));
    let server = Server::scripted([
        Answer::says(asked),
        Answer::says([call("t2", "undo_list", "{}")]),
        Answer::text("So be it."),
    ]);
    let ran = run(desk.with_server(&server, &["-p", "Go."]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let requests = server.requests();
    let finds = found_by(&requests[0].body);
    for hidden in ["undo_list", "web_fetch", "undo_restore", "delete", "apply_patch"] {
        assert!(!finds.contains(hidden), "{hidden}: {finds:?}");
    }
    for found in ["git_log", "memory_add", "run", "web_search"] {
        assert!(finds.contains(found), "{found}: {finds:?}");
    }
    // A tool of every day is known anyway.
    assert!(listed(&requests[0].body).contains(&"write".to_owned()));
    let results = requests[1].body["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(
        !results.contains("<tool name=\\\"undo_list")
            && results.contains("<tool name=\\\"git_log\\\"/>"),
        "{results}"
    );
    assert!(!listed(&requests[2].body).contains(&"undo_list".to_owned()));
    assert_eq!(desk.ended(3)["outcome"]["how"], "refused");
}
