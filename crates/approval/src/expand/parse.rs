//! A shell text cut into steps whose words still hold what bash will replace. It accepts any text: what
//! it does not follow becomes one command more, never one less.

use super::atoms::{Atom, Word};
use std::rc::Rc;

/// Deepest nesting of groups and functions.
const DEPTH_CAP: usize = 30;

/// Something that a text does, in the order of the text.
#[derive(Debug)]
pub(super) enum Step {
    Simple(Simple),
    /// `for name in words`; the body follows as steps of its own.
    Loop {
        name: String,
        words: Vec<Word>,
    },
    Function {
        name: String,
        body: Rc<Vec<Step>>,
    },
}

/// A simple command.
#[derive(Debug, Default)]
pub(super) struct Simple {
    /// Before the program, and behind `declare` and its like.
    pub assigns: Vec<Assign>,
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// Here-strings and here-documents.
    pub inputs: Vec<Word>,
    /// A command whose redirection fails does nothing.
    pub redirected: bool,
}

/// `name=…`, `name+=…`, `name[…]=…` or `name=(…)`.
#[derive(Debug)]
pub(super) struct Assign {
    pub name: String,
    pub append: bool,
    /// In brackets behind the name.
    pub index: Option<String>,
    /// `(…)`: all elements at once.
    pub array: bool,
    pub values: Vec<Word>,
}

/// Whether each step runs once and in the order of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Straight,
    Any,
}

/// Words behind which a command begins, and what they say of the order.
const RESERVED: &[&str] = &[
    "!", "{", "}", "do", "done", "elif", "else", "esac", "fi", "if", "then", "time", "until",
    "while", "coproc",
];

/// Builtins behind which words assign.
const DECLARERS: &[&str] = &["declare", "export", "local", "readonly", "typeset"];

/// Every step of a text.
pub(super) fn steps(text: &str) -> (Vec<Step>, Order) {
    let letters: Vec<char> = text.chars().collect();
    let mut parser =
        Parser { letters: &letters, at: 0, depth: 0, order: Order::Straight, here: Vec::new() };
    let mut steps = Vec::new();
    while parser.at < letters.len() {
        parser.list(&mut steps);
        // A `}` that closes nothing.
        parser.at += 1;
    }
    (steps, parser.order)
}

struct Parser<'a> {
    letters: &'a [char],
    at: usize,
    depth: usize,
    order: Order,
    /// Here-documents whose text begins on the next line.
    here: Vec<Here>,
}

struct Here {
    end: String,
    tabs: bool,
    quoted: bool,
}

impl Parser<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.letters.get(self.at + ahead).copied()
    }

    fn rest(&self) -> &[char] {
        self.letters.get(self.at..).unwrap_or_default()
    }

    fn next_is(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, c)| self.peek(ahead) == Some(c))
    }

    /// Steps up to a `}` where a command could begin, or the end.
    fn list(&mut self, steps: &mut Vec<Step>) {
        let mut simple = Simple::default();
        while let Some(c) = self.peek(0) {
            match c {
                '\n' => {
                    self.end(&mut simple, steps);
                    self.at += 1;
                    self.here_documents(steps);
                }
                ' ' | '\t' | '\r' => self.at += 1,
                '\\' if self.peek(1) == Some('\n') => self.at += 2,
                '#' => self.comment(),
                ';' | '&' | '|' => {
                    if self.next_is("&>") {
                        self.at += 1;
                        continue;
                    }
                    if c != ';' {
                        self.order = Order::Any;
                    }
                    self.end(&mut simple, steps);
                    self.at += 1;
                }
                '(' | ')' => self.bracket(&mut simple, steps),
                '<' | '>' => self.redirection(&mut simple),
                _ if simple.words.is_empty() && simple.assigns.is_empty() => {
                    if self.begins(&mut simple, steps) {
                        return;
                    }
                }
                _ => self.argument(&mut simple),
            }
        }
        self.end(&mut simple, steps);
    }

    fn end(&mut self, simple: &mut Simple, steps: &mut Vec<Step>) {
        let simple = std::mem::take(simple);
        if !simple.words.is_empty() || !simple.assigns.is_empty() || !simple.inputs.is_empty() {
            steps.push(Step::Simple(simple));
        }
    }

    fn comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.at += 1;
        }
    }

    /// A subshell, a pattern of `case`, a function's `()`, arithmetic.
    fn bracket(&mut self, simple: &mut Simple, steps: &mut Vec<Step>) {
        let function =
            simple.words.len() == 1 && simple.assigns.is_empty() && self.peek(0) == Some('(');
        let name = function.then(|| simple.words[0].plain()).flatten();
        if let Some(name) = name {
            let mut ahead = 1;
            while matches!(self.peek(ahead), Some(' ' | '\t')) {
                ahead += 1;
            }
            if self.peek(ahead) == Some(')') {
                *simple = Simple::default();
                self.at += ahead + 1;
                return self.function(name, steps);
            }
        }
        self.order = Order::Any;
        self.end(simple, steps);
        self.at += if self.next_is("((") { 2 } else { 1 };
    }

    /// The body of a function.
    fn function(&mut self, name: String, steps: &mut Vec<Step>) {
        self.order = Order::Any;
        while self.peek(0).is_some_and(char::is_whitespace) {
            self.at += 1;
        }
        let mut body = Vec::new();
        if self.depth < DEPTH_CAP {
            self.depth += 1;
            match self.peek(0) {
                Some('{') => {
                    self.at += 1;
                    self.list(&mut body);
                    self.at += 1;
                }
                Some('(') => {
                    self.at += 1;
                    let inner = self.balanced('(', ')');
                    let (inner, _) = steps_at(&inner, self.depth);
                    body = inner;
                }
                Some(_) | None => {
                    let line: String = self.rest().iter().take_while(|c| **c != '\n').collect();
                    body = steps_at(&line, self.depth).0;
                }
            }
            self.depth -= 1;
        }
        steps.push(Step::Function { name, body: Rc::new(body) });
    }

    /// The first word of a command; whether it closes the list.
    fn begins(&mut self, simple: &mut Simple, steps: &mut Vec<Step>) -> bool {
        let begun = self.at;
        let before = self.at;
        if let Some(assign) = self.assign() {
            simple.assigns.push(assign);
            return false;
        }
        self.at = before;
        let word = self.word();
        let plain = word.plain();
        match plain.as_deref() {
            Some("}") => {
                self.at = begun;
                return true;
            }
            Some("{") => {
                self.order = Order::Any;
                if self.depth < DEPTH_CAP {
                    self.depth += 1;
                    self.list(steps);
                    self.depth -= 1;
                    self.at += 1;
                }
            }
            Some(name) if RESERVED.contains(&name) => {
                if name != "time" {
                    self.order = Order::Any;
                }
            }
            Some("for" | "select") => self.loop_words(steps),
            Some("case" | "[[" | "trap") => {
                self.order = Order::Any;
                simple.words.push(word);
            }
            Some("function") => {
                self.blanks();
                let name = self.word().plain().unwrap_or_default();
                self.blanks();
                if self.peek(0) == Some('(') {
                    self.at += 1;
                    self.blanks();
                    self.at += usize::from(self.peek(0) == Some(')'));
                }
                self.function(name, steps);
            }
            Some(_) | None => simple.words.push(word),
        }
        false
    }

    fn blanks(&mut self) {
        while matches!(self.peek(0), Some(' ' | '\t')) || self.next_is("\\\n") {
            self.at += if self.peek(0) == Some('\\') { 2 } else { 1 };
        }
    }

    fn loop_words(&mut self, steps: &mut Vec<Step>) {
        self.order = Order::Any;
        self.blanks();
        if self.peek(0) == Some('(') {
            return;
        }
        let name = self.word().plain().unwrap_or_default();
        while self.peek(0).is_some_and(char::is_whitespace) {
            self.at += 1;
        }
        let mut words = Vec::new();
        let before = self.at;
        let listed =
            self.peek(0).is_some_and(|c| c == 'i') && self.word().plain().as_deref() == Some("in");
        if listed {
            loop {
                self.blanks();
                match self.peek(0) {
                    None | Some('\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>') => break,
                    Some(_) => words.push(self.word()),
                }
            }
        } else {
            self.at = before;
            words.push(Word(vec![Atom::Parameter {
                name: "@".into(),
                op: String::new(),
                quoted: true,
            }]));
        }
        steps.push(Step::Loop { name, words });
    }

    fn argument(&mut self, simple: &mut Simple) {
        let mut words = simple.words.iter().map_while(Word::plain);
        let first = words.find(|word| word != "command" && word != "builtin" && word != "--");
        let declares = first.is_some_and(|word| DECLARERS.contains(&word.as_str()));
        let before = self.at;
        if (declares || simple.words.is_empty())
            && let Some(assign) = self.assign()
        {
            simple.assigns.push(assign);
            return;
        }
        self.at = before;
        let word = self.word();
        simple.words.push(word);
    }

    /// `name=…`, where the next word assigns.
    fn assign(&mut self) -> Option<Assign> {
        let name: String =
            self.rest().iter().take_while(|c| c.is_ascii_alphanumeric() || **c == '_').collect();
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        self.at += name.len();
        let mut index = None;
        if self.peek(0) == Some('[') {
            self.at += 1;
            index = Some(self.balanced('[', ']'));
        }
        let append = self.peek(0) == Some('+');
        self.at += usize::from(append);
        if self.peek(0) != Some('=') {
            return None;
        }
        self.at += 1;
        if self.peek(0) != Some('(') {
            let value = match self.peek(0) {
                None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | ')') => {
                    Word::default()
                }
                Some(_) => self.word(),
            };
            return Some(Assign { name, append, index, array: false, values: vec![value] });
        }
        self.at += 1;
        let mut values = Vec::new();
        loop {
            while self.peek(0).is_some_and(char::is_whitespace) {
                self.at += 1;
            }
            match self.peek(0) {
                None | Some(')') => break,
                Some('#') => self.comment(),
                Some(';' | '&' | '|' | '<' | '>' | '(') => self.at += 1,
                Some('[') => {
                    // `[i]=value`
                    self.at += 1;
                    self.balanced('[', ']');
                    self.at += usize::from(self.peek(0) == Some('='));
                    values.push(self.word());
                }
                Some(_) => values.push(self.word()),
            }
        }
        self.at += 1;
        Some(Assign { name, append, index: None, array: true, values })
    }

    fn redirection(&mut self, simple: &mut Simple) {
        simple.redirected = true;
        let descriptor =
            |word: &Word| word.plain().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit()));
        let touches =
            self.at > 0 && self.letters.get(self.at - 1).is_some_and(|c| !c.is_whitespace());
        if touches && simple.words.last().is_some_and(descriptor) {
            simple.words.pop();
        }
        if self.next_is("<<<") {
            self.at += 3;
            self.blanks();
            let word = self.word();
            simple.inputs.push(word);
            return;
        }
        if self.next_is("<<") {
            self.at += 2;
            let tabs = self.peek(0) == Some('-');
            self.at += usize::from(tabs);
            self.blanks();
            let begun = self.at;
            let end = self.word().text();
            let quoted = self
                .letters
                .iter()
                .take(self.at)
                .skip(begun)
                .any(|c| matches!(c, '\'' | '"' | '\\'));
            self.here.push(Here { end, tabs, quoted });
            return;
        }
        if matches!(self.peek(1), Some('(')) {
            self.at += 2;
            let inner = self.balanced('(', ')');
            simple.words.push(Word(vec![Atom::Substitution {
                text: inner,
                quoted: true,
                process: true,
            }]));
            return;
        }
        while matches!(self.peek(0), Some('<' | '>' | '&' | '|')) {
            self.at += 1;
        }
        self.blanks();
        if self.peek(0).is_some_and(|c| !"\n;&|<>()".contains(c)) {
            let target = self.word();
            // Its commands run, its name is none.
            simple.inputs.extend(target.commands_only());
        }
    }

    /// The texts of here-documents: for the command that reads them, and as commands.
    fn here_documents(&mut self, steps: &mut Vec<Step>) {
        for Here { end, tabs, quoted } in std::mem::take(&mut self.here) {
            let mut body = String::new();
            while self.at < self.letters.len() {
                let line: String = self.rest().iter().take_while(|c| **c != '\n').collect();
                self.at = (self.at + line.chars().count() + 1).min(self.letters.len());
                let line = if tabs { line.trim_start_matches('\t') } else { &line };
                if line == end {
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            let word = if quoted { Word::quoted(&body) } else { Word::of_text(&body) };
            if let Some(Step::Simple(reader)) = steps.last_mut() {
                reader.inputs.push(word);
            } else {
                steps.push(Step::Simple(Simple { inputs: vec![word], ..Simple::default() }));
            }
        }
    }

    /// What stands before the closing sign, which is passed. The opening one is behind us.
    fn balanced(&mut self, open: char, close: char) -> String {
        let (text, at) = super::atoms::balanced(self.letters, self.at, open, close);
        self.at = at;
        text
    }

    fn word(&mut self) -> Word {
        let (word, at) = super::atoms::word(self.letters, self.at);
        // Whatever stands here, the reading goes on.
        self.at = at.max(self.at + 1);
        word
    }
}

fn steps_at(text: &str, depth: usize) -> (Vec<Step>, Order) {
    let letters: Vec<char> = text.chars().collect();
    let mut parser =
        Parser { letters: &letters, at: 0, depth, order: Order::Any, here: Vec::new() };
    let mut steps = Vec::new();
    if depth < DEPTH_CAP {
        while parser.at < letters.len() {
            parser.list(&mut steps);
            parser.at += 1;
        }
    }
    (steps, parser.order)
}
