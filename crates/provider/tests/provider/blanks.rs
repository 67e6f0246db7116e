//! What a server repeats of the request's secrets stands in no text that leaves the provider.

use super::anthropic::{Answer, Server, call, text, thinking};
use super::support::{Whole, ask, call_block, request, setup, text_block, user, whole};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use protocol::provider::{FromProvider, SourceSetup};
use provider::{Provider, ProviderSetup};
use std::io::{Read, Seek};

/// As `super::support::key_file` has it.
const KEY: &str = "sk-ant-test";
const LONG: &str = "sk-ant-0123456789/+?abcdef";

fn with_key(url: &str, key: &str) -> ProviderSetup {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, key.as_bytes()).unwrap();
    ProviderSetup { key: Some(file), ..setup(url) }
}

fn words(
    setup: impl FnOnce(&str) -> ProviderSetup,
    answers: Vec<Answer>,
    key: &str,
) -> Vec<FromProvider> {
    let server = Server::scripted(answers).with_key(key);
    ask(&mut Provider::new(setup(&server.url())), &request(1, vec![user("hi")]))
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

#[test]
fn a_refusal_that_repeats_the_key_is_told_without_it() {
    let spellings = |key: &str| {
        let basic = format!("ann:{key}");
        [
            key.to_owned(),
            format!("Bearer {key}"),
            percent(key),
            STANDARD.encode(key),
            URL_SAFE_NO_PAD.encode(format!("x{key}")),
            format!("Basic {}", STANDARD.encode(basic)),
        ]
    };
    for key in [KEY, LONG] {
        for said in spellings(key) {
            let said = said.as_str();
            let plain = |body: String| Answer::raw(401, "text/plain", body.as_bytes());
            // At each place where the text is cut off.
            let cut = |room: usize| plain(format!("{}{said}{}", "y".repeat(room), "z".repeat(300)));
            let near = 300 - said.len().min(290)..300;
            let mut answers = vec![
                vec![Answer::status(401, "authentication_error", &format!("no: {said}!"))],
                vec![plain(format!("<p>no {said}")), plain(format!("no {said}"))],
                vec![plain("no".into()).header("request-id", said)],
                vec![
                    Answer::raw(302, "text/plain", b"").header("location", &format!("/?k={said}")),
                ],
                // Retries, then gives up.
                vec![
                    Answer::status(500, said, said),
                    Answer::status(529, said, said),
                    plain(said.into()),
                ],
                vec![Answer::fails_after([text("a")], said, said), plain("no".into())],
            ];
            answers.extend(near.map(|room| vec![cut(room)]));
            for answers in answers {
                let words = words(|url| with_key(url, key), answers, key);
                let told = format!("{words:?}");
                assert!(matches!(words.last(), Some(FromProvider::Failed { .. })), "{told}");
                for kept in [key, said, &said[..said.len().min(10)], &percent(key)] {
                    // The vendor's word for the scheme is no secret.
                    let kept = kept.trim_start_matches("Bearer ").trim_start_matches("Basic ");
                    assert!(kept.len() < 6 || !told.contains(kept), "{said}: {told}");
                }
            }
        }
    }
    // The positive control: what is no key stays.
    let other = vec![Answer::status(401, "authentication_error", "no: sk-ant-tesu")];
    assert!(format!("{:?}", words(setup, other, KEY)).contains("no: sk-ant-tesu"));
}

#[test]
fn an_answer_that_repeats_the_key_comes_without_it_however_it_is_cut() {
    let said = format!("a {LONG} b sk-ant-0 {}", percent(LONG));
    let input = format!(r#"{{"path":"{LONG}"}}"#);
    for bytes in [1, 2, 5, 7, 200] {
        let answer =
            Answer::says([thinking(&said, "EqQB"), text(&said), call("toolu_1", "read", &input)])
                .in_pieces_of(bytes);
        let words = words(|url| with_key(url, LONG), vec![answer], LONG);
        let told = whole(&words);
        assert_eq!(
            told.blocks[1..],
            [
                text_block("a [the key] b sk-ant-0 [the key]"),
                call_block("toolu_1", "read", r#"{"path":"[the key]"}"#)
            ],
            "pieces of {bytes}"
        );
        let told = format!("{words:?}");
        assert!(!told.contains(LONG) && !told.contains(&percent(LONG)), "{bytes}: {told}");
    }
    let short = words(setup, vec![Answer::text(&format!("x {KEY}"))], KEY);
    let kept = Whole { blocks: vec![text_block("x sk-ant-test")], ..whole(&short) };
    assert_eq!(whole(&short), kept, "a key of a word's length may be a word in an answer");
}

#[test]
fn headers_of_the_configuration_are_told_by_their_names_and_a_recording_has_neither() {
    let mut record = tempfile::tempfile().unwrap();
    let file = record.try_clone().unwrap();
    let configured = |url: &str| {
        let mut setup = with_key(url, LONG);
        let SourceSetup::Server(server) = &mut setup.source else { panic!("a server") };
        server.headers = vec![("x-gateway".into(), "Bearer gateway-token-1".into())];
        ProviderSetup { record: Some(file), ..setup }
    };
    let message = format!("neither {LONG} nor gateway-token-1");
    let answers = vec![
        Answer::status(529, "overloaded_error", &message),
        Answer::fails_after([text(&message)], "overloaded_error", &message),
        Answer::status(401, "authentication_error", &message),
    ];
    let told = format!("{:?}", words(configured, answers, LONG));
    assert_eq!(told.matches("neither [the key] nor [the header x-gateway]").count(), 4, "{told}");
    let mut recorded = String::new();
    record.rewind().unwrap();
    record.read_to_string(&mut recorded).unwrap();
    assert!(recorded.contains("neither [the key]"), "{recorded}");
    assert!(!recorded.contains(LONG) && !recorded.contains("gateway-token"), "{recorded}");
}
