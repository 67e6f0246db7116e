//! `agentd mcp`: servers listed, added, removed and imported, as a person does it.
#![allow(clippy::unwrap_used)]

use crate::support::{Desk, Run, run};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

fn file(desk: &Desk) -> PathBuf {
    desk.home().join(".config/agentd/config.toml")
}

fn configured(lines: &str) -> Desk {
    let desk = Desk::new();
    fs::create_dir_all(file(&desk).parent().unwrap()).unwrap();
    fs::write(file(&desk), lines).unwrap();
    desk
}

fn mcp(desk: &Desk, words: &[&str]) -> Run {
    run(desk.agentd(&[&["mcp"], words].concat()))
}

fn listed(desk: &Desk) -> Vec<Value> {
    let ran = mcp(desk, &["ls", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn servers_are_listed_with_their_cages_and_those_that_do_not_run_with_the_reason() {
    let desk = configured(
        "# test is below\n[mcp.test]\ncommand = [\"python3\", \"server.py\"]\n\
         env = { A = \"${MCP_SET}\", B = \"${MCP_UNSET}\", C = \"${MCP_OTHER:-c}\" }\n\
         [mcp.net]\ncommand = \"net\"\nhosts = [\"docs.rs\"]\nwrite = true\n",
    );
    let theirs = json!({"mcpServers": {"far": {"type": "http", "url": "https://x.example"},
        "new": {"command": "x"}, "net": {"command": "other"}}});
    desk.write(".mcp.json", &theirs.to_string());
    let mut command = desk.agentd(&["mcp", "ls"]);
    command.env("MCP_SET", "s3cret-value");
    let ran = run(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(!ran.out.contains("s3cret-value"), "{}", ran.out);
    let line =
        |words: &str| ran.out.lines().find(|line| line.starts_with(words)).unwrap_or_default();
    for words in [
        "python3 server.py",
        "project read-only, no network",
        "MCP_SET MCP_UNSET (not set) MCP_OTHER",
        "config.toml:2",
    ] {
        assert!(line("test ").contains(words), "{words}: {}", ran.out);
    }
    assert!(line("net ").contains("project writable, docs.rs"), "{}", ran.out);
    assert!(
        ran.out.contains("test does not run: the variable MCP_UNSET is not set"),
        "{}",
        ran.out
    );
    assert!(line("far does not run").contains(".mcp.json"), "{}", ran.out);
    assert!(line("new does not run").contains("init --trust"), "{}", ran.out);

    run(desk.agentd(&["init", "--trust"]));
    let servers = listed(&desk);
    let of = |name: &str| servers.iter().filter(|one| one["name"] == name).collect::<Vec<_>>();
    assert_eq!(of("test")[0]["missing"], json!(["MCP_SET", "MCP_UNSET"]));
    assert_eq!((&of("test")[0]["runs"], &of("test")[0]["line"]), (&json!(false), &json!(2)));
    assert_eq!(
        (&of("new")[0]["runs"], &of("new")[0]["project"]),
        (&json!(true), &json!("read-only"))
    );
    assert_eq!(
        (&of("far")[0]["url"], &of("far")[0]["command"], &of("far")[0]["runs"]),
        (&json!("https://x.example"), &Value::Null, &json!(true))
    );
    assert_eq!((&of("net")[0]["runs"], &of("net")[1]["runs"]), (&json!(true), &json!(false)));
    assert!(
        of("net")[1]["why"].as_str().unwrap().contains("config.toml:5 has a server of this name"),
        "{servers:?}"
    );
}

#[test]
fn a_server_is_added_and_removed_in_the_file_of_the_person() {
    let desk = configured("# mine\n[ui]\nview = \"full\" # why\n");
    let add = [
        "add",
        "tracker",
        "--env",
        "TRACKER_TOKEN",
        "-e",
        "MODE=fast",
        "--host",
        "api.tracker.example",
        "--write",
        "--",
        "npx",
        "-y",
        "tracker-mcp",
        "--flag",
    ];
    let ran = mcp(&desk, &add);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("config.toml:5"), "{}", ran.out);
    let text = fs::read_to_string(file(&desk)).unwrap();
    assert_eq!(
        text,
        "# mine\n[ui]\nview = \"full\" # why\n\n[mcp.tracker]\ncommand = [\"npx\", \"-y\", \"tracker-mcp\", \"--flag\"]\n\
         env = { TRACKER_TOKEN = \"${TRACKER_TOKEN}\", MODE = \"fast\" }\nhosts = [\"api.tracker.example\"]\nwrite = true\n"
    );
    assert_eq!(listed(&desk)[0]["missing"], json!(["TRACKER_TOKEN"]));
    for (words, code, said) in [
        (&["add", "tracker", "--", "x"][..], 1, "config.toml:5 has a server tracker already"),
        (&["add", "a", "--env", "API_KEY=s3cret", "--", "x"], 2, "give --env API_KEY"),
        (&["add", "a", "--host", "no host", "--", "x"], 2, "no host"),
        (&["add", "a.b", "--", "x"], 16, "letters, digits"),
        (&["add", "a"], 2, "COMMAND"),
        (&["rm", "other"], 1, "has no server other"),
    ] {
        let ran = mcp(&desk, words);
        assert_eq!(ran.code, code, "{words:?}: {}", ran.err);
        assert!(ran.err.contains(said) && !ran.err.contains("s3cret"), "{words:?}: {}", ran.err);
        assert_eq!(fs::read_to_string(file(&desk)).unwrap(), text, "{words:?}");
    }
    let ran = mcp(&desk, &["rm", "tracker"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("config.toml:5"), "{}", ran.out);
    assert_eq!(fs::read_to_string(file(&desk)).unwrap(), "# mine\n[ui]\nview = \"full\" # why\n");
}

#[test]
fn servers_of_other_agents_are_shown_and_added_without_their_secrets() {
    let desk = configured("");
    let project = desk.project().canonicalize().unwrap();
    let claude = json!({
        "mcpServers": {"hub": {"command": "npx", "args": ["hub"], "env": {"HUB_TOKEN": "s3cret"}},
            "far": {"type": "http", "url": "https://x.example", "headers": {"Authorization": "Bearer s3cret"}},
            "b.c": {"command": "x"}},
        "projects": {project.to_str().unwrap(): {"mcpServers": {"here": {"command": "here"}}}},
    });
    fs::write(desk.home().join(".claude.json"), claude.to_string()).unwrap();
    fs::create_dir(desk.home().join(".codex")).unwrap();
    let codex = "[mcp_servers.docs]\ncommand = \"docs\"\nstartup_timeout_sec = 20\n";
    fs::write(desk.home().join(".codex/config.toml"), codex).unwrap();
    let ran = mcp(&desk, &["import"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for words in [
        "[mcp.here]",
        "[mcp.hub]",
        "[mcp.docs]",
        "HUB_TOKEN = \"${HUB_TOKEN}\"",
        "the value of HUB_TOKEN is not written",
        "b.c of",
        "[mcp.far]",
        "url = \"https://x.example\"",
        "headers = { Authorization = \"${FAR_AUTHORIZATION}\" }",
    ] {
        assert!(ran.out.contains(words), "{words}: {}", ran.out);
    }
    assert!(!ran.out.contains("s3cret") && ran.err.contains("--yes adds the 4 servers"), "{ran:?}");
    assert_eq!(fs::read_to_string(file(&desk)).unwrap(), "", "nothing is written");
    let ran = mcp(&desk, &["import", "--from", "codex", "--yes"]);
    assert!(ran.out.contains("added docs to") && !ran.out.contains("hub"), "{ran:?}");
    let ran = mcp(&desk, &["import", "--yes", "hub", "docs"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("added hub to") && ran.out.contains("docs of"), "{}", ran.out);
    let text = fs::read_to_string(file(&desk)).unwrap();
    assert!(
        text.contains("startup_timeout_sec = 20")
            && !text.contains("s3cret")
            && !text.contains("here"),
        "{text}"
    );
    let names: Vec<Value> = listed(&desk).into_iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["docs", "hub"]);
    let ran = mcp(&desk, &["import", "nobody"]);
    assert!(ran.code == 2 && ran.err.contains("there are: here, b.c, far, hub, docs"), "{ran:?}");
}

#[test]
fn a_server_with_an_address_is_added_without_a_secret() {
    let desk = configured("");
    let url = "https://x.example/mcp";
    let ran = mcp(&desk, &["add", "far", "--url", url, "--header", "X-Key: ${KEY}"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let text = fs::read_to_string(file(&desk)).unwrap();
    assert_eq!(
        text,
        "[mcp.far]\nurl = \"https://x.example/mcp\"\nheaders = { X-Key = \"${KEY}\" }\n"
    );
    let shown = &listed(&desk)[0];
    assert_eq!((&shown["url"], &shown["missing"]), (&json!(url), &json!(["KEY"])));
    // Known by its shape alone.
    let shaped = format!("X-Team: ghp_{}", "aB3dE5fG7h".repeat(4).split_at(36).0);
    for (words, told) in [
        (&["--url", url, "--header", "Authorization: Bearer s3cret"][..], "may be a secret"),
        (&["--url", "https://x.example/mcp?token=s3cret"], "has a secret"),
        (&["--url", url, "--header", &shaped], "has a secret"),
        (&["--", "program", "--token", "s3cret"], "has a secret"),
        (&["--url", url, "--header", "no header"], "NAME: TEXT"),
        (&["--url", url, "--", "program"], "cannot be used with"),
        (&["--url", "ftp://x.example"], "it begins with ftp"),
        (&["--bearer-token-env-var", "T", "--", "x"], "cannot be used with"),
        (&[], "required"),
    ] {
        let ran = mcp(&desk, &[&["add", "other"], words].concat());
        assert!(ran.code != 0 && ran.err.contains(told), "{words:?}: {}", ran.err);
        assert!(!ran.err.contains("s3cret"), "{}", ran.err);
        assert_eq!(fs::read_to_string(file(&desk)).unwrap(), text, "{words:?}");
    }
}
