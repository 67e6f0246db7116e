//! Text from elsewhere, made safe for a terminal.

/// `text` without control codes: each but newline and tab becomes a visible mark, so that no words
/// of a model or a tool can move the cursor, clear the screen or hide what stands above.
#[must_use]
pub fn plain(text: &str) -> String {
    let visible = |c: char| match c {
        '\n' | '\t' => c,
        c if c.is_control() => '\u{fffd}',
        // Marks that turn the writing direction hide what a line really says.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c => c,
    };
    text.chars().map(visible).collect()
}

/// The beginning of `text` on one line, at most `most` characters.
#[must_use]
pub fn one_line(text: &str, most: usize) -> String {
    let words = plain(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() <= most {
        return words;
    }
    let cut: String = words.chars().take(most.saturating_sub(1)).collect();
    format!("{cut}…")
}

/// Columns that a text takes in a terminal.
#[must_use]
pub fn columns(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_codes_become_marks() {
        assert_eq!(plain("a\u{1b}[2Jb\r\n\tc\u{202e}d"), "a\u{fffd}[2Jb\u{fffd}\n\tc\u{fffd}d");
        assert_eq!(one_line("a\n  b\u{7}", 9), "a b\u{fffd}");
        assert_eq!(one_line("abcdef", 4), "abc…");
    }
}
