//! Decodes journal records into wire messages: the replay for a conversation, and the backlog for a
//! client that attaches. Used by the session actor; `encode` is the inverse.

use super::{images, origin};
use crate::person_prompt::PersonPrompt;
use call::{Cut, interruption, note_of_person};
use journal::{BasisRecord, JournalEntry, JournalRecord, QueuedPrompt};
use protocol::call::{Call, CallOrigin, CallStage, Outcome, ToolResult};
use protocol::client::{ClientEvent, NumberedEvent, PromptUse, SettingChange, WhileBusy};
use protocol::confinement::{FilePath, Network};
use protocol::context::Compaction;
use protocol::ids::{CallId, SessionId};
use protocol::judgement::{PermissionMode, Rule};
use protocol::mcp::ReplyAction;
use protocol::session::{SessionEvent, TaskSpent};
use std::collections::{HashMap, HashSet};

/// Decodes a journal for the conversation, record by record in order.
pub(crate) struct JournalReplay<'a> {
    session: &'a SessionId,
    calls: OpenCalls,
}

/// Calls without an end.
#[derive(Default)]
struct OpenCalls {
    /// Who asked, and the tool.
    open: HashMap<u32, (CallOrigin, String)>,
    /// Those in the background, whose use has its answer.
    background: HashSet<u32>,
    /// Words of a person with a yes that no result has yet.
    notes: HashMap<u32, String>,
}

impl OpenCalls {
    /// The event of a call's end.
    fn end(&mut self, call: CallId, use_id: &str, result: ToolResult) -> SessionEvent {
        let origin = self.origin(call.number, use_id);
        self.notes.remove(&call.number);
        let tool = self.open.remove(&call.number).map(|(_, tool)| tool).unwrap_or_default();
        match self.background.remove(&call.number) {
            true => SessionEvent::BackgroundEnded { call, tool, result },
            false => SessionEvent::ended(call, origin, result),
        }
    }

    /// Who asked for a call. Where no record names it, the vendor's id of its result says so.
    fn origin(&self, call: u32, use_id: &str) -> CallOrigin {
        let known = self.open.get(&call).map(|(origin, _)| origin.clone());
        known.unwrap_or_else(|| origin::origin((use_id, None), ("", "")))
    }
}

impl<'a> JournalReplay<'a> {
    pub(crate) fn of(session: &'a SessionId) -> Self {
        Self { session, calls: OpenCalls::default() }
    }

    pub(crate) fn next_event(&mut self, record: JournalRecord) -> Option<SessionEvent> {
        happened(self.session, record, &mut self.calls)
    }
}

fn happened(
    session: &SessionId,
    record: JournalRecord,
    calls: &mut OpenCalls,
) -> Option<SessionEvent> {
    match record {
        JournalRecord::Prompt { text, expanded } => Some(SessionEvent::Prompt { text, expanded }),
        JournalRecord::Joined { text } => Some(SessionEvent::Joined { text }),
        JournalRecord::Answer { round, blocks, usage, cost } => {
            Some(SessionEvent::Answer { round, blocks, usage, cost })
        }
        JournalRecord::Proposed { call, use_id, own, tool, input, tool_kind: _ } => {
            let origin = origin::origin((&use_id, own.as_ref()), (&tool, &input));
            calls.open.insert(call, (origin.clone(), tool.clone()));
            let id = id(session, call);
            Some(SessionEvent::Called { call: Call { id, origin, tool, input } })
        }
        JournalRecord::Result {
            call,
            use_id,
            outcome,
            text,
            summary,
            is_error,
            code,
            images,
            full: _,
            refused: _,
            recalled: _,
            audit: _,
        } => {
            let images = images::refs(images);
            let result = ToolResult { outcome, text, summary, is_error, code, images };
            Some(calls.end(id(session, call), &use_id, result))
        }
        JournalRecord::Interrupted { call, progress, cause, tampered, audit: _ } => {
            let (_, tool) = calls.open.get(&call)?;
            let result = interruption(&cut(progress, cause), tool, tampered);
            let note = calls.notes.get(&call).map(|note| note_of_person(note));
            let result = result.noted(note.as_deref());
            Some(calls.end(id(session, call), "", result))
        }
        JournalRecord::Background { call, use_id, text } => {
            calls.background.insert(call);
            // Its text has them.
            calls.notes.remove(&call);
            let origin = calls.origin(call, &use_id);
            let (call, stage) = (id(session, call), CallStage::InBackground);
            Some(SessionEvent::Result { call, origin, stage, result: in_background(text) })
        }
        JournalRecord::Approved { call, basis: BasisRecord::Person { note, .. }, .. } => {
            note.map(|note| calls.notes.insert(call, note));
            None
        }
        JournalRecord::TurnEnded { end } => Some(SessionEvent::TurnEnded { end }),
        JournalRecord::Compacted { dropped, result_chars, old } => {
            Some(SessionEvent::Compacted(Compaction::Cut { dropped, result_chars, old }))
        }
        JournalRecord::Summary(step) => Some(SessionEvent::Compacted(Compaction::Summary(step))),
        JournalRecord::Session(_)
        | JournalRecord::Spent { .. }
        | JournalRecord::Queued { .. }
        | JournalRecord::TakenBack { .. }
        | JournalRecord::Closed
        | JournalRecord::Changed { .. }
        | JournalRecord::Learned { .. }
        | JournalRecord::Tampered { .. }
        | JournalRecord::Seen { .. }
        | JournalRecord::Asked { .. }
        | JournalRecord::Approved { .. }
        | JournalRecord::Denied { .. }
        | JournalRecord::Expired { .. }
        | JournalRecord::Answered { .. }
        | JournalRecord::Start { .. }
        | JournalRecord::Unknown { .. } => None,
    }
}

/// What the model gets for a call that goes on in the background.
pub(crate) fn in_background(text: String) -> ToolResult {
    let summary = "runs in the background".to_owned();
    let (code, images) = (None, Vec::new());
    ToolResult { outcome: Outcome::Done, text, summary, is_error: false, code, images }
}

/// The events that clients are shown for records. The use of a sub-agent is a record of its own, and part
/// of the event of its call's end.
#[derive(Debug)]
pub(crate) struct ShownEvents {
    session: SessionId,
    /// By the number of the call.
    spent: HashMap<u32, JournalRecord>,
}

impl ShownEvents {
    pub(crate) fn of(session: &SessionId) -> Self {
        Self { session: session.clone(), spent: HashMap::new() }
    }

    /// The event of the next record, if there is one.
    pub(crate) fn next(&mut self, entry: JournalEntry) -> Option<NumberedEvent> {
        if let JournalRecord::Spent { call, .. } = &entry.record {
            self.spent.entry(*call).or_insert_with(|| entry.record.clone());
        }
        let mut event = client_event(&self.session, &entry.record)?;
        add_spent(&mut event, &self.spent);
        Some(NumberedEvent { seq: entry.seq, event })
    }

    /// The events of records that were read from the newest on.
    pub(crate) fn complete(&self, mut events: Vec<NumberedEvent>) -> Vec<NumberedEvent> {
        events.iter_mut().for_each(|it| add_spent(&mut it.event, &self.spent));
        events
    }
}

/// The events of these records, as far as they have any.
pub(crate) fn client_events(
    session: &SessionId,
    records: &[JournalRecord],
) -> Vec<Option<ClientEvent>> {
    records.iter().map(|record| client_event(session, record)).collect()
}

/// The event that clients get for a record; `None` for records they do not see.
pub(crate) fn client_event(session: &SessionId, record: &JournalRecord) -> Option<ClientEvent> {
    match record.clone() {
        JournalRecord::Prompt { text, expanded } => {
            let is_typed = expanded.is_some_and(|expanded| expanded.typed_by.is_some());
            let of = if is_typed { PromptUse::Command } else { PromptUse::Prompt };
            Some(ClientEvent::Prompt { text, of })
        }
        JournalRecord::Joined { text } => Some(ClientEvent::Prompt { text, of: PromptUse::Joined }),
        JournalRecord::Answer { blocks, usage, round: _, cost: _ } => {
            Some(ClientEvent::Answer { blocks, usage })
        }
        JournalRecord::Proposed { call, use_id, own, tool, input, tool_kind: _ } => {
            let origin = origin::origin((&use_id, own.as_ref()), (&tool, &input));
            let id = id(session, call);
            Some(ClientEvent::Proposed { call: Call { id, origin, tool, input } })
        }
        JournalRecord::Approved { call, basis: why, tool_kind: _ } => Some(ClientEvent::Decided {
            call: id(session, call),
            allowed: true,
            basis: describe_basis(&why),
        }),
        JournalRecord::Denied { call, basis: why, message: _ } => Some(ClientEvent::Decided {
            call: id(session, call),
            allowed: false,
            basis: describe_basis(&why),
        }),
        JournalRecord::Answered { call, action, by } => Some(ClientEvent::Decided {
            call: id(session, call),
            allowed: action == ReplyAction::Accept.name(),
            basis: match by {
                Some(by) => describe_basis(&journal::BasisRecord::Person { who: by, note: None }),
                None => "nobody answered".to_owned(),
            },
        }),
        JournalRecord::Expired { call } => Some(ClientEvent::Decided {
            call: id(session, call),
            allowed: false,
            basis: "nobody answered in time".to_owned(),
        }),
        JournalRecord::Result {
            call,
            outcome,
            text,
            summary,
            is_error,
            code,
            images,
            use_id: _,
            full: _,
            refused,
            recalled: _,
            audit: _,
        } => {
            let images = images::refs(images);
            let result = ToolResult { outcome, text, summary, is_error, code, images };
            Some(call_ended(id(session, call), result, refused, None))
        }
        JournalRecord::Interrupted { call, progress, cause, tampered, audit: _ } => {
            let result = interruption(&cut(progress, cause), "", tampered);
            Some(call_ended(id(session, call), result, Vec::new(), None))
        }
        JournalRecord::Background { call, use_id: _, text } => {
            Some(ClientEvent::InBackground { call: id(session, call), text })
        }
        JournalRecord::TurnEnded { end } => Some(ClientEvent::TurnEnded { end }),
        JournalRecord::Compacted { dropped, result_chars, old } => {
            Some(ClientEvent::Compacted(Compaction::Cut { dropped, result_chars, old }))
        }
        JournalRecord::Summary(step) => Some(ClientEvent::Compacted(Compaction::Summary(step))),
        JournalRecord::Changed { by, .. } => {
            changed(record).map(|change| ClientEvent::Changed { change, by })
        }
        JournalRecord::Learned { rule, by, unwritten } => {
            Some(ClientEvent::Learned { rule, by, unwritten })
        }
        // Clients get pending prompts separately, while they are pending.
        JournalRecord::Queued { .. } | JournalRecord::TakenBack { .. } => None,
        // An open question is shown by the call that waits for its answer.
        JournalRecord::Asked { .. }
        | JournalRecord::Spent { .. }
        | JournalRecord::Seen { .. }
        | JournalRecord::Tampered { .. }
        | JournalRecord::Session(_)
        | JournalRecord::Start { .. }
        | JournalRecord::Closed
        | JournalRecord::Unknown { .. } => None,
    }
}

/// The change in a record; `None` for a value of a newer build, and for other records.
fn changed(record: &JournalRecord) -> Option<SettingChange> {
    let JournalRecord::Changed {
        network,
        mode,
        added,
        model,
        pinned,
        unpinned,
        appended_system,
        cost_limit,
        flag,
        name,
        by: _,
    } = record
    else {
        return None;
    };
    if let Some(network) = network {
        return match network.split_once(' ') {
            None => Network::parse(network).map(SettingChange::Network),
            Some((list, host)) if list == Network::Listed.name() => {
                host.parse().ok().map(SettingChange::Host)
            }
            Some(_) => None,
        };
    }
    if let Some(mode) = mode {
        return PermissionMode::parse(mode).map(SettingChange::Mode);
    }
    let added = added.as_ref().map(|path| SettingChange::AddDirectory(FilePath::from(&path.0)));
    added
        .or_else(|| model.clone().map(SettingChange::Model))
        .or_else(|| pinned.clone().map(SettingChange::Pin))
        .or_else(|| unpinned.clone().map(SettingChange::Unpin))
        .or_else(|| appended_system.clone().map(SettingChange::AppendedSystem))
        .or_else(|| cost_limit.map(SettingChange::CostLimit))
        .or_else(|| flag.clone().map(|(key, value)| SettingChange::Flag(key, value)))
        .or_else(|| name.clone().map(SettingChange::Name))
}

/// The changes that the session recorded, in order.
pub(crate) fn changes(entries: &[JournalEntry]) -> Vec<SettingChange> {
    entries.iter().filter_map(|entry| changed(&entry.record)).collect()
}

/// Rules from answers that this build can parse: others allow nothing.
pub(crate) fn learned_rules(mut rules: Vec<Rule>) -> Vec<Rule> {
    rules.retain(|rule| approval::check(std::slice::from_ref(rule)).is_empty());
    rules
}

/// A prompt that waits.
pub(crate) fn queued_prompt(queued: QueuedPrompt) -> PersonPrompt {
    let QueuedPrompt { text, steers, expanded } = queued;
    let busy = if steers { WhileBusy::Steer } else { WhileBusy::Queue };
    PersonPrompt { text, expanded, busy }
}

fn id(session: &SessionId, number: u32) -> CallId {
    CallId { session: session.clone(), number }
}

fn cut(progress: journal::CallProgress, cause: String) -> Cut {
    match progress {
        journal::CallProgress::NeverStarted => Cut::BeforeGo { cause },
        journal::CallProgress::MayHaveRun => Cut::AfterGo { cause },
    }
}

/// The event of a call's end, with the record of what its sub-agent used.
pub(crate) fn call_ended(
    call: CallId,
    result: ToolResult,
    refused: Vec<String>,
    spent: Option<&JournalRecord>,
) -> ClientEvent {
    ClientEvent::CallEnded { call, result, refused, spent: spent.and_then(task_spent) }
}

/// Adds what a sub-agent used to the event of its call's end.
fn add_spent(event: &mut ClientEvent, known: &HashMap<u32, JournalRecord>) {
    if let ClientEvent::CallEnded { call, spent, .. } = event {
        *spent = spent.take().or_else(|| known.get(&call.number).and_then(task_spent));
    }
}

fn task_spent(record: &JournalRecord) -> Option<Box<TaskSpent>> {
    let JournalRecord::Spent { call: _, session, rounds, calls, usage, cost } = record else {
        return None;
    };
    Some(Box::new(TaskSpent {
        session: SessionId(session.clone()),
        rounds: *rounds,
        calls: *calls,
        usage: *usage,
        cost: *cost,
    }))
}

/// Describes the basis of a decision.
pub(crate) fn describe_basis(basis: &journal::BasisRecord) -> String {
    match basis {
        journal::BasisRecord::Rule(rule) if rule.line > 0 => {
            format!("rule `{}` ({}:{})", rule.text, rule.file, rule.line)
        }
        journal::BasisRecord::Rule(rule) => format!("rule `{}` ({})", rule.text, rule.file),
        journal::BasisRecord::Mode { mode } => format!("mode {mode}"),
        journal::BasisRecord::Query => "it only looks".to_owned(),
        // The result has the note.
        journal::BasisRecord::Person { who, note: _ } => format!("answered by {who}"),
        journal::BasisRecord::NobodyToAsk { why } => format!("nobody to ask ({why})"),
        journal::BasisRecord::Unjudgeable { why } => format!("cannot be judged ({why})"),
        journal::BasisRecord::Sandboxed { bounded } => {
            format!("mode {}: {}", PermissionMode::Sandboxed.name(), bounded.text())
        }
        journal::BasisRecord::Typed { who } => format!("typed by the person at {who}"),
        journal::BasisRecord::Opaque { mode } => {
            format!("mode {mode}; a program name in it could not be determined")
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::wildcard_enum_match_arm)]
    use super::*;
    use journal::{Outcome, Usage};

    fn entries() -> Vec<JournalEntry> {
        let spent = JournalRecord::Spent {
            call: 1,
            session: "s-1".to_owned(),
            rounds: 2,
            calls: 3,
            usage: Usage::default(),
            cost: Some(7),
        };
        let result = |call| JournalRecord::Result {
            call,
            use_id: "toolu_1".to_owned(),
            outcome: Outcome::Done,
            text: "Done.".to_owned(),
            summary: String::new(),
            is_error: false,
            code: None,
            images: Vec::new(),
            full: None,
            refused: Vec::new(),
            recalled: None,
            audit: None,
        };
        let records = [spent, result(1), result(2)];
        (1..).zip(records).map(|(seq, record)| JournalEntry { seq, time: 0, record }).collect()
    }

    fn costs(events: &[NumberedEvent]) -> Vec<Option<u64>> {
        let cost = |it: &NumberedEvent| match &it.event {
            ClientEvent::CallEnded { spent, .. } => spent.as_ref().and_then(|spent| spent.cost),
            other => panic!("{other:?}"),
        };
        events.iter().map(cost).collect()
    }

    #[test]
    fn words_with_a_yes_reach_the_model_once_though_the_call_was_cut_short() {
        let session = SessionId("s".to_owned());
        let person =
            BasisRecord::Person { who: "pts/1".to_owned(), note: Some("use yarn".to_owned()) };
        let (call, kind) = (7, journal::ToolKind::Mutation);
        let proposed = JournalRecord::Proposed {
            call,
            use_id: "toolu_7".to_owned(),
            own: None,
            tool: "bash".to_owned(),
            tool_kind: kind,
            input: "{}".to_owned(),
        };
        let approved = JournalRecord::Approved { call, tool_kind: kind, basis: person };
        let text = "It goes on.".to_owned();
        let background = JournalRecord::Background { call, use_id: "toolu_7".to_owned(), text };
        let cut = JournalRecord::Interrupted {
            call,
            progress: journal::CallProgress::MayHaveRun,
            cause: "killed".to_owned(),
            tampered: Vec::new(),
            audit: None,
        };
        for (records, times) in [
            (vec![proposed.clone(), approved.clone(), cut.clone()], 1),
            (vec![proposed, approved, background, cut], 0),
        ] {
            let mut replay = JournalReplay::of(&session);
            let events = records.into_iter().filter_map(|record| replay.next_event(record));
            let said: String = events.map(|event| format!("{event:?}")).collect();
            assert_eq!(said.matches("says: use yarn]").count(), times, "{said}");
        }
    }

    #[test]
    fn the_end_of_a_call_has_the_use_of_its_sub_agent_in_either_order_of_reading() {
        let session = SessionId("s".to_owned());
        let mut shown = ShownEvents::of(&session);
        let forwards: Vec<_> = entries().into_iter().filter_map(|it| shown.next(it)).collect();
        assert_eq!(costs(&forwards), [Some(7), None]);
        let mut shown = ShownEvents::of(&session);
        let backwards = entries().into_iter().rev().filter_map(|it| shown.next(it)).collect();
        assert_eq!(costs(&shown.complete(backwards)), [None, Some(7)]);
    }
}
