//! From what was at the protected names before a command to what is there after it: changes are
//! undone, new names moved aside, and each is told. Runs when no process of the command is left;
//! the runner's own layer lets it write no further than the command could.

use super::doors::Doors;
use super::led::{absent, outermost};
use super::places::{Kind, Names, Place, Within, find, git_folders_of, leads_home};
use super::read::{self, Links};
use super::reserve::Reserve;
use super::saved::saved;
use super::seen::{Room, Seen, Stamp, look};
use super::told::Told;
use super::walk::When;
use super::{Led, Linked, exists, is_real_dir, vet};
use crate::policy::Protected;
use protocol::call::{Remedy, Tampered};
use std::collections::{BTreeSet, HashSet};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Said of a folder at which a search ended.
const CUT_BEFORE: &str = "the search for protected names reached its bound here before the command: of what it made from here on, only repositories that git enters were put right";
const CUT_AFTER: &str = "the search for protected names reached its bound here after the command: of what it made from here on, only repositories that git enters were put right";

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
    /// Folders of which nobody knows what they held.
    unsearched: Vec<PathBuf>,
    /// Room for what is put back.
    reserve: Reserve,
}

impl Before {
    /// Looks at all of `names` and what they lead to, but for those that a mount holds.
    ///
    /// # Errors
    /// Where the disk has no room to put them back.
    pub(crate) fn look(
        territory: Territory,
        found: Names,
        led: Led,
        held: &[PathBuf],
    ) -> io::Result<Self> {
        let Territory { roots, linked, names, open } = territory;
        let Names { places, unsearched, .. } = found;
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
        let common = linked.iter().map(|linked| &linked.common);
        let reserve = Reserve::of(roots.iter().chain(common), room.used())?;
        Ok(Self {
            roots,
            linked,
            names,
            open,
            crowded: room.is_short(),
            limits: led.limits,
            absent,
            seen,
            repositories,
            unsearched,
            reserve,
        })
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
    pub(crate) fn mend(mut self) -> Vec<Tampered> {
        let mut told = Told::new(std::mem::take(&mut self.roots));
        self.reserve.release();
        let mut doors = Doors::default();
        for (place, _) in &self.seen {
            doors.open_way(told.root_of(&place.path), &place.path);
            doors.open(&place.path);
        }
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
            if nested && place.kind == Kind::Settings && is_harmless(place, &told.roots) {
                continue;
            }
            if place.kind == Kind::Settings && changed_harmlessly(place, seen, &told.roots) {
                continue;
            }
            if place.kind == Kind::Steps && runs_no_more(place, Some(seen), &told.roots) {
                continue;
            }
            told.way_to(&place.path);
            told.put_right(&place.path, seen);
        }
        let before: HashSet<&PathBuf> = self.seen.iter().map(|(place, _)| &place.path).collect();
        let names = find(&told.roots, self.linked.as_ref(), self.names, When::After(&mut doors));
        let Names { places, unsearched, entered } = names;
        let lies_in = |path: &Path, folders: &[PathBuf]| {
            folders.iter().any(|folder| path.starts_with(folder))
        };
        // Of what nobody knew before, what git enters by itself is judged all the same.
        let unknown = |path: &Path| lies_in(path, &self.unsearched) && !lies_in(path, &entered);
        let new = places.iter().filter(|place| exists(&place.path));
        // A link that was made on the way to what did not exist is what is new, not what it leads to.
        let new = new.chain(&self.absent).map(|place| outermost(place, &told.roots));
        let mut new: Vec<Place> =
            new.filter(|place| !before.contains(&place.path) && !unknown(&place.path)).collect();
        // The deepest first: a folder that is moved aside takes what is in it along.
        new.sort_by_key(|place| std::cmp::Reverse(place.path.components().count()));
        let gits = git_folders_of(&places);
        for place in &new {
            doors.open_way(told.root_of(&place.path), &place.path);
            doors.open(&place.path);
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
                Kind::Settings if !known && is_harmless(place, &told.roots) => {}
                Kind::OfWorktree if !known && is_usual(place) => {}
                Kind::Steps if runs_no_more(place, None, &told.roots) => {}
                Kind::Plain if place.within != Within::Project && self.was_moved(place) => {}
                Kind::Pointer if !known && leads_home(&place.path, &gits) => {}
                Kind::Plain
                | Kind::Hooks
                | Kind::Settings
                | Kind::OfWorktree
                | Kind::Pointer
                | Kind::Inner
                | Kind::Steps => told.quarantine(&place.path),
            }
        }
        for (cut, why) in [(&self.unsearched, CUT_BEFORE), (&unsearched, CUT_AFTER)] {
            if let Some(folder) = cut.first() {
                told.left(folder, why);
            }
        }
        for (place, seen) in &self.seen {
            told.modes(&place.path, seen, &mut doors);
        }
        doors.close();
        bounded(told.list)
    }
}

impl Before {
    /// Whether a name in a folder holds what one like it held before, wherever that was: folders are
    /// moved, and what is copied as it was tells nobody anything new.
    fn was_moved(&self, place: &Place) -> bool {
        let Some(now) = look(&place.path, &mut Room::new()) else { return false };
        let like = |known: &Place| {
            known.kind == place.kind && known.path.file_name() == place.path.file_name()
        };
        let known = self.seen.iter().filter(|(known, _)| like(known));
        known.into_iter().any(|(known, seen)| match seen {
            // Held by a mount, it is what it was.
            Seen::Unwatched => {
                look(&known.path, &mut Room::new()).is_some_and(|it| it.is_same(&now))
            }
            Seen::File { .. } | Seen::Folder { .. } | Seen::Link(_) | Seen::Special { .. } => {
                seen.is_same(&now)
            }
        })
    }
}

/// Most changes that are told one by one, and most bytes of them: a result holds them all.
const TOLD: usize = 500;
const TOLD_BYTES: usize = 256 << 10;

/// The changes that could not be undone first; the last line counts what is left out.
fn bounded(mut list: Vec<Tampered>) -> Vec<Tampered> {
    list.sort_by_key(|told| !matches!(told.remedy, Remedy::Left { .. }));
    let mut bytes = 0;
    let fits = |told: &&Tampered| {
        bytes += 2 * told.path.len();
        bytes <= TOLD_BYTES
    };
    let kept = list.iter().take(TOLD).take_while(fits).count();
    let more = list.len() - kept;
    list.truncate(kept);
    if more > 0 {
        let path = format!("{more} more protected names");
        let why = "so many are not told one by one, whether put right or not".to_owned();
        list.push(Tampered { path, remedy: Remedy::Left { why } });
    }
    list
}

/// Whether one of these repositories keeps this about a worktree, which may be new.
fn keeps(repositories: &BTreeSet<PathBuf>, place: &Place) -> bool {
    let of = place.of.as_ref().filter(|_| place.kind == Kind::OfWorktree);
    let repository = of.and_then(|folder| folder.ancestors().nth(2));
    repository.is_some_and(|repository| repositories.contains(repository))
}

/// Whether new settings of a new git folder name no programs.
fn is_harmless(place: &Place, roots: &[PathBuf]) -> bool {
    let regular = place.path.symlink_metadata().is_ok_and(|found| found.is_file());
    let Some(git) = place.of.as_ref().filter(|_| regular) else { return false };
    // A submodule's files lie beside the repository that keeps its folder.
    let is_worktree = |named: &str| {
        let outer = git.ancestors().find(|folder| folder.ends_with(".git")).and_then(Path::parent);
        let worktree = git.join(named).canonicalize();
        outer.zip(worktree.ok()).is_some_and(|(outer, worktree)| worktree.starts_with(outer))
    };
    let inside = |path: &str| vet::leads_inside(git, path, roots);
    let text = read::text(&place.path, read::SETTINGS, Links::Refused);
    text.is_ok_and(|text| vet::harmless(&text, is_worktree, inside))
}

/// Whether settings that were there name no program or folder that they did not name before. A file
/// of a second name could be changed by that one in a later call.
fn changed_harmlessly(place: &Place, before: &Seen, roots: &[PathBuf]) -> bool {
    let Seen::File { stamp, bytes: Some(bytes) } = before else { return false };
    let same =
        |now: Metadata| now.is_file() && now.nlink() == 1 && Stamp::of(&now).mode == stamp.mode;
    if !place.path.symlink_metadata().is_ok_and(same) {
        return false;
    }
    let now = read::text(&place.path, read::SETTINGS, Links::Refused);
    let before = std::str::from_utf8(bytes);
    let git = place.of.as_deref().unwrap_or(&place.path);
    let inside = |path: &str| vet::leads_inside(git, path, roots);
    now.ok()
        .zip(before.ok())
        .is_some_and(|(now, before)| vet::changes_harmlessly(before, &now, inside))
}

/// Whether what is under way names no program that it did not name before, and no file outside of
/// the working tree.
fn runs_no_more(place: &Place, before: Option<&Seen>, roots: &[PathBuf]) -> bool {
    let Ok(now) = read::bytes(&place.path, read::SETTINGS, Links::Refused) else {
        // Done, or given up.
        return !exists(&place.path);
    };
    if place.path.ends_with("MERGE_RR") {
        let tree = place.of.as_deref().and_then(Path::parent);
        let trees = roots.iter().map(PathBuf::as_path).chain(tree);
        return trees.into_iter().all(|tree| vet::stays_in(&now, tree));
    }
    let known = match before {
        Some(Seen::File { bytes: Some(bytes), .. }) => vet::programs_in(&place.path, bytes),
        _ => BTreeSet::new(),
    };
    vet::programs_in(&place.path, &now).is_subset(&known)
}

/// Whether a new file about a new linked worktree says what git writes there.
fn is_usual(place: &Place) -> bool {
    let text = |most| read::text(&place.path, most, Links::Refused);
    match place.path.file_name().and_then(|name| name.to_str()) {
        Some("commondir") => text(read::POINTER).is_ok_and(|text| text.trim_end() == "../.."),
        Some("gitdir") => text(read::POINTER).is_ok(),
        _ => text(read::SETTINGS).is_ok_and(|text| vet::harmless(&text, |_| false, |_| false)),
    }
}

saved!(struct Before { roots, linked, names, open, crowded, limits, absent, seen, repositories, unsearched, reserve });
