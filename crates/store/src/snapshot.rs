//! A project's files before a command: the data needed to find the command's changes, and to revert
//! them. For `commands`.
//!
//! A scan of the file names and stamps is compared with the stored state; only differing files are
//! read. Copies are made in small steps in the background: a command waits for one scan and a
//! bounded time of copying. Everything is stored in a file, so that it outlives this process. The
//! file is not synced, since a loss of power also ends the commands it serves.

mod capture;
mod change;
mod compare;
mod format;
mod ignored;
mod path;
mod tree;
mod tree_watch;

pub(crate) use change::{ChangedFile, CommandEffects, ContentBefore};

use crate::database::{Database, Durable};
use crate::failure::{StoreError, StoreErrorCode};
use crate::validate;
use capture::{ChangedBy, InspectedName};
use compare::{
    Index, NewNameEvidence, NoCopyReason, SnapshotEntry, StampProof, StoredCopy, suspects,
};
use format::{SCHEMA, SnapshotRow};
use path::ProjectPath;
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tree::{EntryKind, ProjectTree, TreeEntry};
use tree_watch::TreeWatch;

/// Largest file of which a copy is kept.
const LARGEST: u64 = 256 << 10;
/// Most bytes of all copies.
const BYTES: u64 = 64 << 20;
/// How long the look at a project's names may take.
const LOOK: Duration = Duration::from_millis(700);
/// Bytes that are copied in one step, while others wait.
const STEP: u64 = 2 << 20;
/// Files of one step.
const STEP_FILES: usize = 200;
/// How long the files that were changed may be read, with others waiting.
const READING: Duration = Duration::from_secs(1);

/// The snapshot of one session.
#[derive(Debug)]
pub(crate) struct Snapshot {
    file: Database,
    project: PathBuf,
    /// The filesystem, if changes can be detected on it; otherwise the reason why not.
    device: Result<u64, &'static str>,
    state: SnapshotState,
    /// Of a project with many files.
    watch: Option<TreeWatch>,
    pace: BackgroundCopies,
    /// How often the file had been moved aside when the state was read from it.
    lives: u32,
}

/// Whether copies are made in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BackgroundCopies {
    Free,
    /// Paused while a command runs: its changes so far would be taken for the state before it.
    Held,
}

#[derive(Debug)]
enum SnapshotState {
    /// Not yet requested.
    Idle,
    Known(KnownTree),
}

#[derive(Debug, Default)]
struct KnownTree {
    index: Index,
    /// Files to copy.
    pending: BTreeSet<OsString>,
    /// State that is not yet in the file, besides the copies.
    unwritten: BTreeSet<OsString>,
    /// Bytes of all copies.
    held: u64,
}

/// A command that runs, or ran when last reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunningCommand {
    pub(crate) call: u32,
    pub(crate) tool: String,
    pub(crate) words: String,
    /// When the look before it began.
    since: i64,
}

impl RunningCommand {
    pub(crate) fn new(call: u32, tool: &str, words: &str) -> Self {
        Self { call, tool: tool.to_owned(), words: words.to_owned(), since: 0 }
    }
}

impl Snapshot {
    pub(crate) fn of(directory: &Path, project: PathBuf) -> Self {
        let what = "the snapshot before the last command";
        let file =
            Database::at(directory.join("snapshot.db"), SCHEMA, what, Durable::UnlessPowerFails);
        let device = match directory.starts_with(&project) {
            true => Err("agentd's own files lie in this project"),
            false => validate::filesystem(&project)
                .ok_or("on this file system, a file's times do not reveal a change"),
        };
        Self {
            file,
            project,
            device,
            state: SnapshotState::Idle,
            watch: None,
            pace: BackgroundCopies::Free,
            lives: 0,
        }
    }

    /// Notes about damaged files that were moved aside, for people; returned once.
    pub(crate) fn damages(&mut self) -> Vec<String> {
        self.file.damages()
    }

    /// A command may come: it is made ready in [`Self::work`].
    pub(crate) fn prepare(&mut self) -> Result<(), StoreError> {
        let ready = matches!(self.state, SnapshotState::Known(_)) || self.device.is_err();
        // While a command runs, the state before it is not scanned again.
        if ready || self.open()?.is_some() {
            return Ok(());
        }
        self.look().map(drop)
    }

    /// True if there are files to copy.
    pub(crate) fn has_work(&self) -> bool {
        self.pace == BackgroundCopies::Free && self.is_pending()
    }

    fn is_pending(&self) -> bool {
        matches!(&self.state, SnapshotState::Known(known) if !known.pending.is_empty())
    }

    /// Copies some of the files to copy.
    pub(crate) fn work(&mut self) -> Result<(), StoreError> {
        let done = self.step();
        if done.is_err() {
            // The file and the state in memory may differ now.
            self.state = SnapshotState::Idle;
        }
        done
    }

    /// Updates the snapshot before a command, within a bounded time; files not copied in that time
    /// are not covered. An error says why nothing is covered.
    pub(crate) fn before(
        &mut self,
        open: RunningCommand,
        until: Instant,
    ) -> Result<RunningCommand, StoreError> {
        self.pace = BackgroundCopies::Held;
        let taken = self.taken(open, until);
        if taken.is_err() {
            self.state = SnapshotState::Idle;
        }
        taken
    }

    fn taken(
        &mut self,
        open: RunningCommand,
        until: Instant,
    ) -> Result<RunningCommand, StoreError> {
        let open = RunningCommand { since: self.look()?, ..open };
        while self.is_pending() && Instant::now() < until {
            self.step()?;
        }
        let SnapshotState::Known(known) = &mut self.state else { return Ok(open) };
        let rows = known.unwritten.iter().chain(&known.pending);
        let rows: Vec<_> = rows.map(|path| SnapshotRow::of(path, known.index.get(path))).collect();
        format::write(&mut self.file, &rows, Some(&open))?;
        known.unwritten.clear();
        match self.lives == self.file.lives() {
            true => Ok(open),
            // Most copies were in the file that was moved aside.
            false => Err(StoreError::new(StoreErrorCode::Damaged, "the copies were damaged", "")),
        }
    }

    /// The command that is not known to be over.
    pub(crate) fn open(&mut self) -> Result<Option<RunningCommand>, StoreError> {
        format::open(&mut self.file)
    }

    /// The command has ended, and its changes are recorded elsewhere.
    pub(crate) fn close(&mut self) -> Result<(), StoreError> {
        format::close(&mut self.file)?;
        self.pace = BackgroundCopies::Free;
        Ok(())
    }

    /// The command's changes could not be recorded: the state before it is read again for another
    /// attempt.
    pub(crate) fn step_back(&mut self) {
        self.state = SnapshotState::Idle;
    }

    /// Removes everything.
    pub(crate) fn remove(&mut self) {
        self.state = SnapshotState::Idle;
        self.file.remove();
    }

    /// Why nothing is covered here, where that is so.
    pub(crate) fn unable(&self) -> Option<&'static str> {
        self.device.err()
    }

    /// The files that the last update left out, for people.
    pub(crate) fn gap(&self) -> Option<String> {
        let SnapshotState::Known(known) = &self.state else { return None };
        let listed = EntryKind::Directory(tree::ListingState::Not);
        let unlisted = known.index.values().filter(|entry| entry.seen.kind == listed).count();
        (unlisted > 0).then(|| match known.index.len() >= tree::ENTRIES / 2 {
            true => format!("files beyond the first {}", known.index.len()),
            false => format!(
                "{unlisted} directories that lie too deep or could not be listed in time, or at all"
            ),
        })
    }

    /// Why a command's changes would not be covered now, if so. The project is looked at anew and missing copies are
    /// made until then, unless a command runs.
    pub(crate) fn covers(&mut self, until: Instant) -> Result<Option<String>, StoreError> {
        if let Some(why) = self.unable() {
            return Ok(Some(why.to_owned()));
        }
        match self.open()? {
            // The state before it stays; the next command gets a look of its own.
            Some(_) => self.load()?,
            None => {
                self.look()?;
                while self.is_pending() && Instant::now() < until {
                    self.work()?;
                }
            }
        }
        Ok(self.left_out())
    }

    /// What the known state leaves out beyond the limits that hold for every project, if anything.
    pub(crate) fn left_out(&self) -> Option<String> {
        if let Some(why) = self.unable() {
            return Some(why.to_owned());
        }
        let SnapshotState::Known(known) = &self.state else {
            return Some("the state of the project is not known".to_owned());
        };
        if !known.pending.is_empty() {
            return Some("its copies of the project are not complete yet".to_owned());
        }
        let no_room = StoredCopy::Not(NoCopyReason::NoRoom);
        let is_full = || known.index.values().any(|entry| entry.copy == no_room);
        self.gap().or_else(|| is_full().then(|| NoCopyReason::NoRoom.text().to_owned()))
    }

    /// The changes of a command: the differences to the state before it. `ended` is its end in
    /// nanoseconds of Unix time; later changes are not attributed to it.
    pub(crate) fn after(
        &mut self,
        open: &RunningCommand,
        ended: Option<i64>,
    ) -> Result<CommandEffects, StoreError> {
        let Ok(device) = self.device else { return Ok(CommandEffects::default()) };
        self.load()?;
        if self.is_unchanged() {
            return Ok(CommandEffects::default());
        }
        let tree = self.scan(device);
        let until = Instant::now() + READING;
        let SnapshotState::Known(known) = &self.state else { return Ok(CommandEffects::default()) };
        let paths = suspects(&known.index, &tree);
        let gone: HashSet<(u64, u64)> = paths
            .iter()
            .filter(|path| !tree.entries.contains_key(*path))
            .filter_map(|path| known.index.get(path))
            .map(|was| (was.seen.stamp.device, was.seen.stamp.inode))
            .collect();
        // The clock of files is behind by some milliseconds.
        let since = open.since.saturating_sub(protocol::call::ReadStamp::STEP);
        let evidence = NewNameEvidence { before: &known.index, since, after: &tree, gone };
        let mut found = CommandEffects::default();
        for path in &paths {
            let was = known.index.get(path);
            let path = Path::new(path);
            let name = InspectedName { path, real: self.project.join(path), was };
            let looked = ProjectPath::with_what_is_there(&self.project, path, device);
            let Ok((place, is)) = looked else {
                found.changed.push(name.unseen());
                continue;
            };
            let same =
                |was: &SnapshotEntry| was.proof == StampProof::Settled && Some(was.seen) == is;
            if name.was.is_some_and(same) {
                // It was only not listed in time.
                continue;
            }
            let now = name.now(place.as_ref(), is.as_ref(), until);
            let change = match (name.was, &is) {
                (Some(was), is) => compare::known(was, is.as_ref(), &now),
                (None, Some(is)) if evidence.is_new(path, is) => compare::made(&now),
                (None, Some(TreeEntry { kind: EntryKind::Directory(_), .. }) | None) => None,
                (None, Some(_)) => {
                    found.uncertain += 1;
                    None
                }
            };
            let Some(change) = change else { continue };
            let by = match is.zip(ended) {
                Some((is, ended)) if is.stamp.changed > ended => ChangedBy::Others,
                Some(_) | None => ChangedBy::Call,
            };
            let changed =
                self.file.look(|file| name.changed(change.clone(), by, file).map(Some))?;
            found.changed.push(changed.unwrap_or_else(|| name.copy_is_gone()));
        }
        self.take_in(&tree);
        Ok(found)
    }

    /// Updates the known state by a scan; returns the scan's start.
    fn look(&mut self) -> Result<i64, StoreError> {
        let Ok(device) = self.device else { return Ok(tree::now()) };
        self.load()?;
        let began = tree::now();
        if self.is_unchanged() {
            return Ok(began);
        }
        let tree = self.scan(device);
        self.take_in(&tree);
        Ok(tree.began)
    }

    /// True if a scan would find the known state.
    fn is_unchanged(&mut self) -> bool {
        self.watch.as_mut().is_some_and(TreeWatch::is_unchanged)
    }

    fn scan(&mut self, device: u64) -> ProjectTree {
        let many = matches!(&self.state, SnapshotState::Known(known) if known.index.len() >= tree_watch::MANY);
        if self.watch.is_none() && many {
            self.watch = TreeWatch::start();
        }
        ProjectTree::of(&self.project, device, Instant::now() + LOOK, self.watch.as_mut())
    }

    fn load(&mut self) -> Result<(), StoreError> {
        // A file that was moved aside or removed has none of the known state.
        let same = self.lives == self.file.lives() && self.file.is_there();
        if matches!(self.state, SnapshotState::Idle) || !same {
            if let Some(watch) = &mut self.watch {
                watch.forget();
            }
            let index = format::load(&mut self.file)?;
            let held = index.values().filter_map(size).sum();
            let pending = index
                .iter()
                .filter(|(_, entry)| entry.copy == StoredCopy::Not(NoCopyReason::NotYet))
                .map(|(path, _)| path.clone())
                .collect();
            self.state =
                SnapshotState::Known(KnownTree { index, pending, held, ..KnownTree::default() });
            self.lives = self.file.lives();
        }
        Ok(())
    }

    fn take_in(&mut self, tree: &ProjectTree) {
        let SnapshotState::Known(known) = &mut self.state else { return };
        for path in suspects(&known.index, tree) {
            let was = known.index.remove(&path);
            known.held -= was.as_ref().and_then(size).unwrap_or_default();
            known.pending.remove(&path);
            known.unwritten.insert(path.clone());
            let Some(seen) = tree.entries.get(&path) else { continue };
            let proof = match seen.stamp.is_settled(tree.began) {
                true => StampProof::Settled,
                false => StampProof::Racy,
            };
            let copy = match seen.kind {
                EntryKind::Directory(_) => StoredCopy::Rules(String::new()),
                EntryKind::Other => StoredCopy::Not(NoCopyReason::NoFile),
                EntryKind::File | EntryKind::Link if path.to_str().is_none() => {
                    StoredCopy::Not(NoCopyReason::OddName)
                }
                EntryKind::File if seen.stamp.size > LARGEST => {
                    StoredCopy::Not(NoCopyReason::TooLarge)
                }
                EntryKind::File | EntryKind::Link => {
                    known.pending.insert(path.clone());
                    StoredCopy::Not(NoCopyReason::NotYet)
                }
            };
            known.index.insert(path, SnapshotEntry { seen: *seen, proof, copy });
        }
        let room = BYTES - known.held;
        for (path, entry) in &mut known.index {
            if entry.copy == StoredCopy::Not(NoCopyReason::Unread) {
                // The obstacle may be gone.
                known.pending.insert(path.clone());
            }
            if entry.copy == StoredCopy::Not(NoCopyReason::NoRoom) && entry.seen.stamp.size <= room
            {
                entry.copy = StoredCopy::Not(NoCopyReason::NotYet);
                known.pending.insert(path.clone());
            }
            let StoredCopy::Rules(was) = &mut entry.copy else { continue };
            let is = tree.rules.get(path).cloned().unwrap_or_default();
            let seen = tree.entries.get(path).copied().unwrap_or(entry.seen);
            if *was != is || entry.seen.kind != seen.kind {
                *was = is;
                entry.seen = seen;
                known.unwritten.insert(path.clone());
            }
        }
    }

    /// Copies the next files and writes them down.
    fn step(&mut self) -> Result<(), StoreError> {
        let SnapshotState::Known(known) = &mut self.state else { return Ok(()) };
        let mut rows = Vec::new();
        let (mut bytes_read, mut tried) = (0, 0);
        while bytes_read < STEP && tried < STEP_FILES {
            tried += 1;
            let Some(path) = known.pending.pop_first() else { break };
            let Some(entry) = known.index.get_mut(&path) else { continue };
            let room = BYTES - known.held;
            let (copy, bytes) = capture::copy(&self.project, Path::new(&path), entry, room);
            if copy == entry.copy && !known.unwritten.contains(&path) {
                // It could not be read before, and cannot now.
                continue;
            }
            bytes_read += bytes.len() as u64;
            known.held += bytes.len() as u64;
            entry.copy = copy;
            known.unwritten.remove(&path);
            rows.push(SnapshotRow { bytes, ..SnapshotRow::of(&path, Some(entry)) });
        }
        format::write(&mut self.file, &rows, None)
    }
}

fn size(entry: &SnapshotEntry) -> Option<u64> {
    matches!(entry.copy, StoredCopy::Kept(_)).then_some(entry.seen.stamp.size)
}
