//! The effects of commands on names, and the commands that they run in turn.

use super::expander::{Attribute, Expander, FileContent};
use super::step::ShellStep;
use super::{ABSENT, Limit, OUTPUTS_CAP, Opacity, UNKNOWN, Values, beyond, limit_of, print};
use crate::lenient::programs::{ProgramTrait, ProgramTraits};
use crate::lenient::wrapper_syntax::{self, CommandStart};
use crate::program_name::base_name;

/// Builtins that read an index or a number in their words, and run the commands in it.
const EVALUATE: &[&str] =
    &["[", "[[", "declare", "let", "local", "printf", "read", "test", "typeset", "unset"];
/// Deepest functions that call each other.
const CALLS_CAP: usize = 30;
/// Most calls of one function within each other that are followed.
const RECURSION_CAP: usize = 2;

impl Expander {
    /// A command of which each word is known as far as it can be.
    pub(super) fn run(&mut self, words: Vec<String>, inputs: &[String]) {
        let bytes: usize = words.iter().map(String::len).sum();
        self.fuel = self.fuel.saturating_sub(1 + words.len() / 16 + bytes / 128);
        for word in &words {
            if let Some(limit) = limit_of(word) {
                self.too_many(limit);
            } else if word.contains(UNKNOWN) {
                self.raise_opacity(Opacity::Opaque);
            }
            if !ProgramTraits::of(word).has(ProgramTrait::PassesOn) {
                break;
            }
        }
        let output = self.effect(&words, inputs);
        if let Some(captured) = &mut self.output.captured {
            let output = output.unwrap_or_else(|| UNKNOWN.into());
            captured.iter_mut().for_each(|text| text.push_str(&output));
        }
        self.names.insert("_".into(), Values::one(words.last().cloned().into_iter().collect()));
        if !self.known.contains(&words) {
            self.known.insert(words.clone());
            self.expanded.commands.push(words);
        }
    }

    /// Applies the command's effect on names, and records its output if known.
    fn effect(&mut self, words: &[String], inputs: &[String]) -> Option<String> {
        self.programs_in(words, inputs);
        let (program, rest) = words.split_first()?;
        if let Some(bodies) = self.functions.get(program).cloned() {
            for body in bodies {
                self.call(words, &body);
            }
            return Some(String::new());
        }
        let named = |word: &&String| !word.starts_with('-');
        if EVALUATE.contains(&program.as_str()) {
            for word in rest.iter().filter(|word| word.contains('[')) {
                self.evaluated(word);
            }
        }
        let name = match program.rsplit_once('/') {
            None => program.as_str(),
            Some(("/bin" | "/usr/bin", name)) => name,
            // Any other program.
            Some(_) => return None,
        };
        match name {
            "command" if rest.first().is_some_and(|word| word.starts_with("-v")) => {
                Some(lines(&rest[1..]))
            }
            "which" => Some(lines(rest)),
            "type" if rest.first().is_some_and(|word| word.eq_ignore_ascii_case("-p")) => {
                Some(lines(&rest[1..]))
            }
            "command" | "builtin" | "exec" if rest.iter().any(|word| !word.starts_with('-')) => {
                let from = rest.iter().position(|word| !word.starts_with('-')).unwrap_or_default();
                self.effect(&rest[from..], inputs)
            }
            "declare" | "export" | "local" | "readonly" | "typeset" => {
                let attribute = rest.iter().find_map(|word| Attribute::of(word));
                for word in rest.iter().filter(named) {
                    let (name, value) = match word.split_once('=') {
                        Some((name, value)) => (name, vec![value.to_owned()]),
                        None => (word.as_str(), Vec::new()),
                    };
                    let name = name.trim_end_matches('+');
                    if let Some(attribute) = attribute.filter(|_| program != "export") {
                        self.attributes.insert(name.to_owned(), attribute);
                    }
                    self.kept.insert(name.to_owned());
                    // `local x` hides the value that was there.
                    if !value.is_empty() || !matches!(program.as_str(), "export" | "readonly") {
                        self.set(name, vec![value]);
                    }
                }
                Some(String::new())
            }
            "set" => {
                let options = rest.iter().take_while(|word| {
                    word.starts_with(['-', '+']) && *word != "--" && *word != "-"
                });
                let mut from = options.count();
                if rest.get(from).is_some_and(|word| word == "--" || word == "-") {
                    from += 1;
                } else if from == rest.len() {
                    return Some(String::new());
                }
                self.set("@", vec![rest[from.min(rest.len())..].to_vec()]);
                Some(String::new())
            }
            "shift" => {
                let by = rest.first().and_then(|word| word.parse().ok()).unwrap_or(1);
                let shifted =
                    self.get("@").into_iter().map(|words| words.into_iter().skip(by).collect());
                let shifted: Vec<Vec<String>> = shifted.collect();
                self.set("@", shifted);
                Some(String::new())
            }
            "unset" => {
                for name in rest.iter().filter(named) {
                    match name.split_once('[') {
                        None => self.set(name, vec![Vec::new()]),
                        Some((name, index)) => self.unset_element(name, index),
                    }
                }
                Some(String::new())
            }
            "eval" => {
                let from = usize::from(rest.first().is_some_and(|word| word == "--"));
                self.text(&rest[from..].join(" "), None);
                Some(String::new())
            }
            "trap" => {
                if let Some(text) = rest.iter().find(named) {
                    self.text(text, None);
                }
                Some(String::new())
            }
            "read" | "mapfile" | "readarray" => {
                self.reads(rest, inputs);
                Some(String::new())
            }
            "echo" => Some(self.prints(print::echo(rest))),
            "printf" => match rest {
                [option, name, rest @ ..] if option == "-v" => {
                    self.set(name, vec![vec![print::printf(rest)]]);
                    Some(String::new())
                }
                rest => Some(self.prints(print::printf(rest))),
            },
            "cat" if rest.iter().all(|word| word == "-") && !inputs.is_empty() => {
                Some(inputs.concat() + "\n")
            }
            ":" | "true" | "false" | "cd" | "shopt" | "test" | "[" | "[[" | "case" | "return"
            | "exit" => Some(String::new()),
            _ => self.printed_behind(words),
        }
    }

    /// `env echo x`: the output of a wrapper's command.
    fn printed_behind(&mut self, words: &[String]) -> Option<String> {
        let at = wrapper_syntax::starts(words).pop().filter(|at| *at > 0)?;
        let rest = &words[at + 1..];
        match base_name(&words[at]) {
            "echo" => Some(self.prints(print::echo(rest))),
            "printf" => Some(self.prints(print::printf(rest))),
            _ => None,
        }
    }

    /// Executes the body of a function with its arguments. A function already running with the same
    /// arguments adds nothing new. Of a deep recursion, only the program's name stays known.
    fn call(&mut self, words: &[String], body: &[ShellStep]) {
        if self.calls.iter().any(|call| call == words) {
            return;
        }
        if self.calls.iter().filter(|call| call.first() == words.first()).count() >= RECURSION_CAP {
            // `f() { "$@"; }; f f f f rm x`: the program follows the function names.
            let hands_on = words[1..].iter().any(|word| self.functions.contains_key(word));
            return self.raise_opacity(match hands_on {
                true => Opacity::TooMany(Limit::Depth),
                false => Opacity::Opaque,
            });
        }
        if self.calls.len() >= CALLS_CAP {
            return self.too_many(Limit::Depth);
        }
        let before = self.names.insert("@".into(), Values::one(words[1..].to_vec()));
        self.calls.push(words.to_vec());
        self.steps(body);
        self.calls.pop();
        self.put_back("@", before);
    }

    /// `unset 'a[0]'`
    fn unset_element(&mut self, name: &str, index: &str) {
        let at = index.trim_end_matches(']').trim().parse::<usize>();
        let without = |mut array: Vec<String>| {
            match at.clone() {
                Ok(at) if at < array.len() => array[at] = ABSENT.to_owned(),
                Ok(_) | Err(_) => {}
            }
            array
        };
        let held = self.get(name).into_iter().map(without).collect();
        self.set(name, held);
    }

    fn prints(&mut self, text: String) -> String {
        if !self.output.printed.add(vec![text.clone()]) {
            self.too_many(Limit::Outputs);
        }
        text
    }

    /// `read a b` and `mapfile a`: they read a here-string, or any output printed in the text.
    fn reads(&mut self, rest: &[String], inputs: &[String]) {
        if let Some(at) = rest.iter().position(|word| word == "-C")
            && let Some(text) = rest.get(at + 1)
        {
            self.text(text, None);
        }
        let names: Vec<&String> = rest
            .iter()
            .filter(|word| {
                !word.is_empty()
                    && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            })
            .collect();
        let mut texts: Vec<String> = match inputs {
            [] => self.output.printed.list.iter().map(|text| text.concat()).collect(),
            inputs => inputs.to_vec(),
        };
        if texts.len() > OUTPUTS_CAP {
            texts.truncate(OUTPUTS_CAP);
            texts.push(beyond(Limit::Outputs));
        }
        let ifs = self.get("IFS").into_iter().map(|ifs| ifs.concat()).collect::<String>() + "\n";
        for name in &names {
            self.set(name, Vec::new());
        }
        for text in &texts {
            self.fuel = self.fuel.saturating_sub(names.len().div_ceil(8) + text.len() / 64);
            let fields: Vec<String> = text
                .split(|c| ifs.contains(c))
                .filter(|field| !field.is_empty())
                .map(str::to_owned)
                .collect();
            let last = names.len().saturating_sub(1);
            for (at, name) in names.iter().enumerate() {
                let mine = match at == last {
                    true => fields.get(at..).unwrap_or_default().to_vec(),
                    false => fields.get(at).cloned().into_iter().collect(),
                };
                self.set(name, vec![vec![mine.join(" ")], mine]);
            }
        }
        if inputs.is_empty() {
            for name in names {
                self.set(name, vec![vec![UNKNOWN.into()]]);
            }
        }
    }

    /// Executes the commands that a shell or `xargs` runs in turn.
    fn programs_in(&mut self, words: &[String], inputs: &[String]) {
        let starts = wrapper_syntax::starts(words);
        for at in &starts {
            let name = base_name(&words[*at]);
            if name == "env" {
                for (name, value) in words[at + 1..].iter().filter_map(|word| word.split_once('='))
                {
                    self.set(name, vec![vec![value.to_owned()]]);
                }
            } else if name == "tee" {
                let files = words[at + 1..].iter().filter(|word| !word.starts_with('-'));
                files.for_each(|file| self.wrote(file, None));
            } else if words[*at].contains('/') {
                self.scripts.insert(plain_path(&words[*at]).to_owned());
            }
        }
        let of = |one: ProgramTrait| {
            starts.iter().copied().find(|at| ProgramTraits::of(&words[*at]).has(one))
        };
        if let Some(at) = starts.iter().copied().find(|at| base_name(&words[*at]) == "xargs") {
            self.xargs(&words[at..], inputs);
        }
        if let Some(at) = of(ProgramTrait::Shell) {
            self.shell(&words[at + 1..], inputs);
        }
        if let Some(at) = of(ProgramTrait::Sources)
            && let Some(file) = words.get(at + 1)
        {
            self.shell_reads(file, inputs, &words[at + 2..]);
        }
        // On another machine, or behind a program that is not known: a shell may read its input.
        if !inputs.is_empty()
            && words.iter().any(|word| ProgramTraits::of(word).has(ProgramTrait::FeedsShell))
        {
            self.shell_reads("-", inputs, &[]);
        }
    }

    /// A shell with these words behind its name.
    fn shell(&mut self, rest: &[String], inputs: &[String]) {
        let mut options = String::new();
        let mut operands = rest;
        while let [word, behind @ ..] = operands {
            let Some(letters) = word.strip_prefix(['-', '+']) else { break };
            operands = behind;
            if letters.is_empty() || letters == "-" {
                break;
            }
            if matches!(word.as_str(), "--version" | "--help") {
                return;
            }
            if word.starts_with("--") {
                let takes_file = matches!(letters, "-rcfile" | "-init-file");
                operands = behind.get(usize::from(takes_file)..).unwrap_or_default();
                continue;
            }
            options.push_str(letters);
            let takes_name = letters.ends_with(['o', 'O']);
            operands = behind.get(usize::from(takes_name)..).unwrap_or_default();
        }
        match operands {
            [text, given @ ..] if options.contains('c') => {
                let name = given.first().cloned().unwrap_or_else(|| "bash".into());
                let given = given.get(1..).unwrap_or_default().to_vec();
                self.text(text, Some((name, given)));
            }
            // It only reads.
            _ if options.contains('n') => {}
            [file, given @ ..] if !options.contains('s') => self.shell_reads(file, inputs, given),
            given => self.shell_reads("-", inputs, given),
        }
    }

    /// A shell that reads this file, or its input.
    fn shell_reads(&mut self, file: &str, inputs: &[String], given: &[String]) {
        let input = file == "-" || file == "/dev/stdin" || file.starts_with("/dev/fd/");
        if !input {
            self.scripts.insert(plain_path(file).to_owned());
            return;
        }
        // It reads the output of another command.
        self.feeds_shell |= inputs.is_empty();
        for text in inputs {
            self.text(text, Some(("bash".into(), given.to_vec())));
        }
    }

    /// `sh < file`.
    pub(super) fn reads_files(&mut self, words: &[String], files: &[String]) {
        if wrapper_syntax::starts(words)
            .iter()
            .any(|at| ProgramTraits::of(&words[*at]).has(ProgramTrait::Shell))
        {
            self.scripts.extend(files.iter().map(|file| plain_path(file).to_owned()));
        }
    }

    /// A file gets these texts, or any that are printed.
    pub(super) fn wrote(&mut self, file: &str, texts: Option<Vec<String>>) {
        let texts = texts.map_or(FileContent::Anything, FileContent::These);
        self.written.push((plain_path(file).to_owned(), texts));
    }

    /// The texts that shells read which are printed somewhere in the text.
    pub(super) fn fed(&self) -> Vec<String> {
        let mut all = Vec::new();
        let mut anything = self.feeds_shell;
        for (file, texts) in &self.written {
            if self.scripts.contains(file) {
                match texts {
                    FileContent::These(texts) => all.extend(texts.iter().cloned()),
                    FileContent::Anything => anything = true,
                }
            }
        }
        if anything {
            all.extend(self.output.printed.list.iter().map(|text| text.concat()));
        }
        all
    }

    /// Any output printed in the text, appended to the command or inserted at the placeholder.
    fn xargs(&mut self, words: &[String], inputs: &[String]) {
        let CommandStart::At(begin) = wrapper_syntax::command_start(words) else { return };
        let mark = words[..begin].iter().position(|word| word.starts_with("-I"));
        let mark = mark.and_then(|at| match &words[at][2..] {
            "" => words.get(at + 1).cloned(),
            mark => Some(mark.to_owned()),
        });
        let command = &words[begin..];
        if base_name(&command[0]) == "xargs" {
            return;
        }
        let printed = self.output.printed.list.iter().map(|text| text.concat());
        let mut texts: Vec<String> = inputs.iter().cloned().chain(printed).collect();
        if texts.len() > OUTPUTS_CAP {
            texts.truncate(OUTPUTS_CAP);
            texts.push(beyond(Limit::Outputs));
        }
        for text in &texts {
            let runs: Vec<Vec<String>> = match &mark {
                Some(mark) => {
                    let more = text.lines().nth(OUTPUTS_CAP).map(|_| beyond(Limit::Outputs));
                    let lines = text.lines().take(OUTPUTS_CAP).map(str::to_owned).chain(more);
                    let put = |line: String| {
                        command
                            .iter()
                            .map(|word| word.replace(mark.as_str(), line.trim()))
                            .collect()
                    };
                    lines.map(put).collect()
                }
                None => {
                    let given: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
                    vec![[command, &given].concat()]
                }
            };
            for run in runs {
                self.deeper(|walk| walk.run(run, &[]));
            }
        }
    }
}

/// `./x` is `x`.
fn plain_path(file: &str) -> &str {
    file.strip_prefix("./").unwrap_or(file)
}

/// One name a line: the output of `command -v` without directories.
fn lines(words: &[String]) -> String {
    words.iter().filter(|word| !word.starts_with('-')).map(|word| format!("{word}\n")).collect()
}
