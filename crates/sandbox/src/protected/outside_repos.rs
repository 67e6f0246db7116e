//! Repositories whose git directory a command cannot write, while their hooks may be writable: the
//! project is a folder of one, or its `.git` leads out. Only the targets of their names are
//! protected.

use super::git_pointers::git_dirs_of;
use super::path_checks::{exists, lies_in};
use super::protected_path::{OwnerDir, ProtectedKind, ProtectedPath};
use std::path::PathBuf;

/// Names in a git directory that lead to programs, by links or by their content.
const LEADING: [(&str, ProtectedKind); 3] = [
    ("hooks", ProtectedKind::Hooks),
    ("config", ProtectedKind::GitConfig),
    ("config.worktree", ProtectedKind::GitConfig),
];

/// Hooks and settings of repositories around `roots`, and of repositories outside that a `.git`
/// among `places` leads to.
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
