//! The fallback model takes over where a server is overloaded, and people and the journal learn of it.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server};
use crate::support::daemon::Wire;
use crate::support::{Desk, run};
use protocol::client::{ClientEvent, FromClient, SettingChange};
use std::time::Duration;

/// A desk with one try for each request.
fn desk_with(models: &str) -> Desk {
    let desk = Desk::new();
    let file = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, format!("[provider]\ntries = 1\n{models}")).unwrap();
    desk
}

/// A server where every model but this is overloaded.
fn server(only: &'static str) -> Server {
    Server::answering(move |_, body| match body["model"] == only {
        true => Answer::text("Done."),
        false => Answer::status(529, "overloaded_error", "Overloaded"),
    })
}

fn desk(only: &'static str) -> (Desk, Server) {
    (desk_with(""), server(only))
}

fn journals(desk: &Desk) -> String {
    let all = std::fs::read_dir(desk.state().join("sessions")).unwrap().flatten();
    all.map(|dir| std::fs::read_to_string(dir.path().join("journal.jsonl")).unwrap()).collect()
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
    assert_eq!(journals(&desk).matches("fallback model").count(), 1, "the change is on record");
}

#[test]
fn a_fallback_model_that_is_overloaded_too_ends_the_turn() {
    let (desk, server) = desk("another");
    let flags =
        ["-p", "Go.", "--model", "claude-sonnet-5-5", "--fallback-model", "claude-haiku-4-5"];
    let ran = run(desk.with_server(&server, &flags));
    assert_ne!(ran.code, 0, "{}", ran.err);
    assert_eq!(models(&server), ["claude-sonnet-5-5", "claude-haiku-4-5"], "each once");
    assert!(ran.err.contains("does not answer either"), "{}", ran.err);
    assert!(ran.err.contains("this session is back on claude-sonnet-5-5"), "{}", ran.err);
    let journal = journals(&desk);
    let back = journal.lines().rfind(|line| line.contains("fallback model failed")).unwrap();
    assert!(back.contains("claude-sonnet-5-5"), "{back}");
    // The session goes on with its own model.
    let ran = run(desk.with_server(&server, &["-c", "-p", "Again.", "--fallback-model", "none"]));
    assert_ne!(ran.code, 0, "{}", ran.err);
    assert_eq!(models(&server).last().unwrap(), "claude-sonnet-5-5");
}

#[test]
fn a_server_that_does_not_answer_is_not_asked_for_another_model_and_another_server_is() {
    let other = server("away-model");
    let desk = desk_with(&format!(
        "[models.main]\nmodel = 'main-model'\n[models.away]\nmodel = 'away-model'\nbase_url = '{}'\n",
        other.url()
    ));
    let broken = Server::answering(|_, _| Answer::status(500, "api_error", "broken"));
    let flags = |fallback| ["-p", "Go.", "--model", "main", "--fallback-model", fallback];
    let ran = run(desk.with_server(&broken, &flags("claude-haiku-4-5")));
    assert_ne!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("it is on the same server"), "{}", ran.err);
    assert_eq!(models(&broken), ["main-model"]);
    assert!(!journals(&desk).contains("fallback model"));
    let ran = run(desk.with_server(&broken, &flags("away")));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
    assert!(ran.err.contains("`:model main` goes back"), "{}", ran.err);
    assert_eq!(models(&other), ["away-model"]);
}

#[test]
fn a_model_that_a_person_chose_meanwhile_comes_before_the_fallback_model() {
    let desk = desk_with("");
    let server = Server::answering(|_, body| match body["model"] == "claude-sonnet-5-5" {
        true => {
            std::thread::sleep(Duration::from_secs(2));
            Answer::status(529, "overloaded_error", "Overloaded")
        }
        false => Answer::text("Done."),
    });
    let _daemon = desk.daemon();
    let mut opening = desk.opening(&server);
    let set = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    opening.settings.push(set("provider.model", "claude-sonnet-5-5"));
    opening.settings.push(set("provider.fallback_model", "claude-haiku-4-5"));
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&opening);
    wire.prompt(&session, "Go.");
    std::thread::sleep(Duration::from_millis(700));
    let change = SettingChange::Model("claude-opus-4-5".to_owned());
    wire.say(FromClient::Change { session: session.clone(), change });
    wire.event("the request is sent again", |event| match event {
        ClientEvent::Struck { reason, next: _ } => reason.contains("does not answer").then_some(()),
        _ => None,
    });
    wire.turn_ends();
    assert_eq!(models(&server), ["claude-sonnet-5-5", "claude-opus-4-5"]);
    assert!(!journals(&desk).contains("fallback model"));
}

#[test]
fn a_fallback_model_that_sees_no_images_gets_no_request_with_one() {
    let table = |name: &str, vision: bool| {
        format!("[models.{name}]\nmodel = '{name}-model'\nvision = {vision}\n")
    };
    let tables = [("main", true), ("blind", false), ("seeing", true)];
    let tables: String = tables.map(|(name, vision)| table(name, vision)).concat();
    let desk = desk_with(&tables);
    let picture = image::RgbImage::from_pixel(12, 8, image::Rgb([1, 2, 3]));
    picture.save(desk.project().join("shot.png")).unwrap();
    let asks = |server: &Server, fallback: &str, prompt: &str| {
        let flags = ["-p", prompt, "--model", "main", "--fallback-model", fallback];
        run(desk.with_server(server, &flags))
    };
    let blind = server("blind-model");
    let ran = asks(&blind, "blind", "See @shot.png");
    assert_ne!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("blind cannot be used: the request shows images"), "{}", ran.err);
    assert_eq!(models(&blind), ["main-model"]);
    assert_eq!(asks(&blind, "blind", "Go.").code, 0, "without an image it is used");
    let seeing = server("seeing-model");
    let ran = asks(&seeing, "seeing", "See @shot.png");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(seeing.requests()[1].raw.contains("image/png"));
}
