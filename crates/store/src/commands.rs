//! File changes made by commands, recorded for undo: a snapshot before each command, and a
//! comparison after it, which gives a change like those of file tools. For `Store`.
//!
//! A command whose changes could not be tracked is listed with the reason; agentd never omits
//! silently that it cannot be undone.

use crate::failure::StoreError;
use crate::snapshot::{RunningCommand, Snapshot};
use crate::undo::{CommandEnd, RanCommand, UndoStore};
use crate::undo_coverage::UndoCoverage;
use protocol::hidden::line;
use protocol::store::{SnapshotBefore, StoreCommand, StoreSetup, UndoCover};
use std::time::{Duration, Instant};

/// How long a command waits for copies that are not made yet.
const COPYING: Duration = Duration::from_millis(500);
/// How long the question whether undo covers a command waits for them: a person would take longer.
const COPYING_FOR_COVER: Duration = Duration::from_secs(3);
/// Ends the note about names that a command may have made.
pub(crate) const UNCERTAIN: &str =
    "new names that may have existed before, ignored or outside the snapshot";
/// The reason for a command whose end was not observed: its changes cannot be attributed.
const END_UNSEEN: &str = "not covered: agentd was killed while this command ran: what was changed since \
     may be yours";
/// Characters of a command in the list.
const WORDS: usize = 60;

/// The commands of one session.
#[derive(Debug)]
pub(crate) struct CommandChanges {
    snapshot: Snapshot,
    /// The command before which the snapshot failed, and why.
    missed: Option<(u32, String)>,
    /// Entries that could not be written to the list; shown as long as this process lives.
    unwritten: Vec<(u32, String)>,
}

impl CommandChanges {
    pub(crate) fn of(setup: &StoreSetup) -> Self {
        let directory = setup.project_store.to_path().join("sessions").join(&setup.session.0);
        let snapshot = Snapshot::of(&directory, setup.confinement.project.to_path());
        Self { snapshot, missed: None, unwritten: Vec::new() }
    }

    /// Notes about damaged files that were moved aside, for people; returned once.
    pub(crate) fn damages(&mut self) -> Vec<String> {
        self.snapshot.damages()
    }

    pub(crate) fn cover(&self) -> UndoCoverage {
        let unwritten = self.unwritten.clone();
        UndoCoverage { unable: self.snapshot.unable(), gap: self.snapshot.gap(), unwritten }
    }

    /// Whether undo would bring back what a command changes now, within the limits that hold for every project.
    /// The copies that are missing are made, as before a command.
    pub(crate) fn covers(&mut self) -> UndoCover {
        match self.snapshot.covers(Instant::now() + COPYING_FOR_COVER) {
            Ok(None) => UndoCover::Covers,
            Ok(Some(why)) => UndoCover::Leaves(why),
            Err(failure) => UndoCover::Leaves(failure.message),
        }
    }

    pub(crate) fn prepare(&mut self) -> Result<(), StoreError> {
        self.snapshot.prepare()
    }

    pub(crate) fn has_work(&self) -> bool {
        self.snapshot.has_work()
    }

    pub(crate) fn work(&mut self) -> Result<(), StoreError> {
        self.snapshot.work()
    }

    /// A command is about to run; whether undo brings back what it changes, within the limits that hold for every
    /// project.
    pub(crate) fn before(&mut self, command: &StoreCommand) -> Result<UndoCover, StoreError> {
        self.missed = None;
        if let Some(why) = self.snapshot.unable() {
            return Ok(UndoCover::Leaves(why.to_owned()));
        }
        let number = command.call.number;
        let open = RunningCommand::new(number, &command.tool, &line(&command.text, WORDS));
        let kept = self.snapshot.before(open, Instant::now() + COPYING);
        kept.inspect_err(|why| self.missed = Some((number, why.message.clone())))?;
        Ok(self.snapshot.left_out().map_or(UndoCover::Covers, UndoCover::Leaves))
    }

    /// A command is over.
    pub(crate) fn after(
        &mut self,
        undo: &mut UndoStore,
        command: &StoreCommand,
        ended: i64,
        before: SnapshotBefore,
    ) -> Result<(), StoreError> {
        if self.snapshot.unable().is_some() {
            return Ok(());
        }
        let words = line(&command.text, WORDS);
        let ran = RanCommand { call: command.call.number, tool: &command.tool, words: &words };
        let found = self.find(undo, ran, ended, before);
        self.written(ran, found)
    }

    /// Done with it once it is on the list; where that fails it is shown there all the same.
    fn written(
        &mut self,
        ran: RanCommand<'_>,
        done: Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match done {
            // A command that began later is still followed.
            Ok(()) => match self.snapshot.open()? {
                Some(open) if open.call != ran.call => Ok(()),
                Some(_) | None => self.snapshot.close(),
            },
            Err(why) => {
                let RanCommand { call, tool, words } = ran;
                let line = format!("{call} {tool} `{words}`: not covered: {}", why.message);
                self.unwritten.push((call, line));
                self.snapshot.step_back();
                Err(why)
            }
        }
    }

    fn find(
        &mut self,
        undo: &mut UndoStore,
        ran: RanCommand<'_>,
        ended: i64,
        before: SnapshotBefore,
    ) -> Result<(), StoreError> {
        let number = ran.call;
        let missed = self.missed.take_if(|(missed, _)| *missed == number).map(|(_, why)| why);
        let open = self.snapshot.open()?.filter(|open| open.call == number);
        match (before, open, missed) {
            (SnapshotBefore::Looked, Some(open), None) => self.settle(undo, &open, Some(ended)),
            (before, _, missed) => {
                let why = match (before, missed) {
                    (_, Some(why)) => why,
                    (SnapshotBefore::Late, None) => {
                        "the look at the project took too long".to_owned()
                    }
                    (SnapshotBefore::Looked, None) => {
                        "the state of the project before it is no longer known".to_owned()
                    }
                };
                undo.not_followed(ran, &why)
            }
        }
    }

    /// Sets the running commands. A command of an earlier process that is not among them was cut
    /// short.
    pub(crate) fn running(
        &mut self,
        undo: &mut UndoStore,
        calls: &[u32],
    ) -> Result<(), StoreError> {
        match self.snapshot.open()? {
            Some(open) if !calls.contains(&open.call) => {
                let settled = self.settle(undo, &open, None);
                let ran = RanCommand { call: open.call, tool: &open.tool, words: &open.words };
                self.written(ran, settled)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn settle(
        &mut self,
        undo: &mut UndoStore,
        open: &RunningCommand,
        ended: Option<i64>,
    ) -> Result<(), StoreError> {
        let found = self.snapshot.after(open, ended)?;
        let mut notes = Vec::new();
        if ended.is_none() {
            notes.push(END_UNSEEN.to_owned());
        }
        if found.uncertain > 0 {
            notes.push(format!("not covered: {} {UNCERTAIN}", found.uncertain));
        }
        if let Some(gap) = self.snapshot.gap() {
            notes.push(format!("not covered: {gap}"));
        }
        let ran = RanCommand { call: open.call, tool: &open.tool, words: &open.words };
        match found.changed.is_empty() && found.uncertain == 0 {
            true => undo.changed_nothing(open.call),
            false => {
                let end = if ended.is_some() { CommandEnd::Seen } else { CommandEnd::Unseen };
                undo.record(ran, end, &notes.join("; "), &found.changed)
            }
        }
    }

    /// The session ends: removes the snapshot, unless a running command needs it.
    pub(crate) fn end(&mut self) {
        if matches!(self.snapshot.open(), Ok(None)) {
            self.snapshot.remove();
        }
    }
}
