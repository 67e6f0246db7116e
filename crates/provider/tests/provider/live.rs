//! The provider against a server that refuses what the real one refuses, over real sockets.

use super::anthropic::vendor::Vendor;
use super::anthropic::{Answer, Server, call, half_a_call, text, thinking};
use super::support::{
    Whole, ask, ask_in, call_block, request, results, runtime, setup, text_block, user, whole,
};
use protocol::content::{ContentBlock, Message, MessageRole, ModelRequest, StopReason};
use protocol::provider::{Api, Auth, FromProvider, ProviderFailure, ProviderTimeouts};
use provider::{Provider, ProviderSetup};
use std::time::{Duration, Instant};

fn asked(answers: impl IntoIterator<Item = Answer>) -> (Whole, Server) {
    let server = Server::scripted(answers);
    let mut provider = Provider::new(setup(&server.url()));
    let answer = whole(&ask(&mut provider, &request(1, vec![user("hi")])));
    (answer, server)
}

fn says(text: &str) -> Whole {
    Whole { blocks: vec![text_block(text)], stop: Some(StopReason::EndTurn), ..Whole::default() }
}

/// No clock of the provider's strikes in a test, however slow the machine is.
fn patient(url: &str) -> ProviderSetup {
    let hour = 3_600_000;
    let patience = ProviderTimeouts {
        byte_timeout_ms: hour,
        progress_timeout_ms: hour,
        ..super::support::PATIENCE
    };
    ProviderSetup { patience, ..setup(url) }
}

async fn until_asked(server: &Server) {
    while server.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The parts that make a good answer despite a broken attempt before it.
fn after_retry(broken: Answer) -> (String, Server) {
    let (answer, server) = asked([broken, Answer::text("whole")]);
    assert_eq!(answer.blocks, [text_block("whole")]);
    assert_eq!((answer.retries.len(), server.requests().len()), (1, 2));
    (answer.retries[0].clone(), server)
}

#[test]
fn text_comes_through_and_the_request_is_what_the_vendor_takes() {
    let (answer, server) = asked([Answer::text("hello")]);
    assert_eq!(answer, says("hello"));
    let seen = &server.requests()[0];
    assert_eq!(seen.body["stream"], true);
    assert!(seen.body.get("thinking").is_none());
    let header = |name: &str| seen.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
    assert_eq!(header("x-api-key"), Some("sk-ant-test"));
    assert_eq!(header("accept"), Some("text/event-stream"));
    assert!(header("user-agent").unwrap().starts_with("agentd/"));
    assert!(!seen.raw.contains("sk-ant-test"));
}

#[test]
fn a_bearer_token_is_sent_as_one() {
    let server = Server::scripted([Answer::text("hello")]).with_key("sk-ant-test");
    let mut setup = setup(&server.url());
    setup.source = super::support::server(Api::Anthropic, &(server.url() + "/"), Auth::Bearer);
    let answer = whole(&ask(&mut Provider::new(setup), &request(1, vec![user("hi")])));
    assert_eq!(answer, says("hello"));
}

#[test]
fn a_conversation_with_thinking_and_parallel_calls_over_one_connection() {
    let server = Server::scripted([
        Answer::says([
            thinking("hm \"é\"\n", "EqQB+/=="),
            text("I look."),
            call("toolu_1", "read", r#"{"path": "a"}"#),
            call("toolu_2", "read", r#"{"path": "é"}"#),
            call("toolu_3", "read", ""),
        ]),
        Answer::text("done"),
    ]);
    let mut provider = Provider::new(setup(&server.url()));
    runtime().block_on(async {
        let first = whole(&ask_in(&mut provider, &request(1, vec![user("go")])).await);
        assert_eq!(first.stop, Some(StopReason::ToolUse));
        assert!(matches!(first.blocks[0], ContentBlock::Thinking { .. }));
        assert_eq!(
            first.blocks[1..],
            [
                text_block("I look."),
                call_block("toolu_1", "read", r#"{"path": "a"}"#),
                call_block("toolu_2", "read", r#"{"path": "é"}"#),
                call_block("toolu_3", "read", "{}"),
            ]
        );
        let messages = vec![
            user("go"),
            Message { role: MessageRole::Assistant, blocks: first.blocks },
            results(&[("toolu_1", "A", false), ("toolu_2", "", true), ("toolu_3", "", false)]),
        ];
        // The end of the body is read aside, while the calls run.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let second = whole(&ask_in(&mut provider, &request(2, messages)).await);
        assert_eq!(second, says("done"));
    });
    assert_eq!(server.connections(), 1, "the connection is used again");
}

#[test]
fn thinking_that_a_model_takes_back_no_more_is_left_out_from_then_on() {
    const REFUSED: &str = "messages.1.content.0: Invalid `signature` in `thinking` block. The block \
                           is bound to a different conversation. Remove the block, or set \
                           `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".";
    let refusal = || Answer::status(400, "invalid_request_error", REFUSED);
    let server = Server::scripted([
        Answer::text("a"),
        refusal(),
        Answer::text("b"),
        Answer::text("c"),
        refusal(),
    ]);
    let mut provider = Provider::new(setup(&server.url()));
    let mut logged = 0;
    let mut answered = |round| {
        let model = "claude-opus-4-6".to_owned();
        let request = ModelRequest { model, ..request(round, vec![user("go")]) };
        let mut words = ask(&mut provider, &request);
        let all = words.len();
        words.retain(|word| !matches!(word, FromProvider::Notice { .. }));
        logged += all - words.len();
        whole(&words)
    };
    for (round, words) in [(1, "a"), (2, "b"), (3, "c")] {
        assert_eq!(answered(round), says(words));
    }
    let asked = server.requests();
    let left_out: Vec<(bool, bool)> = asked
        .iter()
        .map(|seen| {
            let beta =
                ("anthropic-beta".to_owned(), "thinking-binding-controls-2026-08-01".to_owned());
            let behavior = &seen.body["thinking"]["block_binding"]["prefix_mismatch_behavior"];
            (behavior == "drop_block", seen.headers.contains(&beta))
        })
        .collect();
    assert_eq!(left_out, [(false, false), (false, false), (true, true), (true, true)]);
    // Refused all the same, it is not asked again and again.
    let (kind, words) = answered(4).failed.unwrap();
    assert_eq!(kind, ProviderFailure::BadRequest);
    assert!(words.contains("bound to a different conversation"), "{words}");
    assert_eq!(server.requests().len(), 5);
    assert_eq!(logged, 1);
}

#[test]
fn what_the_server_refuses_is_said_in_its_words() {
    // Positive control of the server's rules: the same without its result is refused.
    let server = Server::scripted([
        Answer::says([thinking("hm", "sig"), call("toolu_1", "read", "{}")]),
        Answer::text("unreached"),
    ]);
    let mut provider = Provider::new(setup(&server.url()));
    let first = whole(&ask(&mut provider, &request(1, vec![user("go")])));
    let with = |blocks: Vec<ContentBlock>, last: Message| {
        request(2, vec![user("go"), Message { role: MessageRole::Assistant, blocks }, last])
    };
    let done = results(&[("toolu_1", "A", false)]);
    let mut forged = first.blocks.clone();
    forged[0] = ContentBlock::Thinking {
        text: String::new(),
        raw: r#"{"type":"thinking","thinking":"hm","signature":"other"}"#.into(),
    };
    let cases = [
        (
            with(first.blocks.clone(), user("and?")),
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
        ),
        (
            with(vec![text_block("no call")], done.clone()),
            "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
        ),
        (
            with(forged, done.clone()),
            "messages.1.content.0: Invalid `signature` in `thinking` block",
        ),
        (
            with(first.blocks[1..].to_vec(), done),
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`",
        ),
    ];
    for (request, words) in cases {
        let (kind, message) = whole(&ask(&mut provider, &request)).failed.unwrap();
        assert_eq!(kind, ProviderFailure::BadRequest);
        assert!(message.contains(words), "{message}");
        assert!(message.contains("(request id req_test)"), "{message}");
    }
    assert_eq!(server.requests().len(), 5, "no retry");
}

#[test]
fn a_call_cut_by_max_tokens_is_not_whole() {
    let (answer, _) = asked([Answer::says([text("I"), half_a_call("t", "read", "{\"pa")])]);
    assert_eq!(answer.blocks, [text_block("I")]);
    assert_eq!(answer.stop, Some(StopReason::MaxTokens));
}

#[test]
fn two_mebibytes_arrive_whole_in_few_words() {
    let words: Vec<_> = (0..2048).map(|n| text(&format!("{n:04}{}", "x".repeat(1020)))).collect();
    let server = Server::scripted([Answer::says(words)]);
    let mut provider = Provider::new(setup(&server.url()));
    let said = ask(&mut provider, &request(1, vec![user("hi")]));
    let answer = whole(&said);
    assert_eq!(answer.blocks.len(), 2048);
    for (n, block) in answer.blocks.iter().enumerate() {
        let ContentBlock::Text { text } = block else { panic!("{block:?}") };
        assert!(text.starts_with(&format!("{n:04}")) && text.len() == 1024);
    }
    // One long block in small pieces: words are joined by what one read brought.
    let long = Answer::says([text(&"é".repeat(1 << 20))]);
    let (answer, _) = asked([long]);
    assert_eq!(answer.blocks, [text_block(&"é".repeat(1 << 20))]);
}

#[test]
fn bytes_may_be_split_anywhere() {
    let answer = || Answer::says([text("né"), call("t", "read", "{\"path\":\"ü\"}")]);
    for piece in [1, 2, 3, 7, 64] {
        let server = Server::scripted([answer().in_pieces_of(piece)]);
        let mut provider = Provider::new(patient(&server.url()));
        let answer = whole(&ask(&mut provider, &request(1, vec![user("hi")])));
        assert_eq!(
            answer.blocks,
            [text_block("né"), call_block("t", "read", "{\"path\":\"ü\"}")],
            "pieces of {piece}"
        );
    }
    let (answer, _) = asked([answer().preceded_by(b"\xef\xbb\xbf: PROCESSING\r\n\r\n")]);
    assert_eq!(answer.blocks.len(), 2);
}

#[test]
fn chunks_that_have_come_are_taken_up_together() {
    const WORDS: usize = 3_000;
    // Each event in chunks of its own, all of them in few writes.
    let answer = Vendor::Anthropic.repeats("so it is ", WORDS);
    let server = Server::scripted([answer.in_pieces_of(50).in_writes_of(256 << 10)]);
    let mut provider = Provider::new(patient(&server.url()));
    let said = ask(&mut provider, &request(1, vec![user("hi")]));
    assert_eq!(whole(&said).blocks, [text_block(&"so it is ".repeat(WORDS))]);
    assert!(said.len() < WORDS / 10, "{} updates", said.len());
}

#[test]
fn nothing_of_a_broken_stream_is_left() {
    let half = || Answer::says([text("half"), call("t", "read", "{}")]);
    let length = half().len();
    let (reason, _) = after_retry(half().cut_after(length - 40));
    assert!(reason.starts_with("the stream broke: "), "{reason}");
    let last = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n".len();
    let (reason, _) = after_retry(half().ended_after(length - last));
    assert_eq!(reason, "the stream ended before the answer did (request id req_stream)");
    let (reason, _) = after_retry(Answer::says([]).ended_after(0));
    assert_eq!(reason, "the server answered with an empty body (request id req_stream)");
    let (reason, _) = after_retry(Answer::fails_after([text("half")], "overloaded_error", "Busy"));
    assert_eq!(
        reason,
        "the server broke off its answer: overloaded_error: Busy (request id req_stream)"
    );
    let (reason, _) = after_retry(Answer::raw(200, "text/html; a", b"<html>sign in</html>"));
    assert_eq!(
        reason,
        "the server answered 200: an HTML page (is the base URL right?), \
         which is no stream of events"
    );
    let json = br#"{"error":{"type":"api_error","message":"try later"}}"#;
    let (reason, _) = after_retry(Answer::raw(200, "application/json", json));
    assert_eq!(
        reason,
        "the server answered 200: api_error: try later, which is no stream of events"
    );
    let unmarked = Answer::raw(200, "application/octet-stream", b"<html>sign in</html>");
    let (reason, _) = after_retry(unmarked);
    assert_eq!(reason, "the stream ended before the answer did");
}

#[test]
fn a_silent_stream_is_broken_by_the_byte_clock_and_pings_do_not_stop_the_other() {
    let stalled = Answer::text("half").stalled_after(300, Duration::from_secs(2));
    let (reason, _) = after_retry(stalled);
    assert_eq!(
        reason,
        "the server sent nothing for 0.4 s (provider.byte_timeout) (request id req_stream)"
    );
    let pings = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
    let pinging = Answer::raw(200, "text/event-stream", pings.repeat(100).as_bytes())
        .in_pieces_of(pings.len())
        .paced(Duration::from_millis(20));
    let server = Server::scripted([pinging, Answer::text("whole")]);
    let mut provider = Provider::new(setup(&server.url()));
    let answer = whole(&ask(&mut provider, &request(1, vec![user("hi")])));
    assert_eq!(
        answer.retries,
        ["the stream made no progress for 0.9 s (provider.progress_timeout)"]
    );
    assert_eq!(answer.blocks, [text_block("whole")]);
}

#[test]
fn a_body_left_open_after_the_end_holds_nobody_up() {
    let server = Server::scripted([Answer::text("one").left_open(), Answer::text("two")]);
    // One that waited for the body's end would wait that long.
    let mut provider = Provider::new(patient(&server.url()));
    let begun = Instant::now();
    runtime().block_on(async {
        for (round, words) in [(1, "one"), (2, "two")] {
            let answer = whole(&ask_in(&mut provider, &request(round, vec![user("hi")])).await);
            assert_eq!(answer, says(words));
        }
    });
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(server.connections(), 2, "an open body keeps its connection");
}

#[test]
fn a_refused_key_is_not_tried_again() {
    let server = Server::scripted([Answer::text("no")]).with_key("another");
    let mut provider = Provider::new(setup(&server.url()));
    let answer = whole(&ask(&mut provider, &request(1, vec![user("hi")])));
    let (kind, words) = answer.failed.unwrap();
    assert_eq!(kind, ProviderFailure::KeyRefused);
    assert_eq!(
        words,
        "the server answered 401: authentication_error: invalid x-api-key (request id req_test). \
         Check that the key is valid for this server and model"
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_servers_wait_is_obeyed_up_to_the_limit() {
    let busy =
        |wait| Answer::status(429, "rate_limit_error", "Slow down").header("retry-after-ms", wait);
    let server = Server::scripted([busy("200"), Answer::text("whole")]);
    let mut patient = setup(&server.url());
    patient.patience.max_wait_ms = 1000;
    let said = ask(&mut Provider::new(patient), &request(1, vec![user("hi")]));
    // Half a second less at most a quarter is the wait of our own, and longer than the server's.
    let FromProvider::Retrying { attempt: 2, of: 3, wait_ms: 375..=500, .. } = &said[0] else {
        panic!("{said:?}")
    };
    let seen = server.requests();
    assert!(seen[1].first_byte - seen[0].first_byte >= Duration::from_millis(200));
    assert_eq!(whole(&said).blocks, [text_block("whole")]);

    let (answer, server) = asked([busy("3600000")]);
    let (kind, words) = answer.failed.unwrap();
    assert_eq!(kind, ProviderFailure::Overloaded);
    assert!(words.contains("it asks for a wait of 1 h, longer than the limit"), "{words}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn five_hundreds_are_tried_again_and_then_given_up() {
    let gone = || Answer::raw(502, "text/html", b"<html>Bad gateway</html>");
    let (answer, server) = asked([gone(), gone(), gone(), Answer::text("too late")]);
    let (kind, words) = answer.failed.unwrap();
    assert_eq!(kind, ProviderFailure::Unreachable);
    assert!(words.contains("502: an HTML page"), "{words}");
    assert!(words.contains("gave up after 3 tries"), "{words}");
    assert_eq!((answer.retries.len(), server.requests().len()), (2, 3));
}

#[test]
fn redirects_are_not_followed() {
    let moved = Answer::raw(307, "text/plain", b"").header("location", "http://127.0.0.1:1/");
    let (answer, server) = asked([moved]);
    let (kind, words) = answer.failed.unwrap();
    assert_eq!(kind, ProviderFailure::Rejected);
    assert!(words.contains("it points to http://127.0.0.1:1/"), "{words}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_port_where_nobody_listens() {
    let mut provider = Provider::new(setup("http://127.0.0.1:1"));
    let answer = whole(&ask(&mut provider, &request(1, vec![user("hi")])));
    let (kind, words) = answer.failed.unwrap();
    assert_eq!((kind, answer.retries.len()), (ProviderFailure::Unreachable, 2));
    assert!(words.starts_with("cannot connect to 127.0.0.1:1: Connection refused"), "{words}");
    assert!(words.contains("gave up after 3 tries"), "{words}");
}

#[test]
fn what_is_wrong_with_the_setup_is_said_at_each_request() {
    let failed = |setup| {
        let mut provider = Provider::new(setup);
        ask(&mut provider, &request(1, vec![user("hi")]));
        whole(&ask(&mut provider, &request(2, vec![user("hi")]))).failed.unwrap()
    };
    let mut no_key = setup("http://127.0.0.1:1");
    no_key.key = None;
    let (kind, words) = failed(no_key);
    assert_eq!(kind, ProviderFailure::NoKey);
    assert!(words.starts_with("no key was given. Set the variable"), "{words}");
    for url in ["", "api.anthropic.com", "ftp://host", "http://"] {
        let (kind, words) = failed(setup(url));
        assert_eq!(kind, ProviderFailure::Rejected);
        assert!(words.starts_with(&format!("the base URL `{url}` is no http")), "{words}");
    }
}

#[test]
fn a_proxy_is_asked_in_place_of_the_server() {
    let proxy = Server::scripted([Answer::text("unreached")]);
    let mut setup = setup("http://model.invalid");
    setup.proxy = Some(proxy.url());
    let answer = whole(&ask(&mut Provider::new(setup), &request(1, vec![user("hi")])));
    // The server takes no absolute form, which shows that it was spoken to as a proxy.
    assert!(answer.failed.unwrap().1.contains("the server answered 404"));
    assert_eq!(proxy.requests().len(), 1);
}

#[test]
fn a_proxy_that_is_down_is_named_without_its_password() {
    let mut setup = setup("https://model.invalid");
    setup.patience.tries = 1;
    setup.proxy = Some("http://ann:s3cret@127.0.0.1:1".to_owned());
    let answer = whole(&ask(&mut Provider::new(setup), &request(1, vec![user("hi")])));
    let (kind, words) = answer.failed.unwrap();
    assert_eq!(kind, ProviderFailure::Unreachable);
    let named = "cannot connect to model.invalid:443 through the proxy http://127.0.0.1:1: ";
    assert!(words.contains(named) && !words.contains("s3cret"), "{words}");
}

#[test]
fn dropped_half_way_the_connection_goes_too() {
    let slow = Answer::text("half").stalled_after(300, Duration::from_secs(40));
    let server = Server::scripted([slow, Answer::text("next")]);
    let mut provider = Provider::new(patient(&server.url()));
    runtime().block_on(async {
        let first = request(1, vec![user("hi")]);
        let mut ignore = |_| {};
        tokio::select! {
            answer = provider.answer(&first, &mut ignore) => panic!("{answer:?}"),
            () = until_asked(&server) => {}
        }
        provider.cancelled();
        let next = whole(&ask_in(&mut provider, &request(2, vec![user("hi")])).await);
        assert_eq!(next, says("next"));
    });
    assert_eq!(server.connections(), 2);
}
