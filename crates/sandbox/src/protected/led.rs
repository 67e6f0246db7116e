//! Where protected names lead: a link in place of one, on the way to one or beneath one, and the
//! folder of hooks that git's settings name. Whoever may write what a name leads to has changed
//! what is run by that name. For `grants`.

use super::places::{Kind, Place, Within, once};
use super::read::{self, Links, Unread};
use super::seen::is_sample_by_name;
use super::{exists, filters, is_real_dir, settings};
use crate::links::follow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Most files of settings that are read; each may include others.
const FILES: usize = 100;
/// How many names beneath protected folders are looked at for links, and how far down.
const ALL_NAMES: usize = 2000;
const DEEP: usize = 16;

/// Where a command may write, and what names are relative to.
#[derive(Debug)]
pub(crate) struct Ground {
    /// All that it may write, links resolved.
    pub writable: Vec<PathBuf>,
    pub home: Option<PathBuf>,
}

/// What protected names lead to.
#[derive(Debug, Default)]
pub(crate) struct Led {
    /// Places to be protected as if they were named themselves.
    pub places: Vec<Place>,
    /// What is not protected by them, a sentence each.
    pub limits: Vec<String>,
}

/// Said where protected folders hold more names than are looked at.
const TOO_MANY: &str = "More lies beneath the protected names than is looked at for links: beyond 2,000 names, what a link leads to is not protected.";
/// Said where only git knows which file settings of a repository in the project include.
const INCLUDES: &str = "Settings of a repository around or in the project include a file by a name that only git knows (`~name/`, `%(prefix)/`), or more than 100 files: what those say, and where they lie, is not protected.";
/// Said where they could not be read.
const UNREADABLE: &str = "Settings of a repository around or in the project could not be read, as no regular file of up to 256 KiB: a folder of hooks that they name is not protected.";
/// Said where they name another user's home.
const ANOTHERS: &str = "Settings of a repository around or in the project name a folder of hooks by somebody's name (`~name/`), which is not looked up: what is there is not protected.";

/// A name as the kernel comes to it first: the outermost link on the way to a place, if there is one.
pub(super) fn outermost(place: &Place, roots: &[PathBuf]) -> Place {
    let root = roots.iter().filter(|root| place.path.starts_with(root));
    let root = root.max_by_key(|root| root.components().count());
    let inside = |above: &&Path| root.is_none_or(|root| above != root);
    let mut way: Vec<&Path> = place.path.ancestors().skip(1).take_while(inside).collect();
    way.reverse();
    match way.into_iter().find(|above| above.is_symlink()) {
        Some(link) => plain(link.to_owned(), &place.within),
        None => place.clone(),
    }
}

/// What the protected names among `places` and what is outside of the grants lead to, as far as a
/// command may write there.
pub(crate) fn led(places: &[Place], outside: &[Place], ground: &Ground) -> Led {
    let gits = places.iter().filter_map(|place| place.of.clone());
    let gits: BTreeSet<PathBuf> =
        gits.map(|git| git.canonicalize().unwrap_or(git)).filter(|git| git.is_dir()).collect();
    let mut found = Finder { ground, gits, names: ALL_NAMES, led: Led::default() };
    let all: Vec<&Place> = places.iter().chain(outside).collect();
    // A link in a git folder leads to no program; it is put back itself.
    for place in all.iter().filter(|place| place.kind != Kind::Inner) {
        found.from(place, DEEP);
    }
    found.hooks(&all);
    let Finder { led: Led { places: led, mut limits }, .. } = found;
    let led = once(led);
    // What is protected already, by its own name or with the folder that it lies in.
    let folders = places.iter().chain(&led).filter(|place| is_real_dir(&place.path));
    let folders: BTreeMap<PathBuf, Within> =
        folders.map(|place| (place.path.clone(), place.within.clone())).collect();
    let named: BTreeMap<&Path, &Within> =
        places.iter().map(|place| (place.path.as_path(), &place.within)).collect();
    let stays = |place: &Place| {
        let as_long = |within: &Within| *within == Within::Project || *within == place.within;
        let named = named.get(place.path.as_path()).is_some_and(|within| as_long(within));
        let whole = place.path.ancestors().zip(place.path.ancestors().skip(1));
        // Of a folder, git's examples are left out.
        let mut whole =
            whole.take_while(|(below, _)| !is_sample_by_name(below)).map(|(_, above)| above);
        !named && !whole.any(|above| folders.get(above).is_some_and(as_long))
    };
    let led = led.into_iter().filter(stays).collect();
    let mut said = BTreeSet::new();
    limits.retain(|limit| said.insert(limit.clone()));
    Led { places: led, limits }
}

struct Finder<'a> {
    ground: &'a Ground,
    /// Git folders, which hold more than what is protected in them.
    gits: BTreeSet<PathBuf>,
    /// How many names may still be looked at.
    names: usize,
    led: Led,
}

impl Finder<'_> {
    /// What a name leads to, and the names beneath it.
    fn from(&mut self, place: &Place, deep: usize) {
        let Ok(found) = place.path.symlink_metadata() else { return };
        let Some(deeper) = deep.checked_sub(1) else { return };
        if found.is_symlink() {
            return self.follow(place, deeper);
        }
        if !found.is_dir() {
            return;
        }
        let Ok(entries) = std::fs::read_dir(&place.path) else { return };
        for entry in entries.flatten() {
            let Some(left) = self.names.checked_sub(1) else {
                return self.led.limits.push(TOO_MANY.to_owned());
            };
            self.names = left;
            if entry.file_type().is_ok_and(|kind| kind.is_symlink() || kind.is_dir()) {
                self.from(&Place { path: entry.path(), ..place.clone() }, deeper);
            }
        }
    }

    /// Each link on the way from a name, and their end, there or not.
    fn follow(&mut self, from: &Place, deep: usize) {
        let Some((links, end)) = follow(&from.path) else { return };
        let kind = match from.kind {
            kind @ (Kind::Settings | Kind::Hooks | Kind::Plain) => kind,
            Kind::OfWorktree | Kind::Pointer | Kind::Steps | Kind::Inner => Kind::Plain,
        };
        for link in links {
            if self.is_writable(&link.at) {
                self.led.places.push(Place { kind, ..plain(link.at, &from.within) });
            }
        }
        // A git folder is more than one name, and its own names are found by themselves.
        let folder_of_git = from.kind == Kind::Pointer && end.is_dir();
        if !self.is_writable(&end) || folder_of_git {
            return;
        }
        let holds = |inner: &PathBuf| inner.starts_with(&end);
        if self.ground.writable.iter().any(holds) || self.gits.iter().any(holds) {
            let (name, end) = (from.path.display(), end.display());
            return self.led.limits.push(format!(
                "{name} leads to {end}, which holds more than can be kept as it is: what the command changes there is not noticed."
            ));
        }
        let place = Place { kind, ..plain(end, &from.within) };
        self.from(&place, deep);
        self.led.places.push(place);
    }

    /// The folders of hooks that settings name. A relative one is looked for beneath every working
    /// tree that was found, since settings are shared between several.
    fn hooks(&mut self, places: &[&Place]) {
        let trees: BTreeSet<&Path> = places
            .iter()
            .filter(|place| place.path.ends_with(".git") || place.path.ends_with(".git/config"))
            .filter_map(|place| match place.path.ends_with(".git") {
                true => place.path.parent(),
                false => place.path.parent().and_then(Path::parent),
            })
            .collect();
        let settings = |place: &&&Place| {
            place.kind == Kind::Settings || place.path.ends_with("config.worktree")
        };
        let mut files: Vec<Place> =
            places.iter().filter(settings).map(|it| (*it).clone()).collect();
        let mut read = BTreeSet::new();
        while let Some(file) = files.pop() {
            if !read.insert(file.path.clone()) {
                continue;
            }
            if read.len() > FILES {
                return self.led.limits.push(INCLUDES.to_owned());
            }
            let included = self.named_by(&file, &trees);
            for path in &included {
                // What is included is settings too, wherever it lies.
                let from = Place { kind: Kind::Settings, ..plain(path.clone(), &file.within) };
                self.follow(&from, DEEP);
                files.push(from);
            }
        }
    }

    /// Follows the folders of hooks that settings name, and returns the files that they include.
    fn named_by(&mut self, file: &Place, trees: &BTreeSet<&Path>) -> Vec<PathBuf> {
        let bytes = match read::bytes(&file.path, read::SETTINGS, Links::Followed) {
            Ok(bytes) => bytes,
            Err(Unread::Absent) => return Vec::new(),
            Err(Unread::Unreadable) => {
                self.led.limits.push(UNREADABLE.to_owned());
                return Vec::new();
            }
        };
        let read = settings::Settings::of(&bytes);
        for named in read.values("core", "hookspath") {
            for path in self.folders_of_hooks(named, trees) {
                let from = Place { kind: Kind::Hooks, ..plain(path, &file.within) };
                self.follow(&from, DEEP);
            }
        }
        let home = self.ground.home.as_deref();
        let named: Vec<_> =
            read.included().map(|named| filters::included(named, &file.path, home)).collect();
        if named.contains(&None) {
            self.led.limits.push(INCLUDES.to_owned());
        }
        named.into_iter().flatten().collect()
    }

    /// Where a folder of hooks may be that settings name.
    fn folders_of_hooks(&mut self, named: &[u8], trees: &BTreeSet<&Path>) -> Vec<PathBuf> {
        // Git's word for a path that need not exist.
        let named = named.strip_prefix(b":(optional)").unwrap_or(named);
        let path = |bytes| Path::new(OsStr::from_bytes(bytes));
        match named {
            [] => Vec::new(),
            [b'~', rest @ ..] if rest.is_empty() || rest.starts_with(b"/") => {
                let slash = |byte: &u8| *byte == b'/';
                let rest =
                    path(rest.iter().position(|byte| !slash(byte)).map_or(&[], |at| &rest[at..]));
                self.ground.home.iter().map(|home| home.join(rest)).collect()
            }
            [b'~', ..] => {
                self.led.limits.push(ANOTHERS.to_owned());
                Vec::new()
            }
            relative => trees.iter().map(|tree| tree.join(path(relative))).collect(),
        }
    }

    /// Whether a command could change what is by this name.
    fn is_writable(&self, path: &Path) -> bool {
        self.ground.writable.iter().any(|root| path.starts_with(root))
    }
}

fn plain(path: PathBuf, within: &Within) -> Place {
    Place { path, of: None, kind: Kind::Plain, within: within.clone() }
}

/// Those that do not exist, which the command may make.
pub(super) fn absent(places: &[Place]) -> Vec<Place> {
    places.iter().filter(|place| !exists(&place.path)).cloned().collect()
}
