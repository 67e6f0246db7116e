//! The keys of vim, each with the text and the cursor that vim 9 leaves.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::screen::editor::LineKeys;

/// The text with a `|` at the cursor, after these keys in the normal mode; `⎋` is Esc.
fn after(start: &str, keys: &str) -> String {
    let mut editor = Editor::with_keys(LineKeys::Vim);
    let at = start.find('|').unwrap();
    editor.set(&start.replacen('|', "", 1));
    assert!(editor.vim_key(KeyPress::Escape));
    editor.go_to(at);
    press(&mut editor, keys);
    let (text, cursor) = (editor.text().into_owned(), editor.before_cursor().len());
    format!("{}|{}", &text[..cursor], &text[cursor..])
}

fn press(editor: &mut Editor, keys: &str) {
    for c in keys.chars() {
        let key = if c == '⎋' { KeyPress::Escape } else { KeyPress::Char(c) };
        if !editor.vim_key(key) {
            editor.key(key);
        }
    }
}

#[test]
fn motions_go_where_those_of_vim_go() {
    for (start, keys, end) in [
        ("|one two-three", "w", "one |two-three"),
        ("|one two-three", "2w", "one two|-three"),
        ("|one two-three four", "2W", "one two-three |four"),
        ("one two|", "b", "one |two"),
        ("one two-thre|e", "B", "one |two-three"),
        ("|one two", "e", "on|e two"),
        ("|one two", "2e", "one tw|o"),
        ("one two|", "e", "one tw|o"),
        ("  one t|wo", "0", "|  one two"),
        ("  one t|wo", "^", "  |one two"),
        ("|one two", "$", "one tw|o"),
        ("|one", "3l", "on|e"),
        ("on|e", "9h", "|one"),
        ("a\nb|\nc", "gg", "|a\nb\nc"),
        ("|a\nb\nc", "G", "a\nb\n|c"),
        ("|a\nb\nc", "2G", "a\n|b\nc"),
        ("|a\nb\nc", "jj", "a\nb\n|c"),
        ("a\nb\n|c", "2k", "|a\nb\nc"),
        ("|a, b, c", "f,", "a|, b, c"),
        ("|a, b, c", "2f,", "a, b|, c"),
        ("|a, b, c", "2t,", "a, |b, c"),
        ("a, b, |c", "F,", "a, b|, c"),
        ("a, b, |c", "Tb", "a, b|, c"),
        ("|a b", "fz", "|a b"),
        ("|", "wbe$0x", "|"),
        ("|ä🦀 ö", "lw", "ä🦀 |ö"),
    ] {
        assert_eq!(after(start, keys), end, "{start:?} {keys:?}");
    }
}

#[test]
fn operators_take_what_their_motion_or_object_covers() {
    for (start, keys, end) in [
        ("|one two three", "dw", "|two three"),
        ("|one two three", "d2w", "|three"),
        ("|one two three", "2dw", "|three"),
        ("one |two\nthree", "dw", "one| \nthree"),
        ("one |two", "dw", "one| "),
        ("|one two", "cw1⎋", "|1 two"),
        ("|one two three", "c2wx⎋", "|x three"),
        ("one tw|o three", "ciwx⎋", "one |x three"),
        ("one tw|o three", "daw", "one |three"),
        ("one |two three", "d$", "one| "),
        ("one |two three", "D", "one| "),
        ("one |two", "Cx⎋", "one |x"),
        ("one |two", "d0", "|two"),
        ("one |two", "db", "|two"),
        ("|one two", "de", "| two"),
        ("|a, b", "df,", "| b"),
        ("|a, b", "dt,", "|, b"),
        ("on|e", "x", "o|n"),
        ("|one", "2x", "|e"),
        ("on|e", "X", "o|e"),
        ("a\n|b\nc", "dd", "a\n|c"),
        ("a\nb\n|c", "dd", "a\n|b"),
        ("|a\nb\nc", "2dd", "|c"),
        ("|a\nb\nc", "dj", "|c"),
        ("a\nb\n|c", "dk", "|a"),
        ("a\n|b\nc", "dG", "|a"),
        ("|a", "dj", "|a"),
        ("a\n|b\nc", "ccx⎋", "a\n|x\nc"),
        ("a\n|b\nc", "Sx⎋", "a\n|x\nc"),
        ("|one", "sx⎋", "|xne"),
        ("|one", "rx", "|xne"),
        ("|one", "2rx", "x|xe"),
        ("|one", "9rx", "|one"),
        ("|one", "2~", "ON|e"),
        ("|one", "9~", "ON|E"),
    ] {
        assert_eq!(after(start, keys), end, "{start:?} {keys:?}");
    }
}

#[test]
fn what_was_taken_is_put_and_changes_are_undone() {
    for (start, keys, end) in [
        ("|one two", "dwp", "tone| wo"),
        ("|ab", "xp", "b|a"),
        ("a\n|b\nc", "ddp", "a\nc\n|b"),
        ("a\n|b", "yyP", "a\n|b\nb"),
        ("|a", "yy2p", "a\n|a\na"),
        ("|one two", "yw$p", "one twoone| "),
        ("|one two", "dwu", "|one two"),
        ("|one", "xxu", "|ne"),
        ("|a", "ob⎋", "a\n|b"),
        ("|a", "Ob⎋", "|b\na"),
        ("|one", "A two⎋", "one tw|o"),
        ("  on|e", "Ix⎋", "  |xone"),
        ("|one", "ax⎋", "o|xne"),
    ] {
        assert_eq!(after(start, keys), end, "{start:?} {keys:?}");
    }
}

#[test]
fn an_unknown_or_unfinished_command_changes_nothing_and_a_sent_line_is_typed_into_again() {
    for keys in ["Z", "dZ", "d⎋", "3⎋", "gx", "q"] {
        assert_eq!(after("o|ne", keys), "o|ne", "{keys}");
    }
    assert_eq!(after("o|ne", "d⎋x"), "o|e", "the operator is forgotten");
    let mut editor = Editor::with_keys(LineKeys::Vim);
    press(&mut editor, "one⎋");
    assert!(editor.is_normal_mode());
    assert!(!editor.vim_key(KeyPress::Enter) && !editor.vim_key(KeyPress::Escape));
    assert_eq!(editor.take(), "one");
    press(&mut editor, "two");
    assert_eq!(editor.text(), "two");
    // Where nobody chose these keys, none is taken.
    let mut editor = Editor::with_keys(LineKeys::Emacs);
    assert!(!editor.vim_key(KeyPress::Escape) && !editor.vim_key(KeyPress::Char('x')));
}

proptest::proptest! {
    /// Any keys on any text: no panic, and the cursor is at a character's beginning.
    #[test]
    fn any_keys_leave_a_text_with_its_cursor(
        text in "[a-c ,\n\u{e9}\u{301}\u{1f980}]{0,20}",
        keys in "[0-9a-zA-Z$^~⎋ \u{e9}]{0,30}",
    ) {
        let mut editor = Editor::with_keys(LineKeys::Vim);
        editor.set(&text);
        editor.paste(&"line\n".repeat(20));
        press(&mut editor, "⎋");
        press(&mut editor, &keys);
        let _ = editor.before_cursor();
        let _ = editor.layout(2, 20);
    }
}
