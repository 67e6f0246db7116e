//! From what was at the protected names before a command to what is there after it: changes are
//! undone, new names moved aside, and each is told. Runs when no process of the command is left;
//! the runner's own layer lets it write no further than the command could.

use super::led::{absent, outermost};
use super::places::{Kind, Place, Within, find, leads_home};
use super::read::{self, Links};
use super::seen::{FILE_BYTES, Room, Seen, Stamp, differing, is_sample, look};
use super::{Led, Linked, exists, is_real_dir, vet};
use crate::policy::Protected;
use protocol::call::{Remedy, Tampered};
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What is moved aside gets this behind its name.
const ASIDE: &str = "quarantined";

/// Where protected names are looked for, and what of them is open to the command.
#[derive(Debug)]
pub(crate) struct Territory {
    /// Directories that it may write.
    pub roots: Vec<PathBuf>,
    /// Where the project's git folder lies, if elsewhere.
    pub linked: Option<Linked>,
    pub names: &'static [Protected],
    /// In these, git's settings and hooks may be changed.
    pub open: Vec<PathBuf>,
}

/// What was there before the command.
#[derive(Debug)]
pub(crate) struct Before {
    roots: Vec<PathBuf>,
    linked: Option<Linked>,
    names: &'static [Protected],
    /// In these, git's settings and hooks may be changed.
    open: Vec<PathBuf>,
    /// More was there than can be watched.
    crowded: bool,
    /// What is not protected of what names lead to.
    limits: Vec<String>,
    /// What names lead to that did not exist.
    absent: Vec<Place>,
    /// What existed.
    seen: Vec<(Place, Seen)>,
    /// Git folders that existed.
    repositories: BTreeSet<PathBuf>,
}

impl Before {
    /// Looks at all `places` and what they lead to, but for those that a mount holds.
    pub(crate) fn look(
        territory: Territory,
        places: Vec<Place>,
        led: Led,
        held: &[PathBuf],
    ) -> Self {
        let Territory { roots, linked, names, open } = territory;
        let mut room = Room::new();
        let gits = places.iter().filter_map(|place| place.of.as_ref());
        let repositories = gits.filter(|git| exists(git)).cloned().collect();
        let absent = absent(&led.places);
        let seen = places
            .into_iter()
            .chain(led.places)
            .filter_map(|place| {
                let seen = match held.contains(&place.path) {
                    true => Seen::Unwatched,
                    false => look(&place.path, &mut room)?,
                };
                Some((place, seen))
            })
            .collect();
        let crowded = room.is_short();
        let limits = led.limits;
        Self { roots, linked, names, open, crowded, limits, absent, seen, repositories }
    }

    /// Whether a change may go unnoticed, or cannot be undone, since too much is protected.
    pub(crate) fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// What protected names lead to and is not protected by them, a sentence each.
    pub(crate) fn limits(&self) -> &[String] {
        &self.limits
    }

    /// Puts right what the command changed, and says what that was.
    pub(crate) fn mend(self) -> Vec<Tampered> {
        let mut told = Told { roots: self.roots, list: Vec::new(), aside: HashSet::new() };
        let mut gone: Vec<&PathBuf> = Vec::new();
        for (place, seen) in &self.seen {
            match (&place.within, &place.of) {
                // Removed with all that was in it.
                (Within::Nested(folder), _) if !exists(folder) => continue,
                (_, Some(git)) if !exists(git) && *git != place.path => {
                    if place.kind != Kind::OfWorktree && !gone.contains(&git) {
                        told.left(git, "it was removed or moved away");
                        gone.push(git);
                    }
                    continue;
                }
                (Within::Project | Within::Nested(_), _) => {}
            }
            if place.is_gits_in(&self.open) {
                told.granted(&place.path, Some(seen));
                continue;
            }
            let nested = place.within != Within::Project;
            if nested && place.kind == Kind::Settings && is_harmless(place) {
                continue;
            }
            told.way_to(&place.path);
            told.put_right(&place.path, seen);
        }
        let before: HashSet<&PathBuf> = self.seen.iter().map(|(place, _)| &place.path).collect();
        let places = find(&told.roots, self.linked.as_ref(), self.names);
        let new = places.iter().filter(|place| exists(&place.path));
        // A link that was made on the way to what did not exist is what is new, not what it leads to.
        let new = new.chain(&self.absent).map(|place| outermost(place, &told.roots));
        let new: Vec<Place> = new.filter(|place| !before.contains(&place.path)).collect();
        for place in &new {
            let known = place.of.as_ref().is_some_and(|git| self.repositories.contains(git));
            match place.kind {
                _ if !exists(&place.path) => {}
                _ if place.is_gits_in(&self.open)
                    && (known || keeps(&self.repositories, place)) =>
                {
                    told.granted(&place.path, None)
                }
                Kind::Hooks if !known && is_real_dir(&place.path) => {
                    for hook in vet::live_hooks(&place.path) {
                        told.quarantine(&hook);
                    }
                }
                Kind::Settings if !known && is_harmless(place) => {}
                Kind::OfWorktree if !known && is_usual(place) => {}
                Kind::Pointer if !known && leads_home(&place.path, &places) => {}
                Kind::Plain | Kind::Hooks | Kind::Settings | Kind::OfWorktree | Kind::Pointer => {
                    told.quarantine(&place.path)
                }
            }
        }
        told.list
    }
}

/// Whether one of these repositories keeps this about a worktree, which may be new.
fn keeps(repositories: &BTreeSet<PathBuf>, place: &Place) -> bool {
    let of = place.of.as_ref().filter(|_| place.kind == Kind::OfWorktree);
    let repository = of.and_then(|folder| folder.ancestors().nth(2));
    repository.is_some_and(|repository| repositories.contains(repository))
}

/// Whether new settings of a new git folder name no programs.
fn is_harmless(place: &Place) -> bool {
    let regular = place.path.symlink_metadata().is_ok_and(|found| found.is_file());
    let Some(git) = place.of.as_ref().filter(|_| regular) else { return false };
    // A submodule's files lie beside the repository that keeps its folder.
    let inside = |worktree: &str| {
        let outer = git.ancestors().find(|folder| folder.ends_with(".git")).and_then(Path::parent);
        let worktree = git.join(worktree).canonicalize();
        outer.zip(worktree.ok()).is_some_and(|(outer, worktree)| worktree.starts_with(outer))
    };
    let text = read::text(&place.path, read::SETTINGS, Links::Refused);
    text.is_ok_and(|text| vet::harmless(&text, inside))
}

/// Whether a new file about a new linked worktree says what git writes there.
fn is_usual(place: &Place) -> bool {
    let text = |most| read::text(&place.path, most, Links::Refused);
    match place.path.file_name().and_then(|name| name.to_str()) {
        Some("commondir") => text(read::POINTER).is_ok_and(|text| text.trim_end() == "../.."),
        Some("gitdir") => text(read::POINTER).is_ok(),
        _ => text(read::SETTINGS).is_ok_and(|text| vet::harmless(&text, |_| false)),
    }
}

/// What was done, as it is done.
struct Told {
    roots: Vec<PathBuf>,
    list: Vec<Tampered>,
    /// What was moved aside, which is no new name.
    aside: HashSet<PathBuf>,
}

impl Told {
    /// Relative to the directory that was granted, which is how the person knows it.
    fn shown(&self, path: &Path) -> String {
        let inside = self.roots.iter().find_map(|root| path.strip_prefix(root).ok());
        inside.unwrap_or(path).to_string_lossy().into_owned()
    }

    fn tell(&mut self, path: &Path, remedy: Remedy) {
        let path = self.shown(path);
        self.list.push(Tampered { path, remedy });
    }

    /// What the command changed by a right that it was given stays.
    fn granted(&mut self, path: &Path, seen: Option<&Seen>) {
        for changed in differing(path, seen) {
            self.tell(&changed, Remedy::Granted);
        }
    }

    fn left(&mut self, path: &Path, why: &str) {
        self.tell(path, Remedy::Left { why: why.to_owned() });
    }

    fn failed(&mut self, path: &Path, error: &io::Error) {
        self.left(path, &format!("it could not be put right: {error}"));
    }

    fn quarantine(&mut self, path: &Path) {
        self.quarantine_from(path, path);
    }

    fn quarantine_from(&mut self, place: &Path, path: &Path) {
        match self.move_aside(place, path) {
            Ok(kept) => self.tell(path, Remedy::Quarantined { kept }),
            Err(error) => self.failed(path, &error),
        }
    }

    /// Where it was kept. In a protected place a folder may be believed by any name, as one of
    /// instructions for a program is: what is no file leaves that place.
    fn move_aside(&mut self, place: &Path, path: &Path) -> io::Result<String> {
        let file = path.symlink_metadata().is_ok_and(|found| found.is_file());
        let out = place.parent().filter(|_| !file && path != place);
        let kept = match out.map(|folder| aside(path, folder)) {
            Some(Ok(kept)) => kept,
            Some(Err(_)) | None => aside(path, path.parent().unwrap_or(path))?,
        };
        let shown = self.shown(&kept);
        self.aside.insert(kept);
        Ok(shown)
    }

    /// Folders on the way that are none any more make room for real ones.
    fn way_to(&mut self, path: &Path) {
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
                && let Err(error) = std::fs::create_dir(folder)
            {
                self.failed(folder, &error);
            }
        }
    }

    fn put_right(&mut self, path: &Path, seen: &Seen) {
        self.put_right_in(path, path, seen);
    }

    /// The same of something that lies in a protected place.
    fn put_right_in(&mut self, place: &Path, path: &Path, seen: &Seen) {
        match seen {
            Seen::Unwatched => {}
            Seen::Link(to) => {
                if std::fs::read_link(path).is_ok_and(|now| now == *to) {
                    return;
                }
                self.restore(place, path, || std::os::unix::fs::symlink(to, path));
            }
            Seen::Special { .. } => {
                if differing(path, Some(seen)).is_empty() {
                    return;
                }
                match exists(path) {
                    true => self.quarantine_from(place, path),
                    false => self.left(path, "it was no file, and is gone"),
                }
            }
            Seen::File { stamp, bytes } => {
                let now = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file);
                let now = now.map(|now| Stamp::of(&now));
                let same = now == Some(*stamp);
                match bytes {
                    _ if same => {}
                    // Touched and not changed, as by a hard link that came and went.
                    Some(bytes)
                        if now.is_some_and(|now| now.mode == stamp.mode)
                            && read::bytes(path, FILE_BYTES, Links::Refused).as_ref()
                                == Ok(bytes) => {}
                    Some(bytes) => self.restore(place, path, || {
                        std::fs::write(path, bytes)?;
                        let mode = std::fs::Permissions::from_mode(stamp.mode);
                        std::fs::set_permissions(path, mode)
                    }),
                    None => self.left(path, "it is too large for a copy to have been kept"),
                }
            }
            Seen::Folder { mode, names } => {
                if !is_real_dir(path) {
                    self.restore(place, path, || {
                        std::fs::create_dir(path)?;
                        std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode))
                    });
                }
                for (name, seen) in names {
                    self.put_right_in(place, &path.join(name), seen);
                }
                let Ok(entries) = std::fs::read_dir(path) else { return };
                for entry in entries.flatten() {
                    let path = entry.path();
                    let settled = self.aside.contains(&path) || is_sample(&path);
                    if !names.contains_key(&entry.file_name()) && !settled {
                        self.quarantine_from(place, &path);
                    }
                }
            }
        }
    }

    /// Moves what is there aside and makes it anew.
    fn restore(&mut self, place: &Path, path: &Path, make: impl FnOnce() -> io::Result<()>) {
        let kept = match exists(path).then(|| self.move_aside(place, path)).transpose() {
            Ok(kept) => kept,
            Err(error) => return self.failed(path, &error),
        };
        match make() {
            Ok(()) => self.tell(path, Remedy::Restored { kept }),
            Err(error) => self.failed(path, &error),
        }
    }
}

/// Moves a name out of the way, to one in `folder` that is free.
fn aside(path: &Path, folder: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default();
    for number in 1..=1000 {
        let mut free = name.to_owned();
        free.push(if number == 1 { format!(".{ASIDE}") } else { format!(".{ASIDE}-{number}") });
        let free = folder.join(free);
        if !exists(&free) {
            match std::fs::rename(path, &free) {
                // A Landlock of version 1 moves nothing to another directory.
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                    copied(path, &free)?;
                }
                other => other?,
            }
            return Ok(free);
        }
    }
    Err(io::Error::other("a thousand names are taken"))
}

/// Moves a link or a folder by copying it. What is neither folder, link nor file is not kept.
fn copied(path: &Path, to: &Path) -> io::Result<()> {
    copy(path, to).inspect_err(|_| {
        // A half would be taken for the whole.
        let _ = std::fs::remove_dir_all(to);
    })?;
    match is_real_dir(path) {
        true => std::fs::remove_dir_all(path),
        false => std::fs::remove_file(path),
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let found = from.symlink_metadata()?;
    let mode = found.permissions().mode();
    // The command may have closed it, even to its owner.
    let open = || std::fs::set_permissions(from, std::fs::Permissions::from_mode(mode | 0o700));
    if found.is_symlink() {
        return std::os::unix::fs::symlink(std::fs::read_link(from)?, to);
    }
    if found.is_dir() {
        open()?;
        std::fs::create_dir(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else if found.is_file() {
        open()?;
        std::fs::copy(from, to)?;
    } else {
        return Ok(());
    }
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(mode & 0o777))
}
