//! The mark at the beginning of the line that makes it no prompt.

use super::*;

#[test]
fn a_command_of_the_person_is_a_wish_and_one_line_of_the_conversation() {
    let (mut screen, sent) = enters("!git status");
    let wish = SessionWish::Run { command: "git status".to_owned() };
    assert_eq!(says(&sent), [&FromClient::Wish { session: session(), wish }]);
    assert!(screen.has_unconfirmed());
    let text = "!git status".to_owned();
    assert_eq!(screen.update(event(1, ClientEvent::Prompt { text, of: PromptUse::Command })), []);
    assert!(!screen.has_unconfirmed() && screen.turn() == TurnState::Working);
    let call = protocol::call::Call {
        id: call_id(1),
        origin: CallOrigin::Person,
        tool: "bash".to_owned(),
        input: r#"{"command":"git status"}"#.to_owned(),
    };
    assert_eq!(crate::call_gist::call_title(&call), "!git status");
    screen.update(event(2, ClientEvent::Proposed { call }));
    let end = event(3, ClientEvent::TurnEnded { end: TurnEnd::Done });
    let [ScreenEffect::Show(ScreenItem::TurnEnded(_))] = &screen.update(end)[..] else {
        panic!("a turn without an answer has no totals")
    };
    screen.update(ScreenInput::Key(KeyPress::Up));
    assert_eq!(screen.draft(), "!git status");
    // Of several lines it is a text that was pasted, or texts that came back together.
    for words in [" !git status", "say !x", "![logo](x.png)\nWhat is it?"] {
        let (_, sent) = enters(words);
        assert!(matches!(says(&sent)[..], [FromClient::Prompt { .. }]), "{words}");
    }
}

#[test]
fn a_terminal_of_lines_runs_no_line_that_may_be_of_a_paste() {
    let mut screen = screen();
    let effects = screen.update(ScreenInput::Line("!touch made".to_owned()));
    assert_eq!(effects, []);
    assert!(screen.hint().unwrap().contains("runs nothing in a terminal of lines"));
    let effects = screen.update(ScreenInput::Line(" !touch made".to_owned()));
    assert!(matches!(says(&effects)[..], [FromClient::Prompt { .. }]), "{effects:?}");
}
