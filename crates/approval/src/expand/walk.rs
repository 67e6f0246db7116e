//! The steps of a text walked with the values that each name can hold.

use super::commands::Written;
use super::fields::Fields;
use super::parameter::{self, Value};
use super::parse::{self, Assign, Defined, Order, Simple, Step, Way};
use super::{
    ABSENT, Atom, Doubt, Expanded, Limit, OUTPUTS_CAP, TEXT_CAP, TOO_MANY, UNKNOWN, VALUES_CAP,
    Values, Word, atoms, beyond, braces,
};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Work for one text; scripts that people write take a hundredth of it.
const FUEL: usize = 60_000;
/// Deepest texts and substitutions within each other.
const DEPTH_CAP: usize = 10;
/// Most readings of one command that are looked at all together.
const TOGETHER_CAP: usize = 1024;
/// Most values of `IFS`.
const SEPARATORS_CAP: usize = 4;

pub(super) fn walk(text: &str) -> Expanded {
    let (steps, order, reading) = parse::steps(text);
    let mut walk = Walk {
        names: HashMap::new(),
        functions: HashMap::new(),
        order,
        expanded: Expanded { reading, ..Expanded::default() },
        known: HashSet::new(),
        printed: Values::default(),
        captured: None,
        feeds_shell: false,
        unordered: HashSet::new(),
        attributes: HashMap::new(),
        scripts: HashSet::new(),
        written: Vec::new(),
        depth: 0,
        calls: Vec::new(),
        kept: HashSet::new(),
        fuel: FUEL,
    };
    walk.steps(&steps);
    if walk.order == Order::Any {
        walk.steps(&steps);
    }
    for text in walk.fed() {
        walk.text(&text, None);
    }
    if walk.fuel == 0 {
        walk.too_many(Limit::Work);
    }
    walk.expanded
}

pub(super) struct Walk {
    pub(super) names: HashMap<String, Values>,
    /// The bodies that a name can have.
    pub(super) functions: HashMap<String, Vec<Rc<Vec<Step>>>>,
    pub(super) order: Order,
    pub(super) expanded: Expanded,
    pub(super) known: HashSet<Vec<String>>,
    /// What `echo` and `printf` printed, for those that read it.
    pub(super) printed: Values,
    /// What the substitution that is being read printed so far.
    pub(super) captured: Option<Vec<String>>,
    /// Whether a shell reads a text from elsewhere.
    pub(super) feeds_shell: bool,
    /// Arrays of which an element was set by a name or a sum.
    unordered: HashSet<String>,
    pub(super) attributes: HashMap<String, Attribute>,
    /// Files that a shell reads.
    pub(super) scripts: HashSet<String>,
    /// Files that the text writes.
    pub(super) written: Vec<(String, Written)>,
    pub(super) depth: usize,
    /// The functions that are running, with their arguments.
    pub(super) calls: Vec<Vec<String>>,
    /// Names that a builtin declared: a later assignment may fail.
    pub(super) kept: HashSet<String>,
    pub(super) fuel: usize,
}

/// Whether a value becomes words at its blanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Split {
    Words,
    Never,
}

impl Walk {
    pub(super) fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            if self.fuel == 0 {
                return;
            }
            self.fuel -= 1;
            match step {
                Step::Simple(simple) => self.simple(simple),
                Step::Function { name, body, defined } => {
                    let alone = self.depth == 0 && self.calls.is_empty() && self.captured.is_none();
                    let bodies = self.functions.entry(name.clone()).or_default();
                    if *defined == Defined::Always && alone {
                        bodies.clear();
                    }
                    if !bodies.iter().any(|known| Rc::ptr_eq(known, body)) {
                        bodies.push(Rc::clone(body));
                    }
                    // Its body is looked at where it stands too: it may be called from elsewhere.
                    self.deeper(|walk| walk.steps(body));
                }
                Step::Loop { name, words } => {
                    for fields in self.command_words(words) {
                        for field in fields {
                            self.set(name, vec![vec![field]]);
                        }
                    }
                }
            }
        }
    }

    pub(super) fn deeper(&mut self, work: impl FnOnce(&mut Self)) {
        if self.depth < DEPTH_CAP {
            self.depth += 1;
            work(self);
            self.depth -= 1;
        } else {
            self.too_many(Limit::Depth);
        }
    }

    pub(super) fn doubt(&mut self, doubt: Doubt) {
        self.expanded.doubt = self.expanded.doubt.max(doubt);
    }

    /// Adds values to those that a name can hold.
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
    fn references(&self, name: &str) -> Vec<String> {
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
            // What the environment may hold.
            name if name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') => {
                vec![Vec::new(), vec![UNKNOWN.into()]]
            }
            _ => vec![Vec::new()],
        }
    }

    /// Whether an assignment certainly succeeds in the shell of the text itself: it is the whole command,
    /// and no part of it can fail. Only such a one replaces the values that were there.
    fn is_certain(&self, assign: &Assign, simple: &Simple) -> bool {
        let in_shell = self.depth == 0 && self.calls.is_empty() && self.captured.is_none();
        let alone = simple.words.is_empty() && !simple.redirected;
        let index = assign.index.as_deref().unwrap_or_default();
        self.order == Order::Straight
            && in_shell
            && alone
            && !self.kept.contains(&assign.name)
            && index.bytes().all(|byte| byte.is_ascii_digit())
            && assign.values.iter().all(Word::expands_always)
    }

    fn assign(&mut self, assign: &Assign, simple: &Simple) {
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

    fn simple(&mut self, simple: &Simple) {
        for assign in &simple.assigns {
            self.assign(assign, simple);
        }
        for aside in &simple.asides {
            self.word(aside, Split::Never);
        }
        let mut inputs = Vec::new();
        for input in &simple.inputs {
            let texts = self.word(input, Split::Never);
            inputs.extend(texts.into_iter().map(|fields| fields.concat()));
        }
        for text in &inputs {
            self.printed.add(vec![text.clone()]);
        }
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for (way, file) in &simple.files {
            let names = self.word(file, Split::Never).into_iter().map(|fields| fields.concat());
            match way {
                Way::In => reads.extend(names),
                Way::Out => writes.extend(names),
                // Its name may hold commands.
                Way::Beside => drop(names),
            }
        }
        let before = self.captured.take();
        let commands = self.command_words(&simple.words);
        self.captured = before;
        let mut outputs = Vec::new();
        for words in commands {
            if words.is_empty() || self.fuel == 0 {
                continue;
            }
            if !reads.is_empty() {
                self.reads_files(&words, &reads);
            }
            let wanted = self.captured.is_some() || !writes.is_empty();
            let before = wanted.then(|| vec![String::new()]);
            let whole = std::mem::replace(&mut self.captured, before);
            self.run(words, &inputs);
            outputs.extend(std::mem::replace(&mut self.captured, whole).unwrap_or_default());
        }
        outputs.dedup();
        for file in writes {
            let known = !outputs.is_empty() && !outputs.iter().any(|text| text.contains(UNKNOWN));
            let texts = outputs.iter().chain(&inputs).cloned().collect();
            self.wrote(&file, known.then_some(texts));
        }
        let printed = simple.files.iter().all(|(way, _)| *way != Way::Out);
        if let (Some(captured), true) = (&mut self.captured, printed && !outputs.is_empty()) {
            let both = captured
                .iter()
                .flat_map(|text| outputs.iter().map(move |more| format!("{text}{more}")));
            let mut both: Vec<String> = both.take(OUTPUTS_CAP + 1).collect();
            if both.len() > OUTPUTS_CAP {
                both.truncate(OUTPUTS_CAP);
                both.push(beyond(Limit::Outputs));
            }
            *captured = both;
        }
    }

    /// The readings of a command's words.
    fn command_words(&mut self, words: &[Word]) -> Vec<Vec<String>> {
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
            // All of them at once are not looked at.
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
    fn word(&mut self, word: &Word, split: Split) -> Vec<Vec<String>> {
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
    fn plain_word(&mut self, word: &Word, split: Split) -> Option<Vec<Vec<String>>> {
        let mut readings = vec![Fields::default()];
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
            let mut next: Vec<Fields> = Vec::new();
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
                .saturating_sub(next.len() / 4 + next.first().map_or(0, Fields::bytes) / 256);
            if self.fuel == 0 {
                return None;
            }
            readings = next;
        }
        Some(readings.into_iter().map(Fields::end).collect())
    }

    fn atom(&mut self, atom: &Atom) -> (Vec<Value>, bool) {
        match atom {
            Atom::Letters { text, quoted } => (vec![Value::One(text.clone())], *quoted),
            Atom::Arithmetic { runs, quoted } => {
                for atom in runs {
                    self.atom(atom);
                }
                (vec![Value::One(UNKNOWN.into())], *quoted)
            }
            Atom::Parameter { name, op, quoted } => {
                let mut values = self.parameter(name, op);
                if values.len() > 1 {
                    let mut known: Vec<Value> = Vec::new();
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
                    values.push(Value::Unset);
                }
                if name == "*" && *quoted && op.is_empty() {
                    values = values.into_iter().map(together).collect();
                }
                (values, *quoted)
            }
            Atom::Substitution { text, quoted, process } => {
                let outputs = self.output(text);
                match process {
                    true => (vec![Value::One("/dev/fd/63".into())], true),
                    false => (outputs.into_iter().map(Value::One).collect(), *quoted),
                }
            }
        }
    }

    /// What a substitution prints; its commands are looked at on the way.
    fn output(&mut self, text: &str) -> Vec<String> {
        if self.depth >= DEPTH_CAP {
            self.too_many(Limit::Depth);
            return vec![UNKNOWN.into()];
        }
        let before = self.captured.replace(vec![String::new()]);
        self.text(text, None);
        let outputs = std::mem::replace(&mut self.captured, before).unwrap_or_default();
        let ends = |text: String| text.trim_end_matches('\n').to_owned();
        outputs.into_iter().map(ends).collect()
    }

    /// Walks a text of its own, perhaps with words of its own: `$0`, `$1` and so on.
    pub(super) fn text(&mut self, text: &str, given: Option<(String, Vec<String>)>) {
        if text.len() > TEXT_CAP * 2 {
            return self.too_many(Limit::Length);
        }
        if text.contains(UNKNOWN) && text.chars().count() == 1 {
            return;
        }
        self.fuel = self.fuel.saturating_sub(text.len() / 32);
        let (steps, order, reading) = parse::steps(text);
        self.expanded.reading = self.expanded.reading.max(reading);
        if order == Order::Any {
            self.order = order;
        }
        let mut before = None;
        if let Some((name, words)) = given {
            before = Some((self.names.get("0").cloned(), self.names.get("@").cloned()));
            self.names.insert("0".into(), Values::one(vec![name]));
            self.names.insert("@".into(), Values::one(words));
        }
        self.deeper(|walk| walk.steps(&steps));
        if let Some((name, words)) = before {
            self.put_back("0", name);
            self.put_back("@", words);
        }
    }

    pub(super) fn put_back(&mut self, name: &str, values: Option<Values>) {
        match values {
            Some(values) => drop(self.names.insert(name.to_owned(), values)),
            None => drop(self.names.remove(name)),
        }
    }

    fn parameter(&mut self, name: &str, op: &str) -> Vec<Value> {
        if let Some(op) = op.strip_prefix('!') {
            if op.starts_with(['[', '@', '*']) {
                return vec![Value::One(UNKNOWN.into())];
            }
            let names = self.parameter(name, "");
            let one = |value: Value| match value {
                Value::One(name) => Some(name),
                Value::Unset | Value::Each(_) => None,
            };
            let names: Vec<String> = names.into_iter().filter_map(one).collect();
            return names.iter().flat_map(|name| self.held(name, op)).collect();
        }
        if op.starts_with('#') && name != "#" && !self.names.contains_key(name) && op.len() == 1 {
            return vec![Value::One(UNKNOWN.into())];
        }
        self.held(name, op)
    }

    fn held(&mut self, name: &str, op: &str) -> Vec<Value> {
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
                Some(number) => {
                    values.push(array.get(number - 1).cloned().map_or(Value::Unset, Value::One))
                }
                // `${@:1}`: the first is the shell's name.
                None if whole && sign == ":" => {
                    let words = std::iter::once("bash".to_owned()).chain(array.iter().cloned());
                    values.push(Value::Each(words.collect()));
                }
                None => values.extend(parameter::at(array, name, index.as_deref())),
            }
        }
        self.operate(name, (sign, first, second), values)
    }

    /// An index as it is written, or a sign that it may be any; the commands in it run.
    fn index(&mut self, name: &str, index: String) -> String {
        if index.contains(['$', '`']) {
            self.deeper(|walk| drop(walk.word(&Word::commands_of(&index, 0), Split::Never)));
        }
        let number = index.trim().parse::<i64>().is_ok();
        if number && self.unordered.contains(name) { "any".to_owned() } else { index }
    }

    /// A text that bash evaluates as an index or a prompt: the commands in it run.
    pub(super) fn evaluated(&mut self, text: &str) {
        if text.contains("$(") || text.contains('`') {
            self.deeper(|walk| drop(walk.word(&Word::commands_of(text, 0), Split::Never)));
        }
    }

    pub(super) fn too_many(&mut self, limit: Limit) {
        self.doubt(Doubt::TooMany(limit));
    }

    fn operate(
        &mut self,
        name: &str,
        (sign, first, second): (&str, &str, &str),
        values: Vec<Value>,
    ) -> Vec<Value> {
        let empty = |value: &Value| match value {
            Value::Unset => true,
            Value::One(text) => text.is_empty() || text.contains(UNKNOWN),
            Value::Each(texts) => texts.is_empty(),
        };
        let operand = |walk: &mut Self, text: &str, of: fn(&str) -> Word| -> Vec<String> {
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
                let others = operand(self, first, Word::of_operand);
                if sign.ends_with('=') && values.iter().any(empty) {
                    self.set(name, others.iter().map(|text| vec![text.clone()]).collect());
                }
                let plus = sign.ends_with('+');
                let (some_empty, some_full) = (values.iter().any(empty), !values.iter().all(empty));
                let mut all: Vec<Value> = match plus {
                    true => {
                        if some_empty {
                            vec![Value::Unset]
                        } else {
                            Vec::new()
                        }
                    }
                    false => values.into_iter().filter(|value| !empty(value)).collect(),
                };
                if (plus && some_full) || (!plus && some_empty) {
                    all.extend(others.into_iter().map(Value::One));
                }
                all
            }
            ":?" | "?" => {
                operand(self, first, Word::of_operand);
                values
            }
            "@P" => {
                for value in &values {
                    if let Value::One(text) = value {
                        self.evaluated(text);
                    }
                }
                values
            }
            _ => {
                let cuts = sign.starts_with(['#', '%', '/']);
                let pattern = if cuts { Word::of_pattern } else { Word::of_operand };
                let first = operand(self, first, pattern);
                let second = operand(self, second, Word::of_operand);
                let mut all = Vec::new();
                for value in values {
                    for first in &first {
                        for second in &second {
                            self.fuel =
                                self.fuel.saturating_sub(1 + parameter::cost(&value, sign, first));
                            if self.fuel == 0 {
                                return vec![Value::One(TOO_MANY.into())];
                            }
                            all.push(parameter::apply(value.clone(), sign, first, second));
                        }
                    }
                }
                if all.len() > VALUES_CAP {
                    all.truncate(VALUES_CAP);
                    all.push(Value::One(beyond(Limit::Values)));
                }
                all
            }
        }
    }
}

/// An index behind its `[`, and what stands behind the `]`.
fn index_of(text: &str) -> (String, String) {
    let letters: Vec<char> = text.chars().collect();
    match atoms::closed(&letters, 0, '[', ']') {
        Some((index, end)) => (index, letters[end..].iter().collect()),
        None => (text.to_owned(), String::new()),
    }
}

fn together(value: Value) -> Value {
    match value {
        Value::Each(texts) => Value::One(texts.join(" ")),
        other @ (Value::Unset | Value::One(_)) => other,
    }
}

/// What a name is for, as `declare` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attribute {
    /// `-l`
    Lower,
    /// `-u`
    Upper,
    /// `-n`: another name for the one that it holds.
    Reference,
}

impl Attribute {
    pub(super) fn of(option: &str) -> Option<Self> {
        let letters = option.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
        letters.chars().find_map(|letter| match letter {
            'l' => Some(Self::Lower),
            'u' => Some(Self::Upper),
            'n' => Some(Self::Reference),
            _ => None,
        })
    }
}

/// What the options of `declare` before an assignment say.
fn attribute(simple: &Simple) -> Option<Attribute> {
    let words = simple.words.iter().filter_map(Word::plain);
    let declares = simple.words.first().and_then(Word::plain).is_some_and(|word| word != "export");
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
