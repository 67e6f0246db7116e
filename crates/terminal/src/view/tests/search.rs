//! Searches in the conversation, and what they mark.

use super::*;

#[test]
fn what_is_chosen_has_a_bar_and_a_search_marks_the_words_and_counts() {
    let mut desk = Desk::new(80, 24);
    desk.event(answer("One word.\n\nTwo **words** of it.\n\nThree"));
    desk.event(ClientEvent::Prompt { text: "No such thing".to_owned(), of: PromptUse::Prompt });
    desk.event(answer("The last word."));
    desk.event(ClientEvent::TurnEnded { end: TurnEnd::Done });
    assert!(!desk.shown().contains('▎'), "the control");
    desk.input(ScreenInput::Key(KeyPress::Control('o')));
    let shown = desk.shown();
    assert!(
        shown.contains("▎ The last word.") && shown.contains("\n  Two words of it."),
        "{shown}"
    );
    let marked = |desk: &Desk, is_so: fn(&Cell) -> bool| -> String {
        let screen = desk.terminal.screen();
        let places = (0..20).flat_map(|y| (0..80).map(move |x| (x, y)));
        let cells = places.map(|place| cell(screen, place)).filter(is_so);
        cells.map(|cell| cell.symbol().to_owned()).collect()
    };
    let reversed = |cell: &Cell| cell.modifier.contains(Modifier::REVERSED);
    assert_eq!(marked(&desk, reversed), "", "no block is in reverse video");
    desk.types("/WORD");
    desk.input(ScreenInput::Key(KeyPress::Enter));
    assert!(desk.shown().contains("3/3 WORD"), "{}", desk.shown());
    let in_yellow = |cell: &Cell| cell.bg == Color::Yellow;
    let underlined = |cell: &Cell| cell.modifier.contains(Modifier::UNDERLINED);
    assert_eq!(marked(&desk, in_yellow), "word", "where the search is");
    assert_eq!(marked(&desk, underlined), "wordword");
    // Of the block with two such rows only the one that was found.
    for (place, words) in [("2/3 WORD", "Two words"), ("1/3 WORD", "One word.")] {
        desk.types("n");
        let shown = desk.shown();
        assert!(shown.contains(place), "{shown}");
        assert_eq!(marked(&desk, in_yellow), "word", "{place}");
        let row = shown.lines().position(|row| row.contains(words)).unwrap();
        let place = |x| (x, u16::try_from(row).unwrap());
        assert!((0..80).any(|x| in_yellow(&cell(desk.terminal.screen(), place(x)))), "{words}");
    }
    desk.types("o/w");
    desk.input(ScreenInput::Key(KeyPress::Enter));
    assert!(desk.shown().contains("1/2"), "{}", desk.shown());
    desk.types("n");
    assert!(desk.shown().contains("2/2"), "{}", desk.shown());
}

#[test]
fn a_search_brings_each_row_with_the_words_into_view() {
    let lines: Vec<String> = (1..=2000).map(|line| format!("row-{line}-x")).collect();
    for opened in ["", " "] {
        let mut desk = Desk::new(80, 24);
        desk.event(ClientEvent::Proposed { call: call(1, "bash", r#"{"command":"seq"}"#) });
        desk.event(ended(1, &lines.join("\n")));
        desk.event(answer("A word that wraps at the end of its row: ".repeat(9).as_str()));
        desk.event(ClientEvent::TurnEnded { end: TurnEnd::Done });
        desk.input(ScreenInput::Key(KeyPress::Control('o')));
        desk.types(&format!("k{opened}/row-1500-x"));
        assert!(!desk.shown().contains("row-1501-x"), "the control: {opened:?}");
        desk.input(ScreenInput::Key(KeyPress::Enter));
        assert!(desk.shown().contains("row-1501-x"), "{opened:?}: {}", desk.shown());
        // Upwards, and then from the first one to the last one.
        desk.types("/row-17");
        desk.input(ScreenInput::Key(KeyPress::Enter));
        assert!(desk.shown().contains("row-1799-x"), "{}", desk.shown());
        desk.types(&"n".repeat(110));
        assert!(desk.shown().contains("row-17-x"), "{}", desk.shown());
        desk.types("n");
        assert!(desk.shown().contains("row-1799-x"), "{}", desk.shown());
        desk.types("/no such words");
        desk.input(ScreenInput::Key(KeyPress::Enter));
        assert!(desk.shown().contains("not found"), "{}", desk.shown());
    }
}
