//! Tests of what an answer may be made of: nothing typed for something else, nothing twice, and nothing lost.

use super::questions::*;
use super::*;
use crate::live_rows::answers_in_line;
use protocol::judgement::Consent;

fn prompts(effects: &[ScreenEffect]) -> Vec<String> {
    let mut prompts = Vec::new();
    for word in says(effects) {
        if let FromClient::Prompt { text, .. } = word {
            prompts.push(text.clone());
        }
    }
    prompts
}

fn rejected(call: u32) -> ClientEvent {
    ClientEvent::AnswerRejected { call: call_id(call), reason: "it was late".to_owned() }
}

/// Another question is painted whole.
fn is_asked(screen: &mut Screen, question: ClientEvent) {
    screen.update(event(2, question));
    screen.question_painted(QuestionShown::Whole);
}

#[test]
fn a_line_answers_without_the_draft_that_nobody_sees_and_leaves_it_alone() {
    let draft = || ScreenInput::Draft("my secret plan".to_owned());
    for (text, want) in [
        ("1", PersonAnswer::Once),
        ("y", PersonAnswer::Once),
        ("2", PersonAnswer::Session("bash:ls".to_owned())),
        ("n", PersonAnswer::Deny(String::new())),
        ("4 use yarn", PersonAnswer::Deny("use yarn".to_owned())),
    ] {
        let mut screen = calls(&["bash:ls"]);
        screen.update(draft());
        assert_eq!(answered(&line(&mut screen, text)), want, "{text}");
        assert_eq!(screen.unsent(), "my secret plan", "{text}");
    }
    let mut screen = calls(&["bash:ls"]);
    screen.update(draft());
    assert_eq!(line(&mut screen, "a"), []);
    assert_eq!(answered(&line(&mut screen, "1")), PersonAnswer::Always("bash:ls".to_owned()));
    assert_eq!(screen.unsent(), "my secret plan");
    // A prompt and a command do not take its place either.
    let mut screen = self::screen();
    screen.update(draft());
    assert_eq!(prompts(&line(&mut screen, "hello")), ["hello"]);
    line(&mut screen, ":net on");
    assert_eq!(screen.unsent(), "my secret plan");
    // The control: with keys the text is in view, and goes with the marked row.
    let mut screen = calls(&["bash:ls"]);
    screen.update(draft());
    down(&mut screen, 1);
    let noted = PersonAnswer::Noted(Consent::Once, "my secret plan".to_owned());
    assert_eq!(answered(&enter(&mut screen)), noted);
}

#[test]
fn the_line_of_a_rule_is_printed_where_a_hint_stood() {
    let mut screen = calls(&["bash:ls"]);
    line(&mut screen, "what");
    assert!(screen.hint().is_some());
    line(&mut screen, "a");
    assert_eq!(screen.hint(), None);
    assert!(answers_in_line(&screen).unwrap().contains("allow `bash:ls` in later sessions?"));
    // A line that came too early does nothing.
    let effects = screen.update(ScreenInput::LineAhead);
    let [ScreenEffect::Show(ScreenItem::Note(note))] = &effects[..] else { panic!("{effects:?}") };
    assert!(note.contains("type it again"));
    assert_eq!(screen.hint(), None);
    assert_eq!(screen.focus, Focus::Rule(RulePlace::Project));
}

#[test]
fn a_note_that_was_delivered_never_comes_back() {
    let given = || {
        let mut screen = calls(&[]);
        types(&mut screen, "keep the docs");
        down(&mut screen, 1);
        answered(&enter(&mut screen));
        screen
    };
    let lost = |screen: &mut Screen| {
        screen.update(ScreenInput::Lost("gone".to_owned()));
        screen.update(opened(session()));
    };
    // Decided before the loss, or by the backlog behind it.
    let mut screen = given();
    screen.update(event(2, decided(1)));
    lost(&mut screen);
    screen.update(attached("terminal 1"));
    assert_eq!(screen.draft(), "");
    let mut screen = given();
    lost(&mut screen);
    assert_eq!(screen.unconfirmed(), ["keep the docs"]);
    screen.update(event(2, decided(1)));
    assert!(screen.unconfirmed().is_empty());
    screen.update(attached("terminal 1"));
    assert_eq!(screen.draft(), "");
    let mut screen = given();
    screen.update(event(2, ended(1)));
    lost(&mut screen);
    screen.update(attached("terminal 1"));
    assert_eq!(screen.draft(), "");
    // The controls: it was not delivered.
    let mut screen = given();
    lost(&mut screen);
    screen.update(attached("terminal 1"));
    assert_eq!(screen.draft(), "keep the docs");
    assert!(screen.hint().unwrap().contains("may not have arrived"));
    let mut screen = given();
    screen.update(event(2, decided(1)));
    screen.update(event(0, rejected(1)));
    assert_eq!(screen.draft(), "keep the docs", "the answer of another was first");
}

#[test]
fn each_of_two_answers_has_its_own_note() {
    let mut screen = calls(&[]);
    types(&mut screen, "first");
    down(&mut screen, 1);
    enter(&mut screen);
    screen.update(event(2, question(2, &[])));
    key(&mut screen, KeyPress::Tab);
    screen.question_painted(QuestionShown::Whole);
    types(&mut screen, "second");
    down(&mut screen, 1);
    assert_eq!(says(&enter(&mut screen)).len(), 1);
    screen.update(event(0, rejected(1)));
    assert_eq!(screen.draft(), "first");
}

#[test]
fn a_second_answer_to_a_question_is_not_given() {
    for text in ["2", "3", "y", "no"] {
        let mut screen = calls(&[]);
        types(&mut screen, "use yarn");
        down(&mut screen, 2);
        assert_eq!(answered(&enter(&mut screen)), PersonAnswer::Deny("use yarn".to_owned()));
        types(&mut screen, text);
        assert_eq!(enter(&mut screen), [], "{text}");
        assert_eq!(line(&mut screen, "1"), []);
        key(&mut screen, KeyPress::Erase(Distance::All, Direction::Start));
        screen.update(event(0, rejected(1)));
        assert_eq!(screen.draft(), "use yarn", "{text}");
    }
}

#[test]
fn a_number_that_was_typed_for_something_else_is_no_answer() {
    let none_is_marked = |screen: &Screen| rows(screen).iter().all(|row| !row.starts_with('❯'));
    // While the turn works.
    let mut screen = screen();
    types(&mut screen, "2");
    is_asked(&mut screen, question(1, &["bash:ls"]));
    assert!(none_is_marked(&screen));
    assert!(enter_does(&screen).contains("was there before the question"));
    assert_eq!(enter(&mut screen), []);
    assert_eq!(screen.draft(), "2");
    // With a row that was marked it is a text like others.
    down(&mut screen, 1);
    let noted = PersonAnswer::Noted(Consent::Once, "2".to_owned());
    assert_eq!(answered(&enter(&mut screen)), noted);
    // For the question before.
    let mut screen = calls(&["bash:rm *"]);
    types(&mut screen, "2");
    screen.update(event(2, question(2, &["bash:ls"])));
    assert!(rows(&screen)[1].starts_with('❯'), "the control");
    is_asked(&mut screen, decided(1));
    assert_eq!(screen.question().unwrap().call, call_id(2));
    assert!(none_is_marked(&screen));
    assert_eq!(enter(&mut screen), []);
    // Typed again it counts.
    key(&mut screen, KeyPress::Erase(Distance::All, Direction::Start));
    types(&mut screen, "2");
    let effects = enter(&mut screen);
    assert!(matches!(
        says(&effects)[..],
        [FromClient::Answer { answer: PersonAnswer::Session(rule), .. }] if rule == "bash:ls"
    ));
    // Pasted, or back from elsewhere.
    for input in [ScreenInput::Paste("2".to_owned()), ScreenInput::Draft("2".to_owned())] {
        let mut screen = calls(&["bash:ls"]);
        screen.update(input);
        assert_eq!(enter(&mut screen), []);
    }
}

#[test]
fn a_row_that_was_marked_for_another_question_is_marked_no_more() {
    let mut screen = calls(&["bash:rm *"]);
    down(&mut screen, 1);
    screen.update(event(2, question(2, &["bash:ls"])));
    is_asked(&mut screen, decided(1));
    assert_eq!(screen.question().unwrap().call, call_id(2));
    assert_eq!(enter(&mut screen), []);
    assert_eq!(enter_does(&screen), "↑ ↓ choose an answer, Enter gives it");
    // The control: behind an answer of one's own the next question is offered as ever.
    let mut screen = calls(&["bash:rm *"]);
    screen.update(event(2, question(2, &["bash:ls"])));
    down(&mut screen, 1);
    answered(&enter(&mut screen));
    is_asked(&mut screen, decided(1));
    assert_eq!(rows(&screen)[0], "❯ 1 Allow once");
}

#[test]
fn an_answer_of_an_older_hand_right_behind_a_question_is_no_prompt() {
    for word in ["y", "no", "A", "2", ""] {
        let mut screen = calls(&[]);
        types(&mut screen, word);
        assert_eq!(screen.update(ScreenInput::EnterAhead), [], "{word}");
        assert_eq!(screen.draft(), word);
    }
    let mut screen = calls(&[]);
    types(&mut screen, "yes, go on");
    assert_eq!(prompts(&screen.update(ScreenInput::EnterAhead)), ["yes, go on"]);
}

#[test]
fn a_note_that_is_too_long_stays_in_the_line() {
    let long = "x".repeat((16 << 10) + 1);
    let pasted = |text: &str, row: usize| {
        let mut screen = calls(&["bash:ls"]);
        screen.update(ScreenInput::Paste(text.to_owned()));
        down(&mut screen, row + 1);
        screen
    };
    for row in [0, 1, 3] {
        let mut screen = pasted(&long, row);
        assert!(enter_does(&screen).contains("at most 16 KiB"), "{row}");
        assert_eq!(enter(&mut screen), [], "{row}");
        assert_eq!(screen.draft(), long);
        assert_eq!(says(&enter(&mut pasted(&long[1..], row))).len(), 1, "the control");
    }
    let mut screen = pasted(&long, 2);
    enter(&mut screen);
    assert_eq!(screen.focus, Focus::Rule(RulePlace::Project));
    assert_eq!(enter(&mut screen), []);
    assert_eq!(screen.draft(), long);
    key(&mut screen, KeyPress::Escape);
    key(&mut screen, KeyPress::Escape);
    assert_eq!(prompts(&enter(&mut screen)), std::slice::from_ref(&long));
    let mut screen = calls(&[]);
    assert_eq!(line(&mut screen, &format!("r {long}")), []);
    assert!(screen.hint().unwrap().contains("16 KiB"));
}

#[test]
fn the_first_escape_takes_the_mark_off_and_the_second_stops() {
    let stops =
        |effects: Vec<ScreenEffect>| matches!(says(&effects)[..], [FromClient::Interrupt { .. }]);
    let works = |number| {
        let mut screen = calls(&[]);
        screen.turn = TurnState::Working;
        types(&mut screen, number);
        screen
    };
    let mut screen = works("later");
    down(&mut screen, 1);
    assert_eq!(key(&mut screen, KeyPress::Escape), []);
    assert!(enter_does(&screen).contains("sends this as a prompt"));
    assert!(stops(key(&mut screen, KeyPress::Escape)));
    // Without a text, or without a mark.
    let mut screen = works("");
    down(&mut screen, 1);
    assert!(stops(key(&mut screen, KeyPress::Escape)));
    assert!(stops(key(&mut works("later"), KeyPress::Escape)));
}

#[test]
fn a_rule_that_was_typed_is_there_until_its_question_is_closed() {
    let typed = || {
        let mut screen = calls(&["bash:cargo test", "bash:cargo *"]);
        types(&mut screen, "3");
        enter(&mut screen);
        types(&mut screen, " --lib");
        screen
    };
    let reopens = |screen: &mut Screen| {
        screen.question_painted(QuestionShown::Whole);
        types(screen, "3");
        enter(screen);
        screen.input().0.text().into_owned()
    };
    let own = "bash:cargo test --lib";
    let mut screen = typed();
    for shown in ["bash:cargo test", "bash:cargo *", own] {
        key(&mut screen, KeyPress::Tab);
        assert_eq!(screen.input().0.text(), shown, "Tab goes round to it");
    }
    key(&mut screen, KeyPress::Escape);
    assert_eq!(reopens(&mut screen), own);
    // At another question meanwhile.
    let mut screen = typed();
    key(&mut screen, KeyPress::Escape);
    screen.update(event(2, question(2, &["bash:ls"])));
    key(&mut screen, KeyPress::Tab);
    assert_eq!(reopens(&mut screen), "bash:ls");
    key(&mut screen, KeyPress::Escape);
    key(&mut screen, KeyPress::Tab);
    assert_eq!(reopens(&mut screen), own);
    // Over a loss of the connection.
    let mut screen = typed();
    screen.update(ScreenInput::Lost("gone".to_owned()));
    screen.update(opened(session()));
    screen.update(event(1, question(1, &["bash:cargo test", "bash:cargo *"])));
    screen.update(attached("terminal 1"));
    assert_eq!(reopens(&mut screen), own);
    // Answered by another terminal: it can be yanked.
    let mut screen = typed();
    screen.update(event(2, decided(1)));
    assert!(screen.hint().unwrap().contains("Ctrl-Y"));
    key(&mut screen, KeyPress::Edit(EditKey::Yank));
    assert_eq!(screen.draft(), own);
    // The controls: nothing was typed, and it was sent.
    let mut screen = calls(&["bash:ls"]);
    types(&mut screen, "3");
    enter(&mut screen);
    screen.update(event(2, decided(1)));
    assert_eq!(screen.hint(), None);
    let mut screen = typed();
    enter(&mut screen);
    screen.update(event(2, decided(1)));
    key(&mut screen, KeyPress::Edit(EditKey::Yank));
    assert_eq!((screen.hint(), &*screen.draft()), (None, ""));
}

#[test]
fn a_form_stays_with_its_question_and_goes_with_it() {
    let mut screen = asked(server_question(&["password ="]));
    enter(&mut screen);
    types(&mut screen, " secret");
    key(&mut screen, KeyPress::Escape);
    screen.update(event(2, question(2, &[])));
    key(&mut screen, KeyPress::Tab);
    key(&mut screen, KeyPress::Tab);
    screen.question_painted(QuestionShown::Whole);
    enter(&mut screen);
    assert_eq!(screen.input().0.text(), "password = secret");
    screen.update(event(3, decided(1)));
    assert!(screen.hint().unwrap().contains("its form is gone"));
    key(&mut screen, KeyPress::Edit(EditKey::Yank));
    assert_eq!(screen.draft(), "", "it may be private");
}

#[test]
fn an_escape_for_a_line_that_was_closed_stops_nothing() {
    let mut screen = calls(&["bash:ls"]);
    screen.turn = TurnState::Working;
    assert_eq!(screen.update(ScreenInput::EscapeAhead), []);
    assert!(screen.hint().unwrap().contains("another Esc stops"));
}

/// A thing that happens around a question.
#[derive(Debug, Clone)]
enum Step {
    Key(KeyPress),
    /// With the marks of a paste.
    Paste(String),
    /// This one of three questions is asked, and painted whole.
    Asked(u32),
    /// It is decided elsewhere.
    Decided(u32),
    Rejected(u32),
    Lost,
}

fn steps() -> impl proptest::strategy::Strategy<Value = Vec<Step>> {
    use proptest::prelude::*;
    use proptest::sample::select;
    let typed = select("ynsaAxre123456: ".chars().collect::<Vec<_>>());
    let control = select(('a'..='z').collect::<Vec<_>>());
    let text = select(vec!["1", "2", "y", "n\ny\n", "no, use yarn", "", "\n"]);
    let number = || 1..4_u32;
    let step = prop_oneof![
        8 => typed.prop_map(|c| Step::Key(KeyPress::Char(c))),
        6 => Just(Step::Key(KeyPress::Enter)),
        4 => select(vec![
            KeyPress::Up, KeyPress::Down, KeyPress::Tab, KeyPress::BackTab, KeyPress::Escape,
            KeyPress::NewLine, KeyPress::Interrupt, KeyPress::Edit(EditKey::Yank),
            KeyPress::Edit(EditKey::Undo), KeyPress::Erase(Distance::All, Direction::Start),
            KeyPress::Erase(Distance::Character, Direction::Start),
        ]).prop_map(Step::Key),
        1 => control.prop_map(|c| Step::Key(KeyPress::Control(c))),
        2 => text.prop_map(|text| Step::Paste(text.to_owned())),
        3 => number().prop_map(Step::Asked),
        2 => number().prop_map(Step::Decided),
        1 => number().prop_map(Step::Rejected),
        1 => Just(Step::Lost),
    ];
    proptest::collection::vec(step, 1..80)
}

/// A screen, and what its person did at the question that the keys reach.
struct Watched {
    screen: Screen,
    of: Option<(protocol::ids::CallId, String)>,
    arrows: u32,
    /// All of the text was typed at this question.
    all_typed: bool,
    answered: Vec<protocol::ids::CallId>,
}

impl Watched {
    /// Does a step, and returns what is wrong with its effects.
    fn takes(&mut self, step: &Step) -> Result<(), String> {
        let (asked, focus) = (self.screen.question().cloned(), self.screen.focus);
        let text = self.screen.draft().trim().to_owned();
        let effects = match step {
            Step::Key(press) => key(&mut self.screen, *press),
            Step::Paste(text) => self.screen.update(ScreenInput::Paste(text.clone())),
            Step::Asked(number) => {
                let effects = self.screen.update(event(1, question(*number, &["bash:ls"])));
                self.screen.question_painted(QuestionShown::Whole);
                effects
            }
            Step::Decided(number) => self.screen.update(event(1, decided(*number))),
            Step::Rejected(number) => self.screen.update(event(0, rejected(*number))),
            Step::Lost => {
                let mut effects = self.screen.update(ScreenInput::Lost("gone".to_owned()));
                effects.extend(self.screen.update(opened(session())));
                effects.extend(self.screen.update(attached("terminal 1")));
                effects
            }
        };
        self.screen.question_painted(QuestionShown::Whole);
        if let Step::Rejected(_) | Step::Lost | Step::Decided(_) = step {
            self.answered.clear();
        }
        let is_fine = |condition: bool, why: &str| match condition {
            true => Ok(()),
            false => Err(format!("{why}: {text:?}, {effects:?}")),
        };
        for word in says(&effects) {
            let FromClient::Answer { call, digest, .. } = word else { continue };
            is_fine(matches!(step, Step::Key(KeyPress::Enter)), "without Enter")?;
            let of = asked.as_ref().map(|asked| (&asked.call, &asked.digest));
            is_fine(of == Some((call, digest)), "to another question")?;
            is_fine(!self.answered.contains(call), "twice")?;
            self.answered.push(call.clone());
            let is_number = text.parse::<u32>().is_ok() && self.all_typed;
            let is_marked = self.arrows > 0 || text.is_empty() || is_number;
            is_fine(focus != Focus::Line || is_marked, "by a word")?;
        }
        let now = self.screen.question().map(|asked| (asked.call.clone(), asked.digest.clone()));
        if now != self.of {
            (self.of, self.arrows, self.all_typed) = (now, 0, false);
        }
        match step {
            Step::Key(KeyPress::Up | KeyPress::Down) => self.arrows += 1,
            Step::Key(_) => {}
            Step::Paste(_) | Step::Rejected(_) | Step::Lost | Step::Asked(_) | Step::Decided(_) => {
                self.all_typed &= *self.screen.draft().trim() == text
            }
        }
        self.all_typed |= self.screen.draft().is_empty();
        Ok(())
    }
}

/// It does not see what depends on time (the tests of `attach::read_first` do), a paste without marks, whose line ends
/// are Enter, lines instead of keys, and questions with hidden rows.
#[test]
fn only_enter_answers_and_only_for_what_was_marked_or_typed_at_that_question() {
    let mut runner = proptest::test_runner::TestRunner::new(proptest::prelude::ProptestConfig {
        cases: 3000,
        failure_persistence: None,
        ..proptest::prelude::ProptestConfig::default()
    });
    let answers = std::cell::Cell::new(0);
    let result = runner.run(&steps(), |steps| {
        let (of, arrows, all_typed, answered) = (None, 0, true, Vec::new());
        let mut watched = Watched { screen: screen(), of, arrows, all_typed, answered };
        watched.screen.turn = TurnState::Working;
        for step in steps {
            let taken = watched.takes(&step);
            proptest::prop_assert!(taken.is_ok(), "{step:?}: {taken:?}");
            answers.set(answers.get() + watched.answered.len());
        }
        Ok(())
    });
    result.unwrap();
    assert!(answers.get() > 1000, "the control: {}", answers.get());
}
