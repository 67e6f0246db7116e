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

#[test]
fn a_line_behind_a_hash_is_no_prompt_and_a_view_without_lists_names_each_way() {
    for (input, note) in [
        ("#always use cents", Some("always use cents")),
        ("# always use cents ", Some("always use cents")),
        (" #always", None),
        ("#", None),
        ("# ", None),
        ("# Head\n\nText", None),
        ("# Head\r", Some("Head")),
        ("say #x", None),
    ] {
        assert_eq!(note_of(input), note, "{input:?}");
    }
    let (mut screen, sent) = enters("# use  cents");
    let [ScreenEffect::Show(ScreenItem::Note(ways))] = &sent[..] else { panic!("{sent:?}") };
    for way in [":note agents use  cents\n", ":note project use  cents\n", ":note all use  cents\n"]
    {
        assert!(ways.contains(way), "{ways}");
    }
    screen.update(ScreenInput::Key(KeyPress::Up));
    assert_eq!(screen.draft(), "# use  cents", "it is not lost");
    for prompt in [" # use cents", "# Head\n\nText"] {
        let (_, sent) = enters(prompt);
        assert!(
            matches!(says(&sent)[..], [FromClient::Prompt { text, .. }] if text == prompt),
            "{prompt:?}"
        );
    }
}

#[test]
fn a_note_goes_where_its_word_says_and_comes_back_where_it_hides_something() {
    for place in NotePlace::ALL {
        let wanted = ScreenEffect::WriteNote(session(), place, "use  cents".to_owned());
        assert_eq!(enters(&place.command("use  cents")).1, [wanted]);
    }
    for wrong in [":note", ":note agents", ":note everywhere x", ":note agents a\nb"] {
        let (_, sent) = enters(wrong);
        assert!(
            matches!(&sent[..], [ScreenEffect::Show(ScreenItem::Error(why))] if why.contains(":note all TEXT")),
            "{wrong:?}: {sent:?}"
        );
    }
    let (screen, sent) = enters(":note all a\u{202e}b");
    assert!(matches!(&sent[..], [ScreenEffect::Show(ScreenItem::Error(_))]), "{sent:?}");
    assert_eq!(screen.draft(), "#a\u{202e}b");
}

#[test]
fn a_terminal_that_only_reads_keeps_nothing() {
    let mut screen = screen();
    screen.options.rights = ClientRights::ReadOnly;
    for line in ["# x", ":note all x"] {
        screen.update(ScreenInput::Edited(line.to_owned()));
        assert_eq!(screen.update(ScreenInput::Key(KeyPress::Enter)), [], "{line}");
        assert!(screen.hint().is_some_and(|hint| hint.contains("read-only")), "{line}");
    }
}
