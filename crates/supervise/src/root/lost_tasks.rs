//! Calls of sub-agents that were lost with the supervisor, in a turn that does not go on: the records of the
//! sub-agent's session give their results. Also counts the use of sub-agents that worked on since their
//! parent counted it. Used where a journal is opened.

use crate::records::{encode, origin};
use crate::task_outcome::TaskOutcome;
use journal::{Journal, JournalEntry, JournalRecord, OpenCall, OpenError};
use protocol::call::ToolResult;
use protocol::ids::{CallId, SessionId};
use protocol::session::SessionEvent;
use protocol::session::TASK;
use setup::session_spec::{session_of, tool_kind};
use setup::task_worktree;
use std::collections::BTreeMap;
use std::path::Path;

/// Replaces the records that end these calls by results, where the sub-agents have sessions. Returns the
/// records of what the sub-agents used.
pub(super) fn answer(
    sessions: &Path,
    parent: &SessionId,
    lost: &[OpenCall],
    records: &mut [JournalRecord],
    max_chars: u32,
) -> Vec<JournalRecord> {
    let mut spent = Vec::new();
    for (call, record) in lost.iter().zip(records) {
        if call.tool != TASK || call.refused.is_some() {
            continue;
        }
        let child = session_of(parent, call.number);
        let Some((result, outcome)) = result(&sessions.join(&child.0), &child, max_chars) else {
            continue;
        };
        let call_id = CallId { session: parent.clone(), number: call.number };
        let event = SessionEvent::ended(call_id, origin::of_open(call), result);
        *record = encode::session_event(event, tool_kind);
        spent.push(outcome.totals().spent(call.number, child.0));
    }
    spent
}

/// The result of a sub-agent's session, and its work so far; `None` where it cannot be read.
fn result(
    directory: &Path,
    child: &SessionId,
    max_chars: u32,
) -> Option<(ToolResult, TaskOutcome)> {
    // With its lock no other process writes to it meanwhile.
    let held = Journal::open(directory);
    let task = journal::header(directory).ok()?.task?;
    let mut outcome = work(directory)?;
    if let Err(OpenError::Held { .. }) = held {
        let why =
            format!("another process works on in its session; `agentd attach {child}` shows it");
        outcome.failure = Some(why);
    }
    let mut result = outcome.result(&task.agent, &child.0, max_chars);
    if let Some(place) = task_worktree::left(&task) {
        result.text = format!("{}\n{place}", result.text);
    }
    Some((result, outcome))
}

/// The records of sub-agents that have used more than the parent recorded: those that worked on after it,
/// or that were still ending when it ended.
pub(super) fn recount(
    sessions: &Path,
    parent: &SessionId,
    entries: &[JournalEntry],
) -> Vec<JournalRecord> {
    let mut counted = BTreeMap::new();
    for entry in entries {
        if let Some((call, session)) = entry.record.sub_agent()
            && *session == session_of(parent, call).0
        {
            counted.insert(call, entry);
        }
    }
    let more = counted.into_iter().filter_map(|(call, entry)| {
        let child = session_of(parent, call);
        let directory = sessions.join(&child.0);
        let last = journal::newest(&directory, 1, |last| Some(last.time)).ok()?;
        if last.first().is_none_or(|last| *last < entry.time) {
            return None;
        }
        let spent = work(&directory)?.totals().spent(call, child.0);
        (spent != entry.record).then_some(spent)
    });
    more.collect()
}

fn work(directory: &Path) -> Option<TaskOutcome> {
    let mut outcome = TaskOutcome::default();
    for entry in journal::read(directory).ok()? {
        outcome.take(&entry.ok()?.record);
    }
    Some(outcome)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use journal::{
        CallProgress, ContentBlock, SessionHeader, TaskHeader, TaskLimits, TaskRights, ToolKind,
        Usage,
    };

    fn begin(sessions: &Path, id: &str) -> Journal {
        let rights = TaskRights {
            mode: "ask".to_owned(),
            network: "off".to_owned(),
            hosts: Vec::new(),
            added: Vec::new(),
            uncaged: false,
        };
        let task = TaskHeader {
            session: "p".to_owned(),
            call: 1,
            agent: "look".to_owned(),
            prompt: "Look.".to_owned(),
            instructions: String::new(),
            model: None,
            tools: None,
            deny: Vec::new(),
            servers: Vec::new(),
            rights,
            limits: TaskLimits { depth: 0, rounds: 9, calls: None, cost: None },
            worktree: None,
        };
        let header = SessionHeader {
            format: journal::FORMAT,
            id: id.to_owned(),
            project: Path::new("/p").into(),
            model: "m".to_owned(),
            agentd: "0".to_owned(),
            parent: None,
            task: Some(Box::new(task)),
            fleet_task: None,
        };
        Journal::create(sessions, header).unwrap()
    }

    fn answered() -> JournalRecord {
        JournalRecord::Answer {
            round: 1,
            blocks: vec![ContentBlock::Text { text: "So far.".to_owned() }],
            usage: Usage::default(),
            cost: Some(5),
        }
    }

    fn lost() -> OpenCall {
        OpenCall {
            number: 1,
            use_id: "toolu_1".to_owned(),
            own: None,
            tool: TASK.to_owned(),
            tool_kind: ToolKind::Query,
            input: "{}".to_owned(),
            progress: CallProgress::MayHaveRun,
            basis: None,
            refused: None,
        }
    }

    fn text(record: &JournalRecord) -> String {
        let JournalRecord::Result { text, .. } = record else { panic!("{record:?}") };
        text.clone()
    }

    #[test]
    fn a_sub_agent_that_another_process_works_on_is_not_called_ended() {
        let place = tempfile::tempdir().unwrap();
        let mut held = begin(place.path(), "p-1");
        held.append(&answered()).unwrap();
        let parent = SessionId("p".to_owned());
        let mut records = [JournalRecord::Closed];
        let spent = answer(place.path(), &parent, &[lost()], &mut records, 1000);
        let said = text(&records[0]);
        assert!(
            said.contains("another process works on in its session") && said.contains("So far."),
            "{said}"
        );
        assert_eq!(spent.len(), 1);
        // The control: its lock is free.
        drop(held);
        let mut records = [JournalRecord::Closed];
        answer(place.path(), &parent, &[lost()], &mut records, 1000);
        assert!(text(&records[0]).contains("its session was ended"), "{}", text(&records[0]));
    }

    #[test]
    fn what_a_sub_agent_used_after_its_parent_counted_is_counted_once() {
        let place = tempfile::tempdir().unwrap();
        let mut child = begin(place.path(), "p-1");
        child.append(&answered()).unwrap();
        let parent = SessionId("p".to_owned());
        let entry = |record, seq| JournalEntry { seq, time: 0, record };
        let before = work(&place.path().join("p-1")).unwrap().totals().spent(1, "p-1".to_owned());
        let counted = [entry(before, 1)];
        assert_eq!(recount(place.path(), &parent, &counted), []);
        child.append(&answered()).unwrap();
        let more = recount(place.path(), &parent, &counted);
        let [JournalRecord::Spent { rounds: 2, cost: Some(10), .. }] = more[..] else {
            panic!("{more:?}")
        };
        let both = [counted[0].clone(), entry(more[0].clone(), 2)];
        assert_eq!(recount(place.path(), &parent, &both), []);
        // A fork has the records of another session's calls.
        assert_eq!(recount(place.path(), &SessionId("q".to_owned()), &counted), []);
    }
}
