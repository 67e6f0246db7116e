//! Protected files inside granted directories: programs outside the sandbox run or trust them, so
//! file tools never write them. For commands the cage protects the same names.

use crate::files::call_scope::CallScope;
use sandbox::{NameClass, ProtectedName};
use std::path::Path;

const GIT: &str = ".git";

/// Beneath a `.git` directory.
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

/// The protected name that a real path lies at or beneath; in words where it has no fixed one.
pub(crate) fn at(scope: &CallScope, real: &Path) -> Option<String> {
    let root = scope.root_of(real)?;
    let inside = real.strip_prefix(root).ok()?;
    name(inside).or_else(|| bare(root, inside)).or_else(|| {
        // Settings point to few places, and paths relative to a home directory are not known here.
        let led = sandbox::paths_named_by_git_config(&scope.project, None);
        let led = led.iter().find(|led| real.starts_with(led) && !root.starts_with(led))?;
        Some(format!("{}, to which git's settings point", scope.shown(led).display()))
    })
}

/// The row of a file that projects want written and that a program runs later, at any depth.
#[must_use]
pub fn asked_about(path: &Path) -> Option<&'static ProtectedName> {
    let parts = sandbox::name_parts(path);
    let is_at = |row: &&ProtectedName| {
        row.class == NameClass::Asked
            && (0..parts.len()).any(|from| sandbox::lies_at(&parts[from..], row.name))
    };
    sandbox::protected_names().iter().find(is_at)
}

/// The same for a directory that git takes for a repository, or would with this file.
fn bare(root: &Path, inside: &Path) -> Option<String> {
    let parts = sandbox::name_parts(inside);
    let mut folder = root.to_owned();
    for (at, part) in parts.iter().enumerate() {
        let is = |name: &&str| sandbox::is_same_name(part, name);
        let there = |name: &&str| is(name) || folder.join(name).symlink_metadata().is_ok();
        let matters = sandbox::GIT_BARE.iter().any(is)
            || OF_GIT.iter().any(|name| sandbox::lies_at(&parts[at..], name));
        // Or `HEAD` and a file that says where the other two are.
        let elsewhere = there(&"HEAD") && there(&"commondir");
        if matters && (elsewhere || sandbox::GIT_BARE.iter().all(there)) {
            return Some(format!("{} of a bare repository", part.to_string_lossy()));
        }
        folder.push(part);
    }
    None
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
            let found = OF_GIT.iter().find(|name| sandbox::lies_at(inner, name))?;
            Some(format!("{GIT}/{found}"))
        };
        // A linked worktree's `.git` is a file that says where its repository is.
        let pointer = || (rest.len() == 1 && at(&GIT)).then(|| GIT.to_owned());
        let of_project = |row: &&ProtectedName| {
            row.class == NameClass::Protected && !row.name.starts_with(".git/") && at(&row.name)
        };
        sandbox::protected_names()
            .iter()
            .find(of_project)
            .map(|row| row.name.to_owned())
            .or_else(of_git)
            .or_else(pointer)
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
            (".git/configuration", None),
            (".git/info/exclude", None),
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
