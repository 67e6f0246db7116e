//! The outcome of a sub-agent's work, from the records of its session: its last answer, how its turn ended,
//! and what it used. Pure. Used by the session actors of the sub-agent and of its parent.

use crate::records::origin;
use journal::{CallSpan, ContentBlock, JournalRecord, ToolKind, TurnEnd, Usage};
use protocol::call::{Outcome, ToolResult};
use protocol::session::{TASK_ONLY_READ, TaskUse};
use std::collections::BTreeMap;

/// The state of a sub-agent's work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TaskOutcome {
    /// How the turn of its task ended, if it has.
    pub(crate) end: Option<TurnEnd>,
    /// Why its turn does not end, where its session cannot go on.
    pub(crate) failure: Option<String>,
    /// The text of its last answer.
    answer: String,
    own: TaskTotals,
    /// Its calls that may have changed something, those of its hooks included.
    mutations: u32,
    /// Of its own sub-agents, by call. A call has several records after a death: the last one counts.
    spent: BTreeMap<u32, TaskTotals>,
}

/// Everything that a session used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TaskTotals {
    /// Requests to the model.
    pub(crate) rounds: u32,
    pub(crate) used: TaskUse,
    /// Its tokens.
    pub(crate) usage: Usage,
}

impl TaskTotals {
    fn add(&mut self, other: Self) {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
        };
        let (one, two) = (self.usage, other.usage);
        let both = self.used.cost.zip(other.used.cost);
        *self = Self {
            rounds: self.rounds.saturating_add(other.rounds),
            used: TaskUse {
                calls: self.used.calls.saturating_add(other.used.calls),
                // An unknown cost is not zero.
                cost: both.map(|(one, other)| one.saturating_add(other)),
            },
            usage: Usage {
                input: sum(one.input, two.input),
                output: sum(one.output, two.output),
                cache_read: sum(one.cache_read, two.cache_read),
                cache_write: sum(one.cache_write, two.cache_write),
            },
        };
    }

    /// The record of this use, for the parent's call.
    pub(crate) fn spent(self, call: u32, session: String) -> JournalRecord {
        let Self { rounds, usage, used: TaskUse { calls, cost } } = self;
        JournalRecord::Spent { call, session, rounds, calls, usage, cost }
    }
}

impl TaskOutcome {
    /// Reads the records of the sub-agent's session, in order. Later turns are a person's own and change
    /// nothing but the use.
    pub(crate) fn of<'a>(records: impl IntoIterator<Item = &'a JournalRecord>) -> Self {
        let mut outcome = Self::default();
        for record in records {
            outcome.take(record);
        }
        outcome
    }

    /// Takes the next record in.
    pub(crate) fn take(&mut self, record: &JournalRecord) {
        if let JournalRecord::Answer { blocks, usage, cost, .. } = record {
            let used = TaskUse { calls: 0, cost: *cost };
            self.own.add(TaskTotals { rounds: 1, used, usage: *usage });
            let texts = blocks.iter().filter_map(|block| match block {
                ContentBlock::Text { text } => Some(text.as_str()),
                ContentBlock::Thinking { .. }
                | ContentBlock::ToolUse { .. }
                | ContentBlock::Image { .. }
                | ContentBlock::ToolResult { .. } => None,
            });
            let text = texts.collect::<Vec<_>>().join("\n");
            if self.end.is_none() && !text.trim().is_empty() {
                self.answer = text;
            }
        } else if let JournalRecord::Summary(summary) = record
            && let Some((usage, cost)) = summary.use_of_model()
        {
            let used = TaskUse { calls: 0, cost };
            self.own.add(TaskTotals { rounds: 1, used, usage });
        } else if let JournalRecord::Proposed { use_id, own, tool, tool_kind, input, .. } = record {
            let origin = origin::origin((use_id, own.as_ref()), (tool, input));
            self.own.used.calls += u32::from(origin.is_model());
            self.mutations += u32::from(*tool_kind == ToolKind::Mutation);
        } else if let JournalRecord::Spent { call, rounds, calls, usage, cost, .. } = record {
            let used = TaskUse { calls: *calls, cost: *cost };
            self.spent.insert(*call, TaskTotals { rounds: *rounds, used, usage: *usage });
        } else if let JournalRecord::TurnEnded { end } = record
            && self.end.is_none()
        {
            self.end = Some(end.clone());
        }
    }

    /// Everything that it used, with its own sub-agents.
    pub(crate) fn totals(&self) -> TaskTotals {
        let mut all = self.own;
        self.spent.values().for_each(|spent| all.add(*spent));
        all
    }

    /// The result of the parent's call.
    pub(crate) fn result(&self, agent: &str, session: &str, max_chars: u32) -> ToolResult {
        let totals = self.totals();
        let what = format!(
            "sub-agent {agent}, session {session}: {}, {}",
            counted(totals.rounds, "request"),
            counted(totals.used.calls, "call")
        );
        let Some(why) = self.unfinished() else {
            let said = match self.answer.trim() {
                "" => "(the sub-agent gave no answer)",
                said => said,
            };
            let text = format!("{}\n[{what}]", shortened(said, max_chars));
            return ToolResult {
                outcome: Outcome::Done,
                text,
                summary: what,
                is_error: false,
                code: (self.mutations == 0).then(|| TASK_ONLY_READ.to_owned()),
                images: Vec::new(),
            };
        };
        let said = match self.answer.trim() {
            "" => "It gave no answer.".to_owned(),
            said => format!("Its last answer so far:\n{}", shortened(said, max_chars)),
        };
        let text = format!("The sub-agent did not finish: {why}. {said}\n[{what}]");
        let stopped = match self.end {
            Some(TurnEnd::Interrupted) => true,
            None => self.failure.is_none(),
            Some(_) => false,
        };
        let (outcome, code) = match stopped {
            true => (Outcome::Interrupted, "interrupted"),
            false => (Outcome::Failed, "unfinished"),
        };
        ToolResult {
            outcome,
            text,
            summary: format!("{what}; {why}"),
            is_error: true,
            code: Some(code.to_owned()),
            images: Vec::new(),
        }
    }

    /// Why the work is not done, if it is not.
    fn unfinished(&self) -> Option<String> {
        let why = match self.end.as_ref() {
            Some(TurnEnd::Done) => return None,
            Some(TurnEnd::RoundsUsedUp { rounds }) => {
                format!("its {rounds} requests to the model are used up")
            }
            Some(TurnEnd::CallsUsedUp { calls, of: CallSpan::Turn | CallSpan::Session }) => {
                format!("its {calls} tool calls are used up")
            }
            Some(TurnEnd::CostReached { .. }) => {
                "its share of the session's cost is used up".to_owned()
            }
            Some(TurnEnd::Declined { explanation }) => {
                format!("the model declined ({explanation})")
            }
            Some(TurnEnd::Truncated) => "its answer was cut at the limit of tokens".to_owned(),
            Some(TurnEnd::StoppedByHook { reason }) => format!("a hook ended it ({reason})"),
            Some(TurnEnd::Interrupted) => "a person stopped it".to_owned(),
            Some(TurnEnd::ProviderFailed { message, .. }) => {
                format!("the model could not be asked ({message})")
            }
            Some(TurnEnd::ProcessDied(died)) => {
                format!("{} {} {}", died.process, died.cause, died.place)
            }
            None => self.failure.clone().unwrap_or_else(|| "its session was ended".to_owned()),
        };
        Some(why)
    }
}

/// The end of a long answer is what its reader waits for, so the middle is left out.
fn shortened(text: &str, max_chars: u32) -> String {
    let most = usize::try_from(max_chars).unwrap_or(usize::MAX);
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(count - half).collect();
    let left_out = count - 2 * half;
    format!("{head}\n[{left_out} characters are left out]\n{tail}")
}

fn counted(number: u32, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str, cost: Option<u64>) -> JournalRecord {
        let usage = Usage { input: Some(10), output: Some(2), ..Usage::default() };
        let blocks = vec![ContentBlock::Text { text: text.to_owned() }];
        JournalRecord::Answer { round: 1, blocks, usage, cost }
    }

    fn proposed(use_id: &str) -> JournalRecord {
        proposed_of(use_id, ToolKind::Query)
    }

    fn proposed_of(use_id: &str, tool_kind: ToolKind) -> JournalRecord {
        JournalRecord::Proposed {
            call: 1,
            use_id: use_id.to_owned(),
            own: None,
            tool: "read".to_owned(),
            tool_kind,
            input: "{}".to_owned(),
        }
    }

    fn ended(end: TurnEnd) -> JournalRecord {
        JournalRecord::TurnEnded { end }
    }

    #[test]
    fn the_last_answer_of_the_first_turn_is_the_result() {
        let records = [
            answer("I look.", Some(3)),
            proposed("toolu_1"),
            proposed(""),
            answer("Found it.", Some(4)),
            ended(TurnEnd::Done),
            answer("A person asked more.", Some(5)),
            ended(TurnEnd::Interrupted),
        ];
        let outcome = TaskOutcome::of(&records);
        let result = outcome.result("look", "s-1", 1000);
        assert_eq!(result.text, "Found it.\n[sub-agent look, session s-1: 3 requests, 1 call]");
        assert!(!result.is_error);
        assert_eq!(outcome.totals().used, TaskUse { calls: 1, cost: Some(12) });
        assert_eq!(outcome.totals().usage.input, Some(30));
    }

    #[test]
    fn a_sub_agent_that_only_read_says_so_to_a_rewind() {
        let code = |records: &[JournalRecord]| {
            let end = [answer("Done.", None), ended(TurnEnd::Done)];
            TaskOutcome::of(records.iter().chain(&end)).result("a", "s", 100).code
        };
        assert_eq!(code(&[proposed("t1")]).as_deref(), Some(TASK_ONLY_READ));
        // A hook of it is no call of its model, and may write.
        for use_id in ["t1", ""] {
            assert_eq!(code(&[proposed_of(use_id, ToolKind::Mutation)]), None);
        }
    }

    #[test]
    fn work_that_is_not_done_says_why_and_what_was_answered() {
        let cut = |end: Option<TurnEnd>| {
            let records: Vec<_> =
                std::iter::once(answer("Half.", None)).chain(end.map(ended)).collect();
            TaskOutcome::of(&records).result("look", "s-1", 1000)
        };
        for (end, why) in [
            (Some(TurnEnd::RoundsUsedUp { rounds: 3 }), "its 3 requests"),
            (Some(TurnEnd::Interrupted), "a person stopped it"),
            (None, "its session was ended"),
        ] {
            let result = cut(end);
            assert!(result.is_error && result.text.contains(why), "{}", result.text);
            assert!(result.text.contains("Half."), "{}", result.text);
        }
        let unknown = TaskOutcome::of(&[answer("x", None)]);
        assert_eq!(unknown.totals().used.cost, None, "an unknown cost is not zero");
    }

    #[test]
    fn the_use_of_its_own_sub_agents_counts() {
        let outer = TaskOutcome::of(&[answer("x", Some(1)), ended(TurnEnd::Done)]);
        let spent = |call| outer.totals().spent(call, format!("s-1-{call}"));
        let records = [answer("y", Some(2)), spent(1)];
        let totals = TaskOutcome::of(&records).totals();
        assert_eq!((totals.used.cost, totals.rounds), (Some(3), 2));
        // A record that a death cut from its call's end is written again.
        let again = [answer("y", Some(2)), spent(1), spent(1), spent(2)];
        let totals = TaskOutcome::of(&again).totals();
        assert_eq!((totals.used.cost, totals.rounds), (Some(4), 3));
    }

    #[test]
    fn a_session_that_cannot_go_on_is_a_failure_and_says_why() {
        let failed = TaskOutcome {
            failure: Some("its conversation has failed".to_owned()),
            ..TaskOutcome::default()
        };
        let result = failed.result("look", "s-1", 1000);
        assert_eq!(result.outcome, Outcome::Failed);
        assert!(
            result.text.contains("did not finish: its conversation has failed"),
            "{}",
            result.text
        );
    }

    #[test]
    fn a_long_answer_keeps_its_beginning_and_its_end() {
        let long = format!("begin{}end", "x".repeat(100));
        let short = shortened(&long, 20);
        assert!(short.starts_with("begin") && short.ends_with("end"), "{short}");
        assert!(short.contains("[88 characters are left out]"), "{short}");
    }
}
