//! `:undo`: which changes are taken back, in which order, and what is told of it.

use super::talk::*;
use protocol::call::{Call, CallOrigin, CallStage, Outcome, ToolResult};
use protocol::content::{ContentBlock, StopReason};
use protocol::judgement::ToolKind;
use protocol::session::{FromSession, OpenTurn, SessionEvent, SessionSetup, ToSession, TurnEnd};

fn with_undo() -> SessionSetup {
    let mut setup = setup();
    setup.tools.push(tool("edit", ToolKind::Mutation));
    setup.tools.push(tool("undo_restore", ToolKind::Mutation));
    setup
}

fn failed(code: &str, summary: &str) -> ToolResult {
    ToolResult {
        outcome: Outcome::Failed,
        text: summary.into(),
        summary: summary.into(),
        is_error: true,
        code: Some(code.into()),
        images: Vec::new(),
    }
}

/// One turn of these calls, all of which work; they are numbered from `first`.
fn turn(talk: &mut Talk, first: u32, tools: &[&'static str]) {
    talk.prompt("go");
    let ids = ["a", "b", "c", "d"];
    let calls: Vec<Say> =
        ids.iter().zip(tools).map(|(id, tool)| Say::Use(id, tool, "{\"path\":\"x\"}")).collect();
    talk.answer(&calls, StopReason::ToolUse);
    for number in (first..).take(tools.len()) {
        talk.call_ended(number, "ok");
    }
    talk.answer(&[Say::Text("Done.")], StopReason::EndTurn);
}

/// The call that is let go, and what it takes back.
fn restores(words: &[FromSession]) -> Option<(u32, String)> {
    let calls = runs(words);
    assert!(calls.len() < 2, "one after another");
    let Call { id, origin, tool, input } = calls.into_iter().next()?;
    assert_eq!(
        (origin, tool.as_str()),
        (CallOrigin::Undo, "undo_restore"),
        "no model asked for it"
    );
    Some((id.number, input))
}

/// A command goes on in the background.
fn goes_on(talk: &mut Talk, number: u32) {
    let (stage, result) = (CallStage::InBackground, done("it runs"));
    talk.tell(ToSession::CallEnded { call: call_id(number), stage, result });
}

fn ends(talk: &mut Talk, number: u32, result: ToolResult) -> Vec<FromSession> {
    talk.tell(super::talk::call_ended(call_id(number), result))
}

/// What was said of it in the end.
fn told(words: &[FromSession]) -> String {
    let text = words.iter().find_map(|word| match word {
        FromSession::Commit(SessionEvent::Answer { blocks, .. }) => match blocks.as_slice() {
            [ContentBlock::Text { text }] => Some(text.clone()),
            other => panic!("{other:?}"),
        },
        _ => None,
    });
    assert_eq!(requests(words).len(), 0, "no model is asked");
    text.unwrap_or_else(|| panic!("{words:?}"))
}

#[test]
fn the_newest_turn_that_changed_files_is_taken_back_its_newest_change_first() {
    let mut talk = Talk::ready(with_undo());
    turn(&mut talk, 1, &["write"]);
    turn(&mut talk, 2, &["edit", "bash", "write", "read"]);
    turn(&mut talk, 6, &["read"]);
    let words = talk.prompt(":undo");
    assert_eq!(
        words[0],
        FromSession::Commit(SessionEvent::Prompt { text: ":undo".into(), expanded: None })
    );
    assert_eq!(restores(&words), Some((7, "{\"id\":4}".into())), "no looks");
    let words = ends(&mut talk, 7, done("put back"));
    assert_eq!(restores(&words), Some((8, "{\"id\":3}".into())));
    // The store knows of no change: that command was none, and nothing is said of it.
    let words = ends(&mut talk, 8, failed("not_found", "there is no change 3"));
    assert_eq!(restores(&words), Some((9, "{\"id\":2}".into())));
    let words = ends(&mut talk, 9, done("put back"));
    assert_eq!(told(&words), "Taken back: write (call 4), edit (call 2).");
    assert_eq!(talk.last_end(), Some(TurnEnd::Done));
    // Again: the turn before it. And then there is nothing.
    let words = talk.prompt(" :undo ");
    assert_eq!(restores(&words), Some((10, "{\"id\":1}".into())));
    ends(&mut talk, 10, done("put back"));
    assert!(told(&talk.prompt(":undo")).starts_with("There is nothing to take back"));
    // The model hears of it with the next prompt.
    talk.prompt("and now?");
    let request = talk.request();
    assert_eq!(lawful(request), Ok(()));
    let text = format!("{:?}", request.messages);
    assert!(text.contains("Taken back: write (call 1)") && text.contains("and now?"), "{text}");
}

#[test]
fn a_turn_whose_commands_changed_nothing_is_gone_past_and_one_that_failed_is_not() {
    let mut talk = Talk::ready(with_undo());
    turn(&mut talk, 1, &["write"]);
    talk.prompt("go");
    talk.answer(&[Say::Use("a", "bash", "{\"command\":\"x\"}")], StopReason::ToolUse);
    let exited = Outcome::Exited { code: 1 };
    talk.tell(super::talk::call_ended(
        call_id(2),
        ToolResult { outcome: exited, ..failed("exit", "exit code 1") },
    ));
    talk.answer(&[Say::Text("Done.")], StopReason::EndTurn);
    turn(&mut talk, 3, &["bash", "bash"]);
    assert_eq!(restores(&talk.prompt(":undo")), Some((5, "{\"id\":4}".into())));
    let words = ends(&mut talk, 5, failed("not_found", "there is no change 4"));
    assert_eq!(restores(&words), Some((6, "{\"id\":3}".into())));
    let words = ends(&mut talk, 6, failed("not_found", "there is no change 3"));
    assert_eq!(restores(&words), Some((7, "{\"id\":2}".into())), "the turn before");
    let words = ends(&mut talk, 7, done("put back"));
    assert_eq!(
        told(&words),
        "This went back to an older turn, since nothing that is covered is left to take back of bash (call 4), bash (call 3).\nTaken back: bash (call 2)."
    );
    // What could not be followed is said.
    turn(&mut talk, 8, &["bash"]);
    talk.prompt(":undo");
    let words = ends(&mut talk, 9, failed("not_covered", "the disk was full"));
    assert_eq!(told(&words), "Not undone: bash (call 8): the disk was full.");
}

#[test]
fn what_cannot_be_taken_back_stops_it_and_what_was_never_kept_does_not() {
    let mut talk = Talk::ready(with_undo());
    turn(&mut talk, 1, &["write", "edit", "edit"]);
    talk.prompt(":undo");
    let words = ends(&mut talk, 4, failed("not_covered", "too large to keep"));
    assert_eq!(restores(&words), Some((5, "{\"id\":2}".into())));
    let words = ends(&mut talk, 5, failed("stale", "x was changed by somebody else"));
    assert_eq!(
        told(&words),
        "Not undone: edit (call 3): too large to keep.\n\
         Not undone: edit (call 2): x was changed by somebody else.\n\
         Left as it is, since it came before: write (call 1)."
    );
    // What was never kept is not tried again, and what stood in the way is gone past.
    let words = talk.prompt(":undo");
    assert_eq!(restores(&words), Some((6, "{\"id\":1}".into())));
}

#[test]
fn what_somebody_changed_since_does_not_keep_older_turns_from_being_taken_back() {
    let mut talk = Talk::ready(with_undo());
    turn(&mut talk, 1, &["write"]);
    turn(&mut talk, 2, &["edit"]);
    // A mode says nothing of the file: that change is still the next.
    talk.prompt(":undo");
    let refused = Outcome::Refused { rule: "mode plan".into() };
    ends(&mut talk, 3, ToolResult { outcome: refused, ..failed("denied", "the mode") });
    assert_eq!(talk.last_end(), Some(TurnEnd::Interrupted), "no success for a script");
    assert_eq!(restores(&talk.prompt(":undo")), Some((4, "{\"id\":2}".into())));
    let words = ends(&mut talk, 4, failed("stale", "x was changed by somebody else"));
    assert!(told(&words).starts_with("Not undone: edit (call 2)"), "{words:?}");
    assert_eq!(talk.last_end(), Some(TurnEnd::Interrupted), "no success for a script");
    assert_eq!(restores(&talk.prompt(":undo")), Some((5, "{\"id\":1}".into())));
    ends(&mut talk, 5, done("put back"));
    assert_eq!(talk.last_end(), Some(TurnEnd::Done));
    // That is all but one, which may go now.
    assert_eq!(restores(&talk.prompt(":undo")), Some((6, "{\"id\":2}".into())));
    ends(&mut talk, 6, done("put back"));
    assert!(told(&talk.prompt(":undo")).starts_with("There is nothing"));
    assert_eq!(talk.last_end(), Some(TurnEnd::Done), "there was nothing to fail");
}

#[test]
fn a_person_stops_it_and_goes_on_with_the_rest() {
    let mut talk = Talk::ready(with_undo());
    turn(&mut talk, 1, &["write", "edit"]);
    talk.prompt(":undo");
    let words = talk.tell(ToSession::Interrupt);
    assert_eq!(words, [FromSession::CancelCall(call_id(3))]);
    assert_eq!(talk.prompt("meanwhile"), [], "it waits");
    let words = ends(&mut talk, 3, done("put back"));
    assert!(
        words.contains(&FromSession::Commit(SessionEvent::TurnEnded { end: TurnEnd::Interrupted }))
    );
    assert_eq!(requests(&words).len(), 1, "the next prompt has its turn");
    let request = format!("{:?}", talk.request().messages);
    let said =
        "Taken back: edit (call 2).\\nLeft as it is, since a person stopped it: write (call 1).";
    assert!(request.contains(said), "the model is told: {request}");
    talk.answer(&[Say::Text("Yes?")], StopReason::EndTurn);
    assert_eq!(restores(&talk.prompt(":undo")), Some((4, "{\"id\":1}".into())));
}

#[test]
fn a_call_that_a_model_took_back_is_taken_back_behind_its_undoing() {
    let mut talk = Talk::ready(with_undo());
    turn(&mut talk, 1, &["write"]);
    talk.prompt("take it back");
    talk.answer(&[Say::Use("z", "undo_restore", "{\"id\":1}")], StopReason::ToolUse);
    talk.call_ended(2, "put back");
    talk.answer(&[Say::Text("Done.")], StopReason::EndTurn);
    assert_eq!(restores(&talk.prompt(":undo")), Some((3, "{\"id\":2}".into())));
    ends(&mut talk, 3, done("put back"));
    // The file is what the model made of it again.
    assert_eq!(restores(&talk.prompt(":undo")), Some((4, "{\"id\":1}".into())));
    ends(&mut talk, 4, done("put back"));
    assert!(told(&talk.prompt(":undo")).starts_with("There is nothing"));
}

#[test]
fn a_turn_that_wrote_and_took_it_back_is_taken_back_as_a_whole() {
    let mut talk = Talk::ready(with_undo());
    talk.prompt("go");
    talk.answer(&[Say::Use("a", "write", "{\"path\":\"x\"}")], StopReason::ToolUse);
    talk.call_ended(1, "ok");
    talk.answer(&[Say::Use("z", "undo_restore", "{\"id\":1}")], StopReason::ToolUse);
    talk.call_ended(2, "put back");
    talk.answer(&[Say::Text("Done.")], StopReason::EndTurn);
    assert_eq!(restores(&talk.prompt(":undo")), Some((3, "{\"id\":2}".into())));
    assert_eq!(restores(&ends(&mut talk, 3, done("put back"))), Some((4, "{\"id\":1}".into())));
    let words = ends(&mut talk, 4, done("put back"));
    assert_eq!(told(&words), "Taken back: undo_restore (call 2), write (call 1).");
}

/// What is on disk of an undoing whose first call worked and whose second was lost.
fn cut_short(prompt: &str) -> Vec<SessionEvent> {
    let mut talk = Talk::ready(with_undo());
    turn(&mut talk, 1, &["write", "edit"]);
    talk.prompt(prompt);
    ends(&mut talk, 3, done("put back"));
    let mut journal: Vec<SessionEvent> = Vec::new();
    for word in &talk.said {
        match word {
            FromSession::Commit(happened) => journal.push(happened.clone()),
            FromSession::Run { call, .. } if call.id.number < 4 => {
                journal.push(SessionEvent::ended(call.id.clone(), call.origin.clone(), done("ok")))
            }
            _ => {}
        }
    }
    let lost = failed("interrupted", "interrupted: may have run.");
    let lost = ToolResult { outcome: Outcome::Interrupted, ..lost };
    journal.push(SessionEvent::ended(call_id(4), CallOrigin::Undo, lost));
    journal
}

const CUT_SHORT: &str = "The undoing was cut short.\nTaken back: edit (call 2).\n\
                         Possibly not undone: write (call 1): interrupted: may have run.\n\
                         The next `:undo` goes on with the rest.";

/// A conversation that died in the middle of it: what was taken back is known, nothing runs by
/// itself, and a model is not asked.
#[test]
fn an_undoing_that_was_cut_short_is_not_gone_on_with_by_itself() {
    let mut talk = Talk::before_replay(with_undo());
    cut_short(":undo")
        .into_iter()
        .for_each(|happened| drop(talk.tell(ToSession::Replay(happened))));
    let words = talk.tell(ToSession::ReplayDone { then: OpenTurn::GoesOn, compact: None });
    assert_eq!(told(&words), CUT_SHORT);
    assert_eq!((words.len(), &words[0]), (3, &FromSession::Ready), "{words:?}");
    assert_eq!(talk.last_end(), Some(TurnEnd::Interrupted));
    assert_eq!(restores(&talk.prompt(":undo")), Some((5, "{\"id\":1}".into())));
}

#[test]
fn a_rewind_that_was_cut_short_names_the_rewind_that_goes_on() {
    let mut talk = Talk::before_replay(with_undo());
    let past = cut_short(":rewind files 1");
    past.into_iter().for_each(|happened| drop(talk.tell(ToSession::Replay(happened))));
    let words = talk.tell(ToSession::ReplayDone { then: OpenTurn::GoesOn, compact: None });
    let way = "`:rewind files 1` again goes on with the rest.";
    assert_eq!(told(&words), CUT_SHORT.replace("The next `:undo` goes on with the rest.", way));
    assert_eq!(restores(&talk.prompt(":rewind files 1")), Some((5, "{\"id\":1}".into())));
}

/// Its turn was ended from outside: the model is told before the next prompt, and once.
#[test]
fn a_model_is_told_of_an_undoing_that_was_cut_short_with_its_turn() {
    let mut journal = cut_short(":undo");
    journal.push(SessionEvent::TurnEnded { end: TurnEnd::Interrupted });
    let mut talk = Talk::replayed(with_undo(), journal);
    talk.prompt("and now?");
    assert_eq!(lawful(talk.request()), Ok(()));
    let last = talk.request().messages.last().unwrap().clone();
    let said = [":undo".to_owned(), format!("[{CUT_SHORT}]"), "and now?".to_owned()];
    assert_eq!(last.blocks, said.map(|text| ContentBlock::Text { text }));
    talk.answer(&[Say::Text("I see.")], StopReason::EndTurn);
    talk.prompt("good");
    let said = format!("{:?}", talk.request().messages);
    assert_eq!(said.matches("cut short").count(), 1, "{said}");
}

#[test]
fn one_file_is_taken_back_by_one_call_and_its_changes_stay_in_the_list() {
    let mut talk = Talk::ready(with_undo());
    turn(&mut talk, 1, &["write"]);
    turn(&mut talk, 2, &["edit", "write", "read"]);
    let words = talk.prompt(":undo  src/my file.rs ");
    let input = r#"{"id":3,"path":"src/my file.rs","since":2}"#;
    assert_eq!(restores(&words), Some((5, input.into())), "the newest turn's changes");
    let words = ends(&mut talk, 5, done("put back"));
    assert_eq!(told(&words), "Taken back: src/my file.rs, its covered changes since call 2.");
    assert_eq!(talk.last_end(), Some(TurnEnd::Done));
    // Again: only what is older is left.
    let words = talk.prompt(":undo src/my file.rs");
    assert_eq!(restores(&words), Some((6, r#"{"id":1,"path":"src/my file.rs","since":1}"#.into())));
    ends(&mut talk, 6, failed("not_found", "no call changed it"));
    // The rest of the turn can still be taken back, without that file.
    let words = talk.prompt(":undo");
    assert_eq!(restores(&words), Some((7, r#"{"except":["src/my file.rs"],"id":3}"#.into())));
    let words = ends(&mut talk, 7, failed("not_found", "all files were restored one by one"));
    assert_eq!(restores(&words), Some((8, r#"{"except":["src/my file.rs"],"id":2}"#.into())));
    let words = ends(&mut talk, 8, done("put back"));
    assert_eq!(told(&words), "Taken back: edit (call 2).");
    assert_eq!(restores(&talk.prompt(":undo")), Some((9, r#"{"id":1}"#.into())), "no exception");
}

#[test]
fn a_file_of_the_whole_session_and_one_that_cannot_be_taken_back() {
    let mut talk = Talk::ready(with_undo());
    let words = talk.prompt(":undo a.rs");
    assert!(told(&words).starts_with("Not undone: a.rs: no call is known"), "{words:?}");
    turn(&mut talk, 1, &["write"]);
    turn(&mut talk, 2, &["edit"]);
    let words = talk.prompt(":undo all a.rs");
    assert_eq!(restores(&words), Some((3, r#"{"id":2,"path":"a.rs","since":1}"#.into())));
    let words = ends(&mut talk, 3, failed("not_covered", "something else changed a.rs."));
    assert_eq!(told(&words), "Not undone: a.rs: something else changed a.rs.");
    assert_eq!(talk.last_end(), Some(TurnEnd::Interrupted));
    let words = talk.prompt(":undo b.rs");
    assert_eq!(restores(&words), Some((4, r#"{"id":2,"path":"b.rs","since":2}"#.into())));
    // The turn before it may have changed the file.
    let words = ends(&mut talk, 4, failed("not_found", "no call changed b.rs"));
    assert_eq!(restores(&words), Some((5, r#"{"id":1,"path":"b.rs","since":1}"#.into())));
    let words = ends(&mut talk, 5, failed("not_found", "no call changed b.rs"));
    assert_eq!(told(&words), "Not undone: b.rs: no call changed b.rs.");
    // A failure changes nothing in the list.
    assert_eq!(restores(&talk.prompt(":undo")), Some((6, r#"{"id":2}"#.into())));
    // What only begins like it is for the model.
    for prompt in [":undoing", ":undo\nall of it", ":undo a\nb"] {
        let mut talk = Talk::ready(with_undo());
        assert_eq!(requests(&talk.prompt(prompt)).len(), 1, "{prompt}");
    }
}

#[test]
fn a_person_stops_the_undo_of_one_file() {
    let mut talk = Talk::ready(with_undo());
    turn(&mut talk, 1, &["write"]);
    talk.prompt(":undo a.rs");
    let words = talk.tell(ToSession::Interrupt);
    assert!(words.contains(&FromSession::CancelCall(call_id(2))), "{words:?}");
    let cancelled = ToolResult { outcome: Outcome::Interrupted, ..failed("cancelled", "stopped") };
    let words = ends(&mut talk, 2, cancelled);
    assert_eq!(told(&words), "Not undone: a.rs: stopped.");
}

#[test]
fn a_rewind_takes_back_every_change_since_a_call_and_is_done_only_as_a_whole() {
    let mut talk = Talk::ready(with_undo());
    turn(&mut talk, 1, &["write"]);
    turn(&mut talk, 2, &["edit", "bash"]);
    turn(&mut talk, 4, &["read", "write"]);
    let words = talk.prompt(":rewind files 2");
    assert_eq!(restores(&words), Some((6, "{\"id\":5}".into())), "the newest first");
    let words = ends(&mut talk, 6, done("put back"));
    assert_eq!(restores(&words), Some((7, "{\"id\":3}".into())), "over the border of a turn");
    let words = ends(&mut talk, 7, failed("stale", "x was changed since"));
    let said = told(&words);
    assert!(said.contains("Not undone: bash (call 3): x was changed since."), "{said}");
    assert!(said.contains("Left as it is, since it came before: edit (call 2)."), "{said}");
    assert_eq!(talk.last_end(), Some(TurnEnd::Interrupted), "not whole");
    // Again: it tries what it could not do, and goes no further than the call.
    let words = talk.prompt(":rewind files 2");
    assert_eq!(restores(&words), Some((8, "{\"id\":3}".into())));
    ends(&mut talk, 8, done("put back"));
    let words = ends(&mut talk, 9, done("put back"));
    assert_eq!(told(&words), "Taken back: bash (call 3), edit (call 2).");
    assert_eq!(talk.last_end(), Some(TurnEnd::Done));
    let words = talk.prompt(":rewind files 2");
    assert!(told(&words).contains("no call since then is known"), "{words:?}");
    assert_eq!(talk.last_end(), Some(TurnEnd::Done));
    for unclear in [":rewind files", ":rewind files x"] {
        assert!(told(&talk.prompt(unclear)).contains("the number of a call"));
        assert_eq!(talk.last_end(), Some(TurnEnd::Interrupted));
    }
    assert_eq!(restores(&talk.prompt(":undo")), Some((10, "{\"id\":1}".into())), "the control");
}

#[test]
fn a_rewind_of_a_part_names_the_rest_and_is_not_done() {
    let mut talk = Talk::ready(with_undo());
    turn(&mut talk, 1, &["bash"]);
    talk.prompt(":rewind files 1");
    let text = "[not restored: big.bin: it is too large]\nput back a\n".to_owned();
    let part =
        ToolResult { text, code: Some("partly_restored".into()), ..done("restored 1 files") };
    let said = told(&ends(&mut talk, 2, part));
    let left = "Not taken back of bash (call 1): big.bin: it is too large.";
    assert_eq!(said, format!("Taken back: bash (call 1).\n{left}"));
    assert_eq!(talk.last_end(), Some(TurnEnd::Interrupted), "so the conversation stays");
}

#[test]
fn a_rewind_that_cannot_be_whole_says_so_each_time_and_undo_goes_past_it() {
    let mut talk = Talk::ready(with_undo());
    turn(&mut talk, 1, &["write"]);
    turn(&mut talk, 2, &["edit", "bash"]);
    for number in [4, 5] {
        let words = talk.prompt(":rewind files 2");
        assert_eq!(restores(&words), Some((number, "{\"id\":3}".into())));
        let words = ends(&mut talk, number, failed("not_covered", "its copies are gone"));
        let said = told(&words);
        assert!(said.contains("Not undone: bash (call 3): its copies are gone."), "{said}");
        assert!(said.contains("Left as it is, since it came before: edit (call 2)."), "{said}");
        assert_eq!(talk.last_end(), Some(TurnEnd::Interrupted), "also the second time");
    }
    assert_eq!(restores(&talk.prompt(":undo")), Some((6, "{\"id\":2}".into())));
}

#[test]
fn a_rewind_to_the_moment_before_an_undo_of_a_person_takes_that_undo_back() {
    let mut talk = Talk::ready(with_undo());
    turn(&mut talk, 1, &["write"]);
    turn(&mut talk, 2, &["edit"]);
    talk.prompt(":undo");
    ends(&mut talk, 3, done("put back"));
    let words = talk.prompt(":rewind files 3");
    assert_eq!(restores(&words), Some((4, "{\"id\":3}".into())));
    let words = ends(&mut talk, 4, done("put back"));
    assert_eq!(told(&words), "Taken back: undo_restore (call 3).");
    // The edit holds again: it alone is taken back, since the two undos cancel each other out.
    let words = talk.prompt(":rewind files 2");
    assert_eq!(restores(&words), Some((5, "{\"id\":2}".into())));
    let words = ends(&mut talk, 5, done("put back"));
    assert_eq!(told(&words), "Taken back: edit (call 2).");
    // Before the first way back: the edit is undone, by call 5, which is taken back.
    let words = talk.prompt(":rewind files 4");
    assert_eq!(restores(&words), Some((6, "{\"id\":5}".into())));
    let words = ends(&mut talk, 6, done("put back"));
    assert_eq!(restores(&words), Some((7, "{\"id\":4}".into())));
    let words = ends(&mut talk, 7, done("put back"));
    assert_eq!(told(&words), "Taken back: undo_restore (call 5), undo_restore (call 4).");
    // Now the edit is undone as after call 3, so the turn before it is the next.
    assert_eq!(restores(&talk.prompt(":undo")), Some((8, "{\"id\":1}".into())));
}

#[test]
fn a_rewind_takes_back_the_undo_of_a_file_that_reaches_across_its_moment() {
    let mut talk = Talk::ready(with_undo());
    turn(&mut talk, 1, &["write"]);
    turn(&mut talk, 2, &["edit"]);
    talk.prompt(":undo all x");
    ends(&mut talk, 3, done("put back"));
    let words = talk.prompt(":rewind files 2");
    assert_eq!(restores(&words), Some((4, "{\"id\":3}".into())));
    let words = ends(&mut talk, 4, done("put back"));
    assert_eq!(restores(&words), Some((5, "{\"id\":2}".into())), "without an exception");
    let words = ends(&mut talk, 5, done("put back"));
    assert_eq!(told(&words), "Taken back: undo_restore (call 3), edit (call 2).");
    assert_eq!(talk.last_end(), Some(TurnEnd::Done));
}

#[test]
fn a_rewind_passes_sub_agents_that_only_read_and_names_commands_that_run_yet() {
    let mut setup = with_undo();
    setup.tools.push(tool("task", ToolKind::Mutation));
    let mut talk = Talk::ready(setup);
    talk.prompt("go");
    let uses =
        [Say::Use("a", "bash", "{}"), Say::Use("b", "write", "{}"), Say::Use("c", "task", "{}")];
    talk.answer(&uses, StopReason::ToolUse);
    goes_on(&mut talk, 1);
    ends(&mut talk, 2, done("written"));
    let only_read = Some(protocol::session::TASK_ONLY_READ.to_owned());
    ends(&mut talk, 3, ToolResult { code: only_read, ..done("found") });
    talk.answer(&[Say::Text("done")], StopReason::EndTurn);
    let rewinds = |talk: &mut Talk, restore: u32| {
        let words = talk.prompt(":rewind files 2");
        assert!(restores(&words).is_some_and(|(number, _)| number == restore), "{words:?}");
        (told(&ends(talk, restore, done("put back"))), talk.last_end())
    };
    let (said, end) = rewinds(&mut talk, 4);
    assert!(said.contains("bash (call 1)") && said.contains("runs in the background"), "{said}");
    assert!(!said.contains("task"), "it can have changed nothing: {said}");
    assert_eq!(end, Some(TurnEnd::Interrupted));
}

#[test]
fn a_rewind_passes_a_sub_agent_of_the_background_that_only_read() {
    let only_read = Some(protocol::session::TASK_ONLY_READ.to_owned());
    for (code, is_named) in [(only_read, false), (None, true)] {
        let mut setup = with_undo();
        setup.tools.push(tool("task", ToolKind::Mutation));
        let mut talk = Talk::ready(setup);
        talk.prompt("go");
        let uses = [Say::Use("a", "write", "{}"), Say::Use("b", "task", "{}")];
        talk.answer(&uses, StopReason::ToolUse);
        ends(&mut talk, 1, done("written"));
        goes_on(&mut talk, 2);
        talk.answer(&[Say::Text("done")], StopReason::EndTurn);
        let (call, tool) = (call_id(2), "task".to_owned());
        let result = ToolResult { code, ..done("found") };
        talk.tell(ToSession::BackgroundEnded { call, tool, result });
        talk.prompt(":rewind files 1");
        let said = told(&ends(&mut talk, 3, done("put back")));
        assert_eq!(said.contains("(call 2)"), is_named, "{said}");
    }
}

#[test]
fn a_rewind_names_the_changes_of_sub_agents_and_the_late_ones_of_the_background() {
    let mut setup = with_undo();
    setup.tools.push(tool("task", ToolKind::Mutation));
    let mut talk = Talk::ready(setup);
    turn(&mut talk, 1, &["bash"]);
    turn(&mut talk, 2, &["bash"]);
    let ended = |call| ToSession::BackgroundEnded {
        call: call_id(call),
        tool: "bash".into(),
        result: done("exit code: 0"),
    };
    talk.tell(ended(1));
    turn(&mut talk, 3, &["write", "task"]);
    talk.tell(ended(2));
    let words = talk.prompt(":rewind files 3");
    assert_eq!(restores(&words), Some((5, "{\"id\":3}".into())));
    let said = told(&ends(&mut talk, 5, done("put back")));
    for named in ["Taken back: write (call 3).", "sub-agent of task (call 4)", "bash (call 2)"] {
        assert!(said.contains(named), "{named}: {said}");
    }
    assert!(!said.contains("(call 1)"), "it ended before that moment: {said}");
    assert_eq!(talk.last_end(), Some(TurnEnd::Interrupted), "not whole");
    // The control: nothing of it lies behind a later moment.
    turn(&mut talk, 6, &["write"]);
    talk.prompt(":rewind files 6");
    let said = told(&ends(&mut talk, 7, done("put back")));
    assert_eq!(said, "Taken back: write (call 6).");
    assert_eq!(talk.last_end(), Some(TurnEnd::Done));
}
