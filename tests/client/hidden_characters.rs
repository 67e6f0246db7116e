//! Hidden characters in what models, files, servers and refusals say: none of them reaches a screen raw. (Those of a
//! fleet: `tests/fleet/screens.rs`.)

use crate::support::anthropic::{Answer, Server, call, text, thinking};
use crate::support::terminal::Tmux;
use crate::support::{Desk, needs, run};
use protocol::hidden::is_hidden;
use serde_json::json;

/// A direction of writing, a letter without width, the beginnings of control sequences, a tag.
const HOSTILE: &str =
    "a\u{202e}b\u{200b}c\u{1b}]52;c;aGk=\u{7}d\u{1b}[31me\u{9b}31mf\u{2066}g\u{feff}h\u{e0041}i";

#[track_caller]
fn shows_nothing_raw(what: &str, screen: &str, shows: &str) {
    assert!(screen.contains(shows), "{what} shows {shows}: {screen}");
    let raw: Vec<char> = screen.chars().filter(|c| is_hidden(*c)).collect();
    assert!(raw.is_empty(), "{what} prints {raw:?}: {screen:?}");
}

#[test]
fn no_hidden_character_of_a_session_reaches_a_screen() {
    needs("python3");
    let desk = Desk::new();
    desk.write("server.py", include_str!("../data/mcp_server.py"));
    let config = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let server = "[mcp.test]\ncommand = [\"python3\", \"server.py\", \"hides\"]\n";
    std::fs::write(config, server).unwrap();
    let name = format!("file {HOSTILE}");
    desk.write(&name, &format!("content {HOSTILE}\n"));
    let bash = |command: String| json!({ "command": command }).to_string();
    let model = Server::scripted([
        Answer::says([
            thinking(&format!("thought {HOSTILE}"), "c2ln"),
            text(&format!("plan {HOSTILE}")),
            call("toolu_1", "read", &json!({ "path": name }).to_string()),
            call("toolu_2", "bash", &bash(format!("printf '%s' '{HOSTILE}' >&2; exit 3"))),
            call("toolu_3", "bash", &bash(format!(": > '/usr/refused {HOSTILE}'"))),
            call(
                "toolu_4",
                "write",
                &json!({"path": format!("/usr/x{HOSTILE}"), "content": "x"}).to_string(),
            ),
            call("toolu_5", &format!("no_such_{HOSTILE}"), "{}"),
            call("toolu_6", "mcp__test__echo", &json!({ "text": HOSTILE }).to_string()),
        ]),
        Answer::text(&format!("answer {HOSTILE}")),
    ]);
    let prompt = format!("prompt {HOSTILE}");
    let _daemon = desk.daemon();
    let ran = run(desk.with_server(&model, &["-p", &prompt, "--permission-mode", "auto"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    shows_nothing_raw("-p, to standard error", &ran.err, "session ");
    let session =
        ran.err.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned();
    // The first call is the start of the server.
    let call_of = |number: u32| format!("{session}.{number}");
    let (read, failed, refused, outside, server) =
        (call_of(2), call_of(3), call_of(4), call_of(5), call_of(7));
    for (words, shows) in [
        (&["ls"][..], "prompt a"),
        (&["ls", "--json"], "prompt a"),
        (&["ps"], "agentd-supervisor"),
        (&["ps", "--json"], "agentd-supervisor"),
        (&["logs"], "judged"),
        (&["show", &session], "prompt a"),
        (&["show", "--calls", &session], "content a"),
        (&["show", "--json", &session], "content a"),
        (&["export", &session], "prompt a"),
        (&["export", "--format", "json", &session], "prompt a"),
        (&["export", "--format", "html", &session], "prompt a"),
        (&["audit", "ls"], "mcp__test__echo"),
        (&["audit", "show", &read], "file a"),
        (&["audit", "show", "--json", &read], "file a"),
        (&["audit", "show", &failed], "exit"),
        (&["audit", "show", &refused], "refused a"),
        (&["audit", "show", "--json", &refused], "refused a"),
        (&["audit", "show", &outside], "/usr/xa"),
        (&["audit", "show", &server], "echo"),
        (&["audit", "export"], "refused a"),
    ] {
        let ran = run(desk.agentd(words));
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
        shows_nothing_raw(&format!("{words:?}"), &(ran.out + &ran.err), shows);
    }
    let tmux = Tmux::new(&desk);
    let screen = tmux.run("one", &desk.agentd(&["attach", &session]), (160, 60));
    screen.shows("answer a");
    shows_nothing_raw("the full screen", &screen.coloured().replace('\u{1b}', ""), "prompt a");
    let screen = tmux.run("two", &desk.agentd(&["attach", "--screen-reader", &session]), (160, 60));
    screen.shows("answer a");
    shows_nothing_raw("rows", &screen.scrollback(), "prompt a");
    // The same text is in the journal, and programs that read JSON get it.
    let shown = run(desk.agentd(&["show", "--json", &session])).out;
    let first = shown.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let prompts: Vec<_> = first.filter(|record| record["kind"] == "PROMPT").collect();
    assert_eq!(prompts[0]["text"], prompt.as_str());
}
