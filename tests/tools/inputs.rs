//! Every tool except file tools against every bad input, end to end. Each row is a call, with the
//! code of its error, or `ok` for good input. The rows of file tools are in
//! `crates/tools/tests/tools/inputs.rs`.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::internet::{Site, page};
use crate::support::{Desk, needs, run};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// The call, and how it ends: `ok`, the code of an error, `exit N` from git itself, or `refused` if
/// no call was made.
type Row = (&'static str, Value, &'static str);

/// Calls that go into one answer of the model.
const A_ROUND: usize = 20;

/// Makes the calls of all rows in one session and compares how each ended.
fn hold(desk: &Desk, rows: &[Row]) {
    let rounds: Vec<Answer> = rows
        .chunks(A_ROUND)
        .enumerate()
        .map(|(round, rows)| {
            let calls = rows.iter().enumerate().map(|(at, (tool, input, _))| {
                call(&format!("toolu_{round}_{at}"), tool, &input.to_string())
            });
            Answer::says(calls.collect::<Vec<_>>())
        })
        .collect();
    let turns = rounds.len();
    let server = Server::scripted(rounds.into_iter().chain([Answer::text("Done.")]));
    let ran = run(desk.with_server(&server, &["-p", "Go.", "--permission-mode", "auto"]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
    let requests = server.requests();
    let results = requests[1..=turns].iter().flat_map(|request| {
        let messages = request.body["messages"].as_array().unwrap();
        messages.last().unwrap()["content"].as_array().unwrap().clone()
    });
    let results: Vec<Value> = results.filter(|block| block["type"] == "tool_result").collect();
    assert_eq!(results.len(), rows.len());
    let mut wrong = Vec::new();
    for ((tool, input, expected), result) in rows.iter().zip(&results) {
        let text = result["content"].as_str().unwrap();
        let found = ending(text);
        let is_error = result["is_error"] == true;
        if found != *expected
            || is_error == (*expected == "ok")
            || text.contains("panicked")
            || text.contains(" at line 1 column ")
        {
            let input = input.to_string();
            wrong.push(format!("{tool} {input:.100}: {found}, not {expected}: {text:.300}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    let verified = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(verified.code, 0, "{}", verified.err);
}

fn ending(text: &str) -> String {
    let code = text.strip_prefix("Error [").and_then(|rest| rest.split_once(']'));
    let exit = text.lines().last().and_then(|line| line.strip_prefix("exit code: "));
    match (code, exit) {
        (Some(("denied", _)), _) => "refused".to_owned(),
        (Some((code, _)), _) => code.to_owned(),
        (None, None | Some("0")) => "ok".to_owned(),
        (None, Some(code)) => format!("exit {code}"),
    }
}

fn git(directory: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]).args(words);
    let ran = command.current_dir(directory).output().unwrap();
    assert!(ran.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// A repository with one commit and one of each kind of file.
fn repository() -> Desk {
    needs("git");
    let desk = Desk::new();
    let project = desk.project();
    git(&project, &["init", "--quiet"]);
    git(&project, &["config", "user.name", "A"]);
    git(&project, &["config", "user.email", "a@example.org"]);
    desk.write("a", "one\n");
    desk.write("dir/b", "one\n");
    fs::write(project.join("binary"), b"\x7fELF\0\0").unwrap();
    git(&project, &["add", "."]);
    git(&project, &["commit", "--quiet", "--message=first"]);
    desk.write("a", "two\n");
    fs::write(project.join("binary"), b"\x7fELF\0\x01").unwrap();
    fs::write(project.join(OsStr::from_bytes(b"caf\xe9")), "x").unwrap();
    nix::unistd::mkfifo(&project.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink("../project-evil", project.join("out")).unwrap();
    symlink("nowhere", project.join("dangling")).unwrap();
    fs::create_dir(desk.outside().join("project-evil")).unwrap();
    fs::write(desk.outside().join("project-evil/secret"), "the secret\n").unwrap();
    desk
}

/// Every path outside of the project, given to each tool of git that takes a path.
fn paths(tool: &'static str, input: impl Fn(&str) -> Value, missing: &'static str) -> Vec<Row> {
    let long = "d/".repeat(3000);
    [
        ("a", "ok"),
        ("dir", "ok"),
        ("binary", "ok"),
        ("missing", missing),
        ("", "invalid_arguments"),
        ("a\0b", "refused"),
        ("a/below", "not_a_directory"),
        ("../project-evil/secret", "access_denied"),
        ("/etc/passwd", "access_denied"),
        ("out/secret", "access_denied"),
        ("dangling", "access_denied"),
        (&long, missing),
    ]
    .map(|(path, expected)| (tool, input(path), expected))
    .into()
}

#[test]
fn git_in_a_repository() {
    let desk = repository();
    let long = "x".repeat(200_000);
    let mut rows: Vec<Row> = vec![
        ("git_status", json!({}), "ok"),
        ("git_status", json!({"colour": 1}), "invalid_arguments"),
        ("git_status", json!([]), "invalid_arguments"),
        ("git_diff", json!({}), "ok"),
        ("git_diff", json!({"colour": 1}), "invalid_arguments"),
        ("git_diff", json!({"path": 7}), "invalid_arguments"),
        ("git_diff", json!({"staged": "yes"}), "invalid_arguments"),
        ("git_diff", json!({"context": 0}), "ok"),
        ("git_diff", json!({"context": 20}), "ok"),
        ("git_diff", json!({"context": 21}), "invalid_arguments"),
        ("git_diff", json!({"context": -1}), "invalid_arguments"),
        ("git_log", json!({}), "ok"),
        ("git_log", json!({"colour": 1}), "invalid_arguments"),
        ("git_log", json!({"limit": 1}), "ok"),
        ("git_log", json!({"limit": 0}), "invalid_arguments"),
        ("git_log", json!({"limit": 51}), "invalid_arguments"),
        ("git_log", json!({"limit": "ten"}), "invalid_arguments"),
        ("git_show", json!({"ref": "HEAD"}), "ok"),
        ("git_show", json!({"ref": "HEAD:a"}), "ok"),
        ("git_show", json!({"ref": "HEAD", "colour": 1}), "invalid_arguments"),
        ("git_show", json!({}), "invalid_arguments"),
        ("git_show", json!({"ref": 7}), "invalid_arguments"),
        ("git_show", json!({"ref": " "}), "invalid_arguments"),
        ("git_show", json!({"ref": "a\0b"}), "refused"),
        ("git_show", json!({"ref": "no-such"}), "exit 128"),
        ("git_show", json!({"ref": "HEAD~99"}), "exit 128"),
        ("git_show", json!({"ref": "HEAD:missing"}), "exit 128"),
        ("git_show", json!({"ref": "HEAD:../project-evil/secret"}), "exit 128"),
        ("git_show", json!({"ref": "--output=made"}), "exit 128"),
        ("git_show", json!({"ref": long}), "refused"),
        ("git_add", json!({}), "invalid_arguments"),
        ("git_add", json!({"paths": ["a"], "all": true}), "invalid_arguments"),
        ("git_add", json!({"paths": "a"}), "invalid_arguments"),
        ("git_add", json!({"paths": [7]}), "invalid_arguments"),
        ("git_add", json!({"paths": ["a"], "colour": 1}), "invalid_arguments"),
        ("git_add", json!({"paths": ["fifo"]}), "ok"),
        ("git_add", json!({"paths": ["a", "missing"]}), "exit 128"),
        ("git_commit", json!({}), "invalid_arguments"),
        ("git_commit", json!({"subject": " "}), "invalid_arguments"),
        ("git_commit", json!({"subject": "a\nb"}), "invalid_arguments"),
        ("git_commit", json!({"subject": "a\0b"}), "refused"),
        ("git_commit", json!({"subject": "a", "body": 7}), "invalid_arguments"),
        ("git_commit", json!({"subject": "a", "colour": 1}), "invalid_arguments"),
        ("git_commit", json!({"subject": "nothing is staged"}), "exit 1"),
        ("git_commit", json!({"subject": "a", "body": long}), "refused"),
    ];
    rows.extend(paths("git_diff", |path| json!({ "path": path }), "ok"));
    rows.extend(paths("git_log", |path| json!({ "path": path }), "ok"));
    rows.extend(paths("git_add", |path| json!({ "paths": [path] }), "exit 128"));
    rows.push(("git_commit", json!({"subject": "second"}), "ok"));
    hold(&desk, &rows);
    assert!(!desk.project().join("made").exists(), "a ref is no flag");
}

#[test]
fn git_where_there_is_no_repository_or_another_kind() {
    let all = |status, diff, log, show, add, commit| -> Vec<Row> {
        vec![
            ("git_status", json!({}), status),
            ("git_diff", json!({}), diff),
            ("git_log", json!({}), log),
            ("git_show", json!({"ref": "HEAD"}), show),
            ("git_add", json!({"all": true}), add),
            ("git_commit", json!({"subject": "a"}), commit),
        ]
    };
    // None at all: `diff` is then one of files outside of any, which asks for two.
    let desk = Desk::new();
    hold(&desk, &all("exit 128", "exit 129", "exit 128", "exit 128", "exit 128", "exit 128"));
    let desk = Desk::new();
    git(&desk.project(), &["init", "--quiet", "--bare"]);
    hold(&desk, &all("exit 128", "exit 128", "exit 128", "exit 128", "exit 128", "exit 128"));
    // Nothing is committed yet.
    let desk = Desk::new();
    git(&desk.project(), &["init", "--quiet"]);
    git(&desk.project(), &["config", "user.name", "A"]);
    git(&desk.project(), &["config", "user.email", "a@example.org"]);
    hold(&desk, &all("ok", "ok", "exit 128", "exit 128", "ok", "exit 1"));
    desk.write("a", "one\n");
    hold(&desk, &all("ok", "ok", "exit 128", "exit 128", "ok", "ok"));
    // On no branch.
    git(&desk.project(), &["checkout", "--quiet", "--detach"]);
    desk.write("a", "two\n");
    hold(&desk, &all("ok", "ok", "ok", "ok", "ok", "ok"));
    // A damaged one.
    fs::write(desk.project().join(".git/HEAD"), "nothing\n").unwrap();
    hold(&desk, &all("exit 128", "exit 129", "exit 128", "exit 128", "exit 128", "exit 128"));
}

#[test]
fn what_the_store_and_the_conversation_answer() {
    let desk = Desk::new();
    let skill = "---\nname: greet\ndescription: Says hello.\n---\nSay hello to $ARGUMENTS.\n";
    desk.write(".agents/skills/greet/SKILL.md", skill);
    let long = "word ".repeat(100_000);
    let many: Vec<String> = (0..2_000).map(|n| format!("step {n}")).collect();
    let list = |group: &str, items: Value| json!({"group": group, "title": "t", "items": items});
    let step = |group: &str, item: Value, status: &str| json!({"group": group, "item": item, "status": status});
    let rows: Vec<Row> = vec![
        ("memory_add", json!({"text": "Built with make."}), "ok"),
        ("memory_add", json!({}), "invalid_arguments"),
        ("memory_add", json!({"text": ""}), "invalid_arguments"),
        ("memory_add", json!({"text": " \n"}), "invalid_arguments"),
        ("memory_add", json!({"text": 7}), "invalid_arguments"),
        ("memory_add", json!({"text": long}), "too_large"),
        ("memory_add", json!({"text": "a", "scope": "world"}), "invalid_arguments"),
        ("memory_add", json!({"text": "a", "colour": 1}), "invalid_arguments"),
        ("memory_search", json!({"query": "make"}), "ok"),
        ("memory_search", json!({"query": "\"*^)(:-"}), "invalid_arguments"),
        ("memory_search", json!({"query": "NOT AND OR NEAR"}), "ok"),
        ("memory_search", json!({"query": "a\0b"}), "ok"),
        ("memory_search", json!({"query": ""}), "invalid_arguments"),
        ("memory_search", json!({"query": long}), "ok"),
        ("memory_search", json!({}), "invalid_arguments"),
        ("memory_search", json!({"query": ["make"]}), "invalid_arguments"),
        ("memory_search", json!({"query": "a", "limit": 0}), "invalid_arguments"),
        ("memory_search", json!({"query": "a", "limit": 21}), "invalid_arguments"),
        ("memory_search", json!({"query": "a", "scope": 1}), "invalid_arguments"),
        ("memory_search", json!({"query": "a", "colour": 1}), "invalid_arguments"),
        ("memory_remove", json!({}), "invalid_arguments"),
        ("memory_remove", json!({"id": 1}), "invalid_arguments"),
        ("memory_remove", json!({"id": "p1", "colour": 1}), "invalid_arguments"),
        ("memory_remove", json!({"id": ""}), "invalid_arguments"),
        ("memory_remove", json!({"id": "x1"}), "invalid_arguments"),
        ("memory_remove", json!({"id": "p-1"}), "not_found"),
        ("memory_remove", json!({"id": "p999"}), "not_found"),
        ("memory_remove", json!({"id": "p99999999999999999999"}), "invalid_arguments"),
        ("memory_remove", json!({"id": "../p1"}), "invalid_arguments"),
        ("memory_remove", json!({"id": "p1"}), "ok"),
        ("memory_remove", json!({"id": "p1"}), "not_found"),
        ("skill_list", json!({}), "ok"),
        ("skill_list", json!({"colour": 1}), "invalid_arguments"),
        ("skill_activate", json!({"name": "greet", "arguments": "Ann"}), "ok"),
        ("skill_activate", json!({"name": "greet", "arguments": "a\0$ARGUMENTS"}), "ok"),
        ("skill_activate", json!({"name": "greet", "arguments": long}), "ok"),
        ("skill_activate", json!({}), "invalid_arguments"),
        ("skill_activate", json!({"name": 7}), "invalid_arguments"),
        ("skill_activate", json!({"name": "greet", "arguments": 7}), "invalid_arguments"),
        ("skill_activate", json!({"name": "greet", "colour": 1}), "invalid_arguments"),
        ("skill_activate", json!({"name": ""}), "not_found"),
        ("skill_activate", json!({"name": "nobody"}), "not_found"),
        ("skill_activate", json!({"name": "../greet"}), "not_found"),
        ("skill_activate", json!({"name": "/etc/passwd"}), "not_found"),
        ("undo_list", json!({}), "ok"),
        ("undo_list", json!({"colour": 1}), "invalid_arguments"),
        ("undo_restore", json!({}), "invalid_arguments"),
        ("undo_restore", json!({"id": "99"}), "not_covered"),
        ("undo_restore", json!({"id": -1}), "invalid_arguments"),
        ("undo_restore", json!({"id": 4_294_967_296_u64}), "invalid_arguments"),
        ("undo_restore", json!({"id": 1, "colour": 1}), "invalid_arguments"),
        ("undo_restore", json!({"id": 0}), "not_covered"),
        ("undo_restore", json!({"id": 99}), "not_covered"),
        ("history_search", json!({"keyword": "Go"}), "ok"),
        ("history_search", json!({"keyword": "[(*"}), "ok"),
        ("tool_search", json!({"query": "git"}), "ok"),
        ("tool_search", json!({"query": ""}), "ok"),
        ("tool_search", json!({}), "invalid_arguments"),
        ("tool_search", json!({"query": 7}), "invalid_arguments"),
        ("tool_search", json!({"query": "git", "colour": 1}), "invalid_arguments"),
        ("history_search", json!({"call": 9_999}), "not_found"),
        ("history_search", json!({"call": 0}), "invalid_arguments"),
        ("history_search", json!({}), "invalid_arguments"),
        ("history_search", json!({"keyword": ""}), "invalid_arguments"),
        ("history_search", json!({"keyword": 7}), "invalid_arguments"),
        ("history_search", json!({"keyword": "Go", "limit": 0}), "invalid_arguments"),
        ("history_search", json!({"keyword": "Go", "limit": 51}), "invalid_arguments"),
        ("history_search", json!({"keyword": "Go", "colour": 1}), "invalid_arguments"),
        ("checklist_create", list("g", json!(["one", "two"])), "ok"),
        ("checklist_create", json!({"group": "g"}), "invalid_arguments"),
        ("checklist_create", list("", json!(["one"])), "invalid_arguments"),
        ("checklist_create", list("h", json!([])), "invalid_arguments"),
        ("checklist_create", list("h", json!("one")), "invalid_arguments"),
        ("checklist_create", list("h", json!(["one", 7])), "invalid_arguments"),
        ("checklist_create", list("h", json!(many)), "invalid_arguments"),
        ("checklist_create", list("h", json!([long])), "invalid_arguments"),
        ("checklist_update", step("g", json!("one"), "done"), "ok"),
        ("checklist_update", step("g", json!("2"), "in_progress"), "ok"),
        ("checklist_update", step("g", json!("one"), "finished"), "invalid_arguments"),
        ("checklist_update", step("g", json!(1), "done"), "invalid_arguments"),
        ("checklist_update", json!({"group": "g", "item": "one"}), "invalid_arguments"),
        ("checklist_update", step("nobody", json!("one"), "done"), "not_found"),
        ("checklist_update", step("g", json!("three"), "done"), "not_found"),
        ("checklist_update", step("g", json!("3"), "done"), "not_found"),
        ("checklist_update", step("g", json!("0"), "done"), "not_found"),
        ("checklist_update", step("g", json!(""), "done"), "invalid_arguments"),
    ];
    hold(&desk, &rows);
}

#[test]
fn the_tools_of_the_web() {
    let desk = Desk::new();
    // On this machine, which is reached only with the person's permission.
    let port = TcpListener::bind("localhost:0").unwrap().local_addr().unwrap().port();
    let site = Site::serve(Ipv4Addr::LOCALHOST, port, |head| match head {
        head if head.starts_with("GET /search?q=") => page(
            "<!doctype html><div class=result><a class=result__a href='https://example.org/'>A</a></div>",
        ),
        _ => page("Words.\n"),
    });
    let config = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let settings = format!(
        "[web]\nsearch_url = \"http://localhost:{port}/search\"\nprivate_networks = \"allow\"\n\
         [permissions]\nallow = [\"web_search\", \"web_fetch:localhost:{port}\"]\n"
    );
    fs::write(config, settings).unwrap();
    let long = "x".repeat(100_000);
    let mut rows: Vec<Row> = vec![
        ("web_fetch", json!({"url": format!("http://localhost:{port}/a")}), "ok"),
        ("web_fetch", json!({}), "invalid_arguments"),
        ("web_fetch", json!({"url": 7}), "invalid_arguments"),
        (
            "web_fetch",
            json!({"url": format!("http://localhost:{port}/"), "colour": 1}),
            "invalid_arguments",
        ),
        (
            "web_fetch",
            json!({"url": format!("http://localhost:{port}/{long}")}),
            "invalid_arguments",
        ),
        ("web_search", json!({"query": "crabs"}), "ok"),
        ("web_search", json!({"query": "crabs", "limit": 10}), "ok"),
        ("web_search", json!({}), "invalid_arguments"),
        ("web_search", json!({"query": 7}), "invalid_arguments"),
        ("web_search", json!({"query": ""}), "invalid_arguments"),
        ("web_search", json!({"query": " "}), "invalid_arguments"),
        ("web_search", json!({"query": long}), "invalid_arguments"),
        ("web_search", json!({"query": "crabs", "limit": 0}), "invalid_arguments"),
        ("web_search", json!({"query": "crabs", "limit": 11}), "invalid_arguments"),
        ("web_search", json!({"query": "crabs", "limit": "5"}), "ok"),
        ("web_search", json!({"query": "crabs", "colour": 1}), "invalid_arguments"),
    ];
    for url in [
        "",
        " ",
        "no url",
        "//localhost/",
        "/etc/passwd",
        "../a",
        "http://",
        "http://local host/",
        "http://localhost:99999/",
        "http://[::1/",
        "http://a\0b/",
        "http://person:word@localhost/",
        "ftp://localhost/",
        "file:///etc/passwd",
        "data:text/plain,a",
        "javascript:alert(1)",
    ] {
        rows.push(("web_fetch", json!({ "url": url }), "invalid_arguments"));
    }
    hold(&desk, &rows);
    assert_eq!(site.heads().len(), 4, "nothing else reached the server: {:?}", site.heads());
}
