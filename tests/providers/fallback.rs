//! The fallback model takes over where a server is overloaded, and people and the journal learn of it.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server};
use crate::support::{Desk, run};

/// A desk with one try for each request, and a server where every model but this is overloaded.
fn desk(only: &'static str) -> (Desk, Server) {
    let desk = Desk::new();
    let file = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "[provider]\ntries = 1\n").unwrap();
    let server = Server::answering(move |_, body| match body["model"] == only {
        true => Answer::text("Done."),
        false => Answer::status(529, "overloaded_error", "Overloaded"),
    });
    (desk, server)
}

fn models(server: &Server) -> Vec<String> {
    let all = server.requests();
    all.iter().map(|seen| seen.body["model"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn an_overloaded_model_gives_its_turn_to_the_fallback_model_and_says_so() {
    let (desk, server) = desk("claude-haiku-4-5");
    let flags = ["-p", "Go.", "--model", "claude-sonnet-5-5"];
    let ran = run(desk.with_server(&server, &flags));
    assert_ne!(ran.code, 0, "without one the turn fails: {}", ran.err);
    let all = [&flags[..], &["--fallback-model", "claude-haiku-4-5"]].concat();
    let ran = run(desk.with_server(&server, &all));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
    assert!(ran.err.contains("claude-sonnet-5-5 does not answer"), "{}", ran.err);
    assert!(ran.err.contains("goes on with the fallback model claude-haiku-4-5"), "{}", ran.err);
    let asked = models(&server);
    assert_eq!(asked, ["claude-sonnet-5-5", "claude-sonnet-5-5", "claude-haiku-4-5"]);
    let journals = std::fs::read_dir(desk.state().join("sessions")).unwrap().flatten();
    let records =
        journals.map(|dir| std::fs::read_to_string(dir.path().join("journal.jsonl")).unwrap());
    let changed = records.filter(|text| text.contains("fallback model")).count();
    assert_eq!(changed, 1, "the change is on record");
}

#[test]
fn a_fallback_model_that_is_overloaded_too_ends_the_turn() {
    let (desk, server) = desk("another");
    let flags =
        ["-p", "Go.", "--model", "claude-sonnet-5-5", "--fallback-model", "claude-haiku-4-5"];
    let ran = run(desk.with_server(&server, &flags));
    assert_ne!(ran.code, 0, "{}", ran.err);
    assert_eq!(models(&server), ["claude-sonnet-5-5", "claude-haiku-4-5"], "each once");
}
