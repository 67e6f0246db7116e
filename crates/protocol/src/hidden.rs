//! Characters that deceive the reader of a text, and the one place that cleans text from elsewhere.
//!
//! | For | Ways |
//! |---|---|
//! | a screen | [`on_screen`], and [`line()`] for a short one; [`in_json`] |
//! | a model | [`for_model`], and [`line_for_model`] for a name; [`without_hidden`] for the words of a server |
//! | a record, a question, a matter of trust | [`visible`]; [`on_one_line`], [`in_full`] |

use std::borrow::Cow;

/// `General_Category=Cf`, and its neighbours of Egyptian hieroglyphs: DerivedGeneralCategory.txt of Unicode 17.0,
/// <https://www.unicode.org/Public/17.0.0/ucd/extracted/DerivedGeneralCategory.txt>.
const FORMAT: [(char, char); 21] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{180e}', '\u{180e}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{202a}', '\u{202e}'),
    ('\u{2060}', '\u{2064}'),
    ('\u{2066}', '\u{206f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{fff9}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0001}', '\u{e0001}'),
    ('\u{e0020}', '\u{e007f}'),
];

/// `Default_Ignorable_Code_Point`: DerivedCoreProperties.txt of Unicode 17.0,
/// <https://www.unicode.org/Public/17.0.0/ucd/DerivedCoreProperties.txt>.
const IGNORABLE: [(char, char); 17] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{202a}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fff8}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// A letter of Braille that has no dot.
const BLANK_BRAILLE: char = '\u{2800}';

/// Blanks in a row that a line of trust shows; more are counted.
const BLANKS: usize = 24;

fn is_in(table: &[(char, char)], c: char) -> bool {
    let at = table.partition_point(|(_, last)| *last < c);
    table.get(at).is_some_and(|(first, _)| *first <= c)
}

/// Characters that show as nothing, as a blank, or turn the direction of writing.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() && c != '\n' && c != '\t';
    }
    c.is_control()
        || c.is_whitespace()
        || c == BLANK_BRAILLE
        || is_in(&FORMAT, c)
        || is_in(&IGNORABLE, c)
}

/// Letters that join or shape those around them: in emoji and in the scripts of India and Persia they belong to
/// the text.
fn joins(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
}

/// True for the shape of an emoji, which a joiner may follow.
fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe0e}' | '\u{fe0f}')
}

/// True if a joiner behind this letter belongs to it.
fn is_shaped(last: char) -> bool {
    !last.is_ascii() && last != MARK && (!joins(last) || is_selector(last))
}

/// In the place of a character that a screen does not get.
const MARK: char = '\u{fffd}';

/// The text without hidden characters. A joiner behind a visible letter that is not ASCII stays, a blank of
/// another script becomes a blank, and a line's end of another script a line's end.
#[must_use]
pub fn without_hidden(text: &str) -> Cow<'_, str> {
    clean(text, None)
}

/// Text from elsewhere for a screen: as [`without_hidden`], with a mark in the place of what is left out and no line
/// that the text did not have, so that it can neither move the cursor nor look like another one.
#[must_use]
pub fn on_screen(text: &str) -> String {
    clean(text, Some(MARK)).into_owned()
}

/// The same on one line, with `…` behind so many characters.
#[must_use]
pub fn line(text: &str, most: usize) -> String {
    let line = on_screen(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

fn clean(text: &str, mark: Option<char>) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    for c in text.chars() {
        let last = kept.chars().next_back();
        match c {
            '\u{85}' | '\u{2028}' | '\u{2029}' if mark.is_none() => kept.push('\n'),
            c if !is_hidden(c) => kept.push(c),
            c if c.is_whitespace() && !c.is_ascii() => kept.push(' '),
            c if joins(c) && last.is_some_and(is_shaped) => kept.push(c),
            _ => kept.extend(mark),
        }
    }
    Cow::Owned(kept)
}

/// Text of a file or of a command for a model: control characters as signs (`␛`); tabs and line ends stay. So do
/// letters without width and those that turn the direction, since people write them and the model edits the text.
#[must_use]
pub fn for_model(text: &str) -> Cow<'_, str> {
    with_signs(text, |c| c == '\t' || c == '\n')
}

/// A name or one line for a model: the same, with signs for line ends too.
#[must_use]
pub fn line_for_model(text: &str) -> Cow<'_, str> {
    with_signs(text, |c| c == '\t')
}

fn with_signs(text: &str, stays: fn(char) -> bool) -> Cow<'_, str> {
    let is_shown = |c: char| !c.is_control() || stays(c);
    if text.chars().all(is_shown) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if stays(c) { c } else { sign(c) }).collect())
}

/// The visible sign of a control character; others are themselves.
#[must_use]
pub fn sign(c: char) -> char {
    match c {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or(MARK),
        '\u{7f}' => '\u{2421}',
        '\u{80}'..='\u{9f}' => MARK,
        other => other,
    }
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

/// A text that is to be trusted, on one line: as [`visible`], with line ends as `\n`, and a long row of blanks as its
/// number, since it could push the rest out of sight.
#[must_use]
pub fn on_one_line(text: &str) -> String {
    let (mut shown, mut blanks) = (String::with_capacity(text.len()), String::new());
    for c in text.chars().map(Some).chain([None]) {
        if let Some(blank @ (' ' | '\t')) = c {
            blanks.push(blank);
            continue;
        }
        match blanks.len() {
            0..=BLANKS => shown.push_str(&blanks.replace('\t', "\\t")),
            many => shown.push_str(&format!(" [{many} blanks] ")),
        }
        blanks.clear();
        match c {
            Some('\n') => shown.push_str("\\n"),
            Some(c) if is_hidden(c) => shown.extend(c.escape_unicode()),
            c => shown.extend(c),
        }
    }
    shown
}

/// A text of many lines that is to be trusted: each as [`on_one_line`], and many empty ones as their number.
#[must_use]
pub fn in_full(text: &str) -> String {
    let (mut shown, mut empty) = (Vec::new(), 0_usize);
    for line in text.lines().map(Some).chain([None]) {
        if line.is_some_and(|line| line.trim().is_empty()) {
            empty += 1;
            continue;
        }
        match std::mem::take(&mut empty) {
            few @ 0..=2 => shown.extend(std::iter::repeat_n(String::new(), few)),
            many => shown.push(format!("[{many} empty lines]")),
        }
        shown.extend(line.map(on_one_line));
    }
    shown.join("\n")
}

/// JSON for a screen: the same value, with hidden characters in JSON's own spelling.
#[must_use]
pub fn in_json(json: &str) -> Cow<'_, str> {
    if !json.contains(is_hidden) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        match is_hidden(c) {
            true => {
                let units = c.encode_utf16(&mut [0; 2]).to_vec();
                shown.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
            }
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
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
        assert_eq!(
            on_screen("\u{2764}\u{fe0f} a\u{202e}b\u{9b}c\u{a0}d\u{2028}e\u{85}f\ng"),
            "\u{2764}\u{fe0f} a\u{fffd}b\u{fffd}c d e f\ng"
        );
    }

    /// Each character of the two tables, of C0, C1, blanks and line ends, at each surface.
    #[test]
    fn no_hidden_character_is_left_by_any_way() {
        let tables = FORMAT.iter().chain(&IGNORABLE).flat_map(|(first, last)| *first..=*last);
        let more = ['\u{2800}', '\u{2028}', '\u{2029}', '\u{3000}', '\u{a0}', '\u{1680}', '\u{7f}'];
        let controls = ('\u{0}'..='\u{1f}').chain('\u{80}'..='\u{9f}').chain(more);
        let all: Vec<char> = tables.chain(controls).filter(|c| !['\n', '\t'].contains(c)).collect();
        assert!(all.len() > 4000);
        for c in all {
            assert!(is_hidden(c), "{c:?}");
            let text = format!("a{c}b");
            let json = format!("[\"{text}\"]");
            for cleaned in [
                &*without_hidden(&text),
                &on_screen(&text),
                &line(&text, 9),
                &visible(&text),
                &on_one_line(&text),
                &in_full(&text),
                &*in_json(&json),
            ] {
                assert!(!cleaned.contains(c), "{c:?}: {cleaned:?}");
            }
            assert!(visible(&format!("a{c}b")).contains(&format!("\\u{{{:x}}}", u32::from(c))));
        }
        assert_eq!(in_json("\"\u{202e}\u{e0041}\""), r#""\u202e\udb40\udc41""#);
        // The control.
        let plain = "é 漢字 עברית 🦀 \u{915}\u{94d}\u{937} a\tb";
        assert!(!plain.contains(is_hidden));
    }

    #[test]
    fn a_model_sees_signs_for_control_codes_and_a_line_is_short() {
        assert_eq!(line_for_model("a\tb"), "a\tb");
        assert_eq!(line_for_model("\u{1b}[2J\n"), "\u{241b}[2J\u{240a}");
        assert_eq!(for_model("a\n\u{7f}\u{9b}\u{202e}"), "a\n\u{2421}\u{fffd}\u{202e}");
        assert_eq!(line("a\n  b c", 4), "a b …");
        assert_eq!(line("a\n b\u{2028}", 4), "a b");
        assert_eq!(line("a\u{1b}[31m", 10), "a\u{fffd}[31m");
    }

    #[test]
    fn blanks_and_empty_lines_push_nothing_out_of_sight() {
        let far = format!("echo ok{}; curl evil{}\u{2028}x", " ".repeat(300), "\t ".repeat(50));
        assert_eq!(on_one_line(&far), "echo ok [300 blanks] ; curl evil [100 blanks] \\u{2028}x");
        let down = format!("echo ok\n{}curl evil\n\n  end\n", "\n".repeat(99));
        assert_eq!(in_full(&down), "echo ok\n[99 empty lines]\ncurl evil\n\n  end");
        assert_eq!(on_one_line("a\nb\tc  d"), "a\\nb\\tc  d");
    }
}
