//! Pinned files: each request carries their newest text, at the front or, once they changed, at the end.

use super::talk::*;
use protocol::call::{CallOrigin, Outcome, ReadStamp, ToolResult};
use protocol::client::ModelFacts;
use protocol::content::{ContentBlock, FilesUpdated, StopReason, UpdatePosition};
use protocol::provider::{FromProvider, ProviderFailure};
use protocol::session::{
    FileStamp, FromSession, OpenTurn, PinnedNews, PinnedStamp, SessionEvent, SessionSetup,
    ToSession, TurnEnd,
};

fn with(files: &[&str]) -> SessionSetup {
    SessionSetup { pinned: files.iter().map(|file| (*file).to_owned()).collect(), ..setup() }
}

/// Ends the reads of pinned files with these texts, in the order asked; what came of the last.
#[track_caller]
fn reads(talk: &mut Talk, words: &[FromSession], texts: &[&str]) -> Vec<FromSession> {
    let mut running = runs(words);
    let mut last = Vec::new();
    for text in texts {
        let call = running.remove(0);
        assert_eq!(
            (call.tool.as_str(), &call.origin),
            ("read", &CallOrigin::PinnedRead),
            "{call:?}"
        );
        last = talk.call_ended(call.id.number, text);
        running.extend(runs(&last));
    }
    assert!(running.is_empty(), "{running:?}");
    last
}

fn front(words: &[FromSession]) -> String {
    let request = requests(words).pop().expect("the model is asked");
    assert_eq!(lawful(request), Ok(()));
    match &request.messages[0].blocks[0] {
        ContentBlock::Text { text } => text.clone(),
        other => panic!("{other:?}"),
    }
}

fn updated(words: &[FromSession]) -> Option<FilesUpdated> {
    requests(words).pop().expect("the model is asked").updated.clone()
}

/// The model makes one call and its result comes; what follows.
fn round(talk: &mut Talk, id: &'static str, tool: &'static str) -> Vec<FromSession> {
    let words = talk.answer(&[Say::Use(id, tool, "{}")], StopReason::ToolUse);
    let call = runs(&words).remove(0).id.number;
    talk.call_ended(call, "done")
}

#[test]
fn they_are_read_before_the_first_request_and_stand_at_its_front() {
    let mut talk = Talk::ready(with(&["a.md", "b \"q\".md"]));
    let words = talk.prompt("go");
    assert!(requests(&words).is_empty(), "first they are read");
    assert_eq!(runs(&words)[1].input, r#"{"path":"b \"q\".md","raw":true}"#);
    let words = reads(&mut talk, &words, &["one\n", "two"]);
    let front = front(&words);
    assert!(front.contains("<file path=\"a.md\">\none\n</file>\n"), "{front}");
    assert!(front.contains("<file path=\"b \\\"q\\\".md\">\ntwo\n</file>\n"), "{front}");
    assert_eq!(updated(&words), None);
    assert!(results(&talk.said).is_empty(), "their results are the supervisor's to keep");
}

/// All that the newest request carries, front and end.
fn carried(talk: &Talk) -> String {
    let request = talk.request();
    let end = request.updated.as_ref().map_or("", |updated| updated.text.as_str());
    format!("{:?}{end:?}", request.messages)
}

#[test]
fn each_request_carries_the_newest_text_of_each_file_once() {
    let mut talk = Talk::ready(with(&["a.md", "b.md"]));
    let words = talk.prompt("go");
    reads(&mut talk, &words, &["one", "two"]);
    // Two changes in one round: read once, after both.
    let calls = [Say::Use("w1", "write", "{}"), Say::Use("w2", "write", "{}")];
    let words = talk.answer(&calls, StopReason::ToolUse);
    let first = runs(&words).remove(0).id.number;
    let words = talk.call_ended(first, "written");
    assert_eq!(runs(&words)[0].tool, "write");
    let words = talk.call_ended(first + 1, "written");
    let words = reads(&mut talk, &words, &["ONE", "two"]);
    let update = updated(&words).unwrap();
    assert_eq!(update.text, "<file path=\"a.md\">\nONE\n</file>\n", "only what changed");
    assert_eq!(update.place, UpdatePosition::BehindResults);
    let pointed = front(&words);
    assert!(!pointed.contains("one") && pointed.contains("\ntwo\n"), "{pointed}");
    assert!(pointed.contains("<file path=\"a.md\">\n(changed since; "), "{pointed}");
    // A round that changes nothing reads nothing, and the next request carries the same.
    let words = round(&mut talk, "g1", "grep");
    assert_eq!(updated(&words), Some(update.clone()));
    assert_eq!(front(&words), pointed, "a cache keeps its prefix");
    // A change that leaves them as they were, too; a file that is as it was stays at the end.
    let words = round(&mut talk, "w3", "bash");
    let words = reads(&mut talk, &words, &["ONE", "two"]);
    assert_eq!((updated(&words), front(&words)), (Some(update), pointed.clone()));
    let words = round(&mut talk, "w4", "bash");
    let words = reads(&mut talk, &words, &["one", "two"]);
    assert_eq!(updated(&words).unwrap().text, "<file path=\"a.md\">\none\n</file>\n");
    assert_eq!(front(&words), pointed);
    // A person changed the other between the turns.
    talk.answer(&[Say::Text("done")], StopReason::EndTurn);
    let words = talk.prompt("and now?");
    reads(&mut talk, &words, &["ONE", "TWO"]);
    let carried = carried(&talk);
    for (text, times) in [("ONE", 1), ("TWO", 1), ("one", 0), ("two", 0)] {
        let text = format!("\\n{text}\\n");
        assert_eq!(carried.matches(&text).count(), times, "{text}: {carried}");
    }
}

/// One call of `stat(2)` for each file tells which were edited while the model only looked.
#[test]
fn an_edit_by_a_person_in_a_round_of_queries_is_read_before_the_next_request() {
    let mut talk = Talk::ready(with(&["a.md", "b.md"]));
    let words = talk.prompt("go");
    reads(&mut talk, &words, &["one", "two"]);
    let words = round(&mut talk, "g1", "grep");
    assert_eq!(updated(&words), None, "nothing changed, nothing is read: the control");
    talk.edit("b.md");
    let words = round(&mut talk, "g2", "grep");
    assert_eq!(runs(&words).len(), 1, "only the edited file");
    let words = reads(&mut talk, &words, &["TWO"]);
    assert_eq!(updated(&words).unwrap().text, "<file path=\"b.md\">\nTWO\n</file>\n");
    assert!(front(&words).contains("\none\n") && !front(&words).contains("\ntwo\n"));
    let words = round(&mut talk, "g3", "grep");
    assert_eq!(updated(&words).unwrap().text, "<file path=\"b.md\">\nTWO\n</file>\n");
    // A file whose stamp the filesystem does not give is read each time.
    talk.edits.insert("a.md".to_owned(), None);
    for id in ["g4", "g5"] {
        let words = round(&mut talk, id, "grep");
        reads(&mut talk, &words, &["one"]);
    }
}

/// A change within the same step of the clock could leave the stamp as it is.
#[test]
fn a_stamp_as_young_as_the_clocks_step_proves_nothing() {
    let mut talk = Talk::ready(with(&["a.md"]));
    let stamp = ReadStamp { device: 1, inode: 1, size: 1, modified: 7, changed: 1_000_000_007 };
    let stamps = vec![PinnedStamp { file: "a.md".into(), stamp: FileStamp::Found(stamp) }];
    let ask = |talk: &mut Talk, word, began| {
        let words = talk.session.step(word);
        let Some(FromSession::StatPinned { check, .. }) = words.last() else { panic!("{words:?}") };
        let (check, stamps) = (*check, stamps.clone());
        talk.tell(ToSession::Pinned(PinnedNews::Stamps { check, began, stamps }))
    };
    let young = stamp.changed + ReadStamp::STEP;
    let words = ask(&mut talk, ToSession::Prompt { text: "go".into(), expanded: None }, young);
    reads(&mut talk, &words, &["one"]);
    for (id, began, reads_of_it) in [("g1", young, 1), ("g2", young + 1, 1), ("g3", young + 1, 0)] {
        let words = talk.answer(&[Say::Use(id, "grep", "{}")], StopReason::ToolUse);
        let call = runs(&words).remove(0).id;
        let words = ask(&mut talk, super::talk::call_ended(call, done("")), began);
        assert_eq!(runs(&words).len(), reads_of_it, "{id}");
        if reads_of_it == 1 {
            reads(&mut talk, &words, &["one"]);
        }
    }
}

/// The journal keeps digests; where each file stood follows from them.
#[test]
fn a_replayed_conversation_carries_each_file_where_it_was() {
    let mut talk = Talk::ready(with(&["a.md", "b.md"]));
    let words = talk.prompt("go");
    reads(&mut talk, &words, &["one", "two"]);
    let words = round(&mut talk, "w1", "write");
    reads(&mut talk, &words, &["ONE", "two"]);
    let before = talk.request().clone();
    // As the supervisor keeps it: results of calls that ran, digests of pinned files.
    let mut journal = Vec::new();
    let mut digests = ["one", "two", "done", "ONE", "two"].into_iter();
    for word in &talk.said {
        match word {
            FromSession::Commit(happened) => journal.push(happened.clone()),
            FromSession::Run { call, .. } => {
                let result = done(&match call.origin == CallOrigin::PinnedRead {
                    true => format!("[sha256 of {}]", digests.next().unwrap()),
                    false => digests.next().unwrap().to_owned(),
                });
                journal.push(SessionEvent::ended(call.id.clone(), call.origin.clone(), result));
            }
            _ => {}
        }
    }
    let mut again = Talk::before_replay(with(&["a.md", "b.md"]));
    for happened in journal {
        again.tell(ToSession::Replay(happened));
    }
    let words = again.tell(ToSession::ReplayDone { then: OpenTurn::GoesOn, compact: None });
    reads(&mut again, &words, &["ONE", "two"]);
    let after = again.request();
    assert_eq!((&after.messages, &after.updated), (&before.messages, &before.updated));
}

#[test]
fn an_empty_answer_is_asked_for_once_more_with_the_block_in_the_last_result() {
    let mut talk = Talk::ready(with(&["a.md"]));
    let words = talk.prompt("go");
    reads(&mut talk, &words, &["one"]);
    let words = round(&mut talk, "w1", "write");
    let words = reads(&mut talk, &words, &["two"]);
    let before = updated(&words).unwrap();
    let words = talk.end(StopReason::EndTurn);
    let again = updated(&words).unwrap();
    assert_eq!(again, FilesUpdated { place: UpdatePosition::InsideLastResult, ..before });
    // Once.
    let words = talk.end(StopReason::EndTurn);
    assert!(requests(&words).is_empty());
    assert_eq!(talk.last_end(), Some(TurnEnd::Done));
}

/// A request that failed was not seen: what changed goes with the next one.
#[test]
fn what_the_model_did_not_see_is_sent_again() {
    let mut talk = Talk::ready(with(&["a.md"]));
    let words = talk.prompt("go");
    reads(&mut talk, &words, &["one"]);
    let words = round(&mut talk, "w1", "write");
    reads(&mut talk, &words, &["two"]);
    let (kind, round) = (ProviderFailure::Overloaded, talk.round());
    talk.tell(ToSession::Stream(FromProvider::Failed { round, kind, message: "no".into() }));
    let words = talk.prompt("again");
    let words = reads(&mut talk, &words, &["two"]);
    assert_eq!(updated(&words).unwrap().text, "<file path=\"a.md\">\ntwo\n</file>\n");
}

#[test]
fn a_file_that_cannot_be_read_is_said_to_the_model_and_the_turn_goes_on() {
    let mut talk = Talk::ready(with(&["../secret"]));
    let words = talk.prompt("go");
    let call = runs(&words).remove(0).id;
    let result = ToolResult {
        outcome: Outcome::Failed,
        text: "Error [access_denied] read: ACCESS DENIED".into(),
        is_error: true,
        ..done("")
    };
    let words = talk.tell(super::talk::call_ended(call, result));
    assert!(front(&words).contains("(it cannot be shown: Error [access_denied]"), "{words:?}");
}

#[test]
fn they_are_pinned_and_let_go_while_a_session_runs() {
    let mut talk = Talk::ready(with(&[]));
    let words = talk.prompt("go");
    assert_eq!(requests(&words).len(), 1, "nothing is pinned, nothing is read");
    let pin = |files: &[&str]| {
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        ToSession::Pinned(PinnedNews::Files(files))
    };
    assert_eq!(talk.tell(pin(&["a.md"])), []);
    let words = round(&mut talk, "g1", "grep");
    // While it is read another comes; the request waits for both.
    talk.tell(pin(&["a.md", "b.md"]));
    let words = talk.call_ended(runs(&words)[0].id.number, "one");
    assert!(requests(&words).is_empty());
    let words = reads(&mut talk, &words, &["one", "two"]);
    let both = front(&words);
    assert!(both.contains("one") && both.contains("two"), "{both}");
    talk.tell(pin(&["b.md"]));
    let words = round(&mut talk, "g2", "grep");
    let words = reads(&mut talk, &words, &["two"]);
    assert!(!front(&words).contains("one"));
    talk.tell(pin(&[]));
    let words = round(&mut talk, "g3", "grep");
    assert_eq!(requests(&words)[0].messages[0], user("go"));
}

/// They stay when room is made, and then stand there as they are now.
#[test]
fn they_survive_a_compaction() {
    let mut talk = Talk::ready(with(&["a.md"]));
    let words = talk.prompt("go");
    reads(&mut talk, &words, &["one"]);
    for id in ["w1", "w2", "w3", "w4"] {
        let words = talk.answer(&[Say::Use(id, "write", "{}")], StopReason::ToolUse);
        let call = runs(&words).remove(0).id.number;
        let words = talk.call_ended(call, &"x".repeat(4000));
        reads(&mut talk, &words, &["two"]);
    }
    talk.answer(&[Say::Text("done")], StopReason::EndTurn);
    let words = talk.tell(ToSession::Compact { focus: String::new() });
    assert!(matches!(words[..], [FromSession::Commit(SessionEvent::Compacted { .. })]));
    let words = talk.prompt("go on");
    let words = reads(&mut talk, &words, &["two"]);
    let front = front(&words);
    assert!(front.contains("\ntwo\n") && !front.contains("\none\n"), "{front}");
    assert_eq!(front.matches("<file ").count(), 1);
    assert_eq!(updated(&words), None);
}

#[test]
fn a_stop_while_they_are_read_ends_the_turn() {
    let mut talk = Talk::ready(SessionSetup { parallel: 1, ..with(&["a.md", "b.md"]) });
    let words = talk.prompt("go");
    let call = runs(&words).remove(0);
    let words = talk.tell(ToSession::Interrupt);
    assert!(words.contains(&FromSession::CancelCall(call.id.clone())));
    assert_eq!(results(&words).len(), 1, "the one that did not begin has its result");
    let words = talk.call_ended(call.id.number, "one");
    assert!(requests(&words).is_empty());
    assert_eq!(talk.last_end(), Some(TurnEnd::Interrupted));
}

/// They are no calls of the model's: they use nothing of its budget, and a replayed conversation
/// gives later calls other names.
#[test]
fn their_reads_count_for_nothing_but_their_names() {
    let setup = SessionSetup { max_calls: 1, ..with(&["a.md"]) };
    let mut talk = Talk::ready(setup.clone());
    let words = talk.prompt("go");
    reads(&mut talk, &words, &["one"]);
    let words = talk.answer(&[Say::Use("g1", "grep", "{\"a\":1}")], StopReason::ToolUse);
    assert_eq!(runs(&words).len(), 1, "{words:?}");
    let journal: Vec<_> = talk
        .said
        .iter()
        .filter_map(|word| match word {
            FromSession::Commit(happened) => Some(happened.clone()),
            _ => None,
        })
        .collect();
    let mut again = Talk::before_replay(setup);
    for happened in journal {
        again.tell(ToSession::Replay(happened));
    }
    let words = again.tell(ToSession::ReplayDone { then: OpenTurn::GoesOn, compact: None });
    assert_eq!(runs(&words)[0].tool, "grep", "{words:?}");
    assert_eq!(runs(&words)[0].id, call_id(2));
}

/// The report on the context.
fn report(talk: &mut Talk) -> protocol::context::ContextReport {
    match &talk.tell(ToSession::Describe)[..] {
        [FromSession::Context(report)] => report.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pinned_file_that_grew_counts_beside_the_vendor_s_number_and_an_unread_one_is_named() {
    let mut talk = Talk::ready(with(&["a.md"]));
    assert_eq!(report(&mut talk).unread, ["a.md"]);
    let words = talk.prompt("go");
    reads(&mut talk, &words, &["one"]);
    assert!(report(&mut talk).unread.is_empty());
    talk.answer(&[Say::Text("done")], StopReason::EndTurn);
    let before = report(&mut talk);
    assert_eq!(before.counted, Some(7));
    talk.edit("a.md");
    let words = talk.prompt("again");
    reads(&mut talk, &words, &[&"x".repeat(30_000)]);
    let grown = report(&mut talk);
    assert!(grown.used() > before.used() + 9_000, "{grown:?}");
    let (name, max_tokens, facts) = ("other".to_owned(), 100, ModelFacts::default());
    talk.tell(ToSession::Model { name, max_tokens, facts });
    assert_eq!(report(&mut talk).counted, None, "another vendor counts otherwise");
}
