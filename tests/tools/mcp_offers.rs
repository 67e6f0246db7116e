//! Resources and prompts of MCP servers in a person's prompt.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::mcp::{asks, desk, server};
use crate::support::anthropic::{Answer, Server};
use crate::support::daemon::Wire;
use crate::support::{Desk, Run, run, until};
use protocol::client::{ClientEvent, FromClient, SessionQuery, ToClient};
use protocol::judgement::PermissionMode;
use serde_json::{Value, json};

/// A script with this prompt, and the model's first request.
fn script(desk: &Desk, prompt: &str) -> (Run, Vec<Value>) {
    let model = Server::scripted([Answer::text("Done.")]);
    let ran = run(desk.with_server(&model, &["-p", prompt]));
    let requests = model.requests().into_iter().map(|request| request.body["messages"].clone());
    (ran, requests.collect())
}

/// The calls that were made for the prompt, by their outcomes.
fn calls(desk: &Desk) -> Vec<String> {
    let records = desk.audit().into_iter();
    let ended = records.filter(|it| it["event"] == "ended" && it["tool"] == "mcp");
    ended.map(|it| it["outcome"].to_string()).collect()
}

#[test]
fn a_resource_in_a_prompt_is_read_by_its_server_and_recorded_in_both_eras() {
    for habit in ["", ", \"modern\""] {
        let desk = desk(&server(habit));
        let (ran, requests) = script(&desk, "Read @test:note://a and @test:pic://p.png, please.");
        assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{habit}: {}", ran.err);
        let blocks = requests[0][0]["content"].as_array().unwrap();
        let shown: String = blocks.iter().map(ToString::to_string).collect();
        assert!(shown.contains("Read @test:note://a"), "{habit}: {shown}");
        assert!(shown.contains("[@test:note://a]\\nAlpha note of note://a"), "{habit}: {shown}");
        assert!(blocks.iter().any(|block| block["type"] == "image"), "{habit}: {shown}");
        assert_eq!(calls(&desk).len(), 2, "{habit}: {:?}", calls(&desk));
    }
}

#[test]
fn an_unknown_server_or_resource_is_an_error_before_the_prompt_is_sent() {
    let desk = desk(&server(""));
    for (prompt, words) in [
        ("See @test:note://b", "no resource note://b; it has @test:note://a, @test:pic://p.png"),
        ("See @nope:note://a", "there is no MCP server nope; this session has test"),
        ("/mcp__nope__greet", "there is no MCP server nope"),
        ("/mcp__test__other", "no prompt other; it has /mcp__test__greet"),
        ("/mcp__test__greet", "needs who; its arguments are: who, how"),
    ] {
        let (ran, requests) = script(&desk, prompt);
        assert_ne!(ran.code, 0, "{prompt}");
        assert!(ran.err.contains(words), "{prompt}: {}", ran.err);
        assert_eq!(requests.len(), 0, "{prompt}");
    }
    // The control: a word that is no address of a server is text.
    let (ran, requests) = script(&desk, "Ask @nope:bob about @test");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(requests[0].to_string().contains("@nope:bob about @test"));
    // A server with templates has more than it lists.
    let desk = crate::mcp::desk(&server(", \"templates\""));
    let (ran, requests) = script(&desk, "See @test:odd://x");
    assert!(requests[0].to_string().contains("Alpha note of odd://x"), "{}", ran.err);
    let (ran, requests) = script(&desk, "See @test:odd://y");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(requests[0].to_string().contains("the server refused the call"), "{requests:?}");
}

#[test]
fn a_rule_that_denies_a_server_denies_its_resources() {
    let rules = "[permissions]\ndeny = [\"mcp__test\"]\n";
    let desk = desk(&format!("{rules}{}", server("")));
    let (ran, requests) = script(&desk, "See @test:note://a");
    assert!(!requests[0].to_string().contains("Alpha"), "{requests:?}");
    assert!(ran.err.contains("@test:note://a is not shown to the model"), "{}", ran.err);
}

#[test]
fn a_prompt_of_a_server_takes_words_by_position_in_both_eras() {
    for habit in ["", ", \"modern\""] {
        let desk = desk(&server(habit));
        let (ran, requests) = script(&desk, "/mcp__test__greet 'Bob B' very kindly");
        assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{habit}: {}", ran.err);
        let shown = requests[0][0]["content"].to_string();
        assert!(shown.contains("Prompt greet how=very kindly who=Bob B"), "{habit}: {shown}");
        assert!(!shown.contains("/mcp__test__greet"), "{habit}: {shown}");
        assert_eq!(calls(&desk).len(), 1, "{habit}");
    }
}

#[test]
fn a_prompt_that_a_server_has_since_it_began_is_known_in_both_eras() {
    // With the last it has it on its own, and ends the subscription that would have heard of it.
    for (habit, tool) in
        [("", "grow"), (", \"modern\"", "grow"), (", \"modern\", \"drops\"", "began")]
    {
        a_new_prompt_is_known(habit, tool);
    }
}

fn a_new_prompt_is_known(habit: &str, tool: &str) {
    let desk = desk(&server(habit));
    let grow = Answer::says([asks("toolu_1", tool, json!({}))]);
    let model = Server::scripted([grow, Answer::text("Done."), Answer::text("Done.")]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(&model);
    opening.mode = Some(PermissionMode::Auto);
    let session = wire.open(&opening);
    wire.servers_ready(&session);
    wire.prompt(&session, "go");
    wire.turn_ends();
    until("the new prompt", || {
        wire.prompt(&session, "/mcp__test__grown");
        wire.until("an answer", |word| match word {
            ToClient::Failed { .. } => Some(false),
            ToClient::Event { event: ClientEvent::TurnEnded { .. }, .. } => Some(true),
            _ => None,
        })
    });
    wire.say(FromClient::Query { session: session.clone(), query: SessionQuery::Servers });
    let words = wire.until("what the server offers", |word| match word {
        ToClient::Servers { servers, .. } => Some(servers[0].words.clone()),
        _ => None,
    });
    let typed: Vec<String> =
        words.iter().map(|it| format!("{} {}", it.text, it.arguments)).collect();
    let wanted = [
        "@test:note://a ",
        "@test:pic://p.png ",
        "/mcp__test__greet who [how]",
        "/mcp__test__grown ",
    ];
    assert_eq!(typed, wanted, "{habit}");
    assert_eq!(words[0].description, "A note.");
    let last = model.requests().last().unwrap().body["messages"].to_string();
    assert!(last.contains("Prompt grown"), "{last}");
}

#[test]
fn hidden_letters_of_results_resources_and_prompts_do_not_reach_the_model() {
    for (habit, hides) in [(", \"hides\"", true), ("", false)] {
        let desk = desk(&server(habit));
        let allow = "[permissions]\nallow = [\"mcp__test__*\"]\n";
        let file = desk.home().join(".config/agentd/config.toml");
        std::fs::write(&file, format!("{allow}{}", server(habit))).unwrap();
        let model = Server::scripted([
            Answer::says([asks("toolu_1", "echo", json!({"text": "hello"}))]),
            Answer::text("Done."),
        ]);
        let ran = run(desk.with_server(&model, &["-p", "Read @test:note://a"]));
        assert_eq!(ran.code, 0, "{habit}: {}", ran.err);
        let (_, prompt) = script(&desk, "/mcp__test__greet Ann");
        let requests = model.requests();
        let seen = [requests[1].body["messages"].to_string(), prompt[0].to_string()].concat();
        for text in ["Alpha note of note://a", "hello", "Prompt greet who=Ann"] {
            assert!(seen.contains(text), "{habit}: {text}: {seen}");
        }
        assert!(!seen.contains(['\u{202e}', '\u{e0049}', '\u{200b}']), "{habit}: {seen}");
        let notes = seen.matches("letters that show as nothing were taken out").count();
        assert_eq!(notes, if hides { 3 } else { 0 }, "{habit}: {seen}");
    }
}
