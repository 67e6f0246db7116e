//! Characters that look alike: typographic ones, white space, zero-width ones.

use unicode_normalization::UnicodeNormalization;

/// Folds a typographic character to its keyboard equivalent.
pub(super) fn folded(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2035}' | '\u{b4}' | '\u{2bc}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ab}' | '\u{bb}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{2043}' => '-',
        other if other.is_whitespace() => ' ',
        other => other,
    }
}

/// Zero-width characters: soft hyphen, joiners, byte order mark.
pub(super) fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

/// True for a character that a keyboard types.
pub(super) fn is_typed(c: char) -> bool {
    !is_unseen(c) && c != '\u{2026}' && (folded(c) == c || c == '\t')
}

/// A line as it is compared: composed, folded, without white space.
pub(super) fn key(line: &str) -> String {
    let seen = line.nfc().filter(|c| !c.is_whitespace() && !is_unseen(*c)).map(folded);
    // Three dots are a sign of their own in typography.
    seen.collect::<String>().replace('\u{2026}', "...")
}

/// The typographic characters of a line.
pub(super) fn untyped(text: &str) -> Vec<char> {
    text.chars().filter(|c| !is_typed(*c)).collect()
}

/// An unambiguous name for a character.
pub(super) fn name(c: Option<char>) -> String {
    match c {
        None => "the end of the line".to_owned(),
        Some(' ') => "a space".to_owned(),
        Some('\t') => "a tab".to_owned(),
        Some('\u{a0}') => "a no-break space (U+00A0)".to_owned(),
        Some(c) if c.is_ascii_graphic() || (c.is_alphanumeric() && is_typed(c)) => format!("`{c}`"),
        Some(c) if c.is_whitespace() || is_unseen(c) || c.is_control() => {
            format!("U+{:04X}", u32::from(c))
        }
        Some(c) => format!("`{c}` (U+{:04X})", u32::from(c)),
    }
}
