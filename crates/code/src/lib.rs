//! Syntax trees: outlines of files, searches for code, edits of trees.
//!
//! [`Trees`] is the engine behind the tools `summary`, `scan` and `rewrite`: text in, places out, on
//! tree-sitter's grammars and ast-grep's matching. It opens no file. For `agentd-code` only: nothing
//! else links the grammars.
//!
//! The files: `language` is the table of languages, `symbols` finds names in a tree, `outline` and
//! `plain` make outlines, `search` matches patterns, `replace` edits.

mod language;
mod outline;
mod plain;
mod replace;
mod search;
mod symbols;

use ast_grep_core::tree_sitter::StrDoc;
use ast_grep_language::SupportLang;
use language::Language;
use std::path::Path;
use tools::{
    EngineError, FailureCode, LocatedEdits, Outline, SyntaxEngine, SyntaxSearch, TreeEdit,
};

type Doc = StrDoc<SupportLang>;
type Tree = ast_grep_core::AstGrep<Doc>;
type Node<'t> = ast_grep_core::Node<'t, Doc>;

/// The engine.
#[derive(Debug, Clone, Copy)]
pub struct Trees;

impl SyntaxEngine for Trees {
    fn languages(&self) -> &'static [&'static str] {
        language::NAMES
    }

    fn language_named(&self, name: &str) -> Option<&'static str> {
        Some(language::called(name)?.name)
    }

    fn language_of_file(&self, path: &Path) -> Option<&'static str> {
        Some(language::of_file(path)?.name)
    }

    fn outline(&self, path: &Path, text: &str) -> Option<Outline> {
        match language::of_file(path) {
            Some(language) => Some(outline::of(language, &parsed(language, text).ok()?)),
            None => plain::outline(path, text),
        }
    }

    fn search(
        &self,
        language: &'static str,
        patterns: &[String],
    ) -> Result<Box<dyn SyntaxSearch>, EngineError> {
        Ok(Box::new(search::PatternSet::new(known(language)?, patterns)?))
    }

    fn places(
        &self,
        language: &'static str,
        text: &str,
        edit: &TreeEdit,
    ) -> Result<LocatedEdits, EngineError> {
        let language = known(language)?;
        replace::places(language, &parsed(language, text)?, edit)
    }

    fn first_syntax_error(&self, language: &'static str, old: &str, new: &str) -> Option<usize> {
        let language = known(language).ok()?;
        let (old, new) = (parsed(language, old).ok()?, parsed(language, new).ok()?);
        if !has_errors(&new) || errors(&new).len() <= errors(&old).len() {
            return None;
        }
        errors(&new).first().copied()
    }
}

fn known(name: &'static str) -> Result<&'static Language, EngineError> {
    language::called(name).ok_or_else(|| EngineError {
        code: FailureCode::UnsupportedLanguage,
        message: format!("there is no grammar for {name}"),
        hint: String::new(),
    })
}

/// Parses a text. Grammars recover from syntax errors, so this does not fail in practice.
fn parsed(language: &Language, text: &str) -> Result<Tree, EngineError> {
    Tree::try_new(text, language.grammar).map_err(|reason| EngineError {
        code: FailureCode::UnsupportedLanguage,
        message: format!("it cannot be parsed as {}: {reason}", language.name),
        hint: "Use edit.".to_owned(),
    })
}

fn has_errors(tree: &Tree) -> bool {
    tree.root().get_inner_node().has_error()
}

/// The lines, counted from 1, at which something is not of the language.
fn errors(tree: &Tree) -> Vec<usize> {
    let root = tree.root();
    root.dfs()
        .filter(|node| node.is_error() || node.is_missing())
        .map(|node| node.start_pos().line() + 1)
        .collect()
}
