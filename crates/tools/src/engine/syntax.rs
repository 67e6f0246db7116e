//! The interface between the syntax tools and the engine that parses source text. The engine opens
//! no file and is linked into `agentd-code` only; the tools handle paths, limits and writing.

use crate::engine::error::EngineError;
use std::ops::Range;
use std::path::Path;

/// Reads source text. A language is named as [`SyntaxEngine::languages`] lists it.
pub trait SyntaxEngine {
    /// Every language whose trees it reads.
    fn languages(&self) -> &'static [&'static str];

    /// The language that is called so, as people write it: `rs`, `Rust`, `c++`.
    fn language_named(&self, name: &str) -> Option<&'static str>;

    /// The language of a file of this name.
    fn language_of_file(&self, path: &Path) -> Option<&'static str>;

    /// The outline of a file; `None` for an unknown file type.
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
    fn first_syntax_error(&self, language: &'static str, old: &str, new: &str) -> Option<usize>;
}

/// A search that is ready.
pub trait SyntaxSearch {
    /// Matches in a text, in order, `most` at most.
    fn find(&self, text: &str, most: usize) -> Vec<CodeMatch>;

    /// Patterns that are not whole code by themselves, which may be why they match nothing.
    fn incomplete_patterns(&self) -> &[String];
}

/// The outline of a file, in source order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The file type.
    pub language: &'static str,
    /// Its entries.
    pub entries: Vec<OutlineEntry>,
    /// True if parts of it have syntax errors.
    pub errors: bool,
}

/// One entry of an outline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlineEntry {
    /// Its first line, counted from 1.
    pub line: usize,
    /// Its last line.
    pub last: usize,
    /// Its nesting depth.
    pub depth: usize,
    /// Its head on one line: `fn new(path: &Path) -> Self`.
    pub text: String,
}

/// A piece of code that matches a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeMatch {
    /// Its first line, counted from 1.
    pub line: usize,
    /// Where it stands: `Account.close`; empty at the top.
    pub symbol: String,
    /// The code.
    pub text: String,
    /// Each metavariable with its value.
    pub captures: Vec<(String, String)>,
}

/// One edit of a syntax tree: code that looks so becomes other code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEdit {
    /// The code to find.
    pub find: FindBy,
    /// The replacement, with the metavariables of `find`.
    pub replacement: String,
    /// Only inside code that looks so.
    pub within: Option<String>,
    /// Only inside the function, type or module of this name.
    pub within_symbol: Option<String>,
}

/// How code to replace is described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindBy {
    /// As code with metavariables.
    Pattern(String),
    /// As a rule of ast-grep, a JSON object.
    Rule(String),
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
    /// The replacement.
    pub new: String,
    /// In which function, type or module they stand; empty at the top.
    pub symbol: String,
}
