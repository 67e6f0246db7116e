//! State written by an older build: this build lists it, shows it, verifies it and continues it.
//!
//! `tests/data/older_state/state.tar.gz` was written by the build of 24 November 2026 (commit 4da245f):
//! `AGENTD_OLDER=DIR cargo test --test daemon write_the_state -- --ignored`, DIR with that build's executables.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call, text};
use crate::support::{internet, is_root, needs};
use serde_json::{Value, json};
use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The project's path is in the journal, so that the state can only be continued at this place.
const ROOM: &str = "/srv/older";
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/older_state/state.tar.gz");

/// An empty directory at `ROOM`, in the mount namespace of this process alone. A checkout or a build
/// in /srv stays where it is.
fn room() {
    needs("mount");
    needs("tar");
    let mount = |arguments: &[&str]| {
        let ran = Command::new("mount").args(arguments).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    let program = this_build();
    let needed = [Path::new(env!("CARGO_MANIFEST_DIR")), program.parent().unwrap()];
    let needed = needed.into_iter().filter(|path| path.starts_with("/srv"));
    let needed: Vec<_> = needed.map(|path| (path, fs::File::open(path).unwrap())).collect();
    mount(&["-t", "tmpfs", "-o", "mode=755", "none", "/srv"]);
    for (path, held) in &needed {
        fs::create_dir_all(path).unwrap();
        let held = format!("/proc/{}/fd/{}", std::process::id(), held.as_raw_fd());
        // By its name alone it would be the empty directory above.
        mount(&["--no-canonicalize", "--bind", &held, path.to_str().unwrap()]);
    }
    for directory in ["home", "state", "run", "project"] {
        fs::create_dir_all(Path::new(ROOM).join(directory)).unwrap();
    }
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(Path::new(ROOM).join("run"), private).unwrap();
}

fn agentd(
    program: &Path,
    server: Option<&Server>,
    arguments: &[&str],
) -> (Option<i32>, String, String) {
    let room = Path::new(ROOM);
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(room.join("project"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", room.join("home"))
        .env("XDG_STATE_HOME", room.join("state"))
        .env("XDG_RUNTIME_DIR", room.join("run"))
        .stdin(std::process::Stdio::null());
    if let Some(server) = server {
        command.env("ANTHROPIC_BASE_URL", server.url());
        command.env("ANTHROPIC_API_KEY", crate::support::KEY);
    }
    let ran = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
}

fn this_build() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_agentd"))
}

/// A turn of calls, one a round.
fn turn(program: &Path, flags: &[&str], prompt: &str, calls: &[(&str, Value)]) -> Vec<Value> {
    let answers = calls.iter().zip(1..).map(|((tool, input), number)| {
        Answer::says([
            text("I go step by step."),
            call(&format!("toolu_{number}"), tool, &input.to_string()),
        ])
    });
    let server = Server::scripted(answers.chain([Answer::text("Done.")]));
    let all = [&["-p", prompt, "--permission-mode", "auto"], flags].concat();
    let (code, out, err) = agentd(program, Some(&server), &all);
    assert_eq!((code, out.as_str()), (Some(0), "Done.\n"), "{err}");
    server.requests().into_iter().map(|request| request.body).collect()
}

#[test]
#[ignore = "writes the fixture by an older build; see the file's head"]
fn write_the_state() {
    assert!(is_root(), "takes root");
    internet::within("write_the_state", || {
        let older = std::env::var_os("AGENTD_OLDER").expect("AGENTD_OLDER: that build's directory");
        let older = PathBuf::from(older).join("agentd");
        room();
        let calls = [
            ("write", json!({"path": "a", "content": "first\n"})),
            ("edit", json!({"path": "a", "old_string": "first", "new_string": "second"})),
            ("read", json!({"path": "a"})),
            ("bash", json!({"command": "echo by a command > b; cat b"})),
            ("bash", json!({"command": "sleep 60", "timeout_ms": 1000})),
            ("bash", json!({"command": "curl -sS -m 2 http://192.0.2.1/"})),
            ("read", json!({"path": "/etc/shadow"})),
            ("memory_add", json!({"text": "The project keeps its notes in a."})),
            ("checklist_create", json!({"group": "g", "title": "Steps", "items": ["one", "two"]})),
            ("glob", json!({"pattern": "*"})),
            ("glob", json!({"pattern": "*"})),
        ];
        turn(&older, &[], "Make a.", &calls);
        let denied = [("bash", json!({"command": "echo denied"})), ("undo_list", json!({}))];
        let rules = Path::new(ROOM).join("home/.config/agentd");
        fs::create_dir_all(&rules).unwrap();
        let rule = "[permissions]\ndeny = [\"bash:echo denied\"]\n";
        fs::write(rules.join("config.toml"), rule).unwrap();
        turn(&older, &["-c"], "Go on.", &denied);
        let (code, out, err) = agentd(&older, None, &["audit", "verify"]);
        assert_eq!(code, Some(0), "{out}{err}");
        let ran = Command::new("tar")
            .args(["-C", ROOM, "-czf", FIXTURE, "--owner=0", "--group=0", "state", "project"])
            .status();
        assert!(ran.unwrap().success());
    });
}

#[test]
fn state_of_an_older_build_is_listed_shown_verified_and_continued() {
    internet::within("state_of_an_older_build_is_listed_shown_verified_and_continued", || {
        room();
        let ran =
            Command::new("tar").args(["-C", ROOM, "--no-same-owner", "-xzf", FIXTURE]).status();
        assert!(ran.unwrap().success());
        let agentd = |arguments: &[&str]| {
            let (code, out, err) = agentd(&this_build(), None, arguments);
            assert_eq!(code, Some(0), "{arguments:?}: {out}{err}");
            out
        };
        let listed = agentd(&["ls"]);
        let id = listed.lines().nth(1).and_then(|row| row.split_whitespace().next());
        let id = id.unwrap_or_else(|| panic!("one session: {listed}")).to_owned();
        let shown = agentd(&["show", &id, "--calls"]);
        for tool in ["write", "edit", "read", "bash", "memory_add", "checklist_create", "glob"] {
            assert!(shown.contains(tool), "{tool}: {shown}");
        }
        agentd(&["audit", "verify"]);
        let records = agentd(&["audit", "export"]);
        let before = records.lines().count();
        assert!(before >= 26, "13 calls with two records at least each: {before}");
        assert!(records.contains("192.0.2.1"), "the refused connection: {records}");
        let calls = [
            ("undo_restore", json!({"id": 2})),
            ("memory_search", json!({"query": "notes"})),
            ("read", json!({"path": "a"})),
        ];
        let requests = turn(&this_build(), &["--resume", &id], "Back.", &calls);
        let first = requests[0].to_string();
        for part in ["Make a.", "Go on.", "by a command", "denied", "I go step by step."] {
            assert!(first.contains(part), "the conversation is replayed with {part}: {first}");
        }
        let last = requests.last().unwrap().to_string();
        assert!(last.contains("keeps its notes in a"), "memory of the older build: {last}");
        let file = fs::read_to_string(Path::new(ROOM).join("project/a")).unwrap();
        assert_eq!(file, "first\n", "an edit of the older build is undone");
        agentd(&["audit", "verify"]);
        assert!(agentd(&["audit", "export"]).lines().count() > before, "its log is continued");
    });
}
