//! A shell text, read: the simple commands in it with the words that each program gets, for both
//! judges. What no rule can allow is an obstacle beside them, and the reading goes on.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Stands for letters that are not known before the command runs. No real command has it.
pub(crate) const HOLE: char = '\u{10fffd}';

/// One word that a program gets, as far as it is known before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArgWord {
    /// These letters.
    Known(String),
    /// One word: something in double quotes is replaced.
    One(Unknown),
    /// Any number of words, none included: a variable or a pattern for files without quotes.
    Open(Unknown),
}

/// What is seen of a word that is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unknown {
    pub start: WordStart,
    pub fields: Fields,
    /// Its letters, with [`HOLE`] for those that are not known.
    pub text: String,
    /// As the command has it.
    pub written: String,
}

/// The quotes around an expansion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Around {
    Nothing,
    /// Double quotes, or a here-document.
    Quotes,
}

/// What may become of a word that is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fields {
    /// Words that each look like this one: names of files, braces.
    Alike,
    /// Any words behind the first.
    Any,
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
    pub words: SharedWords,
    /// What it reads, and all that may be in its place.
    pub inputs: Vec<Input>,
}

/// The words of a command from one on, shared by the commands that run each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SharedWords {
    all: Arc<[ArgWord]>,
    begin: usize,
}

impl SharedWords {
    /// The words from this one on.
    pub(crate) fn behind(&self, at: usize) -> Self {
        Self { all: Arc::clone(&self.all), begin: self.begin + at }
    }
}

impl From<Vec<ArgWord>> for SharedWords {
    fn from(words: Vec<ArgWord>) -> Self {
        Self { all: words.into(), begin: 0 }
    }
}

impl Deref for SharedWords {
    type Target = [ArgWord];

    fn deref(&self) -> &[ArgWord] {
        &self.all[self.begin..]
    }
}

/// A text that a command reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    Text(ArgWord),
    /// The here-document with this number.
    Document(usize),
    /// A pipe, a file, or another descriptor.
    Other,
}

impl ArgWord {
    /// A word of which nothing is known.
    pub(crate) fn unknown(written: &str) -> Self {
        Self::Open(Unknown {
            start: WordStart::Any,
            fields: Fields::Any,
            text: HOLE.into(),
            written: written.to_owned(),
        })
    }

    /// The letters, where they are known.
    pub(crate) fn known(&self) -> Option<&str> {
        match self {
            Self::Known(text) => Some(text),
            Self::One(_) | Self::Open(_) => None,
        }
    }

    /// The letters, also of a word that some shell may expand, such as `-I{}`.
    pub(crate) fn letters(&self) -> Option<&str> {
        Some(self.text()).filter(|text| !text.contains(HOLE))
    }

    /// The letters, with [`HOLE`] for those that are not known.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Known(text) => text,
            Self::One(unknown) | Self::Open(unknown) => &unknown.text,
        }
    }

    /// True if more words may come out of it, or none.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// True if words that look in no way like it may come out of it.
    pub(crate) fn hides_words(&self) -> bool {
        matches!(self, Self::Open(unknown) if unknown.fields == Fields::Any)
    }

    /// As the command has it.
    pub(crate) fn written(&self) -> &str {
        match self {
            Self::Known(text) => text,
            Self::One(unknown) | Self::Open(unknown) => &unknown.written,
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

/// A text that was read, to the last letter.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Each that could run, in any order and however often.
    pub commands: Vec<SimpleCommand>,
    /// The here-documents, by their number.
    pub documents: Vec<ArgWord>,
    /// What elements of arrays and variables of loops are set to.
    pub values: Vec<ArgWord>,
    /// The other variables, and what they are set to.
    pub variables: Vec<(String, ArgWord)>,
    /// The files that redirections write.
    pub written: Vec<ArgWord>,
    /// The first sign that only bash reads like this.
    pub of_bash: Option<String>,
    obstacle: Option<ScriptError>,
}

impl Script {
    /// Notes why no rule can allow the text; the first reason counts.
    pub(crate) fn bar(&mut self, why: ScriptError) {
        if let (ScriptError::Keyword(word), None) = (&why, &self.of_bash) {
            self.of_bash = Some(word.clone());
        }
        self.obstacle.get_or_insert(why);
    }

    /// The commands, if a rule can allow the text.
    pub(crate) fn plain(self) -> Result<Vec<SimpleCommand>, ScriptError> {
        match self.obstacle {
            Some(why) => Err(why),
            None => Ok(self.commands),
        }
    }
}

/// Why no rule can allow a text, or why it cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptError {
    /// No command at all.
    Empty,
    /// `X=y command`, or a loop over `X`: the variable may change which programs run.
    Assignment(String),
    /// A quote or a bracket without its other half.
    Open(char),
    /// Something that is replaced by what no rule can know: backquotes, `${x:-y}`, arithmetic, `$'…'`.
    Expansion(String),
    /// A redirection to or from something else than `/dev/null` or another descriptor.
    Redirection(String),
    /// A here-document or a here-string.
    Here,
    /// A function.
    Function,
    /// A keyword of which the programs depend on more than the text.
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
