//! The strict parser for words: quotes, escapes, and the parts that are known before the shell
//! runs.

use crate::strict::grammar::{GrammarReader, GrammarResult};
use crate::strict::script::{ArgWord, ScriptError, WordStart};
use protocol::hidden::is_hidden;

/// A word as far as it was read.
#[derive(Debug, Default)]
struct WordDraft {
    text: String,
    /// Something in it is replaced by one piece of text.
    replaced: bool,
    /// Something in it may become several words, or none.
    splits: bool,
    /// It, or a word that is split off it, begins with something unknown.
    unknown_start: bool,
    /// It has an unquoted brace.
    braced: bool,
}

impl WordDraft {
    fn unknown(&mut self) {
        self.unknown_start |= self.text.is_empty();
        self.replaced = true;
    }

    fn split(&mut self) {
        self.splits = true;
        self.unknown_start = true;
    }

    /// The shell expands `~` at the beginning of a word, and in anything that looks like a list of
    /// paths.
    fn tilde(&mut self) {
        self.replaced = true;
        self.text.push('~');
    }

    fn word(self) -> ArgWord {
        // `{}` and `[` are ordinary words, for `find` and `test`.
        if !self.replaced && (!self.splits || matches!(self.text.as_str(), "{}" | "[")) {
            return ArgWord::Known(self.text);
        }
        // A file may be called like an option.
        let open = self.text.is_empty() || self.text.starts_with(['-', '{', '*', '?', '[']);
        let plain = !self.unknown_start && !open;
        let start = if plain { WordStart::Plain } else { WordStart::Any };
        if self.splits { ArgWord::Open(start) } else { ArgWord::One(start) }
    }
}

impl<'a> GrammarReader<'a> {
    /// The rest of the text.
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Passes blanks, and lines that go on.
    pub(crate) fn blanks(&mut self) {
        while self.take(" ") || self.take("\t") || self.take("\\\n") {}
    }

    /// Passes blanks, line breaks and comments.
    pub(crate) fn lines(&mut self) {
        loop {
            self.blanks();
            self.comment();
            if !self.take("\n") {
                return;
            }
        }
    }

    fn comment(&mut self) {
        if self.next_is("#") {
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    /// Skips blanks and a comment. Returns true if a word or a redirection follows.
    pub(crate) fn another_word(&mut self) -> bool {
        self.blanks();
        self.comment();
        match self.peek() {
            Some(b'<' | b'>') => true,
            Some(b'&') => self.next_is("&>"),
            Some(_) => self.in_word(),
            None => false,
        }
    }

    /// True if the next letter belongs to a word.
    pub(crate) fn in_word(&self) -> bool {
        !matches!(
            self.peek(),
            None | Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
        )
    }

    /// The next word, if it consists of plain letters only and so may be a keyword.
    pub(crate) fn bare(&self) -> Option<&'a str> {
        let rest = self.rest();
        let end =
            rest.find([' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')']).unwrap_or(rest.len());
        let word = &rest[..end];
        (!word.is_empty() && !word.contains(['\'', '"', '\\', '$', '`'])).then_some(word)
    }

    /// The name in front of `=`, `+=` or `[…]=`, where the next word assigns.
    pub(crate) fn assignment(&self) -> Option<&'a str> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        let named = end > 0 && !rest.starts_with(|c: char| c.is_ascii_digit());
        let assigns = rest[end..].starts_with(['=', '[']) || rest[end..].starts_with("+=");
        (named && assigns).then(|| &rest[..end])
    }

    /// One word. Not called where none begins.
    pub(crate) fn word(&mut self) -> GrammarResult<ArgWord> {
        let begun = self.at;
        if !self.in_word() || self.next_is("#") {
            return Err(self.misplaced());
        }
        let mut draft = WordDraft::default();
        while self.in_word() {
            match self.next_letter()? {
                '\'' => self.single_quoted(&mut draft.text)?,
                '"' => self.double_quoted(&mut draft)?,
                '\\' => self.escaped(&mut draft)?,
                '$' => {
                    draft.unknown();
                    draft.split();
                    self.expansion()?;
                }
                '`' => return Err(ScriptError::Expansion("`".into())),
                '~' => draft.tilde(),
                c @ ('*' | '?' | '[' | '{' | '}') => {
                    draft.splits = true;
                    draft.braced |= matches!(c, '{' | '}');
                    draft.text.push(c);
                }
                c if c.is_ascii_graphic() => draft.text.push(c),
                c => return Err(ScriptError::Character(c)),
            }
        }
        // `{name}>` lets one shell set a variable; `12>` is a word for one and none for the other.
        let digits = self.text[begun..self.at].bytes().all(|byte| byte.is_ascii_digit());
        if matches!(self.peek(), Some(b'<' | b'>')) && (draft.braced || digits) {
            return Err(ScriptError::Redirection(self.text[begun..=self.at].to_owned()));
        }
        Ok(draft.word())
    }

    fn next_letter(&mut self) -> GrammarResult<char> {
        let letter = self.rest().chars().next().ok_or_else(|| self.misplaced())?;
        self.at += letter.len_utf8();
        Ok(letter)
    }

    /// Behind a backslash outside of quotes.
    fn escaped(&mut self, draft: &mut WordDraft) -> GrammarResult<()> {
        match self.next_letter() {
            // The line goes on; only where a blank follows is it certain that the word does not.
            Ok('\n') if !self.in_word() && !matches!(self.peek(), Some(b'<' | b'>' | b'(')) => {
                Ok(())
            }
            Ok(c) if c.is_ascii_graphic() || c == ' ' => {
                draft.text.push(c);
                Ok(())
            }
            Ok(c) => Err(ScriptError::Character(c)),
            Err(_) => Err(ScriptError::Open('\\')),
        }
    }

    fn single_quoted(&mut self, text: &mut String) -> GrammarResult<()> {
        let rest = self.rest();
        let end = rest.find('\'').ok_or(ScriptError::Open('\''))?;
        let quoted = &rest[..end];
        if let Some(c) = quoted.chars().find(|c| is_hidden(*c)) {
            return Err(ScriptError::Character(c));
        }
        text.push_str(quoted);
        self.at += end + 1;
        Ok(())
    }

    fn double_quoted(&mut self, draft: &mut WordDraft) -> GrammarResult<()> {
        loop {
            match self.next_letter().map_err(|_| ScriptError::Open('"'))? {
                '"' => return Ok(()),
                '\\' => match self.peek() {
                    Some(b'\n') => self.at += 1,
                    Some(b'$' | b'`' | b'"' | b'\\') => draft.text.push(self.next_letter()?),
                    Some(_) | None => draft.text.push('\\'),
                },
                '$' => {
                    draft.unknown();
                    if self.next_is("@") || self.next_is("*") {
                        draft.split();
                    }
                    self.expansion()?;
                }
                '`' => return Err(ScriptError::Expansion("`".into())),
                c if is_hidden(c) => return Err(ScriptError::Character(c)),
                c => draft.text.push(c),
            }
        }
    }

    /// Behind a `$`: a variable by its name, or commands, which are read.
    fn expansion(&mut self) -> GrammarResult<()> {
        let rest = self.rest();
        if self.next_is("((") {
            return Err(self.unknown_expansion());
        }
        if self.next_is("(") {
            self.sign(1)?;
            return self.substitution();
        }
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = |text: &str| text.find(|c| !letter(c)).unwrap_or(text.len());
        if let Some(inner) = rest.strip_prefix('{') {
            let end = name(inner);
            if end == 0 || !inner[end..].starts_with('}') {
                return Err(self.unknown_expansion());
            }
            self.at += end + 2;
            return Ok(());
        }
        match rest.chars().next() {
            Some('0'..='9' | '@' | '*' | '#' | '?' | '$' | '!' | '-') => self.at += 1,
            Some(c) if letter(c) => self.at += name(rest),
            Some(_) | None => return Err(self.unknown_expansion()),
        }
        Ok(())
    }

    fn unknown_expansion(&self) -> ScriptError {
        ScriptError::Expansion(self.text[self.at - 1..].chars().take(8).collect())
    }
}
