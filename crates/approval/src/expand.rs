//! What bash puts in before a command runs, as far as the text alone says it: variables, arrays,
//! positional parameters, loop words, brace expansion, what `echo` and `printf` print. For denials and
//! questions only: nothing that is found here allows anything.
//!
//! `parse`, `redirect` and `compound` cut a text into steps, `atoms` reads the words, `walk` and `commands`
//! follow them, `names` and `words` keep what each name and word can be, `parameter`, `braces`, `fields` and
//! `print` say what bash puts in.
//!
//! The steps of a text are walked with the *set* of values that each name can hold. A text in which each
//! step runs once and in order has one value a name; any other is walked twice and only adds values, so
//! that a loop or a function sees what is set behind it. Sets, texts and work are bounded.

mod atoms;
mod braces;
mod commands;
mod compound;
mod expander;
mod fields;
mod names;
mod parameter;
mod parse;
mod print;
mod redirect;
mod step;
mod walk;
mod words;

use atoms::{Atom, ShellWord};
use std::fmt;

/// Most texts whose variables are looked into: the first, and those within it.
pub(crate) const EXPANSIONS_CAP: usize = 64;

/// Longest text that a variable or a substitution holds.
const TEXT_CAP: usize = 64 * 1024;
/// Most values of a name, most fields of a brace expansion, most readings of a word.
const VALUES_CAP: usize = 4096;
/// Most outputs of a substitution, or of what a command reads.
const OUTPUTS_CAP: usize = 64;
/// Stands for what cannot be known. No text that people write has it.
const UNKNOWN: char = '\u{10fffd}';
/// Stands for what has too many readings, or is too long.
const TOO_MANY: char = '\u{10fffb}';
/// Behind the former: it is outputs that are too many.
const OF_OUTPUTS: char = '\u{10fffa}';
/// An element of an array that was never set.
const ABSENT: &str = "\u{10fffc}";

/// The commands of a text as bash would run them.
#[derive(Debug, Default)]
pub(crate) struct Expanded {
    /// The words of each.
    pub commands: Vec<Vec<String>>,
    pub opacity: Opacity,
    pub certainty: Certainty,
}

/// Whether the text was cut into commands as bash cuts it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Certainty {
    /// All of it was followed.
    #[default]
    Sure,
    /// A quote or bracket does not close, or other shells read it otherwise.
    InDoubt,
}

/// How far the programs of a text are known.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Opacity {
    /// Each is written out or follows from the text.
    #[default]
    None,
    /// The name of one comes from outside the text.
    Opaque,
    /// There are more possibilities than are looked at.
    TooMany(Limit),
}

/// A bound of the reading, which a text met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Limit {
    Depth,
    Length,
    Outputs,
    Texts,
    Values,
    Work,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Depth => f.write_str("texts or functions are nested more than 10 deep"),
            Self::Length => write!(f, "a text is longer than {} KiB", TEXT_CAP * 2 / 1024),
            Self::Outputs => write!(f, "a command could print more than {OUTPUTS_CAP} texts"),
            Self::Texts => write!(f, "more than {EXPANSIONS_CAP} texts in it contain commands"),
            Self::Values => {
                write!(f, "a word or variable could have more than {VALUES_CAP} values")
            }
            Self::Work => f.write_str("its analysis takes more than 60,000 steps"),
        }
    }
}

/// The limit that hides what a word is, where one does.
pub(crate) fn limit_of(word: &str) -> Option<Limit> {
    let (_, behind) = word.split_once(TOO_MANY)?;
    Some(if behind.starts_with(OF_OUTPUTS) { Limit::Outputs } else { Limit::Values })
}

/// Stands for the values beyond a limit: only a command that a denial could mean is refused for it.
fn beyond(limit: Limit) -> String {
    match limit {
        Limit::Outputs => [TOO_MANY, OF_OUTPUTS].iter().collect(),
        Limit::Depth | Limit::Length | Limit::Texts | Limit::Values | Limit::Work => {
            TOO_MANY.into()
        }
    }
}

/// Expands a text.
pub(crate) fn expand(text: &str) -> Expanded {
    walk::walk(text)
}

/// Values without doubles, in the order of their coming.
#[derive(Debug, Clone, Default)]
struct Values {
    list: Vec<Vec<String>>,
    known: std::collections::HashSet<Vec<String>>,
}

impl Values {
    fn one(value: Vec<String>) -> Self {
        let mut values = Self::default();
        values.add(value);
        values
    }

    /// Whether there was room for it.
    fn add(&mut self, value: Vec<String>) -> bool {
        if self.known.contains(&value) {
            return true;
        }
        let room = self.list.len() < VALUES_CAP;
        if room {
            self.known.insert(value.clone());
            self.list.push(value);
        }
        room
    }

    /// The same, with a sign for what has no room.
    fn add_or_mark(&mut self, value: Vec<String>) {
        let beyond = vec![beyond(Limit::Values)];
        if !self.add(value) && self.known.insert(beyond.clone()) {
            self.list.push(beyond);
        }
    }
}
