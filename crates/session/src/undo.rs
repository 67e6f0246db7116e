//! `:undo` reverts the changes of the newest turn that changed files, one call of `undo_restore`
//! after another, newest change first. `:rewind files CALL` reverts all changes since a call, a person's
//! undos included. The conversation does not know if a command changed files; the store reports it when
//! asked. A command that changed nothing is skipped, and before going
//! back to an older turn the person is informed. These calls take the usual path; no model
//! requested them, and the model receives a report of their results. `:undo FILE` reverts one file.
//! The list of changes is here, the two ways of going through it in `turn` and `one_file`. Pure.

mod one_file;
mod other_changes;
mod person_undo;
mod turn;
mod unreported;

use crate::hooks::FORMAT;
use crate::undo_request::UndoRequest;
use one_file::FileUndo;
use other_changes::OtherChanges;
use person_undo::PersonUndo;
use protocol::call::{Call, CallOrigin, NO_CHANGE, Outcome, ToolResult};
use protocol::hook::HookEvent;
use protocol::ids::CallId;
use protocol::session::{CopyBeforeChange, OfferedTool, SessionEvent, TurnEnd};
use serde::Deserialize;
use turn::{TurnUndo, UndoReach};
use unreported::UnreportedUndo;

/// The tool that takes a change back.
pub(crate) const RESTORE: &str = "undo_restore";
/// Error codes of the store when nothing can be restored, now or later.
const NOTHING_KEPT: [&str; 2] = ["not_covered", NO_CHANGE];
/// Code of a restore that is no error and left a part of the change as it is.
const PARTLY_RESTORED: &str = "partly_restored";
/// Error codes for calls that were refused before the store read the files.
const NOBODY_THERE: &str = "store_unavailable";

/// The input of an `undo_restore` that a person asked for.
#[derive(Debug, Deserialize)]
struct RestoreInput {
    /// The call whose change is taken back; with a path, the last of them.
    id: u32,
    path: Option<String>,
    /// With a path, the first of them.
    since: Option<u32>,
}

/// A call that changed files.
#[derive(Debug, Clone, PartialEq, Eq)]
struct UndoableChange {
    /// The turn it ran in, by the number of prompts.
    turn: u32,
    call: u32,
    tool: String,
    copies: CopyBeforeChange,
    /// An undoing could not take it back: the next one goes past it.
    tried: bool,
    /// The store cannot put it back, now or later: only a rewind, which needs it, names it again.
    lost: bool,
    /// Files that were taken back one by one, as the person named them.
    restored: Vec<String>,
}

impl UndoableChange {
    /// True if this only says that a command changed nothing, or that no file is left.
    fn was_none(&self, result: &ToolResult) -> bool {
        let may_be_none = self.copies == CopyBeforeChange::Compared || !self.restored.is_empty();
        may_be_none && result.code.as_deref() == Some(NO_CHANGE)
    }
}

/// The next step of an undo.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UndoStep {
    /// A call of [`RESTORE`] with these arguments.
    Restore(String),
    /// It is over, with this report for the person and the model.
    Over { text: String, end: TurnEnd },
}

/// An undo that runs.
#[derive(Debug)]
struct RunningUndo {
    /// The call that runs for it.
    call: Option<CallId>,
    of: UndoOf,
}

#[derive(Debug)]
enum UndoOf {
    Turn(TurnUndo),
    File(FileUndo),
}

/// The changes of a conversation that were not taken back, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct UndoableChanges {
    turn: u32,
    /// That turn is an undo whose result is not yet reported.
    unreported: Option<UnreportedUndo>,
    running: Option<RunningUndo>,
    /// Calls that have no result yet.
    open: Vec<(Call, CopyBeforeChange)>,
    done: Vec<UndoableChange>,
    /// A person's undos, for a rewind to the moment before one of them.
    undos: Vec<PersonUndo>,
    /// Changes that have no call to take back.
    others: OtherChanges,
}

impl UndoableChanges {
    /// Takes in one thing that happened.
    pub(crate) fn apply(&mut self, happened: &SessionEvent, tools: &[OfferedTool]) {
        self.others.apply(happened);
        match happened {
            SessionEvent::Prompt { text, .. } => {
                self.turn = self.turn.saturating_add(1);
                let request = UndoRequest::of(text);
                self.unreported = request.as_ref().map(UnreportedUndo::of);
                // Position in the list; after the oldest change it starts again, since the obstacle
                // may be gone.
                if request == Some(UndoRequest::Turn)
                    && self.done.iter().all(|change| change.tried || change.lost)
                {
                    self.done.iter_mut().for_each(|change| change.tried = false);
                }
            }
            SessionEvent::Called { call } => {
                if let Some(running) =
                    self.running.as_mut().filter(|_| call.origin == CallOrigin::Undo)
                {
                    running.call = Some(call.id.clone());
                }
                let tool = tools.iter().find(|tool| tool.spec.name == call.tool);
                let copies = match is_format(call) {
                    true => CopyBeforeChange::Kept,
                    false if may_write(call) => CopyBeforeChange::Compared,
                    false => tool.map_or(CopyBeforeChange::None, |tool| tool.copies),
                };
                if copies != CopyBeforeChange::None {
                    let change = self.target(call).map(|target| target.name());
                    if let (Some(unsaid), Some(change)) = (&mut self.unreported, change) {
                        unsaid.began(change);
                    }
                    self.open.push((call.clone(), copies));
                }
            }
            SessionEvent::Result { call, result, .. } => self.ended(call, result),
            SessionEvent::Answer { .. } => self.unreported = None,
            SessionEvent::TurnEnded { .. }
            | SessionEvent::BackgroundEnded { .. }
            | SessionEvent::Joined { .. }
            | SessionEvent::Compacted { .. } => {}
        }
    }

    /// Begins an undo; returns its first step.
    pub(crate) fn begin(&mut self, request: UndoRequest) -> UndoStep {
        let of = match request {
            UndoRequest::Turn => {
                Ok(UndoOf::Turn(TurnUndo::new(self.newest(), Vec::new(), UndoReach::OneTurn)))
            }
            UndoRequest::Since(Some(call)) => {
                let others = self.others.since(call);
                Ok(UndoOf::Turn(TurnUndo::new(self.since(call), others, UndoReach::Since)))
            }
            UndoRequest::Since(None) => Err("Nothing was taken back: write `:rewind files CALL` \
                                             with the number of a call; the files get their \
                                             content before it."
                .to_owned()),
            UndoRequest::File { path, changes } => {
                FileUndo::new(path, changes, self).map(UndoOf::File)
            }
        };
        match of {
            Ok(of) => self.step(RunningUndo { call: None, of }),
            Err(text) => UndoStep::Over { text, end: TurnEnd::Interrupted },
        }
    }

    /// The next step of the running undo.
    pub(crate) fn next(&mut self) -> Option<UndoStep> {
        let running = self.running.take()?;
        Some(self.step(running))
    }

    fn step(&mut self, mut running: RunningUndo) -> UndoStep {
        let step = match &mut running.of {
            UndoOf::Turn(undo) => undo.next(self),
            UndoOf::File(undo) => undo.next(self),
        };
        if let UndoStep::Restore(_) = step {
            self.running = Some(running);
        }
        step
    }

    /// A call ended; true if it ran for the undo.
    pub(crate) fn restored(&mut self, call: &CallId, result: &ToolResult) -> bool {
        let Some(running) = &mut self.running else { return false };
        if running.call.take_if(|running| running == call).is_none() {
            return false;
        }
        match &mut running.of {
            UndoOf::Turn(undo) => undo.ended(result),
            UndoOf::File(undo) => undo.ended(result),
        }
        true
    }

    /// A person stops it; returns the running call. The remaining changes stay.
    pub(crate) fn stop(&mut self) -> Option<CallId> {
        let running = self.running.as_mut()?;
        match &mut running.of {
            UndoOf::Turn(undo) => undo.stop(),
            UndoOf::File(undo) => undo.stop(),
        }
        running.call.clone()
    }

    /// Takes the unreported result of the newest turn, if that turn was an undo.
    pub(crate) fn cut_short(&mut self) -> Option<String> {
        self.unreported.take().map(|unsaid| unsaid.words())
    }

    /// What an undo call reverts.
    fn target(&self, call: &Call) -> Option<UndoTarget> {
        let of_undoing = call.origin == CallOrigin::Undo;
        let input = restored(&call.input).filter(|_| of_undoing)?;
        let undone =
            || self.undos.iter().find(|undo| undo.call == input.id).map(PersonUndo::change);
        let change = self.done.iter().find(|change| change.call == input.id).cloned();
        let change = change.or_else(undone)?;
        Some(match input.path {
            Some(path) => UndoTarget::File(path),
            None => UndoTarget::Change(change),
        })
    }

    fn ended(&mut self, call: &CallId, result: &ToolResult) {
        let Some(at) = self.open.iter().position(|(open, _)| open.id == *call) else { return };
        let (call, copies) = self.open.remove(at);
        // No other change of the turn touched the file.
        if is_format(&call) && !changed_form(result) {
            return;
        }
        let target = self.target(&call).map(|target| (target.name(), target.was_none(result)));
        match (&mut self.unreported, target) {
            (Some(unsaid), Some((target, true))) => unsaid.was_none(&target),
            (Some(unsaid), Some((target, false))) => unsaid.ended(target, result),
            (Some(_), None) | (None, _) => {}
        }
        let Call { id, origin, tool, input } = call;
        if origin == CallOrigin::Undo {
            // The next `:undo` does not revert a person's undo.
            return match restored(&input) {
                Some(RestoreInput { id: last, path: Some(path), since }) if !result.is_error => {
                    self.restored_file(id.number, path, since.unwrap_or(last)..=last);
                }
                Some(RestoreInput { id: back, path: None, .. }) if !result.is_error => {
                    self.taken_back(id.number, back);
                }
                Some(RestoreInput { id: back, path: None, .. }) => self.tried(back, result),
                Some(RestoreInput { path: Some(_), .. }) | None => {}
            };
        }
        // A model's undo stays in the list: it is reverted first, then the original change.
        let changed = match copies {
            CopyBeforeChange::Kept => may_have_changed(result),
            CopyBeforeChange::Compared => may_have_run(result),
            CopyBeforeChange::None => false,
        };
        if changed {
            let turn = self.turn;
            let (call, restored) = (id.number, Vec::new());
            let (tried, lost) = (false, false);
            self.done.push(UndoableChange { turn, call, tool, copies, tried, lost, restored });
        }
    }

    /// An undoing's call for this change has failed.
    fn tried(&mut self, back: u32, result: &ToolResult) {
        let of_it = self.done.iter_mut().filter(|change| change.call == back);
        if result.code.as_deref() == Some(NO_CHANGE) {
            self.done.retain(|change| change.call != back);
        } else if has_nothing(result) {
            of_it.for_each(|change| change.lost = true);
        } else if will_not(result) {
            of_it.for_each(|change| change.tried = true);
        }
    }
}

/// What one call of an undoing takes back.
enum UndoTarget {
    Change(UndoableChange),
    /// One file, by the name that the person gave.
    File(String),
}

impl UndoTarget {
    /// For the person and the model.
    fn name(&self) -> String {
        match self {
            Self::Change(change) => name(change),
            Self::File(path) => path.clone(),
        }
    }

    /// True if there was nothing to report.
    fn was_none(&self, result: &ToolResult) -> bool {
        match self {
            Self::Change(change) => change.was_none(result),
            Self::File(_) => false,
        }
    }
}

/// A change, for the person and the model.
fn name(change: &UndoableChange) -> String {
    format!("{} (call {})", change.tool, change.call)
}

/// True if nothing can be restored, now or later.
fn has_nothing(result: &ToolResult) -> bool {
    result.code.as_deref().is_some_and(|code| NOTHING_KEPT.contains(&code))
}

/// True if the current files prevent the restore. A mode, a person's denial or a crash says nothing
/// about them.
fn will_not(result: &ToolResult) -> bool {
    result.outcome == Outcome::Failed && result.code.as_deref() != Some(NOBODY_THERE)
}

/// True for a formatter's edit of a file.
fn is_format(call: &Call) -> bool {
    call.origin == CallOrigin::EditHook && call.tool == FORMAT
}

/// True for a hook that may change files of the project.
fn may_write(call: &Call) -> bool {
    call.origin == CallOrigin::EventHook && call.tool != HookEvent::PreToolUse.tool()
}

/// True if such a call may have changed the file; a program's exit alone does not change it.
fn changed_form(result: &ToolResult) -> bool {
    match result.outcome {
        Outcome::Done | Outcome::Interrupted | Outcome::Crashed => true,
        Outcome::Failed
        | Outcome::Exited { .. }
        | Outcome::Signalled { .. }
        | Outcome::TimedOut
        | Outcome::Denied
        | Outcome::Refused { .. }
        | Outcome::Confined { .. }
        | Outcome::OutOfMemory
        | Outcome::Invalid
        | Outcome::NeverStarted => false,
    }
}

/// The changes that such a call takes back.
fn restored(input: &str) -> Option<RestoreInput> {
    serde_json::from_str(input).ok()
}

fn may_have_changed(result: &ToolResult) -> bool {
    match result.outcome {
        Outcome::Interrupted
        | Outcome::Crashed
        | Outcome::TimedOut
        | Outcome::OutOfMemory
        | Outcome::Signalled { .. } => true,
        Outcome::Done
        | Outcome::Failed
        | Outcome::Exited { .. }
        | Outcome::Denied
        | Outcome::Refused { .. }
        | Outcome::Confined { .. }
        | Outcome::Invalid
        | Outcome::NeverStarted => !result.is_error,
    }
}

/// A command that failed may have changed as much as any.
fn may_have_run(result: &ToolResult) -> bool {
    match result.outcome {
        Outcome::Denied | Outcome::Refused { .. } | Outcome::Invalid | Outcome::NeverStarted => {
            false
        }
        Outcome::Interrupted
        | Outcome::Crashed
        | Outcome::TimedOut
        | Outcome::OutOfMemory
        | Outcome::Signalled { .. }
        | Outcome::Done
        | Outcome::Failed
        | Outcome::Exited { .. }
        | Outcome::Confined { .. } => true,
    }
}
