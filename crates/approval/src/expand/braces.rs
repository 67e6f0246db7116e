//! Brace expansion: `{a,b}` and `{1..9}`, before all other replacements.

use super::{Atom, ShellWord, VALUES_CAP};

/// Most opening braces of a word.
const BRACES_CAP: usize = 200;

/// A letter that may be a brace, or anything else.
#[derive(Debug, Clone)]
enum BraceUnit {
    Letter(char),
    Other(Atom),
}

/// The words that a word becomes; `None` where they are too many.
pub(super) fn words(word: &ShellWord) -> Option<Vec<ShellWord>> {
    let braced =
        |atom: &Atom| matches!(atom, Atom::Letters { text, quoted: false } if text.contains('{'));
    if !word.0.iter().any(braced) {
        return Some(vec![word.clone()]);
    }
    let mut units = Vec::new();
    for atom in &word.0 {
        match atom {
            Atom::Letters { text, quoted: false } => {
                units.extend(text.chars().map(BraceUnit::Letter))
            }
            other @ (Atom::Letters { .. }
            | Atom::Parameter { .. }
            | Atom::Substitution { .. }
            | Atom::Arithmetic { .. }) => units.push(BraceUnit::Other(other.clone())),
        }
    }
    // Each is looked for behind each other.
    if units.iter().filter(|unit| matches!(unit, BraceUnit::Letter('{'))).count() > BRACES_CAP {
        return None;
    }
    Some(expand(&units, 0)?.into_iter().map(back).collect())
}

fn back(units: Vec<BraceUnit>) -> ShellWord {
    let mut atoms: Vec<Atom> = Vec::new();
    for unit in units {
        match (unit, atoms.last_mut()) {
            (BraceUnit::Letter(c), Some(Atom::Letters { text, quoted: false })) => text.push(c),
            (BraceUnit::Letter(c), _) => {
                atoms.push(Atom::Letters { text: c.into(), quoted: false })
            }
            (BraceUnit::Other(atom), _) => atoms.push(atom),
        }
    }
    ShellWord(atoms)
}

fn expand(units: &[BraceUnit], depth: usize) -> Option<Vec<Vec<BraceUnit>>> {
    if depth > 64 {
        return None;
    }
    let is = |at: usize, c: char| matches!(units.get(at), Some(BraceUnit::Letter(letter)) if *letter == c);
    for begin in (0..units.len()).filter(|at| is(*at, '{')) {
        let Some((end, commas)) = close(units, begin) else {
            // No later brace is closed either where none is left.
            if !units[begin..].iter().any(|unit| matches!(unit, BraceUnit::Letter('}'))) {
                break;
            }
            continue;
        };
        let parts = match commas.as_slice() {
            [] => match sequence(&units[begin + 1..end]) {
                Sequence::Of(parts) => parts,
                Sequence::TooLong => return None,
                Sequence::None => continue,
            },
            commas => {
                let mut parts = Vec::new();
                let mut from = begin + 1;
                for to in commas.iter().copied().chain([end]) {
                    parts.extend(expand(&units[from..to], depth + 1)?);
                    from = to + 1;
                }
                parts
            }
        };
        let behind = expand(&units[end + 1..], depth + 1)?;
        if parts.len().saturating_mul(behind.len()) > VALUES_CAP {
            return None;
        }
        let mut all = Vec::new();
        for part in &parts {
            for rest in &behind {
                all.push([&units[..begin], part, rest].concat());
            }
        }
        return Some(all);
    }
    Some(vec![units.to_vec()])
}

/// The closing brace and the commas between, neither in a brace of their own.
fn close(units: &[BraceUnit], begin: usize) -> Option<(usize, Vec<usize>)> {
    let (mut depth, mut commas) = (0_usize, Vec::new());
    for (at, unit) in units.iter().enumerate().skip(begin) {
        match unit {
            BraceUnit::Letter('{') => depth += 1,
            BraceUnit::Letter('}') => {
                depth -= 1;
                if depth == 0 {
                    return Some((at, commas));
                }
            }
            BraceUnit::Letter(',') if depth == 1 => commas.push(at),
            BraceUnit::Letter(_) | BraceUnit::Other(_) => {}
        }
    }
    None
}

enum Sequence {
    Of(Vec<Vec<BraceUnit>>),
    TooLong,
    None,
}

/// `1..9`, `a..e`, `1..9..2`.
fn sequence(units: &[BraceUnit]) -> Sequence {
    let mut text = String::new();
    for unit in units {
        match unit {
            BraceUnit::Letter(c) => text.push(*c),
            BraceUnit::Other(_) => return Sequence::None,
        }
    }
    let parts: Vec<&str> = text.split("..").collect();
    let (first, last, step) = match parts[..] {
        [first, last] => (first, last, "1"),
        [first, last, step] => (first, last, step),
        _ => return Sequence::None,
    };
    let Ok(step) = step.parse::<i64>() else { return Sequence::None };
    let step = step.unsigned_abs().max(1);
    let letter = |text: &str| {
        let mut letters = text.chars();
        letters.next().filter(|c| c.is_ascii_alphabetic() && letters.next().is_none())
    };
    let (from, to, shown): (i64, i64, fn(i64) -> String) = match (letter(first), letter(last)) {
        (Some(from), Some(to)) => {
            let shown = |at: i64| {
                u8::try_from(at).map_or_else(|_| String::new(), |at| char::from(at).into())
            };
            (from as i64, to as i64, shown)
        }
        _ => match (first.parse(), last.parse()) {
            (Ok(from), Ok(to)) => (from, to, |at: i64| at.to_string()),
            _ => return Sequence::None,
        },
    };
    if from.abs_diff(to) / step >= VALUES_CAP as u64 {
        return Sequence::TooLong;
    }
    let steps = 0..=from.abs_diff(to) / step;
    let at = |count: u64| {
        let way = i64::try_from(count * step).unwrap_or_default();
        if from <= to { from + way } else { from - way }
    };
    Sequence::Of(
        steps.map(|count| shown(at(count)).chars().map(BraceUnit::Letter).collect()).collect(),
    )
}
