//! The diff that is reviewed: which base, which files, and as much of it as a request holds. Pure, but for git.

use crate::cli_error::CliError;
use crate::own_git::{run_git, run_git_unfiltered};
use std::ffi::OsStr;
use std::path::Path;

/// Most bytes of the diff that the model gets. It can read the files themselves.
const CAP: usize = 200 << 10;
/// Branches that a review compares with where nobody names a base, in this order.
const BASES: [&str; 3] = ["origin/HEAD", "main", "master"];

/// The changes of a repository against a base.
#[derive(Debug)]
pub(super) struct ReviewedDiff {
    /// What it is compared with, for people.
    pub(super) base: String,
    /// The changed files that still exist, below the top of the repository.
    pub(super) files: Vec<String>,
    /// Files that git does not know yet, among them.
    pub(super) untracked: Vec<String>,
    /// The diff, file by file, as far as it fits.
    pub(super) text: String,
    /// Files whose part did not fit.
    pub(super) left_out: Vec<String>,
}

impl ReviewedDiff {
    /// True if nothing has changed.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.files.is_empty() && self.left_out.is_empty()
    }

    /// Takes it from the repository that holds this directory.
    pub(super) fn take(top: &Path, base: Option<&str>) -> Result<Self, CliError> {
        let (base, commit) = base_commit(top, base)?;
        let commit = commit.as_str();
        let range = ["--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", commit, "--"];
        let names =
            git(top, &[&["diff", "--name-only", "-z", "--diff-filter=d"], &range[..]].concat())?;
        let mut files = names_of(&names);
        let listed = git(top, &["ls-files", "--others", "--exclude-standard", "-z"])?;
        let untracked = names_of(&listed);
        files.extend(untracked.iter().cloned());
        let whole = git(top, &[&["diff"], &range[..]].concat())?;
        let (text, left_out) = fitting(&String::from_utf8_lossy(&whole), CAP);
        Ok(Self { base, files, untracked, text, left_out })
    }
}

/// The top of the repository that holds a directory.
pub(super) fn top_of(directory: &Path) -> Result<std::path::PathBuf, CliError> {
    use std::os::unix::ffi::OsStrExt;
    let words = ["rev-parse", "--show-toplevel"].map(OsStr::new);
    let top = run_git(directory, &words).map_err(|failure| {
        CliError::user(format!("there is no git repository to review: {}", failure.message()))
    })?;
    Ok(Path::new(OsStr::from_bytes(top.trim_ascii_end())).to_owned())
}

/// The base for people, and the commit that the work began at.
fn base_commit(top: &Path, base: Option<&str>) -> Result<(String, String), CliError> {
    let exists = |name: &str| {
        one_line(top, &["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")])
    };
    let Ok(head) = exists("HEAD") else {
        // The tree without a file: all that is there is new.
        let empty = one_line(top, &["hash-object", "-t", "tree", "/dev/null"])?;
        return Ok(("nothing, since there is no commit yet".to_owned(), empty));
    };
    let merge_base = |name: &str| one_line(top, &["merge-base", name, "HEAD"]);
    if let Some(name) = base {
        if name.starts_with('-') || exists(name).is_err() {
            return Err(CliError::user(format!("{name:?} is no commit, branch or tag here")));
        }
        let commit = merge_base(name).map_err(|_| {
            CliError::user(format!("{name:?} and HEAD have no commit in common"))
                .hint("name another base")
        })?;
        return Ok((format!("{name} ({})", short(&commit)), commit));
    }
    for name in BASES {
        if let (Ok(_), Ok(commit)) = (exists(name), merge_base(name))
            && commit != head
        {
            return Ok((format!("{name} ({})", short(&commit)), commit));
        }
    }
    Ok((format!("HEAD ({}): the changes that are not committed", short(&head)), head))
}

fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

fn git(top: &Path, words: &[&str]) -> Result<Vec<u8>, CliError> {
    run_git_unfiltered(top, &words.iter().map(OsStr::new).collect::<Vec<_>>())
}

fn one_line(top: &Path, words: &[&str]) -> Result<String, CliError> {
    let said = run_git(top, &words.iter().map(OsStr::new).collect::<Vec<_>>())?;
    Ok(String::from_utf8_lossy(&said).trim().to_owned())
}

/// Names between zero bytes. Odd bytes are replaced: such a file is only named.
fn names_of(listed: &[u8]) -> Vec<String> {
    let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// The parts of a diff that fit into so many bytes, and the files of the others.
fn fitting(diff: &str, most: usize) -> (String, Vec<String>) {
    let (mut text, mut left_out) = (String::new(), Vec::new());
    for part in parts(diff) {
        if text.len() + part.len() <= most {
            text.push_str(part);
        } else {
            let first = part.lines().next().unwrap_or_default();
            let name = first.rsplit_once(" b/").map_or(first, |(_, name)| name);
            left_out.push(name.trim_end_matches('"').to_owned());
        }
    }
    (text, left_out)
}

/// A diff by its files.
fn parts(diff: &str) -> Vec<&str> {
    const BEGIN: &str = "diff --git ";
    let inner = diff.match_indices(&format!("\n{BEGIN}")).map(|(at, _)| at + 1).collect::<Vec<_>>();
    let mut begins = Vec::new();
    if diff.starts_with(BEGIN) {
        begins.push(0);
    }
    begins.extend(inner);
    let ends = begins.iter().skip(1).copied().chain([diff.len()]);
    begins.iter().zip(ends).map(|(begin, end)| &diff[*begin..end]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_do_not_fit_are_named_and_small_ones_behind_them_stay() {
        let part = |name: &str, lines: usize| {
            format!("diff --git a/{name} b/{name}\n{}", "+x\n".repeat(lines))
        };
        let diff = format!("{}{}{}", part("a", 2), part("big file", 100), part("c", 2));
        let (text, left_out) = fitting(&diff, 120);
        assert_eq!(left_out, ["big file"]);
        assert!(text.contains("a/a") && text.contains("a/c") && !text.contains("big"));
        assert_eq!(fitting("", 5), (String::new(), Vec::new()));
        assert_eq!(fitting("no diff", 50).0, "", "what is no part of a file is none of a diff");
    }

    #[test]
    fn names_with_odd_bytes_are_names() {
        assert_eq!(names_of(b"a b\0\xff\0"), ["a b", "\u{fffd}"]);
    }
}
