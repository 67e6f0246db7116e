//! Hidden characters in what people, models, files, servers and refusals say: none of them reaches a surface raw.
//! (Those of a fleet: `tests/fleet/screens.rs`.)

use crate::support::anthropic::{Answer, Server, call, text, thinking};
use crate::support::hidden::{hostile, shows_nothing_raw};
use crate::support::terminal::Tmux;
use crate::support::{Desk, needs, run};
use serde_json::json;

#[test]
fn no_hidden_character_of_a_session_reaches_a_surface() {
    needs("python3");
    let desk = Desk::new();
    desk.write("server.py", include_str!("../data/mcp_server.py"));
    let config = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let word = |text: &str| json!(text).to_string();
    let named = format!("name={}", hostile("mcp"));
    let command = ["python3", "server.py", "hides", &named].map(word).join(", ");
    std::fs::write(config, format!("[mcp.test]\ncommand = [{command}]\n")).unwrap();
    let file = hostile("file");
    desk.write(&file, &format!("{}\n", hostile("inside")));
    desk.write("said.txt", &hostile("printed"));
    let bash = |command: String| json!({ "command": command }).to_string();
    let write = |path: String| json!({ "path": path, "content": "x" }).to_string();
    let mcp =
        format!("mcp__test__{}", hostile("mcp").replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
    let model = Server::scripted([
        Answer::says([
            thinking(&hostile("thought"), "c2ln"),
            text(&hostile("plan")),
            call("toolu_1", "read", &json!({ "path": file }).to_string()),
            call(
                "toolu_2",
                "bash",
                &bash(format!(": '{}'; cat said.txt >&2; exit 3", hostile("failed"))),
            ),
            call("toolu_3", "bash", &bash(format!(": > '/usr/{}'", hostile("refusal")))),
            call("toolu_4", "write", &write(format!("/usr/{}", hostile("outside")))),
            call("toolu_5", &format!("no_such_{}", hostile("tool")), "{}"),
            call("toolu_6", &mcp, &json!({ "text": hostile("said") }).to_string()),
        ]),
        Answer::text(&hostile("answer")),
        Answer::text(&hostile("later")),
    ]);
    let prompt = hostile("prompt");
    let _daemon = desk.daemon();
    let ran = run(desk.with_server(&model, &["-p", &prompt, "--permission-mode", "auto"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let begun = ["file…", "failed…", "refusal…", "outside…", "said…", "tool", "mcp"];
    shows_nothing_raw("-p, to standard error", &ran.err, &begun);
    let session =
        ran.err.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned();
    // The first call is the start of the server.
    let call_of = |number: u32| format!("{session}.{number}");
    let (read, failed, refused, outside, server) =
        (call_of(2), call_of(3), call_of(4), call_of(5), call_of(7));
    let all = [
        "prompt",
        "thought",
        "plan",
        "file",
        "inside",
        "printed…",
        "failed",
        "refusal",
        "outside",
        "tool",
        "mcp",
        "said",
        "answer",
    ];
    // Thoughts are shown where they are asked for.
    let told: Vec<&str> = all.into_iter().filter(|text| *text != "thought").collect();
    let in_short =
        ["prompt", "plan", "answer", "tool", "mcp", "file", "failed…", "refusal…", "outside…"];
    let called = ["file", "failed", "refusal", "outside", "tool", "mcp", "said"];
    for (words, texts) in [
        (&["ls"][..], &["prompt…"][..]),
        (&["ls", "--json"], &["prompt…"]),
        (&["ps"], &[]),
        (&["ps", "--json"], &[]),
        (&["logs"], &[]),
        (&["show", &session], &in_short),
        (&["show", "--calls", &session], &told),
        (&["show", "--json", &session], &all),
        (&["export", &session], &told),
        (&["export", "--format", "json", &session], &all),
        (&["export", "--format", "html", &session], &all),
        (&["audit", "ls"], &["file…", "failed…", "refusal…", "outside…", "tool…", "mcp…", "said…"]),
        (&["audit", "show", &read], &["file"]),
        (&["audit", "show", "--json", &read], &["file"]),
        (&["audit", "show", &failed], &["failed"]),
        (&["audit", "show", &refused], &["refusal"]),
        (&["audit", "show", "--json", &refused], &["refusal"]),
        (&["audit", "show", &outside], &["outside"]),
        (&["audit", "show", &server], &["mcp", "said"]),
        (&["audit", "export"], &called),
        (&["mcp", "ls"], &["mcp"]),
        (&["mcp", "show", "test"], &["mcp"]),
        (&["mcp", "check", "test"], &["mcp"]),
    ] {
        let ran = run(desk.agentd(words));
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
        shows_nothing_raw(&format!("{words:?}"), &(ran.out + &ran.err), texts);
    }
    // Lists of processes and the log have no such text; they are there.
    for (words, shows) in [("ps", "agentd-supervisor"), ("logs", "judged")] {
        assert!(run(desk.agentd(&[words])).out.contains(shows), "{words}");
    }
    let tmux = Tmux::new(&desk);
    let screen = tmux.run("one", &desk.agentd(&["attach", &session]), (160, 200));
    screen.shows("answer0");
    let shown = [
        "prompt",
        "thought…",
        "plan",
        "file",
        "printed…",
        "failed…",
        "refusal",
        "outside…",
        "tool…",
        "mcp",
        "said",
        "answer",
    ];
    shows_nothing_raw("the full screen", &screen.coloured().replace('\u{1b}', ""), &shown);
    let screen = tmux.run("two", &desk.agentd(&["attach", "--screen-reader", &session]), (300, 60));
    screen.shows("answer0");
    let cut = ["failed", "outside"];
    let rows: Vec<&str> = all.into_iter().filter(|text| !cut.contains(text)).collect();
    let texts = [&rows[..], &["failed…", "outside…"]].concat();
    shows_nothing_raw("rows", &screen.scrollback(), &texts);
    let asks = desk.with_server(&model, &["-p", &prompt, "--permission-mode", "auto"]);
    let screen = tmux.run("three", &asks, (160, 60));
    screen.shows("later0");
    shows_nothing_raw("-p, to a terminal", &screen.scrollback(), &["later"]);
    // The same text is in the journal, and programs that read JSON get it.
    let shown = run(desk.agentd(&["show", "--json", &session])).out;
    let first = shown.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let prompts: Vec<_> = first.filter(|record| record["kind"] == "PROMPT").collect();
    assert_eq!(prompts[0]["text"], prompt.as_str());
}
