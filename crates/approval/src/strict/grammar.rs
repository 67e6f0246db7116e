//! The strict parser: the part of the shell's grammar that `sh`, `dash` and `bash` read alike, by
//! recursive descent. Everything else is a [`ScriptError`], never guessed.
//!
//! Lists, pipelines, subshells, groups, `if`, `while`, `until`, `for` and `case` are followed, `$(…)`
//! and `$name` in words too. The result is flat: every simple command that could run, in any order
//! and however often. Depth is bounded, and each byte is read once.

use crate::strict::safe_env::{is_safe_loop_variable, is_safe_prefix};
use crate::strict::script::{ArgWord, ScriptError, SimpleCommand};

/// Deepest nesting. People write five; the bound keeps the stack small.
const DEPTH_CAP: usize = 40;

/// Words with a meaning where a command begins.
const RESERVED: &[&str] = &[
    "!", "{", "}", "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "in", "select", "then", "until", "while", "[[", "]]", "coproc",
];

/// Every simple command of a text.
pub(crate) fn read(text: &str) -> GrammarResult<Vec<SimpleCommand>> {
    let mut reader = GrammarReader { text, at: 0, depth: 0, found: Vec::new() };
    match reader.list(&[])? {
        ListEnd::End if reader.found.is_empty() => Err(ScriptError::Empty),
        ListEnd::End => Ok(reader.found),
        ListEnd::Bracket | ListEnd::Cases | ListEnd::Word(_) => Err(reader.misplaced()),
    }
}

/// Where a reading stands. The words are read in `quoting`.
pub(crate) struct GrammarReader<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
    depth: usize,
    found: Vec<SimpleCommand>,
}

/// The token that ended a list.
#[derive(Debug, PartialEq, Eq)]
enum ListEnd {
    End,
    Bracket,
    /// `;;`
    Cases,
    Word(&'static str),
}

/// A parsed part, or the reason why it cannot be parsed.
pub(crate) type GrammarResult<T> = Result<T, ScriptError>;

impl<'a> GrammarReader<'a> {
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(crate) fn next_is(&self, text: &str) -> bool {
        self.text.as_bytes()[self.at..].starts_with(text.as_bytes())
    }

    pub(crate) fn take(&mut self, text: &str) -> bool {
        let there = self.next_is(text);
        self.at += if there { text.len() } else { 0 };
        there
    }

    pub(crate) fn misplaced(&self) -> ScriptError {
        ScriptError::Misplaced(self.text[self.at..].chars().take(12).collect())
    }

    /// Commands until one of these words, a closing bracket or the end.
    fn list(&mut self, closers: &[&'static str]) -> GrammarResult<ListEnd> {
        self.depth += 1;
        if self.depth > DEPTH_CAP {
            return Err(ScriptError::Deep);
        }
        let close = self.commands(closers)?;
        self.depth -= 1;
        Ok(close)
    }

    fn commands(&mut self, closers: &[&'static str]) -> GrammarResult<ListEnd> {
        loop {
            self.lines();
            match self.peek() {
                None => return Ok(ListEnd::End),
                Some(b')') => return Ok(ListEnd::Bracket),
                Some(b';') if self.next_is(";;") => return Ok(ListEnd::Cases),
                Some(_) => {}
            }
            if let Some(word) = self.bare()
                && let Some(closer) = closers.iter().find(|closer| **closer == word)
            {
                self.at += closer.len();
                return Ok(ListEnd::Word(closer));
            }
            self.and_or()?;
            match self.peek() {
                Some(b';') if !self.next_is(";;") => self.sign(1)?,
                Some(b'&') => self.sign(1)?,
                Some(b'\n' | b')' | b';') | None => {}
                Some(_) => return Err(self.misplaced()),
            }
        }
    }

    fn and_or(&mut self) -> GrammarResult<()> {
        loop {
            self.blanks();
            while self.bare() == Some("!") {
                self.at += 1;
                self.blanks();
            }
            self.command()?;
            self.blanks();
            match self.next_is("&&") || self.next_is("||") {
                true => self.sign(2)?,
                false if self.next_is("|") && !self.next_is("|&") => self.sign(1)?,
                false => return Ok(()),
            }
            self.lines();
        }
    }

    /// Skips an operator. A line continuation inside it would make it another operator.
    pub(crate) fn sign(&mut self, length: usize) -> GrammarResult<()> {
        self.at += length;
        if self.next_is("\\\n") { Err(self.misplaced()) } else { Ok(()) }
    }

    fn command(&mut self) -> GrammarResult<()> {
        if self.next_is("((") {
            return Err(ScriptError::Keyword("((".into()));
        }
        if self.next_is("(") {
            self.sign(1)?;
            self.body(ListEnd::Bracket)?;
            self.at += 1;
            return self.redirections();
        }
        let Some(word) = self.bare().filter(|word| RESERVED.contains(word)) else {
            return self.simple();
        };
        let word = word.to_owned();
        self.at += word.len();
        match word.as_str() {
            "{" => self.body(ListEnd::Word("}"))?,
            "if" => self.branches()?,
            "while" | "until" => {
                self.body(ListEnd::Word("do"))?;
                self.body(ListEnd::Word("done"))?;
            }
            "for" => self.for_loop()?,
            "case" => self.cases()?,
            "function" => return Err(ScriptError::Function),
            _ => return Err(ScriptError::Keyword(word)),
        }
        self.redirections()
    }

    /// At least one command, up to the closing word.
    fn body(&mut self, close: ListEnd) -> GrammarResult<()> {
        let closers: &[&'static str] = match &close {
            ListEnd::Word(word) => &[*word],
            ListEnd::End | ListEnd::Bracket | ListEnd::Cases => &[],
        };
        let begun = self.at;
        if self.list(closers)? != close {
            return Err(self.misplaced());
        }
        let length = match &close {
            ListEnd::Word(word) => word.len(),
            ListEnd::End | ListEnd::Bracket | ListEnd::Cases => 0,
        };
        let empty = self.text[begun..self.at - length].trim().is_empty();
        if empty { Err(self.misplaced()) } else { Ok(()) }
    }

    fn branches(&mut self) -> GrammarResult<()> {
        loop {
            self.body(ListEnd::Word("then"))?;
            match self.list(&["elif", "else", "fi"])? {
                ListEnd::Word("elif") => {}
                ListEnd::Word("else") => return self.body(ListEnd::Word("fi")),
                ListEnd::Word(_) => return Ok(()),
                ListEnd::End | ListEnd::Bracket | ListEnd::Cases => return Err(self.misplaced()),
            }
        }
    }

    fn for_loop(&mut self) -> GrammarResult<()> {
        self.blanks();
        let name = self.bare().ok_or_else(|| self.misplaced())?;
        if !is_safe_loop_variable(name) {
            return Err(ScriptError::Assignment(name.to_owned()));
        }
        self.at += name.len();
        self.lines();
        if self.bare() == Some("in") {
            self.at += 2;
            while self.another_word() {
                self.word()?;
            }
        }
        self.take(";");
        self.lines();
        match self.bare() {
            Some("do") => self.at += 2,
            _ => return Err(self.misplaced()),
        }
        self.body(ListEnd::Word("done"))
    }

    fn cases(&mut self) -> GrammarResult<()> {
        self.blanks();
        self.word()?;
        self.lines();
        match self.bare() {
            Some("in") => self.at += 2,
            _ => return Err(self.misplaced()),
        }
        loop {
            self.lines();
            if self.bare() == Some("esac") {
                self.at += 4;
                return Ok(());
            }
            self.take("(");
            loop {
                self.blanks();
                self.word()?;
                self.blanks();
                if !self.take("|") {
                    break;
                }
            }
            if !self.take(")") {
                return Err(self.misplaced());
            }
            match self.list(&["esac"])? {
                ListEnd::Cases => self.at += 2,
                ListEnd::Word(_) => return Ok(()),
                ListEnd::End | ListEnd::Bracket => return Err(self.misplaced()),
            }
        }
    }

    /// `$(` is behind us: the commands up to the closing bracket.
    pub(crate) fn substitution(&mut self) -> GrammarResult<()> {
        match self.list(&[])? {
            ListEnd::Bracket => {
                self.at += 1;
                Ok(())
            }
            ListEnd::End => Err(ScriptError::Open('(')),
            ListEnd::Cases | ListEnd::Word(_) => Err(self.misplaced()),
        }
    }

    fn simple(&mut self) -> GrammarResult<()> {
        let begun = self.at;
        let mut words: Vec<ArgWord> = Vec::new();
        let mut exported = None;
        while self.another_word() {
            if self.redirection()? {
                continue;
            }
            match self.assignment().filter(|_| words.is_empty()) {
                Some(name) => {
                    let value = self.assigned(name)?;
                    match (is_safe_prefix(name, &value), is_safe_loop_variable(name)) {
                        (true, _) => {}
                        (false, true) => exported = Some(name),
                        (false, false) => return Err(ScriptError::Assignment(name.to_owned())),
                    }
                }
                None => words.push(self.word()?),
            }
        }
        match (words.first(), exported) {
            (Some(_), Some(name)) => return Err(ScriptError::Assignment(name.to_owned())),
            (Some(ArgWord::Known(program)), None) if is_name(program) => {
                self.found.push(SimpleCommand { words });
            }
            (Some(_), None) => return Err(ScriptError::Program),
            (None, None) if self.at == begun => return Err(self.misplaced()),
            // Nothing but variables of the shell's own, which no program gets.
            (None, None | Some(_)) => {}
        }
        match self.peek() {
            Some(b'(') => Err(ScriptError::Function),
            Some(_) | None => Ok(()),
        }
    }

    /// The value behind `name=`, which is still to come.
    fn assigned(&mut self, name: &str) -> GrammarResult<ArgWord> {
        self.at += name.len();
        if !self.take("=") {
            return Err(ScriptError::Assignment(name.to_owned()));
        }
        match self.in_word() {
            true => self.word(),
            false => Ok(ArgWord::Known(String::new())),
        }
    }
}

/// Letters of a program's name. Beyond ASCII one letter looks like another.
fn is_name(program: &str) -> bool {
    !program.is_empty() && program.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}
