//! The generous reading's first half: a shell text cut into pieces that could each be a command.
//!
//! Not a shell's grammar: it errs towards more pieces. Each text is read with its quotes and once
//! more without them, so that a quote in a comment or a here-document hides nothing.

/// A piece of a text between two operators.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its words, quotes and redirections taken out.
    pub words: Vec<String>,
    /// Further places where a command could begin, beside the first word.
    pub starts: Vec<usize>,
}

/// What a quote means while reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quotes {
    /// It holds a word together.
    Kept,
    /// Nothing, as in a comment or a here-document.
    Ignored,
}

/// The pieces of a text.
pub(crate) fn pieces(text: &str, quotes: Quotes) -> Vec<Piece> {
    let mut lexer = Lexer {
        quotes,
        found: Vec::new(),
        piece: Piece::default(),
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
    found: Vec<Piece>,
    piece: Piece,
    word: Option<String>,
    next_word: NextWord,
}

/// What becomes of the next whole word.
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
                // `$'…'` and `$"…"` are quotes too.
                '$' if matches!(letters.peek(), Some('\'' | '"')) => {}
                '&' if letters.peek() == Some(&'>') => {
                    // One shell redirects here, another begins a new command behind the target.
                    self.end_word();
                    self.piece.starts.push(self.piece.words.len());
                }
                '\n' | ';' | '&' | '|' | '(' | ')' | '`' => self.end_piece(),
                '<' | '>' => self.redirection(&mut letters),
                c if c.is_whitespace() || c.is_control() => self.end_word(),
                c => self.push(c),
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
        // The descriptor before it is no word.
        if self.word.as_ref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        let mut signs = 1;
        while let Some(sign) = letters.next_if(|c| matches!(c, '<' | '>' | '&' | '|' | '-')) {
            signs += usize::from(sign == '<');
        }
        if signs >= 3 {
            // A here-string is the text of somebody's standard input, perhaps a shell's.
            self.end_piece();
        } else {
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
