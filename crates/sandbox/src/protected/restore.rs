//! Restores the protected paths after a command: changes are undone, new names moved aside, and
//! each remedy is recorded. It runs when no process of the command is left, and while a command runs
//! for longer (`sweeper`). The runner's own Landlock rules let it write only where the command could.

use super::asked_files;
use super::baseline::Baseline;
use super::bounded_read::{self, Symlinks};
use super::file_state::{CaptureBudget, FileState, InodeStamp, capture};
use super::git_dir_check;
use super::git_pointers::{git_dirs_among, points_to_known_git_dir};
use super::opened_dirs::OpenedDirs;
use super::path_checks::{exists, is_real_dir};
use super::path_finder::{ProtectedPaths, find_all};
use super::protected_path::{OwnerDir, ProtectedKind, ProtectedPath, outermost_link};
use super::remedies::{Remedies, RestorePhase};
use super::walk::SearchPhase;
use protocol::call::{TamperRemedy, TamperedFile};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Said of a folder at which a search ended.
const CUT_BEFORE: &str = "the search for protected names reached its bound here before the command: of what it made from here on, only repositories that git enters were put right";
const CUT_AFTER: &str = "the search for protected names reached its bound here after the command: of what it made from here on, only repositories that git enters were put right";

impl Baseline {
    /// Undoes the command's changes when none of its processes is left, and returns the remedies.
    pub(crate) fn restore(self) -> Vec<TamperedFile> {
        within_report_limits(self.restore_after(HashMap::new()))
    }

    /// The same after these paths were moved aside while it ran.
    pub(super) fn restore_after(
        mut self,
        moved_aside: HashMap<PathBuf, Vec<PathBuf>>,
    ) -> Vec<TamperedFile> {
        let mut told = Remedies::new(RestorePhase::AfterEnd, self.roots.clone());
        told.moved_aside = moved_aside;
        told.reserve = std::mem::take(&mut self.reserve);
        self.put_right(&mut told, None);
        told.list
    }

    /// Undoes the command's changes, and adds the remedies. Looks for new names, or for changes of
    /// those that an earlier search found. Returns the found ones.
    pub(super) fn put_right(
        &self,
        told: &mut Remedies,
        known: Option<ProtectedPaths>,
    ) -> ProtectedPaths {
        let runs = told.phase == RestorePhase::WhileRunning;
        // Steps go with the program that takes them, and only the person's word starts them again.
        let waits = |place: &ProtectedPath| runs && place.kind == ProtectedKind::SequencerFile;
        let mut doors = OpenedDirs::default();
        for (place, _) in &self.recorded {
            doors.open_path_to(told.root_of(&place.path), &place.path);
            doors.open(&place.path);
        }
        let mut gone: Vec<&PathBuf> = Vec::new();
        for (place, seen) in self.recorded.iter().filter(|(place, _)| !waits(place)) {
            match (&place.owner, &place.git_dir) {
                // Removed with all that was in it.
                (OwnerDir::Nested(folder), _) if !exists(folder) => continue,
                (_, Some(git)) if !exists(git) && *git != place.path => {
                    let counts = place.kind != ProtectedKind::WorktreeFile && !runs;
                    if counts && !gone.contains(&git) {
                        told.leave(git, "it was removed or moved away");
                        gone.push(git);
                    }
                    continue;
                }
                (OwnerDir::Project | OwnerDir::Nested(_), _) => {}
            }
            if place.is_git_config_in(&self.git_writable) {
                told.granted(&place.path, Some(seen));
                continue;
            }
            let nested = place.owner != OwnerDir::Project;
            if nested
                && place.kind == ProtectedKind::GitConfig
                && has_harmless_config(place, &told.roots)
            {
                continue;
            }
            if place.kind == ProtectedKind::GitConfig
                && changed_harmlessly(place, seen, &told.roots)
            {
                continue;
            }
            if place.kind == ProtectedKind::SequencerFile
                && runs_nothing_new(place, Some(seen), &told.roots)
            {
                continue;
            }
            told.clear_way_to(&place.path);
            told.restore(&place.path, seen);
        }
        let before: HashSet<&PathBuf> =
            self.recorded.iter().map(|(place, _)| &place.path).collect();
        let names = known.map(ProtectedPaths::unverified).unwrap_or_else(|| {
            let phase = SearchPhase::After(&mut doors);
            find_all(&told.roots, self.linked.as_ref(), self.names, phase)
        });
        let ProtectedPaths { paths: places, unsearched, entered_repos: entered, .. } = &names;
        let lies_in = |path: &Path, folders: &[PathBuf]| {
            folders.iter().any(|folder| path.starts_with(folder))
        };
        // Paths in unsearched folders are left alone, except in repositories that git enters by
        // itself.
        let unknown = |path: &Path| lies_in(path, &self.unsearched) && !lies_in(path, entered);
        let new = places.iter();
        let new = new.filter(|place| {
            // While the command runs, a link counts before its target is there: only the link's name
            // is watched.
            let leads = || runs && outermost_link(place, &told.roots).path != place.path;
            place.kind != ProtectedKind::Asked && (exists(&place.path) || leads())
        });
        // If a new link lies on the way to an absent path, the link is the new file, not its
        // target.
        let new = new.chain(&self.absent).map(|place| outermost_link(place, &told.roots));
        let mut new: Vec<ProtectedPath> = new
            .filter(|place| !before.contains(&place.path) && !unknown(&place.path) && !waits(place))
            .collect();
        // The deepest first: a folder that is moved aside takes its content along.
        new.sort_by_key(|place| std::cmp::Reverse(place.path.components().count()));
        let gits = git_dirs_among(places);
        for place in &new {
            doors.open_path_to(told.root_of(&place.path), &place.path);
            doors.open(&place.path);
            let known = place.git_dir.as_ref().is_some_and(|git| self.repositories.contains(git));
            match place.kind {
                _ if !exists(&place.path) => {}
                _ if place.git_dir.is_some() && told.is_settled(&place.path) => {}
                _ if place.is_git_config_in(&self.git_writable)
                    && (known || keeps_worktree(&self.repositories, place)) =>
                {
                    told.granted(&place.path, None)
                }
                ProtectedKind::Hooks if !known && is_real_dir(&place.path) => {
                    // Git runs a hook by its exact name, so none that was moved aside.
                    let live = git_dir_check::live_hooks(&place.path).into_iter();
                    let live: Vec<_> = live.filter(|hook| !told.is_settled(hook)).collect();
                    for hook in live {
                        told.quarantine_from(place.git_dir.as_ref().unwrap_or(&hook), &hook);
                    }
                }
                ProtectedKind::GitConfig if !known && has_harmless_config(place, &told.roots) => {}
                ProtectedKind::WorktreeFile if !known && is_expected_worktree_file(place) => {}
                ProtectedKind::SequencerFile if runs_nothing_new(place, None, &told.roots) => {}
                ProtectedKind::Asked => {}
                ProtectedKind::Plain
                    if place.owner != OwnerDir::Project && self.was_moved(place) => {}
                ProtectedKind::GitFile if !known && points_to_known_git_dir(&place.path, &gits) => {
                }
                ProtectedKind::Plain
                | ProtectedKind::Hooks
                | ProtectedKind::GitConfig
                | ProtectedKind::WorktreeFile
                | ProtectedKind::GitFile
                | ProtectedKind::SequencerFile => told.quarantine(&place.path),
                // Beside its place, it would be one again.
                ProtectedKind::LinkInGitDir => {
                    told.quarantine_from(place.git_dir.as_ref().unwrap_or(&place.path), &place.path)
                }
            }
        }
        if !runs {
            let after = asked_files::stamps(places);
            for (path, why) in asked_files::changed(&self.asked, &after, self.names) {
                if !unknown(&path) {
                    told.stays(&path, why);
                }
            }
        }
        for (cut, why) in [(&self.unsearched, CUT_BEFORE), (unsearched, CUT_AFTER)] {
            if let Some(folder) = cut.first().filter(|_| !runs) {
                told.leave(folder, why);
            }
        }
        for (place, seen) in &self.recorded {
            told.restore_modes(&place.path, seen, &mut doors);
        }
        doors.close();
        names
    }
}

impl Baseline {
    /// True if a path of the same name held the same content before, anywhere in the project, or more of
    /// it. Folders get moved, and an unchanged copy adds nothing that programs did not trust before.
    fn was_moved(&self, place: &ProtectedPath) -> bool {
        let Some(now) = capture(&place.path, &mut CaptureBudget::new()) else { return false };
        let like = |known: &ProtectedPath| {
            known.kind == place.kind && known.path.file_name() == place.path.file_name()
        };
        let known = self.recorded.iter().filter(|(known, _)| like(known));
        known.into_iter().any(|(known, seen)| match seen {
            // A mount kept it unchanged.
            FileState::Unrecorded => capture(&known.path, &mut CaptureBudget::new())
                .is_some_and(|it| now.is_part_of(&it)),
            FileState::File { .. }
            | FileState::Folder { .. }
            | FileState::Link(_)
            | FileState::Special { .. } => now.is_part_of(seen),
        })
    }
}

/// Most changes that a result lists one by one, and most bytes of them.
const MOST_REPORTED: usize = 500;
const REPORT_BYTES: usize = 256 << 10;

/// Lists changes that could not be undone first; the last line counts the omitted ones.
pub(super) fn within_report_limits(mut list: Vec<TamperedFile>) -> Vec<TamperedFile> {
    list.sort_by_key(|told| !matches!(told.remedy, TamperRemedy::Left { .. }));
    let mut bytes = 0;
    let fits = |told: &&TamperedFile| {
        bytes += 2 * told.path.len();
        bytes <= REPORT_BYTES
    };
    let kept = list.iter().take(MOST_REPORTED).take_while(fits).count();
    let more = list.len() - kept;
    list.truncate(kept);
    if more > 0 {
        let path = format!("{more} more protected names");
        let why = "so many are not told one by one, whether put right or not".to_owned();
        list.push(TamperedFile { path, remedy: TamperRemedy::Left { why } });
    }
    list
}

/// True if one of these repositories holds this file of a worktree, which may be new.
fn keeps_worktree(repositories: &BTreeSet<PathBuf>, place: &ProtectedPath) -> bool {
    let of = place.git_dir.as_ref().filter(|_| place.kind == ProtectedKind::WorktreeFile);
    let repository = of.and_then(|folder| folder.ancestors().nth(2));
    repository.is_some_and(|repository| repositories.contains(repository))
}

/// True if new settings of a new git directory name no programs.
fn has_harmless_config(place: &ProtectedPath, roots: &[PathBuf]) -> bool {
    let regular = place.path.symlink_metadata().is_ok_and(|found| found.is_file());
    let Some(git) = place.git_dir.as_ref().filter(|_| regular) else { return false };
    // A submodule's files lie beside the repository that keeps its folder.
    let is_worktree = |named: &str| {
        let outer = git.ancestors().find(|folder| folder.ends_with(".git")).and_then(Path::parent);
        let worktree = git.join(named).canonicalize();
        outer.zip(worktree.ok()).is_some_and(|(outer, worktree)| worktree.starts_with(outer))
    };
    let inside = |path: &str| git_dir_check::leads_inside(git, path, roots);
    let text = bounded_read::text(&place.path, bounded_read::SETTINGS, Symlinks::Refuse);
    text.is_ok_and(|text| git_dir_check::are_harmless(&text, is_worktree, inside))
}

/// True if changed settings name no program or folder that they did not name before. A file with a
/// second hard link does not count: a later call could change it by that link.
fn changed_harmlessly(place: &ProtectedPath, before: &FileState, roots: &[PathBuf]) -> bool {
    let FileState::File { stamp, bytes: Some(bytes) } = before else { return false };
    let same = |now: Metadata| {
        now.is_file() && now.nlink() == 1 && InodeStamp::of(&now).mode == stamp.mode
    };
    if !place.path.symlink_metadata().is_ok_and(same) {
        return false;
    }
    let now = bounded_read::text(&place.path, bounded_read::SETTINGS, Symlinks::Refuse);
    let before = std::str::from_utf8(bytes);
    let git = place.git_dir.as_deref().unwrap_or(&place.path);
    let inside = |path: &str| git_dir_check::leads_inside(git, path, roots);
    now.ok()
        .zip(before.ok())
        .is_some_and(|(now, before)| git_dir_check::changes_harmlessly(before, &now, inside))
}

/// True if the pending steps name no new program and no file outside of the working tree.
fn runs_nothing_new(place: &ProtectedPath, before: Option<&FileState>, roots: &[PathBuf]) -> bool {
    let Ok(now) = bounded_read::bytes(&place.path, bounded_read::SETTINGS, Symlinks::Refuse) else {
        // Done, or given up.
        return !exists(&place.path);
    };
    if place.path.ends_with("MERGE_RR") {
        let tree = place.git_dir.as_deref().and_then(Path::parent);
        let trees = roots.iter().map(PathBuf::as_path).chain(tree);
        return trees.into_iter().all(|tree| git_dir_check::stays_in(&now, tree));
    }
    let known = match before {
        Some(FileState::File { bytes: Some(bytes), .. }) => {
            git_dir_check::programs_in(&place.path, bytes)
        }
        _ => BTreeSet::new(),
    };
    git_dir_check::programs_in(&place.path, &now).is_subset(&known)
}

/// True if a new file of a new linked worktree has the content that git writes there.
fn is_expected_worktree_file(place: &ProtectedPath) -> bool {
    let text = |most| bounded_read::text(&place.path, most, Symlinks::Refuse);
    match place.path.file_name().and_then(|name| name.to_str()) {
        Some("commondir") => {
            text(bounded_read::POINTER).is_ok_and(|text| text.trim_end() == "../..")
        }
        Some("gitdir") => text(bounded_read::POINTER).is_ok(),
        _ => text(bounded_read::SETTINGS)
            .is_ok_and(|text| git_dir_check::are_harmless(&text, |_| false, |_| false)),
    }
}
