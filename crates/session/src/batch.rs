//! The calls of one answer: which may run now. Neighbouring looks run at once, a change is a
//! barrier.

use protocol::call::Call;
use protocol::ids::CallId;
use protocol::judgement::ToolKind;
use protocol::session::TASK;

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchStage {
    Waiting,
    Running,
    Ended,
}

/// Whether a person may have been asked about a call that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Announced {
    NotYet,
    Once,
}

/// A call that may run, in its place.
#[derive(Debug)]
struct BatchCall {
    call: Call,
    kind: ToolKind,
    stage: BatchStage,
    announced: Announced,
}

impl BatchCall {
    fn is_task(&self) -> bool {
        self.call.tool == TASK
    }
}

/// The runnable calls of one answer, in the order asked.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    slots: Vec<BatchCall>,
}

impl Batch {
    /// Adds a call behind the others.
    pub fn push(&mut self, call: Call, kind: ToolKind) {
        let (stage, announced) = (BatchStage::Waiting, Announced::NotYet);
        self.slots.push(BatchCall { call, kind, stage, announced });
    }

    /// The calls to start now, at most `parallel` running at once. Sub-agents, which wait for a model most
    /// of their time, have a limit of their own.
    pub fn start(&mut self, parallel: u32, tasks: u32) -> Vec<Call> {
        let most = |limit: u32| usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
        let run = |slot: &&BatchCall| slot.stage == BatchStage::Running;
        let mut running = self.slots.iter().filter(run).count();
        let mut running_tasks = self.slots.iter().filter(run).filter(|slot| slot.is_task()).count();
        let mut started = Vec::new();
        for slot in self.slots.iter_mut().filter(|slot| slot.stage != BatchStage::Ended) {
            match (slot.kind, slot.stage) {
                // A change waits for everything before it, and everything waits for a change.
                (ToolKind::Mutation, BatchStage::Waiting) if running == 0 => {
                    slot.stage = BatchStage::Running;
                    started.push(slot.call.clone());
                    break;
                }
                (
                    ToolKind::Mutation,
                    BatchStage::Waiting | BatchStage::Running | BatchStage::Ended,
                ) => break,
                (ToolKind::Query, BatchStage::Waiting) => {
                    let is_full = match slot.is_task() {
                        true => running_tasks >= most(tasks),
                        false => running - running_tasks >= most(parallel),
                    };
                    if is_full {
                        break;
                    }
                    slot.stage = BatchStage::Running;
                    running += 1;
                    running_tasks += usize::from(slot.is_task());
                    started.push(slot.call.clone());
                }
                (ToolKind::Query, BatchStage::Running | BatchStage::Ended) => {}
            }
        }
        started
    }

    /// A running call ended; ignored if no such call runs.
    pub fn ended(&mut self, call: &CallId) -> Option<Call> {
        let slot = self
            .slots
            .iter_mut()
            .find(|slot| slot.call.id == *call && slot.stage == BatchStage::Running)?;
        slot.stage = BatchStage::Ended;
        Some(slot.call.clone())
    }

    /// Puts started calls back to wait, and other calls before the first of them.
    pub fn put_before(&mut self, held: &[CallId], first: Vec<Call>) {
        let is_held = |slot: &BatchCall| held.contains(&slot.call.id);
        let Some(at) = self.slots.iter().position(is_held) else { return };
        for slot in self.slots.iter_mut().filter(|slot| held.contains(&slot.call.id)) {
            slot.stage = BatchStage::Waiting;
        }
        let (kind, stage, announced) = (ToolKind::Mutation, BatchStage::Waiting, Announced::NotYet);
        let slot = |call| BatchCall { call, kind, stage, announced };
        self.slots.splice(at..at, first.into_iter().map(slot));
    }

    /// The changes that wait behind calls that run, each once.
    pub fn announce(&mut self) -> Vec<Call> {
        if !self.slots.iter().any(|slot| slot.stage == BatchStage::Running) {
            return Vec::new();
        }
        let waits = |slot: &&mut BatchCall| {
            slot.stage == BatchStage::Waiting
                && slot.kind == ToolKind::Mutation
                && slot.announced == Announced::NotYet
        };
        let mut announced = Vec::new();
        for slot in self.slots.iter_mut().filter(waits) {
            slot.announced = Announced::Once;
            announced.push(slot.call.clone());
        }
        announced
    }

    /// Removes the calls that have not begun, and returns them.
    pub fn drop_waiting(&mut self) -> Vec<Call> {
        let mut dropped = Vec::new();
        for slot in self.slots.iter_mut().filter(|slot| slot.stage == BatchStage::Waiting) {
            slot.stage = BatchStage::Ended;
            dropped.push(slot.call.clone());
        }
        dropped
    }

    /// The calls that run.
    pub fn running(&self) -> Vec<CallId> {
        let running = self.slots.iter().filter(|slot| slot.stage == BatchStage::Running);
        running.map(|slot| slot.call.id.clone()).collect()
    }

    /// True if one of the counted calls is a mutation, or the work of a sub-agent.
    pub fn may_have_changed(&self, counts: impl Fn(&Call) -> bool) -> bool {
        self.slots
            .iter()
            .any(|slot| (slot.kind == ToolKind::Mutation || slot.is_task()) && counts(&slot.call))
    }

    /// True if every call has ended.
    pub fn is_over(&self) -> bool {
        self.slots.iter().all(|slot| slot.stage == BatchStage::Ended)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::call::CallOrigin;
    use protocol::ids::SessionId;

    fn id(number: u32) -> CallId {
        CallId { session: SessionId("s".into()), number }
    }

    fn batch(kinds: &str) -> Batch {
        let mut batch = Batch::default();
        for (number, kind) in (1..).zip(kinds.chars()) {
            let tool = if kind == 'a' { "task" } else { "t" };
            let call = Call {
                id: id(number),
                origin: CallOrigin::model(number.to_string()),
                tool: tool.into(),
                input: "{}".into(),
            };
            let kind = if kind == 'm' { ToolKind::Mutation } else { ToolKind::Query };
            batch.push(call, kind);
        }
        batch
    }

    /// Runs a batch to its end, the first running call ending first; the waves it starts.
    fn waves(kinds: &str, parallel: u32) -> Vec<Vec<u32>> {
        let mut batch = batch(kinds);
        let mut waves = Vec::new();
        while !batch.is_over() {
            let wave: Vec<u32> =
                batch.start(parallel, 3).iter().map(|call| call.id.number).collect();
            waves.push(wave);
            let first = batch.running().remove(0);
            assert!(batch.ended(&first).is_some());
            assert!(batch.ended(&first).is_none());
        }
        waves
    }

    #[test]
    fn looks_run_together_and_changes_alone() {
        assert_eq!(waves("qqq", 4), [vec![1, 2, 3], vec![], vec![]]);
        assert_eq!(waves("qqmq", 4), [vec![1, 2], vec![], vec![3], vec![4]]);
        assert_eq!(waves("mm", 4), [vec![1], vec![2]]);
        assert_eq!(waves("mqq", 4), [vec![1], vec![2, 3], vec![]]);
        assert_eq!(waves("qqq", 2), [vec![1, 2], vec![3], vec![]]);
        assert_eq!(waves("qq", 0), [vec![1], vec![2]]);
        assert_eq!(waves("aaaa", 1), [vec![1, 2, 3], vec![4], vec![], vec![]], "sub-agents");
        assert_eq!(waves("aqaq", 1), [vec![1, 2, 3], vec![], vec![4], vec![]]);
    }

    #[test]
    fn what_has_not_begun_can_be_given_up() {
        let mut batch = batch("qmq");
        assert_eq!(batch.start(2, 3).len(), 1);
        assert_eq!(batch.drop_waiting().len(), 2);
        assert!(!batch.is_over());
        assert_eq!(batch.ended(&id(1)).map(|call| call.id), Some(id(1)));
        assert!(batch.is_over());
    }

    #[test]
    fn changes_behind_what_runs_are_announced_once() {
        let numbers = |calls: &[Call]| calls.iter().map(|call| call.id.number).collect::<Vec<_>>();
        let mut batch = batch("qmqm");
        assert_eq!(numbers(&batch.announce()), Vec::<u32>::new(), "nothing runs");
        batch.start(2, 2);
        assert_eq!(numbers(&batch.announce()), [2, 4]);
        assert_eq!(numbers(&batch.announce()), Vec::<u32>::new());
    }
}
