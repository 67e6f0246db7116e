//! What the shell replaces: variables by name, commands, arithmetic. The commands in it are read;
//! what comes out of it is not known.

use crate::shell::grammar::{GrammarReader, GrammarResult};
use crate::shell::quoting::WordDraft;
use crate::shell::script::{ArgWord, Around, ScriptError};

impl GrammarReader<'_> {
    /// Behind a `$`. False if it stands for itself.
    pub(crate) fn expansion(&mut self, around: Around) -> GrammarResult<bool> {
        let rest = &self.text[self.at..];
        if self.next_is("\\\n") {
            // The shell joins the lines first.
            return Err(self.misplaced());
        }
        if self.next_is("((") {
            self.bar(self.unknown_expansion());
            if self.arithmetic(2)? {
                return Ok(true);
            }
        }
        if self.next_is("(") {
            self.sign(1)?;
            self.substitution()?;
            return Ok(true);
        }
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = |text: &str| text.find(|c| !letter(c)).unwrap_or(text.len());
        if let Some(inner) = rest.strip_prefix('{') {
            let end = name(inner);
            if end > 0 && inner[end..].starts_with('}') {
                self.at += end + 2;
                return Ok(true);
            }
            self.bar(self.unknown_expansion());
            self.at += 1;
            self.inside(b'{', b'}', around)?;
            return Ok(true);
        }
        match rest.chars().next() {
            Some('0'..='9' | '@' | '*' | '#' | '?' | '$' | '!' | '-') => self.at += 1,
            Some(c) if letter(c) => self.at += name(rest),
            Some('[') => {
                self.bar(self.unknown_expansion());
                self.at += 1;
                self.inside(b'[', b']', Around::Quotes)?;
            }
            Some('\'') if around == Around::Nothing => {
                self.bar(self.unknown_expansion());
                self.at += 1;
                self.escaped_quoted()?;
            }
            Some('"') if around == Around::Nothing => self.bar(self.unknown_expansion()),
            Some(_) | None => {
                self.bar(self.unknown_expansion());
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// `$'…'` up to its end.
    fn escaped_quoted(&mut self) -> GrammarResult<()> {
        loop {
            match self.next_letter().map_err(|_| ScriptError::Open('\''))? {
                '\'' => return Ok(()),
                '\\' => drop(self.next_letter().map_err(|_| ScriptError::Open('\''))?),
                _ => {}
            }
        }
    }

    /// `((…))` at its signs, of which there are this many. False, and nothing passed, if it does
    /// not end so: then two subshells begin.
    pub(crate) fn arithmetic(&mut self, signs: usize) -> GrammarResult<bool> {
        let (begun, mut open) = (self.at, 0);
        let mut ahead = self.text.as_bytes()[self.at..].iter().enumerate();
        // Brackets in quotes make it no arithmetic; then it must be a command that can be read.
        let end = ahead.find_map(|(at, byte)| {
            match byte {
                b'(' => open += 1,
                b')' => open -= 1,
                _ => {}
            }
            let closes = *byte == b')' && open == signs - 1;
            closes.then_some(at)
        });
        let Some(end) = end else { return Err(ScriptError::Open('(')) };
        if !self.text[begun + end..].starts_with("))") {
            return Ok(false);
        }
        self.at += signs;
        self.inside(b'(', b')', Around::Quotes)?;
        match self.take(")") {
            true => Ok(true),
            false => Err(self.misplaced()),
        }
    }

    /// The inside of brackets, of which the first is behind us: the commands in it are read.
    pub(crate) fn inside(&mut self, open: u8, close: u8, around: Around) -> GrammarResult<()> {
        self.deeper(|reader| reader.up_to(open, close, around))
    }

    fn up_to(&mut self, open: u8, close: u8, around: Around) -> GrammarResult<()> {
        let mut brackets = 1;
        loop {
            let missing = || ScriptError::Open(char::from(open));
            let c = self.next_letter().map_err(|_| missing())?;
            match c {
                '\\' => drop(self.next_letter().map_err(|_| missing())?),
                // In quotes one shell takes it for a letter, another for a quote.
                '\'' if around == Around::Quotes => return Err(ScriptError::Open('\'')),
                '\'' => {
                    let end = self.text[self.at..].find('\'').ok_or(ScriptError::Open('\''))?;
                    // An index is evaluated again.
                    let quoted = self.text[self.at..self.at + end].to_owned();
                    self.script.values.push(ArgWord::Known(quoted));
                    self.at += end + 1;
                }
                '"' => {
                    let mut draft = WordDraft::default();
                    self.double_quoted(&mut draft)?;
                    self.script.values.push(draft.word("an index"));
                }
                '`' => self.backquoted(around)?,
                '$' => drop(self.expansion(around)?),
                '<' | '>' if self.next_is("(") && around == Around::Nothing => {
                    self.sign(1)?;
                    self.substitution()?;
                }
                // In `${…}` a bracket of its own does not nest.
                c if u8::try_from(c) == Ok(open) && open != b'{' => brackets += 1,
                c if u8::try_from(c) == Ok(close) => {
                    brackets -= 1;
                    if brackets == 0 {
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
    }

    /// Behind a backquote: the commands up to the next one.
    pub(crate) fn backquoted(&mut self, around: Around) -> GrammarResult<()> {
        self.bar(ScriptError::Expansion("`".into()));
        let mut text = String::new();
        loop {
            match self.next_letter().map_err(|_| ScriptError::Open('`'))? {
                '`' => break,
                '\\' => {
                    let c = self.next_letter().map_err(|_| ScriptError::Open('`'))?;
                    let quote = c == '"' && around == Around::Quotes;
                    if !(quote || matches!(c, '`' | '\\' | '$')) {
                        text.push('\\');
                    }
                    text.push(c);
                }
                c => text.push(c),
            }
        }
        self.part(&text, |reader| reader.whole())
    }

    /// Reads a text that is written in this one.
    pub(crate) fn part<T>(
        &mut self,
        text: &str,
        read: impl FnOnce(&mut GrammarReader<'_>) -> GrammarResult<T>,
    ) -> GrammarResult<T> {
        let script = std::mem::take(&mut self.script);
        let mut reader = GrammarReader::new(text, script, self.depth);
        let result = read(&mut reader);
        self.script = reader.script;
        result
    }

    fn unknown_expansion(&self) -> ScriptError {
        ScriptError::Expansion(self.text[self.at - 1..].chars().take(8).collect())
    }
}
