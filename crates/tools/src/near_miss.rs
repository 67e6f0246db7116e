//! Near misses of a failed edit: compares the whole piece with the file and shows each differing line from
//! both sides. Pure.

use crate::passage::TextSpan;
use std::collections::HashMap;

/// Most lines of the file and of the piece that are compared.
const LINES_COMPARED: usize = 50_000;
const PIECE_LINES: usize = 2_000;
/// Most characters of a line that are compared where it is not the same, and that are shown.
const LINE_CHARS: usize = 160;
/// How many places are compared line by line, and how many are named.
const TRIED: usize = 8;
const NAMED: usize = 3;
/// Lowest similarity of two lines, and of a piece and a place, that counts.
const ALIKE: f64 = 0.5;
const FITS: f64 = 0.4;
/// How far lines of a place may be shifted against those of the piece.
const SHIFT: usize = 8;
/// Most differing lines that are shown.
const SHOWN: usize = 12;
/// Shorter lines may be part of a longer one by chance.
const PART: usize = 8;

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
            places: format!("; without the line numbers in it, it is at line {line}"),
            hint: format!("Leave the line numbers of read out of {field}."),
        };
    }
    if let Some(line) = line_of(text, &piece.replace('\r', "")) {
        return NearMiss {
            places: format!("; with other line ends it is at line {line}"),
            hint: format!(
                "Leave carriage returns out of {field}: the line ends of the file are kept as they are."
            ),
        };
    }
    let compared = Comparison::new(text, piece);
    let places = compared.places();
    let Some(best) = places.first() else {
        return NearMiss {
            places: "; nothing in it is like it".to_owned(),
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

/// Folds a typographic character to its keyboard equivalent.
fn folded(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2035}' | '\u{b4}' | '\u{2bc}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ab}' | '\u{bb}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{2043}' => '-',
        other if other.is_whitespace() => ' ',
        other => other,
    }
}

/// Zero-width characters: soft hyphen, joiners, byte order mark.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

/// True for a character that a keyboard types.
fn is_typed(c: char) -> bool {
    !is_unseen(c) && c != '\u{2026}' && (folded(c) == c || c == '\t')
}

/// A line as it is compared: folded, without white space.
fn key(line: &str) -> String {
    let seen = line.chars().filter(|c| !c.is_whitespace() && !is_unseen(*c)).map(folded);
    // Three dots are a sign of their own in typography.
    seen.collect::<String>().replace('\u{2026}', "...")
}

/// A line of either side, made ready.
struct ComparedLine<'a> {
    text: &'a str,
    key: String,
    pairs: Vec<(char, char)>,
}

impl<'a> ComparedLine<'a> {
    fn new(text: &'a str) -> Self {
        let text = text.strip_suffix('\r').unwrap_or(text);
        let key = key(text);
        let pairs = pairs(&key);
        Self { text, key, pairs }
    }
}

/// Neighbouring characters, sorted.
fn pairs(key: &str) -> Vec<(char, char)> {
    let chars: Vec<char> = key.chars().take(LINE_CHARS).collect();
    let mut pairs: Vec<(char, char)> = match chars.as_slice() {
        [single] => vec![(*single, *single)],
        several => several.windows(2).map(|pair| (pair[0], pair[1])).collect(),
    };
    pairs.sort_unstable();
    pairs
}

/// How many pairs two sorted lists have in common.
fn common(a: &[(char, char)], b: &[(char, char)]) -> usize {
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Equal => (i, j, common) = (i + 1, j + 1, common + 1),
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
        }
    }
    common
}

/// A line of the piece and the line of the file that stands for it; one of them may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AlignedLine {
    Both(usize, usize),
    OnlyPiece(usize),
    OnlyFile(usize),
}

/// A place of the file, and how the piece lies on it.
struct NearPlace {
    steps: Vec<AlignedLine>,
    score: f64,
}

impl NearPlace {
    /// Its first and last line, counted from 0.
    fn lines(&self) -> Option<(usize, usize)> {
        let mut both = self.steps.iter().filter_map(|step| match step {
            AlignedLine::Both(_, at) => Some(*at),
            AlignedLine::OnlyPiece(_) | AlignedLine::OnlyFile(_) => None,
        });
        let first = both.next()?;
        Some((first, both.next_back().unwrap_or(first)))
    }
}

struct Comparison<'a> {
    file: Vec<ComparedLine<'a>>,
    piece: Vec<ComparedLine<'a>>,
    /// Whether the piece begins and ends at line borders.
    whole_lines: (bool, bool),
}

impl<'a> Comparison<'a> {
    fn new(text: &'a str, piece: &'a str) -> Self {
        let file = text.lines().take(LINES_COMPARED).map(ComparedLine::new).collect();
        let whole_lines = (piece.starts_with('\n'), piece.ends_with('\n'));
        let piece = piece.strip_suffix('\n').unwrap_or(piece);
        let piece = piece.strip_prefix('\n').unwrap_or(piece);
        let piece = piece.split('\n').take(PIECE_LINES).map(ComparedLine::new).collect();
        Self { file, piece, whole_lines }
    }

    /// The places most like the piece, the best first.
    fn places(&self) -> Vec<NearPlace> {
        let mut places: Vec<NearPlace> = Vec::new();
        for start in self.starts() {
            let place = self.laid_on(start);
            let known = places.iter().any(|other| other.lines() == place.lines());
            if !known && place.score >= FITS {
                places.push(place);
            }
        }
        places.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.lines().cmp(&b.lines())));
        places.truncate(NAMED);
        places
    }

    /// The lines of the file at which the piece may begin: lines of both that are alike vote for them.
    fn starts(&self) -> Vec<isize> {
        let signed = |at: usize| isize::try_from(at).unwrap_or(isize::MAX);
        let mut longest: Vec<usize> = (0..self.piece.len()).collect();
        longest.sort_by_key(|at| (std::cmp::Reverse(self.piece[*at].key.len()), *at));
        let mut votes: HashMap<isize, f64> = HashMap::new();
        for wanted in longest.iter().take(3).filter(|at| !self.piece[**at].key.is_empty()) {
            for at in 0..self.file.len() {
                let alike = self.alike(*wanted, at);
                if alike >= ALIKE {
                    let weight = alike * weight(&self.piece[*wanted]);
                    *votes.entry(signed(at) - signed(*wanted)).or_default() += weight;
                }
            }
        }
        let mut starts: Vec<(isize, f64)> = votes.into_iter().collect();
        starts.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        starts.into_iter().take(TRIED).map(|(start, _)| start).collect()
    }

    /// How alike a line of the piece and one of the file are: 1 for the same, 0 for nothing in common.
    fn alike(&self, wanted: usize, at: usize) -> f64 {
        let (wanted_line, line) = (&self.piece[wanted], &self.file[at]);
        if self.is_same(wanted, at) {
            return 1.0;
        }
        let (a, b) = (&wanted_line.key, &line.key);
        if a == b || (a.len() >= PART && self.is_part(wanted, b, a)) {
            return 0.99;
        }
        let both = wanted_line.pairs.len() + line.pairs.len();
        let common = common(&wanted_line.pairs, &line.pairs);
        let dice = ratio(2 * common, both);
        // The first and the last line may be parts of longer ones.
        let is_edge = wanted == 0 || wanted + 1 == self.piece.len();
        let held = ratio(common, wanted_line.pairs.len());
        if is_edge && wanted_line.pairs.len() >= PART && held >= 0.8 {
            dice.max(held * 0.9)
        } else {
            dice
        }
    }

    /// True for equal lines. The piece's first line may be the end of a line, its last one a beginning.
    fn is_same(&self, wanted: usize, at: usize) -> bool {
        self.is_part(wanted, self.file[at].text, self.piece[wanted].text)
    }

    fn is_part(&self, wanted: usize, line: &str, part: &str) -> bool {
        let first = wanted == 0 && !self.whole_lines.0;
        let last = wanted + 1 == self.piece.len() && !self.whole_lines.1;
        match (first, last) {
            (true, true) => line.contains(part) && !part.is_empty(),
            (true, false) => line.ends_with(part),
            (false, true) => line.starts_with(part) && (!part.is_empty() || line.is_empty()),
            (false, false) => line == part,
        }
    }

    /// Lays the piece on the file so that most of it fits, lines shifted where some are missing.
    fn laid_on(&self, start: isize) -> NearPlace {
        let width = 2 * SHIFT + 1;
        let rows = self.piece.len();
        // The line of the file that lies `shift` beside line `row` of the piece.
        let at = |row: usize, shift: usize| -> Option<usize> {
            let at = start.checked_add_unsigned(row + shift)?.checked_sub_unsigned(SHIFT)?;
            usize::try_from(at).ok().filter(|at| *at < self.file.len())
        };
        // best[row][shift]: from there to the end of the piece.
        let mut best = vec![vec![(0.0_f64, Move::End); width + 1]; rows + 1];
        for row in (0..rows).rev() {
            for shift in (0..width).rev() {
                // A line of the piece that the file has not: the next one lies one less beside it.
                let mut choice = match shift.checked_sub(1) {
                    Some(less) => (best[row + 1][less].0, Move::OnlyPiece),
                    None => (0.0, Move::End),
                };
                if shift + 1 < width && at(row, shift).is_some() {
                    let skipped = best[row][shift + 1].0 - 1.0;
                    if skipped > choice.0 {
                        choice = (skipped, Move::OnlyFile);
                    }
                }
                if let Some(at) = at(row, shift) {
                    let alike = self.alike(row, at);
                    let both = best[row + 1][shift].0 + alike * weight(&self.piece[row]);
                    if alike >= ALIKE && both >= choice.0 {
                        choice = (both, Move::Both);
                    }
                }
                best[row][shift] = choice;
            }
        }
        let from = (0..width)
            .max_by(|a, b| best[0][*a].0.total_cmp(&best[0][*b].0).then(nearer(*b, *a)))
            .unwrap_or(SHIFT);
        let (mut row, mut shift) = (0, from);
        let mut steps = Vec::new();
        while row < rows {
            let (step, next) = match (best[row][shift].1, at(row, shift)) {
                (Move::Both, Some(at)) => (AlignedLine::Both(row, at), (row + 1, shift)),
                (Move::OnlyFile, Some(at)) => (AlignedLine::OnlyFile(at), (row, shift + 1)),
                (Move::OnlyPiece, _) => {
                    (AlignedLine::OnlyPiece(row), (row + 1, shift.saturating_sub(1)))
                }
                (Move::Both | Move::OnlyFile | Move::End, _) => {
                    (AlignedLine::OnlyPiece(row), (row + 1, shift))
                }
            };
            steps.push(step);
            (row, shift) = next;
        }
        let all: f64 = self.piece.iter().map(weight).sum();
        let steps = with_edges(side_by_side(&steps), self.file.len());
        NearPlace { steps, score: best[0][from].0 / all.max(1.0) }
    }

    fn is_different(&self, step: &AlignedLine) -> bool {
        match step {
            AlignedLine::Both(wanted, at) => !self.is_same(*wanted, *at),
            AlignedLine::OnlyPiece(_) | AlignedLine::OnlyFile(_) => true,
        }
    }

    fn differences<'s>(&'s self, place: &'s NearPlace) -> impl Iterator<Item = &'s AlignedLine> {
        place.steps.iter().filter(|step| self.is_different(step))
    }

    fn in_words(&self, best: &NearPlace, others: &[NearPlace], field: &str) -> String {
        let differing = self.differences(best).count();
        let mut words = format!("; the nearest place is {}, where these lines differ:", spot(best));
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
            words.push_str(&format!("\nAlso like it: {}.", others.join(", ")));
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
        // The end of a line, where its beginning is none of the piece.
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
        for step in self.differences(best) {
            let AlignedLine::Both(wanted, at) = *step else {
                return text_differs();
            };
            let (part, line) = (&self.piece[wanted], &self.file[at]);
            let whole = part.key == line.key;
            if !whole && !self.is_part(wanted, &line.key, &part.key) {
                return text_differs();
            }
            match untyped(part.text) == untyped(line.text) {
                true => kinds.0 = true,
                false => kinds.1 = true,
            }
        }
        match kinds {
            (_, true) => format!(
                "Typographic signs differ, or white space: quotes, dashes, no-break spaces. Give {field} \
                 with the signs that the file has."
            ),
            (true, false) => {
                "The place differs in white space only. Copy it as the file has it.".to_owned()
            }
            (false, false) => text_differs(),
        }
    }
}

fn text_differs() -> String {
    "Copy these lines exactly as the file has them, without line numbers.".to_owned()
}

/// The typographic characters of a line.
fn untyped(text: &str) -> Vec<char> {
    text.chars().filter(|c| !is_typed(*c)).collect()
}

/// How the best way goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    Both,
    OnlyPiece,
    OnlyFile,
    End,
}

/// Which of two shifts lies nearer to none.
fn nearer(a: usize, b: usize) -> std::cmp::Ordering {
    a.abs_diff(SHIFT).cmp(&b.abs_diff(SHIFT))
}

/// Pairs lines that only one side has with those that only the other side has, run by run.
fn side_by_side(steps: &[AlignedLine]) -> Vec<AlignedLine> {
    let mut out = Vec::new();
    for run in steps.chunk_by(|a, b| is_both(a) == is_both(b)) {
        let mut pieces = run.iter().filter(|step| matches!(step, AlignedLine::OnlyPiece(_)));
        let mut lines = run.iter().filter(|step| matches!(step, AlignedLine::OnlyFile(_)));
        out.extend(run.iter().filter(|step| is_both(step)));
        loop {
            out.push(match (pieces.next(), lines.next()) {
                (Some(AlignedLine::OnlyPiece(wanted)), Some(AlignedLine::OnlyFile(at))) => {
                    AlignedLine::Both(*wanted, *at)
                }
                (Some(step), _) | (None, Some(step)) => *step,
                (None, None) => break,
            });
        }
    }
    out
}

fn is_both(step: &AlignedLine) -> bool {
    matches!(step, AlignedLine::Both(..))
}

/// Pairs the piece's first and last lines with the file's neighbouring lines where nothing matched them.
fn with_edges(mut steps: Vec<AlignedLine>, lines: usize) -> Vec<AlignedLine> {
    let Some(first) = steps.iter().position(is_both) else { return steps };
    if let AlignedLine::Both(_, at) = steps[first] {
        for (step, at) in steps[..first].iter_mut().rev().zip((0..at).rev()) {
            if let AlignedLine::OnlyPiece(wanted) = *step {
                *step = AlignedLine::Both(wanted, at);
            }
        }
    }
    let last = steps.iter().rposition(is_both).unwrap_or(first);
    if let AlignedLine::Both(_, at) = steps[last] {
        for (step, at) in steps[last + 1..].iter_mut().zip(at + 1..lines) {
            if let AlignedLine::OnlyPiece(wanted) = *step {
                *step = AlignedLine::Both(wanted, at);
            }
        }
    }
    steps
}

/// The weight of a line in a score.
fn weight(line: &ComparedLine<'_>) -> f64 {
    ratio(line.pairs.len().max(1), 1)
}

/// At most some thousand characters: far below where a float loses a unit.
#[allow(clippy::cast_precision_loss)]
fn ratio(a: usize, b: usize) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
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

/// A line, or the part of a long one around a byte of it.
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

/// An unambiguous name for a character.
fn name(c: Option<char>) -> String {
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
            "; the nearest place is lines 1 to 4, where these lines differ:\n\
             file, line 2:     let total = add(1, 2);\n\
             old_string, line 2:     let totals = add(1, 2);\n\
             (the file has a space where old_string has `s`)"
        );
        assert_eq!(found.hint, text_differs());
    }

    #[test]
    fn only_what_differs_is_called_the_reason() {
        let (space, signs) = ("white space only", "Typographic signs");
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
            let signs = found.hint.contains("Typographic signs");
            assert_eq!(signs, !piece.ends_with('x'), "{text}: {found:?}");
            assert!(found.places.contains("line 2") && found.places.contains(text), "{found:?}");
        }
        let found = miss("the it\u{2019}s of it\n", "the it's of it");
        assert!(found.places.contains("the file has `\u{2019}` (U+2019) where old_string has `'`"));
    }

    #[test]
    fn what_a_person_would_see_at_once_is_said() {
        for (text, piece, places, hint) in [
            (
                "a\nb\nc\n",
                "1\ta\n2\tb",
                "without the line numbers in it, it is at line 1",
                "numbers",
            ),
            ("a\nb\nc\n", "b\r\nc", "with other line ends it is at line 2", "carriage returns"),
            ("a\nb\n", "nothing of the kind", "nothing in it is like it", "Read"),
            ("a\nb\n", "\n \n", "nothing in it is like it", "Read"),
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
        assert!(found.places.contains("Also like it: lines "), "{}", found.places);
        let piece: String =
            (500..700).map(block).collect::<String>().replace("(total)", "(totals)");
        let found = miss(&text, &piece);
        assert!(found.places.contains("(and 188 more)"), "{}", found.places);
    }
}
