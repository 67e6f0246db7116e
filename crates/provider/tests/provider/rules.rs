//! The tests' own server refuses what the real one refuses, in its words, and takes what it takes.

use super::anthropic::{Answer, Server};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

const HEADERS: &str =
    "x-api-key: k\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n";

/// Status and body of the answer to a request made by hand.
fn post(server: &Server, line: &str, headers: &str, body: &Value) -> String {
    let address = server.url().replace("http://", "");
    let mut socket = TcpStream::connect(address).unwrap();
    let body = body.to_string();
    let length = body.len();
    write!(socket, "{line} HTTP/1.1\r\n{headers}content-length: {length}\r\n\r\n{body}").unwrap();
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

fn body() -> Value {
    json!({
        "model": "m", "max_tokens": 1, "stream": true,
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "read", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1"},
                {"type": "text", "text": "and"},
            ]},
        ],
    })
}

/// The good body with another value at one place; a field that was not there is added at the top.
fn with(pointer: &str, value: Value) -> Value {
    let mut body = body();
    match body.pointer_mut(pointer) {
        Some(place) => *place = value,
        None => body[&pointer[1..]] = value,
    }
    body
}

#[test]
fn a_good_request_is_taken_and_each_bad_one_refused_by_name() {
    let server = Server::answering(|_, _| Answer::text("taken"));
    let say = |body| post(&server, "POST /v1/messages", HEADERS, &body);
    let good = say(body());
    assert!(good.starts_with("HTTP/1.1 200") && good.contains("taken"), "{good}");
    let result = |id| json!([{"type": "tool_result", "tool_use_id": id}]);
    let marked = || json!({"type": "text", "text": "x", "cache_control": {}});
    let cases = [
        (with("/surprise", json!(1)), "surprise: Extra inputs are not permitted"),
        (with("/model", json!("")), "model: Field required"),
        (with("/max_tokens", json!(0)), "max_tokens: Input should be"),
        (with("/tools/0/name", json!("a b")), "tools.0.custom.name: String should match pattern"),
        (
            with("/tools/0/input_schema", json!({})),
            "tools.0.custom.input_schema.type: Input should be 'object'",
        ),
        (
            with("/tools", json!([body()["tools"][0], body()["tools"][0]])),
            "Tool names must be unique",
        ),
        (
            with("/system", json!([{"type": "text", "text": " "}])),
            "must contain non-whitespace text",
        ),
        (with("/messages", json!([])), "at least one message is required"),
        (
            with("/messages/0/role", json!("system")),
            "messages.0.role: Input should be 'user' or 'assistant'",
        ),
        (with("/messages/0/role", json!("assistant")), "first message must use the"),
        (
            with("/messages/0/content", json!("")),
            "messages.0: all messages must have non-empty content",
        ),
        (
            with("/messages/0/content", json!([{"type": "text", "text": ""}])),
            "text content blocks must be non-empty",
        ),
        (
            with("/messages/1/content/0/input", json!("{}")),
            "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
        ),
        (
            with("/messages/2/content", json!("and?")),
            "`tool_use` ids were found without `tool_result` blocks immediately after: t1",
        ),
        (
            with("/messages/1/content", json!("no call")),
            "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t1",
        ),
        (
            with(
                "/messages/2/content",
                json!([{"type": "text", "text": "first"}, {"type": "tool_result", "tool_use_id": "t1"}]),
            ),
            "without `tool_result` blocks immediately after: t1",
        ),
        (
            with("/messages/2/content/1", result("t1")[0].clone()),
            "each tool_use must have a single result",
        ),
        (
            with(
                "/messages/2/content/0",
                json!({"type": "tool_result", "tool_use_id": "t1", "is_error": true}),
            ),
            "content cannot be empty if `is_error` is true",
        ),
        (
            with("/messages/2", json!({"role": "assistant", "content": "prefill"})),
            "does not support assistant message prefill",
        ),
        (
            with(
                "/messages/0/content",
                json!([{"type": "thinking", "thinking": "x", "signature": "s"}]),
            ),
            "`thinking` blocks are not permitted in user messages",
        ),
        (
            with("/messages/0/content", json!([marked(), marked(), marked(), marked()])),
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        ),
    ];
    for (body, words) in cases {
        let answer = say(body);
        assert!(answer.starts_with("HTTP/1.1 400"), "{words}: {answer}");
        assert!(answer.contains("\"invalid_request_error\""), "{answer}");
        let plain = answer.replace("\\\"", "\"");
        assert!(plain.contains(words), "wanted {words}, got {answer}");
    }
    let four = with("/messages/0/content", json!([marked(), marked(), marked()]));
    assert!(say(four).starts_with("HTTP/1.1 200"));
    let accepted = server.requests().iter().filter(|seen| seen.refused.is_none()).count();
    assert_eq!(accepted, 2);
}

#[test]
fn the_head_is_looked_at_too() {
    let server = Server::answering(|_, _| Answer::text("taken")).with_key("k");
    let say =
        |line: &str, from: &str, to: &str| post(&server, line, &HEADERS.replace(from, to), &body());
    let cases = [
        ("POST /v1/messages", "x-api-key: k", "x-api-key: k", "200"),
        ("POST /v1/messages", "x-api-key: k", "authorization: Bearer k", "200"),
        ("POST /v1/messages", "x-api-key: k\r\n", "", "401"),
        ("POST /v1/messages", "x-api-key: k", "x-api-key: l", "401"),
        ("POST /v1/messages", "anthropic-version: 2023-06-01\r\n", "", "400"),
        ("POST /v1/messages", "application/json", "text/plain", "400"),
        ("POST /v1/complete", "", "", "404"),
        ("GET /v1/messages", "", "", "404"),
    ];
    for (line, from, to, status) in cases {
        let answer = say(line, from, to);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{line} {to}: {answer}");
    }
}
