//! The protected files of a project, for tools that change single files: the same names, link
//! targets and hard links that the cage of a command protects.

use super::hard_links::{self, shared_files};
use super::link_targets::{LinkTargets, WriteScope, find_link_targets};
use super::name_folding::{lies_at, name_parts};
use super::outside_repos::outside_repos;
use super::path_finder::find_protected;
use super::protected_path::{ProtectedKind, ProtectedPath};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Paths that a tool may not change, and the name that makes each protected.
#[derive(Debug, Default)]
pub struct ProtectedFiles {
    /// By path, present or not.
    origins: HashMap<PathBuf, PathBuf>,
    /// By device and inode: a file has other names, and a folder other spellings.
    identities: HashMap<(u64, u64), PathBuf>,
    /// Targets that do not exist yet: only their spelling can be compared.
    absent: Vec<PathBuf>,
}

/// Why a path is protected.
#[derive(Debug, PartialEq, Eq)]
pub enum ProtectedBy<'a> {
    /// It is this path, or lies beneath it.
    Name(&'a Path),
    /// It is the target of a link, or lies beneath it.
    Link {
        /// The protected name that leads there.
        from: &'a Path,
        /// The target.
        target: &'a Path,
    },
    /// It is the same file as this one, under another name.
    HardLink(&'a Path),
}

impl ProtectedFiles {
    /// Searches these directories as it is done for a command that may write in `writable`.
    #[must_use]
    pub fn find(roots: &[PathBuf], writable: Vec<PathBuf>, home: Option<PathBuf>) -> Self {
        let named = find_protected(roots, None, crate::policy::protected_names());
        let outside = outside_repos(roots, &named.paths);
        let scope = WriteScope { writable, home };
        let LinkTargets { paths: led, mut origins, .. } =
            find_link_targets(&named, &outside, &scope);
        let mut found = Self::default();
        let mut left = hard_links::MOST;
        let kept = |place: &ProtectedPath| place.kind != ProtectedKind::Asked;
        for place in named.all().cloned().chain(led).filter(kept) {
            let path = place.path;
            match path.symlink_metadata() {
                Ok(meta) if meta.is_symlink() => {}
                Ok(meta) => {
                    found.identities.insert((meta.dev(), meta.ino()), path.clone());
                    let shared = shared_files(&path, &mut left).into_iter();
                    found.identities.extend(shared.map(|(path, identity)| (identity, path)));
                }
                Err(_) if origins.contains_key(&path) => found.absent.push(path.clone()),
                Err(_) => {}
            }
            let from = origins.remove(&path).unwrap_or_else(|| path.clone());
            found.origins.insert(path, from);
        }
        found
    }

    /// The reason why a real path may not be changed; none if it may.
    #[must_use]
    pub fn around(&self, real: &Path) -> Option<ProtectedBy<'_>> {
        real.ancestors().find_map(|path| {
            self.origins
                .get_key_value(path)
                .map(|(target, from)| by(target, from))
                .or_else(|| self.by_identity(path))
                .or_else(|| self.by_spelling(path))
        })
    }

    fn by_identity(&self, path: &Path) -> Option<ProtectedBy<'_>> {
        let meta = path.symlink_metadata().ok()?;
        let known = self.identities.get(&(meta.dev(), meta.ino()))?;
        if meta.is_file() && meta.nlink() > 1 {
            return Some(ProtectedBy::HardLink(known));
        }
        Some(self.origins.get(known).map_or(ProtectedBy::Name(known), |from| by(known, from)))
    }

    fn by_spelling(&self, path: &Path) -> Option<ProtectedBy<'_>> {
        let parts = name_parts(path);
        let same = |target: &&PathBuf| {
            let target = target.to_string_lossy();
            target.split('/').filter(|part| !part.is_empty()).count() == parts.len()
                && lies_at(&parts, target.trim_start_matches('/'))
        };
        let target = self.absent.iter().find(same)?;
        Some(by(target, self.origins.get(target)?))
    }
}

fn by<'a>(target: &'a Path, from: &'a Path) -> ProtectedBy<'a> {
    match target == from {
        true => ProtectedBy::Name(target),
        false => ProtectedBy::Link { from, target },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_hard_links_and_absent_targets_are_found_and_nothing_beside() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        for folder in ["scripts", "conf/vscode", "sub"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["scripts/env.sh", "scripts/free.sh", "conf/vscode/tasks.json", "mcp.json"] {
            std::fs::write(at(file), "x").unwrap();
        }
        symlink("one", at(".envrc")).unwrap();
        symlink(at("scripts/env.sh"), at("one")).unwrap();
        symlink("conf/vscode", at(".vscode")).unwrap();
        symlink("../Later.sh", at("sub/.envrc")).unwrap();
        std::fs::hard_link(at("mcp.json"), at(".mcp.json")).unwrap();
        let roots = vec![root.clone()];
        let files = ProtectedFiles::find(&roots, roots.clone(), None);
        for (path, from) in [
            ("scripts/env.sh", ".envrc"),
            ("one", ".envrc"),
            ("conf/vscode/tasks.json", ".vscode"),
            ("Later.sh", "sub/.envrc"),
            ("LATER.sh", "sub/.envrc"),
        ] {
            match files.around(&at(path)) {
                Some(ProtectedBy::Link { from: found, .. }) => {
                    assert_eq!(found, at(from), "{path}")
                }
                other => panic!("{path}: {other:?}"),
            }
        }
        let hard = files.around(&at("mcp.json")).unwrap();
        assert_eq!(hard, ProtectedBy::HardLink(&at(".mcp.json")));
        for free in ["scripts/free.sh", "scripts/new.sh", "conf/free", "sub/x", "x"] {
            assert_eq!(files.around(&at(free)), None, "{free}");
        }
    }

    #[test]
    fn settings_that_are_absent_take_no_room_of_those_that_name_hooks() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let hooks = |number: usize| root.join(format!("hooks/{number}"));
        // Each could have a `config.worktree` too: 120 files, of which 100 may be read.
        for number in 0..60 {
            let git = root.join(format!("repositories/{number}/.git"));
            std::fs::create_dir_all(&git).unwrap();
            let config = format!("[core]\nhooksPath = {}\n", hooks(number).display());
            std::fs::write(git.join("config"), config).unwrap();
        }
        let roots = vec![root.clone()];
        let files = ProtectedFiles::find(&roots, roots.clone(), None);
        for number in 0..60 {
            let found = files.around(&hooks(number).join("pre-commit"));
            assert!(found.is_some(), "{number}");
        }
        assert_eq!(files.around(&hooks(60).join("pre-commit")), None);
    }
}
