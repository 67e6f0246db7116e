//! Files that projects want written and that a program runs later: a command's change of one stays,
//! and is told with the program.

use super::file_state::InodeStamp;
use super::protected_path::{ProtectedKind, ProtectedPath};
use crate::policy::ProtectedName;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most files that are compared, of all such names.
const MOST: usize = 1000;

/// The files of these names with their stamps.
pub(super) fn stamps(places: &[ProtectedPath]) -> Vec<(PathBuf, InodeStamp)> {
    let asked = places.iter().filter(|place| place.kind == ProtectedKind::Asked);
    let mut left: Vec<PathBuf> = asked.map(|place| place.path.clone()).collect();
    let mut found = Vec::new();
    while let Some(path) = left.pop() {
        let Ok(meta) = path.symlink_metadata() else { continue };
        if found.len() + left.len() > MOST {
            break;
        }
        if meta.is_dir() {
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            left.extend(entries.map(|entry| entry.path()).take(MOST));
        } else {
            found.push((path, InodeStamp::of(&meta)));
        }
    }
    found
}

/// The files that are new or changed, each with the program that runs it and when.
pub(super) fn changed(
    before: &[(PathBuf, InodeStamp)],
    after: &[(PathBuf, InodeStamp)],
    names: &'static [ProtectedName],
) -> Vec<(PathBuf, &'static str)> {
    let before: BTreeMap<&Path, &InodeStamp> =
        before.iter().map(|(path, stamp)| (path.as_path(), stamp)).collect();
    let differs = |(path, stamp): &&(PathBuf, InodeStamp)| {
        before.get(path.as_path()).is_none_or(|known| *known != stamp)
    };
    let with_reason = |(path, _): &(PathBuf, InodeStamp)| {
        let of = |name: &&ProtectedName| path.ancestors().any(|at| at.ends_with(name.name));
        names.iter().find(of).map(|name| (path.clone(), name.why))
    };
    after.iter().filter(differs).filter_map(with_reason).collect()
}
