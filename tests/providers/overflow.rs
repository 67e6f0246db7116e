//! A conversation that is too long, in the words of vendors and servers: it is made shorter and goes on. Words that
//! agentd does not know are taken for that once, where the conversation is long.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::vendor::Vendor;
use crate::support::anthropic::{Answer, Server, call, text};
use crate::support::{Desk, Run, run};
use serde_json::json;

/// A call with a long result.
fn long(vendor: Vendor) -> Answer {
    vendor.says([call("call_1", "bash", &json!({"command": "seq 1 4000"}).to_string())])
}

fn json_error(status: u16, body: &serde_json::Value) -> Answer {
    Answer::raw(status, "application/json", body.to_string().as_bytes())
}

/// A turn with these answers; the run, and how many requests there were.
fn turn(vendor: Vendor, answers: Vec<Answer>) -> (Desk, Run, usize) {
    let desk = Desk::new();
    let server = Server::of(vendor, answers);
    let ran = run(desk.with_vendor(vendor, &server, &["-p", "go", "--permission-mode", "auto"]));
    let requests = server.requests();
    assert!(requests.iter().all(|seen| seen.refused.is_none()), "{}", ran.err);
    (desk, ran, requests.len())
}

#[test]
fn every_server_s_words_for_a_full_context_make_the_conversation_shorter() {
    let message =
        |words: &str| json!({"error": {"message": words, "type": "invalid_request_error"}});
    let refusals = [
        json_error(
            400,
            &json!({"code": "Client specified an invalid argument", "error":
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens."}),
        ),
        json_error(400, &message("the input length exceeds the context length")),
        json_error(500, &message("prompt too long; exceeded max context length by 12 tokens")),
        json_error(
            400,
            &json!({"object": "error", "type": "BadRequestError", "code": 400, "message":
            "You passed 9001 input tokens. However, the model's context length is only 8192 tokens"}),
        ),
        json_error(
            400,
            &json!({"error": "The number of tokens to keep from the initial prompt is greater than the context length"}),
        ),
        json_error(
            400,
            &json!({"error": {"code": "model_max_prompt_tokens_exceeded", "message": "Too long."}}),
        ),
        json_error(
            400,
            &message("Your request exceeded model token limit: 262144 (requested: 291351)"),
        ),
        json_error(
            400,
            &json!({"error": {"code": "1261", "message": "Prompt exceeds max length"}}),
        ),
        json_error(413, &json!({"error": {"message": "Payload too large"}})),
        Answer::raw(413, "text/html", b"<html><h1>413 Request Entity Too Large</h1></html>"),
        Answer::raw(413, "text/plain", b""),
    ];
    for refusal in refusals {
        let vendor = Vendor::Chat;
        let (_, ran, requests) =
            turn(vendor, vec![long(vendor), refusal.clone(), vendor.text("done")]);
        let refusal = refusal.body();
        assert_eq!(
            (ran.code, ran.out.as_str(), requests),
            (0, "done\n", 3),
            "{refusal}: {}",
            ran.err
        );
    }
    let vendor = Vendor::Anthropic;
    let refusal = json_error(
        400,
        &json!({"type": "error", "error": {"type": "invalid_request_error",
        "message": "prompt too long; exceeded max context length by 12 tokens"}}),
    );
    let (_, ran, requests) = turn(vendor, vec![long(vendor), refusal, vendor.text("done")]);
    assert_eq!((ran.code, requests), (0, 3), "{}", ran.err);
}

#[test]
fn a_long_conversation_that_is_refused_in_unknown_words_is_cut_and_asked_once_more() {
    let vendor = Vendor::Chat;
    let refused = || vendor.status(400, "Something about the request is not right.");
    let (_, ran, requests) = turn(vendor, vec![long(vendor), refused(), vendor.text("done")]);
    assert_eq!((ran.code, requests), (0, 3), "{}", ran.err);
    assert!(ran.err.contains("asked once more without the oldest messages"), "{}", ran.err);
    // It is no loop, and the session is of use afterwards.
    let (desk, ran, requests) = turn(vendor, vec![long(vendor), refused(), refused()]);
    assert_eq!((ran.code, requests), (1, 3), "{}", ran.err);
    let server = Server::of(vendor, [vendor.text("more")]);
    let ran = run(desk.with_vendor(vendor, &server, &["-p", "on", "-c"]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "more\n"), "{}", ran.err);
    // A short one is not too long.
    let (_, ran, requests) = turn(vendor, vec![vendor.says([text("x")]), refused()]);
    assert_eq!((ran.code, requests), (0, 1), "{}", ran.err);
    let (_, ran, requests) = turn(vendor, vec![refused()]);
    assert_eq!((ran.code, requests), (1, 1), "{}", ran.err);
}
