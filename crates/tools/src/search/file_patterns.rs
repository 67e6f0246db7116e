//! File patterns in the notations of people and other tools: as in .gitignore, several in one text,
//! absolute, or with `..`. For `glob` and `grep`.

use crate::failure::{FailureCode, ToolFailure};
use crate::files::path_trace::{TraceEnd, trace_path};
use crate::files::target_path::access_denied;
use crate::search::expression::CaseMatching;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use sandbox::CallScope;
use std::path::{Path, PathBuf};

/// Characters that make a path component a pattern.
const WILD: [char; 5] = ['*', '?', '[', '{', '\\'];

/// Patterns that a path may match.
#[derive(Debug)]
pub(crate) struct FilePatterns {
    wanted: Vec<Gitignore>,
    unwanted: Vec<Gitignore>,
}

/// Whether `!` patterns are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exclusion {
    /// `!*.md` is all but those.
    Taken,
    Refused,
}

impl FilePatterns {
    /// Patterns that are read from `root` on, and from the project on.
    ///
    /// # Errors
    /// `invalid_pattern`, and `access_denied` where one leads outside.
    pub fn new(
        scope: &CallScope,
        root: &Path,
        text: &str,
        case: CaseMatching,
        exclusion: Exclusion,
    ) -> Result<Self, ToolFailure> {
        let mut patterns = Self { wanted: Vec::new(), unwanted: Vec::new() };
        for piece in pieces(text) {
            let (list, piece) = match piece.strip_prefix('!') {
                Some(_) if exclusion == Exclusion::Refused => {
                    return Err(invalid(
                        text,
                        "begins with !, which excludes files",
                        "Give a pattern of the files to find.",
                    ));
                }
                Some(rest) => (&mut patterns.unwanted, rest),
                None => (&mut patterns.wanted, piece),
            };
            match elsewhere(scope, piece)? {
                Some((base, rest)) => list.push(matcher(&base, &rest, case)?),
                None => {
                    list.push(matcher(root, piece, case)?);
                    // Written from the project on, as a shell there would read it.
                    if root != scope.project && piece.trim_start_matches("./").contains('/') {
                        list.push(matcher(&scope.project, piece, case)?);
                    }
                }
            }
        }
        Ok(patterns)
    }

    /// The directory to walk: `root`, or the directory of an absolute pattern.
    pub fn root<'a>(&'a self, root: &'a Path) -> &'a Path {
        let reaches =
            |one: &&Gitignore| one.path().starts_with(root) || root.starts_with(one.path());
        match self.wanted.first() {
            Some(first) if !self.wanted.iter().any(|one| reaches(&one)) => first.path(),
            Some(_) | None => root,
        }
    }

    /// True if the path itself matches.
    pub fn matches(&self, path: &Path, is_directory: bool) -> bool {
        let any = |list: &[Gitignore]| {
            list.iter().any(|one| inside(one, path) && one.matched(path, is_directory).is_ignore())
        };
        (self.wanted.is_empty() || any(&self.wanted)) && !any(&self.unwanted)
    }

    /// True if a file, or a directory above it, matches.
    pub fn matches_within(&self, path: &Path) -> bool {
        let any = |list: &[Gitignore]| {
            list.iter().any(|one| {
                inside(one, path) && one.matched_path_or_any_parents(path, false).is_ignore()
            })
        };
        (self.wanted.is_empty() || any(&self.wanted)) && !any(&self.unwanted)
    }
}

/// A matcher applies only below its own directory.
fn inside(one: &Gitignore, path: &Path) -> bool {
    path.starts_with(one.path())
}

/// The text as one pattern, and each part of a list in it: `*.ts,*.tsx`, `*.ts *.tsx`.
fn pieces(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let split = |c: char| {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && matches!(c, ',' | ';' | '|' | ' ')
    };
    let parts: Vec<&str> = text.split(split).filter(|part| !part.is_empty()).collect();
    let is_pattern = |part: &&str| part.starts_with('!') || part.contains(WILD);
    if parts.len() < 2 || !parts.iter().all(is_pattern) {
        return vec![text];
    }
    // A list with exclusions is never one file name.
    let whole = (!text.contains('!')).then_some(text);
    whole.into_iter().chain(parts).collect()
}

/// The directory before the first wildcard of a pattern, and the rest. `None` for a pattern
/// relative to the call's directory, that is, neither absolute nor with `..`.
fn elsewhere(scope: &CallScope, pattern: &str) -> Result<Option<(PathBuf, String)>, ToolFailure> {
    let wild = pattern.find(WILD).unwrap_or(pattern.len());
    let names = pattern[..wild].rfind('/').map_or("", |at| &pattern[..=at]);
    let through_parents = names.split('/').any(|part| part == "..");
    if !through_parents && !pattern.starts_with('/') {
        return Ok(None);
    }
    let named = names.trim_end_matches('/');
    if named.is_empty() {
        return Ok(None);
    }
    let found = trace_path(scope, named);
    let is_there = matches!(found.end, TraceEnd::Found) && found.real.is_dir();
    if scope.contains(&found.real) {
        let rest = format!("/{}", &pattern[names.len()..]);
        let is_whole = rest == "/";
        return Ok((is_there && !is_whole).then_some((found.real, rest)));
    }
    // `/src/*.rs` is also that of the directory of the call.
    let is_beneath = scope.project.join(named.trim_start_matches('/')).is_dir();
    if through_parents || (is_there && !is_beneath) {
        return Err(access_denied(scope, &found.real, pattern, "is outside the project"));
    }
    Ok(None)
}

/// A gitignore-style pattern, relative to `root`.
fn matcher(root: &Path, pattern: &str, case: CaseMatching) -> Result<Gitignore, ToolFailure> {
    // In an ignore file these two begin something else than a pattern.
    let line = match pattern {
        "" => return Err(invalid(pattern, "is empty", "Use * for every file.")),
        "." | "./" => "*".to_owned(),
        _ if pattern.starts_with('#') => format!("\\{pattern}"),
        _ => pattern.strip_prefix("./").map_or(pattern.to_owned(), |rest| format!("/{rest}")),
    };
    let mut builder = GitignoreBuilder::new(root);
    builder.allow_unclosed_class(false);
    let built = builder
        .case_insensitive(case == CaseMatching::Insensitive)
        .and_then(|builder| builder.add_line(None, &line))
        .and_then(|builder| builder.build());
    match built {
        Ok(matcher) if matcher.is_empty() => {
            Err(invalid(pattern, "matches nothing", "Use * for every file."))
        }
        Ok(matcher) => Ok(matcher),
        Err(error) => Err(invalid(
            pattern,
            &format!("cannot be read: {error}"),
            "Escape special characters with \\.",
        )),
    }
}

fn invalid(pattern: &str, why: &str, hint: &str) -> ToolFailure {
    ToolFailure::new(FailureCode::InvalidPattern, format!("the pattern {pattern:?} {why}"), hint)
}

/// True for a text that reads as a file pattern rather than a regular expression.
pub(crate) fn looks_like_files(text: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "*?{},./_- []!@".contains(c);
    let is_wild = text.starts_with('*')
        || text.contains("**")
        || (text.contains("/*") && !text.contains(".*"));
    is_wild && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_patterns() {
        for (text, expected) in [
            ("*.rs", vec!["*.rs"]),
            ("*.{ts,tsx}", vec!["*.{ts,tsx}"]),
            ("*.ts,*.tsx", vec!["*.ts,*.tsx", "*.ts", "*.tsx"]),
            ("*.ts, *.{js,jsx}", vec!["*.ts, *.{js,jsx}", "*.ts", "*.{js,jsx}"]),
            ("my file.txt", vec!["my file.txt"]),
            ("!*.md", vec!["!*.md"]),
            ("!*.md !*.txt", vec!["!*.md", "!*.txt"]),
            ("", vec![""]),
        ] {
            assert_eq!(pieces(text), expected);
        }
    }

    #[test]
    fn what_was_meant_as_a_pattern_of_files() {
        for text in ["*.rs", "**/*.rs", "src/**/*.{ts,tsx}", "src/*.rs", "**", "*", "*test*"] {
            assert!(looks_like_files(text), "{text}");
        }
        for text in
            ["main", "fn .*", "foo.*bar", "a*b", "*(", "^use", "\\w+/*", "x*", "// *TODO", "/\\*"]
        {
            assert!(!looks_like_files(text), "{text}");
        }
    }
}
