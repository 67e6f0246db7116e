//! Which new names a command left in the session's own home: a program that set itself up there did so
//! for this session only, and the result says that. For `command`.

use sandbox::CallScope;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Directories that programs share: a new entry in one is named, not the directory.
const SHARED: [&str; 4] = [".config", ".local", ".local/share", ".local/state"];
/// Its content can be recreated at any time.
const CACHES: &str = ".cache";
/// Most names in one line.
const NAMED: usize = 5;

/// True for a file with lines that a person typed; a call has no person at its keyboard.
fn is_history(name: &Path) -> bool {
    let others = [".viminfo", ".viminfo.tmp", ".lesshst", ".lesshsQ", ".local/state/lesshst"];
    let of_shells =
        |name: &str| name.starts_with('.') && name.ends_with("_history") && !name.contains('/');
    name.to_str().is_some_and(|name| others.contains(&name) || of_shells(name))
}

/// The names in the session's home, relative to it; none where commands find no such home.
pub(crate) fn list(scope: &CallScope) -> BTreeSet<PathBuf> {
    let Some(home) = &scope.home else { return BTreeSet::new() };
    // On the way to the project lies nothing but that.
    let granted = std::iter::once(&scope.project).chain(&scope.added);
    let above = granted.filter_map(|dir| dir.strip_prefix(&home.shown_at).ok()?.parent());
    let above = above.flat_map(Path::ancestors).map(Path::to_owned);
    let folders: BTreeSet<PathBuf> = SHARED.map(PathBuf::from).into_iter().chain(above).collect();
    let folders = folders.into_iter().chain([PathBuf::new()]);
    let names = |folder: PathBuf| {
        let entries = std::fs::read_dir(home.kept_at.join(&folder));
        let entries = entries.into_iter().flatten().flatten();
        entries.map(move |entry| folder.join(entry.file_name()))
    };
    folders.flat_map(names).collect()
}

/// The line about names that are there after a command and were not before it.
pub(crate) fn line(before: &BTreeSet<PathBuf>, after: &BTreeSet<PathBuf>) -> Option<String> {
    let is_named = |name: &&PathBuf| {
        !before.contains(*name)
            && !name.starts_with(CACHES)
            && !is_history(name)
            && !SHARED.iter().any(|shared| *name == Path::new(shared))
    };
    let new: Vec<String> =
        after.iter().filter(is_named).map(|name| format!("~/{}", name.display())).collect();
    let more = match new.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named: Vec<&str> = new.iter().take(NAMED).map(String::as_str).collect();
    (!named.is_empty()).then(|| {
        format!(
            "[new in the session's private home, gone after the session: {}{more}]",
            named.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_names_are_told_and_the_folders_that_programs_share_are_not() {
        let names = |list: &[&str]| list.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
        let before = names(&[".cargo", ".config", ".config/git"]);
        for (left, told) in [
            (&[][..], None),
            (&[".cache", ".cache/pip", ".local", ".local/share", ".bash_history"], None),
            (&[".lesshsQ", ".local/state", ".local/state/lesshst"], None),
            (
                &[".config/chat_history", "build_history"],
                Some("~/.config/chat_history, ~/build_history"),
            ),
            (&[".config/mytool", ".m2"], Some("~/.config/mytool, ~/.m2")),
            (&["a", "b", "c", "d", "e", "f", "g"], Some("~/a, ~/b, ~/c, ~/d, ~/e and 2 more")),
        ] {
            let after = before.union(&names(left)).cloned().collect();
            let expected = told.map(|told| {
                format!("[new in the session's private home, gone after the session: {told}]")
            });
            assert_eq!(line(&before, &after), expected);
        }
    }
}
