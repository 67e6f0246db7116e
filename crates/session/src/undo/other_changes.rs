//! Changes behind a moment that a rewind has no call to take back for: those of sub-agents, and those of
//! commands that began before and ran, or run yet, in the background. A rewind names them. Rebuilt from events, for
//! `undo` only. Pure.

use super::may_have_run;
use protocol::call::CallStage;
use protocol::session::{SessionEvent, TASK, TASK_ONLY_READ};
use std::collections::BTreeMap;

/// What may have changed files beside the list of changes.
#[derive(Debug, Default)]
pub(super) struct OtherChanges {
    turn: u32,
    last_call: u32,
    /// The first call of each turn that has one, and the turn.
    first_calls: Vec<(u32, u32)>,
    /// Calls of sub-agents that may have begun.
    tasks: Vec<u32>,
    background: Vec<BackgroundCommand>,
    /// Calls without a result, and their tools.
    open: BTreeMap<u32, String>,
    /// Commands that run in the background, and their tools.
    running: BTreeMap<u32, String>,
}

/// A command in the background that has ended.
#[derive(Debug)]
struct BackgroundCommand {
    call: u32,
    tool: String,
    /// The turn and the last call at its end.
    turn: u32,
    last_call: u32,
}

impl OtherChanges {
    /// Takes in one thing that happened.
    pub(super) fn apply(&mut self, happened: &SessionEvent) {
        match happened {
            SessionEvent::Prompt { .. } => self.turn = self.turn.saturating_add(1),
            SessionEvent::Called { call } => {
                self.last_call = call.id.number;
                if self.first_calls.last().is_none_or(|(_, turn)| *turn != self.turn) {
                    self.first_calls.push((self.last_call, self.turn));
                }
                self.open.insert(call.id.number, call.tool.clone());
                if call.tool == TASK {
                    self.tasks.push(call.id.number);
                }
            }
            SessionEvent::Result { call, stage, result, .. } => {
                let tool = self.open.remove(&call.number);
                if *stage == CallStage::InBackground {
                    self.running.extend(tool.map(|tool| (call.number, tool)));
                }
                // What a sub-agent changed is known to its own session.
                if !may_have_run(result) || result.code.as_deref() == Some(TASK_ONLY_READ) {
                    self.tasks.retain(|task| *task != call.number);
                }
            }
            SessionEvent::BackgroundEnded { call, tool, result } => {
                self.running.remove(&call.number);
                if result.code.as_deref() == Some(TASK_ONLY_READ) {
                    self.tasks.retain(|task| *task != call.number);
                    return;
                }
                let (call, tool) = (call.number, tool.clone());
                let (turn, last_call) = (self.turn, self.last_call);
                self.background.push(BackgroundCommand { call, tool, turn, last_call });
            }
            SessionEvent::Answer { .. }
            | SessionEvent::TurnEnded { .. }
            | SessionEvent::Joined { .. }
            | SessionEvent::Compacted { .. } => {}
        }
    }

    /// A sentence for each that may have changed files since this call was about to come.
    pub(super) fn since(&self, call: u32) -> Vec<String> {
        let turn = self.first_calls.iter().rev().find(|(first, _)| *first <= call);
        let turn = turn.map_or(0, |(_, turn)| *turn);
        let tasks = self.tasks.iter().filter(|task| **task >= call).map(|task| {
            format!(
                "Not taken back: what the sub-agent of {TASK} (call {task}) may have changed. Its result \
                 names its session; `:undo` there takes that back."
            )
        });
        // Between the moment and the call no other call began.
        let ran_on = |it: &&BackgroundCommand| {
            it.call < call && (it.last_call, it.turn) >= (call.saturating_sub(1), turn)
        };
        let commands = self.background.iter().filter(ran_on).map(|BackgroundCommand { call, tool, .. }| {
            format!(
                "Not taken back: what {tool} (call {call}) may have written since. It began before that \
                 moment and ran in the background."
            )
        });
        let running = self.running.range(..call).map(|(call, tool)| {
            format!(
                "Not taken back: what {tool} (call {call}) has written since, or writes yet. It began before \
                 that moment and runs in the background."
            )
        });
        tasks.chain(commands).chain(running).collect()
    }
}
