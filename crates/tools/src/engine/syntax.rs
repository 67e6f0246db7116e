//! What the tools for syntax trees ask of the engine that reads them: text in, places out. The
//! engine opens no file and is linked into `agentd-code` only; paths, scope, caps and writing stay
//! with the tools.

use crate::engine::error::EngineError;
use std::ops::Range;
use std::path::Path;

/// Reads source text. A language is named as [`SyntaxEngine::languages`] lists it.
pub trait SyntaxEngine {
    /// Every language whose trees it reads.
    fn languages(&self) -> &'static [&'static str];

    /// The language that is called so, as people write it: `rs`, `Rust`, `c++`.
    fn called(&self, name: &str) -> Option<&'static str>;

    /// The language of a file of this name.
    fn of_file(&self, path: &Path) -> Option<&'static str>;

    /// What stands in a file; none where its kind is not known.
    fn outline(&self, path: &Path, text: &str) -> Option<Outline>;

    /// Gets ready to look for code that looks like one of `patterns`.
    ///
    /// # Errors
    /// `invalid_pattern`, which names the pattern.
    fn search(
        &self,
        language: &'static str,
        patterns: &[String],
    ) -> Result<Box<dyn SyntaxSearch>, EngineError>;

    /// Where an edit changes a text.
    ///
    /// # Errors
    /// `no_match`, `ambiguous`, `invalid_pattern`, `unknown_metavariable`, `unknown_symbol`.
    fn places(
        &self,
        language: &'static str,
        text: &str,
        edit: &TreeEdit,
    ) -> Result<LocatedEdits, EngineError>;

    /// The line, counted from 1, at which `new` cannot be read as this language although `old`
    /// could.
    fn broken(&self, language: &'static str, old: &str, new: &str) -> Option<usize>;
}

/// A search that is ready.
pub trait SyntaxSearch {
    /// Matches in a text, in order, `most` at most.
    fn find(&self, text: &str, most: usize) -> Vec<CodeMatch>;

    /// Patterns that are not whole code by themselves, which may be why they match nothing.
    fn doubtful(&self) -> &[String];
}

/// What stands in a file, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// What kind of file it is, in a word.
    pub language: &'static str,
    /// Its entries.
    pub entries: Vec<OutlineEntry>,
    /// Whether parts of it could not be read as that language.
    pub errors: bool,
}

/// One thing that stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlineEntry {
    /// Its first line, counted from 1.
    pub line: usize,
    /// Its last line.
    pub last: usize,
    /// How many others it stands in.
    pub depth: usize,
    /// Its head on one line: `fn new(path: &Path) -> Self`.
    pub text: String,
}

/// A piece of code that looks like what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeMatch {
    /// Its first line, counted from 1.
    pub line: usize,
    /// Where it stands: `Account.close`; empty at the top.
    pub symbol: String,
    /// The code.
    pub text: String,
    /// Each metavariable by its name, with what it stands for.
    pub captures: Vec<(String, String)>,
}

/// One edit of a syntax tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeEdit {
    /// Code that looks so becomes other code.
    Replace {
        /// What to find.
        find: FindBy,
        /// What takes its place, with the metavariables of `find`.
        replacement: String,
        /// Only inside code that looks so.
        within: Option<String>,
        /// Only inside the function, type or module of this name.
        within_symbol: Option<String>,
    },
    /// A name becomes another.
    Rename {
        /// The name as it is.
        from: String,
        /// The name as it shall be.
        to: String,
        /// What is called so.
        target: NameKind,
        /// Only inside the function, type or module of this name.
        within_symbol: Option<String>,
    },
}

/// How code to replace is described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindBy {
    /// As code with metavariables.
    Pattern(String),
    /// As a rule of ast-grep, a JSON object.
    Rule(String),
}

/// What kind of name is renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// A variable, parameter, function or type: what is named without an owner before it.
    Local,
    /// A field, property or method: what is named behind its owner.
    Member,
}

/// Where an edit changes a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LocatedEdits {
    /// In order and without overlaps; at least one.
    pub pieces: Vec<TextEdit>,
    /// Further matches inside of these, which stay.
    pub left_inside: usize,
}

/// Bytes of a text that become others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextEdit {
    /// Which bytes.
    pub place: Range<usize>,
    /// What takes their place.
    pub new: String,
    /// In which function, type or module they stand; empty at the top.
    pub symbol: String,
}
