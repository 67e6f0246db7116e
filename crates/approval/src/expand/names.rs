//! The names of a text: their possible values, assignments, and attributes from `declare`.

use super::expander::{Attribute, DEPTH_CAP, Expander, Split};
use super::step::ShellWord;
use super::step::{Assign, ParsedCommand, StepOrder};
use super::{ABSENT, Limit, UNKNOWN, VALUES_CAP, Values, beyond};

impl Expander {
    /// Adds possible values to a name.
    pub(super) fn set(&mut self, name: &str, values: Vec<Vec<String>>) {
        let elements: usize = values.iter().map(Vec::len).sum();
        self.fuel = self.fuel.saturating_sub(elements / 64);
        for text in values.iter().flatten() {
            // Where a number is wanted, bash reads `x` as `a[…]` if it holds that.
            if name == "PS4" || text.contains('[') {
                self.evaluated(text);
            }
        }
        for reference in self.references(name) {
            let held = self.names.entry(reference).or_default();
            for value in &values {
                held.add_or_mark(value.clone());
            }
        }
        let change: fn(&String) -> String = match self.attributes.get(name) {
            Some(Attribute::Lower) => |text| text.to_lowercase(),
            Some(Attribute::Upper) => |text| text.to_uppercase(),
            Some(Attribute::Reference) | None => String::clone,
        };
        let held = self.names.entry(name.to_owned()).or_default();
        for value in values {
            held.add_or_mark(value.iter().map(change).collect());
        }
    }

    /// The names that `declare -n` made another name for.
    pub(super) fn references(&self, name: &str) -> Vec<String> {
        match (self.attributes.get(name), self.names.get(name)) {
            (Some(Attribute::Reference), Some(values)) => {
                values.list.iter().map(|value| value.concat()).filter(|of| of != name).collect()
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn get(&mut self, name: &str) -> Vec<Vec<String>> {
        let references = self.references(name);
        if !references.is_empty() && self.depth < DEPTH_CAP {
            self.depth += 1;
            let held: Vec<_> = references.iter().flat_map(|name| self.get(name)).collect();
            self.depth -= 1;
            return held;
        }
        if let Some(values) = self.names.get(name) {
            let elements: usize = values.list.iter().map(Vec::len).sum();
            self.fuel = self.fuel.saturating_sub(elements / 64);
            return values.list.clone();
        }
        let one = |text: &str| vec![vec![text.to_owned()]];
        match name {
            "SHELL" | "BASH" | "0" => one("bash"),
            "IFS" => one(" \t\n"),
            "?" | "$" | "!" | "#" | "-" => one(&UNKNOWN.to_string()),
            // A possible value from the environment.
            name if name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') => {
                vec![Vec::new(), vec![UNKNOWN.into()]]
            }
            _ => vec![Vec::new()],
        }
    }

    /// True if an assignment certainly succeeds in the text's own shell: it is the whole command,
    /// and no part of it can fail. Only then it replaces earlier values.
    pub(super) fn is_certain(&self, assign: &Assign, simple: &ParsedCommand) -> bool {
        let in_shell = self.depth == 0 && self.calls.is_empty() && self.output.captured.is_none();
        let alone = simple.words.is_empty() && !simple.redirected;
        let index = assign.index.as_deref().unwrap_or_default();
        self.order == StepOrder::Straight
            && in_shell
            && alone
            && !self.kept.contains(&assign.name)
            && index.bytes().all(|byte| byte.is_ascii_digit())
            && assign.values.iter().all(ShellWord::expands_always)
    }

    pub(super) fn assign(&mut self, assign: &Assign, simple: &ParsedCommand) {
        let Assign { name, append, index, array, values } = assign;
        let new: Vec<Vec<String>> = match array {
            true => self.command_words(values),
            false => {
                let texts =
                    values.first().map_or_else(Vec::new, |word| self.word(word, Split::Never));
                texts.into_iter().map(|fields| vec![fields.join(" ")]).collect()
            }
        };
        let before = if *append || index.is_some() { self.get(name) } else { Vec::new() };
        if index.as_ref().is_some_and(|index| index.trim().parse::<usize>().is_err()) {
            self.unordered.insert(name.clone());
        }
        if let Some(attribute) = attribute(simple) {
            self.attributes.insert(name.clone(), attribute);
        }
        let mut all = Vec::new();
        if before.len().saturating_mul(new.len()) > VALUES_CAP {
            all.push(vec![beyond(Limit::Values)]);
        }
        for old in before.iter().take(VALUES_CAP) {
            for new in &new {
                if all.len() < VALUES_CAP {
                    all.push(joined(old, new, index.as_deref(), (*append, *array)));
                }
            }
        }
        self.fuel = self.fuel.saturating_sub(all.len() / 8);
        if self.is_certain(assign, simple) {
            self.names.remove(name);
        } else if !simple.words.is_empty() {
            self.kept.insert(name.clone());
        }
        self.set(name, if before.is_empty() { new } else { all });
    }

    pub(super) fn put_back(&mut self, name: &str, values: Option<Values>) {
        match values {
            Some(values) => drop(self.names.insert(name.to_owned(), values)),
            None => drop(self.names.remove(name)),
        }
    }

    /// An index as it is written, or a sign that it may be any; the commands in it run.
    pub(super) fn index(&mut self, name: &str, index: String) -> String {
        if index.contains(['$', '`']) {
            self.deeper(|walk| drop(walk.word(&ShellWord::commands_of(&index, 0), Split::Never)));
        }
        let number = index.trim().parse::<i64>().is_ok();
        if number && self.unordered.contains(name) { "any".to_owned() } else { index }
    }

    /// A text that bash evaluates as an index or a prompt: the commands in it run.
    pub(super) fn evaluated(&mut self, text: &str) {
        if text.contains("$(") || text.contains('`') {
            self.deeper(|walk| drop(walk.word(&ShellWord::commands_of(text, 0), Split::Never)));
        }
    }
}

/// The attributes set by the options of `declare` before an assignment.
fn attribute(simple: &ParsedCommand) -> Option<Attribute> {
    let words = simple.words.iter().filter_map(ShellWord::plain);
    let declares =
        simple.words.first().and_then(ShellWord::plain).is_some_and(|word| word != "export");
    words.filter(|_| declares).find_map(|word| Attribute::of(&word))
}

/// An array or a text with something added or one element set.
fn joined(
    old: &[String],
    new: &[String],
    index: Option<&str>,
    (append, array): (bool, bool),
) -> Vec<String> {
    let text = new.concat();
    if let Some(index) = index {
        let mut all = old.to_vec();
        match index.trim().parse::<usize>() {
            Ok(at) if at < VALUES_CAP => {
                if all.len() <= at {
                    all.resize(at + 1, ABSENT.to_owned());
                }
                all[at] =
                    if append && all[at] != ABSENT { format!("{}{text}", all[at]) } else { text };
            }
            _ => all.push(text),
        }
        return all;
    }
    if array {
        return [old, new].concat();
    }
    let mut all = old.to_vec();
    match all.first_mut() {
        Some(first) => first.push_str(&text),
        None => all.push(text),
    }
    all
}
