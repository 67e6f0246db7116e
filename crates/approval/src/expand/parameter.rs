//! `${name…}`: what the operation behind the name makes of a value. Pure.

use super::{ABSENT, TOO_MANY, UNKNOWN};

/// Most letters of a text times those of a pattern that are compared.
const PATTERN_CAP: usize = 1 << 22;

/// One value of a parameter: its elements, or the only one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Unset,
    One(String),
    /// `$@`, `${a[@]}`: each is a word of its own.
    Each(Vec<String>),
}

/// What a name without an index, or with this one, holds of an array.
pub(super) fn at(array: &[String], name: &str, index: Option<&str>) -> Vec<Value> {
    let there = || array.iter().filter(|element| *element != ABSENT).cloned();
    let one = |element: Option<&String>| match element {
        Some(element) if element != ABSENT => Value::One(element.clone()),
        Some(_) | None => Value::Unset,
    };
    match (name, index) {
        ("@" | "*", _) | (_, Some("@" | "*")) => vec![Value::Each(there().collect())],
        (_, None) => vec![one(array.first())],
        (_, Some(index)) => match index.trim().parse::<i64>() {
            Ok(number) => {
                let place = if number < 0 { array.len() as i64 + number } else { number };
                vec![usize::try_from(place).map_or(Value::Unset, |at| one(array.get(at)))]
            }
            // Any of them: the index is replaced itself, or a name.
            Err(_) => there().map(Value::One).collect(),
        },
    }
}

/// What an operation that needs no other value makes of one. `operand` is expanded.
pub(super) fn apply(value: Value, op: &str, operand: &str, other: &str) -> Value {
    let each = |work: &dyn Fn(&str) -> String| match &value {
        Value::Unset => Value::Unset,
        Value::One(text) => Value::One(work(text)),
        Value::Each(texts) => Value::Each(texts.iter().map(|text| work(text)).collect()),
    };
    match op {
        "" => value,
        "#" | "##" | "%" | "%%" => each(&|text| cut(text, op, operand)),
        "/" | "//" | "/#" | "/%" => each(&|text| replaced(text, op, operand, other)),
        "^^" | "@U" => each(&str::to_uppercase),
        ",," | "@L" => each(&str::to_lowercase),
        "^" | "@u" => each(&|text| first_letter(text, char::to_ascii_uppercase)),
        "," => each(&|text| first_letter(text, char::to_ascii_lowercase)),
        "@Q" | "@E" | "@P" => value,
        ":" => part(value, operand, other),
        _ => Value::One(UNKNOWN.into()),
    }
}

fn first_letter(text: &str, change: fn(&char) -> char) -> String {
    let mut letters = text.chars();
    letters.next().iter().map(change).chain(letters).collect()
}

/// `${x:offset:length}`.
fn part(value: Value, offset: &str, length: &str) -> Value {
    let number = |text: &str| text.trim().trim_matches(['(', ')']).trim().parse::<i64>().ok();
    let (Some(offset), length) = (number(offset), length) else {
        return Value::One(UNKNOWN.into());
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
        Value::Unset => Value::Unset,
        Value::One(text) => {
            let letters: Vec<char> = text.chars().collect();
            let (from, to) = bounds(letters.len());
            Value::One(letters[from..to].iter().collect())
        }
        Value::Each(texts) => {
            let (from, to) = bounds(texts.len());
            Value::Each(texts[from..to].to_vec())
        }
    }
}

/// The work of an operation, in units of the budget of a text.
pub(super) fn cost(value: &Value, op: &str, operand: &str) -> usize {
    let bytes = match value {
        Value::Unset => 0,
        Value::One(text) => text.len(),
        Value::Each(texts) => texts.iter().map(String::len).sum(),
    };
    let places = if op.starts_with(['#', '%']) { operand.len() } else { 0 };
    bytes.saturating_mul(1 + places) / 1024
}

/// The text less the shortest or longest beginning or end that fits. It takes time with the product of
/// the text and the pattern.
fn cut(text: &str, op: &str, pattern: &str) -> String {
    let (mut letters, mut pattern): (Vec<char>, Vec<char>) =
        (text.chars().collect(), pattern.chars().collect());
    if letters.len().saturating_mul(pattern.len()) > PATTERN_CAP {
        return TOO_MANY.into();
    }
    let from_front = op.starts_with('#');
    if !from_front {
        letters.reverse();
        pattern.reverse();
    }
    let lengths = fitting(&pattern, &letters);
    let length = if op.len() == 2 { lengths.last() } else { lengths.first() };
    let mut rest = letters.split_off(length.copied().unwrap_or_default());
    if !from_front {
        rest.reverse();
    }
    rest.into_iter().collect()
}

/// The lengths of the beginnings that a pattern with `*` and `?` fits, in ascending order.
fn fitting(pattern: &[char], text: &[char]) -> Vec<usize> {
    // At each place of the pattern: whether it can be reached behind the letters so far.
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    let pass_stars = |reached: &mut Vec<bool>| {
        for (at, c) in pattern.iter().enumerate() {
            reached[at + 1] |= *c == '*' && reached[at];
        }
    };
    pass_stars(&mut reached);
    let mut lengths = Vec::new();
    for length in 0..=text.len() {
        if reached[pattern.len()] {
            lengths.push(length);
        }
        let Some(letter) = text.get(length) else { break };
        let mut next = vec![false; reached.len()];
        for (at, c) in pattern.iter().enumerate().filter(|(at, _)| reached[*at]) {
            match c {
                '*' => next[at] = true,
                c => next[at + 1] |= *c == '?' || c == letter,
            }
        }
        reached = next;
        pass_stars(&mut reached);
    }
    lengths
}

fn replaced(text: &str, op: &str, pattern: &str, with: &str) -> String {
    if pattern.is_empty() {
        return text.to_owned();
    }
    if pattern.contains(['*', '?', '[']) {
        return UNKNOWN.into();
    }
    match op {
        "//" => text.replace(pattern, with),
        "/#" => {
            text.strip_prefix(pattern).map_or_else(|| text.into(), |rest| format!("{with}{rest}"))
        }
        "/%" => {
            text.strip_suffix(pattern).map_or_else(|| text.into(), |rest| format!("{rest}{with}"))
        }
        _ => text.replacen(pattern, with, 1),
    }
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
    rest.split_once(by).map_or((sign, rest, ""), |(first, second)| (sign, first, second))
}
