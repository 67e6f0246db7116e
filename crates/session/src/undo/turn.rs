//! `:undo`: the changes of the newest turn that changed files, newest first, each by one call of
//! `undo_restore`. For `undo` only. Pure.

use super::{
    NO_CHANGE, PARTLY_RESTORED, UndoStep, UndoableChange, UndoableChanges, has_nothing, name,
};
use protocol::call::ToolResult;
use protocol::session::TurnEnd;

/// The undo of a turn.
#[derive(Debug)]
pub(super) struct TurnUndo {
    /// Still to be taken back, the newest last.
    left: Vec<UndoableChange>,
    /// The change that the running call reverts.
    running: Option<UndoableChange>,
    back: Vec<UndoableChange>,
    /// Changes that could not be reverted, each with the reason.
    failed: Vec<(UndoableChange, String)>,
    /// Commands that changed nothing that is covered.
    passed: Vec<UndoableChange>,
    /// Those for which an older turn is taken back.
    before: Vec<UndoableChange>,
    /// Sentences about changes that cannot be taken back here.
    others: Vec<String>,
    course: UndoProgress,
    reach: UndoReach,
}

/// The turns that an undo takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UndoReach {
    /// The newest with a change, however old it is.
    OneTurn,
    /// All changes since a call: a rewind, which is a success only as a whole.
    Since,
}

/// Whether an undo continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UndoProgress {
    On,
    /// One could not be taken back, and nothing is certain of those before it.
    Stuck,
    /// A person stopped it.
    Stopped,
}

impl TurnUndo {
    /// The report for the person and the model.
    fn words(&self) -> String {
        let mut said = Vec::new();
        if !self.before.is_empty() {
            let passed: Vec<_> = self.before.iter().map(name).collect();
            said.push(format!(
                "This went back to an older turn, since nothing that is covered is left to take back of {}.",
                passed.join(", ")
            ));
        }
        for (change, why) in &self.failed {
            let why = why.trim_end_matches('.');
            said.push(format!("Not undone: {}: {why}.", name(change)));
        }
        if !self.back.is_empty() {
            let back: Vec<_> = self.back.iter().map(name).collect();
            said.push(format!("Taken back: {}.", back.join(", ")));
        }
        if !self.left.is_empty() {
            let left: Vec<_> = self.left.iter().rev().map(name).collect();
            let why = match self.course {
                UndoProgress::On | UndoProgress::Stuck => "since it came before",
                UndoProgress::Stopped => "since a person stopped it",
            };
            said.push(format!("Left as it is, {why}: {}.", left.join(", ")));
        }
        said.extend(self.others.iter().cloned());
        match said.is_empty() {
            true if self.reach == UndoReach::Since => "There is nothing to take back: no call since \
                                                       then is known to have changed a file here that \
                                                       is not undone already."
                .to_owned(),
            true => "There is nothing to take back: no call is known to have changed a file here \
                     that is not undone already."
                .to_owned(),
            false => said.join("\n"),
        }
    }

    pub(super) fn new(left: Vec<UndoableChange>, others: Vec<String>, reach: UndoReach) -> Self {
        Self {
            left,
            others,
            reach,
            running: None,
            back: Vec::new(),
            failed: Vec::new(),
            passed: Vec::new(),
            before: Vec::new(),
            course: UndoProgress::On,
        }
    }

    /// A person stops it.
    pub(super) fn stop(&mut self) {
        self.course = UndoProgress::Stopped;
    }

    /// The next change that is taken back.
    pub(super) fn next(&mut self, changes: &UndoableChanges) -> UndoStep {
        let nothing_yet = self.back.is_empty() && self.failed.is_empty();
        let may_go_back = self.reach == UndoReach::OneTurn && self.course == UndoProgress::On;
        if self.left.is_empty() && nothing_yet && may_go_back {
            // No command of that turn had changed anything.
            self.left = changes.newest();
            if !self.left.is_empty() {
                self.before.append(&mut self.passed);
            }
        }
        let next = match self.course {
            UndoProgress::On => self.left.pop(),
            UndoProgress::Stuck | UndoProgress::Stopped => None,
        };
        let Some(change) = next else {
            return UndoStep::Over { text: self.words(), end: self.end() };
        };
        let mut input = serde_json::json!({ "id": change.call });
        // The undo of a file may have been taken back meanwhile.
        let now = changes.done.iter().find(|done| done.call == change.call);
        let restored = now.map_or(&change.restored, |now| &now.restored);
        if !restored.is_empty() {
            input["except"] = restored.clone().into();
        }
        self.running = Some(change);
        UndoStep::Restore(input.to_string())
    }

    /// The running call ended.
    pub(super) fn ended(&mut self, result: &ToolResult) {
        let Some(change) = self.running.take() else { return };
        match result.is_error {
            false => {
                self.others.extend(left_of(&change, result));
                self.back.push(change);
            }
            true if change.was_none(result) => self.passed.push(change),
            true => self.failed.push((change, result.summary.clone())),
        }
        // A rewind needs each change; `:undo` goes past one of which nothing is kept.
        let goes_past = match self.reach {
            UndoReach::OneTurn => has_nothing(result),
            UndoReach::Since => result.code.as_deref() == Some(NO_CHANGE),
        };
        if result.is_error && !goes_past && self.course == UndoProgress::On {
            self.course = UndoProgress::Stuck;
        }
    }

    /// How its turn ends: for a script it is no success where nothing was taken back that there was.
    fn end(&self) -> TurnEnd {
        let nothing_done = match self.reach {
            UndoReach::OneTurn => self.back.is_empty() && !self.failed.is_empty(),
            UndoReach::Since => !self.failed.is_empty() || !self.others.is_empty(),
        };
        match self.course {
            UndoProgress::Stopped => TurnEnd::Interrupted,
            UndoProgress::On | UndoProgress::Stuck if nothing_done => TurnEnd::Interrupted,
            UndoProgress::On | UndoProgress::Stuck => TurnEnd::Done,
        }
    }
}

impl UndoableChanges {
    /// Those of the newest turn that has any still to be tried, the oldest first.
    pub(super) fn newest(&self) -> Vec<UndoableChange> {
        let untried = || self.done.iter().filter(|change| !change.tried && !change.lost);
        let turn = untried().next_back().map(|change| change.turn);
        untried().filter(|change| Some(change.turn) == turn).cloned().collect()
    }
}

/// What a restore left as it is; none where it took the change back whole.
fn left_of(change: &UndoableChange, result: &ToolResult) -> Option<String> {
    if result.code.as_deref() != Some(PARTLY_RESTORED) {
        return None;
    }
    let left = result.text.lines().filter_map(|line| line.strip_prefix("[not restored: "));
    let left: Vec<_> = left.map(|line| line.trim_end_matches(']')).collect();
    Some(format!("Not taken back of {}: {}.", name(change), left.join("; ")))
}
