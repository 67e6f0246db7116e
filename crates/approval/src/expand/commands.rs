//! What commands do to names, and what they run in turn.

use super::parse::Step;
use super::walk::Walk;
use super::{Doubt, TOO_MANY, UNKNOWN, Values, print};
use crate::glimpse::is_c_option;
use crate::programs::{Trait, Traits};
use crate::words::base_name;

/// Most outputs that are taken for what a command reads.
const OUTPUTS_CAP: usize = 64;
/// Deepest functions that call each other.
const CALLS_CAP: usize = 30;
/// Most calls of one function within each other that are followed.
const RECURSION_CAP: usize = 2;

impl Walk {
    /// A command of which each word is known as far as it can be.
    pub(super) fn run(&mut self, words: Vec<String>, inputs: &[String]) {
        let bytes: usize = words.iter().map(String::len).sum();
        self.fuel = self.fuel.saturating_sub(1 + words.len() / 16 + bytes / 128);
        for word in &words {
            if word.contains(TOO_MANY) {
                self.doubt(Doubt::TooMany);
            } else if word.contains(UNKNOWN) {
                self.doubt(Doubt::Opaque);
            }
            if !Traits::of(word).has(Trait::PassesOn) {
                break;
            }
        }
        let output = self.effect(&words, inputs);
        if let Some(captured) = &mut self.captured {
            let output = output.unwrap_or_else(|| UNKNOWN.into());
            captured.iter_mut().for_each(|text| text.push_str(&output));
        }
        self.names.insert("_".into(), Values::one(words.last().cloned().into_iter().collect()));
        if !self.known.contains(&words) {
            self.known.insert(words.clone());
            self.expanded.commands.push(words);
        }
    }

    /// What the command does to names, and what it prints where that is known.
    fn effect(&mut self, words: &[String], inputs: &[String]) -> Option<String> {
        self.programs_in(words, inputs);
        let (program, rest) = words.split_first()?;
        if let Some(body) = self.functions.get(program).cloned() {
            self.call(words, &body);
            return Some(String::new());
        }
        let named = |word: &&String| !word.starts_with('-');
        let name = match program.rsplit_once('/') {
            None => program.as_str(),
            Some(("/bin" | "/usr/bin", name)) => name,
            // Another program, whatever its name.
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
                for word in rest.iter().filter(named) {
                    let (name, value) = match word.split_once('=') {
                        Some((name, value)) => (name, vec![value.to_owned()]),
                        None => (word.as_str(), Vec::new()),
                    };
                    let name = name.trim_end_matches('+');
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
                    let name = name.split('[').next().unwrap_or_default();
                    self.set(name, vec![Vec::new()]);
                }
                Some(String::new())
            }
            "eval" => {
                self.text(&rest.join(" "), None);
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
            "cat" if rest.is_empty() => Some(inputs.concat() + "\n"),
            ":" | "true" | "false" | "cd" | "shopt" | "test" | "[" | "[[" | "case" | "return"
            | "exit" => Some(String::new()),
            _ => None,
        }
    }

    /// The body of a function with its arguments. One that runs with the same ones already does nothing
    /// new; of one that calls itself again and again, nothing more is known than its program's name.
    fn call(&mut self, words: &[String], body: &[Step]) {
        if self.calls.iter().any(|call| call == words) {
            return;
        }
        if self.calls.iter().filter(|call| call.first() == words.first()).count() >= RECURSION_CAP {
            // `f() { "$@"; }; f f f f rm x`: the program stands behind the functions.
            let hands_on = words[1..].iter().any(|word| self.functions.contains_key(word));
            return self.doubt(if hands_on { Doubt::TooMany } else { Doubt::Opaque });
        }
        if self.calls.len() >= CALLS_CAP {
            return self.doubt(Doubt::TooMany);
        }
        let before = self.names.insert("@".into(), Values::one(words[1..].to_vec()));
        self.calls.push(words.to_vec());
        self.steps(body);
        self.calls.pop();
        self.put_back("@", before);
    }

    fn prints(&mut self, text: String) -> String {
        if text.len() < 4096 {
            self.printed.add(vec![text.clone()]);
        }
        text
    }

    /// `read a b` and `mapfile a`: what a here-string holds, or what is printed anywhere in the text.
    fn reads(&mut self, rest: &[String], inputs: &[String]) {
        let names: Vec<&String> = rest
            .iter()
            .filter(|word| {
                !word.is_empty()
                    && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            })
            .collect();
        let texts = match inputs {
            [] => self.printed.list.iter().map(|text| text.concat()).take(OUTPUTS_CAP).collect(),
            inputs => inputs.to_vec(),
        };
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

    /// Shells and `xargs` anywhere in the words: what they run in turn.
    fn programs_in(&mut self, words: &[String], inputs: &[String]) {
        let env = base_name(&words[0]) == "env";
        for (name, value) in words.iter().filter(|_| env).filter_map(|word| word.split_once('=')) {
            self.set(name, vec![vec![value.to_owned()]]);
        }
        let prints = Traits::of(&words[0]).has(Trait::Prints);
        if let Some(at) =
            words.iter().position(|word| base_name(word) == "xargs").filter(|_| !prints)
        {
            self.xargs(&words[at + 1..], inputs);
        }
        let shell = words.iter().position(|word| {
            Traits::of(word).has(Trait::Shell) || Traits::of(word).has(Trait::Sources)
        });
        let Some(at) = shell.filter(|_| !prints) else { return };
        let rest = &words[at + 1..];
        let behind = rest.iter().position(|word| is_c_option(word)).map(|at| &rest[at + 1..]);
        match behind {
            Some(behind) => {
                let from = behind.iter().position(|word| !word.starts_with('-'));
                let Some((text, given)) = from.and_then(|from| behind[from..].split_first()) else {
                    return;
                };
                let name = given.first().cloned().unwrap_or_else(|| "bash".into());
                let given = given.get(1..).unwrap_or_default().to_vec();
                self.text(text, Some((name, given)));
            }
            None => {
                self.feeds_shell = true;
                let given: Vec<String> =
                    rest.iter().filter(|word| !word.starts_with('-')).cloned().collect();
                for text in inputs {
                    self.text(text, Some(("bash".into(), given.clone())));
                }
            }
        }
    }

    /// What is printed anywhere in the text, behind the command or in the place of a mark.
    fn xargs(&mut self, words: &[String], inputs: &[String]) {
        let mark = words.iter().position(|word| word.starts_with("-I")).and_then(|at| match &words
            [at][2..]
        {
            "" => words.get(at + 1).cloned(),
            mark => Some(mark.to_owned()),
        });
        let printed = self.printed.list.iter().map(|text| text.concat());
        let texts: Vec<String> = inputs.iter().cloned().chain(printed).take(OUTPUTS_CAP).collect();
        let begin =
            words.iter().position(|word| !word.starts_with('-') && Some(word) != mark.as_ref());
        let command = begin.map(|at| &words[at..]).unwrap_or_default();
        for text in texts {
            let given: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            let runs = match &mark {
                Some(mark) => {
                    command.iter().map(|word| word.replace(mark.as_str(), text.trim())).collect()
                }
                None => [command, &given].concat(),
            };
            if !runs.is_empty() && base_name(&runs[0]) != "xargs" {
                self.deeper(|walk| walk.run(runs, &[]));
            }
        }
    }
}

/// Each on a line: what `command -v` says of programs, but for their directory.
fn lines(words: &[String]) -> String {
    words.iter().filter(|word| !word.starts_with('-')).map(|word| format!("{word}\n")).collect()
}
