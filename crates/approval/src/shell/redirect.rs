//! Redirections and here-documents. Those that change nothing are no obstacle: to and from
//! `/dev/null`, and between descriptors.

use crate::shell::grammar::{DocumentKind, GrammarReader, GrammarResult, PendingDocument, Tabs};
use crate::shell::quoting::WordDraft;
use crate::shell::script::{ArgWord, Input, ScriptError};

/// Signs of which shells make the same, the longest first.
const SIGNS: &[&str] = &["&>>", "&>", ">>", ">|", ">&", "<&", "<>", ">", "<"];

impl GrammarReader<'_> {
    /// Passes the redirections behind a compound command, of which the commands begin here.
    pub(crate) fn redirections(&mut self, begin: usize) -> GrammarResult<()> {
        // Its commands read what is handed to it; of a shell among them the text is not known.
        let mut inputs = Vec::new();
        while self.another_word() {
            if !self.redirection(&mut inputs)? {
                return Err(self.misplaced());
            }
        }
        if !inputs.is_empty() {
            self.hand_input(begin);
        }
        Ok(())
    }

    /// The commands from this one on read what is handed to them, unless they have their own input.
    pub(crate) fn hand_input(&mut self, begin: usize) {
        let handed = self.script.commands[begin..].iter_mut();
        handed.filter(|it| it.inputs.is_empty()).for_each(|it| it.inputs.push(Input::Other));
    }

    /// Passes one redirection, if one is next.
    pub(crate) fn redirection(&mut self, inputs: &mut Vec<Input>) -> GrammarResult<bool> {
        // Asked before every word, so the plain ones are passed quickly.
        if !matches!(self.peek(), Some(b'0'..=b'9' | b'<' | b'>' | b'&')) {
            return Ok(false);
        }
        let begun = self.at;
        let numbered = matches!(self.text.as_bytes()[begun..], [b'0'..=b'9', b'<' | b'>', ..]);
        // An input beside the standard one.
        let beside = numbered && self.peek() != Some(b'0');
        self.at += usize::from(numbered);
        if self.next_is("<<<") {
            self.bar(ScriptError::Here);
            self.sign(3)?;
            self.blanks();
            let text = self.word()?;
            inputs.push(Input::Text(text));
            inputs.extend(beside.then_some(Input::Other));
            return Ok(true);
        }
        if self.next_is("<<") {
            self.bar(ScriptError::Here);
            self.sign(2)?;
            let pending = self.document_begins()?;
            self.document(pending, inputs);
            inputs.extend(beside.then_some(Input::Other));
            return Ok(true);
        }
        if self.next_is("<(") || self.next_is(">(") {
            return if numbered { Err(self.misplaced()) } else { Ok(false) };
        }
        let Some(sign) = SIGNS.iter().find(|sign| self.next_is(sign)) else { return Ok(false) };
        self.sign(sign.len())?;
        self.blanks();
        let target = self.word()?;
        let is_descriptor = |target: &str| {
            target == "-" || (target.len() == 1 && target.as_bytes()[0].is_ascii_digit())
        };
        let reads = if numbered { !beside } else { sign.starts_with('<') };
        let nothing = target.known() == Some("/dev/null");
        inputs.extend((reads && !nothing).then_some(Input::Other));
        let harmless = match (&target, *sign) {
            (ArgWord::Known(target), ">&" | "<&") => is_descriptor(target),
            (ArgWord::Known(target), _) => target == "/dev/null",
            (ArgWord::One(_) | ArgWord::Open(_), _) => false,
        };
        // In one shell `&>` ends the command, and a new command begins after the target.
        let end = self.at;
        let last = !sign.starts_with('&') || !self.another_word();
        if !(harmless && last) {
            let written = self.text[begun..self.at].trim().to_owned();
            self.bar(ScriptError::Redirection(written));
        }
        self.at = end;
        if sign.contains('>') && !harmless {
            self.script.written.push(target);
        }
        Ok(true)
    }

    /// Behind `<<`: its delimiter.
    fn document_begins(&mut self) -> GrammarResult<PendingDocument> {
        let tabs = if self.take("-") { Tabs::Dropped } else { Tabs::Kept };
        self.blanks();
        let begun = self.at;
        let ArgWord::Known(end) = self.word()? else { return Err(ScriptError::Here) };
        let written = &self.text[begun..self.at];
        let quoted = written.contains(['\'', '"', '\\']);
        if end.is_empty() || end.contains('\n') || written.contains("\\\n") {
            return Err(ScriptError::Here);
        }
        let kind = if quoted { DocumentKind::Literal } else { DocumentKind::Expanded };
        let number = self.script.documents.len();
        Ok(PendingDocument { number, end, tabs, kind, substitutions: self.substitutions })
    }

    /// The texts of the here-documents that began in the line before.
    pub(crate) fn documents(&mut self) -> GrammarResult<()> {
        for pending in std::mem::take(&mut self.pending) {
            if pending.substitutions != self.substitutions {
                return Err(ScriptError::Here);
            }
            let (mut body, mut joined) = (String::new(), String::new());
            loop {
                let rest = &self.text[self.at..];
                if rest.is_empty() {
                    return Err(ScriptError::Here);
                }
                let line = rest.split('\n').next().unwrap_or_default();
                self.at = (self.at + line.len() + 1).min(self.text.len());
                let line = match pending.tabs {
                    Tabs::Kept => line,
                    Tabs::Dropped if joined.is_empty() => line.trim_start_matches('\t'),
                    Tabs::Dropped => line,
                };
                let backslashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
                if pending.kind == DocumentKind::Expanded && backslashes % 2 == 1 {
                    // The line goes on, also for the one that could end the text.
                    joined.push_str(&line[..line.len() - 1]);
                    continue;
                }
                joined.push_str(line);
                if joined == pending.end {
                    break;
                }
                body.push_str(&std::mem::take(&mut joined));
                body.push('\n');
            }
            let text = match pending.kind {
                DocumentKind::Literal => ArgWord::Known(body),
                DocumentKind::Expanded => self.part(&body, |reader| {
                    let mut draft = WordDraft::default();
                    while let Ok(letter) = reader.next_letter() {
                        reader.quoted_letter(letter, &mut draft)?;
                    }
                    Ok(draft.word("a here-document"))
                })?,
            };
            if let Some(document) = self.script.documents.get_mut(pending.number) {
                *document = text;
            }
        }
        Ok(())
    }

    /// An error if a here-document has no text.
    pub(crate) fn no_document_missing(&self) -> GrammarResult<()> {
        if self.pending.is_empty() { Ok(()) } else { Err(ScriptError::Here) }
    }
}
