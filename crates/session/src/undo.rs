//! `:undo` reverts the changes of the newest turn that changed files, one call of `undo_restore`
//! after another, newest change first. The conversation does not know if a command changed files;
//! the store reports it when asked. A command that changed nothing is skipped, and before going
//! back to an older turn the person is informed. These calls take the usual path; no model
//! requested them, and the model receives a report of their results. Pure.

mod unreported;

use crate::hooks::FORMAT;
use crate::{Outputs, Session, SessionPhase};
use protocol::call::{Call, Outcome, ToolResult};
use protocol::content::{ContentBlock, Usage};
use protocol::ids::CallId;
use protocol::session::{CopyBeforeChange, OfferedTool, SessionEvent, TurnEnd};
use unreported::UnreportedUndo;

/// The prompt that asks for it.
const UNDO: &str = ":undo";
/// The tool that takes a change back.
const RESTORE: &str = "undo_restore";
/// Error codes of the store when nothing can be restored, now or later.
const NOTHING_KEPT: [&str; 2] = ["not_covered", NO_CHANGE];
/// Error code of the store for a call that changed nothing.
const NO_CHANGE: &str = "not_found";
/// Error codes for calls that were refused before the store read the files.
const NOBODY_THERE: &str = "store_unavailable";

/// True if a prompt is a command to agentd and not for the model.
pub(crate) fn is_undo(prompt: &str) -> bool {
    prompt.trim() == UNDO
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
}

impl UndoableChange {
    /// True if this only says that a command changed nothing.
    fn was_none(&self, result: &ToolResult) -> bool {
        self.copies == CopyBeforeChange::Compared && result.code.as_deref() == Some(NO_CHANGE)
    }
}

/// The changes of a conversation that were not taken back, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct UndoableChanges {
    turn: u32,
    /// That turn is an undo whose result is not yet reported.
    undoing: Option<UnreportedUndo>,
    /// Calls that have no result yet.
    open: Vec<(Call, CopyBeforeChange)>,
    done: Vec<UndoableChange>,
}

impl UndoableChanges {
    /// Takes in one thing that happened.
    pub(crate) fn apply(&mut self, happened: &SessionEvent, tools: &[OfferedTool]) {
        match happened {
            SessionEvent::Prompt { text } => {
                self.turn = self.turn.saturating_add(1);
                self.undoing = is_undo(text).then(UnreportedUndo::default);
                // Position in the list; after the oldest change it starts again, since the obstacle
                // may be gone.
                if self.undoing.is_some() && self.done.iter().all(|change| change.tried) {
                    self.done.iter_mut().for_each(|change| change.tried = false);
                }
            }
            SessionEvent::Called { call } => {
                let tool = tools.iter().find(|tool| tool.spec.name == call.tool);
                let copies = match is_format(call) {
                    true => CopyBeforeChange::Kept,
                    false => tool.map_or(CopyBeforeChange::None, |tool| tool.copies),
                };
                if copies != CopyBeforeChange::None {
                    let change = self.named(call).map(name);
                    if let (Some(unsaid), Some(change)) = (&mut self.undoing, change) {
                        unsaid.began(change);
                    }
                    self.open.push((call.clone(), copies));
                }
            }
            SessionEvent::Result { call, result, .. } => self.ended(call, result),
            SessionEvent::Answer { .. } => self.undoing = None,
            SessionEvent::TurnEnded { .. } | SessionEvent::Compacted { .. } => {}
        }
    }

    /// Takes the unreported result of the newest turn, if that turn was an undo.
    pub(crate) fn cut_short(&mut self) -> Option<String> {
        self.undoing.take().map(|unsaid| unsaid.words())
    }

    /// The change that an undo call reverts.
    fn named(&self, call: &Call) -> Option<&UndoableChange> {
        let of_undoing = call.tool == RESTORE && call.use_id.is_empty();
        let number = restored(&call.input).filter(|_| of_undoing)?;
        self.done.iter().find(|change| change.call == number)
    }

    fn ended(&mut self, call: &CallId, result: &ToolResult) {
        let Some(at) = self.open.iter().position(|(open, _)| open.id == *call) else { return };
        let (call, copies) = self.open.remove(at);
        // No other change of the turn touched the file.
        if is_format(&call) && !changed_form(result) {
            return;
        }
        let change = self.named(&call).map(|change| (name(change), change.was_none(result)));
        match (&mut self.undoing, change) {
            (Some(unsaid), Some((change, true))) => unsaid.was_none(&change),
            (Some(unsaid), Some((change, false))) => unsaid.ended(change, result),
            (Some(_), None) | (None, _) => {}
        }
        let Call { id, use_id, tool, input } = call;
        if tool == RESTORE && use_id.is_empty() {
            // The next `:undo` does not revert a person's undo.
            return self.tried(restored(&input), result);
        }
        // A model's undo stays in the list: it is reverted first, then the original change.
        let changed = match copies {
            CopyBeforeChange::Kept => may_have_changed(result),
            CopyBeforeChange::Compared => may_have_run(result),
            CopyBeforeChange::None => false,
        };
        if changed {
            let turn = self.turn;
            self.done.push(UndoableChange { turn, call: id.number, tool, copies, tried: false });
        }
    }

    /// An undoing's call for this change has ended.
    fn tried(&mut self, back: Option<u32>, result: &ToolResult) {
        if !result.is_error || has_nothing(result) {
            self.done.retain(|change| Some(change.call) != back);
        } else if will_not(result) {
            let of_it = self.done.iter_mut().filter(|change| Some(change.call) == back);
            of_it.for_each(|change| change.tried = true);
        }
    }

    /// Those of the newest turn that has any still to be tried, the oldest first.
    fn newest(&self) -> Vec<UndoableChange> {
        let untried = || self.done.iter().filter(|change| !change.tried);
        let turn = untried().next_back().map(|change| change.turn);
        untried().filter(|change| Some(change.turn) == turn).cloned().collect()
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
    call.use_id.is_empty() && call.tool == FORMAT
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
        | Outcome::Invalid => false,
    }
}

/// The call whose change was taken back.
fn restored(input: &str) -> Option<u32> {
    let input: serde_json::Value = serde_json::from_str(input).ok()?;
    u32::try_from(input.get("id")?.as_u64()?).ok()
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
        | Outcome::Invalid => !result.is_error,
    }
}

/// A command that failed may have changed as much as any.
fn may_have_run(result: &ToolResult) -> bool {
    match result.outcome {
        Outcome::Denied | Outcome::Refused { .. } | Outcome::Invalid => false,
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

/// An undoing that runs.
#[derive(Debug)]
pub(crate) struct Undoing {
    /// Still to be taken back, the newest last.
    left: Vec<UndoableChange>,
    /// The running call, and the change that it reverts.
    running: Option<(CallId, UndoableChange)>,
    back: Vec<UndoableChange>,
    /// Changes that could not be reverted, each with the reason.
    failed: Vec<(UndoableChange, String)>,
    /// Commands that changed nothing that is covered.
    passed: Vec<UndoableChange>,
    /// Those for which an older turn is taken back.
    before: Vec<UndoableChange>,
    course: UndoProgress,
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

impl Undoing {
    /// The report for the person and the model.
    fn words(&self) -> String {
        let mut said = Vec::new();
        if !self.before.is_empty() {
            let passed: Vec<_> = self.before.iter().map(name).collect();
            said.push(format!(
                "This went back to an older turn, since nothing that is covered was changed by {}.",
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
        match said.is_empty() {
            true => "There is nothing to take back: no call is known to have changed a file here \
                     that is not undone already."
                .to_owned(),
            false => said.join("\n"),
        }
    }

    /// How its turn ends: for a script it is no success where nothing was taken back that there was.
    fn end(&self) -> TurnEnd {
        let nothing_done = self.back.is_empty() && !self.failed.is_empty();
        match self.course {
            UndoProgress::Stopped => TurnEnd::Interrupted,
            UndoProgress::On | UndoProgress::Stuck if nothing_done => TurnEnd::Interrupted,
            UndoProgress::On | UndoProgress::Stuck => TurnEnd::Done,
        }
    }
}

impl Session {
    /// Takes the newest changes back.
    pub(crate) fn undo(&mut self, out: &mut Outputs) {
        self.phase = SessionPhase::Undoing(Undoing {
            left: self.changes.newest(),
            running: None,
            back: Vec::new(),
            failed: Vec::new(),
            passed: Vec::new(),
            before: Vec::new(),
            course: UndoProgress::On,
        });
        self.go_on_undoing(out);
    }

    fn go_on_undoing(&mut self, out: &mut Outputs) {
        let SessionPhase::Undoing(undoing) = &mut self.phase else { return };
        let nothing_yet = undoing.back.is_empty() && undoing.failed.is_empty();
        if undoing.left.is_empty() && nothing_yet && undoing.course == UndoProgress::On {
            // No command of that turn had changed anything.
            undoing.left = self.changes.newest();
            if !undoing.left.is_empty() {
                undoing.before.append(&mut undoing.passed);
            }
        }
        let next = match undoing.course {
            UndoProgress::On => undoing.left.pop(),
            UndoProgress::Stuck | UndoProgress::Stopped => None,
        };
        let Some(change) = next else {
            let (text, end) = (undoing.words(), undoing.end());
            return self.end_undoing(text, end, out);
        };
        let number = self.history.last_call().saturating_add(1);
        let id = CallId { session: self.setup.id.clone(), number };
        let input = serde_json::json!({ "id": change.call }).to_string();
        undoing.running = Some((id.clone(), change));
        let call = Call { id, use_id: String::new(), tool: RESTORE.to_owned(), input };
        self.commit(SessionEvent::Called { call: call.clone() }, out);
        out.words.push(crate::FromSession::Run { call, note: None });
    }

    /// It died in the middle. It has no model to ask, and a change that may be half taken back is for
    /// a person to see.
    pub(crate) fn undoing_was_cut_short(&mut self, text: String, out: &mut Outputs) {
        self.end_undoing(text, TurnEnd::Interrupted, out);
    }

    fn end_undoing(&mut self, text: String, end: TurnEnd, out: &mut Outputs) {
        let (round, usage) = (self.round, Usage::default());
        let blocks = vec![ContentBlock::Text { text }];
        self.commit(SessionEvent::Answer { round, blocks, usage }, out);
        self.end_turn(end, out);
    }

    /// The person stops it: the running call ends, and the remaining changes stay.
    pub(crate) fn stop_undoing(&mut self, out: &mut Outputs) {
        let SessionPhase::Undoing(undoing) = &mut self.phase else { return };
        undoing.course = UndoProgress::Stopped;
        let running = undoing.running.iter().map(|(id, _)| id.clone());
        out.words.extend(running.map(crate::FromSession::CancelCall));
    }

    /// A call ended while an undoing runs; its result is durable.
    pub(crate) fn undone(&mut self, call: CallId, result: ToolResult, out: &mut Outputs) {
        let SessionPhase::Undoing(undoing) = &mut self.phase else { return };
        // Any other is late: it has its result already.
        let Some((_, change)) = undoing.running.take_if(|(id, _)| *id == call) else { return };
        match result.is_error {
            false => undoing.back.push(change),
            true if change.was_none(&result) => undoing.passed.push(change),
            true => undoing.failed.push((change, result.summary.clone())),
        }
        if result.is_error && !has_nothing(&result) && undoing.course == UndoProgress::On {
            undoing.course = UndoProgress::Stuck;
        }
        self.take_in(&SessionEvent::Result { call, use_id: String::new(), result });
        self.go_on_undoing(out);
    }
}
