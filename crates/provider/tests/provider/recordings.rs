//! A recording replays to the same words, byte for byte; where the conversation departs, it says so.

use super::anthropic::{Answer, Server, call, text, thinking};
use super::support::{ask, call_block, request, results, setup, text_block, user, whole};
use protocol::content::{ContentBlock, Message, MessageRole, ModelRequest, StopReason};
use protocol::provider::{FromProvider, ProviderFailure, ReplaySpeed, SourceSetup};
use provider::{Provider, ProviderSetup};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::time::Duration;

fn replay(file: &File) -> Provider {
    Provider::new(ProviderSetup {
        source: SourceSetup::Replay(ReplaySpeed::Full),
        key: None,
        replay: Some(file.try_clone().unwrap()),
        ..setup("")
    })
}

fn written(text: &str) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn content(file: &mut File) -> String {
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    text
}

fn conversation() -> Vec<ModelRequest> {
    let raw = r#"{"type":"thinking","thinking":"hm","signature":"s=="}"#.into();
    let said = vec![
        ContentBlock::Thinking { text: "hm".into(), raw },
        text_block("né"),
        call_block("t1", "read", r#"{"path": "a"}"#),
    ];
    let tail = [
        Message { role: MessageRole::Assistant, blocks: said },
        results(&[("t1", "at 10:32", false)]),
    ];
    let mut messages = vec![user("go")];
    let first = request(1, messages.clone());
    messages.extend(tail);
    vec![first, request(2, messages.clone()), request(3, messages)]
}

#[test]
fn a_recording_replays_to_the_same_words() {
    // So many two-byte letters that reads of seven bytes cut some of them.
    let thought =
        || [thinking("hm", "s=="), text(&"é".repeat(99)), call("t1", "read", r#"{"path": "a"}"#)];
    let whole = Answer::says(thought()).len();
    let server = Server::scripted([
        // Broken, begun again, cut inside letters, failed: everything that an answer can do.
        Answer::says(thought()).cut_after(whole - 200),
        // Slowly enough that no two are taken up together.
        Answer::says(thought()).in_pieces_of(7).paced(Duration::from_millis(3)),
        Answer::says(thought()).preceded_by(
            b"data: {\"type\":\"message_start\"}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"half\"}}\n\n",
        ),
        Answer::status(400, "invalid_request_error", "no"),
    ]);
    let mut file = tempfile::tempfile().unwrap();
    let record = Some(file.try_clone().unwrap());
    let mut live = Provider::new(ProviderSetup { record, ..setup(&server.url()) });
    let asked = conversation();
    let then: Vec<Vec<FromProvider>> =
        asked.iter().map(|request| ask(&mut live, request)).collect();
    assert!(matches!(then[0].last(), Some(FromProvider::Ended { .. })));
    let retries = |words: &[FromProvider]| {
        words.iter().filter(|word| matches!(word, FromProvider::Retrying { .. })).count()
    };
    assert_eq!(then.iter().map(|words| retries(words)).collect::<Vec<_>>(), [1, 1, 0]);
    assert!(matches!(
        then[2].last(),
        Some(FromProvider::Failed { kind: ProviderFailure::BadRequest, .. })
    ));

    let text = content(&mut file);
    assert!(text.contains("\"base64\"") && !text.contains("sk-ant-test"));
    // With other patience, and twice.
    let mut setup = setup("");
    setup.patience.tries = 1;
    setup.source = SourceSetup::Replay(ReplaySpeed::Full);
    setup.replay = Some(file);
    let mut again = Provider::new(setup);
    for _ in 0..2 {
        let now: Vec<Vec<FromProvider>> =
            asked.iter().map(|request| ask(&mut again, request)).collect();
        assert_eq!(then, now);
    }
}

#[test]
fn a_restarted_provider_goes_on_with_the_same_file_and_the_last_answer_counts() {
    let mut file = tempfile::tempfile().unwrap();
    for words in ["first", "second"] {
        let server = Server::scripted([Answer::text(words)]);
        let record = Some(file.try_clone().unwrap());
        let mut live = Provider::new(ProviderSetup { record, ..setup(&server.url()) });
        ask(&mut live, &conversation()[0]);
    }
    assert_eq!(content(&mut file).matches("agentd_recording").count(), 1);
    let answer = whole(&ask(&mut replay(&file), &conversation()[0]));
    assert_eq!(answer.blocks, [text_block("second")]);
}

#[test]
fn a_recording_answers_at_once_or_as_it_was() {
    const TIMED: &str = r#"{"agentd_recording":1}
{"request":null}
{"chunk":{"ms":70000,"text":"event: message_start\ndata: {\"type\":\"message_start\"}\n\n"}}
{"chunk":{"ms":70001,"text":"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"half\"}}\n\n"}}
{"retrying":{"ms":130000,"attempt":2,"of":5,"wait_ms":480,"reason":"silence"}}
{"failed":{"ms":3600000,"kind":"overloaded","message":"busy"}}
{"request":null}
{"chunk":{"text":"data: nothing"}}
{"retrying":{"attempt":2,"of":5,"wait_ms":480,"reason":"an older recording"}}
{"say":[{"text":"hi"}]}
"#;
    let told = |speed, round| {
        let mut provider = Provider::new(ProviderSetup {
            source: SourceSetup::Replay(speed),
            replay: Some(written(TIMED)),
            ..setup("")
        });
        // Its clock moves on only when nothing is left to do but wait, and then at once.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let begun = tokio::time::Instant::now();
            let mut told = Vec::new();
            let mut say = |word: FromProvider| told.push((begun.elapsed().as_millis(), word));
            provider.answer(&request(round, vec![user("go")]), &mut say).await;
            told
        })
    };
    let (at_once, as_it_was) = (told(ReplaySpeed::Full, 1), told(ReplaySpeed::Recorded, 1));
    let times = |told: &[(u128, FromProvider)]| told.iter().map(|(at, _)| *at).collect::<Vec<_>>();
    assert_eq!(times(&at_once), [0, 0, 0]);
    assert_eq!(times(&as_it_was), [70_001, 130_000, 3_600_000]);
    let words = |told: Vec<(u128, FromProvider)>| told.into_iter().map(|(_, word)| word);
    assert!(words(at_once).eq(words(as_it_was)));
    // Without times there is nothing to wait for.
    assert_eq!(times(&told(ReplaySpeed::Recorded, 2)).last(), Some(&0));
}

const BY_HAND: &str = r#"{"agentd_recording":1}
// Any request, answered in short.
{"request":null}
{"say":[{"thinking":"hm","signature":"s"},{"text":"I look."},{"call":"read","input":{"path":"a"}},{"call":"ls"}]}
{"request":null}
{"say":[{"text":"done"}]}
"#;

#[test]
fn a_recording_by_hand_answers_any_request() {
    let mut provider = replay(&written(BY_HAND));
    let first = whole(&ask(&mut provider, &request(1, vec![user("anything")])));
    assert_eq!(first.stop, Some(StopReason::ToolUse));
    assert_eq!(
        first.blocks,
        [
            ContentBlock::Thinking {
                text: String::new(),
                raw: r#"{"type":"thinking","thinking":"hm","signature":"s"}"#.into()
            },
            text_block("I look."),
            call_block("toolu_1_2", "read", r#"{"path":"a"}"#),
            call_block("toolu_1_3", "ls", "{}"),
        ]
    );
    let second = whole(&ask(&mut provider, &request(2, vec![user("else")])));
    assert_eq!((second.blocks, second.stop), (vec![text_block("done")], Some(StopReason::EndTurn)));
}

#[test]
fn where_the_conversation_departs_it_is_said() {
    let server = Server::scripted([
        Answer::says([thinking("hm", "s=="), call("t1", "read", "{}")]),
        Answer::text("done"),
    ]);
    let file = tempfile::tempfile().unwrap();
    let record = Some(file.try_clone().unwrap());
    let mut live = Provider::new(ProviderSetup { record, ..setup(&server.url()) });
    let asked = conversation();
    ask(&mut live, &asked[0]);
    ask(&mut live, &asked[1]);
    let mut provider = replay(&file);
    let mut failed = |request: &ModelRequest| {
        let (kind, words) = whole(&ask(&mut provider, request)).failed.unwrap();
        assert_eq!(kind, ProviderFailure::RecordingDeparted);
        words
    };
    let words = failed(&request(1, vec![user("stop")]));
    assert!(
        words.contains(r#"message 1 was <user: "go"> when recorded and is <user: "stop"> now"#)
    );
    let mut other = asked[1].clone();
    other.messages[1].blocks[2] = call_block("t1", "read", r#"{"path": "b"}"#);
    assert!(
        failed(&other).contains("message 2 was <assistant: thinking, text, call t1 of read with")
    );
    other = asked[1].clone();
    other.messages[2] = results(&[]);
    assert!(failed(&other).contains("message 3 was <user: results of t1>"));
    assert!(failed(&asked[2]).contains("no answer to request 3; it has answers to 1, 2"));
    // The control: results that say something else, and another system text, fit.
    other = asked[1].clone();
    other.messages[2] = results(&[("t1", "at 11:00", false)]);
    other.system = "Be long.".into();
    assert_eq!(whole(&ask(&mut replay(&file), &other)).blocks, [text_block("done")]);
}

#[test]
fn a_dropped_or_torn_answer_is_no_answer() {
    let slow = Answer::text("half").stalled_after(500, Duration::from_millis(200));
    let server = Server::scripted([slow]);
    let mut file = tempfile::tempfile().unwrap();
    let record = Some(file.try_clone().unwrap());
    let mut live = Provider::new(ProviderSetup { record, ..setup(&server.url()) });
    super::support::runtime().block_on(async {
        let asked = &conversation()[0];
        let mut ignore = |_| {};
        let open = live.answer(asked, &mut ignore);
        tokio::time::timeout(Duration::from_millis(60), open).await.unwrap_err();
        live.cancelled();
    });
    let text = content(&mut file);
    let failed = |file: &File| whole(&ask(&mut replay(file), &conversation()[0])).failed.unwrap().1;
    assert!(failed(&file).starts_with("request 1 was dropped here when it was recorded"));
    let torn = text.replace("{\"cancelled\":1}\n", "");
    assert!(
        failed(&written(&torn)).starts_with("the recording breaks off in the answer to request 1")
    );
    assert!(failed(&written("")).starts_with("the recording does not begin with"));
    let no_file = ProviderSetup { source: SourceSetup::Replay(ReplaySpeed::Full), ..setup("") };
    let answer = whole(&ask(&mut Provider::new(no_file), &conversation()[0]));
    assert_eq!(
        answer.failed.unwrap(),
        (
            ProviderFailure::RecordingDeparted,
            "no recording was given to replay. Record the conversation anew".to_owned()
        )
    );
}

#[test]
fn a_recording_that_cannot_be_written_is_not_begun() {
    let server = Server::scripted([Answer::text("unreached")]);
    let record = Some(File::open("/dev/null").unwrap());
    let mut provider = Provider::new(ProviderSetup { record, ..setup(&server.url()) });
    let (_, words) = whole(&ask(&mut provider, &conversation()[0])).failed.unwrap();
    assert!(words.starts_with("the recording cannot be written: "), "{words}");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut provider = Provider::new(ProviderSetup { record: Some(full), ..setup(&server.url()) });
    let (_, words) = whole(&ask(&mut provider, &conversation()[0])).failed.unwrap();
    assert!(words.starts_with("the recording cannot be written: No space left"), "{words}");
    assert_eq!(server.requests().len(), 0);
}
