//! The possible expansions of a word, combined from those of its parts.

use super::atoms;
use super::expander::{DEPTH_CAP, Expander, Split};
use super::fields::WordFields;
use super::parameter::{self, ParamValue};
use super::step::{Atom, ShellWord};
use super::{Limit, OUTPUTS_CAP, TEXT_CAP, TOO_MANY, UNKNOWN, VALUES_CAP, beyond, braces};

/// Most combinations of a command's words to check.
const TOGETHER_CAP: usize = 1024;
/// Most values of `IFS`.
const SEPARATORS_CAP: usize = 4;

impl Expander {
    /// The readings of a command's words.
    pub(super) fn command_words(&mut self, words: &[ShellWord]) -> Vec<Vec<String>> {
        let mut readings: Vec<Vec<Vec<String>>> = Vec::new();
        for word in words {
            readings.push(self.word(word, Split::Words));
        }
        let all = readings.iter().fold(1_usize, |all, fields| all.saturating_mul(fields.len()));
        let first = |fields: &Vec<Vec<String>>| fields.first().cloned().unwrap_or_default();
        if all > TOGETHER_CAP {
            // Each word on its own, with the first reading of the others.
            let mut commands = Vec::new();
            for (at, fields) in readings.iter().enumerate() {
                for one in fields {
                    let words = readings.iter().enumerate();
                    let words =
                        words.map(|(other, f)| if other == at { one.clone() } else { first(f) });
                    let command = words.collect::<Vec<_>>().concat();
                    self.fuel = self.fuel.saturating_sub(1 + command.len() / 8);
                    if self.fuel == 0 {
                        return commands;
                    }
                    commands.push(command);
                }
            }
            // The combinations of several words are not checked.
            let unclear = readings.iter().map(|fields| match fields.as_slice() {
                [one] => one.clone(),
                _ => vec![TOO_MANY.to_string()],
            });
            commands.push(unclear.collect::<Vec<_>>().concat());
            return commands;
        }
        let mut commands = vec![Vec::new()];
        for fields in &readings {
            if let [one] = fields.as_slice() {
                for command in &mut commands {
                    command.extend_from_slice(one);
                }
                continue;
            }
            commands = commands
                .iter()
                .flat_map(|command: &Vec<String>| {
                    fields.iter().map(move |more| [&command[..], more].concat())
                })
                .collect();
        }
        commands
    }

    /// The readings of a word, each its fields.
    pub(super) fn word(&mut self, word: &ShellWord, split: Split) -> Vec<Vec<String>> {
        if let Some(text) = word.literal() {
            return vec![vec![text]];
        }
        let unknown = || vec![vec![TOO_MANY.to_string()]];
        let words = match split {
            Split::Words => braces::words(word),
            Split::Never => Some(vec![word.clone()]),
        };
        let Some(words) = words else { return unknown() };
        self.fuel = self.fuel.saturating_sub(words.len() / 4);
        let mut all: Vec<Vec<String>> = vec![Vec::new()];
        for word in words {
            let Some(readings) = self.plain_word(&word, split) else { return unknown() };
            if all.len() * readings.len() > VALUES_CAP {
                return unknown();
            }
            if let [one] = readings.as_slice() {
                for fields in &mut all {
                    fields.extend_from_slice(one);
                }
                continue;
            }
            all = all
                .iter()
                .flat_map(|before| readings.iter().map(move |more| [&before[..], more].concat()))
                .collect();
        }
        all
    }

    /// The same behind brace expansion; `None` where they are too many.
    pub(super) fn plain_word(
        &mut self,
        word: &ShellWord,
        split: Split,
    ) -> Option<Vec<Vec<String>>> {
        let mut readings = vec![WordFields::default()];
        for atom in &word.0 {
            let (values, quoted) = self.atom(atom);
            if readings.len() * values.len() > VALUES_CAP {
                return None;
            }
            let separators = match (quoted || split == Split::Never, self.names.get("IFS")) {
                (true, _) => vec![String::new()],
                (false, Some(set)) if !set.list.is_empty() => {
                    set.list.iter().map(|ifs| ifs.concat()).collect()
                }
                (false, _) => vec![" \t\n".to_owned()],
            };
            if separators.len() > SEPARATORS_CAP {
                self.too_many(Limit::Values);
            }
            let literal = matches!(atom, Atom::Letters { .. });
            let mut next: Vec<WordFields> = Vec::new();
            for fields in &readings {
                for value in &values {
                    for separators in separators.iter().take(SEPARATORS_CAP) {
                        let mut fields = fields.clone();
                        match literal {
                            true => fields.add(value, "", true),
                            false => fields.add(value, separators, quoted),
                        }
                        if fields.bytes() > TEXT_CAP || fields.count() > VALUES_CAP {
                            return None;
                        }
                        if next.last() != Some(&fields) {
                            next.push(fields);
                        }
                    }
                }
            }
            self.fuel = self
                .fuel
                .saturating_sub(next.len() / 4 + next.first().map_or(0, WordFields::bytes) / 256);
            if self.fuel == 0 {
                return None;
            }
            readings = next;
        }
        Some(readings.into_iter().map(WordFields::end).collect())
    }

    pub(super) fn atom(&mut self, atom: &Atom) -> (Vec<ParamValue>, bool) {
        match atom {
            Atom::Letters { text, quoted } => (vec![ParamValue::One(text.clone())], *quoted),
            Atom::Arithmetic { runs, quoted } => {
                for atom in runs {
                    self.atom(atom);
                }
                (vec![ParamValue::One(UNKNOWN.into())], *quoted)
            }
            Atom::Parameter { name, op, quoted } => {
                let mut values = self.parameter(name, op);
                if values.len() > 1 {
                    let mut known: Vec<ParamValue> = Vec::new();
                    values.retain(|value| {
                        // Doubles cost readings; only near ones are looked for.
                        let new = !known.iter().rev().take(32).any(|other| other == value);
                        if new {
                            known.push(value.clone());
                        }
                        new
                    });
                }
                if values.is_empty() {
                    values.push(ParamValue::Unset);
                }
                if name == "*" && *quoted && op.is_empty() {
                    values = values.into_iter().map(together).collect();
                }
                (values, *quoted)
            }
            Atom::Substitution { text, quoted, process } => {
                let outputs = self.output(text);
                match process {
                    true => (vec![ParamValue::One("/dev/fd/63".into())], true),
                    false => (outputs.into_iter().map(ParamValue::One).collect(), *quoted),
                }
            }
        }
    }

    /// The output of a substitution; its commands are executed on the way.
    pub(super) fn output(&mut self, text: &str) -> Vec<String> {
        if self.depth >= DEPTH_CAP {
            self.too_many(Limit::Depth);
            return vec![UNKNOWN.into()];
        }
        let before = self.output.captured.replace(vec![String::new()]);
        self.text(text, None);
        let outputs = std::mem::replace(&mut self.output.captured, before).unwrap_or_default();
        let ends = |text: String| text.trim_end_matches('\n').to_owned();
        outputs.into_iter().map(ends).collect()
    }

    pub(super) fn parameter(&mut self, name: &str, op: &str) -> Vec<ParamValue> {
        if let Some(op) = op.strip_prefix('!') {
            if op.starts_with(['[', '@', '*']) {
                return vec![ParamValue::One(UNKNOWN.into())];
            }
            let names = self.parameter(name, "");
            let one = |value: ParamValue| match value {
                ParamValue::One(name) => Some(name),
                ParamValue::Unset | ParamValue::Each(_) => None,
            };
            let names: Vec<String> = names.into_iter().filter_map(one).collect();
            return names.iter().flat_map(|name| self.held(name, op)).collect();
        }
        if op.starts_with('#') && name != "#" && !self.names.contains_key(name) && op.len() == 1 {
            return vec![ParamValue::One(UNKNOWN.into())];
        }
        self.held(name, op)
    }

    pub(super) fn held(&mut self, name: &str, op: &str) -> Vec<ParamValue> {
        // `${!x}` with `x=a[1]` names an element.
        let (name, op) = match name.split_once('[') {
            Some((name, index)) => (name, format!("[{index}{op}")),
            None => (name, op.to_owned()),
        };
        let (index, op) = match op.strip_prefix('[').map(index_of) {
            Some((index, op)) => (Some(index), op),
            None => (None, op),
        };
        let index = index.map(|index| self.index(name, index));
        let positional = name.parse::<usize>().ok().filter(|number| *number > 0);
        let arrays = match positional {
            Some(_) => self.get("@"),
            None if name == "*" => self.get("@"),
            None => self.get(name),
        };
        let (sign, first, second) = parameter::read(&op);
        let whole = matches!(name, "@" | "*");
        let mut values = Vec::new();
        for array in &arrays {
            match positional {
                Some(number) => values.push(
                    array.get(number - 1).cloned().map_or(ParamValue::Unset, ParamValue::One),
                ),
                // `${@:1}`: the first is the shell's name.
                None if whole && sign == ":" => {
                    let words = std::iter::once("bash".to_owned()).chain(array.iter().cloned());
                    values.push(ParamValue::Each(words.collect()));
                }
                None => values.extend(parameter::at(array, name, index.as_deref())),
            }
        }
        self.operate(name, (sign, first, second), values)
    }

    pub(super) fn operate(
        &mut self,
        name: &str,
        (sign, first, second): (&str, &str, &str),
        values: Vec<ParamValue>,
    ) -> Vec<ParamValue> {
        let empty = |value: &ParamValue| match value {
            ParamValue::Unset => true,
            ParamValue::One(text) => text.is_empty() || text.contains(UNKNOWN),
            ParamValue::Each(texts) => texts.is_empty(),
        };
        let operand = |walk: &mut Self, text: &str, of: fn(&str) -> ShellWord| -> Vec<String> {
            if text.is_empty() {
                return vec![String::new()];
            }
            if walk.depth >= DEPTH_CAP {
                walk.too_many(Limit::Depth);
                return vec![UNKNOWN.into()];
            }
            walk.fuel = walk.fuel.saturating_sub(text.len() / 64);
            walk.depth += 1;
            let mut readings = walk.word(&of(text), Split::Never);
            walk.depth -= 1;
            if readings.len() > OUTPUTS_CAP {
                readings.truncate(OUTPUTS_CAP);
                readings.push(vec![beyond(Limit::Outputs)]);
            }
            readings.into_iter().map(|fields| fields.join(" ")).collect()
        };
        match sign {
            "" => values,
            ":-" | "-" | ":=" | "=" | ":+" | "+" => {
                let others = operand(self, first, ShellWord::of_operand);
                if sign.ends_with('=') && values.iter().any(empty) {
                    self.set(name, others.iter().map(|text| vec![text.clone()]).collect());
                }
                let plus = sign.ends_with('+');
                let (some_empty, some_full) = (values.iter().any(empty), !values.iter().all(empty));
                let mut all: Vec<ParamValue> = match plus {
                    true => {
                        if some_empty {
                            vec![ParamValue::Unset]
                        } else {
                            Vec::new()
                        }
                    }
                    false => values.into_iter().filter(|value| !empty(value)).collect(),
                };
                if (plus && some_full) || (!plus && some_empty) {
                    all.extend(others.into_iter().map(ParamValue::One));
                }
                all
            }
            ":?" | "?" => {
                operand(self, first, ShellWord::of_operand);
                values
            }
            "@P" => {
                for value in &values {
                    if let ParamValue::One(text) = value {
                        self.evaluated(text);
                    }
                }
                values
            }
            _ => {
                let cuts = sign.starts_with(['#', '%', '/']);
                let pattern = if cuts { ShellWord::of_pattern } else { ShellWord::of_operand };
                let first = operand(self, first, pattern);
                let second = operand(self, second, ShellWord::of_operand);
                let mut all = Vec::new();
                for value in values {
                    for first in &first {
                        for second in &second {
                            self.fuel =
                                self.fuel.saturating_sub(1 + parameter::cost(&value, sign, first));
                            if self.fuel == 0 {
                                return vec![ParamValue::One(TOO_MANY.into())];
                            }
                            all.push(parameter::apply(value.clone(), sign, first, second));
                        }
                    }
                }
                if all.len() > VALUES_CAP {
                    all.truncate(VALUES_CAP);
                    all.push(ParamValue::One(beyond(Limit::Values)));
                }
                all
            }
        }
    }
}

/// Splits a text after `[` into the index and the text after its `]`.
fn index_of(text: &str) -> (String, String) {
    let letters: Vec<char> = text.chars().collect();
    match atoms::closed(&letters, 0, '[', ']') {
        Some((index, end)) => (index, letters[end..].iter().collect()),
        None => (text.to_owned(), String::new()),
    }
}

fn together(value: ParamValue) -> ParamValue {
    match value {
        ParamValue::Each(texts) => ParamValue::One(texts.join(" ")),
        other @ (ParamValue::Unset | ParamValue::One(_)) => other,
    }
}
