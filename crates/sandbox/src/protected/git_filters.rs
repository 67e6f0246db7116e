//! The filters that git's settings name, found without running anything. For `tools`, which makes
//! them empty where git shall run no program.
//!
//! The result may contain more filters than git uses, because the conditions of `includeIf` are not
//! evaluated. A file that cannot be read as git reads it is an error: no filter is missed.

use super::bounded_read::{self, ReadFailure, Symlinks};
use super::git_config::{GitConfig, included_path};
use super::git_pointers::{gitfile_target, read_dir_pointer};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Most files of settings that are read; each may include others.
const FILES: usize = 100;
/// Keys by which a filter changes file contents.
const KEYS: [&str; 4] = ["clean", "smudge", "process", "required"];
/// Where the settings of this machine lie, by where git was installed.
const OF_MACHINE: [&str; 3] =
    ["/etc/gitconfig", "/usr/local/etc/gitconfig", "/home/linuxbrew/.linuxbrew/etc/gitconfig"];

/// Filters by the origin of their settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GitFilters {
    /// By settings of repositories that the directory lies in.
    pub of_repository: BTreeSet<String>,
    /// By the person's own settings and the machine's.
    pub of_person: BTreeSet<String>,
}

/// The filters that git would find settings of, started in `project`: the person's in the file
/// `global`, where there is one, else in their home.
///
/// # Errors
/// The file of a repository's settings that cannot be read as git reads it.
pub fn find_git_filters(
    project: &Path,
    home: Option<&Path>,
    global: Option<&Path>,
) -> Result<GitFilters, PathBuf> {
    let (own, hidden) = read_all(project.ancestors().flat_map(settings_of).collect(), home);
    if let Some(file) = hidden {
        return Err(file);
    }
    let person: Vec<PathBuf> = match (global, home) {
        (Some(global), _) => vec![global.to_owned()],
        (None, Some(home)) => [".gitconfig", ".config/git/config"].map(|of| home.join(of)).into(),
        (None, None) => Vec::new(),
    };
    let person = person.into_iter().chain(OF_MACHINE.map(PathBuf::from)).collect();
    // Commands cannot write these files, so an unreadable one hides no attack.
    let (of_person, _) = read_all(person, home);
    Ok(GitFilters { of_repository: own, of_person })
}

/// The files of settings of a repository that may be in this directory, or be this directory.
fn settings_of(dir: &Path) -> Vec<PathBuf> {
    let pointer = dir.join(".git");
    let named = gitfile_target(&pointer).map(|named| dir.join(named));
    let mut files = Vec::new();
    for git in [dir.to_owned(), pointer].into_iter().chain(named) {
        if git.join("HEAD").symlink_metadata().is_err() {
            continue;
        }
        let common = read_dir_pointer(&git.join("commondir")).map(|common| git.join(common));
        files.extend(["config", "config.worktree"].map(|name| git.join(name)));
        files.extend(common.map(|common| common.join("config")));
    }
    files
}

/// Filter names in these files and their includes, and a file that may hide more.
fn read_all(mut files: Vec<PathBuf>, home: Option<&Path>) -> (BTreeSet<String>, Option<PathBuf>) {
    let (mut names, mut hidden) = (BTreeSet::new(), None);
    let mut seen = BTreeSet::new();
    while let Some(file) = files.pop() {
        if !seen.insert(file.clone()) {
            continue;
        }
        if seen.len() > FILES {
            return (names, Some(file));
        }
        let bytes = match bounded_read::bytes(&file, bounded_read::SETTINGS, Symlinks::Follow) {
            Ok(bytes) => bytes,
            Err(ReadFailure::Absent) => continue,
            // A file of usual size that may not be read here may not be read by git either.
            Err(ReadFailure::Unreadable) if is_ordinary(&file) => continue,
            Err(ReadFailure::Unreadable) => {
                hidden = Some(file);
                continue;
            }
        };
        let settings = GitConfig::parse(&bytes);
        for name in settings.names("filter", &KEYS) {
            match String::from_utf8(name) {
                Ok(name) => drop(names.insert(name)),
                Err(_) => hidden = Some(file.clone()),
            }
        }
        for named in settings.included() {
            match included_path(named, &file, home) {
                Some(path) => files.push(path),
                None => hidden = Some(file.clone()),
            }
        }
    }
    (names, hidden)
}

fn is_ordinary(file: &Path) -> bool {
    match file.metadata() {
        Ok(found) => found.is_file() && found.len() <= bounded_read::SETTINGS,
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn filters_are_found_wherever_git_finds_them() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), text).unwrap();
        };
        write("p/.git/HEAD", "ref: refs/heads/main\n");
        write("p/.git/config", "[include]\npath = more\n[filter \"one\"]\nclean = x\n");
        write("p/.git/more", "[includeIf \"x\"]\npath = ../deep/er\n[filter \"two\"]\nsmudge=x\n");
        write("p/deep/er", "[filter \"three\"]\nprocess = x\n[include]\npath = ~/own\n");
        write("p/.git/config.worktree", "[filter \"four\"]\nrequired\n");
        write("home/own", "[filter \"five\"]\nclean = x\n");
        write("home/.gitconfig", "[filter \"lfs\"]\nclean = git-lfs clean -- %f\n");
        let home = at("home");
        let found = find_git_filters(&at("p/deep"), Some(&home), None).unwrap();
        assert_eq!(found.of_repository, set(&["one", "two", "three", "four", "five"]));
        assert!(found.of_person.contains("lfs"), "{found:?}");
        write("handed", "[filter \"handed\"]\nclean = x\n");
        let found = find_git_filters(&at("p/deep"), Some(&home), Some(&at("handed"))).unwrap();
        assert!(
            found.of_person.contains("handed") && !found.of_person.contains("lfs"),
            "{found:?}"
        );

        write("tree/.git", &format!("gitdir: {}\n", at("p/.git/worktrees/t").display()));
        write("p/.git/worktrees/t/HEAD", "ref: refs/heads/t\n");
        write("p/.git/worktrees/t/commondir", "../..\n");
        write("p/.git/worktrees/t/config.worktree", "[filter \"six\"]\nclean=x\n");
        let found = find_git_filters(&at("tree"), Some(&home), None).unwrap();
        assert_eq!(found.of_repository, set(&["one", "two", "three", "five", "six"]));
    }

    #[test]
    fn what_cannot_be_read_as_git_does_is_no_filter_less() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at(".git")).unwrap();
        std::fs::write(at(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let large = format!("[filter \"x\"]\nclean = x\n#{}\n", "x".repeat(256 * 1024));
        for (text, fits) in [
            ("[core]\nbare = false\n", true),
            ("[include]\npath = not-there\n", true),
            (&large, false),
            ("[include]\npath = %(prefix)/x\n", false),
            ("[include]\npath = ~ann/x\n", false),
            ("[include]\npath = ../.git\n", false),
        ] {
            std::fs::write(at(".git/config"), text).unwrap();
            let found = find_git_filters(dir.path(), None, None);
            assert_eq!(found.is_ok(), fits, "{}", &text[..40.min(text.len())]);
        }
    }
}
