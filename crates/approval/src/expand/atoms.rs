//! A word of a shell text: letters, and the parts that bash will expand.

use super::step::{Atom, ShellWord};
use super::{Certainty, parse};

impl ShellWord {
    /// Its letters, if the whole word is unquoted letters.
    pub(super) fn plain(&self) -> Option<String> {
        let mut plain = String::new();
        for atom in &self.0 {
            match atom {
                Atom::Letters { text, quoted: false } => plain.push_str(text),
                Atom::Letters { .. }
                | Atom::Parameter { .. }
                | Atom::Substitution { .. }
                | Atom::Arithmetic { .. } => return None,
            }
        }
        Some(plain)
    }

    /// Its letters, where bash puts in nothing at all.
    pub(super) fn literal(&self) -> Option<String> {
        let mut literal = String::new();
        for atom in &self.0 {
            match atom {
                Atom::Letters { text, quoted } if *quoted || !text.contains('{') => {
                    literal.push_str(text);
                }
                Atom::Letters { .. }
                | Atom::Parameter { .. }
                | Atom::Substitution { .. }
                | Atom::Arithmetic { .. } => return None,
            }
        }
        (!self.0.is_empty()).then_some(literal)
    }

    /// True if bash can expand it without an error: `$((1/0))` and `${x?}` end a line.
    pub(super) fn expands_always(&self) -> bool {
        self.0.iter().all(|atom| match atom {
            Atom::Letters { .. } => true,
            Atom::Parameter { op, .. } => op.is_empty(),
            Atom::Substitution { process, .. } => !process,
            Atom::Arithmetic { .. } => false,
        })
    }

    /// These letters.
    pub(super) fn quoted(text: &str) -> Self {
        Self(vec![Atom::Letters { text: text.to_owned(), quoted: true }])
    }

    /// A text in which bash replaces variables and commands as in double quotes.
    pub(super) fn of_text(text: &str) -> Self {
        Self::of_text_at(text, 0)
    }

    fn of_text_at(text: &str, depth: usize) -> Self {
        let letters: Vec<char> = text.chars().collect();
        let mut reader = AtomReader::new(&letters, 0, depth);
        reader.double_quoted(None);
        Self(reader.atoms)
    }

    /// Parses the operand in `${name:-…}`, in which blanks do not end a word.
    pub(super) fn of_operand(text: &str) -> Self {
        let letters: Vec<char> = text.chars().collect();
        let mut reader = AtomReader::new(&letters, 0, 0);
        while reader.at < letters.len() {
            reader.word();
            if let Some(c) = reader.peek(0) {
                reader.push(c, false);
                reader.at += 1;
            }
        }
        Self(reader.atoms)
    }

    /// The same for a pattern, in which a letter behind a backslash is only itself.
    pub(super) fn of_pattern(text: &str) -> Self {
        let mut word = Self::of_operand(text);
        for atom in &mut word.0 {
            if let Atom::Letters { text, quoted: true } = atom {
                *text = text.chars().flat_map(|c| ['\\', c]).collect();
            }
        }
        word
    }

    /// The commands that run while bash reads something else: an index, a number, the name of a
    /// file.
    pub(super) fn commands_of(text: &str, depth: usize) -> Self {
        match text.contains(['$', '`']) {
            true => Self::of_text_at(text, depth).commands_only().unwrap_or_default(),
            false => Self::default(),
        }
    }

    /// The commands in it, where there are any.
    pub(super) fn commands_only(self) -> Option<Self> {
        let runs = |atom: &Atom| match atom {
            Atom::Substitution { .. } | Atom::Arithmetic { .. } => true,
            Atom::Parameter { op, .. } => op.contains(['$', '`']),
            Atom::Letters { .. } => false,
        };
        let commands: Vec<Atom> = self.0.into_iter().filter(runs).collect();
        (!commands.is_empty()).then_some(Self(commands))
    }
}

/// The word that begins here, where it ends, and how sure that is.
pub(super) fn word(letters: &[char], at: usize, depth: usize) -> (ShellWord, usize, Certainty) {
    let mut reader = AtomReader::new(letters, at, depth);
    reader.word();
    (ShellWord(reader.atoms), reader.at.min(letters.len()), reader.certainty)
}

/// The text up to the closing sign, and the place behind it. Quotes and escapes in it count. `None`
/// where nothing closes it.
pub(super) fn closed(
    letters: &[char],
    begun: usize,
    open: char,
    close: char,
) -> Option<(String, usize)> {
    let begun = begun.min(letters.len());
    let (mut at, mut depth, mut quote) = (begun, 1_usize, None);
    while let Some(c) = letters.get(at) {
        match (c, quote) {
            ('\\', None | Some('"' | '$')) => at += 1,
            // `$'…'`, in which a backslash takes the next letter.
            ('\'', None) if at > begun && letters[at - 1] == '$' => quote = Some('$'),
            ('\'', Some('$')) => quote = None,
            ('\'', None) => quote = Some('\''),
            ('"', None) => quote = Some('"'),
            (c, Some(open)) if *c == open && open != '$' => quote = None,
            (c, None) if *c == open => depth += 1,
            (c, None) if *c == close => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((letters[begun..at].iter().collect(), at + 1));
        }
        at += 1;
    }
    None
}

struct AtomReader<'a> {
    letters: &'a [char],
    at: usize,
    depth: usize,
    atoms: Vec<Atom>,
    certainty: Certainty,
}

impl<'a> AtomReader<'a> {
    fn new(letters: &'a [char], at: usize, depth: usize) -> Self {
        Self { letters, at, depth, atoms: Vec::new(), certainty: Certainty::Sure }
    }

    /// The text up to the closing sign, or to the end.
    fn balanced(&mut self, open: char, close: char) -> String {
        let (text, at) = closed(self.letters, self.at, open, close).unwrap_or_else(|| {
            self.certainty = Certainty::InDoubt;
            let begun = self.at.min(self.letters.len());
            (self.letters[begun..].iter().collect(), self.letters.len())
        });
        self.at = at;
        text
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.letters.get(self.at + ahead).copied()
    }

    fn push(&mut self, c: char, quoted: bool) {
        match self.atoms.last_mut() {
            Some(Atom::Letters { text, quoted: same }) if *same == quoted => text.push(c),
            Some(_) | None => self.atoms.push(Atom::Letters { text: c.into(), quoted }),
        }
    }

    fn word(&mut self) {
        while let Some(c) = self.peek(0) {
            match c {
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => return,
                '\\' => {
                    match self.peek(1) {
                        Some('\n') => {}
                        None => self.certainty = Certainty::InDoubt,
                        Some(escaped) => self.push(escaped, true),
                    }
                    self.at += 2;
                }
                '\'' => {
                    let rest = &self.letters[self.at + 1..];
                    let length = rest.iter().position(|c| *c == '\'').unwrap_or_else(|| {
                        self.certainty = Certainty::InDoubt;
                        rest.len()
                    });
                    let text: String = rest[..length].iter().collect();
                    self.atoms.push(Atom::Letters { text, quoted: true });
                    self.at += length + 2;
                }
                '"' => {
                    self.at += 1;
                    self.atoms.push(Atom::Letters { text: String::new(), quoted: true });
                    self.double_quoted(Some('"'));
                }
                '$' => self.dollar(false),
                '`' => self.backquoted(false),
                c => {
                    self.push(c, false);
                    self.at += 1;
                }
            }
        }
    }

    /// Up to the closing quote, or to the end.
    fn double_quoted(&mut self, close: Option<char>) {
        while let Some(c) = self.peek(0) {
            match c {
                c if Some(c) == close => {
                    self.at += 1;
                    return;
                }
                '\\' => {
                    match self.peek(1) {
                        Some('\n') => {}
                        Some(c @ ('$' | '`' | '"' | '\\')) => self.push(c, true),
                        Some(c) => {
                            self.push('\\', true);
                            self.push(c, true);
                        }
                        None => self.push('\\', true),
                    }
                    self.at += 2;
                }
                '$' => self.dollar(true),
                '`' => self.backquoted(true),
                c => {
                    self.push(c, true);
                    self.at += 1;
                }
            }
        }
        if close.is_some() {
            self.certainty = Certainty::InDoubt;
        }
    }

    fn backquoted(&mut self, quoted: bool) {
        self.at += 1;
        let mut text = String::new();
        let before = std::mem::replace(&mut self.certainty, Certainty::InDoubt);
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match (c, self.peek(0)) {
                ('`', _) => {
                    self.certainty = before;
                    break;
                }
                ('\\', Some(escaped @ ('`' | '\\' | '$'))) => {
                    text.push(escaped);
                    self.at += 1;
                }
                (c, _) => text.push(c),
            }
        }
        self.atoms.push(Atom::Substitution { text, quoted, process: false });
    }

    fn dollar(&mut self, quoted: bool) {
        self.at += 1;
        match self.peek(0) {
            Some('\'') if !quoted => {
                self.at += 1;
                let mut raw = String::new();
                let before = std::mem::replace(&mut self.certainty, Certainty::InDoubt);
                while let Some(c) = self.peek(0) {
                    self.at += 1;
                    match c {
                        '\'' => {
                            self.certainty = before;
                            break;
                        }
                        '\\' => {
                            raw.push('\\');
                            raw.extend(self.peek(0));
                            self.at += 1;
                        }
                        c => raw.push(c),
                    }
                }
                let text = super::print::escaped(&raw).0;
                self.atoms.push(Atom::Letters { text, quoted: true });
            }
            Some('"') if !quoted => {}
            Some('(') => self.bracketed(quoted),
            Some('[') => {
                self.at += 1;
                let text = self.balanced('[', ']');
                self.arithmetic(&text, quoted);
            }
            Some('{') => {
                self.at += 1;
                let text = self.balanced('{', '}');
                // In double quotes a single one is a letter, and a command has brackets of its own.
                let commands = text.contains("$(") || text.contains('`');
                if (quoted && text.contains('\''))
                    || (commands && ["<<", "#", "case"].iter().any(|sign| text.contains(sign)))
                {
                    self.certainty = Certainty::InDoubt;
                }
                self.braced(&text, quoted);
            }
            Some(c @ ('0'..='9' | '@' | '*' | '#' | '?' | '$' | '!' | '-')) => {
                self.at += 1;
                self.atoms.push(Atom::Parameter { name: c.into(), op: String::new(), quoted });
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let rest = self.letters[self.at..].iter();
                let name: String =
                    rest.take_while(|c| c.is_ascii_alphanumeric() || **c == '_').collect();
                self.at += name.len();
                self.atoms.push(Atom::Parameter { name, op: String::new(), quoted });
            }
            Some(_) | None => self.push('$', quoted),
        }
    }

    /// `$(…)` and `$((…))`. As in bash, the latter is a command where its brackets do not close together.
    fn bracketed(&mut self, quoted: bool) {
        if self.peek(1) == Some('(')
            && let Some((text, at)) = closed(self.letters, self.at + 2, '(', ')')
            && self.letters.get(at) == Some(&')')
        {
            self.at = at + 1;
            return self.arithmetic(&text, quoted);
        }
        let begun = self.at + 1;
        let (end, certainty) = parse::bracketed(self.letters, begun, self.depth);
        self.certainty = self.certainty.max(certainty);
        let text = self.letters[begun.min(end)..end].iter().collect();
        self.at = end + 1;
        self.atoms.push(Atom::Substitution { text, quoted, process: false });
    }

    fn arithmetic(&mut self, text: &str, quoted: bool) {
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            self.atoms.push(Atom::Letters { text: text.to_owned(), quoted });
        } else if self.depth >= parse::DEPTH_CAP {
            self.certainty = Certainty::InDoubt;
            self.atoms.push(Atom::Arithmetic { runs: Vec::new(), quoted });
        } else {
            let runs = ShellWord::commands_of(text, self.depth + 1).0;
            self.atoms.push(Atom::Arithmetic { runs, quoted });
        }
    }

    fn braced(&mut self, text: &str, quoted: bool) {
        let special = |c: char| "@*#?$!-".contains(c);
        let length = match text.chars().next() {
            // `${!x}` and `${#x}` keep their sign in the operation.
            Some('!' | '#') if text.len() > 1 => 0,
            Some(c) if special(c) => 1,
            Some(c) if c.is_ascii_digit() => {
                text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
            }
            Some(_) | None => {
                text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
            }
        };
        let (mut name, mut op) = text.split_at(length);
        let mut sign = String::new();
        if length == 0 && op.starts_with(['!', '#']) {
            sign = op[..1].to_owned();
            let rest = &op[1..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let end = end.unwrap_or(rest.len());
            (name, op) = rest.split_at(end);
        }
        let op = format!("{sign}{op}");
        self.atoms.push(Atom::Parameter { name: name.to_owned(), op, quoted });
    }
}
