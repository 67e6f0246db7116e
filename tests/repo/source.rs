//! The source files of the repository, and the parts of them that the other tests count.

use std::fs;
use std::path::{Path, PathBuf};

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every source file below `directory`, with its text.
pub fn sources(directory: &str) -> Vec<(String, String)> {
    fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in
            fs::read_dir(directory).unwrap_or_else(|error| panic!("{directory:?}: {error}"))
        {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                walk(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(directory), &mut found);
    found.sort();
    assert!(!found.is_empty(), "no sources in {directory}");
    found
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect()
}

pub fn all_sources() -> Vec<(String, String)> {
    ["crates", "workers", "tests"].into_iter().flat_map(sources).collect()
}

/// True for files that hold tests only.
pub fn is_test(name: &str) -> bool {
    let folders = ["tests/", "benches/", "examples/"];
    folders.iter().any(|folder| name.starts_with(folder) || name.contains(&format!("/{folder}")))
        || name.ends_with("tests.rs")
}

/// The code of a file without its test modules and its comment lines. Other items under
/// `#[cfg(test)]`, such as a variant or an import, do not end it.
pub fn shipped(text: &str) -> String {
    let mut kept = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" {
            let mut attributes = vec![line];
            while let Some(next) = lines.next_if(|next| next.starts_with("#[")) {
                attributes.push(next);
            }
            let is_module = lines.peek().is_some_and(|next| {
                next.trim_start_matches("pub(crate) ")
                    .trim_start_matches("pub ")
                    .starts_with("mod ")
            });
            if is_module {
                if lines.next().is_some_and(|module| module.ends_with('{')) {
                    lines.by_ref().find(|next| *next == "}");
                }
            } else {
                kept.extend(attributes);
            }
        } else if !line.trim_start().starts_with("//") {
            kept.push(line);
        }
    }
    kept.join("\n")
}

#[test]
fn shipped_code_ends_at_a_test_module_and_not_at_a_test_item() {
    let text = "//! Doc.\nenum A {\n    #[cfg(test)]\n    Only,\n}\n#[cfg(test)]\nuse std::fs;\n\
                // A comment.\nfn kept() {}\n#[cfg(test)]\n#[path = \"x_tests.rs\"]\nmod x;\n\
                fn also() {}\n#[cfg(test)]\n#[allow(clippy::unwrap_used)]\nmod tests {\n    fn gone() {}\n}\nfn last() {}\n";
    let code = shipped(text);
    for part in ["Only,", "use std::fs;", "fn kept", "fn also", "fn last"] {
        assert!(code.contains(part), "{part} is shipped: {code}");
    }
    for part in ["Doc", "comment", "mod x", "fn gone", "clippy"] {
        assert!(!code.contains(part), "{part} is not shipped: {code}");
    }
}
