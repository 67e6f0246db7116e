//! A shell text, read: the simple commands in it with the words that each program gets, or why
//! that cannot be known.

use std::fmt;

/// One word that a program gets, as far as it is known before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArgWord {
    /// These letters.
    Known(String),
    /// One word: something in double quotes is replaced.
    One(WordStart),
    /// Any number of words, none included: a variable or a pattern for files without quotes.
    Open(WordStart),
}

/// How a word begins that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordStart {
    /// In any way; it may be an option.
    Any,
    /// With letters that cannot make it an option.
    Plain,
}

/// One program with its arguments. The commands of a text are judged one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SimpleCommand {
    /// Never empty; the first is the program.
    pub words: Vec<ArgWord>,
}

impl ArgWord {
    /// The letters, where they are known.
    pub(crate) fn known(&self) -> Option<&str> {
        match self {
            Self::Known(text) => Some(text),
            Self::One(_) | Self::Open(_) => None,
        }
    }
}

impl fmt::Display for ArgWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(text) if text.is_empty() || text.contains(char::is_whitespace) => {
                write!(f, "'{text}'")
            }
            Self::Known(text) => f.write_str(text),
            Self::One(_) => f.write_str("<unknown>"),
            Self::Open(_) => f.write_str("<unknown ...>"),
        }
    }
}

impl fmt::Display for SimpleCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, word) in self.words.iter().enumerate() {
            let blank = if at == 0 { "" } else { " " };
            write!(f, "{blank}{word}")?;
        }
        Ok(())
    }
}

/// A command as far as it could be read: at least one program.
pub(crate) type Script = Result<Vec<SimpleCommand>, ScriptError>;

/// The reason why the programs of a text are unknown, so that no rule can allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptError {
    /// No command at all.
    Empty,
    /// `X=y command`, or a loop over `X`: the variable may change which programs run.
    Assignment(String),
    /// A quote or a bracket without its other half.
    Open(char),
    /// Something that is replaced and not looked into: backquotes, `${x:-y}`, arithmetic, `$'…'`.
    Expansion(String),
    /// A redirection to or from something else than `/dev/null` or another descriptor.
    Redirection(String),
    /// A here-document or a here-string.
    Here,
    /// A function.
    Function,
    /// A keyword that this parser does not support.
    Keyword(String),
    /// Not where the grammar has it.
    Misplaced(String),
    /// A program's name that is only known when it runs.
    Program,
    /// A character that looks like another or like nothing.
    Character(char),
    /// Commands nested deeper than in any real text.
    Deep,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it is empty"),
            Self::Assignment(name) => write!(f, "it sets the variable `{name}` first"),
            Self::Open(c) => write!(f, "`{c}` is not closed"),
            Self::Expansion(text) => {
                write!(f, "the shell would expand `{text}` in it")
            }
            Self::Redirection(target) => write!(f, "it redirects (`{target}`)"),
            Self::Here => f.write_str("it has a here-document"),
            Self::Function => f.write_str("it defines a function"),
            Self::Keyword(word) => write!(f, "agentd does not analyse `{word}`"),
            Self::Misplaced(text) => write!(f, "agentd cannot parse its shell syntax at `{text}`"),
            Self::Program => f.write_str("it runs a program whose name is not written out"),
            Self::Character(c) => {
                write!(
                    f,
                    "it contains a character that is easily mistaken for another (U+{:04X})",
                    u32::from(*c)
                )
            }
            Self::Deep => f.write_str("it is nested too deeply"),
        }
    }
}
