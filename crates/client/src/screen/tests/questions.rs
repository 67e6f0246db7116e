//! Tests of the list of answers: what writes, what marks a row, and what Enter does.

use super::*;
use crate::live_rows::answers_in_line;
use protocol::client::SessionWish;
use protocol::judgement::Consent;

pub(super) fn key(screen: &mut Screen, key: KeyPress) -> Vec<ScreenEffect> {
    screen.update(ScreenInput::Key(key))
}

pub(super) fn enter(screen: &mut Screen) -> Vec<ScreenEffect> {
    key(screen, KeyPress::Enter)
}

pub(super) fn line(screen: &mut Screen, text: &str) -> Vec<ScreenEffect> {
    screen.update(ScreenInput::Line(text.to_owned()))
}

/// A screen that shows all of this question.
pub(super) fn asked(question: ClientEvent) -> Screen {
    let mut screen = screen();
    let effects = screen.update(event(1, question));
    assert!(effects.contains(&ScreenEffect::Bell));
    screen.question_painted(QuestionShown::Whole);
    screen
}

pub(super) fn calls(offers: &[&str]) -> Screen {
    asked(question(1, offers))
}

pub(super) fn rows(screen: &Screen) -> Vec<String> {
    let list = screen.answer_rows().unwrap();
    let mark = |row: &AnswerRow| if row.is_marked { "❯ " } else { "" }.to_owned() + &row.text;
    list.rows.iter().map(mark).collect()
}

pub(super) fn enter_does(screen: &Screen) -> String {
    screen.answer_rows().unwrap().enter
}

/// Goes down by so many rows from the first.
pub(super) fn down(screen: &mut Screen, by: usize) {
    for _ in 0..by {
        assert_eq!(key(screen, KeyPress::Down), []);
    }
}

/// The question of a server, with these lines of its form.
pub(super) fn server_question(lines: &[&str]) -> ClientEvent {
    let ClientEvent::Asked { mut question } = question(1, lines) else { panic!() };
    question.tool = protocol::judgement::SERVER_QUESTION.to_owned();
    question.ask = match question.rules() {
        [] => Ask::Visit,
        lines => Ask::Form { lines: lines.to_vec() },
    };
    question.reason = "The MCP server tracker asks:".to_owned();
    ClientEvent::Asked { question }
}

pub(super) fn plan_question() -> ClientEvent {
    use PermissionMode::{AcceptEdits, Auto, DontAsk};
    let ClientEvent::Asked { question } = question(1, &[]) else { panic!() };
    let ask = Ask::Plan { modes: vec![PermissionMode::Ask, AcceptEdits, Auto, DontAsk] };
    ClientEvent::Asked { question: Question { tool: "exit_plan".to_owned(), ask, ..question } }
}

pub(super) fn decided(number: u32) -> ClientEvent {
    let basis = "answered by terminal 2".to_owned();
    ClientEvent::Decided { call: call_id(number), allowed: false, basis }
}

pub(super) fn attached(name: &str) -> ScreenInput {
    ScreenInput::Message(ToClient::Attached { session: session(), name: name.to_owned() })
}

pub(super) fn ended(number: u32) -> ClientEvent {
    let result = ToolResult {
        outcome: Outcome::Done,
        text: String::new(),
        summary: String::new(),
        is_error: false,
        code: None,
        images: Vec::new(),
    };
    ClientEvent::CallEnded { call: call_id(number), result, refused: Vec::new(), spent: None }
}

#[test]
fn each_row_is_reached_by_arrows_and_by_its_number_and_only_enter_gives_it() {
    let mut screen = calls(&["bash:cargo test", "bash:cargo *"]);
    assert_eq!(
        rows(&screen),
        [
            "❯ 1 Allow once",
            "2 Allow `bash:cargo test` for this session",
            "3 Always allow…",
            "4 Deny",
            "5 Stop the turn"
        ]
    );
    assert_eq!(answered(&enter(&mut screen)), PersonAnswer::Once);
    for (row, want) in [
        (0, PersonAnswer::Once),
        (1, PersonAnswer::Session("bash:cargo test".to_owned())),
        (3, PersonAnswer::Deny(String::new())),
        (4, PersonAnswer::Stop),
    ] {
        let mut screen = calls(&["bash:cargo test", "bash:cargo *"]);
        down(&mut screen, row);
        assert!(rows(&screen)[row].starts_with('❯'));
        assert_eq!(answered(&enter(&mut screen)), want, "{row}");
        let mut screen = calls(&["bash:cargo test", "bash:cargo *"]);
        let number = (row + 1).to_string();
        assert_eq!(types(&mut screen, &number), []);
        assert_eq!(screen.draft(), number, "a number is written first");
        assert!(rows(&screen)[row].starts_with('❯'), "{:?}", rows(&screen));
        assert_eq!(answered(&enter(&mut screen)), want, "{row}");
        assert_eq!(screen.draft(), "");
    }
    let mut screen = calls(&["bash:cargo test"]);
    down(&mut screen, 9);
    key(&mut screen, KeyPress::Up);
    assert_eq!(answered(&enter(&mut screen)), PersonAnswer::Deny(String::new()));
    for number in ["0", "6", "99"] {
        let mut screen = calls(&["bash:cargo test"]);
        types(&mut screen, number);
        assert_eq!(enter(&mut screen), [], "{number}");
        assert!(screen.hint().unwrap().contains("1 to 5"));
    }
}

#[test]
fn behind_a_typed_text_enter_answers_nothing_until_an_arrow_has_marked_a_row() {
    for text in ["actually", "may I see it", "no, use yarn", " # x", "12 apples"] {
        let mut screen = calls(&["bash:cargo test"]);
        assert_eq!(types(&mut screen, text), [], "{text}");
        assert_eq!(&*screen.draft(), text);
        assert!(rows(&screen).iter().all(|row| !row.starts_with('❯')), "{text}");
        assert!(enter_does(&screen).contains("sends this as a prompt"), "{text}");
        let effects = enter(&mut screen);
        assert!(
            matches!(says(&effects)[..], [FromClient::Prompt { text: sent, .. }] if sent == text)
        );
        // Enter was pressed twice.
        assert_eq!(enter(&mut screen), [], "{text}");
        assert_eq!(enter_does(&screen), "↑ ↓ choose an answer, Enter gives it");
        assert_eq!(screen.items().questions().len(), 1, "the question waits");
        down(&mut screen, 1);
        assert_eq!(answered(&enter(&mut screen)), PersonAnswer::Once, "the control");
    }
    // Neither does it behind a text that was erased, pasted, or there before.
    let erase = |screen: &mut Screen| key(screen, KeyPress::Erase(Distance::All, Direction::Start));
    let mut screen = calls(&[]);
    types(&mut screen, "well");
    erase(&mut screen);
    assert_eq!((enter(&mut screen), &*screen.draft()), (vec![], ""));
    let mut screen = calls(&[]);
    screen.update(ScreenInput::Paste("y\n".to_owned()));
    assert_eq!((enter(&mut screen), &*screen.draft()), (vec![], "y\n"));
    let mut screen = self::screen();
    types(&mut screen, "next, ");
    screen.update(event(1, question(1, &[])));
    screen.question_painted(QuestionShown::Whole);
    assert!(matches!(says(&enter(&mut screen))[..], [FromClient::Prompt { .. }]));
}

#[test]
fn the_letters_of_an_older_hand_answer_nothing_and_go_nowhere() {
    for word in ["y", "n", "s", "a", "A", "D", "e", "r", "x", "yes", "no", "always"] {
        for marked in [0, 4] {
            let mut screen = calls(&["bash:cargo test"]);
            types(&mut screen, word);
            down(&mut screen, marked);
            assert_eq!(enter(&mut screen), [], "{word}");
            assert!(screen.hint().unwrap().contains("↑ ↓ and Enter"), "{word}");
            assert_eq!(screen.draft(), word, "it stays");
        }
    }
}

#[test]
fn a_denial_carries_the_text_of_the_line_as_its_reason() {
    let mut screen = calls(&[]);
    types(&mut screen, "use yarn ");
    down(&mut screen, 2);
    assert_eq!(enter_does(&screen), "Enter denies it, for this reason");
    assert_eq!(answered(&enter(&mut screen)), PersonAnswer::Deny("use yarn".to_owned()));
    assert_eq!(screen.draft(), "");
    assert_eq!(enter_does(&screen), "answered; waiting for the supervisor");
    assert_eq!(enter(&mut screen), [], "it is answered once");
    // It did not count: the reason is there to be given again.
    let reason = "the broker restarted".to_owned();
    screen.update(event(0, ClientEvent::AnswerRejected { call: call_id(1), reason }));
    assert_eq!(screen.draft(), "use yarn");
    assert_eq!(answered(&enter(&mut screen)), PersonAnswer::Deny("use yarn".to_owned()));
    screen.update(ScreenInput::Lost("gone".to_owned()));
    screen.update(opened(session()));
    screen.update(attached("terminal 1"));
    assert_eq!(screen.draft(), "use yarn", "it did not arrive");
    // The text stays where an answer takes none.
    let mut screen = calls(&[]);
    types(&mut screen, "later");
    down(&mut screen, 3);
    assert_eq!(
        enter_does(&screen),
        "Enter denies it and stops the turn; your text stays in the line"
    );
    assert_eq!(answered(&enter(&mut screen)), PersonAnswer::Stop);
    assert_eq!(screen.draft(), "later");
}

#[test]
fn a_yes_carries_the_text_of_the_line_as_a_note() {
    let noted = |consent| PersonAnswer::Noted(consent, "keep the docs".to_owned());
    let typed = |question: ClientEvent, row: usize| {
        let mut screen = asked(question);
        types(&mut screen, "keep the docs");
        down(&mut screen, row + 1);
        screen
    };
    let mut screen = typed(question(1, &["bash:ls"]), 0);
    assert_eq!(enter_does(&screen), "Enter allows it once, with this note");
    assert_eq!(answered(&enter(&mut screen)), noted(Consent::Once));
    assert_eq!(screen.draft(), "");
    let mut screen = typed(question(1, &["bash:ls"]), 1);
    assert_eq!(answered(&enter(&mut screen)), noted(Consent::Session("bash:ls".to_owned())));
    let mut screen = typed(plan_question(), 1);
    assert_eq!(answered(&enter(&mut screen)), noted(Consent::Mode(PermissionMode::AcceptEdits)));
    // It waits while the rule is shown.
    let mut screen = typed(question(1, &["bash:ls"]), 2);
    assert_eq!(enter(&mut screen), []);
    assert!(enter_does(&screen).starts_with("Enter allows it, with your note, and writes"));
    assert_eq!(answered(&enter(&mut screen)), noted(Consent::Always("bash:ls".to_owned())));
    // Blanks are no note.
    let mut screen = calls(&[]);
    types(&mut screen, "  ");
    down(&mut screen, 1);
    assert_eq!(answered(&enter(&mut screen)), PersonAnswer::Once);
}

#[test]
fn a_command_works_at_a_question() {
    let mut screen = calls(&[]);
    types(&mut screen, ":net on");
    down(&mut screen, 1);
    assert!(enter_does(&screen).starts_with("Enter runs the command"));
    let change = SettingChange::Network(Network::On);
    assert_eq!(says(&enter(&mut screen)), [&FromClient::Change { session: session(), change }]);
    assert_eq!(enter(&mut screen), [], "and the next Enter allows nothing");
}

#[test]
fn rows_of_the_text_come_before_those_of_the_list() {
    let mut screen = calls(&[]);
    screen.update(ScreenInput::Paste("one\ntwo".to_owned()));
    key(&mut screen, KeyPress::Up);
    assert!(rows(&screen).iter().all(|row| !row.starts_with('❯')), "the cursor went up");
    key(&mut screen, KeyPress::Up);
    assert_eq!(rows(&screen)[0], "❯ 1 Allow once");
    types(&mut screen, "!");
    assert_eq!(screen.draft(), "one!\ntwo", "and writing goes on there");
}

#[test]
fn nothing_is_allowed_while_rows_of_the_question_are_hidden() {
    for (row, is_sent) in [(0, false), (1, false), (2, false), (3, true), (4, true)] {
        let mut screen = calls(&["bash:cargo test"]);
        screen.question_painted(QuestionShown::InPart);
        down(&mut screen, row);
        assert_eq!(enter_does(&screen).contains("PgDn"), !is_sent, "{row}");
        assert_eq!(!says(&enter(&mut screen)).is_empty(), is_sent, "{row}");
        assert_eq!(screen.focus, Focus::Line, "{row}");
    }
    // One that was not painted yet.
    let mut screen = screen();
    screen.update(event(1, question(1, &[])));
    assert_eq!(enter(&mut screen), []);
}

#[test]
fn without_a_narrow_rule_nothing_longer_than_once_is_offered() {
    let screen = calls(&[]);
    assert_eq!(rows(&screen), ["❯ 1 Allow once", "2 Deny", "3 Stop the turn"]);
}

#[test]
fn a_rule_is_shown_with_its_place_and_may_be_changed_before_enter_writes_it() {
    let open = || {
        let mut screen = calls(&["bash:cargo test", "bash:cargo *"]);
        types(&mut screen, "3");
        assert_eq!(enter(&mut screen), []);
        screen
    };
    let mut screen = open();
    assert_eq!((&*screen.input().0.text(), screen.input().1), ("bash:cargo test", "rule: "));
    assert!(enter_does(&screen).contains("writes the rule for this project"));
    assert!(rows(&screen)[0].contains("for this project alone"));
    assert_eq!(answered(&enter(&mut screen)), PersonAnswer::Always("bash:cargo test".to_owned()));
    let mut screen = open();
    key(&mut screen, KeyPress::Tab);
    assert_eq!(screen.input().0.text(), "bash:cargo *");
    key(&mut screen, KeyPress::Down);
    assert!(enter_does(&screen).contains("for all projects"));
    let everywhere = PersonAnswer::Everywhere("bash:cargo *".to_owned());
    assert_eq!(answered(&enter(&mut screen)), everywhere);
    // It stays as it was typed, for one that does not fit.
    let mut screen = open();
    assert_eq!(types(&mut screen, "s"), []);
    let typed = PersonAnswer::Always("bash:cargo tests".to_owned());
    assert_eq!(answered(&enter(&mut screen)), typed);
    let reason = "it does not fit".to_owned();
    screen.update(event(0, ClientEvent::AnswerRejected { call: call_id(1), reason }));
    assert_eq!(enter(&mut screen), [], "the row of the list");
    assert_eq!(screen.input().0.text(), "bash:cargo tests");
    assert_eq!(key(&mut screen, KeyPress::Escape), [], "it denies nothing");
    assert_eq!((screen.focus, &*screen.draft()), (Focus::Line, ""));
    // Meant for one question, it is not written for the next.
    let mut screen = open();
    screen.update(event(2, question(2, &["bash:rm *"])));
    screen.update(event(3, decided(1)));
    assert_eq!(screen.focus, Focus::Line);
    assert_eq!(screen.list.entry.line.text(), "");
}

#[test]
fn tab_goes_to_the_next_question_and_each_is_answered_on_its_own() {
    let mut screen = calls(&[]);
    assert_eq!(key(&mut screen, KeyPress::Tab), []);
    assert_eq!(screen.hint(), Some("no other question is open"));
    screen.update(event(2, question(2, &["bash:ls"])));
    assert_eq!(screen.question_place(), Some((1, 2)));
    down(&mut screen, 1);
    key(&mut screen, KeyPress::Tab);
    assert_eq!(screen.question_place(), Some((2, 2)));
    assert_eq!(rows(&screen)[0], "❯ 1 Allow once", "it begins anew");
    assert_eq!(enter(&mut screen), [], "it was not painted yet");
    screen.question_painted(QuestionShown::Whole);
    let effects = enter(&mut screen);
    assert!(
        matches!(says(&effects)[..], [FromClient::Answer { call, answer: PersonAnswer::Once, .. }] if *call == call_id(2))
    );
    screen.update(event(3, decided(2)));
    assert_eq!(screen.question().unwrap().call, call_id(1));
    screen.update(event(4, question(3, &[])));
    key(&mut screen, KeyPress::BackTab);
    assert_eq!(screen.question().unwrap().call, call_id(3));
    screen.update(event(5, decided(1)));
    assert_eq!(screen.question().unwrap().call, call_id(3), "the keys stay where they are");
}

#[test]
fn a_question_that_changes_is_shown_anew_and_no_row_of_it_is_marked() {
    let mut screen = calls(&["bash:ls"]);
    down(&mut screen, 1);
    let ClientEvent::Asked { mut question } = question(1, &["bash:ls"]) else { panic!() };
    question.digest = "e".to_owned();
    screen.update(event(2, ClientEvent::Asked { question }));
    assert!(rows(&screen).iter().all(|row| !row.starts_with('❯')), "{:?}", rows(&screen));
    down(&mut screen, 1);
    assert_eq!(enter(&mut screen), [], "it was not painted yet");
}

#[test]
fn an_enter_before_the_question_could_be_read_is_for_the_line() {
    let mut screen = calls(&[]);
    assert_eq!(screen.update(ScreenInput::EnterAhead), []);
    types(&mut screen, "1");
    assert_eq!(screen.update(ScreenInput::EnterAhead), []);
    assert_eq!(answered(&enter(&mut screen)), PersonAnswer::Once, "the control");
    let mut screen = calls(&[]);
    types(&mut screen, "go on");
    down(&mut screen, 1);
    let effects = screen.update(ScreenInput::EnterAhead);
    assert!(matches!(says(&effects)[..], [FromClient::Prompt { .. }]));
}

#[test]
fn a_servers_form_without_fields_is_sent_as_it_is() {
    let ClientEvent::Asked { mut question } = server_question(&[]) else { panic!() };
    question.ask = Ask::Form { lines: Vec::new() };
    let mut screen = asked(ClientEvent::Asked { question });
    assert_eq!(enter(&mut screen), []);
    assert_eq!(answered(&enter(&mut screen)), PersonAnswer::Form(String::new()));
}

#[test]
fn a_servers_form_is_filled_in_and_sent_and_stays_as_it_was_typed() {
    let mut screen = asked(server_question(&["count = 3", "name ="]));
    assert_eq!(rows(&screen), ["❯ 1 Fill in the form", "2 Decline", "3 Stop the turn"]);
    assert_eq!(enter(&mut screen), []);
    assert_eq!(types(&mut screen, " Bo"), []);
    let typed = |text: &str| PersonAnswer::Form(text.to_owned());
    assert_eq!(answered(&enter(&mut screen)), typed("count = 3\nname = Bo"));
    // It was rejected: the answers are there to be changed, on any line.
    let reason = "count has no unit".to_owned();
    screen.update(event(0, ClientEvent::AnswerRejected { call: call_id(1), reason }));
    assert_eq!(enter(&mut screen), []);
    types(&mut screen, "b");
    key(&mut screen, KeyPress::Up);
    assert_eq!(types(&mut screen, "0"), []);
    assert_eq!(answered(&enter(&mut screen)), typed("count = 30\nname = Bob"));
    for (row, want) in [(1, PersonAnswer::Deny(String::new())), (2, PersonAnswer::Stop)] {
        let mut screen = asked(server_question(&["name ="]));
        types(&mut screen, "why");
        down(&mut screen, row + 1);
        assert!(enter_does(&screen).ends_with("your text stays in the line"));
        assert_eq!(answered(&enter(&mut screen)), want, "{row}");
    }
    let mut screen = asked(server_question(&["name ="]));
    assert_eq!(answered(&line(&mut screen, "y {\"name\": \"Bob\"}")), typed("{\"name\": \"Bob\"}"));
}

#[test]
fn answers_to_one_form_never_come_back_in_another() {
    let undo = || ScreenInput::Key(KeyPress::Edit(EditKey::Undo));
    let opens = |screen: &mut Screen| {
        screen.question_painted(QuestionShown::Whole);
        enter(screen);
    };
    let mut screen = asked(server_question(&["password ="]));
    opens(&mut screen);
    types(&mut screen, " secret");
    screen.update(event(2, decided(1)));
    screen.update(event(3, server_question(&["name ="])));
    opens(&mut screen);
    assert_eq!(screen.focus, Focus::Form);
    for input in [undo(), undo(), ScreenInput::Key(KeyPress::Edit(EditKey::Yank))] {
        screen.update(input);
        assert!(!screen.input().0.text().contains("secret"), "{}", screen.input().0.text());
    }
    types(&mut screen, "also secret");
    screen.update(ScreenInput::Lost("gone".to_owned()));
    screen.update(opened(session()));
    screen.update(attached("terminal 1"));
    screen.update(event(4, server_question(&["city ="])));
    opens(&mut screen);
    assert_eq!(screen.input().0.text(), "city =");
    screen.update(event(5, decided(1)));
    screen.update(event(6, question(2, &["bash:ls"])));
    screen.question_painted(QuestionShown::Whole);
    types(&mut screen, "3");
    enter(&mut screen);
    for _ in 0..3 {
        screen.update(undo());
    }
    assert!(["bash:ls", ""].contains(&&*screen.input().0.text()));
}

#[test]
fn a_servers_page_is_confirmed_as_visited() {
    let mut screen = asked(server_question(&[]));
    assert_eq!(rows(&screen)[0], "❯ 1 I have finished on that page");
    assert_eq!(answered(&enter(&mut screen)), PersonAnswer::Once);
}

#[test]
fn a_plan_is_approved_with_a_mode_and_those_that_ask_nobody_come_last() {
    let screen = asked(plan_question());
    assert_eq!(
        rows(&screen),
        [
            "❯ 1 Approve, then mode ask",
            "2 Approve, then mode accept-edits",
            "3 Plan on",
            "4 Stop the turn",
            "5 Approve, then mode auto, which asks nobody",
            "6 Approve, then mode dont-ask, which asks nobody"
        ]
    );
    for (row, mode) in [
        (0, PermissionMode::Ask),
        (1, PermissionMode::AcceptEdits),
        (4, PermissionMode::Auto),
        (5, PermissionMode::DontAsk),
    ] {
        let mut screen = asked(plan_question());
        down(&mut screen, row);
        assert_eq!(answered(&enter(&mut screen)), PersonAnswer::Mode(mode), "{row}");
    }
    let mut screen = asked(plan_question());
    types(&mut screen, "smaller steps");
    down(&mut screen, 3);
    assert_eq!(enter_does(&screen), "Enter has the model plan on, for this reason");
    assert_eq!(answered(&enter(&mut screen)), PersonAnswer::Deny("smaller steps".to_owned()));
}

#[test]
fn a_mode_that_a_question_offers_is_its_last_row_and_the_others_keep_their_numbers() {
    let offering = || {
        let ClientEvent::Asked { mut question } = question(1, &["bash:ls"]) else { unreachable!() };
        let rules = vec!["bash:ls".to_owned()];
        question.ask = Ask::Call { rules, modes: vec![PermissionMode::Sandboxed] };
        asked(ClientEvent::Asked { question })
    };
    let without = rows(&calls(&["bash:ls"]));
    let with = rows(&offering());
    let last = "6 Allow, then ask only about effects (mode sandboxed)";
    assert_eq!((&with[..5], with[5].as_str()), (&without[..], last));
    let mut screen = offering();
    down(&mut screen, 5);
    let does = "Enter allows it; later calls run unasked in the sandbox where undo covers them";
    assert_eq!(enter_does(&screen), does);
    assert_eq!(answered(&enter(&mut screen)), PersonAnswer::Mode(PermissionMode::Sandboxed));
    for text in ["6", "b", "y sandboxed"] {
        let given = answered(&line(&mut offering(), text));
        assert_eq!(given, PersonAnswer::Mode(PermissionMode::Sandboxed), "{text}");
    }
    assert_eq!(answered(&line(&mut offering(), "s")), PersonAnswer::Session("bash:ls".to_owned()));
    assert_eq!(line(&mut calls(&["bash:ls"]), "y sandboxed"), []);
}

#[test]
fn a_terminal_of_lines_answers_by_numbers_letters_and_words() {
    for (text, want) in [
        ("y", PersonAnswer::Once),
        ("1", PersonAnswer::Once),
        ("2", PersonAnswer::Session("bash:ls".to_owned())),
        ("s", PersonAnswer::Session("bash:ls".to_owned())),
        ("n", PersonAnswer::Deny(String::new())),
        ("4", PersonAnswer::Deny(String::new())),
        ("4 use yarn", PersonAnswer::Deny("use yarn".to_owned())),
        ("r use yarn", PersonAnswer::Deny("use yarn".to_owned())),
        ("5", PersonAnswer::Stop),
        ("x", PersonAnswer::Stop),
    ] {
        let mut screen = calls(&["bash:ls"]);
        assert_eq!(answered(&line(&mut screen, text)), want, "{text}");
    }
    for text in ["yes, do", "yes", "y please", "6", "0", "1 2", ""] {
        let mut screen = calls(&["bash:ls"]);
        assert_eq!(line(&mut screen, text), [], "{text}");
        assert_eq!(screen.hint().is_some(), !text.is_empty(), "{text}");
    }
    let mut screen = calls(&["bash:ls"]);
    let words = answers_in_line(&screen).unwrap();
    assert!(
        words.contains("1 Allow once, 2 Allow `bash:ls` for this session, 3 Always"),
        "{words}"
    );
    assert!(words.contains("type a number, or y, s, a, n, x, then Enter"), "{words}");
    screen.update(event(2, ClientEvent::TurnEnded { end: TurnEnd::Done }));
    let effects = line(&mut screen, "hello");
    assert!(matches!(says(&effects)[..], [FromClient::Prompt { text, .. }] if text == "hello"));
    // A rule is shown before a second line writes it.
    let always = |text: &str| PersonAnswer::Always(text.to_owned());
    for (text, want) in [
        ("y", always("bash:ls")),
        ("1", always("bash:ls")),
        ("1 bash:ls *", always("bash:ls *")),
        ("A", PersonAnswer::Everywhere("bash:ls".to_owned())),
        ("2", PersonAnswer::Everywhere("bash:ls".to_owned())),
    ] {
        let mut screen = calls(&["bash:ls"]);
        assert_eq!(line(&mut screen, "a"), []);
        assert!(answers_in_line(&screen).unwrap().contains("allow `bash:ls` in later sessions?"));
        assert_eq!(line(&mut screen, "z"), []);
        assert_eq!(answered(&line(&mut screen, text)), want, "{text}");
    }
    let mut screen = asked(plan_question());
    let effects = line(&mut screen, "y accept-edits");
    assert_eq!(answered(&effects), PersonAnswer::Mode(PermissionMode::AcceptEdits));
    let mut screen = asked(plan_question());
    assert_eq!(line(&mut screen, "y now"), []);
    assert!(screen.hint().unwrap().contains("mode accept-edits"));
}

#[test]
fn words_and_keys_without_enter_answer_nothing_and_change_nothing() {
    use proptest::prelude::*;
    let hook = || {
        let ClientEvent::Asked { mut question } = question(1, &[]) else { panic!() };
        question.reason = "the hook guard wants a person to approve it".to_owned();
        ClientEvent::Asked { question }
    };
    let edit = || {
        let ClientEvent::Asked { mut question } = question(1, &["edit:./README.md"]) else {
            panic!()
        };
        question.tool = "edit".to_owned();
        ClientEvent::Asked { question }
    };
    let kinds: [&dyn Fn() -> ClientEvent; 7] = [
        &|| question(1, &["bash:cargo test", "bash:cargo *"]),
        &|| question(1, &[]),
        &edit,
        &plan_question,
        &|| server_question(&["name ="]),
        &|| server_question(&[]),
        &hook,
    ];
    let keys = || {
        prop_oneof![
            8 => any::<char>().prop_map(KeyPress::Char),
            8 => proptest::sample::select("ynsaAxreD123456789: /".chars().collect::<Vec<_>>())
                .prop_map(KeyPress::Char),
            6 => proptest::sample::select(vec![
                KeyPress::Up, KeyPress::Down, KeyPress::Tab, KeyPress::BackTab, KeyPress::Escape,
                KeyPress::NewLine, KeyPress::Interrupt, KeyPress::EndOfInput, KeyPress::Leader,
                KeyPress::Move(Distance::Word, Direction::Start),
                KeyPress::Erase(Distance::Word, Direction::Start),
                KeyPress::Erase(Distance::All, Direction::Start),
                KeyPress::Edit(EditKey::Yank), KeyPress::Edit(EditKey::Undo),
                KeyPress::Page(Direction::End), KeyPress::Control('s'), KeyPress::Control('o'),
            ]),
        ]
    };
    let says_nothing = |effects: &[ScreenEffect]| {
        says(effects).iter().all(|word| matches!(word, FromClient::Interrupt { .. }))
    };
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let all = (proptest::collection::vec(keys(), 1..60), "[a-zA-Z0-9 ,.?!']{1,40}");
    let result = runner.run(&all, |(keys, words)| {
        for kind in kinds {
            let mut screen = asked(kind());
            for press in &keys {
                let effects = key(&mut screen, *press);
                prop_assert!(says_nothing(&effects), "{press:?}: {effects:?}");
                screen.update(ScreenInput::WordAlone);
            }
            let mut screen = asked(kind());
            prop_assert_eq!(types(&mut screen, &words), vec![]);
            prop_assert_eq!(&*screen.draft(), &words);
            // Not even Enter answers behind words alone, but for the number of a row.
            let effects = enter(&mut screen);
            let run = |wish: &SessionWish| matches!(wish, SessionWish::Run { .. });
            let is_prompt = match says(&effects)[..] {
                [FromClient::Prompt { .. }] => true,
                // It waits behind the turn, too.
                [FromClient::Wish { wish, .. }] => run(wish) && words.starts_with('!'),
                _ => false,
            };
            let is_number = words.trim().parse::<usize>().is_ok();
            prop_assert!(
                effects.is_empty() || is_prompt || is_number || leaves(&effects),
                "{effects:?}"
            );
            // The control.
            let mut screen = asked(kind());
            key(&mut screen, KeyPress::Down);
            prop_assert!(!says_nothing(&enter(&mut screen)));
        }
        Ok(())
    });
    result.unwrap();
}

fn leaves(effects: &[ScreenEffect]) -> bool {
    effects.iter().all(|effect| matches!(effect, ScreenEffect::Leave(_)))
}

#[test]
fn calls_that_wait_behind_the_question_are_named_above_its_answers() {
    let mut screen = screen();
    let proposed = |number, tool: &str, input: &str| {
        let call = Call {
            id: call_id(number),
            origin: CallOrigin::model("u"),
            tool: tool.to_owned(),
            input: input.to_owned(),
        };
        event(1, ClientEvent::Proposed { call })
    };
    screen.update(proposed(1, "bash", r#"{"command":"sleep 8"}"#));
    screen.update(event(1, question(1, &[])));
    screen.question_painted(QuestionShown::Whole);
    let head = |screen: &Screen| screen.answer_rows().unwrap().head;
    assert_eq!(head(&screen), None);
    screen.update(proposed(2, "edit", r#"{"path":"README.md"}"#));
    assert_eq!(head(&screen).as_deref(), Some("behind it waits 1 call: edit README.md"));
    screen.update(proposed(3, "bash", r#"{"command":"make"}"#));
    let wanted = "behind it wait 2 calls: edit README.md · make";
    assert_eq!(head(&screen).as_deref(), Some(wanted));
    screen.update(event(
        1,
        ClientEvent::Decided { call: call_id(1), allowed: true, basis: String::new() },
    ));
    screen.update(event(1, question(2, &[])));
    assert_eq!(head(&screen).as_deref(), Some("behind it waits 1 call: make"));
}
