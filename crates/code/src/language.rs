//! The table of languages: their names, file extensions, and the kinds of nodes that have a name.

use crate::symbols::{self, NodeKinds};
use ast_grep_language::SupportLang;
use std::path::Path;

/// A language with a grammar.
#[derive(Debug)]
pub(crate) struct Language {
    /// As results name it.
    pub name: &'static str,
    /// Its grammar. Only those of this table are linked.
    pub grammar: SupportLang,
    /// Other names of it, in lower case.
    called: &'static [&'static str],
    /// How its files end.
    endings: &'static [&'static str],
    /// Kinds of nodes that have a name.
    pub kinds: NodeKinds,
}

/// Every language, by name.
pub(crate) const NAMES: &[&str] = &[
    "TypeScript",
    "TSX",
    "JavaScript",
    "HTML",
    "CSS",
    "Python",
    "Rust",
    "Go",
    "Java",
    "C",
    "C++",
    "Bash",
];

static LANGUAGES: &[Language] = &[
    Language {
        name: "TypeScript",
        grammar: SupportLang::TypeScript,
        called: &["typescript", "ts"],
        endings: &["ts", "mts", "cts"],
        kinds: symbols::SCRIPT,
    },
    Language {
        name: "TSX",
        grammar: SupportLang::Tsx,
        called: &["tsx"],
        endings: &["tsx"],
        kinds: symbols::SCRIPT,
    },
    Language {
        name: "JavaScript",
        grammar: SupportLang::JavaScript,
        called: &["javascript", "js", "jsx", "node"],
        endings: &["js", "mjs", "cjs", "jsx"],
        kinds: symbols::SCRIPT,
    },
    Language {
        name: "HTML",
        grammar: SupportLang::Html,
        called: &["html"],
        endings: &["html", "htm"],
        kinds: symbols::HTML,
    },
    Language {
        name: "CSS",
        grammar: SupportLang::Css,
        called: &["css"],
        endings: &["css"],
        kinds: symbols::CSS,
    },
    Language {
        name: "Python",
        grammar: SupportLang::Python,
        called: &["python", "py", "python3"],
        endings: &["py", "pyi"],
        kinds: symbols::PYTHON,
    },
    Language {
        name: "Rust",
        grammar: SupportLang::Rust,
        called: &["rust", "rs"],
        endings: &["rs"],
        kinds: symbols::RUST,
    },
    Language {
        name: "Go",
        grammar: SupportLang::Go,
        called: &["go", "golang"],
        endings: &["go"],
        kinds: symbols::GO,
    },
    Language {
        name: "Java",
        grammar: SupportLang::Java,
        called: &["java"],
        endings: &["java"],
        kinds: symbols::JAVA,
    },
    Language {
        name: "C",
        grammar: SupportLang::C,
        called: &["c"],
        endings: &["c", "h"],
        kinds: symbols::C,
    },
    Language {
        name: "C++",
        grammar: SupportLang::Cpp,
        called: &["c++", "cpp", "cc", "cxx"],
        endings: &["cc", "cpp", "cxx", "c++", "hpp", "hh", "hxx", "ipp"],
        kinds: symbols::C,
    },
    Language {
        name: "Bash",
        grammar: SupportLang::Bash,
        called: &["bash", "sh", "shell"],
        endings: &["sh", "bash", "bashrc", "bash_profile"],
        kinds: symbols::BASH,
    },
];

/// The language that is called so.
pub(crate) fn called(name: &str) -> Option<&'static Language> {
    let name = name.to_ascii_lowercase();
    LANGUAGES.iter().find(|language| language.called.contains(&name.as_str()))
}

/// The language of a file of this name.
pub(crate) fn of_file(path: &Path) -> Option<&'static Language> {
    let name = path.file_name()?.to_str()?;
    let (_, ending) = name.rsplit_once('.')?;
    let ending = ending.to_ascii_lowercase();
    LANGUAGES.iter().find(|language| language.endings.contains(&ending.as_str()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A grammar that is not linked panics when it is asked for.
    #[test]
    fn every_language_has_its_grammar_and_answers_to_its_name() {
        assert_eq!(NAMES.len(), LANGUAGES.len());
        for (name, language) in NAMES.iter().zip(LANGUAGES) {
            assert_eq!(*name, language.name);
            assert_eq!(called(name).unwrap().name, *name);
            let tree = crate::parsed(language, "").unwrap();
            assert!(!crate::has_errors(&tree), "{name}");
            for kind in language.kinds.all() {
                let known = language.grammar.get_ts_language().id_for_node_kind(kind, true) != 0;
                assert!(known || language.kinds.is_shared(kind), "{name} has no {kind}");
            }
        }
    }

    use ast_grep_core::tree_sitter::LanguageExt;

    #[test]
    fn files_and_names() {
        for (file, name) in [
            ("a.rs", Some("Rust")),
            ("A.TSX", Some("TSX")),
            ("x/.bashrc", Some("Bash")),
            ("a.d.ts", Some("TypeScript")),
            ("Makefile", None),
            ("a.md", None),
        ] {
            assert_eq!(of_file(Path::new(file)).map(|language| language.name), name, "{file}");
        }
        assert_eq!(called("C++").unwrap().name, "C++");
        assert_eq!(called("golang").unwrap().name, "Go");
        assert!(called("cobol").is_none());
    }
}
