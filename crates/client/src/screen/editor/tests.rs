//! Tests of the input line.
#![allow(clippy::unwrap_used)]

use super::*;
use Direction::{End, Start};
use Distance::{All, Character, Line, Word};

fn typed(text: &str) -> Editor {
    let mut editor = Editor::default();
    editor.insert(text);
    editor
}

#[test]
fn the_cursor_goes_by_characters_words_and_to_the_ends() {
    let mut editor = typed("ein größeres  Wört");
    editor.key(KeyPress::Move(Word, Start));
    editor.key(KeyPress::Move(Word, Start));
    editor.insert("x");
    assert_eq!(editor.text(), "ein xgrößeres  Wört");
    editor.key(KeyPress::Move(Character, End));
    editor.key(KeyPress::Move(Character, End));
    editor.key(KeyPress::Move(Character, End));
    editor.key(KeyPress::Erase(Character, Start));
    assert_eq!(editor.text(), "ein xgrßeres  Wört");
    editor.key(KeyPress::Erase(Word, Start));
    assert_eq!(editor.text(), "ein ßeres  Wört");
    editor.key(KeyPress::Move(Word, End));
    editor.key(KeyPress::Erase(All, End));
    assert_eq!(editor.text(), "ein ßeres");
    editor.key(KeyPress::Erase(All, Start));
    assert!(editor.is_empty());
    editor.key(KeyPress::Erase(Character, Start));
    editor.key(KeyPress::Erase(Word, End));
    assert!(editor.is_empty());
}

#[test]
fn a_mark_without_width_goes_with_its_character() {
    let mut editor = typed("ae\u{301}b");
    editor.key(KeyPress::Move(Character, Start));
    editor.key(KeyPress::Erase(Character, Start));
    assert_eq!(editor.text(), "ab");
}

#[test]
fn history_comes_back_and_so_does_what_was_typed() {
    let mut editor = typed("one");
    assert_eq!(editor.take(), "one");
    editor.insert("two");
    editor.take();
    editor.insert("dra");
    editor.key(KeyPress::Up);
    assert_eq!(editor.text(), "two");
    editor.key(KeyPress::Up);
    editor.key(KeyPress::Up);
    assert_eq!(editor.text(), "one");
    editor.key(KeyPress::Down);
    editor.key(KeyPress::Down);
    assert_eq!(editor.text(), "dra");
    editor.key(KeyPress::Down);
    assert_eq!(editor.text(), "dra");
}

#[test]
fn a_paste_keeps_its_lines_and_no_control_codes() {
    let editor = typed("a\r\nb\rc\u{1b}[2J\td");
    assert_eq!(editor.text(), "a\nb\nc[2J\td");
    assert_eq!(editor.layout(2, 20).rows, ["a", "b", "c[2J⇥d"]);
}

#[test]
fn rows_are_cut_by_columns_and_not_by_characters() {
    let mut editor = typed("日本語日本語");
    let layout = editor.layout(2, 9);
    assert_eq!(layout.rows, ["日本語", "日本語"]);
    assert_eq!(layout.cursor, (1, 8));
    editor.key(KeyPress::Move(All, Start));
    assert_eq!(editor.layout(2, 9).cursor, (0, 2));
    assert_eq!(
        Editor::default().layout(2, 9),
        Layout { rows: vec![String::new()], cursor: (0, 2) }
    );
}

/// Presses these keys one after the other: `<up>`, `<C-k>` and the like, others are characters.
fn press(editor: &mut Editor, keys: &str) {
    let mut rest = keys;
    while let Some(c) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        let (key, behind) = match named {
            Some((name, behind)) => (named_key(name), behind),
            None => (KeyPress::Char(c), &rest[c.len_utf8()..]),
        };
        editor.key(key);
        rest = behind;
    }
}

fn named_key(name: &str) -> KeyPress {
    match name {
        "up" => KeyPress::Up,
        "down" => KeyPress::Down,
        "left" => KeyPress::Move(Character, Start),
        "nl" => KeyPress::NewLine,
        "bs" => KeyPress::Erase(Character, Start),
        "C-a" => KeyPress::Move(Line, Start),
        "C-e" => KeyPress::Move(Line, End),
        "C-k" => KeyPress::Erase(Line, End),
        "C-u" => KeyPress::Erase(Line, Start),
        "C-w" => KeyPress::Erase(Word, Start),
        "M-d" => KeyPress::Erase(Word, End),
        "C-y" => KeyPress::Edit(EditKey::Yank),
        "M-y" => KeyPress::Edit(EditKey::YankEarlier),
        "C-_" => KeyPress::Edit(EditKey::Undo),
        "M-/" => KeyPress::Edit(EditKey::Redo),
        other => panic!("no key {other}"),
    }
}

/// The text behind these keys, with `|` for the cursor.
fn pressed(editor: &mut Editor, keys: &str) -> String {
    press(editor, keys);
    let (before, text) = (editor.before_cursor(), editor.text());
    format!("{before}|{}", &text[before.len()..])
}

#[test]
fn up_and_down_go_by_rows_and_to_the_history_only_at_the_edge() {
    let mut editor = typed("sent before");
    editor.take();
    let mut at = |keys: &str| pressed(&mut editor, keys);
    assert_eq!(at("longer<nl>s<nl>three"), "longer\ns\nthree|");
    assert_eq!(at("<up>"), "longer\ns|\nthree");
    assert_eq!(at("<up>"), "longe|r\ns\nthree", "the column is kept over a short row");
    assert_eq!(at("<up>"), "sent before|");
    assert_eq!(at("<down>"), "longe|r\ns\nthree");
    assert_eq!(at("<down><down>"), "longer\ns\nthree|");
    assert_eq!(at("<down>"), "longer\ns\nthree|", "there is nothing later");
}

#[test]
fn rows_are_those_that_the_terminal_shows() {
    let mut editor = typed("sent before");
    editor.take();
    // Five columns, the last one for the cursor.
    editor.fit(5);
    let mut at = |keys: &str| pressed(&mut editor, keys);
    assert_eq!(at("abcdefgh日本<left>"), "abcdefgh日|本");
    assert_eq!(at("<up>"), "abcdef|gh日本");
    assert_eq!(at("<up>"), "ab|cdefgh日本");
    assert_eq!(at("<up>"), "sent before|");
}

#[test]
fn keys_of_the_line_leave_other_lines_alone() {
    let mut editor = typed("one two\nthree four\nfive");
    let mut at = |keys: &str| pressed(&mut editor, keys);
    assert_eq!(at("<up>"), "one two\nthre|e four\nfive");
    assert_eq!(at("<C-a>"), "one two\n|three four\nfive");
    assert_eq!(at("<C-e>"), "one two\nthree four|\nfive");
    assert_eq!(at("<C-u>"), "one two\n|\nfive");
    assert_eq!(at("<C-k>"), "one two\n|five", "an empty rest of the line is its end");
    assert_eq!(at("<C-k>"), "one two\n|");
    assert_eq!(at("<C-u>"), "one two|");
}

#[test]
fn killed_text_comes_back_and_so_does_the_one_before_it() {
    let mut editor = typed("one two three four");
    let mut at = |keys: &str| pressed(&mut editor, keys);
    assert_eq!(at("<C-w><C-w>"), "one two |");
    assert_eq!(at("<C-a><M-d>"), "| two ");
    assert_eq!(at("<C-e><C-y>"), " two one|");
    assert_eq!(at("<M-y>"), " two three four|", "kills in a row are one text");
    assert_eq!(at("<M-y>"), " two one|", "behind the oldest comes the newest");
    assert_eq!(at("!<M-y>"), " two one!|", "only behind a yank");
    assert_eq!(at("<bs><C-y>"), " two oneone|", "an erased character is not killed");
    assert_eq!(pressed(&mut Editor::default(), "<C-k><C-y><M-y>"), "|");
}

#[test]
fn changes_are_taken_back_and_made_again() {
    let mut editor = typed("");
    let mut at = |keys: &str| pressed(&mut editor, keys);
    at("one two");
    assert_eq!(at("<C-_>"), "one |", "a word is a step");
    assert_eq!(at("<M-/>"), "one two|");
    assert_eq!(at("<C-w>x<C-_><C-_>"), "one two|");
    assert_eq!(at("<bs><bs><bs><bs><bs><bs><bs><bs><bs>"), "|");
    assert_eq!(at("<C-_>"), "one two|");
    assert_eq!(at("<C-a>3<C-_>"), "|one two", "where the cursor moved, a step begins");
    assert_eq!(at("3<M-/>"), "3|one two", "a new change leaves nothing to be made again");
    assert_eq!(at("<C-_><C-_><C-_><C-_><C-_>"), "|");
    editor.insert("kept");
    editor.clear();
    assert_eq!(pressed(&mut editor, "<C-_>"), "kept|");
    editor.clear();
    assert_eq!(pressed(&mut editor, "<up>"), "kept|", "a line that was cleared is in the history");
    editor.take();
    assert_eq!(pressed(&mut editor, "<C-_>"), "|", "what was sent is not taken back");
}

#[test]
fn the_last_change_of_a_text_of_any_size_is_taken_back() {
    let long = "x".repeat(2 << 20);
    let mut editor = typed(&long);
    editor.key(KeyPress::Erase(All, Start));
    assert!(editor.is_empty());
    assert!(pressed(&mut editor, "<C-_>") == format!("{long}|"), "{}", editor.text().len());
    assert!(pressed(&mut editor, "<C-_>") == format!("{long}|"), "no earlier one is kept");
}

#[test]
fn a_backslash_before_the_cursor_becomes_a_new_line() {
    let mut editor = typed("one\\");
    assert!(editor.continue_line());
    assert_eq!(pressed(&mut editor, "two"), "one\ntwo|");
    assert!(!editor.continue_line());
    assert_eq!(pressed(&mut editor, "\\<left>"), "one\ntwo|\\");
    assert!(!editor.continue_line(), "it is behind the cursor");
    editor.paste(&"x\\".repeat(2000));
    assert!(!editor.continue_line(), "it is a part of a folded paste");
}

#[test]
fn a_text_that_was_put_away_comes_back_last_in_first_out() {
    let mut editor = typed("one");
    assert_eq!(editor.stash(), Stashed::Away);
    assert_eq!(pressed(&mut editor, "two"), "two|");
    assert_eq!(editor.stash(), Stashed::Away);
    assert_eq!(pressed(&mut editor, "<C-_>three"), "three|", "it is not there twice");
    assert_eq!(editor.unsent(), "one\ntwo\nthree");
    editor.take();
    for (stashed, text) in [(Stashed::Back, "two"), (Stashed::Back, "one"), (Stashed::Nothing, "")]
    {
        assert_eq!((editor.stash(), &*editor.text()), (stashed, text));
        editor.clear();
    }
}

#[test]
fn a_text_that_was_typed_before_a_recalled_one_is_never_lost() {
    let recalled = || {
        let mut editor = typed("sent before");
        editor.take();
        assert_eq!(pressed(&mut editor, "typed<up>"), "sent before|");
        assert_eq!(editor.unsent(), "typed\nsent before");
        editor
    };
    let mut editor = recalled();
    assert_eq!(editor.take(), "sent before");
    assert_eq!(pressed(&mut editor, "<up><down>"), "typed|");
    let mut editor = recalled();
    editor.set("edited elsewhere");
    assert_eq!(editor.take(), "edited elsewhere");
    assert_eq!(editor.text(), "typed");
    let mut editor = recalled();
    editor.clear();
    assert_eq!(editor.text(), "typed");
    let mut editor = recalled();
    assert_eq!(editor.stash(), Stashed::Away);
    assert_eq!((&*editor.text(), &*editor.unsent()), ("typed", "sent before\ntyped"));
    let mut editor = recalled();
    press(&mut editor, "<C-u>");
    assert_eq!((editor.stash(), &*editor.text()), (Stashed::Back, "typed"));
    // Where undo brought it back, it is there once.
    let mut editor = recalled();
    assert_eq!(pressed(&mut editor, "x<C-_><C-_>!"), "typed!|");
    assert_eq!(editor.unsent(), "typed!");
    editor.take();
    assert!(editor.is_empty());
}

#[test]
fn a_long_paste_is_shown_as_a_word_goes_as_a_character_and_is_sent_whole() {
    let long = "a line\n".repeat(11);
    let mut editor = typed("see ");
    editor.paste(&long);
    press(&mut editor, " there");
    let row = "see [pasted 11 lines, 77 bytes] there";
    assert_eq!(editor.layout(2, 80), Layout { rows: vec![row.to_owned()], cursor: (0, 39) });
    // In a narrow terminal the word goes over rows as others do.
    assert_eq!(editor.layout(2, 23).rows, ["see [pasted 11 lines", ", 77 bytes] there"]);
    editor.fit(21);
    assert_eq!(
        pressed(&mut editor, "<up>!"),
        format!("see !|{long} there"),
        "the word begins there"
    );
    press(&mut editor, "<C-_><C-e>");
    let whole = format!("see {long} there");
    assert_eq!(editor.text(), whole);
    press(&mut editor, "<bs><bs><bs><bs><bs><bs><bs>");
    assert_eq!(editor.text(), "see ");
    press(&mut editor, "<C-_>");
    assert_eq!(editor.text(), whole);
    press(&mut editor, "<C-u><C-y>");
    assert!(editor.layout(2, 80).rows[0].starts_with("[pasted 12 lines"), "yanked, it is long");
    assert_eq!(editor.take(), whole);
    assert_eq!(pressed(&mut editor, "<up>"), format!("{whole}|"));
    assert!(editor.layout(2, 80).rows[0].starts_with("[pasted 12 lines"), "recalled, it is long");
    editor.set(&whole);
    assert_eq!((editor.layout(2, 80).rows.len(), &*editor.text()), (1, &*whole));
}

#[test]
fn sizes_of_pastes_are_rounded_and_short_ones_stay_as_they_are() {
    let shown = |text: &str| {
        let mut editor = Editor::default();
        editor.paste(text);
        editor.layout(2, 90).rows.swap_remove(0)
    };
    assert_eq!(shown(&"x".repeat(50_001)), "[pasted 1 line, 51 KB]");
    assert_eq!(shown(&"x\n".repeat(600_000)), "[pasted 600000 lines, 2 MB]");
    assert_eq!(shown("a\nb"), "a");
    assert_eq!(shown("\u{fdd0}x"), "x", "the sign of a paste cannot be typed");
    // There are no signs for more; the text is there all the same.
    let mut editor = Editor::default();
    (0..40).for_each(|_| editor.paste(&"y\n".repeat(20)));
    assert_eq!(editor.text(), "y\n".repeat(800));
}

#[test]
fn up_and_down_pass_the_label_of_a_paste_over_several_rows() {
    let mut editor = typed("sent before");
    editor.take();
    let long = "a line\n".repeat(11);
    editor.paste(&long);
    press(&mut editor, " x<nl>y");
    editor.fit(12);
    let rows = ["[pasted 11 ", "lines, 77 b", "ytes] x", "y"];
    assert_eq!(editor.layout(2, 14).rows, rows);
    let mut at = |keys: &str| pressed(&mut editor, keys);
    assert_eq!(at("<up>"), format!("{long}| x\ny"));
    assert_eq!(at("<up>"), format!("|{long} x\ny"));
    assert_eq!(at("<down>"), format!("{long}| x\ny"));
    assert_eq!(at("<up><up>"), "sent before|");
}

/// Whatever is pressed, the cursor is one of the shown places, and undo leads back to the beginning.
#[test]
fn no_row_of_keys_loses_the_cursor_or_the_way_back() {
    let keys = [
        "a", " ", "é", "日", "e\u{301}", "<nl>", "<left>", "<up>", "<down>", "<bs>", "<C-a>",
        "<C-e>", "<C-k>", "<C-u>", "<C-w>", "<M-d>", "<C-y>", "<M-y>", "<C-_>", "<M-/>",
    ];
    let mut dice: u64 = 7;
    for round in 0..60 {
        let mut editor = Editor::default();
        editor.set_history(vec!["sent before".to_owned()]);
        editor.fit(3 + round % 9);
        for _ in 0..150 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let roll = usize::try_from(dice >> 33).unwrap();
            let layout = editor.layout(2, 5 + round % 9);
            match roll % 29 {
                at @ 0..20 => {
                    let before = (editor.text().into_owned(), layout.cursor);
                    press(&mut editor, keys[at]);
                    let has_row = match keys[at] {
                        "<up>" => layout.cursor.0 > 0,
                        "<down>" => layout.cursor.0 + 1 < layout.rows.len(),
                        _ => false,
                    };
                    let after = (editor.text(), editor.layout(2, 5 + round % 9).cursor);
                    assert!(!has_row || before.0 == after.0 && before.1 != after.1, "{layout:?}");
                }
                20 => editor.paste(&"line\n".repeat(roll % 20)),
                _ => press(&mut editor, "b"),
            }
            let Layout { rows, cursor } = editor.layout(2, 5 + round % 9);
            assert!(cursor.0 < rows.len(), "{rows:?} {cursor:?}");
            assert!(editor.text().starts_with(&*editor.before_cursor()));
        }
        (0..300).for_each(|_| press(&mut editor, "<C-_>"));
        assert!(editor.is_empty(), "{:?}", editor.text());
    }
}

#[test]
fn a_line_of_the_history_is_there_once() {
    let mut editor = Editor::default();
    for text in ["one", "two", "one", "one", " "] {
        editor.insert(text);
        editor.take();
    }
    assert_eq!(editor.history(), ["two", "one"]);
    editor.set_history(["a", "b", "a", "c"].map(str::to_owned).to_vec());
    assert_eq!(editor.history(), ["b", "a", "c"]);
    editor.remember("b");
    assert_eq!(pressed(&mut editor, "<up><up>"), "c|");
    // While one is shown, none moves.
    editor.remember("a");
    assert_eq!(pressed(&mut editor, "<up><up>"), "a|");
}
