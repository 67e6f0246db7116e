//! The generous reading's first half: a shell text cut into pieces that could each be a command.
//!
//! Not a shell's grammar: it errs towards more pieces. Each text is read with its quotes and once
//! more without them, so that a quote in a comment or a here-document hides nothing.

/// A piece of a text between two operators.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TextPiece {
    /// Its words, quotes and redirections taken out.
    pub words: Vec<String>,
    /// Further places where a command could begin, beside the first word.
    pub starts: Vec<usize>,
}

/// The treatment of quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quotes {
    /// It holds a word together.
    Kept,
    /// Nothing, as in a comment or a here-document.
    Ignored,
}

/// True if the text is plain letters and closed quotes, which can be read in one way only.
pub(crate) fn is_plain(text: &str) -> bool {
    let mut quote = None;
    let fits = text.bytes().all(|byte| match (byte, quote) {
        (b'\'' | b'"', None) => {
            quote = Some(byte);
            true
        }
        (byte, Some(open)) if byte == open => {
            quote = None;
            true
        }
        (b'$' | b'`' | b'\\', _) => false,
        (b' '..=b'~', Some(_)) => true,
        (byte, _) => byte.is_ascii_alphanumeric() || b"_./:=,@%+- \t".contains(&byte),
    });
    fits && quote.is_none()
}

/// Skips the words of an array, `x=(a b)`, if they are plain words on one line: they are not a
/// command.
fn pass_array(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,@%+- \t".contains(c);
    let mut ahead = letters.clone();
    let end = ahead.find(|c| !plain(*c));
    if end == Some(')') {
        *letters = ahead;
    }
    end == Some(')')
}

/// The pieces of a text.
pub(crate) fn pieces(text: &str, quotes: Quotes) -> Vec<TextPiece> {
    let mut lexer = Lexer {
        quotes,
        found: Vec::new(),
        piece: TextPiece::default(),
        word: None,
        next_word: NextWord::Kept,
    };
    lexer.run(text);
    lexer.end_piece();
    lexer.found
}

#[derive(Debug)]
struct Lexer {
    quotes: Quotes,
    found: Vec<TextPiece>,
    piece: TextPiece,
    word: Option<String>,
    next_word: NextWord,
}

/// Whether the next whole word is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextWord {
    Kept,
    /// It is the target of a redirection.
    Dropped,
}

impl Lexer {
    fn run(&mut self, text: &str) {
        let mut letters = text.chars().peekable();
        while let Some(c) = letters.next() {
            match c {
                '\\' => match letters.next() {
                    // A line goes on, or a letter stands for itself.
                    Some('\n') | None => {}
                    Some(escaped) => self.push(escaped),
                },
                '\'' | '"' if self.quotes == Quotes::Ignored => {}
                '\'' => {
                    self.word.get_or_insert_default();
                    for inner in letters.by_ref().take_while(|inner| *inner != '\'') {
                        self.push(inner);
                    }
                }
                '"' => self.double_quoted(&mut letters),
                '$' if letters.peek() == Some(&'\'') && self.quotes == Quotes::Kept => {
                    letters.next();
                    self.escaped_quoted(&mut letters);
                }
                // `$"…"` is a quote too.
                '$' if matches!(letters.peek(), Some('\'' | '"')) => {}
                '&' if letters.peek() == Some(&'>') => {
                    // One shell redirects here, another begins a new command behind the target.
                    self.end_word();
                    self.piece.starts.push(self.piece.words.len());
                }
                '(' if self.assigns() && pass_array(&mut letters) => {}
                '\n' | ';' | '&' | '|' | '(' | ')' | '`' => self.end_piece(),
                '<' | '>' => self.redirection(&mut letters),
                c if c.is_whitespace() || c.is_control() => self.end_word(),
                c => self.push(c),
            }
        }
    }

    /// True if the word so far is `name=` or `name+=`.
    fn assigns(&self) -> bool {
        let name = self.word.as_ref().and_then(|word| word.strip_suffix('='));
        name.map(|name| name.strip_suffix('+').unwrap_or(name)).is_some_and(|name| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        })
    }

    /// `$'…'`, in which a letter can be written as its number.
    fn escaped_quoted(&mut self, letters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        self.word.get_or_insert_default();
        while let Some(inner) = letters.next() {
            match inner {
                '\'' => return,
                '\\' => {
                    let Some(kind) = letters.next() else { return };
                    let (base, most, begun) = match kind {
                        'x' => (16, 2, 0),
                        'u' => (16, 4, 0),
                        'U' => (16, 8, 0),
                        '0'..='7' => (8, 2, kind.to_digit(8).unwrap_or_default()),
                        // A line break, a bell or the like: never part of a name.
                        'a' | 'b' | 'e' | 'E' | 'f' | 'n' | 'r' | 't' | 'v' | 'c' => {
                            self.end_word();
                            continue;
                        }
                        other => {
                            self.push(other);
                            continue;
                        }
                    };
                    let mut code = begun;
                    for _ in 0..most {
                        let Some(digit) = letters.peek().and_then(|c| c.to_digit(base)) else {
                            break;
                        };
                        letters.next();
                        code = code.wrapping_mul(base).wrapping_add(digit);
                    }
                    self.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                inner => self.push(inner),
            }
        }
    }

    fn double_quoted(&mut self, letters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        self.word.get_or_insert_default();
        while let Some(inner) = letters.next() {
            match inner {
                '"' => return,
                '\\' => match letters.next() {
                    Some('\n') | None => {}
                    Some(escaped) => self.push(escaped),
                },
                inner => self.push(inner),
            }
        }
    }

    fn redirection(&mut self, letters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        // The descriptor before it is no word, nor is the variable that takes its number.
        let variable = |word: &str| word.starts_with('{') && word.ends_with('}');
        let number = |word: &str| word.chars().all(|c| c.is_ascii_digit());
        if self.word.as_ref().is_some_and(|word| number(word) || variable(word)) {
            self.word = None;
        }
        self.end_word();
        let (mut signs, mut last) = (1, '<');
        let mut closes = false;
        while let Some(sign) = letters.next_if(|c| matches!(c, '<' | '>' | '&' | '|' | '-')) {
            signs += usize::from(sign == '<');
            closes = last == '&' && sign == '-';
            last = sign;
        }
        if signs >= 3 {
            // A here-string is standard input, perhaps of a shell. A command follows it.
            self.end_piece();
            self.piece.starts.push(1);
        } else if !closes {
            self.next_word = NextWord::Dropped;
        }
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match std::mem::replace(&mut self.next_word, NextWord::Kept) {
            NextWord::Kept => self.piece.words.push(word),
            NextWord::Dropped => {}
        }
    }

    fn end_piece(&mut self) {
        self.end_word();
        self.next_word = NextWord::Kept;
        let piece = std::mem::take(&mut self.piece);
        if !piece.words.is_empty() {
            self.found.push(piece);
        }
    }
}
