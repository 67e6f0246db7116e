//! Words: quotes, escapes, and the parts that are known before the shell runs.

use crate::shell::grammar::{GrammarReader, GrammarResult};
use crate::shell::script::{ArgWord, Around, Fields, HOLE, ScriptError, Unknown, WordStart};
use protocol::hidden::is_hidden;

/// A word as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct WordDraft {
    text: String,
    /// The same with a hole for what is not known, if anything is not.
    seen: Option<String>,
    /// Something in it is replaced by one piece of text.
    replaced: bool,
    /// Something in it may become several words, or none.
    splits: bool,
    /// It, or a word that is split off it, begins with something unknown.
    unknown_start: bool,
    /// Words of another look may come out of it.
    any_fields: bool,
    /// Nothing is known of the letters behind an unquoted bracket.
    blind: bool,
}

impl WordDraft {
    pub(crate) fn push(&mut self, c: char) {
        self.text.push(c);
        if let Some(seen) = self.seen.as_mut().filter(|_| !self.blind) {
            seen.push(c);
        }
    }

    fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
        if let Some(seen) = self.seen.as_mut().filter(|_| !self.blind) {
            seen.push_str(text);
        }
    }

    fn hole(&mut self) {
        let seen = self.seen.get_or_insert_with(|| self.text.clone());
        if !seen.ends_with(HOLE) {
            seen.push(HOLE);
        }
    }

    pub(crate) fn unknown(&mut self) {
        self.unknown_start |= self.text.is_empty();
        self.replaced = true;
        self.hole();
    }

    fn split(&mut self) {
        self.splits = true;
        self.unknown_start = true;
        self.any_fields = true;
    }

    /// The shell expands `~` at the beginning of a word, and in anything that looks like a list of
    /// paths.
    fn tilde(&mut self) {
        self.replaced = true;
        let seen = self.seen.as_ref().unwrap_or(&self.text);
        if seen.is_empty() || seen.ends_with([':', '=']) {
            self.hole();
            self.text.push('~');
        } else {
            self.push('~');
        }
    }

    /// A pattern for files, or a brace.
    fn pattern(&mut self, c: char) {
        self.splits = true;
        // Behind other letters a brace makes words that begin alike.
        self.any_fields |= c == '{' && self.text.is_empty();
        self.hole();
        self.text.push(c);
        self.blind |= matches!(c, '[' | '{');
    }

    /// `{}`, which no shell expands.
    fn braces(&mut self) {
        self.splits = true;
        self.push_str("{}");
    }

    /// A letter that some shells take for a blank, or that may be none.
    fn strange(&mut self, c: char) {
        let blank = c.is_control() || c.is_whitespace() || c == HOLE;
        match blank {
            true => self.unknown(),
            false => self.push(c),
        }
    }

    pub(crate) fn word(self, written: &str) -> ArgWord {
        // `{}` and `[` are ordinary words, for `find` and `test`.
        if !self.replaced && (!self.splits || matches!(self.text.as_str(), "{}" | "[")) {
            return ArgWord::Known(self.text);
        }
        // A file may be called like an option.
        let open = self.text.is_empty() || self.text.starts_with(['-', '{', '*', '?', '[']);
        let plain = !self.unknown_start && !open;
        let start = if plain { WordStart::Plain } else { WordStart::Any };
        let fields = if self.any_fields { Fields::Any } else { Fields::Alike };
        let written = written.char_indices().nth(60).map_or(written, |(at, _)| &written[..at]);
        let text = self.seen.unwrap_or(self.text);
        let unknown = Unknown { start, fields, text, written: written.to_owned() };
        if self.splits { ArgWord::Open(unknown) } else { ArgWord::One(unknown) }
    }
}

/// True for a letter that ends a word, unless it is quoted.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

/// True for a letter that stands for itself in a word.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic()
        && !ends_word(byte)
        && !matches!(
            byte,
            b'\'' | b'"' | b'\\' | b'$' | b'`' | b'~' | b'*' | b'?' | b'[' | b'{' | b'}'
        )
}

impl<'a> GrammarReader<'a> {
    /// The rest of the text.
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Passes blanks, and lines that go on.
    pub(crate) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.next_is("\\\n") => self.at += 2,
                Some(_) | None => return,
            }
        }
    }

    /// Passes blanks, line breaks, comments and the texts of here-documents.
    pub(crate) fn lines(&mut self) -> GrammarResult<()> {
        loop {
            self.blanks();
            self.comment();
            if !self.take("\n") {
                return Ok(());
            }
            self.documents()?;
        }
    }

    fn comment(&mut self) {
        if self.peek() == Some(b'#') {
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
        self.peek().is_some_and(|byte| !ends_word(byte))
    }

    /// The next word, if it consists of plain letters only and so may be a keyword.
    pub(crate) fn bare(&self) -> Option<&'a str> {
        let rest = self.rest();
        let quotes = |byte| matches!(byte, b'\'' | b'"' | b'\\' | b'$' | b'`');
        let end = rest.bytes().position(|byte| ends_word(byte) || quotes(byte));
        let end = end.unwrap_or(rest.len());
        let plain = end > 0 && !rest.as_bytes().get(end).copied().is_some_and(quotes);
        plain.then(|| &rest[..end])
    }

    /// True if this keyword is next.
    pub(crate) fn keyword(&self, word: &str) -> bool {
        self.next_is(word) && self.bare() == Some(word)
    }

    /// The name in front of `=`, `+=` or `[…]=`, where the next word assigns.
    pub(crate) fn assignment(&self) -> Option<&'a str> {
        let rest = self.rest();
        let end = rest.bytes().position(|byte| !byte.is_ascii_alphanumeric() && byte != b'_')?;
        let named = end > 0 && !rest.starts_with(|c: char| c.is_ascii_digit());
        let assigns = rest[end..].starts_with(['=', '[']) || rest[end..].starts_with("+=");
        (named && assigns).then(|| &rest[..end])
    }

    /// One word. Not called where none begins.
    pub(crate) fn word(&mut self) -> GrammarResult<ArgWord> {
        let begun = self.at;
        let mut draft = WordDraft::default();
        if self.next_is("<(") || self.next_is(">(") {
            self.bar(ScriptError::Expansion(self.text[self.at..self.at + 2].to_owned()));
            self.at += 1;
            self.sign(1)?;
            draft.unknown();
            self.substitution()?;
        } else if !self.in_word() || self.next_is("#") {
            return Err(self.misplaced());
        }
        // Most words are plain to their end.
        let rest = self.rest();
        let plain = rest.bytes().position(|byte| !is_plain(byte)).unwrap_or(rest.len());
        draft.push_str(&rest[..plain]);
        self.at += plain;
        while self.in_word() {
            match self.next_letter()? {
                '\'' => self.single_quoted(&mut draft)?,
                '"' => self.double_quoted(&mut draft)?,
                '\\' => self.escaped(&mut draft)?,
                '$' => {
                    if self.expansion(Around::Nothing)? {
                        draft.unknown();
                        draft.split();
                    } else {
                        draft.push('$');
                    }
                }
                '`' => {
                    self.backquoted(Around::Nothing)?;
                    draft.unknown();
                    draft.split();
                }
                '~' => draft.tilde(),
                '{' if self.take("}") => draft.braces(),
                c @ ('*' | '?' | '[' | '{' | '}') => draft.pattern(c),
                c if c.is_ascii_graphic() => draft.push(c),
                c => {
                    self.bar(ScriptError::Character(c));
                    draft.strange(c);
                }
            }
        }
        // `{name}>` lets one shell set a variable; `12>` is a word for one and none for the other.
        if matches!(self.peek(), Some(b'<' | b'>')) {
            let written = &self.text[begun..self.at];
            if written.contains(['{', '}']) || written.bytes().all(|byte| byte.is_ascii_digit()) {
                self.bar(ScriptError::Redirection(self.text[begun..=self.at].to_owned()));
            }
        }
        Ok(draft.word(&self.text[begun..self.at]))
    }

    pub(crate) fn next_letter(&mut self) -> GrammarResult<char> {
        let letter = self.rest().chars().next().ok_or_else(|| self.misplaced())?;
        self.at += letter.len_utf8();
        Ok(letter)
    }

    /// Behind a backslash outside of quotes.
    fn escaped(&mut self, draft: &mut WordDraft) -> GrammarResult<()> {
        match self.next_letter() {
            // The line goes on; only where a blank follows is it certain that the word does not.
            Ok('\n') => {
                if self.in_word() || matches!(self.peek(), Some(b'<' | b'>' | b'(')) {
                    self.bar(ScriptError::Character('\n'));
                }
                Ok(())
            }
            Ok(c) if c.is_ascii_graphic() || c == ' ' => {
                draft.push(c);
                Ok(())
            }
            Ok(c) => {
                self.bar(ScriptError::Character(c));
                draft.strange(c);
                Ok(())
            }
            Err(_) => Err(ScriptError::Open('\\')),
        }
    }

    fn single_quoted(&mut self, draft: &mut WordDraft) -> GrammarResult<()> {
        let rest = self.rest();
        let end = rest.find('\'').ok_or(ScriptError::Open('\''))?;
        let quoted = &rest[..end];
        if let Some(c) = quoted.chars().find(|c| is_hidden(*c)) {
            self.bar(ScriptError::Character(c));
        }
        draft.push_str(quoted);
        self.at += end + 1;
        Ok(())
    }

    pub(crate) fn double_quoted(&mut self, draft: &mut WordDraft) -> GrammarResult<()> {
        loop {
            match self.next_letter().map_err(|_| ScriptError::Open('"'))? {
                '"' => return Ok(()),
                c => self.quoted_letter(c, draft)?,
            }
        }
    }

    /// A letter in double quotes, or in a here-document.
    pub(crate) fn quoted_letter(&mut self, c: char, draft: &mut WordDraft) -> GrammarResult<()> {
        match c {
            '\\' => match self.peek() {
                Some(b'\n') => self.at += 1,
                Some(b'$' | b'`' | b'"' | b'\\') => {
                    let escaped = self.next_letter()?;
                    draft.push(escaped);
                }
                Some(_) | None => draft.push('\\'),
            },
            '$' => {
                let several = self.next_is("@") || self.next_is("*") || self.next_is("{");
                let begun = self.at;
                if !self.expansion(Around::Quotes)? {
                    draft.push('$');
                    return Ok(());
                }
                draft.unknown();
                let name = &self.text[begun..self.at];
                if several && (name.contains(['@', '*']) || name.contains('!')) {
                    draft.split();
                }
            }
            '`' => {
                self.backquoted(Around::Quotes)?;
                draft.unknown();
            }
            c => {
                if is_hidden(c) {
                    self.bar(ScriptError::Character(c));
                }
                draft.push(c);
            }
        }
        Ok(())
    }
}
