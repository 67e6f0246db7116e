//! The strict reading: commands that are plain words and nothing else.

use std::fmt;

/// Why a command is not plain words: what the shell could make more of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotPlain {
    /// No word at all.
    Empty,
    /// `X=y command`: the variable may change what runs.
    Assignment(String),
    /// A line break between two words.
    SecondLine,
    /// A quote without its other half.
    OpenQuote(char),
    /// `$` or a backquote, inside double quotes too.
    Substitution(char),
    /// A backslash.
    Backslash,
    /// `;`, `&`, `|`, `<`, `>` or a bracket.
    Operator(char),
    /// `*`, `?`, `~`, `#`, a brace and the like, outside quotes.
    Special(char),
    /// A control character.
    Control,
    /// A character beyond ASCII, which may look like another.
    Foreign(char),
}

impl fmt::Display for NotPlain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it has no words"),
            Self::Assignment(word) => write!(f, "it sets a variable first (`{word}`)"),
            Self::SecondLine => f.write_str("it has more than one line"),
            Self::OpenQuote(c) => write!(f, "a quote {c} is not closed"),
            Self::Substitution(c) => write!(f, "the shell would replace something in it (`{c}`)"),
            Self::Backslash => f.write_str("it has a backslash"),
            Self::Operator(c) => write!(f, "it joins or redirects commands (`{c}`)"),
            Self::Special(c) => write!(f, "`{c}` outside quotes means something to the shell"),
            Self::Control => f.write_str("it has a control character"),
            Self::Foreign(c) => {
                write!(f, "it has a character beyond ASCII (U+{:04X})", u32::from(*c))
            }
        }
    }
}

/// The words of a command that is plain words and nothing else: letters, digits and `_./:=,@%+-`,
/// or simple quoted strings, divided by blanks. Of such a command every shell makes the same.
///
/// # Errors
/// The first thing that is more than a plain word.
pub fn plain_words(command: &str) -> Result<Vec<String>, NotPlain> {
    // Line breaks at the ends make no second command.
    let command = command.trim_matches([' ', '\t', '\n']);
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = command.chars();
    while let Some(c) = letters.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            'a'..='z'
            | 'A'..='Z'
            | '0'..='9'
            | '_'
            | '.'
            | '/'
            | ':'
            | '='
            | ','
            | '@'
            | '%'
            | '+'
            | '-' => {
                word.get_or_insert_default().push(c);
            }
            '\'' | '"' => quoted(c, &mut letters, word.get_or_insert_default())?,
            c => return Err(fault(c)),
        }
    }
    words.extend(word);
    match words.first() {
        None => Err(NotPlain::Empty),
        Some(first) if first.is_empty() => Err(NotPlain::Empty),
        Some(first) if first.contains('=') => Err(NotPlain::Assignment(first.clone())),
        Some(_) => Ok(words),
    }
}

fn quoted(
    quote: char,
    letters: &mut std::str::Chars<'_>,
    word: &mut String,
) -> Result<(), NotPlain> {
    for c in letters {
        match c {
            c if c == quote => return Ok(()),
            // Not even between single quotes, where they are harmless: one rule for both is easier
            // to be sure of.
            '$' | '`' | '\\' => return Err(fault(c)),
            ' '..='~' => word.push(c),
            c => return Err(fault(c)),
        }
    }
    Err(NotPlain::OpenQuote(quote))
}

fn fault(c: char) -> NotPlain {
    match c {
        '\n' => NotPlain::SecondLine,
        '$' | '`' => NotPlain::Substitution(c),
        '\\' => NotPlain::Backslash,
        ';' | '&' | '|' | '<' | '>' | '(' | ')' => NotPlain::Operator(c),
        c if c.is_control() => NotPlain::Control,
        c if c.is_ascii() => NotPlain::Special(c),
        c => NotPlain::Foreign(c),
    }
}
