//! Cuts a shell text into steps with unexpanded words. It accepts any text. A part that it cannot
//! parse becomes an additional command; no command is ever lost.

use super::Certainty;
use super::atoms;
use super::redirect::Here;
use super::step::ShellWord;
use super::step::{Assign, Definition, ParsedCommand, ShellStep, StepOrder};

/// Deepest nesting of groups and functions.
pub(super) const DEPTH_CAP: usize = 30;

/// Words after which a command begins, with their effect on the order.
const RESERVED: &[&str] = &[
    "!", "{", "}", "do", "done", "elif", "else", "esac", "fi", "if", "then", "time", "until",
    "while", "coproc",
];

/// Builtins behind which words assign.
const DECLARERS: &[&str] = &["declare", "export", "local", "readonly", "typeset"];

/// Every step of a text.
pub(super) fn steps(text: &str) -> (Vec<ShellStep>, StepOrder, Certainty) {
    let letters: Vec<char> = text.chars().collect();
    let mut parser = Parser::new(&letters, 0, Until::End, 0);
    let mut steps = Vec::new();
    parser.whole(&mut steps);
    (steps, parser.order, parser.certainty)
}

/// Where the bracket closes that was opened before this place, and how sure that is.
pub(super) fn bracketed(letters: &[char], at: usize, depth: usize) -> (usize, Certainty) {
    let (at, _, certainty) = inner(letters, at, depth);
    (at, certainty)
}

fn inner(letters: &[char], at: usize, depth: usize) -> (usize, Vec<ShellStep>, Certainty) {
    if depth >= DEPTH_CAP {
        let end = atoms::closed(letters, at, '(', ')').map_or(letters.len(), |(_, end)| end - 1);
        return (end, Vec::new(), Certainty::InDoubt);
    }
    let mut parser = Parser::new(letters, at, Until::Bracket, depth + 1);
    let mut steps = Vec::new();
    parser.whole(&mut steps);
    (parser.at.min(letters.len()), steps, parser.certainty)
}

/// The end of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    End,
    /// A `)` that was opened before it.
    Bracket,
}

pub(super) struct Parser<'a> {
    pub(super) letters: &'a [char],
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) order: StepOrder,
    pub(super) certainty: Certainty,
    until: Until,
    /// The bracket that ends the text was met.
    stopped: bool,
    /// Subshells that are open.
    open: usize,
    /// `case` that are open.
    pub(super) cases: usize,
    /// `if`, loops and `case` that are open, and how many remain where the list ends.
    pub(super) nesting: usize,
    pub(super) ends_at: Option<usize>,
    /// The steps before the last `&&`, `||`, `|` or `&` of this line.
    joined: Option<usize>,
    /// Here-documents whose text begins on the next line.
    pub(super) here: Vec<Here>,
    pub(super) heres: usize,
    /// How many letters may still be looked ahead, so that a text takes no quadratic time.
    ahead: usize,
}

impl<'a> Parser<'a> {
    fn new(letters: &'a [char], at: usize, until: Until, depth: usize) -> Self {
        Self {
            letters,
            at,
            depth,
            order: StepOrder::Straight,
            certainty: Certainty::Sure,
            until,
            stopped: false,
            open: 0,
            cases: 0,
            nesting: 0,
            ends_at: None,
            joined: None,
            here: Vec::new(),
            heres: 0,
            ahead: 8 * (letters.len() - at.min(letters.len())) + 64,
        }
    }

    /// Parses all steps, even if a bracket closes too early.
    fn whole(&mut self, steps: &mut Vec<ShellStep>) {
        self.list(steps);
        while !self.stopped && self.at < self.letters.len() {
            // A `}` that closes nothing.
            self.mark_uncertain();
            self.at += 1;
            self.list(steps);
        }
        let unfinished = !self.here.is_empty() || self.nesting > 0 || self.open > 0;
        if unfinished || (self.until == Until::Bracket && !self.stopped) {
            self.mark_uncertain();
        }
    }

    /// Whether a definition here is always reached, and holds for everything after it.
    pub(super) fn defined(&self) -> Definition {
        let inside = self.nesting + self.open + self.depth > 0 || self.until == Until::Bracket;
        match inside || self.joined.is_some() {
            true => Definition::Perhaps,
            false => Definition::Always,
        }
    }

    /// From here on, bash may read otherwise.
    pub(super) fn mark_uncertain(&mut self) {
        self.certainty = Certainty::InDoubt;
    }

    pub(super) fn peek(&self, ahead: usize) -> Option<char> {
        self.letters.get(self.at + ahead).copied()
    }

    pub(super) fn rest(&self) -> &[char] {
        self.letters.get(self.at..).unwrap_or_default()
    }

    pub(super) fn skip(&mut self, count: usize) {
        self.at = (self.at + count).min(self.letters.len());
    }

    pub(super) fn place(&self) -> usize {
        self.at
    }

    pub(super) fn back_to(&mut self, place: usize) {
        self.at = place;
    }

    pub(super) fn next_is(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, c)| self.peek(ahead) == Some(c))
    }

    /// Steps up to a `}` where a command could begin, or the end.
    pub(super) fn list(&mut self, steps: &mut Vec<ShellStep>) {
        let mut simple = ParsedCommand::default();
        while let Some(c) = self.peek(0) {
            if self.stopped || self.ends_at == Some(self.nesting) {
                break;
            }
            match c {
                '\n' => {
                    self.end(&mut simple, steps);
                    self.at += 1;
                    self.here_documents(steps);
                    // Behind `&&`, the line goes on.
                    self.joined = self.joined.filter(|begun| *begun == steps.len());
                }
                ' ' | '\t' | '\r' => self.at += 1,
                '\\' if self.peek(1) == Some('\n') => self.at += 2,
                '#' => self.comment(),
                ';' | '&' | '|' => {
                    if self.next_is("&>") {
                        simple.splits.push(simple.words.len());
                        self.at += 1;
                        continue;
                    }
                    self.end(&mut simple, steps);
                    if c != ';' {
                        self.order = StepOrder::Any;
                        self.joined = Some(steps.len());
                    }
                    if c == ';' {
                        self.joined = None;
                    }
                    if c == ';' && matches!(self.peek(1), Some(';' | '&')) {
                        self.next_case(steps);
                    } else {
                        self.at += 1;
                    }
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

    fn end(&mut self, simple: &mut ParsedCommand, steps: &mut Vec<ShellStep>) {
        let simple = std::mem::take(simple);
        let more: Vec<ParsedCommand> = simple
            .splits
            .iter()
            .filter(|at| (1..simple.words.len()).contains(*at))
            .map(|at| ParsedCommand {
                words: simple.words[*at..].to_vec(),
                ..ParsedCommand::default()
            })
            .collect();
        let empty = simple.words.is_empty() && simple.assigns.is_empty();
        let aside = [simple.inputs.len(), simple.asides.len(), simple.files.len()];
        if !empty || aside != [0; 3] || !simple.heres.is_empty() {
            steps.push(ShellStep::Simple(simple));
        }
        steps.extend(more.into_iter().map(ShellStep::Simple));
    }

    pub(super) fn comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.at += 1;
        }
    }

    /// A subshell, a pattern of `case`, a function's `()`, arithmetic.
    fn bracket(&mut self, simple: &mut ParsedCommand, steps: &mut Vec<ShellStep>) {
        let function =
            simple.words.len() == 1 && simple.assigns.is_empty() && self.peek(0) == Some('(');
        let name = function.then(|| simple.words[0].plain()).flatten();
        if let Some(name) = name {
            let mut ahead = 1;
            while matches!(self.peek(ahead), Some(' ' | '\t')) {
                ahead += 1;
            }
            if self.peek(ahead) == Some(')') {
                *simple = ParsedCommand::default();
                self.at += ahead + 1;
                return self.function(name, steps);
            }
        }
        let within = !simple.words.is_empty() || !simple.assigns.is_empty();
        self.order = StepOrder::Any;
        self.end(simple, steps);
        if self.peek(0) == Some('(') {
            if within {
                // In the middle of a command it is for other shells.
                self.mark_uncertain();
            } else if self.next_is("((") && self.arithmetic(steps) {
                return;
            }
            self.open += 1;
        } else if self.open > 0 {
            self.open -= 1;
        } else if self.until == Until::Bracket {
            self.stopped = true;
            return;
        } else {
            self.mark_uncertain();
        }
        self.at += 1;
    }

    /// The steps up to the bracket that closes. The opening one is behind us.
    pub(super) fn inner(&mut self) -> Vec<ShellStep> {
        let (end, steps, certainty) = inner(self.letters, self.at, self.depth);
        self.certainty = self.certainty.max(certainty);
        self.at = (end + 1).min(self.letters.len());
        steps
    }

    /// The text of `((…))`, whose first bracket is here, where its brackets close together.
    pub(super) fn arithmetic_text(&mut self) -> Option<String> {
        let (text, at) = self.closed(self.at + 2, '(', ')')?;
        (self.letters.get(at) == Some(&')')).then(|| {
            self.at = at + 1;
            text
        })
    }

    /// Parses the first word of a command. Returns true if it closes the list.
    fn begins(&mut self, simple: &mut ParsedCommand, steps: &mut Vec<ShellStep>) -> bool {
        let begun = self.at;
        let before = self.at;
        if let Some(assign) = self.assign(&mut simple.asides) {
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
                self.order = StepOrder::Any;
                self.group(steps);
            }
            Some(name) if RESERVED.contains(&name) => self.reserved(name),
            Some("for" | "select") => self.loop_words(steps),
            Some("case") => self.case(steps),
            Some("[[") => self.test(steps),
            Some("trap") => {
                self.order = StepOrder::Any;
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

    fn reserved(&mut self, name: &str) {
        match name {
            "if" | "while" | "until" => self.nesting += 1,
            "fi" | "done" | "esac" => {
                self.nesting = self.nesting.saturating_sub(1);
                if name == "esac" {
                    self.cases = self.cases.saturating_sub(1);
                }
            }
            // It may have a name before its command.
            "coproc" => self.mark_uncertain(),
            "time" => {
                self.blanks();
                while self.next_is("-p ") || self.next_is("-- ") {
                    self.at += 3;
                    self.blanks();
                }
                return;
            }
            _ => {}
        }
        self.order = StepOrder::Any;
    }

    pub(super) fn blanks(&mut self) {
        while matches!(self.peek(0), Some(' ' | '\t')) || self.next_is("\\\n") {
            self.at += if self.peek(0) == Some('\\') { 2 } else { 1 };
        }
    }

    fn argument(&mut self, simple: &mut ParsedCommand) {
        let mut words = simple.words.iter().map_while(ShellWord::plain);
        let first = words.find(|word| word != "command" && word != "builtin" && word != "--");
        let declares = first.is_some_and(|word| DECLARERS.contains(&word.as_str()));
        let before = self.at;
        if (declares || simple.words.is_empty())
            && let Some(assign) = self.assign(&mut simple.asides)
        {
            simple.assigns.push(assign);
            return;
        }
        self.at = before;
        let word = self.word();
        simple.words.push(word);
    }

    /// `name=…`, where the next word assigns.
    fn assign(&mut self, asides: &mut Vec<ShellWord>) -> Option<Assign> {
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
        // Only now: where nothing is assigned, the same text is read once more as a word.
        if let Some(text) = index.as_deref().filter(|text| text.contains(['$', '`'])) {
            asides.push(ShellWord::commands_of(text, self.depth + 1));
        }
        if self.peek(0) != Some('(') {
            let value = match self.peek(0) {
                None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | ')') => {
                    ShellWord::default()
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
                Some(';' | '&' | '|' | '<' | '>' | '(') => {
                    self.mark_uncertain();
                    self.at += 1;
                }
                Some('[') => {
                    // `[i]=value`
                    self.at += 1;
                    let index = self.balanced('[', ']');
                    if index.contains(['$', '`']) {
                        asides.push(ShellWord::commands_of(&index, self.depth + 1));
                    }
                    self.at += usize::from(self.peek(0) == Some('='));
                    values.push(self.word());
                }
                Some(_) => values.push(self.word()),
            }
        }
        if self.peek(0).is_none() {
            self.mark_uncertain();
        }
        self.at += 1;
        Some(Assign { name, append, index: None, array: true, values })
    }

    /// Looks ahead for the closing sign, as long as there was not too much of that.
    fn closed(&mut self, begun: usize, open: char, close: char) -> Option<(String, usize)> {
        if self.ahead == 0 {
            self.mark_uncertain();
            return None;
        }
        let closed = atoms::closed(self.letters, begun, open, close);
        let end = closed.as_ref().map_or(self.letters.len(), |(_, end)| *end);
        self.ahead = self.ahead.saturating_sub(end.saturating_sub(begun) + 1);
        closed
    }

    /// The text before the closing sign, which is skipped. The opening sign was parsed before.
    fn balanced(&mut self, open: char, close: char) -> String {
        let begun = self.at.min(self.letters.len());
        let closed = self.closed(begun, open, close);
        let (text, at) = closed.unwrap_or_else(|| {
            self.mark_uncertain();
            (self.letters[begun..].iter().collect(), self.letters.len())
        });
        self.at = at;
        text
    }

    pub(super) fn word(&mut self) -> ShellWord {
        let (word, at, certainty) = atoms::word(self.letters, self.at, self.depth);
        self.certainty = self.certainty.max(certainty);
        // Always make progress, even on an unexpected character.
        self.at = at.max(self.at + 1);
        word
    }
}

pub(super) fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}
