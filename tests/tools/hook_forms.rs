//! Hooks in the newer forms of Claude Code: the exec form runs as it is written, and a hook that cannot be run as it is
//! written never starts and counts as failed, so that its call does not run.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, Run, needs, run};
use serde_json::{Value, json};

const TRUSTED: [&str; 5] = ["-p", "Go.", "--permission-mode", "auto", "--trust-project"];

/// Says its arguments, and blocks.
const GUARD: &str = "import json, sys\njson.load(sys.stdin)\nprint('guarded by', sys.argv[1:], file=sys.stderr)\nsys.exit(2)\n";

fn desk(event: &str, group: &Value) -> Desk {
    needs("python3");
    let desk = Desk::new();
    desk.write("my guard.py", GUARD);
    desk.write(".claude/settings.json", &json!({"hooks": {event: [group]}}).to_string());
    desk
}

/// Runs a call that leaves a file behind; the run, and the result that the model got.
fn round(desk: &Desk, flags: &[&str]) -> (Run, String, usize) {
    let input = json!({"command": "touch ran; echo done"}).to_string();
    let says = Answer::says([call("toolu_1", "bash", &input)]);
    let server = Server::scripted([says, Answer::text("Done.")]);
    let ran = run(desk.with_server(&server, flags));
    let requests = server.requests();
    let result = requests.get(1).map(|request| {
        request.body["messages"].as_array().unwrap().last().unwrap()["content"][0].to_string()
    });
    (ran, result.unwrap_or_default(), requests.len())
}

#[test]
fn the_exec_form_gets_its_words_as_they_are_from_every_file() {
    let args = json!(["${CLAUDE_PROJECT_DIR}/my guard.py", "a b", "$HOME;touch oops", "it's"]);
    let hook = json!({"type": "command", "command": "python3", "args": args});
    let group = json!({"matcher": "Bash", "hooks": [hook]});
    let said = r#"guarded by ['a b', '$HOME;touch oops', \"it's\"]"#;
    let claude = desk("PreToolUse", &group);
    let own = desk("Stop", &json!({"hooks": []}));
    let words = "['${CLAUDE_PROJECT_DIR}/my guard.py', 'a b', '$HOME;touch oops', \"it's\"]";
    let hooks = format!("[{{ command = 'python3', args = {words} }}]");
    own.write(
        ".agentd/config.toml",
        &format!("[[hooks.PreToolUse]]\nmatcher = 'Bash'\nhooks = {hooks}\n"),
    );
    for desk in [claude, own] {
        let (ran, result, _) = round(&desk, &TRUSTED);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(result.contains(said), "{result}");
        assert!(!desk.project().join("ran").exists() && !desk.project().join("oops").exists());
    }
    // Of a plugin, whose folder stands in the words.
    let desk = desk("Stop", &json!({"hooks": []}));
    let root = desk.home().join("plugins/mine");
    std::fs::create_dir_all(root.join("hooks")).unwrap();
    std::fs::create_dir_all(root.join(".claude-plugin")).unwrap();
    std::fs::write(root.join(".claude-plugin/plugin.json"), r#"{"name": "mine"}"#).unwrap();
    std::fs::write(root.join("my guard.py"), GUARD).unwrap();
    let group = group.to_string().replace("PROJECT_DIR", "PLUGIN_ROOT");
    std::fs::write(
        root.join("hooks/hooks.json"),
        format!("{{\"hooks\": {{\"PreToolUse\": [{group}]}}}}"),
    )
    .unwrap();
    let root = root.display().to_string();
    assert_eq!(run(desk.agentd(&["init", "--plugin-dir", &root])).code, 0);
    let (ran, result, _) = round(&desk, &[&TRUSTED[..], &["--plugin-dir", &root]].concat());
    assert!(result.contains(said), "{result} {}", ran.err);
}

#[test]
fn a_hook_that_cannot_be_run_as_written_never_starts_and_its_call_does_not_run() {
    for (field, value) in [
        ("if", json!("Bash(git *)")),
        ("shell", json!("powershell")),
        ("async", json!(true)),
        ("asyncRewake", json!(true)),
        ("args", json!("x")),
        ("type", json!("prompt")),
        ("type", json!("http")),
        ("of_tomorrow", json!({"a": 1})),
    ] {
        let mut hook = json!({"type": "command", "command": "touch ${CLAUDE_PROJECT_DIR:-.}/ran; cat > /dev/null"});
        hook[field] = value.clone();
        let desk = desk("PreToolUse", &json!({"matcher": "Bash", "hooks": [hook]}));
        let (ran, result, _) = round(&desk, &TRUSTED);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(result.contains("cannot be run as it is written"), "{field} {value}: {result}");
        assert!(!desk.project().join("ran").exists(), "{field} {value}");
        assert!(ran.err.contains("counts as failed"), "{field} {value}: {}", ran.err);
    }
}

#[test]
fn a_prompt_whose_hook_cannot_be_run_is_not_sent_and_harmless_fields_change_nothing() {
    let hook = json!({"type": "agent", "prompt": "Is it good?"});
    let (ran, _, requests) = round(&desk("UserPromptSubmit", &json!({"hooks": [hook]})), &TRUSTED);
    assert_eq!(requests, 0, "{}", ran.err);
    assert!(ran.err.contains("cannot be run as it is written"), "{}", ran.err);
    let harmless = json!({"type": "command", "command": "cat > /dev/null", "statusMessage": "Checking",
        "async": false, "shell": "bash", "if": "Bash", "once": true});
    let desk = desk("PreToolUse", &json!({"matcher": "*", "hooks": [harmless]}));
    let (ran, result, _) = round(&desk, &TRUSTED);
    assert!(result.contains("done") && desk.project().join("ran").exists(), "{result} {}", ran.err);
    assert!(!ran.err.contains("as it is written"), "{}", ran.err);
}
