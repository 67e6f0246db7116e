//! Commands that hold others: groups, loops, `case`, functions; and those whose words are no commands.

use super::parse::{DEPTH_CAP, Parser};
use super::step::{Atom, ShellWord};
use super::step::{ParsedCommand, ShellStep, StepOrder};
use std::rc::Rc;

/// Words that open a command that a function can have for its body.
const OPENING: &[&str] = &["if", "for", "while", "until", "select", "case"];

impl Parser<'_> {
    /// `{ …; }`, whose brace is behind us.
    pub(super) fn group(&mut self, steps: &mut Vec<ShellStep>) {
        if self.depth >= DEPTH_CAP {
            return self.mark_uncertain();
        }
        self.depth += 1;
        let before = self.ends_at.take();
        self.list(steps);
        self.ends_at = before;
        self.depth -= 1;
        match self.peek(0) {
            Some('}') => self.skip(1),
            Some(_) | None => self.mark_uncertain(),
        }
    }

    /// The body of a function: any command that holds others.
    pub(super) fn function(&mut self, name: String, steps: &mut Vec<ShellStep>) {
        self.order = StepOrder::Any;
        let defined = self.defined();
        self.lines();
        let mut body = Vec::new();
        let first: String =
            self.rest().iter().take_while(|c| c.is_ascii_alphabetic()).take(9).collect();
        match self.peek(0) {
            _ if self.depth >= DEPTH_CAP => self.mark_uncertain(),
            Some('{') => {
                self.skip(1);
                self.group(&mut body);
            }
            Some('(') if !self.next_is("((") => {
                self.skip(1);
                body = self.inner();
            }
            Some(_) if OPENING.contains(&first.as_str()) => self.compound(&first, &mut body),
            // A test, or a simple command, which only some shells take: it is read where it stands.
            Some(_) | None => self.mark_uncertain(),
        }
        steps.push(ShellStep::Function { name, body: Rc::new(body), defined });
    }

    /// Parses a compound command from its first word to its closing word.
    fn compound(&mut self, first: &str, steps: &mut Vec<ShellStep>) {
        self.depth += 1;
        let before = self.ends_at.take();
        let nesting = self.nesting;
        self.skip(first.len());
        match first {
            "for" | "select" => self.loop_words(steps),
            "case" => self.case(steps),
            _ => self.nesting += 1,
        }
        self.ends_at = Some(nesting);
        self.list(steps);
        self.ends_at = before;
        self.depth -= 1;
    }

    /// `for name in words`; the body follows.
    pub(super) fn loop_words(&mut self, steps: &mut Vec<ShellStep>) {
        self.order = StepOrder::Any;
        self.nesting += 1;
        self.blanks();
        if self.peek(0) == Some('(') {
            return;
        }
        let name = self.word().plain().unwrap_or_default();
        while self.peek(0).is_some_and(char::is_whitespace) {
            self.skip(1);
        }
        let mut words = Vec::new();
        let before = self.place();
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
            self.back_to(before);
            words.push(ShellWord(vec![Atom::Parameter {
                name: "@".into(),
                op: String::new(),
                quoted: true,
            }]));
        }
        steps.push(ShellStep::Loop { name, words });
    }

    /// `case word in`, and the first pattern.
    pub(super) fn case(&mut self, steps: &mut Vec<ShellStep>) {
        self.order = StepOrder::Any;
        self.nesting += 1;
        self.cases += 1;
        self.blanks();
        let word = self.word();
        steps.push(of_builtin("case", vec![word]));
        self.lines();
        if self.word().plain().as_deref() != Some("in") {
            self.mark_uncertain();
        }
        self.pattern(steps);
    }

    /// `;;`, `;&` or `;;&`: a pattern follows.
    pub(super) fn next_case(&mut self, steps: &mut Vec<ShellStep>) {
        self.skip(if self.next_is(";;&") { 3 } else { 2 });
        match self.cases {
            0 => self.mark_uncertain(),
            _ => self.pattern(steps),
        }
    }

    /// A pattern of `case` up to its `)`, or `esac`, which stays. Only substitutions in it run.
    fn pattern(&mut self, steps: &mut Vec<ShellStep>) {
        let mut words = Vec::new();
        let mut first = true;
        loop {
            self.lines();
            let place = self.place();
            match self.peek(0) {
                Some(')') => {
                    self.skip(1);
                    break;
                }
                Some('|') => self.skip(1),
                Some('(') if first => self.skip(1),
                None | Some(';' | '&' | '<' | '>' | '(') => {
                    self.mark_uncertain();
                    break;
                }
                Some(_) => {
                    let word = self.word();
                    if first && word.plain().as_deref() == Some("esac") {
                        self.back_to(place);
                        break;
                    }
                    words.push(word);
                }
            }
            first = false;
        }
        steps.push(of_builtin("case", words));
    }

    /// `[[ … ]]`: its signs join no commands.
    pub(super) fn test(&mut self, steps: &mut Vec<ShellStep>) {
        self.order = StepOrder::Any;
        let mut words = Vec::new();
        loop {
            while self.peek(0).is_some_and(|c| c.is_whitespace() || ";&|<>()".contains(c)) {
                self.skip(1);
            }
            if matches!(self.peek(0), None | Some('#')) {
                self.mark_uncertain();
                break;
            }
            let word = self.word();
            if word.plain().as_deref() == Some("]]") {
                break;
            }
            words.push(word);
        }
        steps.push(of_builtin("[[", words));
    }

    /// Parses `((…))` and returns true, or false if it is something else. As in bash, it is two
    /// subshells if the brackets do not close together.
    pub(super) fn arithmetic(&mut self, steps: &mut Vec<ShellStep>) -> bool {
        let Some(text) = self.arithmetic_text() else { return false };
        if operands_touch(&text) {
            // An error of bash's, and a command of other shells.
            self.mark_uncertain();
        }
        let asides = vec![ShellWord::commands_of(&text, self.depth + 1)];
        steps.push(ShellStep::Simple(ParsedCommand { asides, ..ParsedCommand::default() }));
        true
    }

    /// Passes blanks, line ends and comments.
    pub(super) fn lines(&mut self) {
        loop {
            self.blanks();
            match self.peek(0) {
                Some('#') => self.comment(),
                Some(c) if c.is_whitespace() => self.skip(1),
                Some(_) | None => return,
            }
        }
    }
}

fn of_builtin(program: &str, words: Vec<ShellWord>) -> ShellStep {
    let words = std::iter::once(ShellWord::quoted(program)).chain(words).collect();
    ShellStep::Simple(ParsedCommand { words, ..ParsedCommand::default() })
}

/// `rm f`: two names with nothing but blanks between them are no arithmetic.
fn operands_touch(text: &str) -> bool {
    let is_operand = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
    let (mut operand, mut blank) = (false, false);
    for c in text.chars() {
        if c.is_whitespace() {
            blank = true;
        } else if operand && blank && is_operand(c) {
            return true;
        } else {
            (operand, blank) = (is_operand(c), false);
        }
    }
    false
}
