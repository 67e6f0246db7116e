//! Worktrees of sub-agents: what is a person's stays, nothing of the repository runs, and nothing is lost.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::agents::{AUTO, git, repository, result, server, session, sessions, task, tool};
use crate::support::anthropic::{Answer, Server};
use crate::support::daemon::Wire;
use crate::support::{Desk, runs, send, until};
use nix::sys::signal::Signal;
use protocol::client::{FromClient, SessionEnding, SessionStart, ToClient};
use protocol::ids::SessionId;
use protocol::session::OpenTurn;
use serde_json::json;
use std::path::PathBuf;

/// The one sub-agent runs this command.
fn one(desk: &Desk, command: &str, flags: &[&str]) -> Server {
    let server = server([
        ("do it", vec![Answer::says([task("toolu_1", "PART", "apart")]), Answer::text("Done.")]),
        (
            "PART",
            vec![
                tool("toolu_2", "bash", json!({"command": command})),
                Answer::text("Did it."),
                Answer::text("Did more."),
            ],
        ),
    ]);
    let ran = desk.ask(&server, &[&AUTO, flags].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    server
}

fn worktrees(desk: &Desk) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(desk.project().join(".worktrees")).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.is_dir()).collect()
}

#[test]
fn a_worktree_of_the_person_outside_of_the_project_survives() {
    let desk = repository();
    git(&desk, &["-c", "core.hooksPath=", "worktree", "add", "-q", "../feature"]);
    let feature = desk.project().join("../feature").canonicalize().unwrap();
    std::fs::write(feature.join("staged"), "").unwrap();
    git(&desk, &["-C", feature.to_str().unwrap(), "add", "staged"]);
    let server = one(&desk, "echo new > notes", &[]);
    assert!(result(&server, "toolu_1").contains("M notes"), "the control: one was made");
    let status = git(&desk, &["-C", feature.to_str().unwrap(), "status", "--short"]);
    assert_eq!(status, "A  staged\n");
}

#[test]
fn another_directory_in_the_place_of_a_worktree_is_not_worked_in() {
    let desk = repository();
    let server = one(&desk, "echo new > notes", &[]);
    let child = sessions(&desk)[1].clone();
    let place = desk.project().join(".worktrees").join(&child);
    let again = |words: &str| {
        let ran = desk.ask(&server, &["--resume", &child]);
        assert!(ran.code != 0 && ran.err.contains(words), "{words}: {} {}", ran.code, ran.err);
    };
    let aside = desk.project().join(".worktrees/aside");
    std::fs::rename(&place, &aside).unwrap();
    std::os::unix::fs::symlink(desk.home(), &place).unwrap();
    again("leads to");
    std::fs::remove_file(&place).unwrap();
    std::fs::create_dir(&place).unwrap();
    again("is no git worktree of");
    // A pointer that nothing leads back from.
    std::fs::copy(desk.project().join(".worktrees/aside/.git"), place.join(".git")).unwrap();
    std::fs::remove_dir_all(&place).unwrap();
    let other = Desk::new();
    git(&other, &["init", "-q"]);
    std::fs::create_dir(&place).unwrap();
    let pointer = format!("gitdir: {}\n", other.project().join(".git").display());
    std::fs::write(place.join(".git"), pointer).unwrap();
    again("is no git worktree of");
    // The control: it is back.
    std::fs::remove_dir_all(&place).unwrap();
    std::fs::rename(&aside, &place).unwrap();
    let ran = desk.ask(&server, &["--resume", &child]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn no_filter_of_the_repository_runs_for_a_worktree() {
    let desk = repository();
    git(&desk, &["config", "filter.evil.smudge", "touch ../../filtered filtered; cat"]);
    git(&desk, &["config", "filter.evil.clean", "touch ../../filtered filtered; cat"]);
    // The control: one that no file has stands in nobody's way.
    let server = one(&desk, "cat notes", &[]);
    assert!(
        result(&server, "toolu_1").contains("it changed nothing"),
        "{}",
        result(&server, "toolu_1")
    );
    std::fs::write(desk.project().join(".git/info/attributes"), "notes filter=evil\n").unwrap();
    let server = one(&desk, "cat notes", &[]);
    let told = result(&server, "toolu_1");
    assert!(told.contains("the git filter evil changes files of this repository"), "{told}");
    assert!(!desk.project().join("filtered").exists(), "it did not run");
    assert_eq!(worktrees(&desk), Vec::<PathBuf>::new());
    assert_eq!(git(&desk, &["branch", "--list", "agentd/*"]), "");
}

#[test]
fn a_checkout_with_other_protected_files_than_the_project_is_refused_by_name() {
    let desk = repository();
    let agent = desk.read(".claude/agents/apart.md");
    desk.write(".claude/agents/apart.md", &format!("{agent}More.\n"));
    let server = one(&desk, "cat notes", &[]);
    let told = result(&server, "toolu_1");
    assert!(told.contains("protected files that differ") && told.contains(".claude"), "{told}");
    assert!(told.contains("[git for its worktree changed"), "{told}");
    assert_eq!(worktrees(&desk), Vec::<PathBuf>::new());
    git(&desk, &["commit", "-q", "-a", "-m", "more"]);
    let server = one(&desk, "cat notes", &[]);
    assert!(result(&server, "toolu_1").contains("it changed nothing"), "the control: committed");
}

#[test]
fn a_sub_agent_of_one_in_a_worktree_works_there_too() {
    let desk = repository();
    desk.write(".agentd/config.toml", "[agents]\ndepth = 2\n");
    let server = server([
        ("do it", vec![Answer::says([task("toolu_1", "OUTER", "apart")]), Answer::text("Done.")]),
        (
            "OUTER",
            vec![
                Answer::says([task("toolu_2", "INNER", ""), task("toolu_3", "OTHER", "apart")]),
                tool("toolu_5", "bash", json!({"command": "cat inner"})),
                Answer::text("Outer."),
            ],
        ),
        (
            "INNER",
            vec![
                tool("toolu_4", "bash", json!({"command": "pwd; echo in > inner"})),
                Answer::text("Inner."),
            ],
        ),
    ]);
    let ran = desk.ask(&server, &[&AUTO[..], &["--trust-project"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let place = desk.project().join(".worktrees").join(&sessions(&desk)[1]);
    let inner = result(&server, "toolu_4");
    assert!(inner.starts_with(&place.display().to_string()), "{inner}");
    assert!(!desk.project().join("inner").exists());
    assert!(result(&server, "toolu_5").starts_with("in"), "it stays for the outer one");
    let refused = result(&server, "toolu_3");
    assert!(refused.contains("works in a git worktree of its own"), "{refused}");
    assert!(!result(&server, "toolu_2").contains("its worktree"), "it is not the inner one's");
    assert!(result(&server, "toolu_1").contains("?? inner"), "{}", result(&server, "toolu_1"));
}

#[test]
fn a_worktree_with_a_file_that_git_ignores_is_kept_and_named() {
    let desk = repository();
    // No setting of the repository hides any.
    git(&desk, &["config", "status.showUntrackedFiles", "no"]);
    let server = one(&desk, "echo worth > run.log", &[]);
    let told = result(&server, "toolu_1");
    assert!(told.contains("[its worktree: ") && told.contains("!! run.log"), "{told}");
    let [place] = &worktrees(&desk)[..] else { panic!("{told}") };
    assert_eq!(std::fs::read_to_string(place.join("run.log")).unwrap(), "worth\n");
    let server = one(&desk, "echo worth > new", &[]);
    assert!(result(&server, "toolu_1").contains("?? new"), "{}", result(&server, "toolu_1"));
}

#[test]
fn an_interrupt_is_heard_while_git_makes_a_worktree() {
    let desk = repository();
    // Git waits for ever.
    let refs = desk.project().join(".git/packed-refs");
    assert!(std::process::Command::new("mkfifo").arg(&refs).status().unwrap().success());
    let server = server([("begin", vec![Answer::says([task("toolu_1", "PART", "apart")])])]);
    let _daemon = desk.daemon();
    let (mut wire, session) = session(&desk, &server);
    wire.prompt(&session, "begin");
    until("git was started", || desk.project().join(".worktrees/.gitignore").exists());
    let began = std::time::Instant::now();
    wire.say(FromClient::Interrupt { session: session.clone() });
    wire.turn_ends();
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn finished_work_in_a_worktree_is_the_result_behind_a_death_though_its_model_is_gone() {
    let desk = repository();
    let config = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[models.small]\nmodel = 'test-model'\n").unwrap();
    let agents = desk.home().join(".claude/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let file = "---\ndescription: Works apart.\nisolation: worktree\nmodel: small\n---\nWork.\n";
    std::fs::write(agents.join("small.md"), file).unwrap();
    let command = json!({"command": "echo new > notes; n=7361; sleep $n"});
    let server = server([
        ("do it", vec![Answer::says([task("toolu_1", "PART", "small")]), Answer::text("Done.")]),
        ("PART", vec![tool("toolu_2", "bash", command), Answer::text("Did it.")]),
    ]);
    let daemon = desk.daemon();
    let (wire, parent) = session(&desk, &server);
    wire.prompt(&parent, "do it");
    until("the command of the sub-agent", || runs("sleep 7361"));
    send(daemon.pid, Signal::SIGKILL);
    until("it ends with the supervisor", || !runs("sleep 7361"));
    drop((wire, daemon));
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(&server);
    let child = SessionId(format!("{parent}-1"));
    opening.start = SessionStart::Resume { session: child, open_turn: OpenTurn::GoesOn };
    let alone = wire.open(&opening);
    wire.turn_ends();
    wire.say(FromClient::End { session: alone, ending: SessionEnding::Stop });
    wire.until("its end", |word| matches!(word, ToClient::Done).then_some(()));
    std::fs::remove_file(&config).unwrap();
    opening.start = SessionStart::Resume { session: parent, open_turn: OpenTurn::GoesOn };
    wire.open(&opening);
    wire.turn_ends();
    let told = result(&server, "toolu_1");
    assert!(told.starts_with("Did it.") && told.contains("M notes"), "{told}");
}
