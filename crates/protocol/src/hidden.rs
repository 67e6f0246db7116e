//! Characters that deceive the reader of a text. For questions, for lines about calls, and for texts of MCP servers.

use std::borrow::Cow;

/// Characters that show as nothing, as a blank, or turn the direction of writing.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() && c != '\n' && c != '\t';
    }
    c.is_control()
        || c.is_whitespace()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202f}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Letters that join or shape those around them: in emoji and in the scripts of India and Persia they belong to
/// the text.
fn joins(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
}

/// The text without hidden characters. A joiner behind a visible letter that is not ASCII stays, a blank of
/// another script becomes a blank, and a line's end of another script a line's end.
#[must_use]
pub fn without_hidden(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    for c in text.chars() {
        let last = kept.chars().next_back();
        let is_shaped = |last: char| !last.is_ascii() && (!joins(last) || is_selector(last));
        match c {
            '\u{85}' | '\u{2028}' | '\u{2029}' => kept.push('\n'),
            c if !is_hidden(c) => kept.push(c),
            c if c.is_whitespace() && !c.is_ascii() => kept.push(' '),
            c if joins(c) && last.is_some_and(is_shaped) => kept.push(c),
            _ => {}
        }
    }
    Cow::Owned(kept)
}

/// True for the shape of an emoji, which a joiner may follow.
fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe0e}' | '\u{fe0f}')
}

/// Makes invisible characters visible, so that questions and call lines show exactly the text that
/// would run.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_letters_are_taken_out_and_those_of_emoji_and_scripts_stay() {
        for (text, kept) in [
            ("plain text\n\twith a tab", "plain text\n\twith a tab"),
            ("a\u{202e}b\u{2066}c\u{200f}", "abc"),
            ("hi\u{e0049}\u{e0067}\u{e006e}", "hi"),
            ("a\u{200b}b\u{200d}c\u{feff}\u{ad}", "abc"),
            ("a\u{7}\u{1b}[31m", "a[31m"),
            ("12\u{a0}000\u{202f}\u{20ac}\u{2028}x", "12 000 \u{20ac}\nx"),
            ("\u{2764}\u{fe0f}\u{200d}\u{1f525}", "\u{2764}\u{fe0f}\u{200d}\u{1f525}"),
            ("\u{915}\u{94d}\u{200d}\u{937}", "\u{915}\u{94d}\u{200d}\u{937}"),
            // A row of them spells a message.
            ("\u{2764}\u{200d}\u{200c}\u{200d}\u{fe01}\u{e0101}", "\u{2764}\u{200d}"),
        ] {
            assert_eq!(without_hidden(text), kept, "{text:?}");
        }
        assert!(matches!(without_hidden("plain"), Cow::Borrowed(_)));
    }
}
