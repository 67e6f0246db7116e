//! A local plugin: its prompts, sub-agents and hooks count while the person trusts all of its files as
//! they are.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, needs, run};
use serde_json::json;

/// A desk with a plugin beside the project.
fn desk() -> (Desk, String) {
    let desk = Desk::new();
    let root = desk.home().join("plugins/mine");
    let write = |name: &str, text: &str| {
        let file = root.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    write(".claude-plugin/plugin.json", r#"{"name": "mine"}"#);
    write("commands/greet.md", "---\nallowed-tools: Bash(touch:*)\n---\nGreet $1 kindly.\n");
    write("skills/brew/SKILL.md", "---\nname: brew\ndescription: Brew tea\n---\nBoil water.\n");
    write("agents/look.md", "---\nname: look\ndescription: Looks\n---\nLook closely.\n");
    write("words.txt", "from the plugin");
    let hook = r#"cat "${CLAUDE_PLUGIN_ROOT}/words.txt" >&2; echo x >> ${CLAUDE_PLUGIN_ROOT}/words.txt; exit 2"#;
    let group = json!([{"matcher": "Read", "hooks": [{"type": "command", "command": hook}]}]);
    write("hooks/hooks.json", &json!({"hooks": {"PreToolUse": group}}).to_string());
    write("server.py", include_str!("../data/mcp_server.py"));
    let kettle = json!({
        "command": "python3", "args": ["${CLAUDE_PLUGIN_ROOT}/server.py"],
        "env": {"WORDS": "${CLAUDE_PLUGIN_ROOT}/words.txt"},
    });
    write(".mcp.json", &json!({"mcpServers": {"kettle": kettle}}).to_string());
    (desk, root.display().to_string())
}

fn ask(
    desk: &Desk,
    prompt: &str,
    flags: &[&str],
    answers: Vec<Answer>,
) -> (crate::support::Run, Server) {
    let server = Server::scripted(answers);
    let all = [&["-p", prompt][..], flags].concat();
    (run(desk.with_server(&server, &all)), server)
}

fn text(server: &Server, request: usize) -> String {
    server.requests()[request].body["messages"].to_string()
}

#[test]
fn a_plugin_counts_once_it_is_trusted_and_until_a_file_changes() {
    let (desk, root) = desk();
    let flags = ["--plugin-dir", &root];
    let (ran, server) = ask(&desk, "Go.", &flags, vec![Answer::text("Done.")]);
    assert_eq!((ran.code, server.requests().len()), (16, 0), "{}", ran.err);
    assert!(ran.err.contains("is not trusted as it is now"), "{}", ran.err);
    assert!(ran.err.contains(&format!("agentd init --plugin-dir {root}")), "{}", ran.err);
    let trusted = run(desk.agentd(&["init", "--plugin-dir", &root]));
    assert_eq!(trusted.code, 0, "{}", trusted.err);
    for named in [
        "the plugin mine",
        "8 files",
        "/mine:greet allows Bash(touch:*)",
        "PreToolUse hook of",
        "words.txt",
        ".mcp.json:1: kettle: python3 /",
    ] {
        assert!(trusted.out.contains(named), "{named}: {}", trusted.out);
    }
    assert!(!desk.project().join(".agentd").exists(), "it is not about the project");
    // Its command has its name before it, and its rules count.
    let touch = call("toolu_1", "bash", r#"{"command":"touch made"}"#);
    let answers = vec![Answer::says([touch]), Answer::text("Done.")];
    let (ran, server) = ask(&desk, "/mine:greet Ann", &flags, answers);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(text(&server, 0).contains("Greet Ann kindly."), "{}", text(&server, 0));
    assert!(desk.project().join("made").exists(), "{}", text(&server, 1));
    // Without the flag there is no such command.
    let (ran, server) = ask(&desk, "/mine:greet Ann", &[], vec![Answer::text("Done.")]);
    assert!(ran.code != 0 && server.requests().is_empty(), "{}", ran.err);
    std::fs::write(format!("{root}/commands/greet.md"), "Other words.\n").unwrap();
    let (ran, server) = ask(&desk, "Go.", &flags, vec![Answer::text("Done.")]);
    assert_eq!((ran.code, server.requests().len()), (16, 0), "{}", ran.err);
}

#[test]
fn a_hook_of_a_plugin_reads_its_folder_and_changes_nothing_there() {
    let (desk, root) = desk();
    let trusted = run(desk.agentd(&["init", "--plugin-dir", &root]));
    assert_eq!(trusted.code, 0, "{}", trusted.err);
    desk.write("a.txt", "one\n");
    let read = || call("toolu_1", "read", r#"{"path":"a.txt"}"#);
    let answers = || vec![Answer::says([read()]), Answer::text("Done.")];
    let (ran, server) = ask(&desk, "Go.", &["--plugin-dir", &root], answers());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told = text(&server, 1);
    assert!(told.contains("from the plugin") && told.contains("did not run"), "{told}");
    assert_eq!(std::fs::read_to_string(format!("{root}/words.txt")).unwrap(), "from the plugin");
    // Its hooks are no one else's.
    let (_, server) = ask(&desk, "Go.", &[], answers());
    assert!(text(&server, 1).contains("one"), "{}", text(&server, 1));
}

#[test]
fn a_server_of_a_plugin_reads_its_folder_and_changes_nothing_there() {
    needs("python3");
    let (desk, root) = desk();
    let trusted = run(desk.agentd(&["init", "--plugin-dir", &root]));
    assert_eq!(trusted.code, 0, "{}", trusted.err);
    let words = format!("{root}/words.txt");
    let calls = || {
        let kettle = |(at, (tool, input)): (usize, (&str, serde_json::Value))| {
            let call =
                call(&format!("toolu_{at}"), &format!("mcp__kettle__{tool}"), &input.to_string());
            Answer::says([call])
        };
        let path = json!({"path": words});
        let calls = [("env", json!({})), ("read", path.clone()), ("write", path)];
        calls.into_iter().enumerate().map(kettle).chain([Answer::text("Done.")]).collect()
    };
    let flags = ["--permission-mode", "auto", "--plugin-dir", &root];
    let (ran, server) = ask(&desk, "Go.", &flags, calls());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told = text(&server, 3);
    for named in ["WORDS", "CLAUDE_PLUGIN_ROOT", &words, "from the plugin", "Error"] {
        assert!(told.contains(named), "{named}: {told}");
    }
    assert_eq!(std::fs::read_to_string(&words).unwrap(), "from the plugin");
    // Without the plugin there is no such server.
    let (_, server) = ask(&desk, "Go.", &flags[..2], calls());
    assert!(text(&server, 1).contains("no tool \\\"mcp__kettle__env"), "{}", text(&server, 1));
    for words in [&["check"][..], &["ls"], &["show", "kettle"]] {
        let with = run(desk.agentd(&[&["mcp"], words, &flags[2..]].concat()));
        assert!(
            with.code == 0 && with.out.contains("kettle"),
            "{words:?}: {}{}",
            with.out,
            with.err
        );
        let without = run(desk.agentd(&[&["mcp"], words].concat()));
        assert!(!without.out.contains("kettle"), "the control: {words:?}: {}", without.out);
    }
    // One of the person with its name counts, and agentd says so.
    let file = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let lines = format!("plugins.dirs = [{root:?}]\n");
    std::fs::write(&file, &lines).unwrap();
    let ran = run(desk.agentd(&["mcp", "check"]));
    assert!(ran.out.contains("kettle: ready after"), "the control: {}{}", ran.out, ran.err);
    std::fs::write(file, lines + "[mcp.kettle]\ncommand = \"false\"\n").unwrap();
    let ran = run(desk.agentd(&["mcp", "check"]));
    assert!(
        ran.out.contains("place: false") && !ran.out.contains("server.py"),
        "{}{}",
        ran.out,
        ran.err
    );
    let (ran, _) = ask(&desk, "Go.", &flags, vec![Answer::text("Done.")]);
    assert!(ran.err.contains("config.toml:2 has a server of this name"), "{}", ran.err);
}

#[test]
fn a_plugin_brings_skills_and_sub_agents() {
    let (desk, root) = desk();
    let trusted = run(desk.agentd(&["init", "--plugin-dir", &root]));
    assert_eq!(trusted.code, 0, "{}", trusted.err);
    let brew = call("toolu_1", "skill_activate", r#"{"name":"mine:brew"}"#);
    let answers = vec![Answer::says([brew]), Answer::text("Done.")];
    let (ran, server) = ask(&desk, "Go.", &["--plugin-dir", &root], answers);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(text(&server, 1).contains("Boil water."), "{}", text(&server, 1));
    let tools = server.requests()[0].body["tools"].to_string();
    assert!(tools.contains("mine:look: Looks"), "{tools}");
}

#[test]
fn a_later_run_has_the_plugins_and_denials_of_the_first_or_does_not_open() {
    let (desk, root) = desk();
    assert_eq!(run(desk.agentd(&["init", "--plugin-dir", &root])).code, 0);
    desk.write("a.txt", "one\n");
    let flags = ["--plugin-dir", &root, "--disallowed-tools", "Bash(touch:*)"];
    let (ran, _) = ask(&desk, "Go.", &flags, vec![Answer::text("Done.")]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let id = std::fs::read_dir(desk.state().join("sessions")).unwrap().flatten().next().unwrap();
    let id = id.file_name().into_string().unwrap();
    let again = ["--resume", &id, "--permission-mode", "auto"];
    let calls = [
        call("toolu_1", "read", r#"{"path":"a.txt"}"#),
        call("toolu_2", "bash", r#"{"command":"touch made"}"#),
        call("toolu_3", "bash", r#"{"command":"mkdir other"}"#),
    ];
    let (ran, server) =
        ask(&desk, "More.", &again, vec![Answer::says(calls), Answer::text("Done.")]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(text(&server, 1).contains("from the plugin"), "the hook ran: {}", text(&server, 1));
    assert!(!desk.project().join("made").exists() && desk.project().join("other").exists());
    let shown = run(desk.agentd(&["show", &id])).out;
    assert_eq!(shown.matches(&format!("plugins.dirs {root} (by a flag)")).count(), 1, "{shown}");
    let refused = |words: &str| {
        let (ran, server) = ask(&desk, "More.", &again, vec![Answer::text("Done.")]);
        assert_eq!((ran.code, server.requests().len()), (16, 0), "{}", ran.err);
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    };
    std::fs::write(format!("{root}/words.txt"), "changed").unwrap();
    refused(&format!("agentd init --plugin-dir {root}"));
    std::fs::rename(&root, format!("{root}-away")).unwrap();
    refused("Put it back, or begin a new session");
}

#[test]
fn a_plugin_that_calls_may_write_is_an_error() {
    let (desk, root) = desk();
    assert_eq!(run(desk.agentd(&["init", "--plugin-dir", &root])).code, 0);
    let refused = |flags: &[&str]| {
        let (ran, server) = ask(&desk, "Go.", flags, vec![Answer::text("Done.")]);
        assert_eq!((ran.code, server.requests().len()), (16, 0), "{}", ran.err);
        assert!(ran.err.contains("Use a copy of the plugin elsewhere"), "{}", ran.err);
    };
    let above = desk.home().join("plugins").display().to_string();
    refused(&["--plugin-dir", &root, "--add-dir", &above]);
    let inside = desk.project().join("mine");
    std::fs::rename(&root, &inside).unwrap();
    let inside = inside.display().to_string();
    assert_eq!(run(desk.agentd(&["init", "--plugin-dir", &inside])).code, 0);
    refused(&["--plugin-dir", &inside]);
}

#[test]
fn texts_of_a_plugin_find_its_folder_and_no_other_file_takes_its_names() {
    let (desk, root) = desk();
    let tell = "---\nallowed-tools: Bash(cat:*)\n---\nIt says !`cat ${CLAUDE_PLUGIN_ROOT}/words.txt` in \
                $CLAUDE_PLUGIN_ROOT.\n";
    std::fs::write(format!("{root}/commands/tell.md"), tell).unwrap();
    let brew =
        "---\nname: brew\ndescription: Brew tea\n---\nBoil water of ${CLAUDE_PLUGIN_ROOT}.\n";
    std::fs::write(format!("{root}/skills/brew/SKILL.md"), brew).unwrap();
    // An untrusted project names its files like the plugin's.
    let skill = "---\nname: mine:greet\ndescription: Greets\n---\nGreet nobody.\n";
    desk.write(".claude/skills/greet/SKILL.md", skill);
    desk.write(".claude/commands/mine/tell.md", "Tell lies.\n");
    let trusted = run(desk.agentd(&["init", "--plugin-dir", &root]));
    assert_eq!(trusted.code, 0, "{}", trusted.err);
    for named in
        ["/mine:tell runs `cat ${CLAUDE_PLUGIN_ROOT}/words.txt`", "/mine:greet allows Bash"]
    {
        assert!(trusted.out.contains(named), "{named}: {}", trusted.out);
    }
    assert!(trusted.out.lines().last().unwrap().starts_with("recorded your trust"));
    let flags = ["--plugin-dir", &root];
    let (ran, server) = ask(&desk, "/mine:tell", &flags, vec![Answer::text("Done.")]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told = text(&server, 0);
    assert!(told.contains("from the plugin") && told.contains(&format!("in {root}.")), "{told}");
    let (_, server) = ask(&desk, "/mine:greet Ann", &flags, vec![Answer::text("Done.")]);
    assert!(text(&server, 0).contains("Greet Ann kindly."), "{}", text(&server, 0));
    let brew = call("toolu_1", "skill_activate", r#"{"name":"mine:brew"}"#);
    let answers = vec![Answer::says([brew]), Answer::text("Done.")];
    let (_, server) = ask(&desk, "Go.", &flags, answers);
    assert!(text(&server, 1).contains(&format!("Boil water of {root}.")), "{}", text(&server, 1));
    // Without the plugin the names are the project's.
    let (_, server) = ask(&desk, "/mine:tell", &[], vec![Answer::text("Done.")]);
    assert!(text(&server, 0).contains("Tell lies."), "{}", text(&server, 0));
}
