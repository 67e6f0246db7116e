//! A project's files as they were before a command: what is needed to find what it changed, and to put
//! it back. For `commands`.
//!
//! What a look at the names shows is compared with what is known, and only what is otherwise is read.
//! Copies are made in small steps, while nobody waits: a command waits for a look at the names and a
//! bounded time of copying. All of it lies in a file, so that it outlives this process; nothing of it
//! is written to disk at once, since a loss of power ends what it is for.

mod change;
mod compare;
mod ignored;
mod keeping;
mod looking;
mod place;
mod tree;

pub(crate) use change::{Before, Changed, Found};

use crate::database::{Database, Durable};
use crate::failure::{Code, Failure};
use crate::fresh;
use compare::{Copy, Entry, Evidence, Index, Proof, Why, suspects};
use keeping::{SCHEMA, Written};
use looking::{By, Name};
use place::Place;
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tree::{Kind, Seen, Tree};

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
    /// The filesystem, where changes can be told on it; else why not.
    device: Result<u64, &'static str>,
    state: State,
    pace: Pace,
    /// How often the file had been set aside when what is known was read from it.
    lives: u32,
}

/// Whether copies are made while nobody asks for anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Free,
    /// A command runs: what it has changed already would pass for what was there before it.
    Held,
}

#[derive(Debug)]
enum State {
    /// Nobody has asked for it.
    Idle,
    Known(Known),
}

#[derive(Debug, Default)]
struct Known {
    index: Index,
    /// What is to be copied.
    pending: BTreeSet<OsString>,
    /// What the file does not say yet, beside that.
    unwritten: BTreeSet<OsString>,
    /// Bytes of all copies.
    held: u64,
}

/// A command that runs, or did when it was last heard of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) call: u32,
    pub(crate) tool: String,
    pub(crate) words: String,
    /// When the look before it began.
    since: i64,
}

impl Open {
    pub(crate) fn new(call: u32, tool: &str, words: &str) -> Self {
        Self { call, tool: tool.to_owned(), words: words.to_owned(), since: 0 }
    }
}

impl Snapshot {
    pub(crate) fn of(directory: &Path, project: PathBuf) -> Self {
        let what = "what the project was before the last command";
        let file =
            Database::at(directory.join("snapshot.db"), SCHEMA, what, Durable::UnlessPowerFails);
        let device = match directory.starts_with(&project) {
            true => Err("agentd's own files lie in this project"),
            false => fresh::filesystem(&project)
                .ok_or("on this file system a change cannot be told by a file's times"),
        };
        Self { file, project, device, state: State::Idle, pace: Pace::Free, lives: 0 }
    }

    /// What was set aside, for people; said once.
    pub(crate) fn damages(&mut self) -> Vec<String> {
        self.file.damages()
    }

    /// A command may come: it is made ready in [`Self::work`].
    pub(crate) fn prepare(&mut self) -> Result<(), Failure> {
        let ready = matches!(self.state, State::Known(_)) || self.device.is_err();
        // What was before a command that runs is not looked at anew.
        if ready || self.open()?.is_some() {
            return Ok(());
        }
        self.look().map(drop)
    }

    /// Whether there is something to be copied.
    pub(crate) fn has_work(&self) -> bool {
        self.pace == Pace::Free && self.is_pending()
    }

    fn is_pending(&self) -> bool {
        matches!(&self.state, State::Known(known) if !known.pending.is_empty())
    }

    /// Copies some of what is to be copied.
    pub(crate) fn work(&mut self) -> Result<(), Failure> {
        let done = self.step();
        if done.is_err() {
            // What the file says and what is in memory may be two things now.
            self.state = State::Idle;
        }
        done
    }

    /// Brings it up to date before a command, in a bounded time; what could not be copied in it is
    /// not covered. An error says why nothing is.
    pub(crate) fn before(&mut self, open: Open, until: Instant) -> Result<Open, Failure> {
        self.pace = Pace::Held;
        let taken = self.taken(open, until);
        if taken.is_err() {
            self.state = State::Idle;
        }
        taken
    }

    fn taken(&mut self, open: Open, until: Instant) -> Result<Open, Failure> {
        let open = Open { since: self.look()?, ..open };
        while self.is_pending() && Instant::now() < until {
            self.step()?;
        }
        let State::Known(known) = &mut self.state else { return Ok(open) };
        let rows = known.unwritten.iter().chain(&known.pending);
        let rows: Vec<_> = rows.map(|path| Written::of(path, known.index.get(path))).collect();
        keeping::write(&mut self.file, &rows, Some(&open))?;
        known.unwritten.clear();
        match self.lives == self.file.lives() {
            true => Ok(open),
            // Most of what was kept is in the one that was set aside.
            false => Err(Failure::new(Code::Damaged, "the copies were damaged", "")),
        }
    }

    /// The command that is not known to be over.
    pub(crate) fn open(&mut self) -> Result<Option<Open>, Failure> {
        keeping::open(&mut self.file)
    }

    /// It is over, and what it did is written down elsewhere.
    pub(crate) fn close(&mut self) -> Result<(), Failure> {
        keeping::close(&mut self.file)?;
        self.pace = Pace::Free;
        Ok(())
    }

    /// What it did could not be written down: what was before it is read again for another attempt.
    pub(crate) fn step_back(&mut self) {
        self.state = State::Idle;
    }

    /// Takes all of it away.
    pub(crate) fn remove(&mut self) {
        self.state = State::Idle;
        self.file.remove();
    }

    /// Why nothing is covered here, where that is so.
    pub(crate) fn unable(&self) -> Option<&'static str> {
        self.device.err()
    }

    /// What was not looked at as it was last brought up to date, for people.
    pub(crate) fn gap(&self) -> Option<String> {
        let State::Known(known) = &self.state else { return None };
        let listed = Kind::Directory(tree::Listed::Not);
        let unlisted = known.index.values().filter(|entry| entry.seen.kind == listed).count();
        (unlisted > 0).then(|| match known.index.len() >= tree::ENTRIES / 2 {
            true => format!("what lies beyond the first {} files", known.index.len()),
            false => format!(
                "{unlisted} directories that lie too deep or could not be listed in time, or at all"
            ),
        })
    }

    /// What a command changed: what is otherwise now than it was before it. `ended` is when it was
    /// over, in nanoseconds of Unix time; what was changed after that, somebody else did.
    pub(crate) fn after(&mut self, open: &Open, ended: Option<i64>) -> Result<Found, Failure> {
        let Ok(device) = self.device else { return Ok(Found::default()) };
        self.load()?;
        let tree = Tree::of(&self.project, device, Instant::now() + LOOK);
        let until = Instant::now() + READING;
        let State::Known(known) = &self.state else { return Ok(Found::default()) };
        let paths = suspects(&known.index, &tree);
        let gone: HashSet<(u64, u64)> = paths
            .iter()
            .filter(|path| !tree.entries.contains_key(*path))
            .filter_map(|path| known.index.get(path))
            .map(|was| (was.seen.stamp.device, was.seen.stamp.inode))
            .collect();
        // The clock of files is behind by some milliseconds.
        let since = open.since.saturating_sub(protocol::call::Stamp::STEP);
        let evidence = Evidence { before: &known.index, since, after: &tree, gone };
        let mut found = Found::default();
        for path in &paths {
            let was = known.index.get(path);
            let path = Path::new(path);
            let name = Name { path, real: self.project.join(path), was };
            let looked = Place::with_what_is_there(&self.project, path, device);
            let Ok((place, is)) = looked else {
                found.changed.push(name.unseen());
                continue;
            };
            let same = |was: &Entry| was.proof == Proof::Settled && Some(was.seen) == is;
            if name.was.is_some_and(same) {
                // It was only not listed in time.
                continue;
            }
            let now = name.now(place.as_ref(), is.as_ref(), until);
            let change = match (name.was, &is) {
                (Some(was), is) => compare::known(was, is.as_ref(), &now),
                (None, Some(is)) if evidence.is_new(path, is) => compare::made(&now),
                (None, Some(Seen { kind: Kind::Directory(_), .. }) | None) => None,
                (None, Some(_)) => {
                    found.uncertain += 1;
                    None
                }
            };
            let Some(change) = change else { continue };
            let by = match is.zip(ended) {
                Some((is, ended)) if is.stamp.changed > ended => By::Others,
                Some(_) | None => By::Call,
            };
            let changed =
                self.file.look(|file| name.changed(change.clone(), by, file).map(Some))?;
            found.changed.push(changed.unwrap_or_else(|| name.copy_is_gone()));
        }
        self.take_in(&tree);
        Ok(found)
    }

    /// Brings what is known up to date with what is there; when that look began.
    fn look(&mut self) -> Result<i64, Failure> {
        let Ok(device) = self.device else { return Ok(tree::now()) };
        self.load()?;
        let tree = Tree::of(&self.project, device, Instant::now() + LOOK);
        self.take_in(&tree);
        Ok(tree.began)
    }

    fn load(&mut self) -> Result<(), Failure> {
        // One that was set aside or taken away has nothing of what is known.
        let same = self.lives == self.file.lives() && self.file.is_there();
        if matches!(self.state, State::Idle) || !same {
            let index = keeping::load(&mut self.file)?;
            let held = index.values().filter_map(size).sum();
            let pending = index
                .iter()
                .filter(|(_, entry)| entry.copy == Copy::Not(Why::NotYet))
                .map(|(path, _)| path.clone())
                .collect();
            self.state = State::Known(Known { index, pending, held, ..Known::default() });
            self.lives = self.file.lives();
        }
        Ok(())
    }

    fn take_in(&mut self, tree: &Tree) {
        let State::Known(known) = &mut self.state else { return };
        for path in suspects(&known.index, tree) {
            let was = known.index.remove(&path);
            known.held -= was.as_ref().and_then(size).unwrap_or_default();
            known.pending.remove(&path);
            known.unwritten.insert(path.clone());
            let Some(seen) = tree.entries.get(&path) else { continue };
            let proof = match seen.stamp.is_settled(tree.began) {
                true => Proof::Settled,
                false => Proof::Racy,
            };
            let copy = match seen.kind {
                Kind::Directory(_) => Copy::Rules(String::new()),
                Kind::Other => Copy::Not(Why::NoFile),
                Kind::File | Kind::Link if path.to_str().is_none() => Copy::Not(Why::OddName),
                Kind::File if seen.stamp.size > LARGEST => Copy::Not(Why::TooLarge),
                Kind::File | Kind::Link => {
                    known.pending.insert(path.clone());
                    Copy::Not(Why::NotYet)
                }
            };
            known.index.insert(path, Entry { seen: *seen, proof, copy });
        }
        let room = BYTES - known.held;
        for (path, entry) in &mut known.index {
            if entry.copy == Copy::Not(Why::Unread) {
                // What stood in the way may be gone.
                known.pending.insert(path.clone());
            }
            if entry.copy == Copy::Not(Why::NoRoom) && entry.seen.stamp.size <= room {
                entry.copy = Copy::Not(Why::NotYet);
                known.pending.insert(path.clone());
            }
            let Copy::Rules(was) = &mut entry.copy else { continue };
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
    fn step(&mut self) -> Result<(), Failure> {
        let State::Known(known) = &mut self.state else { return Ok(()) };
        let mut rows = Vec::new();
        let (mut bytes_read, mut tried) = (0, 0);
        while bytes_read < STEP && tried < STEP_FILES {
            tried += 1;
            let Some(path) = known.pending.pop_first() else { break };
            let Some(entry) = known.index.get_mut(&path) else { continue };
            let room = BYTES - known.held;
            let (copy, bytes) = looking::copy(&self.project, Path::new(&path), entry, room);
            if copy == entry.copy && !known.unwritten.contains(&path) {
                // It could not be read before, and cannot now.
                continue;
            }
            bytes_read += bytes.len() as u64;
            known.held += bytes.len() as u64;
            entry.copy = copy;
            known.unwritten.remove(&path);
            rows.push(Written { bytes, ..Written::of(&path, Some(entry)) });
        }
        keeping::write(&mut self.file, &rows, None)
    }
}

fn size(entry: &Entry) -> Option<u64> {
    matches!(entry.copy, Copy::Kept(_)).then_some(entry.seen.stamp.size)
}
