//! A word of a shell text: letters, and what bash will put in their place.

/// A word as it is written.
#[derive(Debug, Clone, Default)]
pub(super) struct Word(pub Vec<Atom>);

/// A piece of a word.
#[derive(Debug, Clone)]
pub(super) enum Atom {
    Letters {
        text: String,
        quoted: bool,
    },
    /// `$name` or `${name…}`; `op` is what follows the name in the braces.
    Parameter {
        name: String,
        op: String,
        quoted: bool,
    },
    /// `$(…)`, backquotes; with `process`, `<(…)`.
    Substitution {
        text: String,
        quoted: bool,
        process: bool,
    },
    /// Nothing that can be known from the text.
    Unknown {
        quoted: bool,
    },
}

impl Word {
    /// Its letters, where all of them are written out without quotes.
    pub(super) fn plain(&self) -> Option<String> {
        let mut plain = String::new();
        for atom in &self.0 {
            match atom {
                Atom::Letters { text, quoted: false } => plain.push_str(text),
                Atom::Letters { .. }
                | Atom::Parameter { .. }
                | Atom::Substitution { .. }
                | Atom::Unknown { .. } => return None,
            }
        }
        Some(plain)
    }

    /// Whether bash can make its text without an error: `$((1/0))` and `${x?}` end a line.
    pub(super) fn expands_always(&self) -> bool {
        self.0.iter().all(|atom| match atom {
            Atom::Letters { .. } => true,
            Atom::Parameter { op, .. } => op.is_empty(),
            Atom::Substitution { process, .. } => !process,
            Atom::Unknown { .. } => false,
        })
    }

    /// Its letters, as far as they are written out.
    pub(super) fn text(&self) -> String {
        let letters = self.0.iter().filter_map(|atom| match atom {
            Atom::Letters { text, .. } => Some(text.as_str()),
            Atom::Parameter { .. } | Atom::Substitution { .. } | Atom::Unknown { .. } => None,
        });
        letters.collect()
    }

    /// These letters.
    pub(super) fn quoted(text: &str) -> Self {
        Self(vec![Atom::Letters { text: text.to_owned(), quoted: true }])
    }

    /// A text in which bash replaces variables and commands as in double quotes.
    pub(super) fn of_text(text: &str) -> Self {
        let letters: Vec<char> = text.chars().collect();
        let mut reader = Reader { letters: &letters, at: 0, atoms: Vec::new() };
        reader.double_quoted(None);
        Self(reader.atoms)
    }

    /// The commands in it, where there are any.
    pub(super) fn commands_only(self) -> Option<Self> {
        let runs = |atom: &Atom| matches!(atom, Atom::Substitution { .. });
        let commands: Vec<Atom> = self.0.into_iter().filter(runs).collect();
        (!commands.is_empty()).then_some(Self(commands))
    }
}

/// The word that begins here, and where it ends.
pub(super) fn word(letters: &[char], at: usize) -> (Word, usize) {
    let mut reader = Reader { letters, at, atoms: Vec::new() };
    reader.word();
    (Word(reader.atoms), reader.at.min(letters.len()))
}

/// The text up to the closing sign, and the place behind it. Quotes and escapes in it count.
pub(super) fn balanced(letters: &[char], begun: usize, open: char, close: char) -> (String, usize) {
    let begun = begun.min(letters.len());
    let (mut at, mut depth, mut quote) = (begun, 1_usize, None);
    while let Some(c) = letters.get(at) {
        match (c, quote) {
            ('\\', None | Some('"')) => at += 1,
            ('\'', None) => quote = Some('\''),
            ('"', None) => quote = Some('"'),
            (c, Some(open)) if *c == open => quote = None,
            (c, None) if *c == open => depth += 1,
            (c, None) if *c == close => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return (letters[begun..at].iter().collect(), at + 1);
        }
        at += 1;
    }
    // Not closed, or a quote that is none: what is there all the same.
    (letters[begun..].iter().collect(), letters.len())
}

struct Reader<'a> {
    letters: &'a [char],
    at: usize,
    atoms: Vec<Atom>,
}

impl Reader<'_> {
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
                        Some('\n') | None => {}
                        Some(escaped) => self.push(escaped, true),
                    }
                    self.at += 2;
                }
                '\'' => {
                    let rest = &self.letters[self.at + 1..];
                    let length = rest.iter().position(|c| *c == '\'').unwrap_or(rest.len());
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
    }

    fn backquoted(&mut self, quoted: bool) {
        self.at += 1;
        let mut text = String::new();
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match (c, self.peek(0)) {
                ('`', _) => break,
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
                while let Some(c) = self.peek(0) {
                    self.at += 1;
                    match c {
                        '\'' => break,
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
            Some('(') if self.peek(1) == Some('(') => {
                self.at += 2;
                let (text, at) = balanced(self.letters, self.at, '(', ')');
                self.at = at + usize::from(self.letters.get(at) == Some(&')'));
                self.arithmetic(text.trim(), quoted);
            }
            Some('(') => {
                let (text, at) = balanced(self.letters, self.at + 1, '(', ')');
                self.at = at;
                self.atoms.push(Atom::Substitution { text, quoted, process: false });
            }
            Some('[') => {
                let (text, at) = balanced(self.letters, self.at + 1, '[', ']');
                self.at = at;
                self.arithmetic(text.trim(), quoted);
            }
            Some('{') => {
                let (text, at) = balanced(self.letters, self.at + 1, '{', '}');
                self.at = at;
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

    fn arithmetic(&mut self, text: &str, quoted: bool) {
        let number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        self.atoms.push(match number {
            true => Atom::Letters { text: text.to_owned(), quoted },
            false => Atom::Unknown { quoted },
        });
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
