//! The steps of a text walked with the values that each name can hold.

use super::expander::{DEPTH_CAP, Expander, PrintedOutput, Split};
use super::parse;
use super::step::{Definition, FileUse, ParsedCommand, ShellStep, StepOrder};
use super::{Expanded, Limit, OUTPUTS_CAP, Opacity, TEXT_CAP, UNKNOWN, Values, beyond};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Work limit for one text; ordinary scripts take a hundredth of it.
const FUEL: usize = 60_000;
pub(super) fn walk(text: &str) -> Expanded {
    let (steps, order, certainty) = parse::steps(text);
    let mut walk = Expander {
        names: HashMap::new(),
        functions: HashMap::new(),
        order,
        expanded: Expanded { certainty, ..Expanded::default() },
        known: HashSet::new(),
        output: PrintedOutput::default(),
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
    if walk.order == StepOrder::Any {
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

impl Expander {
    pub(super) fn steps(&mut self, steps: &[ShellStep]) {
        for step in steps {
            if self.fuel == 0 {
                return;
            }
            self.fuel -= 1;
            match step {
                ShellStep::Simple(simple) => self.simple(simple),
                ShellStep::Function { name, body, defined } => {
                    let alone =
                        self.depth == 0 && self.calls.is_empty() && self.output.captured.is_none();
                    let bodies = self.functions.entry(name.clone()).or_default();
                    if *defined == Definition::Always && alone {
                        bodies.clear();
                    }
                    if !bodies.iter().any(|known| Rc::ptr_eq(known, body)) {
                        bodies.push(Rc::clone(body));
                    }
                    // Execute its body here as well: it may be called from elsewhere.
                    self.deeper(|walk| walk.steps(body));
                }
                ShellStep::Loop { name, words } => {
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

    pub(super) fn raise_opacity(&mut self, opacity: Opacity) {
        self.expanded.opacity = self.expanded.opacity.max(opacity);
    }

    fn simple(&mut self, simple: &ParsedCommand) {
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
            self.output.printed.add(vec![text.clone()]);
        }
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for (way, file) in &simple.files {
            let names = self.word(file, Split::Never).into_iter().map(|fields| fields.concat());
            match way {
                FileUse::In => reads.extend(names),
                FileUse::Out => writes.extend(names),
                // Its name may hold commands.
                FileUse::Beside => drop(names),
            }
        }
        let before = self.output.captured.take();
        let commands = self.command_words(&simple.words);
        self.output.captured = before;
        let mut outputs = Vec::new();
        for words in commands {
            if words.is_empty() || self.fuel == 0 {
                continue;
            }
            if !reads.is_empty() {
                self.reads_files(&words, &reads);
            }
            let wanted = self.output.captured.is_some() || !writes.is_empty();
            let before = wanted.then(|| vec![String::new()]);
            let whole = std::mem::replace(&mut self.output.captured, before);
            self.run(words, &inputs);
            outputs.extend(std::mem::replace(&mut self.output.captured, whole).unwrap_or_default());
        }
        outputs.dedup();
        for file in writes {
            let known = !outputs.is_empty() && !outputs.iter().any(|text| text.contains(UNKNOWN));
            let texts = outputs.iter().chain(&inputs).cloned().collect();
            self.wrote(&file, known.then_some(texts));
        }
        let printed = simple.files.iter().all(|(way, _)| *way != FileUse::Out);
        if let (Some(captured), true) = (&mut self.output.captured, printed && !outputs.is_empty())
        {
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

    /// Executes a nested text, optionally with its own arguments `$0`, `$1` and so on.
    pub(super) fn text(&mut self, text: &str, given: Option<(String, Vec<String>)>) {
        if text.len() > TEXT_CAP * 2 {
            return self.too_many(Limit::Length);
        }
        if text.contains(UNKNOWN) && text.chars().count() == 1 {
            return;
        }
        self.fuel = self.fuel.saturating_sub(text.len() / 32);
        let (steps, order, certainty) = parse::steps(text);
        self.expanded.certainty = self.expanded.certainty.max(certainty);
        if order == StepOrder::Any {
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

    pub(super) fn too_many(&mut self, limit: Limit) {
        self.raise_opacity(Opacity::TooMany(limit));
    }
}
