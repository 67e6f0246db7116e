//! Protected files inside granted directories: programs outside the sandbox run or trust them, so
//! file tools never write them. For commands the cage protects the same names.

use protocol::hidden::line_for_model;
use sandbox::CallScope;
use sandbox::{NameClass, ProtectedBy, ProtectedFiles, ProtectedName};
use std::cell::OnceCell;
use std::path::Path;

const GIT: &str = ".git";

/// What git runs or believes, beneath a `.git` directory or in a bare repository.
const OF_GIT: [&str; 11] = [
    "hooks",
    "config",
    "config.worktree",
    "info/attributes",
    "commondir",
    "modules",
    "worktrees",
    "rebase-merge",
    "sequencer",
    "rr-cache",
    "MERGE_RR",
];

/// The protected files of a call, searched for when the first file is about to be changed.
#[derive(Debug, Default)]
pub(crate) struct ProtectedSearch(OnceCell<ProtectedFiles>);

impl ProtectedSearch {
    /// The protected name that a real path lies at or beneath; in words where it has no fixed one.
    pub(crate) fn at(&self, scope: &CallScope, real: &Path) -> Option<String> {
        let root = scope.root_of(real)?;
        let inside = real.strip_prefix(root).ok()?;
        name(inside).or_else(|| bare(root, inside, &[])).or_else(|| self.around(scope, real))
    }

    /// The same by the links, hard links and settings of the project that lead to the path.
    fn around(&self, scope: &CallScope, real: &Path) -> Option<String> {
        let files = self.0.get_or_init(|| {
            let roots: Vec<_> =
                std::iter::once(&scope.project).chain(&scope.added).cloned().collect();
            let home = scope.home.as_ref().map(|home| home.shown_at.clone());
            ProtectedFiles::find(&roots, scope.roots().map(Path::to_owned).collect(), home)
        });
        let shown = |path| line_for_model(&scope.shown(path).to_string_lossy()).into_owned();
        Some(match files.around(real)? {
            // Of a folder that git's settings name, there is no link.
            ProtectedBy::Name(path) => {
                format!("{}, which git's settings or another repository name", shown(path))
            }
            ProtectedBy::Link { from, target } => {
                format!("{}, to which {} leads", shown(target), shown(from))
            }
            ProtectedBy::HardLink(path) => {
                format!("{}, of which this is another name (a hard link)", shown(path))
            }
        })
    }
}

/// The first of the files that one call makes together with which git takes a directory for a
/// repository, and its protected name.
pub(crate) fn first_of_repository<'a>(
    scope: &CallScope,
    made: &[&'a Path],
) -> Option<(&'a Path, String)> {
    made.iter().find_map(|real| {
        let root = scope.root_of(real)?;
        Some((*real, bare(root, real.strip_prefix(root).ok()?, made)?))
    })
}

/// The same for a directory that git takes for a repository, or would with this file and those that
/// are made with it.
fn bare(root: &Path, inside: &Path, made: &[&Path]) -> Option<String> {
    let parts = sandbox::name_parts(inside);
    let mut folder = root.to_owned();
    for (at, part) in parts.iter().enumerate() {
        let is = |name: &&str| sandbox::is_same_name(part, name);
        let there = |name: &&str| {
            let path = folder.join(name);
            is(name)
                || path.symlink_metadata().is_ok()
                || made.iter().any(|made| lies_below(made, &path))
        };
        let matters = sandbox::GIT_BARE.iter().any(is)
            || OF_GIT.iter().any(|name| sandbox::lies_at(&parts[at..], name));
        // Or `HEAD` and a file that says where the other two are.
        let elsewhere = || there(&"HEAD") && there(&"commondir");
        if matters && (sandbox::GIT_BARE.iter().all(there) || elsewhere()) {
            return Some(format!("{} of a bare repository", part.to_string_lossy()));
        }
        folder.push(part);
    }
    None
}

/// True if a path is another or lies beneath it, by any spelling that a file system takes for it.
fn lies_below(path: &Path, above: &Path) -> bool {
    let above = above.to_string_lossy();
    sandbox::lies_at(&sandbox::name_parts(path), above.trim_start_matches('/'))
}

/// The protected name that a path, relative to its granted directory, lies at or beneath, by any
/// spelling that a file system takes for it.
fn name(inside: &Path) -> Option<String> {
    let parts = sandbox::name_parts(inside);
    (0..parts.len()).find_map(|from| {
        let rest = &parts[from..];
        let at = |name: &&str| sandbox::lies_at(rest, name);
        let of_git = || {
            let inner = rest.split_first().filter(|(git, _)| sandbox::is_same_name(git, GIT))?.1;
            // Git alone writes there. A linked worktree's `.git` is a file that says where its
            // repository is.
            let found = OF_GIT.iter().find(|name| sandbox::lies_at(inner, name));
            Some(found.map_or_else(|| GIT.to_owned(), |found| format!("{GIT}/{found}")))
        };
        let of_project = |row: &&ProtectedName| {
            row.class == NameClass::Protected && !row.name.starts_with(".git/") && at(&row.name)
        };
        sandbox::protected_names()
            .iter()
            .find(of_project)
            .map(|row| row.name.to_owned())
            .or_else(of_git)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_protected_name_of_the_table_and_none_that_is_asked_about() {
        for row in sandbox::protected_names() {
            let found = name(Path::new(row.name));
            match row.class {
                NameClass::Protected => assert_eq!(found.as_deref(), Some(row.name)),
                NameClass::Asked => assert_eq!(found, None, "{}", row.name),
            }
        }
    }

    #[test]
    fn protected_names() {
        for (path, expected) in [
            (".git/hooks/pre-commit", Some(".git/hooks")),
            (".git/config", Some(".git/config")),
            ("sub/.git/config", Some(".git/config")),
            (".git", Some(".git")),
            (".git/modules/x/config", Some(".git/modules")),
            (".agentd/config.toml", Some(".agentd")),
            ("a/.envrc", Some(".envrc")),
            (".vscode/tasks.json", Some(".vscode/tasks.json")),
            (".vscode/extensions.json", None),
            (".github/workflows/ci.yml", None),
            (".git/configuration", Some(".git")),
            (".git/info/exclude", Some(".git")),
            ("sub/.git/index", Some(".git")),
            (".github/x", None),
            ("x.git/index", None),
            (".gitignore", None),
            (".envrc.example", None),
            ("src/main.rs", None),
            (".GIT/Config", Some(".git/config")),
            ("git~1/hooks/x", Some(".git/hooks")),
            (".git.", Some(".git")),
            (".git\\hooks\\x", Some(".git/hooks")),
            ("a/.ENVRC", Some(".envrc")),
            (".VsCode/Tasks.JSON", Some(".vscode/tasks.json")),
            (".Claude\u{200c}/settings.json", Some(".claude")),
            (".VSCODE/extensions.json", None),
            (".GitIgnore", None),
        ] {
            assert_eq!(name(Path::new(path)).as_deref(), expected, "{path}");
        }
    }
}
