//! Searches for code by patterns.

use crate::language::Language;
use crate::symbols::{enclosing_symbol, one_line};
use crate::{Node, Tree, has_errors, parsed};
use ast_grep_core::matcher::NodeMatch;
use ast_grep_core::meta_var::MetaVariable;
use ast_grep_core::{Language as _, Pattern, PatternError};
use tools::{CodeMatch, EngineError, FailureCode, SyntaxSearch};

/// Patterns of one language, ready to be looked for.
pub(crate) struct PatternSet {
    language: &'static Language,
    patterns: Vec<Pattern>,
    incomplete_patterns: Vec<String>,
}

impl PatternSet {
    pub fn new(language: &'static Language, texts: &[String]) -> Result<Self, EngineError> {
        let patterns =
            texts.iter().map(|text| pattern(language, text)).collect::<Result<_, _>>()?;
        let in_doubt = |text: &&String| {
            let code = language.grammar.pre_process_pattern(text.trim());
            let broken = |code: &str| parsed(language, code).is_ok_and(|tree| has_errors(&tree));
            // An expression becomes a statement with a semicolon.
            broken(&code) && broken(&format!("{code};"))
        };
        let incomplete_patterns = texts.iter().filter(in_doubt).cloned().collect();
        Ok(Self { language, patterns, incomplete_patterns })
    }
}

/// Pieces of a pattern inside each other: it is made by a function that calls itself for each.
const DEEPEST: u32 = 256;

/// True if the tree is nested deeper than that.
fn too_deep(tree: &Tree) -> bool {
    let mut cursor = tree.root().get_inner_node().walk();
    // The cursor's own depth is counted anew at each call.
    let mut depth = 0;
    while depth <= DEEPEST {
        if cursor.goto_first_child() {
            depth += 1;
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return false;
            }
            depth -= 1;
        }
    }
    true
}

/// Compiles one pattern.
pub(crate) fn pattern(language: &Language, text: &str) -> Result<Pattern, EngineError> {
    let invalid = |why: String, hint: &str| EngineError {
        code: FailureCode::InvalidPattern,
        message: format!("the pattern {:?} {why}", one_line(text)),
        hint: hint.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(invalid("is empty".to_owned(), "Give the code to find."));
    }
    let code = language.grammar.pre_process_pattern(text.trim());
    if too_deep(&parsed(language, &code)?) {
        return Err(invalid(
            format!("is nested deeper than {DEEPEST}"),
            "Use only the innermost code; a match is found at any depth.",
        ));
    }
    let made = Pattern::try_new(text.trim(), language.grammar).map_err(|error| match error {
        PatternError::MultipleNode(_) => invalid(
            format!("is several pieces of {} code", language.name),
            "A pattern is exactly one expression, statement or function.",
        ),
        PatternError::NoContent(_) => invalid("is empty".to_owned(), "Give the code to find."),
        PatternError::Parse(_)
        | PatternError::InvalidKind(_)
        | PatternError::NoSelectorInContext { .. }
        | PatternError::RootMultiMetaVar(_) => invalid(
            format!("cannot be used: {error}"),
            "$NAME matches one syntax node; $$$NAME matches any number of nodes.",
        ),
    })?;
    if made.has_error() {
        return Err(invalid(
            format!("is not valid {} code", language.name),
            "The pattern must be complete code, with matching brackets; use $$$ for omitted \
                parts.",
        ));
    }
    Ok(made)
}

impl SyntaxSearch for PatternSet {
    fn incomplete_patterns(&self) -> &[String] {
        &self.incomplete_patterns
    }

    fn find(&self, text: &str, most: usize) -> Vec<CodeMatch> {
        // Most files do not contain the pattern's fixed text and need no tree.
        let may = |pattern: &Pattern| text.contains(pattern.fixed_string().as_ref());
        let here: Vec<&Pattern> = self.patterns.iter().filter(|pattern| may(pattern)).collect();
        let Ok(tree) =
            (if here.is_empty() { return Vec::new() } else { parsed(self.language, text) })
        else {
            return Vec::new();
        };
        let root = tree.root();
        let mut found: Vec<NodeMatch<'_, _>> = Vec::new();
        for pattern in here {
            found.extend(root.find_all(pattern).take(most));
        }
        found.sort_by_key(|one| (one.range().start, std::cmp::Reverse(one.range().end)));
        found.dedup_by_key(|one| one.range());
        found.truncate(most);
        found.iter().map(|one| self.told(text, one)).collect()
    }
}

impl PatternSet {
    fn told(&self, text: &str, found: &NodeMatch<'_, crate::Doc>) -> CodeMatch {
        let env = found.get_env();
        let mut captures: Vec<(String, String)> = env
            .get_matched_variables()
            .filter_map(|variable| match variable {
                MetaVariable::Capture(name, _) => {
                    let value = env.get_match(&name)?.text().into_owned();
                    Some((name, value))
                }
                MetaVariable::MultiCapture(name) => {
                    let value = joined(text, &env.get_multiple_matches(&name));
                    Some((name, value))
                }
                MetaVariable::Dropped(_) | MetaVariable::Multiple => None,
            })
            .collect();
        captures.sort();
        CodeMatch {
            line: found.start_pos().line() + 1,
            symbol: enclosing_symbol(self.language.kinds, found.get_node()),
            text: found.text().into_owned(),
            captures,
        }
    }
}

/// The source text of neighbouring nodes, with the text between them.
fn joined(text: &str, nodes: &[Node<'_>]) -> String {
    match (nodes.first(), nodes.last()) {
        (Some(first), Some(last)) => {
            text.get(first.range().start..last.range().end).unwrap_or_default().to_owned()
        }
        (None, _) | (_, None) => String::new(),
    }
}
