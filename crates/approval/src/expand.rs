//! Expands a command as bash does before it runs it, from the text alone: variables, arrays,
//! positional parameters, loop words, braces, the output of `echo` and `printf`. Used only to deny
//! and to ask: an expansion never allows anything.
//!
//! `parse`, `redirect` and `compound` cut a text into steps, and `atoms` parses the words. `walk`
//! and `commands` execute the steps on an `expander`. `names` and `words` track the possible values
//! of names and words; `parameter`, `braces`, `fields` and `print` compute the expansions.
//!
//! Steps are executed with the *set* of values that each name can have. If every step of a text
//! runs once and in order, each name has one value. Any other text is executed twice and only adds
//! values, so that a loop or a function sees values set after it. Sets, texts and work are bounded.

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

use std::fmt;
use step::{Atom, ShellWord};

/// Most texts whose variables are looked into: the first, and those within it.
pub(crate) const EXPANSIONS_CAP: usize = 64;

/// Longest text that a variable or a substitution holds.
const TEXT_CAP: usize = 64 * 1024;
/// Most values of a name, most fields of a brace expansion, most readings of a word.
const VALUES_CAP: usize = 4096;
/// Most outputs of a substitution, and most inputs of a command.
const OUTPUTS_CAP: usize = 64;
/// Placeholder for an unknown value. No real command contains this character.
const UNKNOWN: char = '\u{10fffd}';
/// Placeholder for a value with too many possibilities, or one that is too long.
const TOO_MANY: char = '\u{10fffb}';
/// Behind the former: it is outputs that are too many.
const OF_OUTPUTS: char = '\u{10fffa}';
/// An element of an array that was never set.
const ABSENT: &str = "\u{10fffc}";

/// The commands of a text as bash would run them.
#[derive(Debug, Default)]
pub(crate) struct Expanded {
    /// The words of each command.
    pub commands: Vec<Vec<String>>,
    pub opacity: Opacity,
    pub certainty: Certainty,
}

/// How sure it is that the text was cut into commands as bash cuts it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Certainty {
    /// Every part was parsed.
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
    /// There are more possibilities than are checked.
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

/// The limit because of which this word is unknown, if one is.
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

    /// Returns false if there was no room for it.
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

    /// Like `add`; if there is no room, adds a placeholder instead.
    fn add_or_mark(&mut self, value: Vec<String>) {
        let beyond = vec![beyond(Limit::Values)];
        if !self.add(value) && self.known.insert(beyond.clone()) {
            self.list.push(beyond);
        }
    }
}
