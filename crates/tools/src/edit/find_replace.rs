//! Pieces of a text found and replaced with the text's own line ends kept. Pure.
//!
//! A model writes `\n`; a file may use `\r\n`, or both kinds. A search text without carriage
//! returns matches either kind, and its replacement gets the kind that is used at that place. A
//! search text with carriage returns is taken literally.

use crate::edit::canonical;
use std::ops::Range;

/// A place of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextSpan(Range<usize>);

impl TextSpan {
    /// Every place of `piece`, from the beginning, without overlaps.
    pub fn find(text: &str, piece: &str) -> Vec<Self> {
        let literal = |haystack: &str| -> Vec<Range<usize>> {
            haystack.match_indices(piece).map(|(at, found)| at..at + found.len()).collect()
        };
        if piece.contains('\r') || !text.contains("\r\n") {
            return literal(text).into_iter().map(Self).collect();
        }
        // Searched in the text without carriage returns before newlines, and carried back.
        let plain = text.replace("\r\n", "\n");
        let mut dropped = text.match_indices("\r\n").map(|(at, _)| at).peekable();
        let mut count = 0;
        // An end of line belongs to a place whole or not at all: positions are carried to the
        // carriage return, not behind it.
        let mut back = |at: usize| {
            while dropped.next_if(|dropped| dropped - count < at).is_some() {
                count += 1;
            }
            at + count
        };
        literal(&plain).into_iter().map(|place| Self(back(place.start)..back(place.end))).collect()
    }

    /// Every place that reads like `piece` in another of Unicode's forms or with other quotes, also those that
    /// overlap.
    pub fn find_alike(text: &str, piece: &str) -> Vec<Self> {
        canonical::find(text, piece).into_iter().map(Self).collect()
    }

    /// True if the place has the bytes of the piece, line ends apart.
    pub fn is_exact(&self, text: &str, piece: &str) -> bool {
        let there = &text[self.0.clone()];
        there == piece || there.replace("\r\n", "\n") == piece
    }

    /// True if both have bytes in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.0.start < other.0.end && other.0.start < self.0.end
    }

    /// The lines from `first` to `last`, counted from 1, their ends included; otherwise how many
    /// lines there are.
    pub fn lines(text: &str, first: usize, last: usize) -> Result<Self, usize> {
        let mut ends = vec![0];
        ends.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        if !text.is_empty() && !text.ends_with('\n') {
            ends.push(text.len());
        }
        let count = ends.len() - 1;
        match (ends.get(first.wrapping_sub(1)), ends.get(last)) {
            (Some(start), Some(end)) if first <= last => Ok(Self(*start..*end)),
            (Some(_) | None, Some(_) | None) => Err(count),
        }
    }

    /// A further place of `piece` that begins within this one: it is not clear which is meant.
    pub fn overlapped(&self, text: &str, piece: &str) -> Option<Self> {
        let first = text[self.0.start..].chars().next()?.len_utf8();
        let from = self.0.start + first;
        let next = Self::find(&text[from..], piece).into_iter().next()?;
        Some(Self(next.0.start + from..next.0.end + from))
    }

    /// The line at which it begins, counted from 1.
    pub fn line(&self, text: &str) -> usize {
        text[..self.0.start].matches('\n').count() + 1
    }
}

/// A span and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replacement {
    place: TextSpan,
    new: String,
    /// Whether the new text keeps its own line endings or gets those of its place.
    ends: LineEndsFrom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEndsFrom {
    OfThePlace,
    AsGiven,
}

impl Replacement {
    /// A piece of `text` that was found as `old`.
    pub fn of_piece(text: &str, place: TextSpan, old: &str, new: &str) -> Self {
        let ends =
            if old.contains('\r') { LineEndsFrom::AsGiven } else { LineEndsFrom::OfThePlace };
        let new = match place.is_exact(text, old) {
            true => new.to_owned(),
            false => canonical::merged(&text[place.0.clone()], old, new),
        };
        Self { place, new, ends }
    }

    /// Whole lines of `text`. The replacement ends as they did, so that no line is joined with the
    /// next one and no line ending is added where there was none.
    pub fn of_lines(text: &str, place: TextSpan, new: &str) -> Self {
        let mut new = new.to_owned();
        let ended = text[place.0.clone()].ends_with('\n');
        if ended && !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        } else if !ended && new.ends_with('\n') {
            new.pop();
            if new.ends_with('\r') {
                new.pop();
            }
        }
        Self { place, new, ends: LineEndsFrom::OfThePlace }
    }

    /// These bytes, whose new text is given the line ends of its place.
    pub fn of_bytes(bytes: Range<usize>, new: String) -> Self {
        Self { place: TextSpan(bytes), new, ends: LineEndsFrom::OfThePlace }
    }

    /// Where it begins, for an order of exchanges.
    pub fn start(&self) -> usize {
        self.place.0.start
    }

    /// True if both replace the same bytes.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.place.overlaps(&other.place)
    }

    /// The line at which it begins, counted from 1.
    pub fn line(&self, text: &str) -> usize {
        self.place.line(text)
    }
}

/// The note about pieces, of which this call names `field`, that were found in another form.
pub(crate) fn alike_note(field: &str) -> String {
    format!(
        "[{field} was found in another Unicode form or with other quotes; what the edit leaves as it is keeps the \
            file's bytes]"
    )
}

/// `text` with each of `places`, where `old` was found, replaced by `new`.
pub(crate) fn replace_spans(text: &str, places: &[TextSpan], old: &str, new: &str) -> String {
    let exchanges: Vec<Replacement> =
        places.iter().map(|place| Replacement::of_piece(text, place.clone(), old, new)).collect();
    apply_replacements(text, &exchanges)
}

/// `text` after these replacements, which are in order and do not overlap.
pub(crate) fn apply_replacements(text: &str, exchanges: &[Replacement]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for Replacement { place: TextSpan(place), new, ends } in exchanges {
        out.push_str(&text[from..place.start]);
        match ends {
            LineEndsFrom::AsGiven => out.push_str(new),
            LineEndsFrom::OfThePlace => {
                let plain = new.replace("\r\n", "\n");
                match line_end(text, place) {
                    LineEnd::Newline => out.push_str(&plain),
                    LineEnd::CarriageReturn => out.push_str(&plain.replace('\n', "\r\n")),
                }
            }
        }
        from = place.end;
    }
    out.push_str(&text[from..]);
    // A file that ended with a newline goes on doing so: a model that leaves it out of the last
    // line rarely means it.
    let given = exchanges.last().is_none_or(|last| last.ends == LineEndsFrom::AsGiven);
    if text.ends_with('\n') && !out.is_empty() && !out.ends_with('\n') && !given {
        out.push_str(if text.ends_with("\r\n") { "\r\n" } else { "\n" });
    }
    out
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Newline,
    CarriageReturn,
}

/// How lines end at a place: by the first end in it, else the next after it, else the last before.
fn line_end(text: &str, place: &Range<usize>) -> LineEnd {
    let at = text[place.start..]
        .find('\n')
        .map(|at| place.start + at)
        .or_else(|| text[..place.start].rfind('\n'));
    match at {
        Some(at) if text[..at].ends_with('\r') => LineEnd::CarriageReturn,
        Some(_) | None => LineEnd::Newline,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edit(text: &str, old: &str, new: &str) -> String {
        replace_spans(text, &TextSpan::find(text, old), old, new)
    }

    #[test]
    fn line_ends_are_kept() {
        for (name, text, old, new, expected) in [
            ("plain", "a\nb\n", "b", "c", "a\nc\n"),
            (
                "several lines into windows lines",
                "a\r\nb\r\nc\r\n",
                "a\nb",
                "x\ny\nz",
                "x\r\ny\r\nz\r\nc\r\n",
            ),
            ("one line into windows lines", "a\r\nb\r\n", "a", "x\ny", "x\r\ny\r\nb\r\n"),
            ("windows piece into plain lines", "a\nb\n", "b", "x\r\ny", "a\nx\ny\n"),
            ("mixed, plain place", "a\r\nb\nc\n", "b", "x\ny", "a\r\nx\ny\nc\n"),
            ("mixed, windows place", "a\nb\r\nc\n", "b", "x\ny", "a\nx\r\ny\r\nc\n"),
            ("newline at the beginning of the piece", "a\r\nb\r\n", "\nb", "\nc", "a\r\nc\r\n"),
            ("newline at the end of the piece", "a\r\nb\r\n", "a\n", "x\n", "x\r\nb\r\n"),
            ("only the newline", "a\r\nb", "\n", " ", "a b"),
            ("final newline goes on", "a\nlast\n", "last\n", "end", "a\nend\n"),
            ("final windows newline goes on", "a\r\nlast\r\n", "last\n", "end", "a\r\nend\r\n"),
            ("no final newline is no reason to add one", "a\nlast", "last", "end", "a\nend"),
            ("all of it away", "a\n", "a\n", "", ""),
            ("literal carriage returns", "a\r\nb\n", "a\r\n", "a\n", "a\nb\n"),
            ("all places", "x y x", "x", "z", "z y z"),
        ] {
            assert_eq!(edit(text, old, new), expected, "{name}");
        }
    }

    #[test]
    fn places_that_overlap() {
        let (text, piece) = ("}\n}\n}\n", "}\n}\n");
        let found = TextSpan::find(text, piece);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].overlapped(text, piece).map(|next| next.line(text)), Some(2));
        let only = &TextSpan::find("a\r\nb", "a\nb")[0];
        assert_eq!(only.overlapped("a\r\nb", "a\nb"), None);
    }

    proptest! {
        /// After any replacement and its reversal, no other byte has changed.
        #[test]
        fn there_and_back(
            lines in proptest::collection::vec(("[ab ]{0,3}", prop_oneof!["\n", "\r\n"]), 1..12),
            from in 0usize..12,
            count in 1usize..4,
        ) {
            let text: String = lines.iter().map(|(line, end)| format!("{line}{end}")).collect();
            let from = from.min(lines.len() - 1);
            let piece: Vec<&str> = lines[from..(from + count).min(lines.len())].iter().map(|(line, _)| line.as_str()).collect();
            let piece = piece.join("\n");
            prop_assume!(!piece.is_empty());
            let found = TextSpan::find(&text, &piece);
            prop_assert!(!found.is_empty());
            for passage in &found {
                let found = &text[passage.0.clone()];
                prop_assert_eq!(found.replace("\r\n", "\n"), piece.as_str());
                prop_assert!(!text[passage.0.end..].starts_with('\n') || !found.ends_with('\r'));
            }
            let marked = replace_spans(&text, &found[..1], &piece, "<MARK>");
            prop_assert_eq!(TextSpan::find(&marked, "<MARK>").len(), 1);
            let place = &found[0].0;
            prop_assert!(marked.starts_with(&text[..place.start]));
            prop_assert!(marked.contains(&text[place.end..]));
        }

        /// A file of one kind of line ends keeps it through any sequence of edits.
        #[test]
        fn no_sequence_of_edits_mixes_line_ends(
            windows: bool,
            lines in proptest::collection::vec("[abc]{0,4}", 1..10),
            edits in proptest::collection::vec(("[abc\n]{1,3}", "([abc]|\n|\r\n){0,6}"), 0..10),
        ) {
            let end = if windows { "\r\n" } else { "\n" };
            let mut text: String = lines.iter().map(|line| format!("{line}{end}")).collect();
            for (old, new) in edits {
                let found = TextSpan::find(&text, &old);
                let expected_plain = {
                    let plain = text.replace("\r\n", "\n").replace(old.as_str(), &new.replace("\r\n", "\n"));
                    if plain.is_empty() || plain.ends_with('\n') || !text.ends_with('\n') { plain } else { plain + "\n" }
                };
                let had_ends = text.contains('\n');
                text = replace_spans(&text, &found, &old, &new);
                prop_assert_eq!(text.replace("\r\n", "\n"), expected_plain);
                let pairs = text.matches("\r\n").count();
                let newlines = text.matches('\n').count();
                prop_assert_eq!(text.matches('\r').count(), pairs, "no lone carriage return");
                if had_ends {
                    prop_assert_eq!(pairs, if windows { newlines } else { 0 });
                } else {
                    break;
                }
            }
        }
    }
}
