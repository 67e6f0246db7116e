//! Repairs single protected files and records each remedy. `restore` decides which remedy applies.

use super::bounded_read::{self, Symlinks};
use super::disk_reserve::DiskReserve;
use super::file_state::{FILE_BYTES, FileState, InodeStamp, changed_paths, is_sample};
use super::opened_dirs::OpenedDirs;
use super::path_checks::{exists, is_real_dir};
use super::real_dirs;
use protocol::call::{TamperRemedy, TamperedFile};
use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Suffix of a file that was moved aside.
const ASIDE: &str = "quarantined";
/// Most versions of one name that a further one is compared with, and most names in them.
const MOST_COMPARED: usize = 20;
const COMPARED_NAMES: usize = 200;
/// Most names and bytes of a folder that is moved by copying it; a larger one stays beside its place.
const COPIED_NAMES: usize = 10_000;
const COPIED_BYTES: u64 = 64 << 20;
/// Most bytes that are kept of a name before the suffix; the kernel allows 255 in all.
const LONGEST_STEM: usize = 200;

/// When files are put right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestorePhase {
    /// The command runs: its steps may be half done, and it may change what is read here.
    WhileRunning,
    /// None of its processes is left.
    AfterEnd,
}

/// The remedies so far.
pub(super) struct Remedies {
    pub(super) phase: RestorePhase,
    pub(super) roots: Vec<PathBuf>,
    pub(super) list: Vec<TamperedFile>,
    /// The paths to which each path was moved aside, in order: these do not count as new names.
    pub(super) moved_aside: HashMap<PathBuf, Vec<PathBuf>>,
    /// Given back where a disk is full.
    pub(super) reserve: DiskReserve,
}

impl Remedies {
    pub(super) fn new(phase: RestorePhase, roots: Vec<PathBuf>) -> Self {
        let (list, moved_aside, reserve) = (Vec::new(), HashMap::new(), DiskReserve::default());
        Self { phase, roots, list, moved_aside, reserve }
    }

    /// The granted directory that a name lies in, or the folder that it lies in itself.
    pub(super) fn root_of<'a>(&'a self, path: &'a Path) -> &'a Path {
        let root = self.roots.iter().find(|root| path.starts_with(root));
        root.map_or_else(|| path.parent().unwrap_or(path), PathBuf::as_path)
    }

    /// Relative to the directory that was granted, which is how the person knows it.
    fn shown(&self, path: &Path) -> String {
        let inside = self.roots.iter().find_map(|root| path.strip_prefix(root).ok());
        inside.unwrap_or(path).to_string_lossy().into_owned()
    }

    fn record(&mut self, path: &Path, remedy: TamperRemedy) {
        let path = self.shown(path);
        self.list.push(TamperedFile { path, remedy });
    }

    /// Records changes that the command was permitted to make; they stay.
    pub(super) fn granted(&mut self, path: &Path, seen: Option<&FileState>) {
        if self.phase == RestorePhase::WhileRunning {
            return;
        }
        for changed in changed_paths(path, seen) {
            self.record(&changed, TamperRemedy::Granted);
        }
    }

    /// Records a change that stays, and who runs the file.
    pub(super) fn stays(&mut self, path: &Path, why: &str) {
        self.record(path, TamperRemedy::Stays { why: why.to_owned() });
    }

    pub(super) fn leave(&mut self, path: &Path, why: &str) {
        self.record(path, TamperRemedy::Left { why: why.to_owned() });
    }

    fn failed(&mut self, path: &Path, error: &io::Error) {
        self.leave(path, &format!("it could not be put right: {error}"));
    }

    pub(super) fn quarantine(&mut self, path: &Path) {
        self.quarantine_from(path, path);
    }

    /// The same of something that lies in a protected place.
    pub(super) fn quarantine_from(&mut self, place: &Path, path: &Path) {
        match self.move_aside(place, path) {
            Ok(kept) => self.record(path, TamperRemedy::Quarantined { kept: self.shown(&kept) }),
            // Another command's runner was faster, or the command itself.
            Err(_) if !exists(path) => {}
            Err(error) => self.failed(path, &error),
        }
    }

    /// Moves a file aside and returns its new path, or that of an earlier
    /// version that holds the same. Programs may trust a folder in a protected
    /// place by any name, as instruction folders. So anything but a file is moved out of that
    /// place.
    fn move_aside(&mut self, place: &Path, path: &Path) -> io::Result<PathBuf> {
        let file = path.symlink_metadata().is_ok_and(|found| found.is_file());
        let out = place.parent().filter(|_| !file && path != place);
        self.make_room(path);
        let phase = self.phase;
        let mut to = |folder| self.with_room(|| move_to_free_name(path, folder, phase));
        let kept = match out.map(&mut to) {
            Some(Ok(kept)) => kept,
            Some(Err(_)) | None => to(path.parent().unwrap_or(path))?,
        };
        let versions = self.moved_aside.entry(path.to_owned()).or_default();
        let known = versions.iter().take(MOST_COMPARED).find(|it| is_same(it, &kept)).cloned();
        versions.push(kept.clone());
        Ok(known.unwrap_or(kept))
    }

    /// A command may make a name again and again, and the person may have made it once: the last version
    /// gives way only if an earlier one holds the same. It had time since: an editor may have written in
    /// it after it was moved.
    fn make_room(&mut self, path: &Path) {
        let Some((last, earlier)) = self.moved_aside.get(path).and_then(|it| it.split_last())
        else {
            return;
        };
        if earlier.iter().take(MOST_COMPARED).any(|it| is_same(it, last)) && remove(last).is_ok() {
            self.moved_aside.entry(path.to_owned()).and_modify(|it| drop(it.pop()));
        }
    }

    /// True for what was moved aside.
    pub(super) fn is_settled(&self, path: &Path) -> bool {
        self.moved_aside.values().flatten().any(|it| it == path) || was_moved_aside(path)
    }

    /// Folders on the way that are none any more make room for real ones.
    pub(super) fn clear_way_to(&mut self, path: &Path) {
        let Some(root) = self.roots.iter().find(|root| path.starts_with(root)).cloned() else {
            return;
        };
        let mut folders: Vec<&Path> =
            path.ancestors().skip(1).take_while(|folder| *folder != root).collect();
        folders.reverse();
        for folder in folders {
            if exists(folder) && !is_real_dir(folder) {
                self.quarantine(folder);
            }
            if !exists(folder)
                && let Err(error) = self.with_room(|| real_dirs::create_dir(folder))
            {
                self.failed(folder, &error);
            }
        }
    }

    pub(super) fn restore(&mut self, path: &Path, seen: &FileState) {
        self.restore_in(path, path, seen);
    }

    /// The same of something that lies in a protected place.
    fn restore_in(&mut self, place: &Path, path: &Path, seen: &FileState) {
        match seen {
            FileState::Unrecorded => {}
            FileState::Link(to) => {
                if std::fs::read_link(path).is_ok_and(|now| now == *to) {
                    return;
                }
                self.replace(place, path, || real_dirs::symlink(to, path));
            }
            FileState::Special { .. } => {
                if changed_paths(path, Some(seen)).is_empty() {
                    return;
                }
                match exists(path) {
                    true => self.quarantine_from(place, path),
                    false => self.leave(path, "it was no file, and is gone"),
                }
            }
            FileState::File { stamp, bytes } => {
                let now = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file);
                let now = now.map(|now| InodeStamp::of(&now));
                match bytes {
                    // The bytes are compared even if the times are unchanged: a write through a
                    // memory mapping on tmpfs leaves no trace in them.
                    Some(bytes)
                        if now.is_some_and(|now| now.mode == stamp.mode)
                            && bounded_read::bytes(path, FILE_BYTES, Symlinks::Refuse).as_ref()
                                == Ok(bytes) => {}
                    Some(bytes) => {
                        self.replace(place, path, || real_dirs::write_new(path, bytes, stamp.mode))
                    }
                    None if now == Some(*stamp) => {}
                    None => self.leave(path, "it is too large for a copy to have been kept"),
                }
            }
            FileState::Folder { names, .. } => {
                if !is_real_dir(path) {
                    self.replace(place, path, || real_dirs::create_dir(path));
                }
                for (name, seen) in names {
                    self.restore_in(place, &path.join(name), seen);
                }
                match std::fs::read_dir(path) {
                    Ok(entries) => {
                        for entry in entries.flatten() {
                            let path = entry.path();
                            let settled = is_sample(&path) || self.is_settled(&path);
                            if !names.contains_key(&entry.file_name()) && !settled {
                                self.quarantine_from(place, &path);
                            }
                        }
                    }
                    Err(error) => self.failed(path, &error),
                }
            }
        }
    }

    /// Gives the protected folders the modes back that they had, those in them first.
    pub(super) fn restore_modes(&mut self, path: &Path, seen: &FileState, doors: &mut OpenedDirs) {
        let FileState::Folder { mode, names } = seen else { return };
        for (name, seen) in names {
            self.restore_modes(&path.join(name), seen, doors);
        }
        let Ok(found) = path.symlink_metadata() else { return };
        let now = doors.mode_of(path).unwrap_or(found.permissions().mode() & 0o7777);
        if !found.is_dir() || now == *mode {
            return;
        }
        match doors.keep_mode(path, *mode) {
            // A folder that was created anew is recorded already.
            Ok(()) if self.list.iter().any(|told| told.path == self.shown(path)) => {}
            Ok(()) => self.record(path, TamperRemedy::Restored { kept: None }),
            Err(error) => self.failed(path, &error),
        }
    }

    /// Tries again with the reserved room where the disk is full.
    fn with_room<T>(&mut self, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match act() {
            Err(error) if is_full(&error) && self.reserve.release() => act(),
            other => other,
        }
    }

    /// Moves the present file aside and creates the recorded one. If the disk is too full for both,
    /// the recorded one is kept.
    fn replace(&mut self, place: &Path, path: &Path, make: impl Fn() -> io::Result<()>) {
        let kept = match exists(path).then(|| self.move_aside(place, path)).transpose() {
            Ok(kept) => kept,
            Err(error) => return self.failed(path, &error),
        };
        let made = match (self.with_room(&make), &kept) {
            (Err(error), Some(kept)) if is_full(&error) => {
                let _ = remove(path);
                remove(kept).and_then(|()| make()).map(|()| None)
            }
            (made, _) => made.map(|()| kept.as_deref()),
        };
        let kept = made.map(|kept| kept.map(|kept| self.shown(kept)));
        match kept {
            Ok(kept) => self.record(path, TamperRemedy::Restored { kept }),
            Err(error) => self.failed(path, &error),
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// True if two paths hold the same: files by their bytes, links by their targets, folders by all in them.
fn is_same(one: &Path, other: &Path) -> bool {
    let mut left = vec![(one.to_owned(), other.to_owned())];
    for _ in 0..COMPARED_NAMES {
        let Some((one, other)) = left.pop() else { return true };
        let found = one.symlink_metadata().ok().zip(other.symlink_metadata().ok());
        let Some((a, b)) = found.filter(|(a, b)| a.file_type() == b.file_type()) else {
            return false;
        };
        let same = if a.is_symlink() {
            let to = std::fs::read_link(&one);
            to.ok().is_some_and(|to| std::fs::read_link(&other).is_ok_and(|it| it == to))
        } else if a.is_file() {
            let bytes = |path| bounded_read::bytes(path, FILE_BYTES, Symlinks::Refuse).ok();
            a.len() == b.len() && bytes(&one).is_some_and(|it| bytes(&other) == Some(it))
        } else if a.is_dir() {
            match (names_in(&one), names_in(&other)) {
                (Some(names), Some(others)) if names == others => {
                    left.extend(names.iter().map(|name| (one.join(name), other.join(name))));
                    true
                }
                _ => false,
            }
        } else {
            false
        };
        if !same {
            return false;
        }
    }
    false
}

/// The names in a folder; `None` if there are more than are compared.
fn names_in(folder: &Path) -> Option<BTreeSet<OsString>> {
    let entries = std::fs::read_dir(folder).ok()?.take(COMPARED_NAMES);
    let names: BTreeSet<OsString> =
        entries.map(|entry| Some(entry.ok()?.file_name())).collect::<Option<_>>()?;
    (names.len() < COMPARED_NAMES).then_some(names)
}

fn remove(path: &Path) -> io::Result<()> {
    match is_real_dir(path) {
        true => crate::removal::remove_tree(path),
        false => real_dirs::remove_file(path),
    }
}

/// True for a file that was moved aside, by this runner or another one. Names are all that runners
/// share; a folder of that name is not left in a protected place.
pub(super) fn was_moved_aside(path: &Path) -> bool {
    let end = path.extension().and_then(OsStr::to_str).and_then(|end| end.strip_prefix(ASIDE));
    let number = |end: &str| end.is_empty() || end.starts_with('-');
    end.is_some_and(number) && path.symlink_metadata().is_ok_and(|found| found.is_file())
}

/// Moves a name out of the way, to one in `folder` that is free.
fn move_to_free_name(path: &Path, folder: &Path, phase: RestorePhase) -> io::Result<PathBuf> {
    let free = free_name(path, folder);
    match (real_dirs::rename(path, &free), phase) {
        // A Landlock of version 1 moves nothing to another directory.
        (Err(error), RestorePhase::AfterEnd) if error.kind() == io::ErrorKind::CrossesDevices => {
            move_by_copy(path, &free)?;
        }
        (other, RestorePhase::AfterEnd | RestorePhase::WhileRunning) => other?,
    }
    Ok(free)
}

/// An unused name. A command may have taken any number of names, and may have made the first part
/// as long as the kernel allows.
fn free_name(path: &Path, folder: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let stem = OsStr::from_bytes(name.get(..LONGEST_STEM).unwrap_or(name));
    let named = |end: &str| {
        let mut free = stem.to_owned();
        free.push(format!(".{ASIDE}{end}"));
        folder.join(free)
    };
    let ends = std::iter::once(String::new()).chain((2..100).map(|number| format!("-{number}")));
    let mut free = ends.map(|end| named(&end)).filter(|free| !exists(free));
    free.next().unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        named(&format!("-{}", now.as_nanos()))
    })
}

/// Moves a link or a folder by copying. Only folders, links and files are kept.
fn move_by_copy(path: &Path, to: &Path) -> io::Result<()> {
    copy(path, to).inspect_err(|_| {
        // A half would be taken for the whole.
        let _ = remove(to);
    })?;
    remove(path)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let (mut names, mut bytes) = (COPIED_NAMES, COPIED_BYTES);
    let mut left = vec![(from.to_owned(), to.to_owned())];
    // Set at last, those in a folder first: a folder without the right to write takes nothing in.
    let mut modes = Vec::new();
    while let Some((from, to)) = left.pop() {
        let found = from.symlink_metadata()?;
        let room = (names.checked_sub(1), bytes.checked_sub(found.len()));
        let (Some(names_left), Some(bytes_left)) = room else {
            return Err(io::Error::other("it holds more than is copied"));
        };
        (names, bytes) = (names_left, bytes_left);
        let mode = found.permissions().mode();
        if found.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(&from)?, &to)?;
            continue;
        }
        if !found.is_dir() && !found.is_file() {
            continue;
        }
        // The command may have closed it, even to its owner.
        std::fs::set_permissions(&from, std::fs::Permissions::from_mode(mode | 0o700))?;
        if found.is_dir() {
            std::fs::create_dir(&to)?;
            for entry in std::fs::read_dir(&from)? {
                let entry = entry?;
                left.push((entry.path(), to.join(entry.file_name())));
            }
        } else {
            std::fs::copy(&from, &to)?;
        }
        modes.push((to, mode & 0o777));
    }
    for (path, mode) in modes.into_iter().rev() {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_free_name_is_found_whatever_a_command_took() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".envrc");
        std::fs::write(dir.path().join(".envrc.quarantined"), "").unwrap();
        assert_eq!(free_name(&path, dir.path()), dir.path().join(".envrc.quarantined-2"));
        for number in 2..100 {
            std::fs::write(dir.path().join(format!(".envrc.quarantined-{number}")), "").unwrap();
        }
        std::fs::write(&path, "x").unwrap();
        let kept = move_to_free_name(&path, dir.path(), RestorePhase::AfterEnd).unwrap();
        assert!(!exists(&path) && exists(&kept), "{kept:?}");
        let long = dir.path().join("n".repeat(255));
        std::fs::create_dir(&long).unwrap();
        let kept = move_to_free_name(&long, dir.path(), RestorePhase::AfterEnd).unwrap();
        assert!(exists(&kept), "a name as long as may be");
    }

    /// A command makes a name again and again, and the person makes it, too.
    #[test]
    fn only_what_is_kept_already_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let path = root.join(".envrc");
        let mut told = Remedies::new(RestorePhase::WhileRunning, vec![root.clone()]);
        for number in 0..30 {
            std::fs::write(&path, format!("{number}")).unwrap();
            told.quarantine(&path);
        }
        std::fs::write(&path, "mine").unwrap();
        told.quarantine(&path);
        for number in 0..30 {
            std::fs::write(&path, format!("{}", number % 10)).unwrap();
            told.quarantine(&path);
        }
        let all = names_in(&root).unwrap();
        let has = |text: &str| {
            all.iter().any(|it| std::fs::read(root.join(it)).unwrap() == text.as_bytes())
        };
        assert!(has("mine") && (0..30).all(|number| has(&number.to_string())), "{all:?}");
        assert_eq!(all.len(), 32, "what is kept already gives way, but for the last: {all:?}");
        assert_eq!(told.list.len(), 61, "each is told");
        // Folders count with all in them.
        let folder = |file: &str, text: &str| {
            std::fs::create_dir_all(root.join(".claude/in")).unwrap();
            std::fs::write(root.join(".claude/in").join(file), text).unwrap();
            std::os::unix::fs::symlink(text, root.join(".claude/link")).unwrap();
        };
        for (file, text) in [("a", "x"), ("a", "x"), ("a", "y"), ("b", "x"), ("a", "x")] {
            folder(file, text);
            told.quarantine(&root.join(".claude"));
        }
        assert_eq!(names_in(&root).unwrap().len(), 32 + 4);
    }

    #[test]
    fn a_folder_is_copied_with_its_modes_within_its_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let mode = std::fs::Permissions::from_mode;
        std::fs::create_dir_all(at("from/shut")).unwrap();
        std::fs::write(at("from/shut/file"), "x").unwrap();
        std::os::unix::fs::symlink("nowhere", at("from/link")).unwrap();
        std::fs::set_permissions(at("from/shut"), mode(0o555)).unwrap();
        move_by_copy(&at("from"), &at("to")).unwrap();
        assert!(!exists(&at("from")) && at("to/link").is_symlink());
        assert_eq!(std::fs::read(at("to/shut/file")).unwrap(), b"x");
        let copy = at("to/shut").metadata().unwrap().permissions().mode();
        assert_eq!(copy & 0o777, 0o555);
        std::fs::set_permissions(at("to/shut"), mode(0o755)).unwrap();
        std::fs::File::create(at("to/large")).unwrap().set_len(COPIED_BYTES + 1).unwrap();
        move_by_copy(&at("to"), &at("again")).unwrap_err();
        assert!(exists(&at("to/large")) && !exists(&at("again")), "left where it was");
    }
}
