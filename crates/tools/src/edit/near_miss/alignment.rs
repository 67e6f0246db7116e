//! Aligns a searched text with a file: the places that are most similar, line by line.

use super::characters::key;
use std::collections::HashMap;

/// Most lines of the file and of the piece that are compared.
const LINES_COMPARED: usize = 50_000;
const PIECE_LINES: usize = 2_000;
/// Most characters of a line that are compared where it is not the same, and that are shown.
pub(super) const LINE_CHARS: usize = 160;
/// How many places are compared line by line, and how many are named.
const TRIED: usize = 8;
pub(super) const NAMED: usize = 3;
/// Lowest similarity of two lines, and of a piece and a place, that counts.
const ALIKE: f64 = 0.5;
const FITS: f64 = 0.4;
/// How far lines of a place may be shifted against those of the piece.
const SHIFT: usize = 8;
/// Shorter lines may be part of a longer one by chance.
const PART: usize = 8;

/// A line of either side, made ready.
pub(super) struct ComparedLine<'a> {
    pub(super) text: &'a str,
    pub(super) key: String,
    pub(super) pairs: Vec<(char, char)>,
}

impl<'a> ComparedLine<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let text = text.strip_suffix('\r').unwrap_or(text);
        let key = key(text);
        let pairs = pairs(&key);
        Self { text, key, pairs }
    }
}

/// Neighbouring characters, sorted.
pub(super) fn pairs(key: &str) -> Vec<(char, char)> {
    let chars: Vec<char> = key.chars().take(LINE_CHARS).collect();
    let mut pairs: Vec<(char, char)> = match chars.as_slice() {
        [single] => vec![(*single, *single)],
        several => several.windows(2).map(|pair| (pair[0], pair[1])).collect(),
    };
    pairs.sort_unstable();
    pairs
}

/// How many pairs two sorted lists have in common.
pub(super) fn common(a: &[(char, char)], b: &[(char, char)]) -> usize {
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

/// A line of the searched text and the matching line of the file; one of them may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AlignedLine {
    Both(usize, usize),
    OnlyPiece(usize),
    OnlyFile(usize),
}

/// A place of the file, and how the piece lies on it.
pub(super) struct NearPlace {
    pub(super) steps: Vec<AlignedLine>,
    pub(super) score: f64,
}

impl NearPlace {
    /// Its first and last line, counted from 0.
    pub(super) fn lines(&self) -> Option<(usize, usize)> {
        let mut both = self.steps.iter().filter_map(|step| match step {
            AlignedLine::Both(_, at) => Some(*at),
            AlignedLine::OnlyPiece(_) | AlignedLine::OnlyFile(_) => None,
        });
        let first = both.next()?;
        Some((first, both.next_back().unwrap_or(first)))
    }
}

pub(super) struct Comparison<'a> {
    pub(super) file: Vec<ComparedLine<'a>>,
    pub(super) piece: Vec<ComparedLine<'a>>,
    /// Whether the searched text begins and ends at line boundaries.
    pub(super) whole_lines: (bool, bool),
}

impl<'a> Comparison<'a> {
    pub(super) fn new(text: &'a str, piece: &'a str) -> Self {
        let file = text.lines().take(LINES_COMPARED).map(ComparedLine::new).collect();
        let whole_lines = (piece.starts_with('\n'), piece.ends_with('\n'));
        let piece = piece.strip_suffix('\n').unwrap_or(piece);
        let piece = piece.strip_prefix('\n').unwrap_or(piece);
        let piece = piece.split('\n').take(PIECE_LINES).map(ComparedLine::new).collect();
        Self { file, piece, whole_lines }
    }

    /// The places most like the piece, the best first.
    pub(super) fn places(&self) -> Vec<NearPlace> {
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
    pub(super) fn starts(&self) -> Vec<isize> {
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
    pub(super) fn alike(&self, wanted: usize, at: usize) -> f64 {
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
    pub(super) fn is_same(&self, wanted: usize, at: usize) -> bool {
        self.is_part(wanted, self.file[at].text, self.piece[wanted].text)
    }

    pub(super) fn is_part(&self, wanted: usize, line: &str, part: &str) -> bool {
        let first = wanted == 0 && !self.whole_lines.0;
        let last = wanted + 1 == self.piece.len() && !self.whole_lines.1;
        match (first, last) {
            (true, true) => line.contains(part) && !part.is_empty(),
            (true, false) => line.ends_with(part),
            (false, true) => line.starts_with(part) && (!part.is_empty() || line.is_empty()),
            (false, false) => line == part,
        }
    }

    /// Aligns the searched text with the file for the highest score; lines may be inserted or
    /// missing.
    pub(super) fn laid_on(&self, start: isize) -> NearPlace {
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

    pub(super) fn is_different(&self, step: &AlignedLine) -> bool {
        match step {
            AlignedLine::Both(wanted, at) => !self.is_same(*wanted, *at),
            AlignedLine::OnlyPiece(_) | AlignedLine::OnlyFile(_) => true,
        }
    }

    pub(super) fn differences<'s>(
        &'s self,
        place: &'s NearPlace,
    ) -> impl Iterator<Item = &'s AlignedLine> {
        place.steps.iter().filter(|step| self.is_different(step))
    }
}

/// How the best way goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    Both,
    OnlyPiece,
    OnlyFile,
    End,
}

/// Which of two shifts lies nearer to none.
pub(super) fn nearer(a: usize, b: usize) -> std::cmp::Ordering {
    a.abs_diff(SHIFT).cmp(&b.abs_diff(SHIFT))
}

/// Pairs lines that exist only on one side with those that exist only on the other, run by run.
pub(super) fn side_by_side(steps: &[AlignedLine]) -> Vec<AlignedLine> {
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

pub(super) fn is_both(step: &AlignedLine) -> bool {
    matches!(step, AlignedLine::Both(..))
}

/// Pairs the piece's first and last lines with the file's neighbouring lines where nothing matched them.
pub(super) fn with_edges(mut steps: Vec<AlignedLine>, lines: usize) -> Vec<AlignedLine> {
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
pub(super) fn weight(line: &ComparedLine<'_>) -> f64 {
    ratio(line.pairs.len().max(1), 1)
}

/// At most some thousand characters: far below where a float loses a unit.
#[allow(clippy::cast_precision_loss)]
pub(super) fn ratio(a: usize, b: usize) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}
