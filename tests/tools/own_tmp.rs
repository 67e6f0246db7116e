//! The session's own `/tmp`: where a person finds the files that calls leave there, and a project that lies
//! in the machine's.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::{Wire, opening};
use crate::support::{Desk, run};
use protocol::client::FromClient;
use protocol::judgement::PersonAnswer;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const AUTO: [&str; 4] = ["-p", "go", "--permission-mode", "auto"];

fn says(at: usize, (tool, input): &(&str, Value)) -> Answer {
    Answer::says([call(&format!("toolu_{at}"), tool, &input.to_string())])
}

/// The place behind these words.
#[track_caller]
fn place_in(text: &str, words: &str) -> PathBuf {
    let (_, rest) = text.split_once(words).unwrap_or_else(|| panic!("{words}: {text}"));
    rest.split(|c: char| c.is_whitespace() || c == ']').next().unwrap().into()
}

const OWN_TMP: &str = "/tmp is the session's own, on disk ";

/// A project, what is said of the place around it, and its folder in the machine's `/tmp`.
type Project = (PathBuf, &'static str, Option<TempDir>);

/// Projects beside `/tmp`, in it and in `/var/tmp`.
fn projects(desk: &Desk) -> Vec<Project> {
    let within = |dir: &str, around| {
        let folder = tempfile::Builder::new().prefix("agentd-p").tempdir_in(dir).unwrap();
        let project = folder.path().join("deeper");
        std::fs::create_dir(&project).unwrap();
        (project, around, Some(folder))
    };
    let var = "/var/tmp is the session's own, on disk ";
    vec![(desk.project(), OWN_TMP, None), within("/tmp", OWN_TMP), within("/var/tmp", var)]
}

#[test]
fn a_file_in_the_session_s_tmp_is_found_where_the_block_says() {
    let desk = Desk::new();
    for (project, _, _folder) in projects(&desk) {
        let calls = [
            ("write", json!({"path": "/tmp/note.txt", "content": "from a tool"})),
            ("bash", json!({"command": "cat /tmp/note.txt && echo of a command >/tmp/other.txt"})),
            ("write", json!({"path": "inside.txt", "content": "in the project"})),
            ("bash", json!({"command": "cat inside.txt; echo more >made.txt"})),
        ];
        let answers = calls.iter().enumerate().map(|(at, call)| says(at, call));
        let server = Server::scripted(answers.chain([Answer::text("done")]).collect::<Vec<_>>());
        let mut command = desk.with_server(&server, &AUTO);
        command.current_dir(&project).env("AGENTD_SANDBOX_TIER", "A");
        let ran = run(command);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let results: Vec<String> = server.requests()[1..]
            .iter()
            .map(|request| {
                let messages = request.body["messages"].as_array().unwrap();
                messages.last().unwrap()["content"][0]["content"].to_string()
            })
            .collect();
        // The person's block of the tool and of the command, and what the model may tell them.
        assert_eq!(ran.err.matches(OWN_TMP).count(), 2, "{}", ran.err);
        let kept = place_in(&ran.err, OWN_TMP);
        assert_eq!(place_in(&results[0], OWN_TMP), kept, "{}", results[0]);
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!(read(&kept.join("note.txt")), "from a tool");
        assert_eq!(read(&kept.join("other.txt")), "of a command\n");
        assert!(results[1].contains("from a tool"), "the same for commands: {}", results[1]);
        // The project is the person's, wherever it lies.
        assert_eq!(read(&project.join("inside.txt")), "in the project");
        assert_eq!(read(&project.join("made.txt")), "more\n");
        assert!(!results[2].contains("session's own"), "{}", results[2]);
        assert!(!Path::new("/tmp/note.txt").exists());
    }
}

#[test]
fn a_question_says_that_tmp_is_the_session_s_own_where_that_matters() {
    let desk = Desk::new();
    let _daemon = desk.daemon();
    for (project, around, _folder) in projects(&desk) {
        let in_tmp = project != desk.project();
        let rows = [
            ("write", json!({"path": "/tmp/note.txt", "content": "x"}), Some(OWN_TMP)),
            ("bash", json!({"command": "make >'/tmp/log' 2>&1"}), Some(OWN_TMP)),
            ("bash", json!({"command": "make"}), in_tmp.then_some(around)),
            ("write", json!({"path": "a.txt", "content": "x"}), in_tmp.then_some(around)),
        ];
        let calls = rows.iter().enumerate();
        let answers = calls.map(|(at, (tool, input, _))| says(at, &(*tool, input.clone())));
        let server = Server::scripted(answers.chain([Answer::text("done")]).collect::<Vec<_>>());
        let request = desk.opening(&server);
        let env: Vec<_> = request.env.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let mut wire = Wire::to(&desk.door());
        let session = wire.open(&opening(&project, &env));
        wire.prompt(&session, "go");
        for (tool, input, said) in rows {
            let question = wire.question();
            let text = &question.confinement;
            match said {
                Some(words) => {
                    assert!(place_in(text, words).is_dir(), "{tool} {input}: {text}");
                }
                None => assert!(!text.contains("session's own"), "{tool} {input}: {text}"),
            }
            let (call, digest) = (question.call.clone(), question.digest.clone());
            wire.say(FromClient::Answer {
                call,
                digest,
                answer: PersonAnswer::Deny(String::new()),
            });
        }
        wire.turn_ends();
    }
}
