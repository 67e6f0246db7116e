//! The lists over the conversation.

use super::*;

#[test]
fn a_picker_has_no_style_of_the_text_that_it_covers() {
    let picked = |key: KeyPress, answered: Option<&str>| {
        let mut desk = Desk::new(80, 24);
        desk.event(ClientEvent::Prompt { text: "go".to_owned(), of: PromptUse::Prompt });
        if let Some(text) = answered {
            desk.event(answer(text));
        }
        desk.event(ClientEvent::TurnEnded { end: TurnEnd::Done });
        desk.input(ScreenInput::Key(key));
        let shown = desk.shown();
        let top = shown.lines().position(|line| line.contains("▏ ")).unwrap();
        let screen = desk.terminal.screen();
        let place = |at: usize| (u16::try_from(top + at / 80).unwrap(), (at % 80) as u16);
        let cells = (0..(24 - top) * 80).map(|at| screen.cell(place(at).0, place(at).1).cloned());
        cells.collect::<Vec<_>>()
    };
    let lists = [':', '/', '@'].map(KeyPress::Char);
    for styled in [
        "**bold words that go on and on to the end of the row and further**\n\n",
        "# Head\n\n",
        "`code`\n\n",
        "[a link](https://example.org)\n\n",
    ] {
        for key in lists.into_iter().chain(['r', 'p'].map(KeyPress::Control)) {
            assert!(
                picked(key, Some(&styled.repeat(30))) == picked(key, None),
                "{key:?}: {styled}"
            );
        }
    }
}

#[test]
fn a_command_that_needs_a_value_offers_those_that_there_are() {
    for (typed, words) in [("/model", ["model-2", "200k tokens"]), ("/mode", ["sandboxed", "asks"])]
    {
        let mut desk = Desk::new(80, 24);
        desk.types(typed);
        desk.input(ScreenInput::SlashCommands(Vec::new()));
        desk.input(ScreenInput::Key(KeyPress::Enter));
        let shown = desk.shown();
        let has_all = words.iter().all(|words| shown.contains(words));
        assert!(has_all && !shown.contains("✗ agentd"), "{shown}");
        // Esc takes nothing, and the whole command in the line opens the same list.
        desk.input(ScreenInput::Key(KeyPress::Escape));
        assert!(!desk.shown().contains(words[1]));
        desk.input(ScreenInput::Paste(typed.replace('/', ":")));
        desk.input(ScreenInput::Key(KeyPress::Enter));
        assert!(desk.shown().contains(words[1]));
        desk.input(ScreenInput::Key(KeyPress::Down));
        desk.input(ScreenInput::Key(KeyPress::Tab));
        let command = format!("{} {}", typed.replace('/', ":"), words[0]);
        assert_eq!(desk.screen.draft(), command, "Tab sets nothing");
        desk.input(ScreenInput::Edited(typed.replace('/', ":")));
        desk.input(ScreenInput::Key(KeyPress::Enter));
        desk.input(ScreenInput::Key(KeyPress::Down));
        let chosen = desk.view.take(ScreenInput::Key(KeyPress::Enter), &desk.screen);
        assert!(
            matches!(&chosen[..], [ScreenInput::Command(said)] if *said == command),
            "{chosen:?}"
        );
    }
    // The control: a value that only the person knows is typed.
    let mut desk = Desk::new(80, 24);
    desk.types("/add-dir");
    desk.input(ScreenInput::SlashCommands(Vec::new()));
    desk.input(ScreenInput::Key(KeyPress::Enter));
    assert!(desk.shown().contains("> :add-dir"), "{}", desk.shown());
}

#[test]
fn an_enter_waits_for_the_list_that_may_have_an_own_command_of_that_name() {
    let row = |text: &str| SlashRow {
        text: text.to_owned(),
        detail: String::new(),
        insert: Some(format!("{text} ")),
    };
    for (typed, own) in [("/new", "/new "), ("/clear", "/clear ")] {
        for is_own in [true, false] {
            let mut desk = Desk::new(80, 24);
            desk.types(typed);
            let enter = ScreenInput::Key(KeyPress::Enter);
            assert!(desk.view.take(enter, &desk.screen).is_empty(), "{typed}");
            let name = if is_own { typed } else { "/other" };
            let read = ScreenInput::SlashCommands(vec![row(name)]);
            match &desk.view.take(read, &desk.screen)[..] {
                [ScreenInput::Paste(text)] if is_own => assert_eq!(text, own),
                [ScreenInput::Command(command)] if !is_own => assert_eq!(command, ":clear"),
                other => panic!("{typed}: {other:?}"),
            }
            // A list that comes again takes nothing.
            desk.types("/");
            let again = ScreenInput::SlashCommands(Vec::new());
            assert!(desk.view.take(again, &desk.screen).is_empty());
        }
    }
    // A colon command waits for nothing.
    let mut desk = Desk::new(80, 24);
    desk.types(":clear");
    let chosen = desk.view.take(ScreenInput::Key(KeyPress::Enter), &desk.screen);
    assert!(matches!(&chosen[..], [ScreenInput::Command(_)]), "{chosen:?}");
}

#[test]
fn a_question_behind_a_pager_is_not_shown() {
    let mut desk = Desk::new(80, 24);
    desk.input(ScreenInput::Key(KeyPress::Char('?')));
    desk.event(question(1));
    desk.paint();
    assert!(!desk.shown().contains("1 Allow once"));
    assert_eq!(desk.shown_of_question(), Some(QuestionShown::Hidden));
    desk.input(ScreenInput::Key(KeyPress::Char('q')));
    assert!(desk.shown().contains("1 Allow once"));
    assert_eq!(desk.shown_of_question(), Some(QuestionShown::Whole), "the control");
}

#[test]
fn a_line_behind_a_hash_asks_where_to_keep_it_and_stays_until_one_is_chosen() {
    let mut desk = Desk::new(80, 24);
    let enter = |desk: &mut Desk| desk.input(ScreenInput::Key(KeyPress::Enter));
    desk.types("# use cents");
    enter(&mut desk);
    let shown = desk.shown();
    let rows = ["append to AGENTS.md", "for this project", "for all projects", "send as a prompt"];
    assert!(rows.iter().all(|row| shown.contains(row)), "{shown}");
    desk.input(ScreenInput::Key(KeyPress::Escape));
    assert_eq!(desk.screen.draft(), "# use cents");
    assert!(!desk.shown().contains("send as a prompt"));
    for (downs, line) in [
        (0, ":note agents use cents"),
        (1, ":note project use cents"),
        (2, ":note all use cents"),
        (3, " # use cents"),
    ] {
        desk.input(ScreenInput::Edited("# use cents".to_owned()));
        enter(&mut desk);
        for _ in 0..downs {
            desk.input(ScreenInput::Key(KeyPress::Down));
        }
        desk.input(ScreenInput::Key(KeyPress::Tab));
        assert_eq!(desk.screen.draft(), line, "Tab does nothing");
    }
    assert!(!desk.screen.has_unconfirmed());
    desk.input(ScreenInput::Edited("# use cents".to_owned()));
    enter(&mut desk);
    desk.input(ScreenInput::Key(KeyPress::Up));
    for _ in 0..3 {
        desk.input(ScreenInput::Key(KeyPress::Down));
    }
    enter(&mut desk);
    assert_eq!((desk.screen.has_unconfirmed(), &*desk.screen.draft()), (true, ""));
    // A heading of a text that was pasted is none, nor is a line that goes on.
    for text in ["# Head\n\nText", "# Head\\"] {
        desk.input(ScreenInput::Edited(text.to_owned()));
        enter(&mut desk);
        assert!(!desk.shown().contains("send as a prompt"), "{text}");
    }
}
