//! Answers that programs use: written to a file, cut to a schema, paid for up to a limit.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, run};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

#[test]
fn the_last_answer_is_in_the_file_also_when_the_run_fails_after_it() {
    let desk = Desk::new();
    let file = desk.write("answer.txt", "of an earlier run");
    let name = file.to_str().unwrap();
    let look =
        || Answer::says([crate::support::anthropic::text("I look."), call("t1", "ls", "{}")]);
    let server = Server::scripted([look(), Answer::text("It is\nempty.")]);
    let ran = run(desk.with_server(&server, &["-p", "x", "-o", name]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "It is\nempty.\n"), "{ran:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "It is\nempty.");
    let refused = Answer::status(400, "invalid_request_error", "too odd");
    let server = Server::scripted([look(), refused]);
    let flags = ["-p", "x", "--output-last-message", name, "--output-format", "json"];
    let ran = run(desk.with_server(&server, &flags));
    assert_eq!((ran.code, ran.json()["is_error"].as_bool()), (1, Some(true)), "{ran:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "I look.");
}

#[test]
fn a_run_without_an_answer_leaves_the_file_and_says_so() {
    let desk = Desk::new();
    let file = desk.write("answer.txt", "of an earlier run");
    let refused = Answer::status(400, "invalid_request_error", "too odd");
    let server = Server::scripted([refused]);
    let ran = run(desk.with_server(&server, &["-p", "x", "-o", file.to_str().unwrap()]));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("answer.txt was not written: the run has no answer"), "{}", ran.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), "of an earlier run");
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_before_the_run() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("never asked")]);
    let project = desk.project();
    let missing = project.join("none/answer");
    for (place, why) in [(&project, "it is a directory"), (&missing, "No such file")] {
        let flags = ["-p", "x", "--output-format", "json", "-o", place.to_str().unwrap()];
        let ran = run(desk.with_server(&server, &flags));
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains("--output-last-message"), "{}", ran.err);
        assert!(ran.json()["error"].as_str().unwrap().contains(why), "{ran:?}");
    }
    let ran = run(desk.with_server(&server, &["-o", "answer"]));
    assert_eq!(ran.code, 2, "only a run has a last answer: {ran:?}");
    assert!(server.requests().is_empty(), "nothing was asked");
    assert!(run(desk.agentd(&["ls"])).out.lines().count() <= 1, "no session was made");
}

#[test]
fn of_several_prompts_the_last_answer_is_in_the_file() {
    let desk = Desk::new();
    let file = desk.project().join("answer.txt");
    let server = Server::scripted([Answer::text("one"), Answer::text("two")]);
    let flags = ["-p", "--input-format", "stream-json", "-o", file.to_str().unwrap()];
    let mut child = desk
        .with_server(&server, &flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let prompt = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"Hi\"}}\n";
    child.stdin.take().unwrap().write_all(prompt.repeat(2).as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(fs::read_to_string(&file).unwrap(), "two");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o111, 0);
}
