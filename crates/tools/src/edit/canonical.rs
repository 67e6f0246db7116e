//! Text that reads the same but has other bytes: another of Unicode's normal forms, or typographic quotes.
//! An edit that finds its text only so keeps the file's own bytes of all that it leaves as it is. Pure.

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use std::borrow::Cow;
use std::ops::Range;
use std::time::{Duration, Instant};
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// The comparison gets coarser after this time instead of slower.
const PATIENCE: Duration = Duration::from_millis(300);

/// True for two texts that read the same.
pub(crate) fn reads_same(a: &str, b: &str) -> bool {
    a == b || (!(a.is_ascii() && b.is_ascii()) && Folded::of(a).text == Folded::of(b).text)
}

/// Every place of a text that reads like `piece`, also those that overlap.
pub(crate) fn find(text: &str, piece: &str) -> Vec<Range<usize>> {
    if text.is_ascii() && piece.is_ascii() || piece.contains('\r') {
        return Vec::new();
    }
    let (text, piece) = (Folded::of(text), Folded::of(piece).text);
    let Some(first) = piece.chars().next() else { return Vec::new() };
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text.text[from..].find(&piece) {
        let at = from + at;
        from = at + first.len_utf8();
        found.extend(text.back(at).zip(text.back(at + piece.len())).map(|(from, to)| from..to));
    }
    found
}

/// The new text for a place of a file that reads like `old`: what `new` leaves as it is in `old` stays as it is
/// in the file.
pub(crate) fn merged(there: &str, old: &str, new: &str) -> String {
    let [kept, old, new] = [there, old, new].map(|text| text.graphemes(true).collect::<Vec<_>>());
    if kept.len() != old.len() {
        return new.concat();
    }
    let deadline = Some(Instant::now() + PATIENCE);
    let steps = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline);
    let parts = steps.iter().map(|step| match *step {
        DiffOp::Equal { old_index, len, .. } => kept[old_index..old_index + len].concat(),
        DiffOp::Delete { .. } => String::new(),
        DiffOp::Insert { new_index, new_len, .. } | DiffOp::Replace { new_index, new_len, .. } => {
            new[new_index..new_index + new_len].concat()
        }
    });
    parts.collect()
}

/// A text in one form, and the way back.
struct Folded {
    text: String,
    /// Where a character's bytes are others: in this text, and in the given one. In order.
    changed: Vec<(Range<usize>, Range<usize>)>,
}

impl Folded {
    fn of(text: &str) -> Self {
        let mut folded = Self { text: String::with_capacity(text.len()), changed: Vec::new() };
        for (at, sign) in text.grapheme_indices(true) {
            let from = folded.text.len();
            let key = key(sign);
            folded.text.push_str(&key);
            if key != sign {
                folded.changed.push((from..folded.text.len(), at..at + sign.len()));
            }
        }
        folded
    }

    /// The same place in the given text; none within a character whose bytes are others.
    fn back(&self, at: usize) -> Option<usize> {
        let next = self.changed.partition_point(|(to, _)| to.end <= at);
        let is_within = self.changed.get(next).is_some_and(|(to, _)| to.start < at);
        let (to, of) = next.checked_sub(1).map_or((0, 0), |last| {
            let (to, of) = &self.changed[last];
            (to.end, of.end)
        });
        (!is_within).then_some(of + (at - to))
    }
}

/// A character in the form in which it is compared.
fn key(sign: &str) -> Cow<'_, str> {
    match sign {
        "\r\n" => "\n".into(),
        ascii if ascii.is_ascii() => ascii.into(),
        other => other.nfc().map(quote).collect::<String>().into(),
    }
}

/// The keyboard's quotes for typographic ones.
fn quote(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_in_another_form() {
        let nfd = "x 한글 é \u{212b} y".nfd().collect::<String>();
        for (text, piece, found) in [
            (nfd.as_str(), "한글", true),
            ("x 한글 y", "한".nfd().collect::<String>().as_str(), true),
            (nfd.as_str(), "글 é Å y", true),
            ("say “hello”\r\n‘b’", "\"hello\"\n'b'", true),
            ("say \"a\" é", "say “a”", true),
            // A part of a character is none of its own.
            ("e\u{301}", "e", false),
            ("plain", "plain", false),
            ("é", "", false),
            ("a—b", "a-b", false),
        ] {
            let places = find(text, piece);
            assert_eq!(places.len(), usize::from(found), "{text:?} {piece:?}");
            for place in places {
                assert!(reads_same(&text[place].replace("\r\n", "\n"), piece));
            }
        }
        assert_eq!(find("““““", "\"\"\"").len(), 2, "also those that overlap");
        assert_eq!(&nfd[find(&nfd, "한글")[0].clone()], "한글".nfd().collect::<String>());
    }

    #[test]
    fn what_an_edit_leaves_keeps_its_form() {
        let nfd = |text: &str| text.nfd().collect::<String>();
        for (there, old, new, expected) in [
            (nfd("가 é 나"), "가 é 나", "가 è 다", format!("{} è 다", nfd("가"))),
            ("“a” b".to_owned(), "\"a\" b", "\"a\" c", "“a” c".to_owned()),
            ("“a” b".to_owned(), "\"a\" b", "'a' b", "'a' b".to_owned()),
            (nfd("é"), "é", "", String::new()),
            (nfd("é"), "é", "éé", nfd("é") + "é"),
        ] {
            assert_eq!(merged(&there, old, new), expected, "{old} {new}");
        }
    }
}
