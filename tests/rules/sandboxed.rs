//! The mode `sandboxed` in real sessions: what passes without a question, what is asked about and why, and that what
//! passes changes nothing that undo leaves out.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Say, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, needs, run};
use protocol::client::{ClientEvent, FromClient, SessionRequest, SettingChange, ToClient};
use protocol::confinement::Network;
use protocol::ids::SessionId;
use protocol::judgement::{Ask, PermissionMode, PersonAnswer as Said, Question};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A desk whose project is a repository with some files in it.
fn repository() -> Desk {
    needs("git");
    let desk = Desk::new();
    for dir in ["docs", "src", "tests"] {
        fs::create_dir(desk.project().join(dir)).unwrap();
    }
    desk.write("docs/a.md", "about\n");
    desk.write("src/money.py", "CENTS = 10\n");
    desk.write(
        "tests/run.py",
        "import sys\nsys.path.insert(0, 'src')\nimport money\nprint(money.CENTS)\n",
    );
    git(&desk, &desk.project(), &["init", "-q", "-b", "first"]);
    git(&desk, &desk.project(), &["add", "-A"]);
    git(&desk, &desk.project(), &["commit", "-q", "-m", "first"]);
    desk
}

fn git(desk: &Desk, dir: &Path, arguments: &[&str]) {
    let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
    let mut command = Command::new("git");
    command.args(who).args(arguments).current_dir(dir).env("HOME", desk.home());
    let out = command.output().unwrap();
    assert!(out.status.success(), "this test drives git: {out:?}");
}

/// A directory beside the project, with nothing in it.
fn beside(desk: &Desk) -> PathBuf {
    let dir = desk.outside().join("beside");
    fs::create_dir(&dir).unwrap();
    dir
}

fn tool(at: usize, tool: &str, input: &Value) -> Say {
    call(&format!("toolu_{at}"), tool, &input.to_string())
}

fn bash(at: usize, command: &str) -> Say {
    tool(at, "bash", &json!({ "command": command }))
}

fn opening(desk: &Desk, server: &Server, mode: PermissionMode) -> SessionRequest {
    SessionRequest { mode: Some(mode), ..desk.opening(server) }
}

/// Runs a turn, and says yes to each of its questions.
#[track_caller]
fn turn(wire: &mut Wire, session: &SessionId) -> Vec<Question> {
    wire.prompt(session, "go");
    let mut asked = Vec::new();
    loop {
        let question = wire.event("a question or the turn's end", |event| match event {
            ClientEvent::Asked { question } => Some(Some(question.clone())),
            ClientEvent::TurnEnded { .. } => Some(None),
            _ => None,
        });
        let Some(question) = question else { return asked };
        let (call, digest) = (question.call.clone(), question.digest.clone());
        wire.say(FromClient::Answer { call, digest, answer: Said::Once });
        asked.push(question);
    }
}

/// The text of the result with this id.
fn result(server: &Server, at: usize) -> String {
    let requests = server.requests();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let id = format!("toolu_{at}");
    blocks.into_iter().find(|block| block["tool_use_id"] == *id).unwrap()["content"].to_string()
}

/// The turns of a small repair: a look, a test, an edit, a new file, the state of the repository, the test again.
fn repair() -> Vec<Vec<Say>> {
    let edit =
        json!({ "path": "src/money.py", "old_string": "CENTS = 10", "new_string": "CENTS = 100" });
    vec![
        vec![bash(0, "ls docs | head -40")],
        vec![bash(1, "python3 tests/run.py")],
        vec![tool(2, "read", &json!({ "path": "src/money.py" }))],
        vec![tool(3, "edit", &edit)],
        vec![tool(4, "write", &json!({ "path": "docs/cents.md", "content": "Cents.\n" }))],
        vec![bash(5, "git status --short")],
        vec![bash(6, "python3 tests/run.py")],
    ]
}

fn scripted(turns: Vec<Vec<Say>>) -> Server {
    let answers = turns.into_iter().flat_map(|said| [Answer::says(said), Answer::text("done")]);
    Server::scripted(answers.collect::<Vec<_>>())
}

#[test]
fn a_small_repair_asks_nothing_and_in_mode_ask_it_asks_about_each_step() {
    needs("python3");
    for (mode, wanted) in [(PermissionMode::Sandboxed, 0), (PermissionMode::Ask, 6)] {
        let desk = repository();
        let turns = repair().len();
        let server = scripted(repair());
        let _daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let session = wire.open(&opening(&desk, &server, mode));
        let asked: Vec<_> = (0..turns).flat_map(|_| turn(&mut wire, &session)).collect();
        assert_eq!(asked.len(), wanted, "{mode:?}: {asked:#?}");
        for (at, printed) in [(1, "10\\n"), (6, "100\\n")] {
            let result = result(&server, at);
            assert!(result.contains(printed), "{mode:?} {at}: {result}");
        }
        let status = result(&server, 5);
        assert!(
            status.contains(" M src/money.py") && status.contains("?? docs/cents.md"),
            "{status}"
        );
        assert!(!status.contains("refused"), "git needs no lock for it: {status}");
        if mode == PermissionMode::Sandboxed {
            let command = run(desk.agentd(&["audit", "show", &format!("{session}.2")]));
            let bounds =
                "full sandbox, network off, undo covers 2,000 changed files of up to 256 KiB";
            assert!(command.out.contains(bounds), "{}", command.out);
            let edit = run(desk.agentd(&["audit", "show", &format!("{session}.4")]));
            assert!(edit.out.contains("files of the project, undo covers them"), "{}", edit.out);
        }
    }
}

#[test]
fn a_question_offers_the_mode_where_the_sandbox_bounds_the_call_and_one_answer_takes_it() {
    needs("python3");
    let desk = repository();
    let command = || vec![bash(0, "python3 tests/run.py")];
    let write = |path: &str| vec![tool(0, "write", &json!({ "path": path, "content": "x" }))];
    let host = json!({ "command": "true", "hosts": ["crates.io"] });
    let offered = |said: Vec<Say>, mode: PermissionMode, network: Network, tier: &str| {
        let server = scripted(vec![said]);
        let _daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let mut request = opening(&desk, &server, mode);
        request.network = Some(network);
        request.env.push(("AGENTD_SANDBOX_TIER".to_owned(), tier.to_owned()));
        let session = wire.open(&request);
        let asked = turn(&mut wire, &session);
        assert_eq!(asked.len(), 1, "{asked:?}");
        let Ask::Call { modes, .. } = &asked[0].ask else { panic!("{asked:?}") };
        modes.clone()
    };
    let (ask, off) = (PermissionMode::Ask, Network::Off);
    let only = [PermissionMode::Sandboxed];
    assert_eq!(offered(command(), ask, off, "A"), only);
    assert_eq!(offered(command(), PermissionMode::AcceptEdits, off, "A"), only);
    assert_eq!(offered(write("docs/b.md"), ask, off, "A"), only);
    for (said, network, tier) in [
        (command(), Network::On, "A"),
        (command(), off, "B"),
        (write(".npmrc"), off, "A"),
        (write(".git/hooks/pre-commit"), off, "A"),
        (vec![bash(0, "git commit --allow-empty -m x")], off, "A"),
        (vec![tool(0, "bash", &host)], off, "A"),
    ] {
        assert_eq!(offered(said.clone(), ask, network, tier), [], "{said:?} {network:?} {tier}");
    }
    let an_effect = vec![bash(0, "true")];
    assert_eq!(offered(an_effect, PermissionMode::Sandboxed, Network::On, "A"), []);

    let server = scripted(vec![command(), command()]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&opening(&desk, &server, ask));
    wire.prompt(&session, "go");
    let Question { call, digest, .. } = wire.question();
    // A mode that is not offered allows nothing.
    let auto = Said::Mode(PermissionMode::Auto);
    wire.say(FromClient::Answer { call: call.clone(), digest: digest.clone(), answer: auto });
    let why = wire.event("a rejection", |event| match event {
        ClientEvent::AnswerRejected { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    assert!(why.contains("does not offer mode auto"), "{why}");
    let taken = Said::Mode(PermissionMode::Sandboxed);
    wire.say(FromClient::Answer { call, digest, answer: taken });
    wire.event("the mode", |event| match event {
        ClientEvent::Changed { change: SettingChange::Mode(PermissionMode::Sandboxed), .. } => {
            Some(())
        }
        _ => None,
    });
    wire.turn_ends();
    assert!(result(&server, 0).contains("10\\n"), "the answer allowed the call");
    assert_eq!(turn(&mut wire, &session), [], "the next one is not asked about");
}

/// Runs this call as the one of a session in this mode, changed so. Returns the reasons of its questions.
#[track_caller]
fn reasons(
    desk: &Desk,
    said: Say,
    change: impl FnOnce(&mut SessionRequest),
    tier: &str,
) -> Vec<String> {
    let server = scripted(vec![vec![said]]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mut request = opening(desk, &server, PermissionMode::Sandboxed);
    request.env.push(("AGENTD_SANDBOX_TIER".to_owned(), tier.to_owned()));
    change(&mut request);
    let session = wire.open(&request);
    turn(&mut wire, &session).into_iter().map(|question| question.reason).collect()
}

#[test]
fn each_way_to_more_than_the_mode_says_is_asked_about_with_its_effect() {
    let desk = repository();
    let outside = beside(&desk);
    symlink(&outside, desk.project().join("by-link")).unwrap();
    let there = outside.join("made").display().to_string();
    let write = |path: &str| tool(0, "write", &json!({ "path": path, "content": "x\n" }));
    let asking = |extra: Value| {
        let mut input = json!({ "command": "true" });
        input.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        tool(0, "bash", &input)
    };
    let none = |_: &mut SessionRequest| {};
    for (said, words) in [
        (asking(json!({ "hosts": ["crates.io"] })), "it would reach the host crates.io"),
        (asking(json!({ "network": "on" })), "it would have the whole network"),
        (asking(json!({ "git_settings": "write" })), "git's settings"),
        (asking(json!({ "background": true })), "in the background"),
        (write(&there), "it writes outside the project"),
        (write("by-link/made"), "it writes outside the project"),
        (write(".git/hooks/pre-commit"), "a protected file"),
        (write(".npmrc"), "`.npmrc` is a file of which"),
        (bash(0, "git commit --allow-empty -m x"), "it may change `.git`"),
        (tool(0, "git_add", &json!({ "paths": ["docs/a.md"] })), "it may change `.git`"),
        (
            tool(0, "memory_add", &json!({ "text": "Use cents.", "scope": "project" })),
            "later sessions of this project",
        ),
    ] {
        let reasons = reasons(&desk, said, none, "A");
        assert!(reasons.len() == 1 && reasons[0].contains(words), "{words}: {reasons:?}");
    }
    // What the session has besides: the network, hosts, a directory, a weaker sandbox.
    let network = |request: &mut SessionRequest| request.network = Some(Network::On);
    let config = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let added = |request: &mut SessionRequest| request.added = vec![outside.as_path().into()];
    let plain = || bash(0, "ls docs | head -40");
    for (reasons, words) in [
        (reasons(&desk, plain(), network, "A"), "it would have the whole network"),
        (reasons(&desk, plain(), added, "A"), "it could write outside the project, in"),
        (reasons(&desk, write(&there), added, "A"), "it writes outside the project"),
        (reasons(&desk, plain(), none, "B"), "a weaker one (tier B)"),
        (reasons(&desk, write("docs/b.md"), none, "B"), "a weaker one (tier B)"),
    ] {
        assert!(reasons.len() == 1 && reasons[0].contains(words), "{words}: {reasons:?}");
    }
    fs::write(&config, "net.mode = 'allow'\nnet.allow = ['crates.io']\n").unwrap();
    let listed = reasons(&desk, plain(), none, "A");
    assert_eq!(listed, ["it would reach the host crates.io"]);
    fs::remove_file(&config).unwrap();
    // The positive controls.
    assert_eq!(reasons(&desk, plain(), none, "A"), [""; 0]);
    assert_eq!(reasons(&desk, write("docs/b.md"), none, "A"), [""; 0]);
}

#[test]
fn a_change_of_the_session_counts_from_the_next_call_on_and_is_said() {
    let desk = repository();
    let plain = || vec![bash(0, "true")];
    let server = scripted(vec![plain(), plain(), plain(), plain()]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&opening(&desk, &server, PermissionMode::Sandboxed));
    assert!(turn(&mut wire, &session).is_empty());
    for (network, asked) in [(Network::On, 1), (Network::Off, 0)] {
        let change = SettingChange::Network(network);
        wire.say(FromClient::Change { session: session.clone(), change });
        wire.event("the change", |event| {
            matches!(event, ClientEvent::Changed { .. }).then_some(())
        });
        if asked > 0 {
            let said = notice(&mut wire);
            assert!(said.contains("sandboxed asks about each command"), "{said}");
        }
        assert_eq!(turn(&mut wire, &session).len(), asked, "{network:?}");
    }
    let change = SettingChange::AddDirectory(beside(&desk).as_path().into());
    wire.say(FromClient::Change { session: session.clone(), change });
    assert!(notice(&mut wire).contains("could write in"));
    assert_eq!(turn(&mut wire, &session).len(), 1);
}

#[track_caller]
fn notice(wire: &mut Wire) -> String {
    wire.event("a notice", |event| match event {
        ClientEvent::Notice { text } => Some(text.clone()),
        _ => None,
    })
}

#[test]
fn a_session_with_a_weaker_sandbox_says_at_its_start_that_it_asks() {
    let desk = Desk::new();
    let server = scripted(Vec::new());
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    for (tier, is_said) in [("B", true), ("A", false)] {
        let mut request = opening(&desk, &server, PermissionMode::Sandboxed);
        request.env.push(("AGENTD_SANDBOX_TIER".to_owned(), tier.to_owned()));
        wire.open_with_key(&request);
        let warnings = wire.until("the session", |word| match word {
            ToClient::Opened { warnings, .. } => Some(warnings.join("\n")),
            ToClient::Failed { message, .. } => panic!("{message}"),
            _ => None,
        });
        let said =
            warnings.contains("the mode sandboxed asks about every change and every command");
        assert_eq!(said, is_said, "tier {tier}: {warnings}");
    }
}

#[test]
fn a_command_that_passes_leaves_the_git_directory_alone_also_of_a_repository_around_the_project() {
    for below in [false, true] {
        let desk = repository();
        let (project, at) = match below {
            true => (desk.project().join("src"), "../.git"),
            false => (desk.project(), ".git"),
        };
        let head = desk.read(".git/HEAD");
        let script =
            format!("echo x > {at}/HEAD; rm -rf {at}; echo y > {at}/made; echo z > made; exit 0");
        let commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m second";
        let server = scripted(vec![vec![bash(0, &script)], vec![bash(1, commit)]]);
        let _daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let mut request = opening(&desk, &server, PermissionMode::Sandboxed);
        request.project = project.as_path().into();
        let session = wire.open(&request);
        assert!(turn(&mut wire, &session).is_empty());
        assert!(project.join("made").exists(), "it ran: {}", result(&server, 0));
        assert_eq!(desk.read(".git/HEAD"), head, "below {below}");
        assert!(!desk.project().join(".git/made").exists(), "below {below}");
        // Who is asked lets git work.
        let asked = turn(&mut wire, &session);
        assert!(asked.len() == 1 && asked[0].reason.contains("`.git`"), "{asked:?}");
        let log = Command::new("git")
            .args(["log", "--format=%s"])
            .current_dir(desk.project())
            .env("HOME", desk.home())
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&log.stdout),
            "second\nfirst\n",
            "{}",
            result(&server, 1)
        );
    }
}

#[test]
fn a_nested_repository_is_left_alone_too() {
    let desk = repository();
    let nested = desk.project().join("docs/deep/sub");
    fs::create_dir_all(&nested).unwrap();
    git(&desk, &nested, &["init", "-q"]);
    let head = desk.read("docs/deep/sub/.git/HEAD");
    let script = "echo x > docs/deep/sub/.git/HEAD; rm -rf docs/deep/sub/.git; \
                  echo y > docs/deep/sub/.git/made; echo z > docs/deep/sub/made; exit 0";
    let server = scripted(vec![vec![bash(0, script)]]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&opening(&desk, &server, PermissionMode::Sandboxed));
    assert!(turn(&mut wire, &session).is_empty());
    assert!(nested.join("made").exists(), "it ran: {}", result(&server, 0));
    assert_eq!(desk.read("docs/deep/sub/.git/HEAD"), head);
    assert!(!nested.join(".git/made").exists());
}

/// With a command that runs longer than `tools.background_after_ms`.
#[test]
fn a_command_that_passes_stays_in_the_foreground_and_comes_back_whole() {
    for (mode, goes_on) in [(PermissionMode::Sandboxed, false), (PermissionMode::Ask, true)] {
        let desk = repository();
        let config = desk.home().join(".config/agentd/config.toml");
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        fs::write(&config, "tools.background_after_ms = 200\n").unwrap();
        let server = scripted(vec![vec![bash(0, "sleep 2; echo late > docs/a.md")]]);
        let _daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let session = wire.open(&opening(&desk, &server, mode));
        turn(&mut wire, &session);
        let said = result(&server, 0);
        assert_eq!(said.contains("runs in the background"), goes_on, "{mode:?}: {said}");
        if goes_on {
            continue;
        }
        assert_eq!(desk.read("docs/a.md"), "late\n");
        drop(wire);
        let undone = run(desk.with_server(&server, &["-c", "-p", ":undo"]));
        assert_eq!((undone.code, desk.read("docs/a.md").as_str()), (0, "about\n"), "{undone:?}");
    }
}

#[test]
fn what_passed_comes_back_by_undo_and_what_undo_cannot_keep_is_asked_about() {
    let desk = repository();
    desk.write("docs/big", &"x".repeat(9 << 20));
    let delete = |name: &str| vec![tool(1, "delete", &json!({ "paths": [name] }))];
    let server =
        scripted(vec![vec![bash(0, "rm -rf src; echo changed > docs/a.md")], delete("docs/big")]);
    let flags = ["--permission-mode", "sandboxed"];
    let ran = desk.ask(&server, &flags);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!desk.project().join("src").exists());
    let undone =
        run(desk.with_server(&server, &["-c", "-p", ":undo", "--permission-mode", "sandboxed"]));
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!(
        (desk.read("src/money.py").as_str(), desk.read("docs/a.md").as_str()),
        ("CENTS = 10\n", "about\n")
    );
    // Nobody can be asked in a script.
    let refused =
        run(desk.with_server(&server, &["-c", "-p", "go on", "--permission-mode", "sandboxed"]));
    assert_eq!(refused.code, 10, "{refused:?}");
    assert!(result(&server, 1).contains("undo would not cover it"), "{}", result(&server, 1));
    assert!(desk.project().join("docs/big").exists());
}
