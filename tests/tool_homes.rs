//! What commands change of the person's tool homes is kept for the project: over calls, sessions and
//! deaths, while several calls run at once, and seen by nobody else.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::anthropic::{Answer, Server, call};
use support::{Desk, child_of, needs, until};

/// What the model is told of this command, in a session of its own in tier A.
fn told(desk: &Desk, script: &str) -> String {
    told_in(desk, &desk.project(), script)
}

fn told_in(desk: &Desk, project: &Path, script: &str) -> String {
    let server = Server::scripted([asks(script), Answer::text("done")]);
    let ran = support::run(asking(desk, &server, project));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let messages = server.requests().last().unwrap().body["messages"].clone();
    let content = &messages.as_array().unwrap().last().unwrap()["content"][0]["content"];
    content.as_str().or_else(|| content[0]["text"].as_str()).unwrap_or_default().to_owned()
}

fn asks(script: &str) -> Answer {
    Answer::says([call("toolu_1", "bash", &json!({ "command": script }).to_string())])
}

fn asking(desk: &Desk, server: &Server, project: &Path) -> Command {
    let mut command = desk.with_server(server, &["-p", "x", "--permission-mode", "auto"]);
    command.env("AGENTD_SANDBOX_TIER", "A").current_dir(project);
    command
}

/// The person's cache, with one package.
fn cache(desk: &Desk) -> PathBuf {
    let cache = desk.home().join(".npm/_cacache");
    std::fs::create_dir_all(&cache).unwrap();
    std::fs::write(cache.join("own"), "of the person\n").unwrap();
    cache
}

const WAITS: &str = "until test -e b; do sleep 0.02; done";

#[test]
fn what_is_downloaded_is_there_in_the_next_session_of_the_project_alone() {
    needs("bash");
    let desk = Desk::new();
    let cache = cache(&desk);
    let said = told(&desk, "cd ~/.npm/_cacache && cat own && echo new > new && echo changed > own");
    assert!(said.starts_with("of the person\n"), "{said}");
    let said = told(&desk, "cd ~/.npm/_cacache && cat own new; echo \"[$npm_config_cache]\"");
    assert!(said.starts_with("changed\nnew\n[]\n"), "{said}");
    let names = || std::fs::read_dir(&cache).unwrap().count();
    assert_eq!(std::fs::read_to_string(cache.join("own")).unwrap(), "of the person\n");
    assert_eq!(names(), 1);
    // Another project, with the same home.
    let other = desk.outside().join("other");
    std::fs::create_dir_all(&other).unwrap();
    let said = told_in(&desk, &other, "cat ~/.npm/_cacache/*");
    assert!(said.starts_with("of the person\n") && !said.contains("new"), "{said}");
}

#[test]
fn commands_that_run_at_once_see_what_the_other_changes() {
    let desk = Desk::new();
    cache(&desk);
    let _daemon = desk.daemon();
    let first =
        format!("echo one > ~/.npm/_cacache/one; touch a; {WAITS}; cat ~/.npm/_cacache/two");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| told(&desk, &first));
        until("the first command runs", || desk.project().join("a").exists());
        let said = told(&desk, "cat ~/.npm/_cacache/one; echo two > ~/.npm/_cacache/two; touch b");
        assert!(said.starts_with("one\n"), "{said}");
        let said = waits.join().unwrap();
        assert!(said.starts_with("two\n"), "{said}");
    });
}

/// Neither the mounts that travel nor the lock reach a command, and of other projects' none is in its root.
#[test]
fn a_command_holds_nothing_that_travels() {
    let desk = Desk::new();
    cache(&desk);
    let _daemon = desk.daemon();
    for _ in 0..2 {
        let said = told(
            &desk,
            "ls -l /proc/$$/fd | grep -c -- '->'; ls -a / | grep -c '^[.][a-z]'; \
                                grep -c ' /[.]overlays' /proc/self/mountinfo; find / -name lock -path '*overlays*' 2>/dev/null; true",
        );
        let counts: Vec<&str> = said.lines().take(3).collect();
        // Standard streams, and what bash itself holds: the script.
        assert!(counts[0].parse::<u32>().unwrap() <= 4, "{said}");
        assert_eq!(counts[1..], ["0", "0"], "{said}");
        assert!(!said.contains("/lock"), "{said}");
    }
}

/// Without a daemon each run has a supervisor of its own, and one of them has the overlays.
#[test]
fn a_second_supervisor_leads_programs_to_caches_of_the_project() {
    let desk = Desk::new();
    let cache = cache(&desk);
    let first = format!("touch a; {WAITS}; echo \"[$npm_config_cache]\"");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| told(&desk, &first));
        until("the first command runs", || desk.project().join("a").exists());
        let said = told(
            &desk,
            "cat ~/.npm/_cacache/own; (echo x > ~/.npm/_cacache/own) 2>/dev/null || echo refused; \
             mkdir -p $npm_config_cache && echo led; touch b",
        );
        assert!(said.starts_with("of the person\nrefused\nled\n"), "{said}");
        let said = waits.join().unwrap();
        assert!(said.starts_with("[]\n"), "{said}");
    });
    assert_eq!(std::fs::read_to_string(cache.join("own")).unwrap(), "of the person\n");
}

#[test]
fn a_kill_of_a_runner_or_of_the_daemon_loses_nothing_of_it() {
    let desk = Desk::new();
    cache(&desk);
    let mut daemon = desk.daemon();
    for (number, victim) in ["agentd-tool", "agentd-supervisor"].into_iter().enumerate() {
        let script =
            format!("echo kept > ~/.npm/_cacache/{number}; touch a{number}; sleep 600; echo never");
        let server = Server::scripted([asks(&script), Answer::text("done"), Answer::text("done")]);
        let mut command = asking(&desk, &server, &desk.project());
        let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = desk.project().join(format!("a{number}"));
        until("the command runs", || begun.exists());
        let pid = match victim {
            "agentd-tool" => child_of(daemon.pid, victim).unwrap(),
            _ => daemon.pid,
        };
        support::send(pid, nix::sys::signal::Signal::SIGKILL);
        let _ = run.kill();
        run.wait().unwrap();
        daemon = desk.daemon();
        let began = Instant::now();
        loop {
            let said =
                told(&desk, &format!("cat ~/.npm/_cacache/{number}; echo \"[$npm_config_cache]\""));
            if said.starts_with("kept\n[]\n") {
                break;
            }
            // What was killed may hold the lock for a moment more.
            assert!(began.elapsed() < Duration::from_secs(20), "{said}");
        }
    }
}
