//! Repositories whose git folder lies outside of what a command may write, while their hooks may lie
//! in it: the project is a folder of one, or its `.git` leads out. Nothing of them is protected
//! here; only what they lead to is. For `grants`.

use super::exists;
use super::places::{Kind, Place, Within, git_folders, lies_in};
use std::path::PathBuf;

/// What of a git folder leads to programs by links or by what it says.
const LEADING: [(&str, Kind); 3] =
    [("hooks", Kind::Hooks), ("config", Kind::Settings), ("config.worktree", Kind::Settings)];

/// Hooks and settings of repositories around `roots`, and of those that a `.git` among `places`
/// leads out to.
pub(crate) fn outside(roots: &[PathBuf], places: &[Place]) -> Vec<Place> {
    let around = roots.iter().flat_map(|root| root.ancestors().skip(1));
    let around = around.map(|folder| folder.join(".git")).filter(|git| exists(git));
    let around: Vec<Place> =
        around.map(|git| leading(git, Kind::Pointer, &Within::Project)).collect();
    let pointers = places.iter().filter(|place| place.kind == Kind::Pointer);
    let mut found = Vec::new();
    for pointer in pointers.chain(&around) {
        let Some((own, common)) = git_folders(&pointer.path) else { continue };
        if lies_in(&common, roots) {
            continue;
        }
        let all = LEADING.map(|(name, kind)| (common.join(name), kind));
        let own = [(own.join("config.worktree"), Kind::Settings)];
        found.extend(
            all.into_iter().chain(own).map(|(path, kind)| leading(path, kind, &pointer.within)),
        );
    }
    found.extend(around);
    found
}

fn leading(path: PathBuf, kind: Kind, within: &Within) -> Place {
    Place { path, of: None, kind, within: within.clone() }
}
