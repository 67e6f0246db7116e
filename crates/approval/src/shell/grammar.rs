//! The shell's grammar by recursive descent. Everything that is not understood is a
//! [`ScriptError`], never guessed.
//!
//! Lists, pipelines, subshells, groups, functions, loops, branches and tests are followed, also in
//! `$(…)` and backquotes. The result is flat: every simple command that could run, in any order and
//! however often. A form that `sh`, `dash` and `bash` read differently, or that changes the programs, is
//! an obstacle for rules that allow. Depth is bounded, and each byte is read a bounded number of times.

use crate::shell::safe_env::{is_safe_loop_variable, is_safe_prefix};
use crate::shell::script::{ArgWord, Around, Input, Script, ScriptError, SimpleCommand};

/// Deepest nesting. People write five; the bound keeps the stack small.
const DEPTH_CAP: usize = 40;

/// Words with a meaning where a command begins.
const RESERVED: &[&str] = &[
    "!", "{", "}", "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "in", "select", "then", "until", "while", "[[", "]]", "coproc",
];

/// Reads a text.
pub(crate) fn read(text: &str) -> GrammarResult<Script> {
    let mut reader = GrammarReader::new(text, Script::default(), 0);
    match reader.list(&[]) {
        Ok(ListEnd::End) => {}
        Ok(ListEnd::Bracket | ListEnd::Cases | ListEnd::Word(_)) => return Err(reader.misplaced()),
        Err(why) => return Err(why),
    }
    reader.no_document_missing()?;
    let mut script = reader.script;
    if script.commands.is_empty() {
        script.bar(ScriptError::Empty);
    }
    Ok(script)
}

/// The commands of a text that a rule can allow.
pub(crate) fn read_plain(text: &str) -> GrammarResult<Vec<SimpleCommand>> {
    read(text)?.plain()
}

/// Where a reading stands. The words are read in `quoting`.
pub(crate) struct GrammarReader<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
    pub(crate) depth: usize,
    /// Here-documents of which the text is still to come.
    pub(crate) pending: Vec<PendingDocument>,
    /// How many `$(` are open.
    pub(crate) substitutions: usize,
    pub(crate) script: Script,
}

/// A here-document that begins at the next line.
#[derive(Debug)]
pub(crate) struct PendingDocument {
    pub(crate) number: usize,
    pub(crate) end: String,
    pub(crate) tabs: Tabs,
    pub(crate) kind: DocumentKind,
    pub(crate) substitutions: usize,
}

/// Whether the tabs at the beginning of a line belong to the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tabs {
    Kept,
    Dropped,
}

/// Whether the shell replaces something in a here-document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DocumentKind {
    Literal,
    Expanded,
}

/// The token that ended a list.
#[derive(Debug, PartialEq, Eq)]
enum ListEnd {
    End,
    Bracket,
    /// `;;`, `;&` or `;;&`
    Cases,
    Word(&'static str),
}

/// A parsed part, or the reason why it cannot be parsed.
pub(crate) type GrammarResult<T> = Result<T, ScriptError>;

impl<'a> GrammarReader<'a> {
    pub(crate) fn new(text: &'a str, script: Script, depth: usize) -> Self {
        Self { text, at: 0, depth, pending: Vec::new(), substitutions: 0, script }
    }

    /// Notes why no rule can allow the text.
    pub(crate) fn bar(&mut self, why: ScriptError) {
        self.script.bar(why);
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(crate) fn next_is(&self, text: &str) -> bool {
        // Asked often, and mostly in vain.
        self.peek() == text.bytes().next() && self.text[self.at..].starts_with(text)
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
        self.deeper(|reader| reader.commands(closers))
    }

    pub(crate) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> GrammarResult<T>,
    ) -> GrammarResult<T> {
        self.depth += 1;
        if self.depth > DEPTH_CAP {
            return Err(ScriptError::Deep);
        }
        let part = read(self)?;
        self.depth -= 1;
        Ok(part)
    }

    /// All commands of a text, which is part of another.
    pub(crate) fn whole(&mut self) -> GrammarResult<()> {
        match self.list(&[])? {
            ListEnd::End => self.no_document_missing(),
            ListEnd::Bracket | ListEnd::Cases | ListEnd::Word(_) => Err(self.misplaced()),
        }
    }

    fn commands(&mut self, closers: &[&'static str]) -> GrammarResult<ListEnd> {
        loop {
            self.lines()?;
            match self.peek() {
                None => return Ok(ListEnd::End),
                Some(b')') => return Ok(ListEnd::Bracket),
                Some(b';') if self.ends_case() => return Ok(ListEnd::Cases),
                Some(_) => {}
            }
            if let Some(closer) = closers.iter().find(|closer| self.keyword(closer)) {
                self.at += closer.len();
                return Ok(ListEnd::Word(closer));
            }
            self.and_or()?;
            match self.peek() {
                Some(b';') if !self.ends_case() => self.sign(1)?,
                Some(b'&') => self.sign(1)?,
                Some(b'\n' | b')' | b';') | None => {}
                Some(_) => return Err(self.misplaced()),
            }
        }
    }

    fn ends_case(&self) -> bool {
        self.next_is(";;") || self.next_is(";&")
    }

    fn and_or(&mut self) -> GrammarResult<()> {
        let mut piped = false;
        loop {
            let begin = self.script.commands.len();
            self.blanks();
            while self.keyword("!") {
                self.at += 1;
                self.blanks();
            }
            self.timed();
            self.command()?;
            if piped {
                self.hand_input(begin);
            }
            self.blanks();
            piped = self.next_is("|") && !self.next_is("||");
            match self.next_is("&&") || self.next_is("||") {
                true => self.sign(2)?,
                false if self.next_is("|&") => {
                    self.bar(ScriptError::Keyword("|&".into()));
                    self.sign(2)?;
                }
                false if self.next_is("|") => self.sign(1)?,
                false => return Ok(()),
            }
            self.lines()?;
        }
    }

    /// Passes `time` before anything but a plain command, which it is a program for.
    fn timed(&mut self) {
        let begun = self.at;
        if !self.keyword("time") {
            return;
        }
        self.at += 4;
        self.blanks();
        if self.keyword("-p") {
            self.at += 2;
            self.blanks();
        }
        match self.peek() == Some(b'(') || self.bare().is_some_and(|it| RESERVED.contains(&it)) {
            true => self.bar(ScriptError::Keyword("time".into())),
            false => self.at = begun,
        }
    }

    /// Skips an operator. A line continuation inside it would make it another operator.
    pub(crate) fn sign(&mut self, length: usize) -> GrammarResult<()> {
        self.at += length;
        if self.next_is("\\\n") { Err(self.misplaced()) } else { Ok(()) }
    }

    fn command(&mut self) -> GrammarResult<()> {
        let begin = self.script.commands.len();
        if self.next_is("((") {
            self.bar(ScriptError::Keyword("((".into()));
            if self.arithmetic(2)? {
                return self.redirections(begin);
            }
        }
        if self.next_is("(") {
            // `((` is no arithmetic here, and its second sign begins another subshell.
            self.sign(1)?;
            self.body(ListEnd::Bracket)?;
            self.at += 1;
            return self.redirections(begin);
        }
        let Some(word) = self.bare().filter(|word| RESERVED.contains(word)) else {
            return self.simple();
        };
        self.at += word.len();
        match word {
            "{" => self.body(ListEnd::Word("}"))?,
            "if" => self.branches()?,
            "while" | "until" => {
                self.body(ListEnd::Word("do"))?;
                self.body(ListEnd::Word("done"))?;
            }
            "for" => self.for_loop()?,
            "select" => {
                self.bar(ScriptError::Keyword(word.to_owned()));
                self.for_loop()?;
            }
            "case" => self.cases()?,
            "function" => return self.function(),
            "[[" => {
                self.bar(ScriptError::Keyword(word.to_owned()));
                self.test()?;
            }
            "coproc" => {
                self.bar(ScriptError::Keyword(word.to_owned()));
                self.blanks();
                return self.deeper(Self::command);
            }
            _ => return Err(ScriptError::Keyword(word.to_owned())),
        }
        self.redirections(begin)
    }

    /// Behind the keyword `function`.
    fn function(&mut self) -> GrammarResult<()> {
        self.bar(ScriptError::Function);
        self.blanks();
        self.word()?;
        self.blanks();
        if self.take("(") {
            self.blanks();
            if !self.take(")") {
                return Err(self.misplaced());
            }
        }
        self.function_body()
    }

    fn function_body(&mut self) -> GrammarResult<()> {
        self.bar(ScriptError::Function);
        self.lines()?;
        self.deeper(Self::command)
    }

    /// Behind `[[`: words and signs, up to `]]`.
    fn test(&mut self) -> GrammarResult<()> {
        loop {
            self.lines()?;
            match self.peek() {
                None => return Err(ScriptError::Open('[')),
                Some(_) if self.keyword("]]") => {
                    self.at += 2;
                    return Ok(());
                }
                Some(_) if self.in_word() || self.next_is("<(") || self.next_is(">(") => {
                    let word = self.word()?;
                    self.script.values.push(word);
                }
                Some(_) => self.at += 1,
            }
        }
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
        if self.next_is("((") {
            self.bar(ScriptError::Keyword("((".into()));
            if !self.arithmetic(2)? {
                return Err(self.misplaced());
            }
            self.blanks();
        } else {
            let name = self.bare().ok_or_else(|| self.misplaced())?;
            if !is_safe_loop_variable(name) {
                self.bar(ScriptError::Assignment(name.to_owned()));
            }
            self.at += name.len();
            self.lines()?;
            if self.keyword("in") {
                self.at += 2;
                while self.another_word() {
                    let word = self.word()?;
                    self.script.values.push(word);
                }
            }
        }
        self.take(";");
        self.lines()?;
        match self.bare() {
            Some("do") => self.at += 2,
            Some("{") => {
                self.bar(ScriptError::Keyword("{".into()));
                self.at += 1;
                return self.body(ListEnd::Word("}"));
            }
            _ => return Err(self.misplaced()),
        }
        self.body(ListEnd::Word("done"))
    }

    fn cases(&mut self) -> GrammarResult<()> {
        self.blanks();
        self.word()?;
        self.lines()?;
        if !self.keyword("in") {
            return Err(self.misplaced());
        }
        self.at += 2;
        loop {
            self.lines()?;
            if self.keyword("esac") {
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
                ListEnd::Cases => {
                    let more = self.next_is(";;&");
                    if more || self.next_is(";&") {
                        self.bar(ScriptError::Keyword(";&".into()));
                    }
                    self.at += if more { 3 } else { 2 };
                }
                ListEnd::Word(_) => return Ok(()),
                ListEnd::End | ListEnd::Bracket => return Err(self.misplaced()),
            }
        }
    }

    /// `$(` is behind us: the commands up to the closing bracket.
    pub(crate) fn substitution(&mut self) -> GrammarResult<()> {
        self.substitutions += 1;
        let end = self.list(&[])?;
        self.substitutions -= 1;
        match end {
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
        let (mut words, mut inputs): (Vec<ArgWord>, Vec<Input>) = (Vec::new(), Vec::new());
        let (mut exported, mut behind_target) = (None, None);
        while self.another_word() {
            let before = self.at;
            if self.redirection(&mut inputs)? {
                if self.text[before..].starts_with("&>") {
                    behind_target = Some(words.len());
                }
                continue;
            }
            match self.assignment().filter(|_| words.is_empty()) {
                Some(name) => {
                    let value = self.assigned(name)?;
                    match (is_safe_prefix(name, &value), is_safe_loop_variable(name)) {
                        (true, _) => {}
                        (false, true) => exported = Some(name),
                        (false, false) => self.bar(ScriptError::Assignment(name.to_owned())),
                    }
                    self.script.variables.push((name.to_owned(), value));
                }
                None => {
                    let word = self.word()?;
                    let written = &self.text[before..self.at];
                    if self.next_is("(") && written.ends_with('=') {
                        self.bar(ScriptError::Assignment(written.to_owned()));
                        self.array()?;
                    }
                    match self.peek() {
                        Some(b'<') if is_descriptor(written) => inputs.push(Input::Other),
                        Some(b'>') if is_descriptor(written) => {}
                        Some(_) | None => words.push(word),
                    }
                }
            }
        }
        match (words.first(), exported) {
            (Some(_), Some(name)) => self.bar(ScriptError::Assignment(name.to_owned())),
            (Some(ArgWord::Known(program)), None) if is_name(program) => {}
            (Some(_), None) => self.bar(ScriptError::Program),
            (None, None) if self.at == begun => return Err(self.misplaced()),
            // Nothing but variables of the shell's own, which no program gets.
            (None, None | Some(_)) => {}
        }
        if self.next_is("(") {
            if words.len() != 1 {
                return Err(self.misplaced());
            }
            self.at += 1;
            self.blanks();
            if !self.take(")") {
                return Err(self.misplaced());
            }
            return self.function_body();
        }
        if let Some(behind) =
            behind_target.and_then(|at| words.get(at..)).filter(|it| !it.is_empty())
        {
            let words = behind.to_vec().into();
            self.script.commands.push(SimpleCommand { words, inputs: Vec::new() });
        }
        if !words.is_empty() {
            self.script.commands.push(SimpleCommand { words: words.into(), inputs });
        }
        Ok(())
    }

    /// The value behind `name=`, which is still to come.
    fn assigned(&mut self, name: &str) -> GrammarResult<ArgWord> {
        self.at += name.len();
        if !self.take("=") {
            self.bar(ScriptError::Assignment(name.to_owned()));
            if self.take("[") {
                self.inside(b'[', b']', Around::Nothing)?;
            }
            self.take("+");
            if !self.take("=") {
                return Err(self.misplaced());
            }
        }
        if self.next_is("(") {
            self.bar(ScriptError::Assignment(name.to_owned()));
            self.array()?;
            return Ok(ArgWord::Known(String::new()));
        }
        match self.in_word() {
            true => self.word(),
            false => Ok(ArgWord::Known(String::new())),
        }
    }

    /// The elements of an array, in brackets.
    fn array(&mut self) -> GrammarResult<()> {
        self.at += 1;
        loop {
            self.lines()?;
            if self.take(")") {
                return Ok(());
            }
            if !self.in_word() && !self.next_is("<(") {
                return Err(self.misplaced());
            }
            let value = self.word()?;
            self.script.values.push(value);
        }
    }

    /// A here-document begins with the next line.
    pub(crate) fn document(&mut self, pending: PendingDocument, inputs: &mut Vec<Input>) {
        inputs.push(Input::Document(pending.number));
        self.script.documents.push(ArgWord::Known(String::new()));
        self.pending.push(pending);
    }
}

/// True for `12` and `{name}` before a redirection: for one shell what it redirects, for another a word.
fn is_descriptor(word: &str) -> bool {
    let named = word.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
    let letters = |name: &str| name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    word.bytes().all(|byte| byte.is_ascii_digit()) || named.is_some_and(letters)
}

/// Letters of a program's name. Beyond ASCII one letter looks like another.
fn is_name(program: &str) -> bool {
    !program.is_empty() && program.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}
