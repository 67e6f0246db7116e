//! Redirections and here-documents, each tied to its command.

use super::Certainty;
use super::parse::{Parser, is_number};
use super::step::{Atom, ShellWord};
use super::step::{FileUse, ParsedCommand, ShellStep};

pub(super) struct Here {
    id: usize,
    end: String,
    tabs: bool,
    quoted: bool,
}

impl Parser<'_> {
    pub(super) fn redirection(&mut self, simple: &mut ParsedCommand) {
        simple.redirected = true;
        // `2>`, and `{name}>` that takes its number.
        let named = |word: &str| {
            let name = word.strip_prefix('{').and_then(|word| word.strip_suffix('}'));
            name.is_some_and(|name| name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_'))
        };
        let descriptor =
            |word: &ShellWord| word.plain().is_some_and(|word| is_number(&word) || named(&word));
        let before = self.at.checked_sub(1).and_then(|at| self.letters.get(at));
        let touches = before.is_some_and(|c| !c.is_whitespace() && *c != '&');
        let mut number = None;
        if touches && simple.words.last().is_some_and(descriptor) {
            number = simple.words.pop().and_then(|word| word.plain());
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
            let (end, quoted) = self.delimiter();
            let id = self.heres;
            self.heres += 1;
            simple.heres.push(id);
            self.here.push(Here { id, end, tabs, quoted });
            return;
        }
        if matches!(self.peek(1), Some('(')) {
            self.at += 2;
            let begun = self.at;
            self.inner();
            let end = self.at.saturating_sub(1).max(begun);
            let text = self.letters.get(begun..end).unwrap_or_default().iter().collect();
            simple.words.push(ShellWord(vec![Atom::Substitution {
                text,
                quoted: true,
                process: true,
            }]));
            return;
        }
        let way = match (self.peek(0), number.as_deref()) {
            (Some('<'), _) => FileUse::In,
            (_, None | Some("1")) => FileUse::Out,
            (_, Some(_)) => FileUse::Beside,
        };
        let second = matches!(self.peek(1), Some('<' | '>' | '&' | '|'));
        self.at += if second { 2 } else { 1 };
        self.blanks();
        if self.peek(0).is_some_and(|c| !"\n;&|<>()".contains(c)) {
            let target = self.word();
            if target.plain().is_none_or(|name| name != "/dev/null" && !is_number(&name)) {
                simple.files.push((way, target));
            }
        }
    }

    /// The delimiter of a here-document, as written. True if a part of it is quoted.
    pub(super) fn delimiter(&mut self) -> (String, bool) {
        let (mut end, mut quoted) = (String::new(), false);
        let mut quote = None;
        while let Some(c) = self.peek(0) {
            match (c, quote) {
                (c, Some(open)) if c == open => quote = None,
                ('\'' | '"', None) => {
                    quoted = true;
                    quote = Some(c);
                }
                ('\\', None | Some('"')) => {
                    quoted = true;
                    self.at += 1;
                    end.extend(self.peek(0));
                }
                (c, None) if c.is_whitespace() || ";&|<>()".contains(c) => break,
                // Bash treats these in its own way.
                ('$' | '`', None | Some('"')) => {
                    self.mark_uncertain();
                    end.push(c);
                }
                (c, _) => end.push(c),
            }
            self.at += 1;
        }
        if quote.is_some() || end.is_empty() {
            self.mark_uncertain();
        }
        (end, quoted)
    }

    /// The texts of here-documents: for the command that reads them, and as commands.
    pub(super) fn here_documents(&mut self, steps: &mut Vec<ShellStep>) {
        for Here { id, end, tabs, quoted } in std::mem::take(&mut self.here) {
            let mut body = String::new();
            let before = std::mem::replace(&mut self.certainty, Certainty::InDoubt);
            while self.at < self.letters.len() {
                let line: String = self.rest().iter().take_while(|c| **c != '\n').collect();
                self.at = (self.at + line.chars().count() + 1).min(self.letters.len());
                let line = if tabs { line.trim_start_matches('\t') } else { &line };
                if line == end {
                    self.certainty = before;
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            let word = if quoted { ShellWord::quoted(&body) } else { ShellWord::of_text(&body) };
            let reader = steps.iter_mut().rev().find_map(|step| match step {
                ShellStep::Simple(simple) => simple.heres.contains(&id).then_some(simple),
                ShellStep::Loop { .. } | ShellStep::Function { .. } => None,
            });
            match reader {
                Some(reader) => reader.inputs.push(word),
                None => {
                    steps.push(ShellStep::Simple(ParsedCommand {
                        inputs: vec![word],
                        ..ParsedCommand::default()
                    }));
                }
            }
        }
    }
}
