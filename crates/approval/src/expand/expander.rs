//! The state of an expansion; its methods are in `walk`, `commands`, `names` and `words`.

use super::step::{ShellStep, StepOrder};
use super::{Expanded, Values};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Deepest texts and substitutions within each other.
pub(super) const DEPTH_CAP: usize = 10;

/// Text that `echo` and `printf` print.
#[derive(Default)]
pub(super) struct PrintedOutput {
    /// All of it, for commands that read it.
    pub(super) printed: Values,
    /// The current substitution's, so far.
    pub(super) captured: Option<Vec<String>>,
}

pub(super) struct Expander {
    pub(super) names: HashMap<String, Values>,
    /// The bodies that a name can have.
    pub(super) functions: HashMap<String, Vec<Rc<Vec<ShellStep>>>>,
    pub(super) order: StepOrder,
    pub(super) expanded: Expanded,
    pub(super) known: HashSet<Vec<String>>,
    pub(super) output: PrintedOutput,
    /// True if a shell reads its text from another command or file.
    pub(super) feeds_shell: bool,
    /// Arrays of which an element was set by a name or a sum.
    pub(super) unordered: HashSet<String>,
    pub(super) attributes: HashMap<String, Attribute>,
    /// Files that a shell reads.
    pub(super) scripts: HashSet<String>,
    /// Files that the text writes.
    pub(super) written: Vec<(String, FileContent)>,
    pub(super) depth: usize,
    /// The functions that are running, with their arguments.
    pub(super) calls: Vec<Vec<String>>,
    /// Names that a builtin declared: a later assignment may fail.
    pub(super) kept: HashSet<String>,
    pub(super) fuel: usize,
}

/// The content written to a file.
#[derive(Debug)]
pub(super) enum FileContent {
    These(Vec<String>),
    /// Anything that is printed in the text.
    Anything,
}

/// An attribute of a name, set by `declare`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attribute {
    /// `-l`
    Lower,
    /// `-u`
    Upper,
    /// `-n`: the name is an alias for the name in its value.
    Reference,
}

impl Attribute {
    pub(super) fn of(option: &str) -> Option<Self> {
        let letters = option.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
        letters.chars().find_map(|letter| match letter {
            'l' => Some(Self::Lower),
            'u' => Some(Self::Upper),
            'n' => Some(Self::Reference),
            _ => None,
        })
    }
}

/// Whether a value is split into words at its blanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Split {
    Words,
    Never,
}
