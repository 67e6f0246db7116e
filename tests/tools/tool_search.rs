//! Tools of rare use, which a session loads when the model looks for them: the size of the list at the start, each
//! tool found by a model's words, and the same list after a fork, a death and a compaction.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, run, send, write_program};
use nix::sys::signal::Signal;
use protocol::client::{FromClient, SessionRequest, SessionStart, SessionWish};
use protocol::ids::SessionId;
use protocol::session::OpenTurn;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Most tokens at the start of a session: tools and system prompt.
const MOST: u64 = 3_500;

/// Words with which a model may look for each tool that is not listed from the start.
const PHRASES: &[(&str, [&str; 3])] = &[
    (
        "history_search",
        ["what did the user say before", "search earlier messages", "a tool result that was cut"],
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
    (
        "skill_activate",
        ["load a skill", "run the release skill", "follow the instructions of a skill"],
    ),
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
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    let shown = run(desk.agentd(&["context", &session.0, "--json"]));
    let report: Value = serde_json::from_str(&shown.out).unwrap();
    let parts = report["parts"].as_array().unwrap();
    let tools = parts.iter().find(|part| part["kind"] == "tools").unwrap();
    assert_eq!(tools["count"], 12);
    println!("tokens: {}, of them tools: {}", report["used"], tools["estimated_tokens"]);
    assert!(report["used"].as_u64().unwrap() <= MOST, "more than {MOST}: {report}");
}

#[test]
fn each_tool_that_is_not_listed_is_found_by_the_words_of_a_model() {
    let desk = Desk::new();
    // A stub, so that it counts as installed.
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
            if !text.contains(&format!("<tool name=\\\"{tool}\\\">")) {
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
    desk.write(".agentd/config.toml", "[permissions]\ndeny = [\"undo_list\", \"git_log:--all\"]\n");
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
    assert!(!finds.contains("undo_list") && finds.contains("git_log"), "{finds:?}");
    let results = requests[1].body["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(
        !results.contains("<tool name=\\\"undo_list") && results.contains("<tool name=\\\"git_log"),
        "{results}"
    );
    assert!(!listed(&requests[2].body).contains(&"undo_list".to_owned()));
    assert_eq!(desk.ended(3)["outcome"]["how"], "refused");
}
