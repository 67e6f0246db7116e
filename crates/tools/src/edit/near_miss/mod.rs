//! Near misses of a failed edit: compares the whole piece with the file and shows each differing line from
//! both sides. Pure.

mod alignment;
mod characters;

use crate::edit::find_replace::TextSpan;
use alignment::{AlignedLine, Comparison, LINE_CHARS, NearPlace};
use characters::{name, untyped};
use unicode_normalization::UnicodeNormalization;

/// The nearest places for a piece that is not in a file, and a hint.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NearMiss {
    /// Completes a sentence; more lines may follow.
    pub places: String,
    pub hint: String,
}

/// Finds the places of `text` most like `piece`, which messages call `field`.
pub(crate) fn near_miss(text: &str, piece: &str, field: &str) -> NearMiss {
    if let Some(line) = without_numbers(piece).and_then(|plain| line_of(text, &plain)) {
        return NearMiss {
            places: format!("; without its line numbers it matches at line {line}"),
            hint: format!("Remove the line numbers, which read added, from {field}."),
        };
    }
    if let Some(line) = line_of(text, &piece.replace('\r', "")) {
        return NearMiss {
            places: format!("; with other line endings it matches at line {line}"),
            hint: format!(
                "Remove the carriage returns from {field}; the edit keeps the file's line \
                    endings."
            ),
        };
    }
    let compared = Comparison::new(text, piece);
    let places = compared.places();
    let Some(best) = places.first() else {
        return NearMiss {
            places: "; no part of the file is similar".to_owned(),
            hint: "Read that part of the file again and copy the text exactly.".to_owned(),
        };
    };
    NearMiss {
        places: compared.in_words(best, &places[1..], field),
        hint: compared.hint(best, field),
    }
}

fn line_of(text: &str, piece: &str) -> Option<usize> {
    if piece.is_empty() {
        return None;
    }
    TextSpan::find(text, piece).first().map(|place| place.line(text))
}

/// The piece without the numbers that `read` puts before each line; none where a line has none.
fn without_numbers(piece: &str) -> Option<String> {
    let plain = |line: &str| {
        let (number, rest) = line.split_once('\t')?;
        let number = number.trim_start();
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| rest.to_owned())
    };
    let lines: Option<Vec<String>> = piece.lines().map(plain).collect();
    lines.map(|lines| lines.join("\n"))
}

fn text_differs() -> String {
    "Copy these lines exactly as they are in the file, without line numbers.".to_owned()
}

fn same_bytes(pairs: impl Iterator<Item = (char, char)>) -> usize {
    pairs.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
}

fn spot(place: &NearPlace) -> String {
    match place.lines() {
        Some((first, last)) if first != last => format!("lines {} to {}", first + 1, last + 1),
        Some((first, _)) => format!("line {}", first + 1),
        None => "there".to_owned(),
    }
}

/// A line, or the part of a long line around one byte.
fn around(text: &str, byte: usize) -> String {
    if text.chars().nth(LINE_CHARS).is_none() {
        return text.to_owned();
    }
    let before = text[..byte].chars().count().saturating_sub(LINE_CHARS / 4);
    let part: String = text.chars().skip(before).take(LINE_CHARS).collect();
    let more = if text.chars().nth(before + LINE_CHARS).is_some() { "…" } else { "" };
    let less = if before > 0 { "…" } else { "" };
    format!("{less}{part}{more}")
}

/// Most differing lines that are shown.
const SHOWN: usize = 12;

impl Comparison<'_> {
    fn in_words(&self, best: &NearPlace, others: &[NearPlace], field: &str) -> String {
        let differing = self.differences(best).count();
        let mut words =
            format!("; the most similar place is {}, with these differing lines:", spot(best));
        for step in self.differences(best).take(SHOWN) {
            words.push_str(&self.shown(*step, field));
        }
        if differing > SHOWN {
            words.push_str(&format!("\n(and {} more)", differing - SHOWN));
        }
        let others: Vec<String> = others
            .iter()
            .map(|place| format!("{} ({} differ)", spot(place), self.differences(place).count()))
            .collect();
        if !others.is_empty() {
            words.push_str(&format!("\nAlso similar: {}.", others.join(", ")));
        }
        words
    }

    /// A line that differs, from both sides.
    fn shown(&self, step: AlignedLine, field: &str) -> String {
        let cut = |text: &str| around(text, 0);
        match step {
            AlignedLine::OnlyFile(at) => {
                let text = cut(self.file[at].text);
                format!("\nfile, line {}: {text}\n{field}: (does not have this line)", at + 1)
            }
            AlignedLine::OnlyPiece(wanted) => {
                let text = cut(self.piece[wanted].text);
                format!("\nfile: (does not have this line)\n{field}, line {}: {text}", wanted + 1)
            }
            AlignedLine::Both(wanted, at) => {
                let (line, part) = (self.file[at].text, self.piece[wanted].text);
                let (in_file, in_piece) = self.first_difference(wanted, at);
                let sign = |text: &str, from: usize| name(text[from..].chars().next());
                format!(
                    "\nfile, line {}: {}\n{field}, line {}: {}\n(the file has {} where {field} has {})",
                    at + 1,
                    around(line, in_file),
                    wanted + 1,
                    around(part, in_piece),
                    sign(line, in_file),
                    sign(part, in_piece),
                )
            }
        }
    }

    /// Where two lines begin to differ, in bytes of each.
    fn first_difference(&self, wanted: usize, at: usize) -> (usize, usize) {
        let (line, part) = (self.file[at].text, self.piece[wanted].text);
        let is_end = wanted == 0 && self.piece.len() > 1 && !line.starts_with(part);
        let ahead = same_bytes(line.chars().zip(part.chars()));
        let behind = same_bytes(line.chars().rev().zip(part.chars().rev()));
        // Compares from the end of the line if the searched text starts in the middle of it.
        if is_end && behind > ahead && ahead == 0 {
            let back = |text: &str| {
                let before = &text[..text.len() - behind];
                before.char_indices().next_back().map_or(0, |(at, _)| at)
            };
            return (back(line), back(part));
        }
        (ahead, ahead)
    }

    fn hint(&self, best: &NearPlace, field: &str) -> String {
        let mut kinds = (false, false);
        let mut other_form = "";
        for step in self.differences(best) {
            let AlignedLine::Both(wanted, at) = *step else {
                return text_differs();
            };
            let (part, line) = (&self.piece[wanted], &self.file[at]);
            let whole = part.key == line.key;
            if !whole && !self.is_part(wanted, &line.key, &part.key) {
                return text_differs();
            }
            if !part.text.nfc().eq(part.text.chars()) || !line.text.nfc().eq(line.text.chars()) {
                other_form =
                    " Letters with marks have another Unicode form in one of them, too; copy them.";
            }
            match untyped(part.text) == untyped(line.text) {
                true => kinds.0 = true,
                false => kinds.1 = true,
            }
        }
        match kinds {
            (_, true) => format!(
                "Typographic characters or white space differ, such as quotes, dashes or \
                    no-break spaces. Use the file's characters in {field}.{other_form}"
            ),
            (true, false) => {
                format!("Only white space differs. Copy it as it is in the file.{other_form}")
            }
            (false, false) => text_differs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn miss(text: &str, piece: &str) -> NearMiss {
        assert_eq!(TextSpan::find(text, piece), [], "{piece:?} is there");
        near_miss(text, piece, "old_string")
    }

    const TEXT: &str = "fn main() {\n    let total = add(1, 2);\n    show(total);\n}\n\n\
                        fn other() {\n\tlet name = \u{201c}x\u{201d};\n    wait();\n    end();\n}\n";

    #[test]
    fn both_sides_of_each_line_that_differs_are_shown() {
        let found = miss(TEXT, "fn main() {\n    let totals = add(1, 2);\n    show(total);\n}");
        assert_eq!(
            found.places,
            "; the most similar place is lines 1 to 4, with these differing lines:\n\
             file, line 2:     let total = add(1, 2);\n\
             old_string, line 2:     let totals = add(1, 2);\n\
             (the file has a space where old_string has `s`)"
        );
        assert_eq!(found.hint, text_differs());
    }

    #[test]
    fn only_what_differs_is_called_the_reason() {
        let (space, signs) = ("Only white space", "Typographic characters");
        for (piece, differing, hint) in [
            // The longest line differs in space, another one has a typo.
            ("    let total = add(1,2);\n    shw(total);", 2, "exactly"),
            ("let total = add(1,2);", 1, space),
            ("fn main() {\n\tlet total = add(1, 2);\n    show(total);", 1, space),
            ("    show(total);\n}\nfn other() {", 1, "exactly"),
            ("    show(total);\n}\n\n\nfn other() {", 1, "exactly"),
            ("\tlet name = \"x\";\n    wait();", 1, signs),
            ("    let name = \"x\";\n    wait();", 1, signs),
            ("\tlet name = \"y\";\n    wait();", 1, "exactly"),
            ("    wait();\u{a0}\n    end();", 1, signs),
            ("    wait(); \n    end();", 1, space),
            ("wait();\nend();", 1, space),
            ("    wait();\n    done();\n}", 1, "exactly"),
            ("fn another() {\n\tlet name", 1, "exactly"),
            ("}\nfn other() {\n", 1, "exactly"),
        ] {
            let found = miss(TEXT, piece);
            assert_eq!(
                found.places.matches("\nfile").count(),
                differing,
                "{piece:?}: {}",
                found.places
            );
            assert!(found.hint.contains(hint), "{piece:?}: {} {}", found.hint, found.places);
        }
    }

    #[test]
    fn keys_of_typography_are_those_of_a_keyboard() {
        for (text, piece) in [
            ("it\u{2019}s here, he said", "it's here, he said"),
            ("\u{201e}quoted words\u{201c}", "\"quoted words\""),
            ("pages 3\u{2013}5 \u{2014} all", "pages 3-5 - all"),
            ("5\u{a0}km of\u{202f}road", "5 km of road"),
            ("wait for it\u{2026}", "wait for it..."),
            ("soft\u{ad}ware here", "software here"),
            ("\u{feff}use std::io;", "use std::io;x"),
        ] {
            let found = miss(&format!("above\n{text}\nbelow\n"), piece);
            let signs = found.hint.contains("Typographic characters");
            assert_eq!(signs, !piece.ends_with('x'), "{text}: {found:?}");
            assert!(found.places.contains("line 2") && found.places.contains(text), "{found:?}");
        }
        let found = miss("the it\u{2019}s of it\n", "the it's of it");
        assert!(found.places.contains("the file has `\u{2019}` (U+2019) where old_string has `'`"));
    }

    #[test]
    fn what_a_person_would_see_at_once_is_said() {
        for (text, piece, places, hint) in [
            ("a\nb\nc\n", "1\ta\n2\tb", "without its line numbers it matches at line 1", "numbers"),
            (
                "a\nb\nc\n",
                "b\r\nc",
                "with other line endings it matches at line 2",
                "carriage returns",
            ),
            ("a\nb\n", "nothing of the kind", "no part of the file is similar", "Read"),
            ("a\nb\n", "\n \n", "no part of the file is similar", "Read"),
        ] {
            let found = miss(text, piece);
            assert!(found.places.contains(places) && found.hint.contains(hint), "{found:?}");
        }
    }

    #[test]
    fn a_late_difference_in_a_long_line_is_shown() {
        let line = |end: &str| format!("{}{end}{}", "word ".repeat(400), " tail".repeat(100));
        let found = miss(&format!("x\n{}\n", line("here")), &line("there"));
        assert!(found.places.contains("…"), "{}", found.places);
        assert!(
            found.places.contains("word here") && found.places.contains("word there"),
            "{}",
            found.places
        );
        assert!(found.places.len() < 1_000, "{}", found.places);
    }

    #[test]
    fn other_places_are_named_and_long_pieces_end() {
        let block =
            |n: usize| format!("fn f{n}() {{\n    let total = {n};\n    show(total);\n}}\n");
        let text: String = (0..3_000).map(block).collect();
        let found = miss(&text, "    let totl = 7;\n    show(total);\n}\n");
        assert!(found.places.contains("line 30: "), "{}", found.places);
        assert!(found.places.contains("Also similar: lines "), "{}", found.places);
        let piece: String =
            (500..700).map(block).collect::<String>().replace("(total)", "(totals)");
        let found = miss(&text, &piece);
        assert!(found.places.contains("(and 188 more)"), "{}", found.places);
    }
}
