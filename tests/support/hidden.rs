//! Texts with hidden characters, and the check that a surface shows none of them raw.

use protocol::hidden::is_hidden;

/// A direction of writing, a letter without width, the beginnings of control sequences, two line ends, a mark, a tag.
const HIDDEN: [char; 8] =
    ['\u{202e}', '\u{200b}', '\u{1b}', '\u{9b}', '\u{2028}', '\u{85}', '\u{feff}', '\u{e0041}'];

/// Each of them between two words: `NAME0`, `NAME1` and so on.
pub fn hostile(name: &str) -> String {
    let mut text = format!("{name}0");
    for (number, hidden) in (1..).zip(HIDDEN) {
        text.push_str(&format!("{hidden}{name}{number}"));
    }
    text
}

/// A surface shows all words of these texts, or the first two of those with `…`, and no hidden character.
#[track_caller]
pub fn shows_nothing_raw(surface: &str, screen: &str, texts: &[&str]) {
    let raw: Vec<char> = screen.chars().filter(|c| is_hidden(*c)).collect();
    assert!(raw.is_empty(), "{surface} prints {raw:?}: {screen:?}");
    for text in texts {
        let (name, last) = match text.strip_suffix('…') {
            Some(name) => (name, 1),
            None => (*text, HIDDEN.len()),
        };
        for number in 0..=last {
            let word = format!("{name}{number}");
            assert!(screen.contains(&word), "{surface} shows {word}: {screen}");
        }
    }
}
