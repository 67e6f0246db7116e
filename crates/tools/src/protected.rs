//! Names inside a granted directory that no file tool writes: what they hold is run or believed
//! later, outside of any cage. For commands the cage itself guards the same names.

use std::path::Path;

/// Beneath a `.git` directory.
const OF_GIT: [&str; 6] =
    ["hooks", "config", "config.worktree", "info/attributes", "commondir", "modules"];

/// Beneath a granted directory, at any depth.
const OF_PROJECT: [&str; 8] = [
    ".agentd",
    ".envrc",
    ".mcp.json",
    ".vscode/tasks.json",
    ".claude",
    ".cursor",
    ".codex",
    ".gemini",
];

/// The protected name that a path, relative to its granted directory, lies at or beneath.
pub(crate) fn name(inside: &Path) -> Option<String> {
    let parts: Vec<&str> = inside.iter().filter_map(|part| part.to_str()).collect();
    (0..parts.len()).find_map(|from| {
        let rest = parts[from..].join("/");
        let at = |name: &&str| {
            rest == **name || rest.strip_prefix(*name).is_some_and(|rest| rest.starts_with('/'))
        };
        let of_git =
            || OF_GIT.iter().map(|name| format!(".git/{name}")).find(|name| at(&name.as_str()));
        // A linked worktree's `.git` is a file that says where its repository is.
        let pointer = || (rest == ".git").then(|| ".git".to_owned());
        OF_PROJECT
            .iter()
            .find(|name| at(name))
            .map(|name| (*name).to_owned())
            .or_else(of_git)
            .or_else(pointer)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::name;
    use std::path::Path;

    /// The cage of a command guards its list; nothing on it may be open to a file tool.
    #[test]
    fn no_fewer_names_than_the_cage_of_a_command() {
        let policy = include_str!("../../../config/confinement/command.toml");
        let (_, list) = policy.split_once("protected = [").unwrap();
        let names: Vec<&str> =
            list.split("name = \"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(names.len() > 5, "the policy's list was not found");
        for guarded in names {
            assert_eq!(name(Path::new(guarded)).as_deref(), Some(guarded));
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
            (".vscode/settings.json", None),
            (".git/configuration", None),
            (".git/info/exclude", None),
            (".gitignore", None),
            (".envrc.example", None),
            ("src/main.rs", None),
        ] {
            assert_eq!(name(Path::new(path)).as_deref(), expected, "{path}");
        }
    }
}
