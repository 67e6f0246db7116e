//! The words and steps of a shell text, before expansion.

use std::rc::Rc;

/// A word as it is written.
#[derive(Debug, Clone, Default)]
pub(super) struct ShellWord(pub Vec<Atom>);

/// A piece of a word.
#[derive(Debug, Clone)]
pub(super) enum Atom {
    Letters {
        text: String,
        quoted: bool,
    },
    /// `$name` or `${name…}`; `op` is the text after the name in the braces.
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
    /// A number that is not known; the commands in it run all the same.
    Arithmetic {
        runs: Vec<Atom>,
        quoted: bool,
    },
}

/// Something that a text does, in the order of the text.
#[derive(Debug)]
pub(super) enum ShellStep {
    Simple(ParsedCommand),
    /// `for name in words`; the body follows as steps of its own.
    Loop {
        name: String,
        words: Vec<ShellWord>,
    },
    Function {
        name: String,
        body: Rc<Vec<ShellStep>>,
        defined: Definition,
    },
}

/// Whether a function's definition is always reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Definition {
    /// It takes the place of an earlier one.
    Always,
    /// It may be skipped, or hold for a subshell only.
    Perhaps,
}

/// A simple command.
#[derive(Debug, Default)]
pub(super) struct ParsedCommand {
    /// Before the program, and behind `declare` and its like.
    pub assigns: Vec<Assign>,
    /// The program and its arguments.
    pub words: Vec<ShellWord>,
    /// Here-strings and here-documents.
    pub inputs: Vec<ShellWord>,
    /// Files that it writes and reads.
    pub files: Vec<(FileUse, ShellWord)>,
    /// Indices and numbers: the commands in them run.
    pub asides: Vec<ShellWord>,
    /// A command whose redirection fails does nothing.
    pub redirected: bool,
    /// Where `&>` stands among the words: for `sh`, a command begins behind its target.
    pub splits: Vec<usize>,
    /// Here-documents that it reads, counted from the beginning of the text.
    pub heres: Vec<usize>,
}

/// Which way a redirection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileUse {
    In,
    Out,
    /// Another descriptor than the output.
    Beside,
}

/// `name=…`, `name+=…`, `name[…]=…` or `name=(…)`.
#[derive(Debug)]
pub(super) struct Assign {
    pub name: String,
    pub append: bool,
    /// In brackets behind the name.
    pub index: Option<String>,
    /// `(…)`: all elements at once.
    pub array: bool,
    pub values: Vec<ShellWord>,
}

/// Whether every step runs once and in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepOrder {
    Straight,
    Any,
}
