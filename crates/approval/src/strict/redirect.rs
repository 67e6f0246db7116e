//! Redirections that change nothing: to and from `/dev/null`, and between descriptors.

use crate::strict::grammar::{GrammarReader, GrammarResult};
use crate::strict::script::{ArgWord, ScriptError};

/// Signs of which shells make the same, the longest first.
const SIGNS: &[&str] = &["&>>", "&>", ">>", ">|", ">&", "<&", "<>", ">", "<"];

impl GrammarReader<'_> {
    /// Passes the redirections behind a compound command.
    pub(crate) fn redirections(&mut self) -> GrammarResult<()> {
        while self.another_word() {
            if !self.redirection()? {
                return Err(self.misplaced());
            }
        }
        Ok(())
    }

    /// Passes one redirection, if one is next.
    pub(crate) fn redirection(&mut self) -> GrammarResult<bool> {
        // Asked before every word, so the plain ones are passed quickly.
        if !matches!(self.peek(), Some(b'0'..=b'9' | b'<' | b'>' | b'&')) {
            return Ok(false);
        }
        let begun = self.at;
        let numbered = matches!(self.text.as_bytes()[begun..], [b'0'..=b'9', b'<' | b'>', ..]);
        self.at += usize::from(numbered);
        if self.next_is("<<") {
            return Err(ScriptError::Here);
        }
        if self.next_is("<(") || self.next_is(">(") {
            return Err(ScriptError::Expansion(self.text[self.at..self.at + 2].to_owned()));
        }
        let Some(sign) = SIGNS.iter().find(|sign| self.next_is(sign)) else { return Ok(false) };
        self.at += sign.len();
        self.blanks();
        let target = self.word()?;
        let harmless = match (&target, *sign) {
            (ArgWord::Known(target), ">&" | "<&") => {
                target == "-" || (target.len() == 1 && target.as_bytes()[0].is_ascii_digit())
            }
            (ArgWord::Known(target), _) => target == "/dev/null",
            (ArgWord::One(_) | ArgWord::Open(_), _) => false,
        };
        // In one shell `&>` ends the command, and a new command begins after the target.
        let last = !sign.starts_with('&') || !self.another_word();
        match harmless && last {
            true => Ok(true),
            false => Err(ScriptError::Redirection(self.text[begun..self.at].trim().to_owned())),
        }
    }
}
