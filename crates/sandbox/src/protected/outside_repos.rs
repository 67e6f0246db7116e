//! Repositories whose git folder lies outside of what a command may write, while their hooks may lie
//! in it: the project is a folder of one, or its `.git` leads out. Nothing of them is protected
//! here; only what they lead to is. For `grants`.

use super::git_pointers::git_dirs_of;
use super::path_checks::{exists, lies_in};
use super::protected_path::{OwnerDir, ProtectedKind, ProtectedPath};
use std::path::PathBuf;

/// What of a git folder leads to programs by links or by what it says.
const LEADING: [(&str, ProtectedKind); 3] = [
    ("hooks", ProtectedKind::Hooks),
    ("config", ProtectedKind::GitConfig),
    ("config.worktree", ProtectedKind::GitConfig),
];

/// Hooks and settings of repositories around `roots`, and of those that a `.git` among `places`
/// leads out to.
pub(crate) fn outside_repos(roots: &[PathBuf], places: &[ProtectedPath]) -> Vec<ProtectedPath> {
    let around = roots.iter().flat_map(|root| root.ancestors().skip(1));
    let around = around.map(|folder| folder.join(".git")).filter(|git| exists(git));
    let around: Vec<ProtectedPath> =
        around.map(|git| leading(git, ProtectedKind::GitFile, &OwnerDir::Project)).collect();
    let pointers = places.iter().filter(|place| place.kind == ProtectedKind::GitFile);
    let mut found = Vec::new();
    for pointer in pointers.chain(&around) {
        let Some((own, common)) = git_dirs_of(&pointer.path) else { continue };
        if lies_in(&common, roots) {
            continue;
        }
        let all = LEADING.map(|(name, kind)| (common.join(name), kind));
        let own = [(own.join("config.worktree"), ProtectedKind::GitConfig)];
        found.extend(
            all.into_iter().chain(own).map(|(path, kind)| leading(path, kind, &pointer.owner)),
        );
    }
    found.extend(around);
    found
}

fn leading(path: PathBuf, kind: ProtectedKind, within: &OwnerDir) -> ProtectedPath {
    ProtectedPath { path, git_dir: None, kind, owner: within.clone() }
}
