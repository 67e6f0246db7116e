//! A corpus of projects with files for agents: each loads in a session or is refused as
//! `agentd doctor --project` says, which names every part that has no effect. The kept report is
//! `tests/data/project_files.txt`; `UPDATE_SCREENS=1` writes it anew.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server};
use crate::support::{Desk, Run, run};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// What lies at a path.
#[derive(Debug, Clone, Copy)]
enum Entry {
    Text(&'static str),
    Bytes(&'static [u8]),
    /// This text, so often.
    Many(&'static str, usize),
    Link(&'static str),
    Directory,
}

use Entry::{Bytes, Directory, Link, Many, Text};

const SETTINGS: &str = ".claude/settings.json";
const LOCAL: &str = ".claude/settings.local.json";

/// Name and files of each project.
const PROJECTS: &[(&str, &[(&str, Entry)])] = &[
    ("nothing", &[]),
    ("an empty .claude", &[(".claude", Directory)]),
    (
        "every documented event",
        &[(
            SETTINGS,
            Text(
                r#"{"hooks": {
"SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "./start.sh"}]}],
"SessionEnd": [{"hooks": [{"type": "command", "command": "./end.sh"}]}],
"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "./prompt.sh"}]}],
"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./pre.sh"}]}],
"PermissionRequest": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./ask.sh"}]}],
"PostToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "./post.sh"}]}],
"PostToolUseFailure": [{"hooks": [{"type": "command", "command": "./failed.sh"}]}],
"Notification": [{"hooks": [{"type": "command", "command": "./notify.sh"}]}],
"SubagentStop": [{"hooks": [{"type": "command", "command": "./sub.sh"}]}],
"Stop": [{"hooks": [{"type": "command", "command": "./stop.sh"}]}],
"PreCompact": [{"matcher": "auto", "hooks": [{"type": "command", "command": "./compact.sh"}]}],
"PostCompact": [{"hooks": [{"type": "command", "command": "x"}]}],
"SubagentStart": [{"hooks": [{"type": "command", "command": "x"}]}],
"StopFailure": [{"hooks": [{"type": "command", "command": "x"}]}],
"Setup": [{"hooks": [{"type": "command", "command": "x"}]}],
"InstructionsLoaded": [{"hooks": [{"type": "command", "command": "x"}]}],
"PermissionDenied": [{"hooks": [{"type": "command", "command": "x"}]}],
"TaskCreated": [{"hooks": [{"type": "command", "command": "x"}]}],
"TaskCompleted": [{"hooks": [{"type": "command", "command": "x"}]}],
"TeammateIdle": [{"hooks": [{"type": "command", "command": "x"}]}],
"ConfigChange": [{"hooks": [{"type": "command", "command": "x"}]}],
"CwdChanged": [{"hooks": [{"type": "command", "command": "x"}]}],
"FileChanged": [{"hooks": [{"type": "command", "command": "x"}]}],
"WorktreeCreate": [{"hooks": [{"type": "command", "command": "x"}]}],
"WorktreeRemove": [{"hooks": [{"type": "command", "command": "x"}]}],
"Elicitation": [{"hooks": [{"type": "command", "command": "x"}]}],
"ElicitationResult": [{"hooks": [{"type": "command", "command": "x"}]}]
}}"#,
            ),
        )],
    ),
    (
        "every type of hook",
        &[(
            SETTINGS,
            Text(
                r#"{"hooks": {"Stop": [{"hooks": [
{"type": "command", "command": "./a.sh", "timeout": 5, "statusMessage": "Checking"},
{"type": "http", "url": "http://localhost:8080/hook", "headers": {"X": "y"}},
{"type": "prompt", "prompt": "Is it done? $ARGUMENTS"},
{"type": "agent", "prompt": "Look."},
{"type": "mcp_tool", "server": "s", "tool": "t"},
{"type": "command", "command": "./b.sh", "async": true, "once": true},
{"type": "command", "command": "./c.sh", "timeout": 99999}
]}]}}"#,
            ),
        )],
    ),
    (
        "matchers",
        &[(
            SETTINGS,
            Text(
                r#"{"hooks": {"PreToolUse": [
{"matcher": "*", "hooks": [{"type": "command", "command": "all"}]},
{"matcher": "", "hooks": [{"type": "command", "command": "empty"}]},
{"matcher": "mcp__github__.*", "hooks": [{"type": "command", "command": "mcp"}]},
{"matcher": "Notebook.*|Edit", "hooks": [{"type": "command", "command": "$CLAUDE_PROJECT_DIR/x"}]}
]}}"#,
            ),
        )],
    ),
    (
        "a matcher that is no expression",
        &[(
            SETTINGS,
            Text(
                "{\"hooks\": {\n\"PreToolUse\": [{\"matcher\": \"(\", \"hooks\": [{\"type\": \
                 \"command\", \"command\": \"x\"}]}]}}",
            ),
        )],
    ),
    ("hooks that are a list", &[(SETTINGS, Text("{\"hooks\": []}"))]),
    ("an event that is no list", &[(SETTINGS, Text("{\"hooks\": {\n\"Stop\": {}}}"))]),
    ("a hook without a command", &[(SETTINGS, Text(r#"{"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}}"#))]),
    (
        "hooks that one file switches off",
        &[
            (SETTINGS, Text(r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}"#)),
            (LOCAL, Text(r#"{"disableAllHooks": true}"#)),
        ],
    ),
    (
        "permissions in every spelling",
        &[(
            SETTINGS,
            Text(
                r#"{"permissions": {
"allow": ["Bash(npm run test:*)", "Bash(git diff *)", "Read(~/.zshrc)", "Edit(src/**)", "WebFetch(domain:docs.rs)", "Glob", "mcp__github__list_issues"],
"ask": ["Bash(git push:*)"],
"deny": ["Read(./.env)", "Read(./secrets/**)", "Bash(curl:*)", "WebSearch"]
}}"#,
            ),
        )],
    ),
    (
        "permissions with their modes",
        &[(
            SETTINGS,
            Text(
                r#"{"permissions": {"allow": [], "defaultMode": "acceptEdits", "additionalDirectories": ["../docs"], "disableBypassPermissionsMode": "disable"}}"#,
            ),
        )],
    ),
    ("permissions of wrong types", &[(SETTINGS, Text(r#"{"permissions": {"allow": "Bash", "deny": [7]}}"#))]),
    ("permissions that are a list", &[(SETTINGS, Text(r#"{"permissions": ["Bash"]}"#))]),
    ("local permissions alone", &[(LOCAL, Text(r#"{"permissions": {"allow": ["Bash(ls:*)"]}}"#))]),
    (
        "other settings",
        &[(
            SETTINGS,
            Text(
                r#"{"$schema": "https://json.schemastore.org/claude-code-settings.json",
"env": {"A": "b"}, "model": "opus", "statusLine": {"type": "command", "command": "x"}, "outputStyle": "Explanatory",
"apiKeyHelper": "./key.sh", "cleanupPeriodDays": 20, "includeCoAuthoredBy": false, "enabledPlugins": {"a@b": true},
"enableAllProjectMcpServers": true, "sandbox": {"enabled": true}, "language": "de"}"#,
            ),
        )],
    ),
    ("broken JSON", &[(SETTINGS, Text("{\n  \"hooks\": {\n"))]),
    ("JSON with comments", &[(SETTINGS, Text("{\n  // mine\n  \"hooks\": {}\n}"))]),
    ("JSON with a comma too many", &[(LOCAL, Text("{\n  \"model\": \"x\",\n}"))]),
    ("a byte order mark", &[(SETTINGS, Bytes(b"\xef\xbb\xbf{\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"x\"}]}]}}"))]),
    ("lines that end with CR LF", &[(SETTINGS, Bytes(b"{\r\n\"hooks\": {\r\n\"Stop\": [{\"hooks\": [{\"command\": \"x\"}]}]\r\n}\r\n}\r\n"))]),
    ("settings without content", &[(SETTINGS, Text("")), (LOCAL, Text(" \n"))]),
    ("settings without settings", &[(SETTINGS, Text("{}")), (LOCAL, Text("[]"))]),
    ("settings in UTF-16", &[(SETTINGS, Bytes(b"\xff\xfe{\x00}\x00"))]),
    ("settings of two megabytes", &[(SETTINGS, Many(" ", 2 << 20))]),
    ("settings that are a directory", &[(SETTINGS, Directory)]),
    ("settings behind a link", &[(SETTINGS, Link("../team.json")), ("team.json", Text(r#"{"hooks": {"Stop": [{"hooks": [{"command": "x"}]}]}}"#))]),
    ("settings behind a link to nothing", &[(SETTINGS, Link("gone.json"))]),
    ("settings behind a circle of links", &[(SETTINGS, Link("settings.json"))]),
    (
        "slash commands",
        &[
            (".claude/commands/review.md", Text("---\ndescription: Review a file\nargument-hint: FILE\nallowed-tools: Bash(git diff:*), Read\n---\nReview $1.\n")),
            (".claude/commands/plain.md", Text("Say hello to $ARGUMENTS.\n")),
            (".claude/commands/frontend/ui/component.md", Text("---\ndescription: 'Make a component'\n---\nMake it.\n")),
            (".claude/commands/notes.txt", Text("not a command")),
            (".agents/commands/ship.md", Text("Ship it.\n")),
            (".agentd/commands/own.md", Text("Own.\n")),
        ],
    ),
    (
        "slash commands with parts that have no effect",
        &[(
            ".claude/commands/x.md",
            Text("---\ndescription: X\nmodel: haiku\nallowed-tools:\n  - Bash(ls:*)\n  - Frobnicate\n  - mcp__a__b\n---\nX.\n"),
        )],
    ),
    (
        "slash commands that cannot be used",
        &[
            (".claude/commands/open.md", Text("---\ndescription: never closed\n")),
            (".claude/commands/odd.md", Text("---\nthis is no key\n---\nX.\n")),
            (".claude/commands/empty.md", Text("")),
            (".claude/commands/latin.md", Bytes(b"Gr\xfc\xdfe\n")),
            (".claude/commands/out.md", Link("/etc/hostname")),
            (".claude/commands/gone.md", Link("nowhere.md")),
            (".claude/commands/huge.md", Many("0123456789abcdef", 20_000)),
            (".claude/commands/a/b/c/d/e/deep.md", Text("Deep.\n")),
            (".claude/commands/directory.md/x", Text("x")),
        ],
    ),
    (
        "slash commands with a mark and CR LF",
        &[(".claude/commands/windows.md", Bytes(b"\xef\xbb\xbf---\r\ndescription: From Windows\r\n---\r\nHello.\r\n"))],
    ),
    (
        "one name in three places",
        &[
            (".claude/commands/deploy.md", Text("Claude's.\n")),
            (".agents/commands/deploy.md", Text("Agents'.\n")),
            (".claude/skills/deploy/SKILL.md", Text("---\nname: deploy\ndescription: The skill.\n---\nDeploy.\n")),
        ],
    ),
    (
        "skills",
        &[
            (".claude/skills/pdf/SKILL.md", Text("---\nname: pdf\ndescription: >\n  Reads PDF files\n  of any size.\nallowed-tools: Read, Bash(pdftotext:*)\n---\nUse pdftotext.\n")),
            (".claude/skills/pdf/scripts/run.py", Text("print(1)\n")),
            (".agents/skills/notes/SKILL.md", Text("---\ndescription: Named by its folder.\n---\nX.\n")),
        ],
    ),
    (
        "skills that cannot be used",
        &[
            (".claude/skills/mute/SKILL.md", Text("---\nname: mute\n---\nX.\n")),
            (".claude/skills/bare/SKILL.md", Text("No front matter.\n")),
            (".claude/skills/named/SKILL.md", Text("---\nname: a b/c\ndescription: X\n---\nX.\n")),
            (".claude/skills/empty/README.md", Text("no SKILL.md here")),
            (".claude/skills/flat.md", Text("a file, not a directory")),
            (".claude/skills/link/SKILL.md", Link("/etc/passwd")),
        ],
    ),
    (
        "agents with every documented key",
        &[
            (
                ".claude/agents/reviewer.md",
                Text("---\nname: reviewer\ndescription: Reviews code. Use proactively.\ntools: Read, Grep, Glob, Bash\ndisallowedTools: Write\nmodel: inherit\npermissionMode: plan\nmaxTurns: 12\nskills: pdf\nmcpServers: github\nhooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: ./x.sh\nmemory: project\nbackground: true\neffort: high\nisolation: worktree\ncolor: blue\ninitialPrompt: Begin.\n---\nYou review code.\n"),
            ),
            (".claude/agents/quiet.md", Text("---\nname: quiet\ndescription: Reads.\ntools: Read\nskills: pdf\ncolor: blue\n---\nRead.\n")),
            (".claude/agents/pattern.md", Text("---\ndescription: Lists.\ntools: Bash(ls:*)\n---\nList.\n")),
            (".claude/agents/mute.md", Text("---\nname: mute\n---\nX.\n")),
            (".agents/agents/quiet.md", Text("---\nname: quiet\ndescription: Another.\n---\nX.\n")),
            (".claude/agents/plain.md", Text("No front matter.\n")),
            (".claude/agents/empty.md", Text("")),
        ],
    ),
    (
        "a plugin",
        &[
            (".claude-plugin/plugin.json", Text(r#"{"name": "formatter", "version": "1.2.0", "description": "Formats.", "author": {"name": "A"}, "hooks": "./hooks/hooks.json"}"#)),
            (".claude-plugin/marketplace.json", Text(r#"{"name": "m", "plugins": []}"#)),
            ("hooks/hooks.json", Text("{}")),
            ("commands/x.md", Text("X.\n")),
        ],
    ),
    ("a broken plugin", &[(".claude-plugin/plugin.json", Text("{"))]),
    ("MCP servers", &[(".mcp.json", Text(r#"{"mcpServers": {"github": {"type": "http", "url": "https://x"}, "files": {"command": "npx", "args": ["-y", "x"], "env": {}}}}"#))]),
    ("MCP servers in broken JSON", &[(".mcp.json", Text("{\"mcpServers\": "))]),
    (
        "instructions with imports",
        &[
            (
                "CLAUDE.md",
                Text("# Rules\n\nSee @README.md and @docs/style.md.\n- personal: @~/.claude/mine.md\n\nAsk @alice, or mail a@example.org. The package is `@types/node`.\n\n```\n@inside/a/fence.md\n```\n\nTry @package.json.\n"),
            ),
            ("README.md", Text("# A project\n")),
            ("docs/style.md", Text("Use tabs. See @more.txt.\n")),
            ("docs/more.txt", Link("/etc/passwd")),
            ("package.json", Text("{}\n")),
        ],
    ),
    (
        "instructions in several files",
        &[
            ("AGENTS.md", Text("Use tabs.\n")),
            ("CLAUDE.md", Text("@AGENTS.md\n")),
            ("CLAUDE.local.md", Text("Mine.\n")),
            (".claude/CLAUDE.md", Text("More.\n")),
        ],
    ),
    ("instructions that are empty", &[("AGENTS.md", Text("\n")), ("CLAUDE.md", Text("Here.\n"))]),
    ("instructions behind a link", &[("AGENTS.md", Link("CLAUDE.md")), ("CLAUDE.md", Text("Here.\n"))]),
    ("instructions behind a link to a secret", &[("CLAUDE.md", Link("/etc/passwd"))]),
    ("instructions in Latin-1", &[("CLAUDE.md", Bytes(b"F\xfcr alle\n"))]),
    ("instructions of a megabyte", &[("CLAUDE.md", Many("Use tabs.\n", 100_000))]),
    (
        "the rest of .claude",
        &[
            (".claude/hooks/check.sh", Text("exit 0\n")),
            (".claude/output-styles/terse.md", Text("---\nname: terse\n---\nBe terse.\n")),
            (".claude/rules/api.md", Text("---\npaths: src/api/**\n---\nValidate.\n")),
            (".claude/plugins/x", Directory),
            (".claude/worktrees/a", Directory),
            (".claude/statusline.sh", Text("echo\n")),
            (".claude/a\u{1b}[31mred", Text("x")),
        ],
    ),
    (
        "agentd's own files",
        &[
            (".agentd/config.toml", Text("[permissions]\nallow = [\"bash:cargo test *\"]\n")),
            (".agentd/config.local.toml", Text("[budget]\nrounds = 9\n")),
        ],
    ),
    ("an own file with a slip", &[(".agentd/config.toml", Text("[permissions]\nalow = []\n"))]),
    (
        "a usual project",
        &[
            ("AGENTS.md", Text("Run `make test`.\n")),
            (SETTINGS, Text("{\n  \"permissions\": {\"allow\": [\"Bash(make:*)\"]},\n  \"hooks\": {\"PostToolUse\": [{\"matcher\": \"Edit|Write\", \"hooks\": [{\"type\": \"command\", \"command\": \"true\"}]}]}\n}\n")),
            (".claude/commands/test.md", Text("---\ndescription: Run the tests\n---\nRun the tests.\n")),
            (".claude/skills/release/SKILL.md", Text("---\nname: release\ndescription: Makes a release.\n---\nTag it.\n")),
            (".claude/agents/helper.md", Text("---\nname: helper\ndescription: Helps.\n---\nHelp.\n")),
            (".mcp.json", Text("{\"mcpServers\": {}}")),
        ],
    ),
];

fn make(project: &Path, files: &[(&str, Entry)]) {
    for (name, entry) in files {
        let path = project.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match entry {
            Text(text) => fs::write(path, text).unwrap(),
            Bytes(bytes) => fs::write(path, bytes).unwrap(),
            Many(text, count) => fs::write(path, text.repeat(*count)).unwrap(),
            Link(to) => symlink(to, path).unwrap(),
            Directory => fs::create_dir_all(path).unwrap(),
        }
    }
}

fn report(desk: &Desk) -> Run {
    run(desk.agentd(&["doctor", "--project"]))
}

#[test]
fn each_project_loads_or_says_why_not_and_every_part_is_named() {
    assert!(PROJECTS.len() >= 30);
    let mut all = String::new();
    for (name, files) in PROJECTS {
        let desk = Desk::new();
        make(&desk.project(), files);
        let found = report(&desk);
        let is_wrong = found.out.lines().any(|line| line.starts_with("WRONG"));
        assert_eq!(found.code, if is_wrong { 16 } else { 0 }, "{name}: {found:?}");
        assert_eq!(found.err, "", "{name}");
        let inside = format!("{}/", desk.project().display());
        assert!(!found.out.contains(&inside) && !found.out.contains('\u{1b}'), "{name}: {found:?}");
        // The ends of long lines list tools, of which there are more from time to time.
        let cut = |line: &str| line.chars().take(150).collect::<String>() + "\n";
        all.push_str(&format!("== {name}\n{}", found.out.lines().map(cut).collect::<String>()));
        // A session agrees with the report. Its hooks may fail, since their programs are missing.
        let server = Server::scripted([Answer::text("Done.")]);
        let ran = run(desk.with_server(&server, &["-p", "x", "--trust-project"]));
        assert_eq!(ran.code == 16, is_wrong, "{name}: {ran:?}\n{}", found.out);
    }
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/project_files.txt");
    if std::env::var_os("UPDATE_SCREENS").is_some() {
        fs::write(&kept, &all).unwrap();
    }
    let wanted = fs::read_to_string(&kept).unwrap_or_default();
    assert_eq!(all, wanted, "{} differs; UPDATE_SCREENS=1 writes it anew", kept.display());
}

#[test]
fn a_report_follows_trust_and_comes_as_json_for_another_directory() {
    let desk = Desk::new();
    let hook = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}"#;
    desk.write(SETTINGS, hook);
    assert!(report(&desk).out.starts_with("untrusted .claude/settings.json:1"), "not trusted yet");
    assert_eq!(run(desk.agentd(&["init"])).code, 0);
    let trusted = report(&desk).out;
    assert!(trusted.contains("used      .claude/settings.json:1"), "{trusted}");
    let project = desk.project().display().to_string();
    let json = run(desk.agentd(&["doctor", "--json", "--project", &project])).json();
    assert_eq!((&json["ok"], &json["project"]), (&true.into(), &project.into()));
    assert_eq!(json["parts"][0]["state"], "used", "{json}");
    desk.write(SETTINGS, "{");
    let json = run(desk.agentd(&["doctor", "--json", "--project"]));
    assert_eq!((json.code, &json.json()["ok"]), (16, &false.into()));
    // A name of a project is printed without the characters that a terminal obeys.
    desk.write(".claude/odd\u{9b}31m\u{7f}name", "x");
    let json = run(desk.agentd(&["doctor", "--json", "--project"])).out;
    assert!(json.contains("31m") && json.contains("name"), "{json}");
    assert!(!json.trim_end().contains(char::is_control), "{json:?}");
    let gone = run(desk.agentd(&["doctor", "--project", "gone"]));
    assert_eq!(gone.code, 2, "{gone:?}");
    assert!(gone.err.contains("does not exist"), "{gone:?}");
    let both = run(desk.agentd(&["doctor", "--project", "--attempts"]));
    assert_eq!(both.code, 2, "{both:?}");
}

#[test]
fn a_file_that_would_never_end_is_named_at_once() {
    use nix::sys::stat::Mode;
    for name in [".mcp.json", SETTINGS, LOCAL, ".agentd/config.toml"] {
        for kind in ["fifo", "zero", "sparse"] {
            let desk = Desk::new();
            let file = desk.project().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            match kind {
                "fifo" => nix::unistd::mkfifo(&file, Mode::S_IRWXU).unwrap(),
                "zero" => symlink("/dev/zero", &file).unwrap(),
                _ => fs::File::create(&file).unwrap().set_len(1 << 30).unwrap(),
            }
            for arguments in
                [&["doctor", "--project"][..], &["config", "check"], &["init", "--trust"]]
            {
                let ran = run(desk.agentd(arguments));
                let said = format!("{}{}", ran.out, ran.err);
                let why = if kind == "sparse" { "larger than" } else { "not a regular file" };
                assert!(said.contains(name), "{name} {kind} {arguments:?}: {said}");
                assert!(said.contains(why), "{name} {kind} {arguments:?}: {said}");
            }
            // The control.
            fs::remove_file(&file).unwrap();
            assert_eq!(run(desk.agentd(&["doctor", "--project"])).code, 0, "{name}");
        }
    }
}
