//! `${name…}`: applies the operation after the name to a value. No IO.

use super::{ABSENT, TOO_MANY, UNKNOWN};

/// Most letters of a text times those of a pattern that are compared.
const PATTERN_CAP: usize = 1 << 22;

/// One value of a parameter: its elements, or the only one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ParamValue {
    Unset,
    One(String),
    /// `$@`, `${a[@]}`: each element is a separate word.
    Each(Vec<String>),
}

/// The values of an array for a name without an index, or with this one.
pub(super) fn at(array: &[String], name: &str, index: Option<&str>) -> Vec<ParamValue> {
    let there = || array.iter().filter(|element| *element != ABSENT).cloned();
    let one = |element: Option<&String>| match element {
        Some(element) if element != ABSENT => ParamValue::One(element.clone()),
        Some(_) | None => ParamValue::Unset,
    };
    match (name, index) {
        ("@" | "*", _) | (_, Some("@" | "*")) => vec![ParamValue::Each(there().collect())],
        (_, None) => vec![one(array.first())],
        (_, Some(index)) => match index.trim().parse::<i64>() {
            Ok(number) => {
                let place = if number < 0 { array.len() as i64 + number } else { number };
                vec![usize::try_from(place).map_or(ParamValue::Unset, |at| one(array.get(at)))]
            }
            // Any element: the index is unknown or a name.
            Err(_) => there().map(ParamValue::One).collect(),
        },
    }
}

/// Applies an operation that needs no other value. `operand` is expanded.
pub(super) fn apply(value: ParamValue, op: &str, operand: &str, other: &str) -> ParamValue {
    let each = |work: &dyn Fn(&str) -> String| match &value {
        ParamValue::Unset => ParamValue::Unset,
        ParamValue::One(text) => ParamValue::One(work(text)),
        ParamValue::Each(texts) => ParamValue::Each(texts.iter().map(|text| work(text)).collect()),
    };
    match op {
        "" => value,
        "#" | "##" | "%" | "%%" => each(&|text| cut(text, op, operand)),
        "/" | "//" | "/#" | "/%" => each(&|text| replaced(text, op, operand, other)),
        "^^" | "@U" => each(&str::to_uppercase),
        ",," | "@L" => each(&str::to_lowercase),
        "^" | "@u" => each(&|text| first_letter(text, char::to_ascii_uppercase)),
        "," => each(&|text| first_letter(text, char::to_ascii_lowercase)),
        "@E" => each(&|text| super::print::escaped(text).0),
        "@Q" | "@P" | "@A" => value,
        ":" => part(value, operand, other),
        _ => ParamValue::One(UNKNOWN.into()),
    }
}

fn first_letter(text: &str, change: fn(&char) -> char) -> String {
    let mut letters = text.chars();
    letters.next().iter().map(change).chain(letters).collect()
}

/// `${x:offset:length}`.
fn part(value: ParamValue, offset: &str, length: &str) -> ParamValue {
    let number = |text: &str| text.trim().trim_matches(['(', ')']).trim().parse::<i64>().ok();
    let (Some(offset), length) = (number(offset), length) else {
        return ParamValue::One(UNKNOWN.into());
    };
    let bounds = |all: usize| {
        let all = all as i64;
        let from = if offset < 0 { all.saturating_add(offset).max(0) } else { offset.min(all) };
        let to = match number(length) {
            None => all,
            Some(length) if length < 0 => all.saturating_add(length).max(from),
            Some(length) => from.saturating_add(length).min(all),
        };
        (usize::try_from(from).unwrap_or_default(), usize::try_from(to).unwrap_or_default())
    };
    match value {
        ParamValue::Unset => ParamValue::Unset,
        ParamValue::One(text) => {
            let letters: Vec<char> = text.chars().collect();
            let (from, to) = bounds(letters.len());
            ParamValue::One(letters[from..to].iter().collect())
        }
        ParamValue::Each(texts) => {
            let (from, to) = bounds(texts.len());
            ParamValue::Each(texts[from..to].to_vec())
        }
    }
}

/// The work of an operation, in units of the budget of a text.
pub(super) fn cost(value: &ParamValue, op: &str, operand: &str) -> usize {
    let bytes = match value {
        ParamValue::Unset => 0,
        ParamValue::One(text) => text.len(),
        ParamValue::Each(texts) => texts.iter().map(String::len).sum(),
    };
    let places = match op {
        "#" | "##" | "%" | "%%" => operand.len(),
        "/" | "//" | "/#" | "/%" if operand.contains(['*', '?', '[']) => {
            operand.len().saturating_mul(bytes.clamp(1, 256))
        }
        _ => 0,
    };
    bytes.saturating_mul(1 + places) / 1024
}

/// The text less the shortest or longest beginning or end that fits. It takes time with the product of
/// the text and the pattern.
fn cut(text: &str, op: &str, pattern: &str) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let mut pattern = ShellPattern::read(pattern);
    if letters.len().saturating_mul(pattern.0.len()) > PATTERN_CAP {
        return TOO_MANY.into();
    }
    let from_front = op.starts_with('#');
    if !from_front {
        letters.reverse();
        pattern.0.reverse();
    }
    let lengths = pattern.fitting(&letters);
    let length = if op.len() == 2 { lengths.last() } else { lengths.first() };
    let mut rest = letters.split_off(length.copied().unwrap_or_default());
    if !from_front {
        rest.reverse();
    }
    rest.into_iter().collect()
}

/// The text with the longest piece that fits replaced: the first, each (`//`), or the one at an end.
fn replaced(text: &str, op: &str, pattern: &str, with: &str) -> String {
    if pattern.is_empty() {
        return text.to_owned();
    }
    let letters: Vec<char> = text.chars().collect();
    let pattern = ShellPattern::read(pattern);
    let places =
        if pattern.0.iter().any(|one| matches!(one, One::Any)) { letters.len() } else { 1 };
    if letters.len().saturating_mul(pattern.0.len()).saturating_mul(places) > PATTERN_CAP {
        return TOO_MANY.into();
    }
    let (mut out, mut at) = (String::new(), 0);
    while at < letters.len() {
        let mut lengths = pattern.fitting(&letters[at..]);
        if op == "/%" {
            lengths.retain(|length| at + length == letters.len());
        }
        match lengths.last().filter(|length| **length > 0) {
            Some(length) => {
                out.push_str(with);
                at += length;
                if op != "//" {
                    break;
                }
            }
            None if op == "/#" => break,
            None => {
                out.push(letters[at]);
                at += 1;
            }
        }
    }
    out.extend(&letters[at..]);
    out
}

/// A pattern of bash's, one letter at a time.
struct ShellPattern(Vec<One>);

enum One {
    Letter(char),
    /// `?`
    Letters,
    /// `*`
    Any,
    /// `[a-z]`: its ranges, and whether letters inside or outside them match.
    Set(Vec<(char, char)>, Counts),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    Within,
    Outside,
}

impl ShellPattern {
    fn read(text: &str) -> Self {
        let letters: Vec<char> = text.chars().collect();
        let (mut all, mut at) = (Vec::new(), 0);
        while let Some(c) = letters.get(at) {
            at += 1;
            match c {
                '\\' => {
                    all.push(One::Letter(letters.get(at).copied().unwrap_or('\\')));
                    at += 1;
                }
                '*' => all.push(One::Any),
                '?' => all.push(One::Letters),
                '[' => {
                    let end = letters[at..].iter().skip(1).position(|c| *c == ']');
                    let Some(end) = end.map(|end| at + end + 1) else {
                        all.push(One::Letter('['));
                        continue;
                    };
                    all.push(set(&letters[at..end]));
                    at = end + 1;
                }
                c => all.push(One::Letter(*c)),
            }
        }
        Self(all)
    }

    /// The lengths of the beginnings that it fits, in ascending order.
    fn fitting(&self, text: &[char]) -> Vec<usize> {
        // For each position in the pattern: true if the letters so far can reach it.
        let mut reached = vec![false; self.0.len() + 1];
        reached[0] = true;
        let pass_stars = |reached: &mut Vec<bool>| {
            for (at, one) in self.0.iter().enumerate() {
                reached[at + 1] |= matches!(one, One::Any) && reached[at];
            }
        };
        pass_stars(&mut reached);
        let mut lengths = Vec::new();
        for length in 0..=text.len() {
            if reached[self.0.len()] {
                lengths.push(length);
            }
            let Some(letter) = text.get(length).filter(|_| reached.contains(&true)) else { break };
            let mut next = vec![false; reached.len()];
            for (at, one) in self.0.iter().enumerate().filter(|(at, _)| reached[*at]) {
                match one {
                    One::Any => next[at] = true,
                    One::Letters => next[at + 1] = true,
                    One::Letter(c) => next[at + 1] |= c == letter,
                    One::Set(ranges, counts) => {
                        let within = ranges.iter().any(|(from, to)| (from..=to).contains(&letter));
                        next[at + 1] |= within == (*counts == Counts::Within);
                    }
                }
            }
            reached = next;
            pass_stars(&mut reached);
        }
        lengths
    }
}

/// Parses the part between `[` and `]`.
fn set(letters: &[char]) -> One {
    let (counts, letters) = match letters {
        ['!' | '^', rest @ ..] => (Counts::Outside, rest),
        all => (Counts::Within, all),
    };
    let text: String = letters.iter().collect();
    let (mut ranges, mut rest) = (Vec::new(), letters);
    for (class, from, to) in
        [("[:lower:]", 'a', 'z'), ("[:upper:]", 'A', 'Z'), ("[:digit:]", '0', '9')]
    {
        if text.contains(&class[..class.len() - 1]) {
            ranges.push((from, to));
        }
    }
    while let [from, behind @ ..] = rest {
        rest = match behind {
            ['-', to, behind @ ..] => {
                ranges.push((*from, *to));
                behind
            }
            behind => {
                ranges.push((*from, *from));
                behind
            }
        };
    }
    One::Set(ranges, counts)
}

/// The operation, and the two texts behind it.
pub(super) fn read(op: &str) -> (&str, &str, &str) {
    for sign in [":-", ":=", ":+", ":?", "##", "%%", "//", "/#", "/%", "^^", ",,"] {
        if let Some(rest) = op.strip_prefix(sign) {
            return split(sign, rest);
        }
    }
    if op.starts_with('@') {
        return (op, "", "");
    }
    match op.chars().next() {
        Some('-' | '=' | '+' | '?' | '#' | '%' | '/' | '^' | ',' | ':') => {
            split(&op[..1], &op[1..])
        }
        Some(_) => ("unknown", "", ""),
        None => ("", "", ""),
    }
}

fn split<'a>(sign: &'a str, rest: &'a str) -> (&'a str, &'a str, &'a str) {
    let by = match sign {
        "/" | "//" | "/#" | "/%" => '/',
        ":" => ':',
        _ => return (sign, rest, ""),
    };
    // One behind a backslash is a letter.
    let mut escaped = false;
    let place = rest.find(|c: char| {
        let found = c == by && !escaped;
        escaped = c == '\\' && !escaped;
        found
    });
    place.map_or((sign, rest, ""), |at| (sign, &rest[..at], &rest[at + 1..]))
}
