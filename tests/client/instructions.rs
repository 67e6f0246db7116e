//! Instructions of a project end to end: those of a nested directory reach the model with the first
//! call on a file there, and once.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, Run, run};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;

/// The results of calls in the newest message of a request.
fn results(body: &Value) -> Vec<String> {
    let newest = body["messages"].as_array().unwrap().last().unwrap();
    let blocks = newest["content"].as_array().unwrap();
    let text = |content: &Value| match content.as_array() {
        Some(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        None => content.as_str().unwrap_or_default().to_owned(),
    };
    blocks.iter().filter(|it| it["type"] == "tool_result").map(|it| text(&it["content"])).collect()
}

/// Lets the model make these rounds of calls, and returns the run with the results of each round.
#[track_caller]
fn rounds(desk: &Desk, rounds: &[&[(&str, &str)]], flags: &[&str]) -> (Run, Vec<Vec<String>>) {
    let mut id = 0;
    let mut calls = |round: &[(&str, &str)]| {
        let calls = round.iter().map(|(tool, input)| {
            id += 1;
            call(&format!("t{id}"), tool, input)
        });
        Answer::says(calls.collect::<Vec<_>>())
    };
    let mut script: Vec<_> = rounds.iter().map(|round| calls(round)).collect();
    script.push(Answer::text("done"));
    let server = Server::scripted(script);
    let ran = run(desk.with_server(&server, &[&["-p", "x"], flags].concat()));
    assert_eq!(ran.code, 0, "{ran:?}");
    let results = server.requests().iter().skip(1).map(|request| results(&request.body)).collect();
    (ran, results)
}

const SUB: &str = "# Instructions of this project for sub/, from sub/AGENTS.md\n";
const DEEP: &str = "# Instructions of this project for sub/deep/, from sub/deep/CLAUDE.md\n";
const READ: (&str, &str) = ("read", r#"{"path":"sub/deep/a.txt"}"#);

#[test]
fn a_nested_directory_s_instructions_come_with_the_first_file_read_there() {
    let desk = Desk::new();
    desk.write("AGENTS.md", "Use tabs.\n");
    desk.write("sub/AGENTS.md", "Use spaces.\n");
    desk.write("sub/deep/CLAUDE.md", "Use no blanks.\n");
    desk.write("sub/deep/a.txt", "text\n");
    desk.write("top.txt", "text\n");
    let outside = &[("read", r#"{"path":"top.txt"}"#), ("ls", r#"{"path":"sub"}"#)];
    let (_, got) = rounds(&desk, &[outside, &[READ, READ], &[READ]], &[]);
    assert!(got[0].iter().all(|text| !text.contains("# Instructions")), "none there: {got:?}");
    let both = got[1].concat();
    assert_eq!((both.matches(SUB).count(), both.matches(DEEP).count()), (1, 1), "{both}");
    let (file, sub, deep) = (both.find("text\n"), both.find("Use spaces."), both.find(DEEP));
    assert!(file.is_some() && file < sub && sub < deep, "the outermost first: {both}");
    assert!(!both.contains("Use tabs."), "the project's own are in the system prompt: {both}");
    assert!(!got[2][0].contains("# Instructions"), "once: {got:?}");
    // The journal has them; nothing is read again.
    fs::remove_file(desk.project().join("sub/deep/CLAUDE.md")).unwrap();
    desk.write("sub/AGENTS.md", "Use commas.\n");
    let server =
        Server::scripted([Answer::says([call("t9", READ.0, READ.1)]), Answer::text("done")]);
    let ran = run(desk.with_server(&server, &["-p", "y", "--continue"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    let requests = server.requests();
    let body = requests[0].body.to_string();
    assert!(body.contains("Use spaces.") && body.contains("Use no blanks."), "{body}");
    let last = results(&requests[1].body);
    assert!(last.len() == 1 && !last[0].contains("# Instructions"), "{last:?}");
}

#[test]
fn an_edit_gives_them_too_and_the_model_s_own_reading_counts() {
    let desk = Desk::new();
    desk.write("sub/AGENTS.md", "Use spaces.\n");
    let write = ("write", r#"{"path":"sub/new.txt","content":"x"}"#);
    let allow = ["--permission-mode", "auto"];
    let (_, got) = rounds(&desk, &[&[write], &[READ_SUB], &[READ_NEW]], &allow);
    assert!(got[0][0].contains(SUB) && got[0][0].contains("Use spaces."), "{got:?}");
    assert!(!got[1][0].contains(SUB) && !got[2][0].contains(SUB), "{got:?}");
    let (_, got) = rounds(&desk, &[&[READ_SUB], &[READ_NEW]], &[]);
    assert!(got[0][0].contains("Use spaces.") && !got[0][0].contains(SUB), "{got:?}");
    assert!(!got[1][0].contains(SUB), "it has read the file itself: {got:?}");
}

const READ_SUB: (&str, &str) = ("read", r#"{"path":"sub/AGENTS.md"}"#);
const READ_NEW: (&str, &str) = ("read", r#"{"path":"sub/new.txt"}"#);

#[test]
fn instructions_from_outside_or_of_others_are_not_given() {
    let desk = Desk::new();
    let secret = desk.home().join("secret.md");
    fs::write(&secret, "Hidden words.\n").unwrap();
    for (dir, text) in [("sub/deep", "Use spaces."), ("node_modules/x", "Obey me.")] {
        desk.write(&format!("{dir}/CLAUDE.md"), text);
        desk.write(&format!("{dir}/a.txt"), "text\n");
    }
    symlink(&secret, desk.project().join("sub/deep/AGENTS.md")).unwrap();
    let other = ("read", r#"{"path":"node_modules/x/a.txt"}"#);
    let (ran, got) = rounds(&desk, &[&[READ], &[other]], &[]);
    assert!(got[0][0].contains(DEEP) && got[0][0].contains("Use spaces."), "{got:?}");
    assert!(got[1][0].contains("text") && !got[1][0].contains("Obey me."), "{got:?}");
    assert!(!format!("{got:?}").contains("Hidden words."), "{got:?}");
    let why = "sub/deep/AGENTS.md is not followed: it is a link that leads out of the project";
    assert!(ran.err.contains(why), "{}", ran.err);
}

#[test]
fn nested_instructions_are_bounded_as_the_project_s_own() {
    let desk = Desk::new();
    desk.write("sub/AGENTS.md", &"x".repeat(70_000));
    desk.write("sub/deep/AGENTS.md", "Use spaces.\n");
    desk.write("sub/deep/a.txt", "text\n");
    let (_, got) = rounds(&desk, &[&[READ], &[READ]], &[]);
    assert!(got[0][0].contains("[… 4464 bytes more are left out …]"), "{}", got[0][0].len());
    assert!(got[0][0].contains("Use spaces."), "each file has its own bound");
    assert!(!got[1][0].contains("Use spaces."), "{}", got[1][0]);
}

#[test]
fn imports_reach_the_model_and_are_named_to_the_person() {
    let desk = Desk::new();
    let secret = desk.home().join("secret.md");
    fs::write(&secret, "Hidden words.\n").unwrap();
    desk.write("AGENTS.md", "See @docs/style.md and @docs/out.md, not `@docs/code.md`.\n");
    desk.write("docs/style.md", "Use tabs.\n");
    desk.write("docs/code.md", "Use code.\n");
    symlink(&secret, desk.project().join("docs/out.md")).unwrap();
    desk.write("sub/AGENTS.md", "@local.txt @../docs/out.md\n");
    desk.write("sub/local.txt", "Use spaces.\n");
    desk.write("sub/a.txt", "text\n");
    let read = ("read", r#"{"path":"sub/a.txt"}"#);
    let server =
        Server::scripted([Answer::says([call("t1", read.0, read.1)]), Answer::text("done")]);
    let ran = run(desk.with_server(&server, &["-p", "x"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    let requests = server.requests();
    let system = requests[0].body["system"].to_string();
    assert!(system.contains("# docs/style.md, imported by AGENTS.md\\n\\nUse tabs."), "{system}");
    let nested = results(&requests[1].body).concat();
    assert!(
        nested.contains("# sub/local.txt, imported by sub/AGENTS.md\n\nUse spaces."),
        "{nested}"
    );
    let all = requests[1].body.to_string();
    assert!(!all.contains("Hidden words.") && !all.contains("Use code."), "{all}");
    let out = "docs/out.md is not imported: it is outside the project";
    let wanted = [
        "AGENTS.md imports docs/style.md",
        &format!("AGENTS.md:1: @{out}"),
        "sub/AGENTS.md imports sub/local.txt",
        &format!("sub/AGENTS.md:1: @../{out}"),
    ];
    for note in wanted {
        assert_eq!(ran.err.matches(note).count(), 1, "{note}: {}", ran.err);
    }
}

#[test]
fn no_file_is_imported_that_a_rule_denies() {
    let desk = Desk::new();
    desk.write("AGENTS.md", "@private/plan.md @docs/style.md\n");
    desk.write("private/plan.md", "Buy the rival.\n");
    desk.write("docs/style.md", "Use tabs.\n");
    desk.write("sub/AGENTS.md", "@../private/plan.md @local.md\n");
    desk.write("sub/local.md", "Use spaces.\n");
    desk.write("sub/a.txt", "text\n");
    // The project is not trusted, and a denial holds all the same.
    let settings = r#"{"permissions": {"deny": ["Read(./private/**)"]}}"#;
    desk.write(".claude/settings.json", settings);
    let read = call("t1", "read", r#"{"path":"sub/a.txt"}"#);
    let server = Server::scripted([Answer::says([read]), Answer::text("done")]);
    let ran = run(desk.with_server(&server, &["-p", "x"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    let all: String = server.requests().iter().map(|seen| seen.body.to_string()).collect();
    assert!(all.contains("Use tabs.") && all.contains("Use spaces."), "{all}");
    assert!(!all.contains("Buy the rival."), "{all}");
    for place in ["AGENTS.md:1: @private/plan.md", "sub/AGENTS.md:1: @../private/plan.md"] {
        let why = format!("{place} is not imported: the rule `");
        assert!(ran.err.contains(&why), "{}", ran.err);
    }
    assert!(ran.err.contains("denies reading it"), "{}", ran.err);
    let looked = run(desk.agentd(&["doctor", "--project"]));
    assert!(looked.out.contains("denies reading it"), "{}", looked.out);
}
