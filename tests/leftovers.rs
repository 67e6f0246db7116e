//! What a call that was killed left beside files: it gets its name back by the next call of its session
//! that changes something there, in this life or a later one, and nobody else's does.
#![allow(clippy::unwrap_used)]

mod support;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::anthropic::{Answer, Say, Server, call};
use support::{Desk, child_of, run, send};

const FLAGS: [&str; 5] = ["-p", "Go.", "--permission-mode", "auto", "--timeout=90"];
/// As many as take a while to be looked at, between being moved aside and being removed.
const MANY: usize = 4_000;

/// A project with a directory that takes a while, and names that are none of a session's.
fn desk() -> (Desk, [&'static str; 2]) {
    let desk = Desk::new();
    for (name, text) in [("keep.txt", "one\n"), ("a.txt", "a\n"), ("b.txt", "b\n")] {
        desk.write(name, text);
    }
    std::fs::create_dir(desk.project().join("many")).unwrap();
    for n in 0..MANY {
        std::fs::write(desk.project().join(format!("many/{n}")), "x").unwrap();
    }
    let foreign = [".agentd-1-0-0.c.txt.gone", ".agentd-0123456789ab-1-0-0.c.txt.gone"];
    for name in foreign {
        desk.write(name, "theirs");
    }
    (desk, foreign)
}

fn names(desk: &Desk) -> Vec<String> {
    let entries = std::fs::read_dir(desk.project()).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs it, and kills the call's process once something lies aside; whether that came in time.
fn killed_meanwhile(desk: &Desk, foreign: &[&str], mut command: Command) -> bool {
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let aside = |name: &String| name.starts_with(".agentd-") && !foreign.contains(&name.as_str());
    while begun.elapsed() < Duration::from_secs(60) {
        if names(desk).iter().any(aside) {
            let supervisor = child_of(child.id(), "agentd-supervisor").unwrap();
            child_of(supervisor, "agentd-tool")
                .into_iter()
                .for_each(|pid| send(pid, Signal::SIGKILL));
            break;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    names(desk).iter().any(aside)
}

fn told(server: &Server, request: usize) -> String {
    server.requests()[request].body["messages"].as_array().unwrap().last().unwrap().to_string()
}

fn of(id: &str, tool: &str, input: &Value) -> Say {
    call(id, tool, &input.to_string())
}

#[test]
fn what_a_killed_delete_had_moved_aside_gets_its_name_back_and_its_model_is_told() {
    let delete = json!({"paths": ["a.txt", "b.txt", "many"], "recursive": true});
    let edit = json!({"path": "keep.txt", "old_string": "one", "new_string": "two"});
    // It is a race, which the call may win: then there is nothing to see.
    let mut tries = 0;
    let (desk, foreign) = loop {
        tries += 1;
        assert!(tries < 10, "never killed in time");
        let (desk, foreign) = desk();
        let delete = of("toolu_1", "delete", &delete);
        let server = Server::scripted([Answer::says([delete]), Answer::text("Done.")]);
        if killed_meanwhile(&desk, &foreign, desk.with_server(&server, &FLAGS)) {
            let text = told(&server, 1);
            assert!(text.contains("interrupted: may have run"), "{text}");
            assert!(text.contains("`.agentd-….NAME.gone`"), "{text}");
            break (desk, foreign);
        }
    };
    assert!(!desk.project().join("a.txt").exists(), "the first goes first: {:?}", names(&desk));
    let mut sessions = std::fs::read_dir(desk.state().join("sessions")).unwrap();
    let session = sessions.next().unwrap().unwrap().file_name().into_string().unwrap();
    // Another session has no business with it.
    let other = of("toolu_1", "write", &json!({"path": "other.txt", "content": ""}));
    let server = Server::scripted([Answer::says([other]), Answer::text("Done.")]);
    let before = names(&desk).len();
    assert_eq!(run(desk.with_server(&server, &FLAGS)).code, 0);
    assert_eq!(names(&desk).len(), before + 1);
    // Its own next life.
    let server =
        Server::scripted([Answer::says([of("toolu_2", "edit", &edit)]), Answer::text("Done.")]);
    let ran = run(desk.with_server(&server, &[&FLAGS[..], &["--resume", &session]].concat()));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let text = told(&server, 1);
    assert!(text.contains("[a.txt is there again") && text.contains("edited keep.txt"), "{text}");
    let all = [foreign[1], foreign[0], "a.txt", "b.txt", "keep.txt", "many", "other.txt"];
    let mut all = all.map(str::to_owned).to_vec();
    all.sort();
    assert_eq!(names(&desk), all);
    assert_eq!((desk.read("a.txt").as_str(), desk.read("b.txt").as_str()), ("a\n", "b\n"));
    assert_eq!(std::fs::read_dir(desk.project().join("many")).unwrap().count(), MANY);
}
